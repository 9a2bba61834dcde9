//! Sign-up and log-in, for the API and the pages; and the account of a token.

use std::net::IpAddr;
use std::time::Instant;

use axum::extract::State;
use axum::http::{Extensions, StatusCode};
use axum::response::Response;
use axum::{Extension, Json};
use edge::LineGate;
use feed::accounts::AccessScope as S;
use feed::accounts::{
    AccountCommand, AccountDone, AccountState, Email, GrantId, PasswordHash, Role,
};
use feed::{Command, Done, Handle, Refusal, RefusalClass, Reply, UserId};
use node::{Request, Secret};
use serde_json::Value;

use crate::access::Needs;
use crate::answers;
use crate::endpoints::Endpoints;
use crate::entities::Entities;
use crate::error::ApiError;
use crate::fields::Fields;
use crate::input::Me;
use crate::limiter::{Subject, What};
use crate::oauth::token;
use crate::state::{Server, Shared, client_address};
use crate::tokens::Access;
use crate::{Registrations, password};

/// Adds the routes of accounts.
pub(crate) fn routes(table: &mut Endpoints) {
    table.post("/api/v1/accounts", Needs::App(S::WriteAccounts), sign_up);
    table.get(
        "/api/v1/accounts/verify_credentials",
        Needs::User(&[S::ReadAccounts, S::Profile]),
        verify,
    );
}

/// Handles that look like those of the operator. Only operators can create accounts with such handles.
const RESERVED: [&str; 14] = [
    "abuse",
    "admin",
    "administrator",
    "help",
    "mod",
    "moderator",
    "official",
    "postmaster",
    "roost",
    "root",
    "security",
    "staff",
    "support",
    "webmaster",
];

/// Newly created account.
pub(crate) struct SignedUp {
    pub(crate) user: UserId,
    pub(crate) password: PasswordHash,
    /// Whether the account is usable without approval.
    pub(crate) is_active: bool,
}

impl Server {
    /// Creates an account, if sign-up is open to these parameters.
    pub(crate) async fn sign_up(
        &self,
        fields: &Fields,
        address: IpAddr,
    ) -> Result<SignedUp, ApiError> {
        let invite = fields.one("invite_code")?.map(Secret::hash_of);
        let state = match (self.options.registrations, invite) {
            (Registrations::Open, _) => AccountState::Active,
            (Registrations::Approval, None) => AccountState::Pending,
            (Registrations::Approval | Registrations::Invite, Some(_)) => AccountState::Active,
            (Registrations::Invite, None) => {
                return Err(ApiError::new(StatusCode::FORBIDDEN, "An invite is needed to sign up"));
            }
            (Registrations::Closed, _) => {
                return Err(ApiError::new(StatusCode::FORBIDDEN, "Sign-up is closed"));
            }
        };
        let (handle, email, password) = checked(fields)?;
        let name = handle.clone();
        self.limit_address(What::SignUps, address)?;
        if let Some(code) = invite {
            // The invite is checked before the password is hashed, because hashing costs more. The command checks
            // whether the invite is still unused.
            let now_ms = self.node.now_ms();
            let found = self.read(move |node| node.facts().invite(&code, now_ms)).await?;
            found.ok_or_else(|| of_field(Refusal::BadInvite))?;
        }
        let waiter = self.limiter.address(address).whole();
        let password = self.passwords.hash(password, waiter).await?;
        let (role, stored) = (Role::User, password.clone());
        let email = Some(email);
        let command =
            AccountCommand::SignUp { handle, email, password: stored, role, state, invite };
        let request = Request::from(Command::Account(command));
        let Reply { outcome, .. } = self.node.submit(request).await?;
        match outcome {
            Ok(Done::Account(AccountDone::SignedUp(user))) => {
                let is_active = state == AccountState::Active;
                static LINES: LineGate = LineGate::new();
                if let Some(lines) = (!is_active).then(|| LINES.due()).flatten() {
                    let handle = name.as_str();
                    tracing::info!(
                        handle,
                        lines,
                        "an account waits for approval: roost account approve"
                    );
                }
                Ok(SignedUp { user, password, is_active })
            }
            Ok(_) => Err(ApiError::internal()),
            Err(refusal) => Err(of_field(refusal)),
        }
    }

    /// Compares a password with that of the account with this handle or e-mail address. Takes the same work if there is
    /// no such account.
    pub(crate) async fn compare(
        &self,
        name: &str,
        password: &str,
        address: IpAddr,
    ) -> Result<(UserId, PasswordHash), ApiError> {
        let now = Instant::now();
        let (client, address) = (address, self.limiter.address(address));
        let account = self.limiter.name(&name.trim().to_lowercase());
        let is_allowed = self.limiter.check(What::AddressFailures, address, now);
        let is_allowed = is_allowed.and_then(|()| self.limiter.check_guess(account, address, now));
        let is_allowed = is_allowed.and_then(|()| self.limiter.take(What::LogIns, address, now));
        let above_rate = |rest| {
            self.options.metrics.refused();
            ApiError::above_rate(rest)
        };
        is_allowed.map_err(above_rate)?;
        let email = Email::parse(name).ok();
        let handle = Handle::parse(name.trim()).ok();
        let found = self
            .read(move |node| {
                let facts = node.facts();
                let by_email = || email.and_then(|email| facts.by_email(&email));
                let user = handle.and_then(|handle| facts.by_handle(&handle)).or_else(by_email)?;
                Some((user, facts.account(user)?))
            })
            .await?;
        let of_known = found.as_ref().map(|(user, _)| *user);
        // Only clients that know the password can use up these limits.
        let of_user = found.as_ref().map(|(user, _)| self.limiter.name(&user.0.to_string()));
        if let Some(user) = of_user {
            self.limiter.check(What::LogIns, user, now).map_err(above_rate)?;
        }
        let stored = found.as_ref().map(|(_, account)| account.password.clone());
        let is_right = self.passwords.verify(password.to_owned(), stored, address.whole()).await?;
        let right = found.filter(|_| is_right);
        if let (true, Some(user)) = (is_right, of_user) {
            self.limiter.count(What::LogIns, user, now);
            self.limiter.remember(account, address, now);
        }
        // Only clients that know the password learn the state of the account.
        match right {
            Some((user, account)) if account.state == AccountState::Active => {
                Ok((user, account.password))
            }
            Some((_, account)) if account.state == AccountState::Pending => {
                Err(ApiError::new(StatusCode::FORBIDDEN, "Your account waits for approval"))
            }
            Some(_) => Err(ApiError::new(StatusCode::FORBIDDEN, "Your account is disabled")),
            None => {
                self.failed((client, address), (of_known, account), now);
                Err(ApiError::invalid_grant())
            }
        }
    }

