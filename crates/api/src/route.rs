//! Routes: each declares its method and path, its handler, its access rules and its description. The router, the rules
//! of the guard and the OpenAPI document are derived from the table of all routes ([`crate::routes::table`]).
//!
//! The argument types of a handler ([`Reads`]) describe what it reads: parameters, bodies, and the resulting errors.

use std::ops::RangeInclusive;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::handler::Handler;
use axum::http::HeaderMap;
use axum::response::Response;
use edge::{ErasedHandler, Scope, SessionUse};
use futures_util::future::BoxFuture;
use serde_json::json;
use utoipa::ToSchema;
use utoipa::openapi::path::{Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::schema::{ArrayBuilder, Object, ObjectBuilder, Schema, SchemaType, Type};
use utoipa::openapi::{Ref, RefOr, Required};

use crate::auth::Needs;
use crate::error::{ApiError, ErrorKind};
use crate::rule::{May, Rule};
use crate::state::AppState;

/// Schemas by their names.
pub(crate) type Schemas = Vec<(String, RefOr<Schema>)>;

/// Function that adds a schema and returns a reference to it.
pub(crate) type SchemaOf = fn(&mut Schemas) -> RefOr<Schema>;

/// A route.
pub(crate) struct Route {
    pub(crate) method: &'static str,
    pub(crate) path: &'static str,
    pub(crate) handler: ErasedHandler<Arc<AppState>>,
    pub(crate) rule: Rule,
    /// Description; `None` if the OpenAPI document omits the route.
    pub(crate) about: Option<About>,
}

/// Routes about one subject, for the OpenAPI document.
pub(crate) struct Group {
    pub(crate) tag: &'static str,
    pub(crate) text: &'static str,
    pub(crate) routes: &'static [fn() -> Vec<Route>],
}

/// The description of a route.
#[derive(Default)]
pub(crate) struct About {
    pub(crate) id: &'static str,
    pub(crate) summary: &'static str,
    pub(crate) text: &'static str,
    pub(crate) inputs: Inputs,
    pub(crate) answers: Vec<Answer>,
    /// Error codes of the lines of a response.
    pub(crate) errors_of_lines: Vec<&'static str>,
}

/// Successful response of a route.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) text: &'static str,
    /// Media type and schema of the body.
    pub(crate) body: Option<(&'static str, SchemaOf)>,
    /// Names and descriptions of headers.
    pub(crate) headers: Vec<(&'static str, &'static str)>,
}

/// The parts of a request that a handler reads.
#[derive(Default)]
pub(crate) struct Inputs {
    pub(crate) parameters: Vec<Parameter>,
    pub(crate) body: Option<BodyRead>,
    /// Codes of errors that reading the request may cause, in addition to those of every route.
    pub(crate) errors: Vec<&'static str>,
    /// Errors that their code does not identify, because several errors share it, or because the message has values of
    /// this route.
    pub(crate) exact_errors: Vec<ErrorKind>,
    reads_query: bool,
}

/// Body that a route reads.
#[derive(Clone)]
pub(crate) struct BodyRead {
    /// Maximum size; `None` for a stream of any length.
    pub(crate) bytes_max: Option<usize>,
    pub(crate) is_optional: bool,
    /// Media types and their schemas.
    pub(crate) contents: Vec<(&'static str, SchemaOf)>,
}

/// Argument of a handler that describes what it reads of a request.
pub(crate) trait Reads {
    /// Adds the inputs that the argument reads.
    fn describe(inputs: &mut Inputs);
}

impl Reads for State<Arc<AppState>> {
    fn describe(_: &mut Inputs) {}
}

impl Reads for HeaderMap {
    fn describe(_: &mut Inputs) {}
}

impl Reads for Request {
    fn describe(_: &mut Inputs) {}
}

impl Reads for ((),) {
    fn describe(_: &mut Inputs) {}
}

/// Implements [`Reads`] for the arguments of a handler. `M` is the type by which axum distinguishes handlers.
macro_rules! arguments {
    ($($argument:ident),*) => {
        impl<M, $($argument: Reads),*> Reads for (M, $($argument,)*) {
            fn describe(inputs: &mut Inputs) {
                $($argument::describe(inputs);)*
            }
        }
    };
}

arguments!(A);
arguments!(A, B);
arguments!(A, B, C);
arguments!(A, B, C, D);
arguments!(A, B, C, D, E);

impl Inputs {
    fn add(
        &mut self,
        place: ParameterIn,
        (name, text): (&str, &str),
        schema: Object,
        example: Option<&str>,
    ) {
        self.reads_query |= place == ParameterIn::Query;
        // Only required parameters have an example.
        let required = if example.is_some() { Required::True } else { Required::False };
        let parameter = ParameterBuilder::new()
            .name(name)
            .parameter_in(place)
            .required(required)
            .description(Some(text))
            .schema(Some(schema))
            .example(example.map(|example| json!(example)));
        self.parameters.push(parameter.build());
    }

    /// Adds a parameter of the path; `example` exists in `roost demo`.
    pub(crate) fn path(&mut self, name: &str, text: &str, example: &str) {
        self.add(ParameterIn::Path, (name, text), Object::with_type(Type::String), Some(example));
    }

    /// Adds an optional parameter of the query.
    pub(crate) fn query(&mut self, name: &str, text: &str) {
        self.add(ParameterIn::Query, (name, text), Object::with_type(Type::String), None);
    }

    /// Adds a required parameter of the query.
    pub(crate) fn required(&mut self, name: &str, text: &str, example: &str) {
        self.add(ParameterIn::Query, (name, text), Object::with_type(Type::String), Some(example));
    }

    /// Adds an optional number in the query.
    pub(crate) fn number(&mut self, name: &str, text: &str, range: RangeInclusive<u64>) {
        self.number_or(name, text, range, None);
    }

    /// Adds an optional number in the query with a default. A range that ends at `u64::MAX` has no maximum.
    pub(crate) fn number_or(
        &mut self,
        name: &str,
        text: &str,
        range: RangeInclusive<u64>,
        default: Option<u64>,
    ) {
        let schema = ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(*range.start()));
        let schema = schema.maximum(Some(*range.end()).filter(|end| *end < u64::MAX));
        let schema = schema.default(default.map(|number| json!(number)));
        self.add(ParameterIn::Query, (name, text), schema.build(), None);
    }

    /// Adds an optional Boolean in the query.
    pub(crate) fn boolean(&mut self, name: &str, text: &str) {
        self.add(ParameterIn::Query, (name, text), Object::with_type(Type::Boolean), None);
    }

    /// Adds an optional header.
    pub(crate) fn header(&mut self, name: &str, text: &str) {
        self.add(ParameterIn::Header, (name, text), Object::with_type(Type::String), None);
    }

    /// Adds error codes.
    pub(crate) fn errors(&mut self, codes: &[&'static str]) {
        self.errors.extend_from_slice(codes);
    }

    /// Adds an error that its code does not identify, because several errors share it, or because the message has
    /// values.
    pub(crate) fn error(&mut self, error: impl Into<ApiError>) {
        self.exact_errors.push(error.into().into());
    }

    /// Sets the body to JSON of a type.
    pub(crate) fn json<T: ToSchema>(&mut self, bytes_max: usize) {
        let contents = vec![("application/json", reference::<T> as SchemaOf)];
        self.body = Some(BodyRead { bytes_max: Some(bytes_max), is_optional: false, contents });
    }
}

/// Adds the schema of a type and of the types it uses, and returns a reference to it.
pub(crate) fn reference<T: ToSchema>(schemas: &mut Schemas) -> RefOr<Schema> {
    schemas.push((T::name().into_owned(), T::schema()));
    T::schemas(schemas);
    Ref::from_schema_name(T::name()).into()
}

/// Adds the schema of a page of such items and returns a reference to it.
fn page_of<T: ToSchema>(schemas: &mut Schemas) -> RefOr<Schema> {
    let items = ArrayBuilder::new().items(reference::<T>(schemas));
    let cursor = |text| {
        let types = SchemaType::from_iter([Type::String, Type::Null]);
        ObjectBuilder::new().schema_type(types).description(Some(text))
    };
    let page = ObjectBuilder::new()
        .property("items", items)
        .property("next", cursor("The cursor of the next page; null if there is none."))
        .property("prev", cursor("The cursor of the page before this one; null if there is none."))
        .required("items")
        .required("next")
        .required("prev");
    let name = format!("PageOf{}", T::name());
    let named = Ref::from_schema_name(&name);
    schemas.push((name, page.into()));
    named.into()
}

/// Schema of a type without a name.
pub(crate) fn inline<T: ToSchema>(_: &mut Schemas) -> RefOr<Schema> {
    T::schema()
}

/// Makes the constructors of routes, one per method.
macro_rules! methods {
    ($($name:ident = $method:literal;)*) => {$(
        #[doc = concat!("A route with the method `", $method, "`.")]
        pub(crate) fn $name<H, T>(path: &'static str, handler: H) -> Self
        where
            H: Handler<T, Arc<AppState>, Future = BoxFuture<'static, Response>>,
            T: Reads + 'static,
        {
            let mut inputs = Inputs::default();
            T::describe(&mut inputs);
            let route = Self::undescribed($method, path, handler);
            let rule = Rule { reads_query: inputs.reads_query, ..route.rule };
            Self { rule, about: Some(About { inputs, ..About::default() }), ..route }
        }
    )*};
}

/// Description of the `ETag` in the response to an edit.
pub(crate) const EDITED_TAG: &str = "Absent if the response repeats that of an earlier request";

impl Route {
    methods! {
        get = "GET";
        post = "POST";
        put = "PUT";
        patch = "PATCH";
        delete = "DELETE";
    }

    /// Makes a `GET` route without a key, which returns no data of the feed.
    pub(crate) fn public<H, T>(path: &'static str, handler: H) -> Self
    where
        H: Handler<T, Arc<AppState>, Future = BoxFuture<'static, Response>>,
        T: Reads + 'static,
    {
        Self { rule: Rule::PUBLIC, ..Self::get(path, handler) }
    }

    /// Makes a `GET` route of a file, which the OpenAPI document omits.
    pub(crate) fn file<H, T>(path: &'static str, handler: H) -> Self
    where
        H: Handler<T, Arc<AppState>, Future = BoxFuture<'static, Response>>,
        T: 'static,
    {
        Self { rule: Rule::PUBLIC, ..Self::undescribed("GET", path, handler) }
    }

    /// Makes a route that the OpenAPI document omits.
    pub(crate) fn undescribed<H, T>(method: &'static str, path: &'static str, handler: H) -> Self
    where
        H: Handler<T, Arc<AppState>, Future = BoxFuture<'static, Response>>,
        T: 'static,
    {
        let (scope, usage) = match method {
            "GET" => (Scope::Read, SessionUse::Read),
            _ => (Scope::Write, SessionUse::Change),
        };
        let rule = Rule { needs: Needs::Scope(scope), may: None, usage, reads_query: false };
        let handler = ErasedHandler::new(handler);
        Self { method, path, handler, rule, about: None }
    }

    /// Sets the scope. The default is to read for `GET` and to write for other methods.
    pub(crate) fn scope(mut self, scope: Scope) -> Self {
        self.rule.needs = Needs::Scope(scope);
        self
    }

    /// Allows users to use the route.
    pub(crate) fn users(mut self, may: May) -> Self {
        self.rule.may = Some(may);
        self.errors(&["not_own", "too_many_requests"])
    }

    /// Makes a user's request count towards the limit of posts.
    pub(crate) fn posting(mut self) -> Self {
        self.rule.usage = SessionUse::Post;
        self
    }

    fn describe(mut self, describe: impl FnOnce(&mut About)) -> Self {
        self.about.as_mut().map(describe);
        self
    }

    /// Sets the name of the operation and its summary, in the imperative.
    pub(crate) fn named(self, id: &'static str, summary: &'static str) -> Self {
        self.describe(|about| (about.id, about.summary) = (id, summary))
    }

    /// Sets the description.
    pub(crate) fn text(self, text: &'static str) -> Self {
        self.describe(|about| about.text = text)
    }

    /// Adds error codes beyond those of every route and of the inputs.
    pub(crate) fn errors(self, codes: &[&'static str]) -> Self {
        self.describe(|about| about.inputs.errors(codes))
    }

    /// Adds an error that its code does not identify, because several errors share it, or because the message has
    /// values.
    pub(crate) fn error(self, error: impl Into<ApiError>) -> Self {
        self.describe(|about| about.inputs.error(error))
    }

    /// Adds error codes of the lines of the response.
    pub(crate) fn errors_of_lines(self, codes: &[&'static str]) -> Self {
        self.describe(|about| about.errors_of_lines.extend_from_slice(codes))
    }

    /// Adds a header that the handler reads itself.
    pub(crate) fn reads_header(self, name: &str, text: &str) -> Self {
        self.describe(|about| about.inputs.header(name, text))
    }

    /// Adds a body that the handler reads itself.
    pub(crate) fn body(
        self,
        bytes_max: Option<usize>,
        contents: Vec<(&'static str, SchemaOf)>,
    ) -> Self {
        self.describe(|about| {
            about.inputs.body = Some(BodyRead { bytes_max, is_optional: false, contents });
        })
    }

    /// Adds a response without a body.
    pub(crate) fn answers(self, status: u16, text: &'static str) -> Self {
        let answer = Answer { status, text, body: None, headers: Vec::new() };
        self.describe(|about| about.answers.push(answer))
    }

    /// Adds a response with a body.
    pub(crate) fn answers_with(
        self,
        text: &'static str,
        media_type: &'static str,
        schema: SchemaOf,
    ) -> Self {
        let answer =
            Answer { status: 200, text, body: Some((media_type, schema)), headers: Vec::new() };
        self.describe(|about| about.answers.push(answer))
    }

    /// Adds a response with JSON.
    pub(crate) fn shows<T: ToSchema>(self, text: &'static str) -> Self {
        self.answers_with(text, "application/json", reference::<T>)
    }

    /// Adds a response with a page of a list of such items.
    pub(crate) fn lists<T: ToSchema>(self, text: &'static str) -> Self {
        self.answers_with(text, "application/json", page_of::<T>)
    }

    /// Adds a response with the created item.
    pub(crate) fn creates<T: ToSchema>(self, text: &'static str, location: &'static str) -> Self {
        let route = self.shows::<T>(text).with_header("Location", location);
        route.describe(|about| {
            about.answers.iter_mut().for_each(|answer| answer.status = 201);
        })
    }

    /// Adds the header with the tag of the response, and the response 304 for a client that has it.
    pub(crate) fn tagged(self) -> Self {
        let text = "For `If-None-Match` of a read and `If-Match` of a change";
        self.with_header("ETag", text).answers(304, "Not modified").with_header("ETag", text)
    }

    /// Adds a header to the last response.
    pub(crate) fn with_header(self, name: &'static str, text: &'static str) -> Self {
        self.describe(|about| {
            about
                .answers
                .last_mut()
                .into_iter()
                .for_each(|answer| answer.headers.push((name, text)));
        })
    }
}
