//! Checks accounts, apps and grants, and the rows that follow from them.
//!
//! A user who loses a grant only has to log in again. A grant without its account or app permits nothing, and is
//! removed.

use rows::{PointTable, RowsMut, Scan, decode, encode};

use crate::accounts::{Account, AccountState, AppId, Grant, GrantId, Record as _};
use crate::ids::UserId;
use crate::index;
use crate::mend::{From, Mend, Rows, at};

impl Mend {
    pub(crate) fn account<R: Scan + RowsMut>(
        &mut self,
        step: &mut Rows<'_, R>,
        key: u64,
        value: &[u8],
    ) {
        let mut account = Account::of_row(value);
        let Some(user) = step.user(key).filter(|user| !step.is_deleted(*user)) else {
            step.derived(format!("account of user {key}: there is no such user"));
            step.rows.put_point(PointTable::Account, key, None);
            return;
        };
        self.accounts.accounts += 1;
        self.accounts.pending += u32::from(account.state == AccountState::Pending);
        if account.state == AccountState::Disabled {
            self.accounts.disabled += 1;
        }
        let owner = account.email.as_ref().and_then(|email| step.facts().by_email(email));
        // The other account is consistent with the row of the address, so this account loses the address.
        if owner.is_some_and(|owner| owner != user && step.has_email(owner, &account)) {
            step.lost(format!(
                "account of user {key}: its e-mail address, which another account has"
            ));
            account.email = None;
            step.rows.put_point(PointTable::Account, key, Some(account.to_row()));
        }
        step.put_index(|| format!("account of user {key}"), index::of_account(user, &account));
    }

    pub(crate) fn grant<R: Scan + RowsMut>(
        &mut self,
        step: &mut Rows<'_, R>,
        key: u64,
        value: &[u8],
    ) {
        let (id, grant) = (GrantId(key), Grant::of_row(value));
        self.counted.last_stamp = self.counted.last_stamp.max(key);
        // The grants of a deleted user may still be stored, because they are removed step by step.
        let acts = |user: UserId| {
            let is_minted_for = grant.is_minted() && step.facts().exists(user);
            is_minted_for
                || step.facts().account(user).is_some()
                || step.facts().has_rows_left(user)
        };
        let has_app = grant.app.is_none_or(|app| step.facts().app(app).is_some());
        let is_whole = grant.app.is_some() || grant.user.is_some();
        if !has_app || !is_whole || !grant.user.is_none_or(acts) {
            step.lost(format!("grant {}: its account or its app is lost", at(key)));
            step.rows.put_point(PointTable::Grant, key, None);
            return;
        }
        if let (Some(app), Some(_)) = (grant.app, grant.user) {
            *self.accounts.uses.entry(app.0).or_default() += 1;
        }
        step.put_index(|| format!("grant {}", at(key)), index::of_grant(id, &grant));
    }

    pub(crate) fn app_uses<R: Scan + RowsMut>(
        &mut self,
        step: &mut Rows<'_, R>,
        key: u64,
        value: &[u8],
    ) {
        let stored: u32 = decode(value);
        let counted = self.accounts.uses.get(&key).copied();
        if counted != Some(stored) {
            step.derived(format!("app {}: {stored} uses instead of {counted:?}", at(key)));
            step.put(PointTable::AppUses, key, counted.map(|uses| encode(&uses)));
        }
    }

    pub(crate) fn app<R: Scan + RowsMut>(&mut self, step: &mut Rows<'_, R>, key: u64) {
        self.counted.last_stamp = self.counted.last_stamp.max(key);
        let uses = self.accounts.uses.get(&key).copied().unwrap_or_default();
        self.accounts.apps_unused += u32::from(uses == 0);
        step.put_index(|| format!("app {}", at(key)), index::of_app(AppId(key), uses));
    }

    /// Adds missing counts of uses of apps.
    pub(crate) fn add_app_uses<R: Scan + RowsMut>(
        &mut self,
        step: &mut Rows<'_, R>,
    ) -> Option<From> {
        for (app, uses) in &self.accounts.uses {
            if step.put(PointTable::AppUses, *app, Some(encode(uses))) {
                step.derived(format!("app {}: the row of its {uses} uses is missing", at(*app)));
            }
        }
        None
    }
}

impl<R: Scan + RowsMut> Rows<'_, R> {
    /// Whether the account of `user` has the same e-mail address as `account`.
    fn has_email(&self, user: UserId, account: &Account) -> bool {
        self.facts().account(user).is_some_and(|other| other.email == account.email)
    }
}
