//! The OpenAPI document, made from the table of routes and the tables of errors.

use std::collections::BTreeMap;

use serde_json::json;
use utoipa::openapi::content::ContentBuilder;
use utoipa::openapi::header::{Header, HeaderBuilder};
use utoipa::openapi::path::{HttpMethod, Operation, OperationBuilder};
use utoipa::openapi::request_body::{RequestBody, RequestBodyBuilder};
use utoipa::openapi::schema::{Object, Type};
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityRequirement, SecurityScheme};
use utoipa::openapi::tag::TagBuilder;
use utoipa::openapi::{
    Components, InfoBuilder, LicenseBuilder, OpenApi, OpenApiBuilder, Paths, Ref, RefOr, Required,
    Response, ResponseBuilder,
};

use crate::auth::Needs;
use crate::error::{self, ApiError, ErrorBody, ErrorKind};
use crate::route::{About, Answer, BodyRead, Group, Route, SchemaOf, Schemas, reference};
use crate::rule::Rule;
use edge::Scope;

const ABOUT: &str = "Social feeds: users, follows, posts and home timelines; friends and their stories, which \
    expire; buckets of keys and values; and a recognizer of drawings.\n\n\
    Ids are decimal strings, times are RFC 3339 in UTC. The acting user is in the path. Every list is \
    `{items, next, prev}`. Every error is `{error, message, field, request_id}`: 400 if a request cannot \
    be read, 422 if a rule refuses it, 503 with `Retry-After` if the server is overloaded.";

/// Errors of every route.
const ALWAYS: [&str; 4] = ["bad_request", "forbidden_origin", "internal", "overloaded"];
/// Errors of every route that needs a key.
const WITH_KEY: [&str; 10] = [
    "unauthorized",
    "not_logged_in",
    "missing_scope",
    "not_for_users",
    "beyond_memory",
    "damaged",
    "stopping",
    "log_unavailable",
    "upgrading",
    "lagging",
];
/// Errors of routes that read a body, in addition to those derived from the body.
const WITH_BODY: [&str; 1] = ["body_too_slow"];
/// Errors of routes that change something.
const CHANGING: [&str; 1] = ["unconfirmed"];
/// Errors of routes that store something. Deletions are accepted when the disk is full.
const STORING: [&str; 1] = ["disk_full"];

/// Errors of a route by status, in declaration order.
type Errors = BTreeMap<u16, Vec<ErrorKind>>;

/// Errors by their codes.
type Kinds = BTreeMap<&'static str, ErrorKind>;

/// Makes the OpenAPI document of the routes.
pub(crate) fn document(groups: &[Group]) -> OpenApi {
    let kinds = kinds();
    let (mut paths, mut schemas) = (Paths::new(), Schemas::new());
    reference::<ErrorBody>(&mut schemas);
    let mut components = Components::new();
    let common = by_status(of_codes(&kinds, &[ALWAYS.as_slice(), &WITH_KEY].concat()));
    for (status, errors) in &common {
        components.responses.insert(name(*status), error_response(*status, errors).into());
    }
    for Group { tag, routes, .. } in groups {
        for route in routes.iter().flat_map(|routes| routes()) {
            let Some(about) = &route.about else { continue };
            let operation = operation(tag, &route, about, (&kinds, &common), &mut schemas);
            let path = route.path.replace("{*", "{");
            paths.add_path_operation(path, vec![method(route.method)], operation);
        }
    }
    components.schemas.extend(schemas);
    let bearer = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
    components.security_schemes.insert("key".into(), bearer.into());
    let license = env!("CARGO_PKG_LICENSE");
    let license = LicenseBuilder::new().name(license).identifier(Some(license));
    let info = InfoBuilder::new()
        .title("roost")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some(ABOUT))
        .license(Some(license.build()));
    let tag =
        |group: &Group| TagBuilder::new().name(group.tag).description(Some(group.text)).build();
    OpenApiBuilder::new()
        .info(info.build())
        .tags(Some(groups.iter().map(tag)))
        .paths(paths)
        .components(Some(components))
        .build()
}

/// Errors by code. If several errors share a code, the first of them; a route that has another one declares it.
fn kinds() -> Kinds {
    let mut kinds = Kinds::new();
    for kind in error::kinds() {
        kinds.entry(kind.code).or_insert(kind);
    }
    kinds
}

fn of_codes<'a>(kinds: &'a Kinds, codes: &'a [&str]) -> impl Iterator<Item = &'a ErrorKind> {
    codes.iter().map(|code| match kinds.get(code) {
        Some(kind) => kind,
        None => unreachable!("{code} is in no table of errors"),
    })
}

fn by_status<'a>(kinds: impl Iterator<Item = &'a ErrorKind>) -> Errors {
    let mut errors = Errors::new();
    for kind in kinds {
        let of_status = errors.entry(kind.status.as_u16()).or_default();
        if !of_status.contains(kind) {
            of_status.push(kind.clone());
        }
    }
    errors
}

/// Errors of reading a body that depend on its maximum size and its media types.
fn errors_of_body(body: &BodyRead) -> impl Iterator<Item = ErrorKind> {
    let expected: Vec<_> = body.contents.iter().map(|(media_type, _)| *media_type).collect();
    let other_type = ApiError::unsupported_media_type(&expected.join(" or "));
    let too_large = body.bytes_max.map(ApiError::body_too_large);
    too_large.into_iter().chain([other_type]).map(ErrorKind::from)
}