    /// Counts and logs a log-in with a wrong name or password. Reaching a limit is logged once.
    fn failed(
        &self,
        (client, address): (IpAddr, Subject),
        (user, account): (Option<UserId>, u64),
        now: Instant,
    ) {
        let reached = || {
            let is_reached = |what, subject| self.limiter.check(what, subject, now).is_err();
            let of_account = is_reached(What::AccountFailures, Subject::from(account));
            (is_reached(What::AddressFailures, address), of_account)
        };
        let before = reached();
        self.limiter.count(What::AddressFailures, address, now);
        self.limiter.count(What::AccountFailures, account, now);
        self.options.metrics.failed(client);
        let after = reached();
        if after.0 && !before.0 {
            tracing::warn!(address = %client, "too many log-ins failed from an address: further ones are refused for some minutes");
        }
        if after.1 && !before.1 {
            let user = user.map(|user| user.0);
            tracing::warn!(
                user,
                "too many log-ins failed with a name: further ones are refused to most addresses for some minutes"
            );
        }
    }

    /// Starts a browser session and ends the `former` one. Returns the new secret.
    pub(crate) async fn begin_session(
        &self,
        user: UserId,
        password: PasswordHash,
        former: Option<GrantId>,
    ) -> Result<Secret, ApiError> {
        let session = Secret::random()?;
        let command = AccountCommand::LogIn { user, password, session: session.hash() };
        token::granted(self.submit(command).await?)?;
        if let Some(grant) = former {
            self.submit(AccountCommand::Revoke { grant }).await?;
        }
        Ok(session)
    }
}

/// Parses handle, address and password of a sign-up. The error names all wrong fields.
fn checked(fields: &Fields) -> Result<(Handle, Email, String), ApiError> {
    let mut wrong = Vec::new();
    let name = fields.one("username")?.unwrap_or_default();
    let handle = Handle::parse(name);
    if RESERVED.contains(&name.to_ascii_lowercase().as_str()) {
        wrong.push(("username", "ERR_RESERVED", "is reserved".to_owned()));
    }
    let email = Email::parse(fields.one("email")?.unwrap_or_default());
    let given = fields.one("password")?.unwrap_or_default();
    let mut miss = |field, why: &dyn std::fmt::Display| {
        wrong.push((field, "ERR_INVALID", why.to_string()));
    };
    handle.as_ref().inspect_err(|why| miss("username", why)).ok();
    email.as_ref().inspect_err(|why| miss("email", why)).ok();
    password::check(given).inspect_err(|why| miss("password", why)).ok();
    if !fields.is_true("agreement")? {
        wrong.push(("agreement", "ERR_ACCEPTED", "must be accepted".to_owned()));
    }
    match (handle, email) {
        (Ok(handle), Ok(email)) if wrong.is_empty() => Ok((handle, email, given.to_owned())),
        _ => Err(ApiError::of_fields(&wrong)),
    }
}

/// Turns a refused sign-up into an error of a field.
fn of_field(refusal: Refusal) -> ApiError {
    let code = match refusal.class() {
        RefusalClass::Conflict => "ERR_TAKEN",
        RefusalClass::Invalid => "ERR_INVALID",
        _ => return refusal.into(),
    };
    let Some(field) = refusal.field() else { return refusal.into() };
    let field = if field == "handle" { "username" } else { field };
    ApiError::of_fields(&[(field, code, refusal.to_string())])
}

pub(crate) async fn sign_up(
    State(state): State<Shared>,
    Extension(access): Extension<Access>,
    extensions: Extensions,
    fields: Fields,
) -> Result<Json<Value>, ApiError> {
    let id = access.app.ok_or_else(ApiError::bad_token)?;
    let address = client_address(&extensions);
    let SignedUp { user, password, is_active } = state.sign_up(&fields, address).await?;
    if !is_active {
        let why = "The account was created and waits for approval";
        return Err(ApiError::new(StatusCode::FORBIDDEN, why));
    }
    // The token gets the scopes of the app, as in Mastodon: by signing up, the user grants the app all its scopes.
    let app = state.read(move |node| node.facts().app(id)).await?;
    let scopes = app.ok_or_else(ApiError::bad_token)?.scopes;
    let token = Secret::random()?;
    let hash = token.hash();
    let command = AccountCommand::GrantUser { app: id, user, password, scopes, token: hash };
    let grant = token::granted(state.submit(command).await?)?;
    Ok(Json(token::entity(&token, scopes, grant)))
}

pub(crate) async fn verify(State(state): State<Shared>, Me(me): Me) -> Result<Response, ApiError> {
    let read = move |_: &_, entities: &mut Entities<'_>| entities.own_account(me);
    let account = state.entities(Some(me), read).await?.ok_or_else(ApiError::bad_token)?;
    answers::entity(Some(account))
}
