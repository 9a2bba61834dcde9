//! Apps and grants: registration, login, authorization codes and tokens.

use rows::Stamp;

use crate::accounts::rules::Accounted;
use crate::accounts::{
    AccessScopes, AccountDone, App, AppId, AppName, AppRequest, Code, Grant, GrantId, PasswordHash,
    SecretHash, Stage,
};
use crate::facts::Txn;
use crate::ids::UserId;
use crate::limits;
use crate::refusal::Refusal;

pub(crate) fn register_app(txn: &mut Txn<'_>, stamp: Stamp, asked: &AppRequest) -> Accounted {
    if asked.redirects.is_empty() || asked.redirects.len() > limits::REDIRECT_URIS_MAX {
        return Err(Refusal::BadRedirectUri);
    }
    let AppRequest { name, website, redirects, scopes, secret } = asked.clone();
    for _ in 0..limits::UNUSED_APPS_REMOVED {
        if txn.facts().totals().apps_unused < limits::UNUSED_APPS_MAX {
            break;
        }
        let Some(oldest) = txn.facts().first_unused_app() else {
            unreachable!("unused apps have rows")
        };
        txn.remove_app(oldest);
    }
    let app = App { name, website, redirects, scopes, secret };
    txn.add_app(AppId(stamp.0), &app);
    Ok(AccountDone::AppRegistered(AppId(stamp.0)))
}

pub(crate) fn log_in(
    txn: &mut Txn<'_>,
    stamp: Stamp,
    (user, password): (UserId, &PasswordHash),
    session: SecretHash,
) -> Accounted {
    compared(txn, user, password)?;
    let expires_ms = Some(stamp.unix_ms() + limits::SESSION_SECS * 1_000);
    let stage = Stage::Token { token: session, code: None, expires_ms };
    let scopes = AccessScopes::default();
    add(txn, stamp, &Grant { app: None, user: Some(user), scopes, stage, key: None })
}

pub(crate) fn authorize(
    txn: &mut Txn<'_>,
    stamp: Stamp,
    (app, user): (AppId, UserId),
    scopes: AccessScopes,
    (hash, redirect, challenge): (SecretHash, SecretHash, Option<SecretHash>),
) -> Accounted {
    active(txn, user)?;
    registered(txn, app, scopes)?;
    let expires_ms = stamp.unix_ms() + limits::CODE_SECS * 1_000;
    let stage = Stage::Code(Code { hash, redirect, challenge, expires_ms });
    add(txn, stamp, &Grant { app: Some(app), user: Some(user), scopes, stage, key: None })
}

/// Data that an app presents to exchange a code.
pub(crate) struct Shown {
    pub(crate) app: AppId,
    pub(crate) redirect: SecretHash,
    pub(crate) challenge: Option<SecretHash>,
}

pub(crate) fn exchange(
    txn: &mut Txn<'_>,
    stamp: Stamp,
    code: &SecretHash,
    shown: &Shown,
    token: SecretHash,
) -> Accounted {
    let (id, grant) = txn.facts().grant_of(code).ok_or(Refusal::BadCode)?;
    let found = match &grant.stage {
        Stage::Code(found) => *found,
        // If a code is used twice, one of its two users has stolen it.
        Stage::Token { code: Some((used, _)), .. } if used == code => {
            if grant.app != Some(shown.app) {
                return Err(Refusal::BadCode);
            }
            txn.remove_grant(id);
            return Ok(AccountDone::CodeReused);
        }
        Stage::Token { .. } => return Err(Refusal::BadCode),
    };
    let fits = grant.app == Some(shown.app)
        && found.redirect == shown.redirect
        && found.challenge == shown.challenge
        && stamp.unix_ms() < found.expires_ms;
    if !fits {
        return Err(Refusal::BadCode);
    }
    grant.user.map_or(Ok(()), |user| active(txn, user))?;
    unused(txn, &token)?;
    let code = Some((found.hash, found.expires_ms));
    let stage = Stage::Token { token, code, expires_ms: None };
    txn.change_grant(id, &grant, &Grant { stage, ..grant.clone() });
    Ok(AccountDone::Granted(id))
}

pub(crate) fn grant_app(
    txn: &mut Txn<'_>,
    stamp: Stamp,
    app: AppId,
    scopes: AccessScopes,
    token: SecretHash,
) -> Accounted {
    registered(txn, app, scopes)?;
    let stage = Stage::Token { token, code: None, expires_ms: None };
    add(txn, stamp, &Grant { app: Some(app), user: None, scopes, stage, key: None })
}

pub(crate) fn grant_user(
    txn: &mut Txn<'_>,
    stamp: Stamp,
    app: AppId,
    (user, password): (UserId, &PasswordHash),
    (scopes, token): (AccessScopes, SecretHash),
) -> Accounted {
    compared(txn, user, password)?;
    registered(txn, app, scopes)?;
    let stage = Stage::Token { token, code: None, expires_ms: None };
    add(txn, stamp, &Grant { app: Some(app), user: Some(user), scopes, stage, key: None })
}

