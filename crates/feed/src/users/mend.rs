//! Checks users, their handles, and deleted users.

use rows::{NameTable, PointTable, RowsMut, Scan, SetTable, Stamp, decode, encode};

use crate::accounts::AccountState;
use crate::due::DueWork;
use crate::handle::Handle;
use crate::ids::UserId;
use crate::index::{DISABLED, IndexRow};
use crate::limits;
use crate::markers::Markers;
use crate::mend::{From, Mend, Rows, STEP_ROWS};
use crate::tags::Tag;
use crate::users::User;

impl<R: Scan + RowsMut> Rows<'_, R> {
    pub(crate) fn is_deleted(&self, user: UserId) -> bool {
        self.rows.member(SetTable::DeletedUsers, user.0.into(), 0).is_some()
    }

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
        let user = self.user(owner).filter(|user| !self.is_gone(*user));
        if !user.is_some_and(|user| item == 0 || item == DISABLED && is_disabled(user)) {
            self.derived(format!("LockedUsers {owner}, {item}: there is no such user"));
            self.set(SetTable::LockedUsers, owner, item, None);
        }
    }

    /// Checks a hashtag that a profile shows or that a user follows.
    pub(crate) fn user_tag(&mut self, table: NameTable, name: &[u8]) {
        let user = name.first_chunk().map(|user| u32::from_be_bytes(*user));
        let user = user.and_then(|user| self.user(user.into()));
        let tag = name.get(4..).and_then(|tag| std::str::from_utf8(tag).ok());
        let is_tag = tag.is_some_and(|tag| Tag::parse(tag).is_ok());
        let exists = user.is_some_and(|user| !self.is_gone(user));
        if !is_tag || !exists {
            self.remove_named(table, name);
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

    /// Checks the markers of a user, who must exist.
    pub(crate) fn markers<R: Scan + RowsMut>(
        &mut self,
        step: &mut Rows<'_, R>,
        key: u64,
        value: &[u8],
    ) {
        let markers: Markers = decode(value);
        let updated = [markers.home, markers.notifications].into_iter().flatten();
        let last = updated.map(|marker| marker.updated.0).max().unwrap_or(0);
        self.counted.last_stamp = self.counted.last_stamp.max(last);
        if step.user(key).is_none_or(|user| step.is_gone(user)) {
            step.derived(format!("Markers {key}: there is no such user"));
            step.put(PointTable::Markers, key, None);
        }
    }

    pub(crate) fn deleted_user<R: Scan + RowsMut>(
        &mut self,
        step: &mut Rows<'_, R>,
        owner: u64,
        item: u64,
    ) {
        if item == 0 && u32::try_from(owner).is_ok_and(|id| id < limits::USERS_MAX) {
            self.counted.deleted += 1;
        } else {
            step.derived(format!("DeletedUsers {owner}, {item}: there is no such user"));
            step.set(SetTable::DeletedUsers, owner, item, None);
        }
    }

    pub(crate) fn erasing_user<R: Scan + RowsMut>(
        &mut self,
        step: &mut Rows<'_, R>,
        (owner, item, deleted_ms): (u64, u64, u64),
    ) {
        let id = u32::try_from(item).ok().filter(|id| owner == 0 && *id < limits::USERS_MAX);
        let Some(id) = id.map(UserId) else {
            step.derived(format!("ErasingUsers {owner}, {item}: there is no such user"));
            step.set(SetTable::ErasingUsers, owner, item, None);
            return;
        };
        self.counted.erasing += 1;
        let erasure = IndexRow::due(DueWork::Erase { user: id }.at(deleted_ms));
        step.put_index(|| format!("deleted user {item}"), [erasure]);
        if !step.is_deleted(id) {
            step.derived(format!("user {item}: the row of the deletion is missing"));
            step.set(SetTable::DeletedUsers, item, 0, Some(0));
            self.counted.deleted += 1;
        }
    }

    /// Restarts the removal of a deleted user of whom a row is left.
    pub(crate) fn erase_again<R: Scan + RowsMut>(&mut self, step: &mut Rows<'_, R>, user: UserId) {
        step.derived(format!("user {}: deleted, but not all rows are removed", user.0));
        let erasure = step.facts().since_now(DueWork::Erase { user });
        step.set(SetTable::ErasingUsers, 0, user.0.into(), Some(erasure.at_ms));
        step.put_due(erasure);
        self.counted.erasing += 1;
        let mut totals = step.rows.totals();
        totals.users_erasing += 1;
        step.rows.put_totals(totals);
    }
}
