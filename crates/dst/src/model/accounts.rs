//! Expected accounts, apps and grants.

use std::collections::{BTreeMap, BTreeSet};

use feed::accounts::{
    AccessScopes, AccountCommand, AccountDone, AccountState, AppId, GrantId, Role, SecretHash,
};
use feed::limits::{
    APP_GRANTS_MAX, CODE_SECS, INVITES_MAX, SESSION_SECS, USER_GRANTS_MAX, USER_TOKENS_MAX,
};
use feed::{Bio, Command, Name, Outcome, Refusal, UserId};

use super::feed::Feed;
use super::ms_of;

/// Expected account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ModelAccount {
    pub(crate) email: Option<String>,
    pub(crate) password: String,
    pub(crate) role: Role,
    pub(crate) state: AccountState,
}

/// Expected grant.
#[derive(Clone, Debug)]
pub(crate) struct ModelGrant {
    pub(crate) app: Option<u64>,
    pub(crate) user: Option<u32>,
    pub(crate) scopes: AccessScopes,
    /// Hash of the code, redirect URI, challenge, and expiry of the code.
    code: Option<(SecretHash, SecretHash, Option<SecretHash>, u64)>,
    pub(crate) token: Option<SecretHash>,
    pub(crate) expires_ms: Option<u64>,
    /// Whether the grant is valid only for a user with an account.
    needs_account: bool,
}

impl ModelGrant {
    fn has(&self, secret: SecretHash) -> bool {
        self.token == Some(secret) || self.code.is_some_and(|code| code.0 == secret)
    }

    fn is_minted(&self) -> bool {
        self.app.is_none() && self.scopes.scopes().next().is_some()
    }

    fn due_ms(&self) -> Option<u64> {
        self.code.map(|code| code.3).or(self.expires_ms)
    }
}

/// Expected accounts, apps and grants.
#[derive(Clone, Default)]
pub(crate) struct Accounts {
    pub(crate) accounts: BTreeMap<u32, ModelAccount>,
    apps: BTreeMap<u64, AccessScopes>,
    pub(crate) grants: BTreeMap<u64, ModelGrant>,
    /// Users whose state was ever set, or who were disabled from the start. The node may still list their posts, or not
    /// list them yet.
    pub(super) relisted: BTreeSet<u32>,
    invites: BTreeMap<SecretHash, (u32, u64)>,
}

type Done = Result<AccountDone, Refusal>;

impl Accounts {
    /// Applies a command, except a sign-up. `user` is the user that the command names, if any.
    pub(super) fn apply(
        &mut self,
        stamp: u64,
        user: Result<u32, Refusal>,
        command: &AccountCommand,
    ) -> Done {
        let now_ms = ms_of(stamp);
        match command {
            AccountCommand::SignUp { .. } => unreachable!("the command registers a user"),
            AccountCommand::Open { email, password, role, .. } => {
                let user = user?;
                if self.accounts.contains_key(&user) {
                    return Err(Refusal::HasAccount);
                }
                let email = email.as_ref().map(|email| email.as_str().to_owned());
                self.check_email(email.as_ref())?;
                let (password, state) = (password.as_str().to_owned(), AccountState::Active);
                self.accounts.insert(user, ModelAccount { email, password, role: *role, state });
                Ok(AccountDone::Opened(UserId(user)))
            }
            AccountCommand::SetPassword { password, keep, .. } => {
                let user = user?;
                self.account(user)?;
                let keep = keep.map(|keep| keep.0);
                let is_of_user =
                    |id: u64| self.grants.get(&id).is_some_and(|grant| grant.user == Some(user));
                if !keep.is_none_or(is_of_user) {
                    return Err(Refusal::PasswordChanged);
                }
                self.account(user)?.password = password.as_str().to_owned();
                self.grants.retain(|id, grant| grant.user != Some(user) || Some(*id) == keep);
                Ok(AccountDone::Changed)
            }
            AccountCommand::SetRole { role, .. } => {
                self.account(user?)?.role = *role;
                Ok(AccountDone::Changed)
            }
            AccountCommand::SetState { state, .. } => {
                let user = user?;
                self.account(user)?.state = *state;
                self.relisted.insert(user);
                if *state != AccountState::Active {
                    self.grants.retain(|_, grant| grant.user != Some(user));
                }
                Ok(AccountDone::Changed)
            }
            AccountCommand::CreateInvite { code, uses, life_secs } => {
                let live = self.invites.iter().filter(|(_, invite)| now_ms < invite.1);
                let live: BTreeMap<_, _> = live.map(|(code, invite)| (*code, *invite)).collect();
                if live.contains_key(code) {
                    return Err(Refusal::SecretUsed);
                }
                if live.len() >= INVITES_MAX {
                    return Err(Refusal::TooManyInvites);
                }
                self.invites = live;
                self.invites.insert(*code, (*uses, now_ms + u64::from(*life_secs) * 1_000));
                Ok(AccountDone::Invited)
            }
            AccountCommand::RegisterApp(app) => {
                self.apps.insert(stamp, app.scopes);
                Ok(AccountDone::AppRegistered(AppId(stamp)))
            }
            AccountCommand::Mint { scopes, life_secs, token, .. } => {
                self.mint(stamp, user?, (*scopes, *life_secs), *token)
            }
            command => self.apply_grant(stamp, command),
        }
    }

