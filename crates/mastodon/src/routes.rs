//! Every route, with what it needs of its client.

use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::routing::{MethodRouter, get, options, post};
use feed::accounts::AccessScope;

use crate::access::{Needs, check, preflight};
use crate::state::Shared;
use crate::{accounts, oauth, pages};

pub(crate) fn routes(state: Shared) -> Router {
    let mut api = Api { router: Router::new(), state };
    let public = Needs::Nothing;
    api.add("/api/v1/apps", public, post(oauth::apps::register));
    api.add("/api/v1/apps/verify_credentials", Needs::Token, get(oauth::apps::verify));
    // The handler checks the client by its secret.
    api.add("/oauth/token", public, post(oauth::token::token));
    api.add("/oauth/revoke", public, post(oauth::token::revoke));
    let metadata = get(oauth::metadata::metadata);
    api.add("/.well-known/oauth-authorization-server", public, metadata);
    let sign_up = Needs::App(AccessScope::WriteAccounts);
    api.add("/api/v1/accounts", sign_up, post(accounts::sign_up));
    let me = Needs::User(&[AccessScope::ReadAccounts, AccessScope::Profile]);
    api.add("/api/v1/accounts/verify_credentials", me, get(accounts::verify));
    let Api { router, state } = api;
    router.merge(pages()).with_state(state)
}

/// Pages check the session of the browser, and the token of their form, themselves.
fn pages() -> Router<Shared> {
    Router::new()
        .route("/oauth/authorize", get(pages::consent::ask).post(pages::consent::decide))
        .route("/auth/log-in", get(pages::log_in::show).post(pages::log_in::log_in))
        .route("/auth/log-out", post(pages::log_in::log_out))
        .route("/auth/sign-up", get(pages::sign_up::show).post(pages::sign_up::sign_up))
        .route("/settings", get(pages::settings::show))
        .route("/settings/revoke", post(pages::settings::revoke))
        .route("/settings/password", post(pages::settings::change_password))
}

struct Api {
    router: Router<Shared>,
    state: Shared,
}

impl Api {
    fn add(&mut self, path: &str, needs: Needs, route: MethodRouter<Shared>) {
        let guard = from_fn_with_state((self.state.clone(), needs), check);
        let route = route.layer(guard).merge(options(preflight));
        self.router = std::mem::take(&mut self.router).route(path, route);
    }
}
