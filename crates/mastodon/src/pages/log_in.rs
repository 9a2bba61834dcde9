//! The log-in page.

use axum::extract::{RawQuery, State};
use axum::http::Extensions;
use axum::response::{IntoResponse as _, Response};
use feed::accounts::AccountCommand;
use maud::html;

use super::next::Next;
use super::page::{Answer, Failed, Page, see_other};
use super::session::{Browser, Form};
use crate::Registrations;
use crate::error::ApiError;
use crate::fields::Fields;
use crate::state::{Server, Shared, client_address};

pub(crate) const PATH: &str = "/auth/log-in";

/// URL of the log-in page that continues with an app's request.
pub(crate) fn url(authorize_query: &str) -> String {
    Next::App(authorize_query).after(PATH)
}

/// `GET /auth/log-in`
pub(crate) async fn show(
    State(state): State<Shared>,
    browser: Browser,
    RawQuery(query): RawQuery,
) -> Answer {
    let fields = Fields::of_query(&query.unwrap_or_default())?;
    let page = page(&state, &browser, Next::of(&fields)?, None);
    Ok(browser.with_cookie(page.into_response()))
}

/// `POST /auth/log-in`
pub(crate) async fn log_in(
    State(state): State<Shared>,
    extensions: Extensions,
    Form(browser, fields): Form,
) -> Answer {
    let next = Next::of(&fields)?;
    let (name, password) = (fields.one("username")?, fields.one("password")?);
    let (name, password) = (name.unwrap_or_default(), password.unwrap_or_default());
    let address = client_address(&extensions);
    let begun = async {
        let (user, password) = state.compare(name, password, address).await?;
        // A session is refused if the password has changed since it was compared.
        state.begin_session(user, password, browser.grant()).await
    };
    match begun.await {
        Ok(session) => Ok(browser.begin(see_other(&next.destination()), &session)),
        Err(error) => Ok(page(&state, &browser, next, Some(&error)).into_response()),
    }
}

/// `POST /auth/log-out`
pub(crate) async fn log_out(State(state): State<Shared>, form: Result<Form, Failed>) -> Answer {
    let Form(browser, _) = match form {
        // Either the session has already ended, and with it the token of the form, or another site sent the form and
        // must not end the session.
        Err(failed) if failed.is_of_another_site() => return Ok(see_other(PATH)),
        form => form?,
    };
    if let Some(grant) = browser.grant() {
        state.submit(AccountCommand::Revoke { grant }).await?;
    }
    Ok(browser.end(see_other(PATH)))
}

fn page(state: &Server, browser: &Browser, next: Next<'_>, error: Option<&ApiError>) -> Page {
    let is_wrong = |error: &&ApiError| error.status() == axum::http::StatusCode::BAD_REQUEST;
    let why = error.map(|error| match Some(error).filter(is_wrong) {
        Some(_) => "The name or the password is wrong.",
        None => error.message(),
    });
    let main = html! {
        @if let Some(why) = why { p.wrong role="alert" { (why) } }
        form method="post" action="/auth/log-in" {
            (browser.field())
            (next.hidden())
            label for="username" { "Handle or e-mail address" }
            input #username name="username" autocomplete="username" autocapitalize="none"
                spellcheck="false" required;
            label for="password" { "Password" }
            input #password name="password" type="password" autocomplete="current-password" required;
            button.primary type="submit" { "Log in" }
        }
        @if state.options.registrations != Registrations::Closed {
            p { "No account yet? " a href=(next.after(super::sign_up::PATH)) { "Sign up" } }
        }
    };
    Page::new("Log in", main).with_status_of(error)
}

/// Redirects a browser without a session to the log-in page.
pub(crate) fn first(browser: &Browser) -> Response {
    browser.with_cookie(see_other(PATH))
}
