//! Users of `/v1`: identified by a token or a browser session, with their limits.
//!
//! **Invariant:** requests to both APIs, with a token or a session, count towards the same limits of rates, bodies,
//! streams and bytes.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use axum::body::Body;
use axum::http::header::{AUTHORIZATION, HOST, ORIGIN};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use edge::{
    BodyError, ClientAddress, Held, HeldBody, Pending, Permission, Scope, Session, SessionError,
    SessionUse, Sessions, bearer,
};
use feed::UserId;

use crate::answers::Client;
use crate::bodies::ReadBody;
use crate::error::ApiError;
use crate::limiter::What;
use crate::pages::of_page;
use crate::state::{Server, Shared, address_of};
use crate::tokens::Access;

/// Sessions of a server's users.
pub(crate) struct UserSessions(pub(crate) Shared);

impl fmt::Debug for UserSessions {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("UserSessions")
    }
}

struct UserSession {
    state: Shared,
    user: UserId,
    access: Access,
}

impl Sessions for UserSessions {
    fn find<'a>(
        &'a self,
        headers: &'a HeaderMap,
    ) -> Pending<'a, Result<Arc<dyn Session>, SessionError>> {
        Box::pin(async move {
            let session = find(&self.0, headers).await?;
            Ok(Arc::new(session) as Arc<dyn Session>)
        })
    }
}

/// Session of a page of this server.
pub(crate) async fn access(state: &Server, headers: &HeaderMap) -> Result<Access, SessionError> {
    if !is_own_page(headers, &state.options.base) {
        return Err(SessionError::OtherSite);
    }
    of_page(state, headers).await.map_err(|error| why(&error))?.ok_or(SessionError::Ended)
}

/// Access by the token of a request.
async fn of_token(state: &Server, headers: &HeaderMap) -> Result<Access, SessionError> {
    let token = bearer(headers).and_then(|token| std::str::from_utf8(token).ok());
    let token = token.ok_or(SessionError::Ended)?;
    state.token_in_v1(token).await.map_err(|error| why(&error))?.ok_or(SessionError::Ended)
}

async fn find(state: &Shared, headers: &HeaderMap) -> Result<UserSession, SessionError> {
    let access = match headers.contains_key(AUTHORIZATION) {
        true => of_token(state, headers).await?,
        false => access(state, headers).await?,
    };
    let user = access.user.ok_or(SessionError::Ended)?;
    let session = UserSession { state: Arc::clone(state), user, access };
    session.take(What::Requests)?;
    Ok(session)
}

impl UserSession {
    fn take(&self, what: What) -> Result<(), SessionError> {
        let taken = self.state.limiter.take(what, u64::from(self.user.0), Instant::now());
        taken.map_err(SessionError::TooMany)
    }
}

/// Converts an error into the reason why a session was not found or has ended.
fn why(error: &ApiError) -> SessionError {
    match error.status() {
        StatusCode::UNAUTHORIZED => SessionError::Ended,
        _ => SessionError::Overloaded,
    }
}

/// Whether the browser marks the request as sent by a page of this server. Browsers send `Sec-Fetch-Site` only over
/// https and to the loopback, and `Origin` only with some requests. In any case, pages of other sites lack the token.
pub(crate) fn is_own_page(headers: &HeaderMap, base: &str) -> bool {
    let mut sites = headers.get_all("sec-fetch-site").iter().peekable();
    if sites.peek().is_some() {
        return sites.all(|site| site == "same-origin");
    }
    let host = headers.get(HOST).map(HeaderValue::as_bytes);
    headers.get_all(ORIGIN).iter().map(HeaderValue::as_bytes).all(|origin| {
        let scheme = origin.strip_prefix(b"https://").or_else(|| origin.strip_prefix(b"http://"));
        origin == base.as_bytes() || (scheme.is_some() && scheme == host)
    })
}

impl Session for UserSession {
    fn allows(&self, scope: Scope) -> bool {
        self.access.allows_in_v1(scope)
    }

    fn user(&self) -> u32 {
        self.user.0
    }

    fn begin(&self, usage: SessionUse) -> Result<(), SessionError> {
        if usage == SessionUse::Read {
            return Ok(());
        }
        if usage == SessionUse::Post {
            self.take(What::Posts)?;
        }
        self.state.answers.check(Client::User(self.user)).map_err(|error| why(&error))
    }

    fn read_body(
        &self,
        client: Option<ClientAddress>,
        body: Body,
    ) -> Pending<'_, Result<(HeldBody, Held), BodyError>> {
        let address = self.state.limiter.address(address_of(client));
        Box::pin(async move {
            let read = self.state.bodies.read(address, Some(self.user), body).await?;
            let ReadBody { body, counted } = read;
            Ok((body, Box::new(counted) as Held))
        })
    }

    fn confirm(&self) -> Pending<'_, Result<(), SessionError>> {
        Box::pin(async { self.state.confirm(&self.access).await.map_err(|error| why(&error)) })
    }

    fn permission(&self) -> Box<dyn Permission> {
        self.access.permission(&self.state)
    }

    fn begin_stream(&self) -> Option<Held> {
        self.state.streams.begin(self.user).ok().map(|open| Box::new(open) as Held)
    }

    fn hold(&self, bytes: usize, usage: SessionUse) -> Option<Held> {
        self.state.answers.count(Client::User(self.user), usage != SessionUse::Read, bytes)
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderName;

    use super::*;

    #[test]
    fn a_browser_says_whose_page_has_sent_a_request() {
        for (headers, expect) in [
            (&[][..], true),
            (&[("sec-fetch-site", "same-origin")], true),
            (&[("sec-fetch-site", "same-site")], false),
            (&[("sec-fetch-site", "cross-site")], false),
            (&[("sec-fetch-site", "none")], false),
            (&[("sec-fetch-site", "same-origin"), ("sec-fetch-site", "cross-site")], false),
            (&[("origin", "https://social.example")], true),
            (&[("origin", "http://127.0.0.1:8998")], true),
            (&[("origin", "https://127.0.0.1:8998")], true),
            (&[("origin", "https://127.0.0.1:8999")], false),
            (&[("origin", "https://evil.example")], false),
            (&[("origin", "https://social.example.evil.example")], false),
            (&[("origin", "null")], false),
            (&[("origin", "127.0.0.1:8998")], false),
        ] {
            let mut map = HeaderMap::new();
            map.insert(HOST, HeaderValue::from_static("127.0.0.1:8998"));
            for (name, value) in headers {
                map.append(HeaderName::from_static(name), HeaderValue::from_static(value));
            }
            assert_eq!(is_own_page(&map, "https://social.example"), expect, "{headers:?}");
        }
    }
}
