//! Authentication of apps by id and secret.

use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use feed::accounts::{App, AppId};
use node::Secret;

use crate::error::ApiError;
use crate::fields::Fields;
use crate::secret;
use crate::state::Server;

impl Server {
    /// App with the id that a client presents.
    pub(crate) async fn app(&self, client_id: &str) -> Result<Option<(AppId, App)>, ApiError> {
        let digits = client_id.bytes().all(|byte| byte.is_ascii_digit());
        let Some(id) = digits.then(|| client_id.parse().ok()).flatten().map(AppId) else {
            return Ok(None);
        };
        Ok(self.read(move |node| node.facts().app(id)).await?.map(|app| (id, app)))
    }

    /// App whose secret a request presents, in the body or as `Basic`.
    pub(crate) async fn client(
        &self,
        fields: &Fields,
        headers: &HeaderMap,
    ) -> Result<(AppId, App), ApiError> {
        let (id, presented) = match basic(headers)? {
            Some(client) => client,
            None => {
                let missing = |_| ApiError::invalid_client();
                let id = fields.need("client_id").map_err(missing)?;
                (id.to_owned(), fields.need("client_secret").map_err(missing)?.to_owned())
            }
        };
        let (id, app) = self.app(&id).await?.ok_or_else(ApiError::invalid_client)?;
        let is_right = secret::same(Secret::hash_of(&presented), app.secret);
        if is_right { Ok((id, app)) } else { Err(ApiError::invalid_client()) }
    }
}

/// Id and secret of `Basic`, if the request has this header. Ignores other schemes, because some clients send their
/// token with every request.
fn basic(headers: &HeaderMap) -> Result<Option<(String, String)>, ApiError> {
    let value = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    let of_scheme = value.and_then(|value| value.split_at_checked(6));
    let Some((_, encoded)) = of_scheme.filter(|(name, _)| name.eq_ignore_ascii_case("basic "))
    else {
        return Ok(None);
    };
    let decoded = || {
        let text = String::from_utf8(STANDARD.decode(encoded.trim()).ok()?).ok()?;
        // Both should be decoded as form parameters, but contain no character that decoding would change.
        text.split_once(':').map(|(id, secret)| (id.to_owned(), secret.to_owned()))
    };
    decoded().map(Some).ok_or_else(ApiError::invalid_client)
}