    fn mint(
        &mut self,
        stamp: u64,
        user: u32,
        (scopes, life_secs): (AccessScopes, u32),
        token: SecretHash,
    ) -> Done {
        if !self.is_active_or_none(user) {
            return Err(Refusal::AccountNotActive);
        }
        self.unused(token)?;
        let is_minted = |grant: &ModelGrant| grant.user == Some(user) && grant.is_minted();
        let is_over = |grant: &ModelGrant| grant.expires_ms.is_some_and(|at| at <= ms_of(stamp));
        let live = self.grants.values().filter(|grant| is_minted(grant) && !is_over(grant));
        if live.count() >= USER_TOKENS_MAX {
            return Err(Refusal::TooManyTokens);
        }
        self.grants.retain(|_, grant| !is_minted(grant) || !is_over(grant));
        let expires_ms = Some(ms_of(stamp) + u64::from(life_secs) * 1_000);
        let (app, user, code, token) = (None, Some(user), None, Some(token));
        let needs_account = false;
        self.add(stamp, ModelGrant { app, user, scopes, code, token, expires_ms, needs_account })
    }

    /// Ends all grants of a deleted user.
    pub(super) fn forget(&mut self, user: u32) {
        self.accounts.remove(&user);
        let of_user = self.grants.values_mut().filter(|grant| grant.user == Some(user));
        of_user.for_each(|grant| grant.needs_account = true);
    }

    /// Applies a command about grants.
    fn apply_grant(&mut self, stamp: u64, command: &AccountCommand) -> Done {
        let (now_ms, needs_account) = (ms_of(stamp), true);
        match command {
            AccountCommand::LogIn { user, password, session } => {
                self.compared(user.0, password.as_str())?;
                let expires_ms = Some(now_ms + SESSION_SECS * 1_000);
                let scopes = AccessScopes::default();
                let (app, user, token) = (None, Some(user.0), Some(*session));
                self.add(
                    stamp,
                    ModelGrant { app, user, scopes, code: None, token, expires_ms, needs_account },
                )
            }
            AccountCommand::Authorize { user, app, scopes, code, redirect, challenge } => {
                self.active(user.0)?;
                self.registered(*app, *scopes)?;
                let code = Some((*code, *redirect, *challenge, now_ms + CODE_SECS * 1_000));
                let (app, user, scopes) = (Some(app.0), Some(user.0), *scopes);
                let (token, expires_ms) = (None, None);
                self.add(
                    stamp,
                    ModelGrant { app, user, scopes, code, token, expires_ms, needs_account },
                )
            }
            AccountCommand::Exchange { app, code, redirect, challenge, token } => {
                self.exchange(now_ms, *app, (*code, *redirect, *challenge), *token)
            }
            AccountCommand::GrantApp { app, scopes, token } => {
                self.registered(*app, *scopes)?;
                let (app, user, scopes) = (Some(app.0), None, *scopes);
                let (code, token, expires_ms) = (None, Some(*token), None);
                self.add(
                    stamp,
                    ModelGrant { app, user, scopes, code, token, expires_ms, needs_account },
                )
            }
            AccountCommand::GrantUser { app, user, password, scopes, token } => {
                self.compared(user.0, password.as_str())?;
                self.registered(*app, *scopes)?;
                let (app, user, scopes) = (Some(app.0), Some(user.0), *scopes);
                let (code, token, expires_ms) = (None, Some(*token), None);
                self.add(
                    stamp,
                    ModelGrant { app, user, scopes, code, token, expires_ms, needs_account },
                )
            }
            AccountCommand::Revoke { grant } => {
                self.grants.remove(&grant.0);
                Ok(AccountDone::Revoked)
            }
            _ => unreachable!("the command is about accounts"),
        }
    }

