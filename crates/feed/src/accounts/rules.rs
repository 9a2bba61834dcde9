//! Accounts: sign-up, passwords, roles and states; and invites.

use rows::Stamp;

use crate::accounts::{
    Account, AccountCommand, AccountDone, AccountState, Email, GrantId, Invite, SecretHash,
};
use crate::done::{Done, Outcome};
use crate::effect::{Act, Effect, UserChange};
use crate::facts::Txn;
use crate::handle::Handle;
use crate::ids::{UserId, UserRef};
use crate::limits;
use crate::refusal::Refusal;
use crate::text::{Bio, Name};
use crate::users;
use crate::users::rules::resolve;

pub(crate) fn apply(
    txn: &mut Txn<'_>,
    stamp: Stamp,
    command: &AccountCommand,
    effects: &mut Vec<Effect>,
) -> Outcome {
    let done = match command {
        AccountCommand::SignUp { handle, email, password, role, state, invite } => {
            let (email, created) = (email.clone(), stamp);
            let (password, role, state) = (password.clone(), *role, *state);
            let account = Account { email, password, role, state, created };
            sign_up(txn, handle, &account, (invite.as_ref(), effects))
        }
        AccountCommand::Open { user, email, password, role } => {
            let (email, created, state) = (email.clone(), stamp, AccountState::Active);
            let (password, role) = (password.clone(), *role);
            let account = Account { email, password, role, state, created };
            open(txn, user, &account, effects)
        }
        AccountCommand::SetPassword { user, password, keep } => {
            let (user, account) = account_of(txn, user)?;
            // If the session of the request has ended, the password was changed meanwhile. That newer password must not
            // be replaced.
            let is_of_user =
                |grant| txn.facts().grant(grant).is_some_and(|grant| grant.user == Some(user));
            if !keep.is_none_or(is_of_user) {
                return Err(Refusal::PasswordChanged);
            }
            end_grants(txn, user, *keep);
            txn.put_account(user, &Account { password: password.clone(), ..account });
            effects.push(Effect::Act { user, act: Act::AccountChanged });
            Ok(AccountDone::Changed)
        }
        AccountCommand::SetRole { user, role } => {
            let (user, account) = account_of(txn, user)?;
            txn.put_account(user, &Account { role: *role, ..account });
            effects.push(Effect::Act { user, act: Act::AccountChanged });
            Ok(AccountDone::Changed)
        }
        AccountCommand::SetState { user, state } => set_state(txn, user, *state, effects),
        AccountCommand::CreateInvite { code, uses, life_secs } => {
            create_invite(txn, stamp, code, *uses, *life_secs)
        }
        AccountCommand::RegisterApp(app) => super::grants::register_app(txn, stamp, app),
        AccountCommand::LogIn { user, password, session } => {
            super::grants::log_in(txn, stamp, (*user, password), *session)
        }
        AccountCommand::Authorize { user, app, scopes, code, redirect, challenge } => {
            let code = (*code, *redirect, *challenge);
            super::grants::authorize(txn, stamp, (*app, *user), *scopes, code)
        }
        AccountCommand::Exchange { app, code, redirect, challenge, token } => {
            let shown =
                super::grants::Shown { app: *app, redirect: *redirect, challenge: *challenge };
            super::grants::exchange(txn, stamp, code, &shown, *token)
        }
        AccountCommand::GrantApp { app, scopes, token } => {
            super::grants::grant_app(txn, stamp, *app, *scopes, *token)
        }
        AccountCommand::GrantUser { app, user, password, scopes, token } => {
            super::grants::grant_user(txn, stamp, *app, (*user, password), (*scopes, *token))
        }
        AccountCommand::Revoke { grant } => {
            txn.remove_grant(*grant);
            Ok(AccountDone::Revoked)
        }
        AccountCommand::Mint { user, scopes, life_secs, token, key } => {
            let user = resolve(txn, user)?;
            super::grants::mint(txn, stamp, user, (*scopes, *life_secs), (*token, key.as_ref()))
        }
    };
    done.map(Done::Account)
}

/// Result of a command about accounts, or the refusal.
pub(crate) type Accounted = Result<AccountDone, Refusal>;