pub(crate) fn mint(
    txn: &mut Txn<'_>,
    stamp: Stamp,
    user: UserId,
    (scopes, life_secs): (AccessScopes, u32),
    (token, key): (SecretHash, Option<&AppName>),
) -> Accounted {
    let life_secs = u64::from(life_secs.clamp(1, limits::TOKEN_SECS_MAX));
    let expires_ms = Some(stamp.unix_ms() + life_secs * 1_000);
    let stage = Stage::Token { token, code: None, expires_ms };
    let grant = Grant { app: None, user: Some(user), scopes, stage, key: key.cloned() };
    if !grant.is_minted() {
        return Err(Refusal::BadScope);
    }
    if !txn.facts().acts(&grant) {
        return Err(Refusal::AccountNotActive);
    }
    unused(txn, &token)?;
    let minted = of_kind(txn, user, &grant);
    let is_live = |grant: &Grant| grant.token_expires_ms().is_none_or(|at| stamp.unix_ms() < at);
    if minted.iter().filter(|(_, grant)| is_live(grant)).count() >= limits::USER_TOKENS_MAX {
        return Err(Refusal::TooManyTokens);
    }
    for (id, expired) in minted.iter().filter(|(_, grant)| !is_live(grant)) {
        txn.remove_expired(*id, expired);
    }
    add(txn, stamp, &grant)
}

fn active(txn: &Txn<'_>, user: UserId) -> Result<(), Refusal> {
    txn.facts().active_account(user).map(drop).ok_or(Refusal::AccountNotActive)
}

fn compared(txn: &Txn<'_>, user: UserId, password: &PasswordHash) -> Result<(), Refusal> {
    let account = txn.facts().active_account(user).ok_or(Refusal::AccountNotActive)?;
    if account.password == *password { Ok(()) } else { Err(Refusal::PasswordChanged) }
}

fn registered(txn: &Txn<'_>, app: AppId, scopes: AccessScopes) -> Result<(), Refusal> {
    let app = txn.facts().app(app).ok_or(Refusal::AppNotFound)?;
    if app.scopes.includes(scopes) { Ok(()) } else { Err(Refusal::BadScope) }
}

fn unused(txn: &Txn<'_>, secret: &SecretHash) -> Result<(), Refusal> {
    match txn.facts().grant_of(secret) {
        Some(_) => Err(Refusal::SecretUsed),
        None => Ok(()),
    }
}

/// Grants of a user, oldest first: the minted ones if `grant` is minted, otherwise the others.
fn of_kind(txn: &Txn<'_>, user: UserId, grant: &Grant) -> Vec<(GrantId, Grant)> {
    let mut grants = txn.facts().grants_of_user(user);
    grants.retain(|(_, other)| other.is_minted() == grant.is_minted());
    grants
}

/// Adds a grant, and ends the oldest ones of the same kind and owner above the limit.
fn add(txn: &mut Txn<'_>, stamp: Stamp, grant: &Grant) -> Accounted {
    for secret in grant.secrets().into_iter().flatten() {
        unused(txn, &secret)?;
    }
    let (of_owner, most) = match (grant.user, grant.app) {
        (Some(user), _) => {
            let ids = of_kind(txn, user, grant).into_iter().map(|(id, _)| id.0);
            let minted = grant.is_minted();
            let most = if minted { limits::USER_TOKENS_MAX } else { limits::USER_GRANTS_MAX };
            (ids.collect(), most)
        }
        (None, Some(app)) => (txn.facts().own_grants_of(app), limits::APP_GRANTS_MAX),
        (None, None) => unreachable!("a grant is of a user or of an app"),
    };
    let ended = (of_owner.len() + 1).saturating_sub(most);
    for oldest in of_owner.into_iter().take(ended) {
        txn.remove_grant(GrantId(oldest));
    }
    txn.add_grant(GrantId(stamp.0), grant);
    Ok(AccountDone::Granted(GrantId(stamp.0)))
}

/// Removes a grant that expires at `expires_ms`, or only its code if the token is still valid.
pub(crate) fn expire(txn: &mut Txn<'_>, id: GrantId, expires_ms: u64) {
    let grant = txn.facts().grant(id).filter(|grant| grant.expires_ms() == Some(expires_ms));
    let Some(grant) = grant else { return };
    match &grant.stage {
        Stage::Token { token, code: Some(_), expires_ms } => {
            let stage = Stage::Token { token: *token, code: None, expires_ms: *expires_ms };
            txn.change_grant(id, &grant, &Grant { stage, ..grant.clone() });
        }
        Stage::Code(_) | Stage::Token { .. } => txn.remove_expired(id, &grant),
    }
}
