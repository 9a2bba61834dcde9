//! Settings of an account: apps and browsers with access, and the password.

use axum::extract::State;
use axum::http::{Extensions, StatusCode};
use axum::response::IntoResponse as _;
use feed::accounts::{AccountCommand, Grant, GrantId, Stage};
use feed::{UserId, UserRef};
use maud::{Markup, html};
use node::Node;

use super::log_in;
use super::page::{Answer, Page, see_other};
use super::session::{Browser, Form};
use crate::entities::time::day;
use crate::error::ApiError;
use crate::password::{BYTES_MAX, CHARS_MIN};
use crate::state::{Server, Shared, client_address};

/// Grant, as shown on the page.
struct Shown {
    id: GrantId,
    /// Name of the app; `None` for a browser.
    app: Option<String>,
    scopes: String,
}

/// `GET /settings`
pub(crate) async fn show(State(state): State<Shared>, browser: Browser) -> Answer {
    let Some((_, user)) = browser.session else { return Ok(log_in::first(&browser)) };
    Ok(page(&state, &browser, user, None).await?.into_response())
}

/// `POST /settings/revoke`
pub(crate) async fn revoke(State(state): State<Shared>, Form(browser, fields): Form) -> Answer {
    let Some((_, user)) = browser.session else { return Ok(log_in::first(&browser)) };
    let grant = fields.need("grant")?.parse().map(GrantId);
    let grant = grant.map_err(|_| ApiError::invalid_request("there is no such grant"))?;
    let found = state.read(move |node| node.facts().grant(grant)).await?;
    // Users can end only their own grants; those of other users count as missing.
    if found.is_some_and(|found| found.user == Some(user)) {
        state.submit(AccountCommand::Revoke { grant }).await?;
    }
    Ok(see_other("/settings"))
}

/// `POST /settings/password`
pub(crate) async fn change_password(
    State(state): State<Shared>,
    extensions: Extensions,
    Form(browser, fields): Form,
) -> Answer {
    let Some((session, user)) = browser.session else { return Ok(log_in::first(&browser)) };
    let profile = state.read(move |node| node.facts().user(user)).await?;
    let handle = profile.map(|user| user.handle.as_str().to_owned()).unwrap_or_default();
    let current = fields.one("current_password")?.unwrap_or_default();
    let new = fields.one("new_password")?.unwrap_or_default();
    let address = client_address(&extensions);
    let waiter = state.limiter.address(address).whole();
    let changed = async {
        crate::password::check(new)?;
        state.compare(&handle, current, address).await?;
        let password = state.passwords.hash(new.to_owned(), waiter).await?;
        let (user, keep) = (UserRef::Id(user), Some(session));
        state.submit(AccountCommand::SetPassword { user, password, keep }).await
    };
    let note = match changed.await {
        Ok(_) => {
            (StatusCode::OK, "The password is changed; all apps and other browsers are logged out.")
        }
        Err(error) if error.status() == StatusCode::BAD_REQUEST => {
            (StatusCode::BAD_REQUEST, "The current password is wrong.")
        }
        Err(error) if error.status() == StatusCode::UNPROCESSABLE_ENTITY => {
            (error.status(), "The new password is too short or too long.")
        }
        Err(error) => return Err(error.into()),
    };
    Ok(page(&state, &browser, user, Some(note)).await?.into_response())
}

/// Active grants of a user. May block.
fn grants(node: &Node, user: UserId) -> Vec<Shown> {
    let (facts, now_ms) = (node.facts(), node.now_ms());
    let shown = |(id, grant): (GrantId, Grant)| {
        let app = match grant.app {
            Some(app) => Some(facts.app(app)?.name.as_str().to_owned()),
            None => grant.is_minted().then(|| "An application of this server".to_owned()),
        };
        let is_token = matches!(grant.stage, Stage::Token { .. });
        let in_use = is_token && grant.token_expires_ms().is_none_or(|at| now_ms < at);
        in_use.then(|| Shown { id, app, scopes: grant.scopes.to_string() })
    };
    facts.grants_of_user(user).into_iter().rev().filter_map(shown).collect()
}

async fn page(
    state: &Server,
    browser: &Browser,
    user: UserId,
    note: Option<(StatusCode, &'static str)>,
) -> Result<Page, ApiError> {
    let read = move |node: &Node| (node.facts().user(user), grants(node, user));
    let (profile, grants) = state.read(read).await?;
    let handle = profile.map(|user| user.handle.as_str().to_owned()).unwrap_or_default();
    let own = browser.grant();
    let main = html! {
        @if let Some((status, note)) = note {
            p.wrong[!status.is_success()] role="alert" { (note) }
        }
        p { "You are logged in as " strong { "@" (handle) } "." }
        form method="post" action="/auth/log-out" {
            (browser.field())
            button.plain type="submit" { "Log out" }
        }
        h2 { "Apps and browsers" }
        p.help { "Each of these can act for you until you revoke it." }
        ul.grants { @for grant in &grants { (row(browser, grant, own)) } }
        h2 { "Password" }
        (password_form(browser, &handle))
    };
    let status = note.map_or(StatusCode::OK, |(status, _)| status);
    Ok(Page { status, ..Page::new("Account settings", main) })
}

fn row(browser: &Browser, grant: &Shown, own: Option<GrantId>) -> Markup {
    let name = grant.app.as_deref().unwrap_or("A browser");
    html! {
        li {
            div {
                strong { (name) }
                p.help {
                    "Since " (day(grant.id.unix_ms()))
                    @if grant.app.is_some() { ": " (grant.scopes) }
                }
            }
            @if own == Some(grant.id) {
                span.help { "This browser" }
            } @else {
                form method="post" action="/settings/revoke" {
                    (browser.field())
                    input type="hidden" name="grant" value=(grant.id.0);
                    button.plain type="submit" aria-label={ "Revoke " (name) } { "Revoke" }
                }
            }
        }
    }
}

fn password_form(browser: &Browser, handle: &str) -> Markup {
    html! {
        form method="post" action="/settings/password" {
            (browser.field())
            input type="text" name="username" value=(handle) autocomplete="username" hidden;
            label for="current" { "Current password" }
            input #current name="current_password" type="password" autocomplete="current-password" required;
            label for="new" { "New password" }
            input #new name="new_password" type="password" autocomplete="new-password"
                minlength=(CHARS_MIN) maxlength=(BYTES_MAX) required;
            button.primary type="submit" { "Change the password" }
        }
    }
}