fn sign_up(
    txn: &mut Txn<'_>,
    handle: &Handle,
    account: &Account,
    (code, effects): (Option<&SecretHash>, &mut Vec<Effect>),
) -> Accounted {
    // Checked first, so that a caller without an invite does not learn which addresses have accounts.
    let invite = match code {
        Some(code) => {
            let invite = txn.facts().invite(code, account.created.unix_ms());
            Some((code, invite.ok_or(Refusal::BadInvite)?))
        }
        None => None,
    };
    check_email(txn, account.email.as_ref())?;
    let (name, bio) = (Name::default(), Bio::default());
    let profile = (&name, &bio);
    let user = match users::rules::register(txn, account.created, handle, profile, effects)? {
        Done::Registered(user) => user,
        other => unreachable!("{other:?} is not a registration"),
    };
    if let Some((code, invite)) = invite {
        let left = Invite { uses: invite.uses - 1, ..invite };
        txn.put_invite(code, Some(left).filter(|left| left.uses > 0));
    }
    txn.add_account(user, account);
    effects.push(Effect::Act { user, act: Act::AccountOpened });
    Ok(AccountDone::SignedUp(user))
}

fn open(
    txn: &mut Txn<'_>,
    user: &UserRef,
    account: &Account,
    effects: &mut Vec<Effect>,
) -> Accounted {
    let user = resolve(txn, user)?;
    if txn.facts().account(user).is_some() {
        return Err(Refusal::HasAccount);
    }
    check_email(txn, account.email.as_ref())?;
    txn.add_account(user, account);
    effects.push(Effect::Act { user, act: Act::AccountOpened });
    Ok(AccountDone::Opened(user))
}

fn check_email(txn: &Txn<'_>, email: Option<&Email>) -> Result<(), Refusal> {
    match email {
        Some(email) if txn.facts().by_email(email).is_some() => Err(Refusal::EmailTaken),
        _ => Ok(()),
    }
}

fn account_of(txn: &Txn<'_>, user: &UserRef) -> Result<(UserId, Account), Refusal> {
    let user = resolve(txn, user)?;
    let account = txn.facts().account(user).ok_or(Refusal::NoAccount)?;
    Ok((user, account))
}

fn set_state(
    txn: &mut Txn<'_>,
    user: &UserRef,
    state: AccountState,
    effects: &mut Vec<Effect>,
) -> Accounted {
    let (user, account) = account_of(txn, user)?;
    if state != AccountState::Active {
        end_grants(txn, user, None);
    }
    let was_hidden = txn.facts().is_disabled(user);
    txn.put_account(user, &Account { state, ..account });
    effects.push(Effect::Act { user, act: Act::AccountChanged });
    let hidden = txn.facts().is_disabled(user);
    if hidden != was_hidden {
        let change = if hidden { UserChange::Hidden } else { UserChange::Shown };
        effects.push(Effect::User { user, change });
    }
    Ok(AccountDone::Changed)
}

/// Ends all grants of a user except `keep`.
fn end_grants(txn: &mut Txn<'_>, user: UserId, keep: Option<GrantId>) {
    for grant in txn.facts().grants_from(user, 0, usize::MAX) {
        if Some(GrantId(grant)) != keep {
            txn.remove_grant(GrantId(grant));
        }
    }
    // Caches of grants become invalid, because they also contain which accounts are active.
    txn.total(|totals| totals.revocations += 1);
}

fn create_invite(
    txn: &mut Txn<'_>,
    stamp: Stamp,
    code: &SecretHash,
    uses: u32,
    life_secs: u32,
) -> Accounted {
    let now_ms = stamp.unix_ms();
    let (live, expired): (Vec<_>, Vec<_>) = txn
        .facts()
        .stored_invites(limits::INVITES_MAX)
        .into_iter()
        .partition(|(_, invite)| now_ms < invite.expires_ms);
    if live.iter().any(|(known, _)| known == code) {
        return Err(Refusal::SecretUsed);
    }
    if live.len() >= limits::INVITES_MAX {
        return Err(Refusal::TooManyInvites);
    }
    for (code, _) in expired {
        txn.put_invite(&code, None);
    }
    let uses = uses.clamp(1, limits::INVITE_USES_MAX);
    let expires_ms = now_ms + u64::from(life_secs) * 1_000;
    txn.put_invite(code, Some(Invite { uses, expires_ms }));
    Ok(AccountDone::Invited)
}
