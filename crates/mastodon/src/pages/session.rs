//! Browser of a request: its session, and the token that its forms must contain.
//!
//! A browser without a session gets a cookie for its forms. A log-in always starts a new session, regardless of earlier
//! cookies.

use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::header::{COOKIE, SET_COOKIE};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::Response;
use edge::SESSION_HEADER;
use feed::UserId;
use feed::accounts::GrantId;
use feed::limits::SESSION_SECS;
use maud::{Markup, html};
use subtle::ConstantTimeEq as _;

use super::page::Failed;
use node::Secret;

use crate::error::ApiError;
use crate::fields::Fields;
use crate::secret::form_token;
use crate::state::{Server, Shared};
use crate::tokens::Access;

/// Name of the form field with the token.
const TOKEN: &str = "form_token";

/// Browser of a request.
pub(crate) struct Browser {
    /// Session and its user.
    pub(crate) session: Option<(GrantId, UserId)>,
    /// Secret from which the token of forms is derived: that of the session, or a cookie for forms.
    secret: String,
    /// Whether the cookie for forms must be set.
    is_new: bool,
    secure: bool,
}

impl Browser {
    /// Id of the session.
    pub(crate) fn grant(&self) -> Option<GrantId> {
        self.session.map(|(grant, _)| grant)
    }

    /// Whether the session is still valid.
    pub(crate) async fn is_valid(&self, state: &Server) -> Result<bool, ApiError> {
        Ok(self.session.is_some() && state.session(&self.secret).await? == self.session)
    }

    /// Token of the browser's forms.
    pub(crate) fn form_token(&self) -> String {
        form_token(&self.secret)
    }

    /// Hidden field that every form contains.
    pub(crate) fn field(&self) -> Markup {
        html! { input type="hidden" name=(TOKEN) value=(self.form_token()); }
    }

    /// Refuses a form that was sent by a page of another site.
    fn check(&self, fields: &Fields) -> Result<(), ApiError> {
        let given = fields.one(TOKEN)?.unwrap_or_default();
        let is_right: bool = given.as_bytes().ct_eq(self.form_token().as_bytes()).into();
        let why = "The form is too old, or it comes from another site; go back, reload the page and try again";
        match is_right && !self.is_new {
            true => Ok(()),
            false => Err(ApiError::new(StatusCode::FORBIDDEN, why)),
        }
    }

    /// Adds the cookie for forms to a response, if the browser needs it.
    pub(crate) fn with_cookie(&self, mut response: Response) -> Response {
        if self.is_new {
            set_cookie(&mut response, self.secure, FORM, &self.secret, None);
        }
        response
    }

    /// Adds the cookie of a new session.
    pub(crate) fn begin(&self, mut response: Response, session: &Secret) -> Response {
        let age = Some(SESSION_SECS);
        set_cookie(&mut response, self.secure, SESSION, session.as_str(), age);
        response
    }

    /// Removes the cookie of the session.
    pub(crate) fn end(&self, mut response: Response) -> Response {
        set_cookie(&mut response, self.secure, SESSION, "", Some(0));
        response
    }
}

const SESSION: &str = "roost_session";
const FORM: &str = "roost_form";

/// Name of a cookie. With https, it has a prefix that browsers accept only from this host, so that no other site can
/// set it.
fn cookie_name(secure: bool, name: &str) -> String {
    if secure { format!("__Host-{name}") } else { name.to_owned() }
}

fn set_cookie(response: &mut Response, secure: bool, name: &str, value: &str, age: Option<u64>) {
    let name = cookie_name(secure, name);
    let age = age.map(|age| format!("; Max-Age={age}")).unwrap_or_default();
    let secure = if secure { "; Secure" } else { "" };
    let cookie = format!("{name}={value}; Path=/; HttpOnly; SameSite=Lax{age}{secure}");
    if let Ok(cookie) = HeaderValue::try_from(cookie) {
        response.headers_mut().append(SET_COOKIE, cookie);
    }
}

/// Value of a cookie.
fn cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let lists = headers.get_all(COOKIE).iter().filter_map(|list| list.to_str().ok());
    let mut cookies = lists.flat_map(|list| list.split(';'));
    cookies.find_map(|cookie| cookie.trim().strip_prefix(name)?.strip_prefix('='))
}

impl FromRequestParts<Shared> for Browser {
    type Rejection = Failed;

    async fn from_request_parts(parts: &mut Parts, state: &Shared) -> Result<Self, Failed> {
        Ok(browser(state, &parts.headers).await?)
    }
}

/// Form sent by a browser. The session is looked up after the whole form has arrived, so a session that ended meanwhile
/// permits nothing.
pub(crate) struct Form(pub(crate) Browser, pub(crate) Fields);

impl FromRequest<Shared> for Form {
    type Rejection = Failed;

    async fn from_request(request: Request, state: &Shared) -> Result<Self, Failed> {
        let headers = request.headers().clone();
        let fields = Fields::from_request(request, state).await?;
        let browser = browser(state, &headers).await?;
        browser.check(&fields)?;
        Ok(Self(browser, fields))
    }
}

/// Access by the session cookie of a page's request, if a header has the token of the browser's forms.
///
/// # Errors
/// 503 if the server is busy.
pub(crate) async fn of_page(
    state: &Server,
    headers: &HeaderMap,
) -> Result<Option<Access>, ApiError> {
    let secret = cookie(headers, &cookie_name(state.is_secure(), SESSION));
    let mut given = headers.get_all(SESSION_HEADER).iter();
    let (Some(secret), Some(token), None) = (secret, given.next(), given.next()) else {
        return Ok(None);
    };
    let is_right: bool = token.as_bytes().ct_eq(form_token(secret).as_bytes()).into();
    if is_right { state.access_of_session(secret).await } else { Ok(None) }
}

async fn browser(state: &Server, headers: &HeaderMap) -> Result<Browser, ApiError> {
    let secure = state.is_secure();
    let of_session = cookie(headers, &cookie_name(secure, SESSION));
    if let Some(secret) = of_session.filter(|secret| !secret.is_empty())
        && let Some(session) = state.session(secret).await?
    {
        let (session, secret) = (Some(session), secret.to_owned());
        return Ok(Browser { session, secret, is_new: false, secure });
    }
    let of_form = cookie(headers, &cookie_name(secure, FORM));
    let (secret, is_new) = match of_form.filter(|secret| !secret.is_empty()) {
        Some(secret) => (secret.to_owned(), false),
        None => (Secret::random()?.as_str().to_owned(), true),
    };
    Ok(Browser { session: None, secret, is_new, secure })
}
