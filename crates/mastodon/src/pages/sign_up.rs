//! The sign-up page.

use axum::extract::{RawQuery, State};
use axum::http::{Extensions, StatusCode};
use axum::response::IntoResponse as _;
use feed::limits::HANDLE_CHARS_MAX;
use maud::{Markup, html};

use super::log_in;
use super::next::Next;
use super::page::{Answer, Page, see_other};
use super::session::{Browser, Form};
use crate::error::ApiError;
use crate::fields::Fields;
use crate::password::{BYTES_MAX, CHARS_MIN};
use crate::state::{Server, Shared, client_address};
use crate::{MastodonOptions, Registrations, accounts};

pub(crate) const PATH: &str = "/auth/sign-up";

/// `GET /auth/sign-up`
pub(crate) async fn show(
    State(state): State<Shared>,
    browser: Browser,
    RawQuery(query): RawQuery,
) -> Answer {
    let fields = Fields::of_query(&query.unwrap_or_default())?;
    let page = page(&state, &browser, &fields, None)?;
    Ok(browser.with_cookie(page.into_response()))
}

/// `POST /auth/sign-up`
pub(crate) async fn sign_up(
    State(state): State<Shared>,
    extensions: Extensions,
    Form(browser, fields): Form,
) -> Answer {
    let address = client_address(&extensions);
    match state.sign_up(&fields, address).await {
        Ok(accounts::SignedUp { is_active: false, .. }) => {
            let main = html! {
                p { "Your account was created. You can log in after an operator of this server has approved it." }
            };
            Ok(Page::new("Almost there", main).into_response())
        }
        Ok(accounts::SignedUp { user, password, .. }) => {
            let session = state.begin_session(user, password, browser.grant()).await?;
            Ok(browser.begin(see_other(&Next::of(&fields)?.destination()), &session))
        }
        Err(error) => Ok(page(&state, &browser, &fields, Some(&error))?.into_response()),
    }
}

fn page(
    state: &Server,
    browser: &Browser,
    fields: &Fields,
    error: Option<&ApiError>,
) -> Result<Page, ApiError> {
    let registrations = state.options.registrations;
    if registrations == Registrations::Closed {
        let main =
            html! { p { "Sign-up is closed. The operators of this server create accounts." } };
        return Ok(Page { status: StatusCode::FORBIDDEN, ..Page::new("Sign up", main) });
    }
    let main = form(&state.options, browser, fields, error)?;
    Ok(Page::new("Sign up", main).with_status_of(error))
}

fn form(
    MastodonOptions { registrations, about, .. }: &MastodonOptions,
    browser: &Browser,
    fields: &Fields,
    error: Option<&ApiError>,
) -> Result<Markup, ApiError> {
    let (name, email) = (fields.one("username")?, fields.one("email")?);
    let (invite, next) = (fields.one("invite_code")?, Next::of(fields)?);
    Ok(html! {
        @if let Some(error) = error { p.wrong role="alert" { (error.message()) } }
        form method="post" action="/auth/sign-up" {
            (browser.field())
            (next.hidden())
            label for="username" { "Handle" }
            input #username name="username" value=[name] autocomplete="username"
                autocapitalize="none" spellcheck="false" maxlength=(HANDLE_CHARS_MAX)
                pattern="[A-Za-z0-9_]+" aria-describedby="handle-help" required;
            p.help #handle-help { "Letters, digits and _; it cannot be changed later." }
            label for="email" { "E-mail address" }
            input #email name="email" type="email" value=[email] autocomplete="email" required;
            label for="password" { "Password" }
            input #password name="password" type="password" autocomplete="new-password"
                minlength=(CHARS_MIN) maxlength=(BYTES_MAX) aria-describedby="password-help" required;
            p.help #password-help { "At least " (CHARS_MIN) " characters." }
            @if *registrations != Registrations::Open || invite.is_some() {
                label for="invite" {
                    "Invite" @if *registrations == Registrations::Approval { " (if you have one)" }
                }
                input #invite name="invite_code" value=[invite] autocomplete="off"
                    required[*registrations == Registrations::Invite];
            }
            @if !about.rules.is_empty() {
                h2 { "Rules" }
                ol { @for rule in &about.rules { li { (rule) } } }
            }
            label.check {
                input type="checkbox" name="agreement" value="true" required;
                span { "I follow the rules of this server" }
            }
            button.primary type="submit" { "Sign up" }
        }
        p { "You have an account? " a href=(next.after(log_in::PATH)) { "Log in" } }
    })
}
