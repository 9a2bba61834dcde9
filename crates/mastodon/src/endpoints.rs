//! Table of routes: the token that each needs, and how completely it works.

use axum::handler::Handler;
use axum::response::Response;
use axum::routing::{MethodFilter, MethodRouter, on};
use edge::ErasedHandler;
use futures_util::future::BoxFuture;

use crate::access::Needs;
use crate::api::absent::Absent;
use crate::state::Shared;

/// Completeness of an endpoint of Mastodon's API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndpointState {
    /// Works as Mastodon documents it, as far as roost's data model allows.
    Works,
    /// Responds like a server without the feature: with nothing, or with a refusal that says so.
    WithoutFeature,
    /// Does not exist: 404.
    Missing,
}

/// Endpoint of the API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// HTTP method, in capitals.
    pub method: &'static str,
    /// Path, with parameters in braces.
    pub path: &'static str,
    /// Required token, in words.
    pub token: String,
    /// Completeness of the endpoint.
    pub state: EndpointState,
}

/// Endpoint with its handler.
pub(crate) struct Route {
    pub(crate) endpoint: Endpoint,
    pub(crate) needs: Needs,
    pub(crate) handler: MethodRouter<Shared>,
}

/// Table of routes under construction.
#[derive(Default)]
pub(crate) struct Endpoints(pub(crate) Vec<Route>);

/// Makes the functions that add a route, one per method.
macro_rules! methods {
    ($($name:ident = $filter:ident;)*) => {
        impl Endpoints {$(
            pub(crate) fn $name<H, T>(&mut self, path: &'static str, needs: Needs, handler: H)
            where
                H: Handler<T, Shared, Future = BoxFuture<'static, Response>>,
                T: 'static,
            {
                let handler = ErasedHandler::new(handler);
                self.add(stringify!($filter), path, needs, EndpointState::Works, handler);
            }
        )*}

        fn filter(method: &str) -> MethodFilter {
            $(if method == stringify!($filter) {
                return MethodFilter::$filter;
            })*
            unreachable!("{method} is a method of a route")
        }
    };
}

methods! {
    get = GET;
    post = POST;
    put = PUT;
    patch = PATCH;
    delete = DELETE;
}

impl Endpoints {
    fn add(
        &mut self,
        method: &'static str,
        path: &'static str,
        needs: Needs,
        state: EndpointState,
        handler: ErasedHandler<Shared>,
    ) {
        let handler = on(filter(method), handler);
        let token = needs.in_words();
        let endpoint = Endpoint { method, path, token, state };
        self.0.push(Route { endpoint, needs, handler });
    }

    /// Adds routes of a feature that the server lacks.
    pub(crate) fn absent(
        &mut self,
        method: &'static str,
        needs: Needs,
        answer: Absent,
        paths: &[&'static str],
    ) {
        for path in paths {
            let handler = ErasedHandler::new(move || async move { answer.answer() });
            self.add(method, path, needs, EndpointState::WithoutFeature, handler);
        }
    }

    /// Adds endpoints that do not exist.
    pub(crate) fn missing(&mut self, method: &'static str, paths: &[&'static str]) {
        for path in paths {
            let handler = ErasedHandler::new(|| async { Absent::Record.answer() });
            self.add(method, path, Needs::Nothing, EndpointState::Missing, handler);
        }
    }
}
