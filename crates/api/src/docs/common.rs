//! Parts of the description that many routes share: errors that any of them can return, and the header with
//! the request's id.

use utoipa::Modify;
use utoipa::openapi::header::{Header, HeaderBuilder};
use utoipa::openapi::path::{Operation, ParameterIn};
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};
use utoipa::openapi::{Components, Content, OpenApi, PathItem, Ref, RefOr, Response};

/// Errors of every route that needs a key: status, name of the component, codes.
const ALWAYS: [(&str, &str, &str); 5] = [
    (
        "400",
        "BadRequest",
        "`bad_request`, `bad_json`, `bad_cursor`, `bad_idempotency_key`: the request cannot be parsed",
    ),
    ("401", "Unauthorized", "`unauthorized`: no valid application key"),
    ("403", "Forbidden", "`forbidden_origin`: in open mode, not from this machine"),
    ("500", "Internal", "`internal`, `damaged`: the server has logged the cause"),
    (
        "503",
        "Unavailable",
        "`overloaded`, `starting`, `stopping`: nothing was changed; retry after `Retry-After`. Of a node of a cluster also \
         `log_unavailable`, `upgrading`, `lagging`, and `unconfirmed`: the change may still be made",
    ),
];

/// Errors of routes that read a body.
const WITH_BODY: [(&str, &str, &str); 3] = [
    ("408", "TooSlow", "`body_too_slow`"),
    ("413", "TooLarge", "`body_too_large`, `beyond_memory`"),
    ("415", "UnsupportedMediaType", "`unsupported_media_type`"),
];

/// Error of routes that store something.
const FULL: (&str, &str, &str) =
    ("507", "DiskFull", "`disk_full`: nothing was changed; only deletions are accepted");
/// A route that stores nothing although its method is POST.
const RECOGNITIONS: &str = "/v1/recognitions";

/// Errors of routes that read values.
const REFUSED: (&str, &str, &str) = ("422", "Refused", "`bad_handle`: a rule refuses a value");

/// Adds these errors and headers to the description.
pub(super) struct Common;

impl Modify for Common {
    fn modify(&self, api: &mut OpenApi) {
        let components = api.components.get_or_insert_default();
        let bearer = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
        components.security_schemes.insert("key".into(), bearer.into());
        for (_, name, description) in ALWAYS.into_iter().chain(WITH_BODY).chain([REFUSED, FULL]) {
            add_error(components, name, description);
        }
        for (path, item) in &mut api.paths.paths {
            let PathItem { get, put, post, delete, patch, .. } = item;
            for operation in [get, delete].into_iter().flatten() {
                complete(operation, false);
            }
            for operation in [put, post, patch].into_iter().flatten() {
                complete(operation, path != RECOGNITIONS);
            }
        }
    }
}

fn add_error(components: &mut Components, name: &str, description: &str) {
    let mut response = Response::new(description);
    let body = Content::new(Some(Ref::from_schema_name("ErrorBody")));
    response.content.insert("application/json".into(), body.into());
    response.headers.insert("X-Request-Id".into(), request_id().into());
    if name == "Unavailable" {
        let header = text_header("Seconds to wait", Type::Integer);
        response.headers.insert("Retry-After".into(), header.into());
    }
    components.responses.insert(name.into(), response.into());
}

fn complete(operation: &mut Operation, stores: bool) {
    let public = operation.security.is_some();
    let responses = &mut operation.responses.responses;
    let mut add = |(status, name, _): (&str, &str, &str)| {
        let reference = || RefOr::Ref(Ref::from_response_name(name));
        responses.entry(status.to_owned()).or_insert_with(reference);
    };
    if !public {
        ALWAYS.into_iter().for_each(&mut add);
    }
    if operation.request_body.is_some() {
        WITH_BODY.into_iter().for_each(&mut add);
    }
    if operation.parameters.iter().flatten().any(names_a_user) || operation.request_body.is_some() {
        add(REFUSED);
    }
    if stores {
        add(FULL);
    }
    for response in responses.values_mut() {
        if let RefOr::T(response) = response {
            response.headers.insert("X-Request-Id".into(), request_id().into());
        }
    }
}

fn names_a_user(parameter: &RefOr<utoipa::openapi::path::Parameter>) -> bool {
    let RefOr::T(parameter) = parameter else { return false };
    parameter.parameter_in == ParameterIn::Path && matches!(&*parameter.name, "user" | "other")
}

fn request_id() -> Header {
    text_header("Id of this request in the server's log", Type::String)
}

fn text_header(description: &str, kind: Type) -> Header {
    let schema = ObjectBuilder::new().schema_type(kind).build();
    HeaderBuilder::new().schema(Some(schema)).description(Some(description)).build()
}
