//! Facts about accounts, apps and grants.
//!
//! **Invariant:** the rows of `Email`, `GrantSecret`, `GrantOf` and `UnusedApp`, and the number of uses of an app,
//! follow from the rows of accounts, apps and grants.

use rows::{NameTable, PointTable, Rows, decode};

use crate::accounts::{
    Account, AccountState, App, AppId, AppName, Email, Grant, GrantId, Invite, Record, SecretHash,
    Stage,
};
use crate::due::DueWork;
use crate::facts::{Facts, Txn, adjust_count};
use crate::ids::UserId;
use crate::index::{self, OF_APP, OF_KEY, OF_USER, key_digest, owner_prefix};
use crate::write;

impl<R: Rows + ?Sized> Facts<'_, R> {
    /// The account of a user.
    #[must_use]
    pub fn account(&self, user: UserId) -> Option<Account> {
        self.rows.point(PointTable::Account, user.0.into()).map(|row| Account::of_row(&row))
    }

    /// The account of a user, if the user can log in.
    #[must_use]
    pub fn active_account(&self, user: UserId) -> Option<Account> {
        self.account(user).filter(|account| account.state == AccountState::Active)
    }

    /// Whether the user's account is neither pending nor disabled; also true without an account.
    #[must_use]
    pub fn is_active(&self, user: UserId) -> bool {
        self.account(user).is_none_or(|account| account.state == AccountState::Active)
    }

    /// Whether the user's account is disabled, which hides the user and their data from all other users.
    #[must_use]
    pub fn is_disabled(&self, user: UserId) -> bool {
        self.rows.totals().accounts_disabled > 0 && index::of_disabled(user).is_at(self.rows)
    }

    /// The user whose account has this e-mail address.
    #[must_use]
    pub fn by_email(&self, email: &Email) -> Option<UserId> {
        self.rows.name(NameTable::Email, email.as_str().as_bytes()).map(|row| decode(&row))
    }

    /// Calls `each` with every account, in the order of user ids. Reads all of them in one scan.
    pub fn each_account(&self, mut each: impl FnMut(UserId, Account)) {
        self.rows.each_point(PointTable::Account, &mut |id, row| {
            if let Ok(id) = u32::try_from(id) {
                each(UserId(id), Account::of_row(row));
            }
        });
    }

    /// The invite with this code, if it can still be used at `now_ms`.
    #[must_use]
    pub fn invite(&self, code: &SecretHash, now_ms: u64) -> Option<Invite> {
        self.stored_invite(code).filter(|invite| invite.uses > 0 && now_ms < invite.expires_ms)
    }

    fn stored_invite(&self, code: &SecretHash) -> Option<Invite> {
        self.rows.name(NameTable::Invite, &code.0).map(|row| Invite::of_row(&row))
    }

    /// All stored invites, at most `limit`.
    pub(crate) fn stored_invites(&self, limit: usize) -> Vec<(SecretHash, Invite)> {
        let codes = self.rows.first_names(NameTable::Invite, &[], limit);
        let codes = codes.into_iter().filter_map(|code| Some(SecretHash(code.try_into().ok()?)));
        codes.filter_map(|code| Some((code, self.stored_invite(&code)?))).collect()
    }

    /// The app with this id.
    #[must_use]
    pub fn app(&self, app: AppId) -> Option<App> {
        self.rows.point(PointTable::App, app.0).map(|row| App::of_row(&row))
    }

    /// Number of grants with which the app acts for users. An app with 0 is unused and may be removed.
    #[must_use]
    pub fn app_uses(&self, app: AppId) -> u32 {
        self.rows.point(PointTable::AppUses, app.0).map_or(0, |row| decode(&row))
    }

    /// The grant with this id, which may have expired.
    #[must_use]
    pub fn grant(&self, grant: GrantId) -> Option<Grant> {
        self.rows.point(PointTable::Grant, grant.0).map(|row| Grant::of_row(&row))
    }

    /// The grant of a code, token or session secret, valid or expired.
    #[must_use]
    pub fn grant_of(&self, secret: &SecretHash) -> Option<(GrantId, Grant)> {
        let row = self.rows.name(NameTable::GrantSecret, &secret.0)?;
        let id = GrantId(decode(&row));
        Some((id, self.grant(id)?))
    }

    /// The grant of a token or session secret that is valid at `now_ms`.
    #[must_use]
    pub fn granted(&self, secret: &SecretHash, now_ms: u64) -> Option<(GrantId, Grant)> {
        let (id, grant) = self.grant_of(secret)?;
        let Stage::Token { token, expires_ms, .. } = &grant.stage else { return None };
        let is_token = token == secret && expires_ms.is_none_or(|expires_ms| now_ms < expires_ms);
        (is_token && self.acts(&grant)).then_some((id, grant))
    }

    /// Whether the grant may act for its user, if it has one.
    pub(crate) fn acts(&self, grant: &Grant) -> bool {
        let Some(user) = grant.user else { return true };
        match self.account(user) {
            Some(account) => account.state == AccountState::Active,
            None => grant.is_minted() && self.exists(user),
        }
    }

    /// All grants of a user, oldest first. Bounded by the limits.
    #[must_use]
    pub fn grants_of_user(&self, user: UserId) -> Vec<(GrantId, Grant)> {
        let ids = self.grants_from(user, 0, usize::MAX);
        let ids = ids.into_iter().map(GrantId);
        ids.filter_map(|id| Some((id, self.grant(id)?))).collect()
    }

    /// Ids of grants of a user, starting at `from`.
    pub(crate) fn grants_from(&self, user: UserId, from: u64, limit: usize) -> Vec<u64> {
        self.grants_under(OF_USER, user.0.into(), from, limit)
    }

    /// Ids of the tokens of an app itself.
    pub(crate) fn own_grants_of(&self, app: AppId) -> Vec<u64> {
        self.grants_under(OF_APP, app.0, 0, usize::MAX)
    }

    /// Up to `limit` tokens that the application key with this name minted, from the grant `from` on, and the id from
    /// which to continue; no id at the end.
    #[must_use]
    pub fn minted_by(
        &self,
        key: &AppName,
        from: GrantId,
        limit: usize,
    ) -> (Vec<GrantId>, Option<GrantId>) {
        let ids = self.grants_under(OF_KEY, key_digest(key), from.0, limit);
        let next = ids.last().filter(|_| ids.len() == limit).map(|last| GrantId(last + 1));
        let is_of_key =
            |id: &GrantId| self.grant(*id).is_some_and(|grant| grant.key.as_ref() == Some(key));
        (ids.into_iter().map(GrantId).filter(is_of_key).collect(), next)
    }

    fn grants_under(&self, kind: u8, owner: u64, from: u64, limit: usize) -> Vec<u64> {
        let (owner, from) = (owner_prefix(kind, owner), from.to_be_bytes());
        let grants = self.rows.names_under(NameTable::GrantOf, &owner, &from, limit);
        grants.iter().filter_map(|grant| number(grant)).collect()
    }

    /// The unused app that was registered first.
    pub(crate) fn first_unused_app(&self) -> Option<AppId> {
        let name = self.rows.first_name(NameTable::UnusedApp, &[])?;
        number(&name).map(AppId)
    }
}