    /// Whether a sign-up is accepted. An accepted one uses up the invite.
    pub(super) fn admit(
        &mut self,
        now_ms: u64,
        email: Option<&String>,
        invite: Option<&SecretHash>,
        handle_is_free: bool,
    ) -> Result<(), Refusal> {
        let is_valid = |code| self.invites.get(code).is_some_and(|(_, expires)| now_ms < *expires);
        if !invite.is_none_or(is_valid) {
            return Err(Refusal::BadInvite);
        }
        self.check_email(email)?;
        if let Some(used) =
            invite.filter(|_| handle_is_free).and_then(|code| self.invites.get_mut(code))
        {
            used.0 -= 1;
            self.invites.retain(|_, invite| invite.0 > 0);
        }
        Ok(())
    }

    /// Whether a token is valid at `now_ms`.
    pub(crate) fn is_valid(&self, grant: &ModelGrant, now_ms: u64) -> bool {
        let acts = grant.user.is_none_or(|user| match grant.needs_account {
            true => self.active(user).is_ok(),
            false => self.is_active_or_none(user),
        });
        acts && grant.token.is_some() && grant.expires_ms.is_none_or(|at| now_ms < at)
    }

    fn check_email(&self, email: Option<&String>) -> Result<(), Refusal> {
        let is_taken = self.accounts.values().any(|account| account.email.as_ref() == email);
        if email.is_some() && is_taken { Err(Refusal::EmailTaken) } else { Ok(()) }
    }

    fn account(&mut self, user: u32) -> Result<&mut ModelAccount, Refusal> {
        self.accounts.get_mut(&user).ok_or(Refusal::NoAccount)
    }

    /// Whether a user has an active account or no account.
    pub(super) fn is_active_or_none(&self, user: u32) -> bool {
        let account = self.accounts.get(&user);
        account.is_none_or(|account| account.state == AccountState::Active)
    }

    pub(crate) fn is_disabled(&self, user: u32) -> bool {
        let account = self.accounts.get(&user);
        account.is_some_and(|account| account.state == AccountState::Disabled)
    }

    fn active(&self, user: u32) -> Result<&ModelAccount, Refusal> {
        let account = self.accounts.get(&user);
        let active = account.filter(|account| account.state == AccountState::Active);
        active.ok_or(Refusal::AccountNotActive)
    }

    fn compared(&self, user: u32, password: &str) -> Result<(), Refusal> {
        let is_same = self.active(user)?.password == password;
        if is_same { Ok(()) } else { Err(Refusal::PasswordChanged) }
    }

    fn registered(&self, app: AppId, scopes: AccessScopes) -> Result<(), Refusal> {
        let known = self.apps.get(&app.0).ok_or(Refusal::AppNotFound)?;
        if known.includes(scopes) { Ok(()) } else { Err(Refusal::BadScope) }
    }

    fn unused(&self, secret: SecretHash) -> Result<(), Refusal> {
        let is_used = self.grants.values().any(|grant| grant.has(secret));
        if is_used { Err(Refusal::SecretUsed) } else { Ok(()) }
    }