fn method(name: &str) -> HttpMethod {
    match name {
        "GET" => HttpMethod::Get,
        "POST" => HttpMethod::Post,
        "PUT" => HttpMethod::Put,
        "PATCH" => HttpMethod::Patch,
        "DELETE" => HttpMethod::Delete,
        other => unreachable!("no route has the method {other}"),
    }
}

fn operation(
    tag: &str,
    Route { method, rule, .. }: &Route,
    about: &About,
    (kinds, common): (&Kinds, &Errors),
    schemas: &mut Schemas,
) -> Operation {
    let mut codes = ALWAYS.to_vec();
    if rule.needs != Needs::Nothing {
        codes.extend(WITH_KEY);
        codes.extend(changes(method, *rule).then_some(CHANGING).into_iter().flatten());
    }
    codes.extend(about.inputs.body.iter().flat_map(|_| WITH_BODY));
    codes.extend(stores(method, *rule).then_some(STORING).into_iter().flatten());
    codes.extend(&about.inputs.errors);
    let mut operation = OperationBuilder::new()
        .tag(tag)
        .operation_id(Some(about.id))
        .summary(Some(about.summary))
        .description(Some(text(about, kinds)).filter(|text| !text.is_empty()))
        .security(security(*rule))
        .request_body(about.inputs.body.as_ref().map(|body| request_body(body, schemas)));
    if !about.inputs.parameters.is_empty() {
        operation = operation.parameters(Some(about.inputs.parameters.iter().cloned()));
    }
    for answer in &about.answers {
        operation = operation.response(answer.status.to_string(), success(answer, schemas));
    }
    let of_body: Vec<_> = about.inputs.body.iter().flat_map(errors_of_body).collect();
    let errors = of_codes(kinds, &codes).chain(&of_body).chain(&about.inputs.exact_errors);
    for (status, errors) in by_status(errors) {
        let response: RefOr<Response> = match common.get(&status) {
            Some(same) if *same == errors => Ref::from_response_name(name(status)).into(),
            _ => error_response(status, &errors).into(),
        };
        operation = operation.response(status.to_string(), response);
    }
    operation.build()
}

/// Description of a route, including the errors of the lines of its response.
fn text(about: &About, kinds: &Kinds) -> String {
    match about.errors_of_lines.as_slice() {
        [] => about.text.to_owned(),
        codes => {
            format!("{}\n\nErrors of lines:\n\n{}", about.text, error_list(of_codes(kinds, codes)))
        }
    }
}

/// Whether a route changes stored data.
fn changes(method: &str, rule: Rule) -> bool {
    method != "GET" && rule.needs != Needs::Scope(Scope::Read)
}

/// Whether a route adds stored data.
fn stores(method: &str, rule: Rule) -> bool {
    changes(method, rule) && method != "DELETE"
}

/// Key that a route needs, with the name of its scope.
fn security(rule: Rule) -> SecurityRequirement {
    match rule.needs {
        Needs::Nothing | Needs::Nowhere => SecurityRequirement::default(),
        Needs::Scope(scope) => SecurityRequirement::new("key", [scope.name()]),
    }
}

fn request_body(body: &BodyRead, schemas: &mut Schemas) -> RequestBody {
    let text = match body.bytes_max {
        Some(bytes) => format!("At most {bytes} bytes."),
        None => "A stream of any length.".to_owned(),
    };
    let required = if body.is_optional { Required::False } else { Required::True };
    let start = RequestBodyBuilder::new().required(Some(required)).description(Some(text));
    let add = |request: RequestBodyBuilder, (media_type, schema): &(&str, SchemaOf)| {
        request.content(*media_type, ContentBuilder::new().schema(Some(schema(schemas))).build())
    };
    body.contents.iter().fold(start, add).build()
}

fn success(answer: &Answer, schemas: &mut Schemas) -> Response {
    let mut response = ResponseBuilder::new().description(answer.text);
    if let Some((media_type, schema)) = answer.body {
        let content = ContentBuilder::new().schema(Some(schema(schemas))).build();
        response = response.content(media_type, content);
    }
    for (name, text) in &answer.headers {
        response = response.header(*name, header(text, Type::String));
    }
    with_id(response)
}

/// Component name of the errors that every route has for a status, for example `NotFound`.
fn name(status: u16) -> String {
    let status = axum::http::StatusCode::from_u16(status).ok();
    let words = status.and_then(|status| status.canonical_reason()).unwrap_or("Error");
    words.replace(' ', "")
}

fn error_list<'a>(errors: impl Iterator<Item = &'a ErrorKind>) -> String {
    let lines = errors.map(|kind| format!("- `{}`: {}", kind.code, kind.sentence));
    lines.collect::<Vec<_>>().join("\n")
}

fn error_response(status: u16, errors: &[ErrorKind]) -> Response {
    let example = errors.first().map(|ErrorKind { code, sentence, field, .. }| {
        json!({"error": code, "message": sentence, "field": field, "request_id": "5f0c9a1e22b7d301"})
    });
    let body = ContentBuilder::new()
        .schema(Some(Ref::from_schema_name("ErrorBody")))
        .example(example)
        .build();
    let response = ResponseBuilder::new()
        .description(error_list(errors.iter()))
        .content("application/json", body);
    with_id(match status {
        429 | 503 => response.header("Retry-After", header("Seconds to wait", Type::Integer)),
        _ => response,
    })
}

fn with_id(response: ResponseBuilder) -> Response {
    let text = "Id of this request in the server's log";
    response.header("X-Request-Id", header(text, Type::String)).build()
}

fn header(text: &str, kind: Type) -> Header {
    HeaderBuilder::new().schema(Some(Object::with_type(kind))).description(Some(text)).build()
}
