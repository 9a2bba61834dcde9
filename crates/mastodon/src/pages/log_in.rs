//! The log-in page.

use axum::extract::{RawQuery, State};
use axum::http::Extensions;
use axum::response::{IntoResponse as _, Response};
use feed::accounts::AccountCommand;
use maud::html;

use super::page::{Answer, Failed, Page, see_other};
use super::session::{Browser, Form};
use crate::Registrations;
use crate::error::ApiError;
use crate::fields::Fields;
use crate::state::{Server, Shared, client_address};

/// Longest query that a log-in leads back to, in bytes.
const NEXT_BYTES_MAX: usize = 8 << 10;

/// The URL of the log-in page, which leads to the page of an app's request afterwards.
pub(crate) fn url(authorize_query: &str) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.append_pair("next", authorize_query);
    format!("/auth/log-in?{}", query.finish())
}

/// Where a log-in leads to: the page of an app's request with this query, or the settings. Never to another site,
/// because the path is given here.
pub(crate) fn destination(next: Option<&str>) -> String {
    let is_query = |next: &&str| {
        next.len() <= NEXT_BYTES_MAX && next.bytes().all(|byte| byte.is_ascii_graphic())
    };
    match next.filter(is_query) {
        Some(next) => format!("/oauth/authorize?{next}"),
        None => "/settings".to_owned(),
    }
}

/// `GET /auth/log-in`
pub(crate) async fn show(
    State(state): State<Shared>,
    browser: Browser,
    RawQuery(query): RawQuery,
) -> Answer {
    let fields = Fields::of_query(&query.unwrap_or_default())?;
    let page = page(&state, &browser, fields.one("next")?, None);
    Ok(browser.with_cookie(page.into_response()))
}

/// `POST /auth/log-in`
pub(crate) async fn log_in(
    State(state): State<Shared>,
    extensions: Extensions,
    Form(browser, fields): Form,
) -> Answer {
    let next = fields.one("next")?;
    let (name, password) = (fields.one("username")?, fields.one("password")?);
    let (name, password) = (name.unwrap_or_default(), password.unwrap_or_default());
    let address = client_address(&extensions);
    let begun = async {
        let (user, password) = state.compare(name, password, address).await?;
        // The password may have changed meanwhile.
        state.begin_session(user, password, browser.grant()).await
    };
    match begun.await {
        Ok(session) => Ok(browser.begin(see_other(&destination(next)), &session)),
        Err(error) => Ok(page(&state, &browser, next, Some(&error)).into_response()),
    }
}

/// `POST /auth/log-out`
pub(crate) async fn log_out(State(state): State<Shared>, form: Result<Form, Failed>) -> Answer {
    let Form(browser, _) = match form {
        // The session has ended already, and with it the token of the form; or another site has sent it.
        Err(failed) if failed.is_of_another_site() => return Ok(see_other("/auth/log-in")),
        form => form?,
    };
    if let Some(grant) = browser.grant() {
        state.submit(AccountCommand::Revoke { grant }).await?;
    }
    Ok(browser.end(see_other("/auth/log-in")))
}

fn page(state: &Server, browser: &Browser, next: Option<&str>, error: Option<&ApiError>) -> Page {
    let is_wrong = |error: &&ApiError| error.status() == axum::http::StatusCode::BAD_REQUEST;
    let why = error.map(|error| match Some(error).filter(is_wrong) {
        Some(_) => "The name or the password is wrong.",
        None => error.message(),
    });
    let main = html! {
        @if let Some(why) = why { p.wrong role="alert" { (why) } }
        form method="post" action="/auth/log-in" {
            (browser.field())
            @if let Some(next) = next { input type="hidden" name="next" value=(next); }
            label for="username" { "Handle or e-mail address" }
            input #username name="username" autocomplete="username" autocapitalize="none"
                spellcheck="false" required;
            label for="password" { "Password" }
            input #password name="password" type="password" autocomplete="current-password" required;
            button.primary type="submit" { "Log in" }
        }
        @if state.options.registrations != Registrations::Closed {
            p { "No account yet? " a href=(super::sign_up::url(next)) { "Sign up" } }
        }
    };
    Page::new("Log in", main).with_status_of(error)
}

/// Sends a browser without a session to the log-in page.
pub(crate) fn first(browser: &Browser) -> Response {
    browser.with_cookie(see_other("/auth/log-in"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_in_leads_to_pages_of_this_server_alone() {
        for (next, expect) in [
            (None, "/settings"),
            (Some("client_id=1&state=x"), "/oauth/authorize?client_id=1&state=x"),
            (Some("https://evil.example/"), "/oauth/authorize?https://evil.example/"),
            (Some("//evil.example"), "/oauth/authorize?//evil.example"),
            (Some("a\r\nLocation: https://evil.example"), "/settings"),
            (Some("\u{e9}"), "/settings"),
        ] {
            assert_eq!(destination(next), expect, "{next:?}");
        }
        assert_eq!(destination(Some(&"x".repeat(NEXT_BYTES_MAX + 1))), "/settings");
    }
}