    fn add(&mut self, stamp: u64, grant: ModelGrant) -> Done {
        for secret in [grant.token, grant.code.map(|code| code.0)].into_iter().flatten() {
            self.unused(secret)?;
        }
        let most = match grant.user {
            Some(_) if grant.is_minted() => USER_TOKENS_MAX,
            Some(_) => USER_GRANTS_MAX,
            None => APP_GRANTS_MAX,
        };
        let is_owner = |other: &ModelGrant| match grant.user {
            Some(_) => other.user == grant.user && other.is_minted() == grant.is_minted(),
            None => other.user.is_none() && other.app == grant.app,
        };
        let of_owner = self.grants.iter().filter(|(_, other)| is_owner(other));
        let of_owner: Vec<u64> = of_owner.map(|(id, _)| *id).collect();
        for id in of_owner.iter().take((of_owner.len() + 1).saturating_sub(most)) {
            self.grants.remove(id);
        }
        self.grants.insert(stamp, grant);
        Ok(AccountDone::Granted(GrantId(stamp)))
    }

    fn exchange(
        &mut self,
        now_ms: u64,
        app: AppId,
        (code, redirect, challenge): (SecretHash, SecretHash, Option<SecretHash>),
        token: SecretHash,
    ) -> Done {
        let of_code = |grant: &ModelGrant| grant.code.is_some_and(|found| found.0 == code);
        let found = self.grants.iter().find(|(_, grant)| of_code(grant));
        let bad = Refusal::BadCode;
        let Some((id, grant)) = found.map(|(id, grant)| (*id, grant.clone())) else {
            return Err(bad);
        };
        if grant.app != Some(app.0) {
            return Err(bad);
        }
        if grant.token.is_some() {
            self.grants.remove(&id);
            return Ok(AccountDone::CodeReused);
        }
        let fits = grant
            .code
            .is_some_and(|found| (found.1, found.2) == (redirect, challenge) && now_ms < found.3);
        if !fits {
            return Err(bad);
        }
        grant.user.map_or(Ok(()), |user| self.active(user).map(drop))?;
        self.unused(token)?;
        self.grants.insert(id, ModelGrant { token: Some(token), ..grant });
        Ok(AccountDone::Granted(GrantId(id)))
    }

    /// Removes a grant that expires at this time. If the grant has a token, removes only its expired code.
    pub(super) fn expire(&mut self, id: u64, expires_ms: u64) {
        let Some(grant) = self.grants.get_mut(&id) else { return };
        if grant.due_ms() != Some(expires_ms) {
            return;
        }
        if grant.token.is_some() && grant.code.is_some() {
            grant.code = None;
        } else {
            self.grants.remove(&id);
        }
    }
}

impl Feed {
    /// Applies a command about accounts. Only a sign-up also registers a user.
    pub(super) fn account(&mut self, stamp: u64, command: &AccountCommand) -> Outcome {
        let done = match command {
            AccountCommand::SignUp { handle, email, password, role, state, invite } => {
                let is_free = !self.handles.contains_key(handle.as_str());
                let email = email.as_ref().map(|email| email.as_str().to_owned());
                self.accounts.admit(ms_of(stamp), email.as_ref(), invite.as_ref(), is_free)?;
                let (handle, name, bio) = (handle.clone(), Name::default(), Bio::default());
                self.apply(stamp, &Command::Register { handle, name, bio })?;
                let (password, user) = (password.as_str().to_owned(), self.users.len() as u32 - 1);
                let account = ModelAccount { email, password, role: *role, state: *state };
                self.accounts.accounts.insert(user, account);
                if *state == AccountState::Disabled {
                    self.accounts.relisted.insert(user);
                }
                AccountDone::SignedUp(UserId(user))
            }
            AccountCommand::Open { user, .. }
            | AccountCommand::SetPassword { user, .. }
            | AccountCommand::SetRole { user, .. }
            | AccountCommand::SetState { user, .. }
            | AccountCommand::Mint { user, .. } => {
                let user = self.resolve(user);
                self.accounts.apply(stamp, user, command)?
            }
            command => self.accounts.apply(stamp, Err(Refusal::UserNotFound), command)?,
        };
        Ok(feed::Done::Account(done))
    }
}