impl Txn<'_> {
    /// Stores the account of a user without one.
    pub(crate) fn add_account(&mut self, user: UserId, account: &Account) {
        write::account(self.rows, user, account);
        self.total(|totals| {
            totals.accounts += 1;
            totals.accounts_disabled += u32::from(account.state == AccountState::Disabled);
        });
        self.count_pending(account.state, true);
    }

    /// Replaces the account of a user, keeping the e-mail address.
    pub(crate) fn put_account(&mut self, user: UserId, account: &Account) {
        let before = self.facts().account(user).map(|account| account.state);
        before.into_iter().for_each(|state| self.count_pending(state, false));
        self.count_pending(account.state, true);
        self.rows.put_point(PointTable::Account, user.0.into(), Some(account.to_row()));
        self.mark_disabled(user, account.state == AccountState::Disabled);
    }

    /// Counts or uncounts the account if its state is pending.
    fn count_pending(&mut self, state: AccountState, is_counted: bool) {
        if state != AccountState::Pending {
            return;
        }
        self.total(|totals| adjust_count(&mut totals.accounts_pending, is_counted));
    }

    /// Stores and counts whether the user's account is disabled.
    fn mark_disabled(&mut self, user: UserId, is_disabled: bool) {
        if self.facts().is_disabled(user) == is_disabled {
            return;
        }
        // The count changes before the row: see [`Txn::delete_user`].
        self.total(|totals| adjust_count(&mut totals.accounts_disabled, is_disabled));
        index::set(self.rows, [index::of_disabled(user)], is_disabled);
        self.put_due_now(DueWork::Relist { user });
        self.total(|totals| totals.hidings += 1);
    }

    /// Removes the account of a user, if any, which disables its grants. The mark of a disabled account stays until
    /// [`Txn::forget_disabled`], so that the user stays hidden throughout.
    pub(crate) fn remove_account(&mut self, user: UserId) {
        let Some(account) = self.facts().account(user) else {
            // The user's cached minted tokens become invalid.
            if !self.facts().grants_from(user, 0, 1).is_empty() {
                self.total(|totals| totals.revocations += 1);
            }
            return;
        };
        self.rows.put_point(PointTable::Account, user.0.into(), None);
        self.count_pending(account.state, false);
        index::set(self.rows, index::of_email(user, &account), false);
        self.total(|totals| {
            totals.accounts -= 1;
            totals.revocations += 1;
        });
    }

    /// Removes the mark of a disabled account after the user's deletion, which hides the user.
    pub(crate) fn forget_disabled(&mut self, user: UserId) {
        if self.facts().is_disabled(user) {
            index::of_disabled(user).remove(self.rows);
            self.total(|totals| adjust_count(&mut totals.accounts_disabled, false));
        }
    }

    /// Stores or removes an invite.
    pub(crate) fn put_invite(&mut self, code: &SecretHash, invite: Option<Invite>) {
        self.rows.put_name(NameTable::Invite, &code.0, invite.map(|invite| invite.to_row()));
    }

    /// Stores an app, which is unused at first.
    pub(crate) fn add_app(&mut self, id: AppId, app: &App) {
        self.put_app(id, Some(app));
        self.mark_unused(id, true);
    }

    /// Removes an unused app and its own tokens.
    pub(crate) fn remove_app(&mut self, id: AppId) {
        for grant in self.facts().own_grants_of(id) {
            self.remove_grant(GrantId(grant));
        }
        self.put_app(id, None);
        self.mark_unused(id, false);
    }

    fn put_app(&mut self, id: AppId, app: Option<&App>) {
        self.rows.put_point(PointTable::App, id.0, app.map(Record::to_row));
    }

    fn mark_unused(&mut self, id: AppId, unused: bool) {
        index::set(self.rows, index::of_app(id, 0), unused);
        self.total(|totals| match unused {
            true => totals.apps_unused += 1,
            false => totals.apps_unused -= 1,
        });
    }

    /// Adds a grant.
    pub(crate) fn add_grant(&mut self, id: GrantId, grant: &Grant) {
        self.replace_grant(id, None, Some(grant));
        self.count_grant(grant, true);
    }

    /// Replaces a grant by one of the same app and user.
    pub(crate) fn change_grant(&mut self, id: GrantId, old: &Grant, new: &Grant) {
        self.replace_grant(id, Some(old), Some(new));
    }

    /// Ends a grant, if it exists.
    pub(crate) fn remove_grant(&mut self, id: GrantId) {
        let Some(grant) = self.facts().grant(id) else { return };
        self.remove_expired(id, &grant);
        self.total(|totals| totals.revocations += 1);
    }

    /// Removes an expired grant. Does not count as a revocation, because readers check the time of expiry themselves.
    pub(crate) fn remove_expired(&mut self, id: GrantId, grant: &Grant) {
        self.replace_grant(id, Some(grant), None);
        self.count_grant(grant, false);
    }

    fn replace_grant(&mut self, id: GrantId, old: Option<&Grant>, new: Option<&Grant>) {
        let rows = |grant: Option<&Grant>| -> Vec<_> {
            grant.into_iter().flat_map(|grant| index::of_grant(id, grant)).collect()
        };
        self.rows.put_point(PointTable::Grant, id.0, new.map(Record::to_row));
        index::replace(self.rows, &rows(old), &rows(new));
    }

    /// Counts or uncounts a grant with which an app acts for a user.
    fn count_grant(&mut self, grant: &Grant, more: bool) {
        let (Some(id), Some(_)) = (grant.app, grant.user) else { return };
        let mut uses = self.facts().app_uses(id);
        adjust_count(&mut uses, more);
        let row = (uses > 0).then(|| rows::encode(&uses));
        self.rows.put_point(PointTable::AppUses, id.0, row);
        match (more, uses) {
            (true, 1) => self.mark_unused(id, false),
            (false, 0) => self.mark_unused(id, true),
            _ => {}
        }
    }
}

fn number(bytes: &[u8]) -> Option<u64> {
    bytes.try_into().ok().map(u64::from_be_bytes)
}
