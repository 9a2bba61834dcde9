//! Page on which a user grants or denies access to an app.

use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::response::IntoResponse as _;
use feed::accounts::{AccountCommand, RedirectUri, Website};
use maud::html;

use super::log_in;
use super::page::{Answer, Page, see_other};
use super::session::{Browser, Form};
use node::Secret;

use crate::error::ApiError;
use crate::fields::Fields;
use crate::oauth::authorization::{Authorization, PARAMETERS, Wrong};
use crate::oauth::token::granted;
use crate::state::Shared;

/// `GET /oauth/authorize`
pub(crate) async fn ask(
    State(state): State<Shared>,
    browser: Browser,
    RawQuery(query): RawQuery,
) -> Answer {
    let query = query.unwrap_or_default();
    let fields = Fields::of_query(&query)?;
    let asked = match state.authorization(&fields).await {
        Ok(asked) => asked,
        Err(Wrong::Stay(error)) => return Err(error.into()),
        // Anybody can register an app, so a link to this page must not lead to the app's site without another click.
        Err(Wrong::Back(url)) => return Ok(refused(&url).into_response()),
    };
    let again = fields.is_true("force_login")?;
    let session = browser.session.filter(|_| !again);
    let Some((_, user)) = session else {
        // The URL of the page after the log-in lacks `force_login`, so that the user logs in only once.
        return Ok(browser.with_cookie(see_other(&log_in::url(&repeated(&fields)?))));
    };
    let profile = state.read(move |node| node.facts().user(user)).await?;
    let handle = profile.map(|user| user.handle.as_str().to_owned()).unwrap_or_default();
    let page = page(&browser, &asked, &fields, &handle)?;
    Ok(page.into_response())
}

/// `POST /oauth/authorize`
pub(crate) async fn decide(State(state): State<Shared>, Form(browser, fields): Form) -> Answer {
    let Some((_, user)) = browser.session else { return Ok(log_in::first(&browser)) };
    let asked = match state.authorization(&fields).await {
        Ok(asked) => asked,
        Err(Wrong::Stay(error)) => return Err(error.into()),
        Err(Wrong::Back(url)) => return Ok(see_other(&url)),
    };
    let out_of_band = asked.redirect.is_out_of_band();
    if fields.one("decision")? != Some("allow") {
        if out_of_band {
            let main = html! { p { "The app gets no access. You can close this page." } };
            return Ok(Page::new("Denied", main).into_response());
        }
        let why = "the user denied access";
        let url = asked.back(&[("error", "access_denied"), ("error_description", why)]);
        return Ok(see_other(&url));
    }
    let code = Secret::random().map_err(ApiError::from)?;
    let command = AccountCommand::Authorize {
        user,
        app: asked.id,
        scopes: asked.scopes,
        code: code.hash(),
        redirect: asked.redirect_hash(),
        challenge: asked.challenge,
    };
    let grant = granted(state.submit(command).await?)?;
    // The session may have ended meanwhile, for example by a new password. Its end must also end this grant.
    if !browser.is_valid(&state).await? {
        state.submit(AccountCommand::Revoke { grant }).await?;
        return Ok(log_in::first(&browser));
    }
    if !out_of_band {
        return Ok(see_other(&asked.back(&[("code", code.as_str())])));
    }
    let main = html! {
        p { "Copy this code into the app:" }
        p { code.secret { (code.as_str()) } }
        p.help { "It is valid for ten minutes." }
    };
    Ok(Page::new("Authorization code", main).into_response())
}

/// Page for an invalid request of an app.
fn refused(url: &str) -> Page {
    let main = html! {
        p role="alert" { "The app asked for access in a way that is not possible." }
        p { a href=(url) { "Back to the app" } }
    };
    Page { status: StatusCode::BAD_REQUEST, ..Page::new("This did not work", main) }
}

/// Parameters of the app's request, as a query.
fn repeated(fields: &Fields) -> Result<String, ApiError> {
    let mut query = form_urlencoded::Serializer::new(String::new());
    for name in PARAMETERS {
        if let Some(value) = fields.one(name)? {
            query.append_pair(name, value);
        }
    }
    Ok(query.finish())
}

fn page(
    browser: &Browser,
    asked: &Authorization,
    fields: &Fields,
    handle: &str,
) -> Result<Page, ApiError> {
    let mut repeated = Vec::new();
    for name in PARAMETERS {
        repeated.extend(fields.one(name)?.map(|value| (name, value)));
    }
    let website = asked.app.website.as_ref().map(Website::as_str);
    let main = html! {
        p {
            strong { bdi { (asked.app.name.as_str()) } }
            @if let Some(website) = website { " (" bdi { (website) } ")" }
            " asks for access to your account " strong { "@" (handle) } "."
        }
        h2 { "It would be able to:" }
        ul.scopes { @for scope in asked.scopes.scopes() { li { (meaning(scope.name())) } } }
        // The page shows the redirect, since anybody can register an app with any name and website.
        p { (target(&asked.redirect)) }
        form method="post" action="/oauth/authorize" {
            (browser.field())
            @for (name, value) in &repeated { input type="hidden" name=(name) value=(value); }
            div.choice {
                button.primary type="submit" name="decision" value="allow" { "Allow" }
                button.plain type="submit" name="decision" value="deny" { "Deny" }
            }
        }
        form method="post" action="/auth/log-out" {
            (browser.field())
            p { "Not you? " button.link type="submit" { "Log out" } }
        }
    };
    Ok(Page { leads_anywhere: true, ..Page::new("Authorize an app", main) })
}

/// Description of a scope for users.
fn meaning(scope: &str) -> String {
    match scope {
        "profile" => "see who you are".to_owned(),
        "read" => "read everything of your account".to_owned(),
        "write" => "change everything in your account, and post for you".to_owned(),
        "follow" => "change whom you follow, mute and block".to_owned(),
        "push" => "send you notifications".to_owned(),
        part => match part.split_once(':') {
            Some(("read", what)) => format!("read your {what}"),
            Some((_, what)) => format!("change your {what}"),
            None => part.to_owned(),
        },
    }
}

/// Description of the redirect after the decision.
fn target(redirect: &RedirectUri) -> String {
    if redirect.is_out_of_band() {
        return "You then get a code to copy into the app.".to_owned();
    }
    let (scheme, rest) = redirect.as_str().split_once(':').unwrap_or_default();
    let host = rest.strip_prefix("//").and_then(|rest| rest.split(['/', '?']).next());
    match host.filter(|_| matches!(scheme, "http" | "https")) {
        Some(host) => format!("You are then sent to {host}."),
        None => format!("You are then sent to the app on this device that opens \"{scheme}:\"."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_says_where_the_code_goes() {
        for (redirect, expect) in [
            ("https://app.example:8443/back?x=1", "You are then sent to app.example:8443."),
            ("http://127.0.0.1:1234/", "You are then sent to 127.0.0.1:1234."),
            (
                "com.example.app:/oauth",
                "You are then sent to the app on this device that opens \"com.example.app:\".",
            ),
            (RedirectUri::OUT_OF_BAND, "You then get a code to copy into the app."),
        ] {
            assert_eq!(target(&RedirectUri::parse(redirect).unwrap()), expect, "{redirect}");
        }
    }
}
