//! Wrapper of every handler that needs a key, inside [`crate::guard`]: a request with the header `Roost-After` waits
//! until the node has reached the position in the header. Requests without the header, and all requests outside of a
//! cluster, wait for nothing.

use std::sync::Arc;

use axum::extract::Request;
use axum::handler::Handler;
use axum::http::HeaderMap;
use axum::response::{IntoResponse as _, Response};
use edge::ErasedHandler;
use futures_util::future::{BoxFuture, FutureExt as _};

use crate::error::ApiError;
use crate::positions::{ROOST_AFTER, after};
use crate::state::AppState;

/// Handler that first waits until the node has reached the position that the request names.
#[derive(Clone)]
pub(crate) struct After(pub(crate) ErasedHandler<Arc<AppState>>);

impl Handler<(), Arc<AppState>> for After {
    type Future = BoxFuture<'static, Response>;

    fn call(self, request: Request, state: Arc<AppState>) -> Self::Future {
        let asks = state.positions.is_some() && request.headers().contains_key(ROOST_AFTER);
        if !asks {
            return self.0.call(request, state);
        }
        let waited = async move {
            match reached(&state, request.headers()).await {
                Ok(()) => self.0.call(request, state).await,
                Err(error) => error.into_response(),
            }
        };
        waited.boxed()
    }
}

async fn reached(state: &AppState, headers: &HeaderMap) -> Result<(), ApiError> {
    match (&state.positions, after(headers)?) {
        (Some(waiting), Some(after)) => waiting.wait(after, state.node.applied(after)).await,
        _ => Ok(()),
    }
}
