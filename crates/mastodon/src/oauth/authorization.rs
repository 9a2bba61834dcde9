//! Authorization request of an app: its checked parameters and the redirect.

use axum::http::StatusCode;
use feed::accounts::{AccessScopes, App, AppId, RedirectUri, SecretHash};

use super::apps::DEFAULT_SCOPES;
use node::Secret;

use crate::error::ApiError;
use crate::fields::Fields;
use crate::secret;
use crate::state::Server;

/// Maximum length of `state`, in bytes.
const STATE_BYTES_MAX: usize = 4_096;
/// Parameters of an app's request, which the form of the page repeats.
pub(crate) const PARAMETERS: [&str; 7] = [
    "response_type",
    "client_id",
    "redirect_uri",
    "scope",
    "state",
    "code_challenge",
    "code_challenge_method",
];

/// Authorization request.
#[derive(Debug)]
pub(crate) struct Authorization {
    pub(crate) id: AppId,
    pub(crate) app: App,
    /// Redirect URI that the app has registered.
    pub(crate) redirect: RedirectUri,
    pub(crate) scopes: AccessScopes,
    pub(crate) challenge: Option<SecretHash>,
    state: Option<String>,
}

/// Error of an authorization request.
#[derive(Debug)]
pub(crate) enum Wrong {
    /// The app or its redirect URI is unknown, so the user is not redirected.
    Stay(ApiError),
    /// The user is redirected to the app with the error.
    Back(String),
}

impl Server {
    /// Parses the parameters of an authorization request.
    pub(crate) async fn authorization(&self, fields: &Fields) -> Result<Authorization, Wrong> {
        let (id, app, redirect) = self.whence(fields).await.map_err(Wrong::Stay)?;
        let state = fields.one("state").ok().flatten().map(ToOwned::to_owned);
        let state = state.filter(|state| state.len() <= STATE_BYTES_MAX);
        let scopes = AccessScopes::default();
        let mut found = Authorization { id, app, redirect, scopes, challenge: None, state };
        match found.complete(fields) {
            Ok(()) => Ok(found),
            // An error of an out-of-band request is shown here, since there is no redirect.
            Err((_, error)) if found.redirect.is_out_of_band() => Err(Wrong::Stay(error)),
            Err((code, error)) => {
                let pairs = [("error", code), ("error_description", error.message())];
                Err(Wrong::Back(found.back(&pairs)))
            }
        }
    }

    /// The app of the request and its registered redirect URI.
    async fn whence(&self, fields: &Fields) -> Result<(AppId, App, RedirectUri), ApiError> {
        let app = self.app(fields.need("client_id")?).await?;
        let (id, app) = app.ok_or_else(|| ApiError::invalid_request("the app is unknown"))?;
        let redirect = match fields.one("redirect_uri")? {
            Some(given) => app.redirects.iter().find(|known| known.as_str() == given).cloned(),
            None => app.redirects.first().filter(|_| app.redirects.len() == 1).cloned(),
        };
        let why = "the app has not registered this redirect URI";
        Ok((id, app, redirect.ok_or_else(|| ApiError::invalid_request(why))?))
    }
}

impl Authorization {
    /// Parses the other parameters. An error has a code for the app.
    fn complete(&mut self, fields: &Fields) -> Result<(), (&'static str, ApiError)> {
        let invalid = |why: &str| ("invalid_request", ApiError::invalid_request(why));
        let one = |name| fields.one(name).map_err(|error| ("invalid_request", error));
        for name in PARAMETERS {
            one(name)?;
        }
        if one("state")?.is_some_and(|state| state.len() > STATE_BYTES_MAX) {
            return Err(invalid("the state is too long"));
        }
        if one("response_type")? != Some("code") {
            let why = "the response type must be code";
            let error = ApiError::oauth(StatusCode::BAD_REQUEST, "unsupported_response_type", why);
            return Err(("unsupported_response_type", error));
        }
        let scopes = AccessScopes::parse_for_grant(one("scope")?.unwrap_or(DEFAULT_SCOPES));
        let scopes = scopes.ok().filter(|scopes| self.app.scopes.includes(*scopes));
        self.scopes = scopes.ok_or_else(|| ("invalid_scope", ApiError::invalid_scope()))?;
        self.challenge = match (one("code_challenge")?, one("code_challenge_method")?) {
            (None, None) => None,
            (Some(challenge), Some("S256")) => match secret::challenge(challenge) {
                Some(challenge) => Some(challenge),
                None => return Err(invalid("the code challenge must be a SHA-256 in base64url")),
            },
            _ => return Err(invalid("the code challenge method must be S256")),
        };
        Ok(())
    }

    /// Hash of the redirect URI, which the app must present with the code.
    pub(crate) fn redirect_hash(&self) -> SecretHash {
        Secret::hash_of(self.redirect.as_str())
    }

    /// URL of the redirect, with these parameters and the app's `state`.
    pub(crate) fn back(&self, pairs: &[(&str, &str)]) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.extend_pairs(pairs);
        if let Some(state) = &self.state {
            query.append_pair("state", state);
        }
        let redirect = self.redirect.as_str();
        let joint = if redirect.contains('?') { '&' } else { '?' };
        format!("{redirect}{joint}{}", query.finish())
    }
}
