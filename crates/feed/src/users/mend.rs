//! Checks users and their handles.

use rows::{NameTable, PointTable, RowsMut, Scan, SetTable, Stamp, decode, encode};

use crate::accounts::AccountState;
use crate::handle::Handle;
use crate::ids::UserId;
use crate::index::DISABLED;
use crate::limits;
use crate::mend::{From, Mend, Rows, STEP_ROWS};
use crate::users::User;

impl<R: Scan + RowsMut> Rows<'_, R> {
    /// Checks a handle, which its user must have. A user without a row gets one with this handle.
    pub(crate) fn handle(&mut self, name: &[u8], value: &[u8]) {
        let id: UserId = decode(value);
        let handle = std::str::from_utf8(name).ok().and_then(|text| Handle::parse(text).ok());
        let handle =
            handle.filter(|handle| handle.as_str().as_bytes() == name && id.0 < limits::USERS_MAX);
        let stored: Option<User> =
            self.rows.point(PointTable::User, id.0.into()).map(|row| decode::<User>(&row));
        match (handle, stored) {
            (Some(handle), Some(user)) if user.handle == handle => {}
            (Some(handle), None) => {
                let name = handle.as_str();
                match self.is_deleted(id) {
                    true => self.derived(format!(
                        "user {} ({name}), who is deleted: the row is missing",
                        id.0
                    )),
                    false => self.lost(format!(
                        "user {} ({name}): the profile and the time of registration are lost",
                        id.0
                    )),
                }
                self.put_user(id, handle);
            }
            _ => {
                self.derived(format!("handle {}: user {} has another", name.escape_ascii(), id.0));
                self.rows.put_name(NameTable::Handle, name, None);
            }
        }
    }

    /// Checks the row of a locked or disabled user, who must exist.
    pub(crate) fn locked_user(&mut self, owner: u64, item: u64) {
        let is_disabled = |user| {
            let account = self.facts().account(user);
            account.is_some_and(|account| account.state == AccountState::Disabled)
        };
        let user = self.user(owner).filter(|user| !self.is_erased(*user));
        if !user.is_some_and(|user| item == 0 || item == DISABLED && is_disabled(user)) {
            self.derived(format!("LockedUsers {owner}, {item}: there is no such user"));
            self.set(SetTable::LockedUsers, owner, item, None);
        }
    }

    fn put_user(&mut self, id: UserId, handle: Handle) {
        let user = User::of(handle, Stamp::MIN);
        let handle = user.handle.as_str().as_bytes();
        self.rows.put_name(NameTable::Handle, handle, Some(encode(&id)));
        self.rows.put_point(PointTable::User, id.0.into(), Some(encode(&user)));
    }

    /// Adds a user with a free handle in place of a lost one.
    fn put_unknown_user(&mut self, id: UserId) {
        let mut name = format!("lost_{}", id.0);
        while self.rows.name(NameTable::Handle, name.as_bytes()).is_some() {
            name.push('_');
        }
        let Ok(handle) = Handle::parse(&name) else {
            unreachable!(
                "handles have up to 30 characters, and few users have one that begins like this"
            )
        };
        self.lost(format!(
            "user {}: the profile and the handle are lost; the user is {name} now",
            id.0
        ));
        self.put_user(id, handle);
    }
}

impl Mend {
    pub(crate) fn user<R: Scan + RowsMut>(
        &mut self,
        step: &mut Rows<'_, R>,
        key: u64,
        value: &[u8],
    ) {
        let user = decode::<User>(value);
        let Some(id) = u32::try_from(key).ok().filter(|id| *id < limits::USERS_MAX).map(UserId)
        else {
            step.lost(format!("User {key}: there is no such user"));
            step.rows.put_point(PointTable::User, key, None);
            return;
        };
        while self.next_user < key {
            if step.rows.point(PointTable::User, self.next_user).is_none() {
                step.put_unknown_user(UserId(self.next_user as u32));
            }
            self.next_user += 1;
        }
        self.next_user = key + 1;
        self.counted.last_stamp = self.counted.last_stamp.max(user.registered.0);
        step.media_of_user(id, &user);
        let name = user.handle.as_str().as_bytes();
        if step.rows.name(NameTable::Handle, name).as_deref() != Some(&*encode(&id)) {
            let handle = user.handle.as_str();
            step.derived(format!("user {key}: the row of the handle {handle} is missing or wrong"));
            step.rows.put_name(NameTable::Handle, name, Some(encode(&id)));
        }
        let mut totals = step.rows.totals();
        if totals.users <= id.0 {
            step.derived(format!("user {key}: the store counts only {} users", totals.users));
            totals.users = id.0 + 1;
            step.rows.put_totals(totals);
        }
    }

    /// Adds lost users up to the number of users, and counts deleted users, which later passes rely on.
    pub(crate) fn missing_users<R: Scan + RowsMut>(
        &mut self,
        step: &mut Rows<'_, R>,
    ) -> Option<From> {
        let users = u64::from(step.rows.totals().users);
        let end = users.min(self.next_user + STEP_ROWS as u64);
        for user in self.next_user..end {
            if step.rows.point(PointTable::User, user).is_none() {
                step.put_unknown_user(UserId(user as u32));
            }
        }
        self.next_user = end.max(self.next_user);
        if end < users {
            return Some(From { place: (end, 0), ..From::default() });
        }
        let mut totals = step.rows.totals();
        let counted = (self.counted.deleted, self.counted.erasing);
        if (totals.users_deleted, totals.users_erasing) != counted {
            let stored = (totals.users_deleted, totals.users_erasing);
            step.derived(format!(
                "totals: numbers of deleted users and of those not erased are {stored:?} instead of {counted:?}"
            ));
            (totals.users_deleted, totals.users_erasing) = counted;
            step.rows.put_totals(totals);
        }
        None
    }
}
