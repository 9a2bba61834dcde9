//! Facts about users: profiles, handles, and a search by prefixes of handles with tolerance for one mistake.

use rows::{NameTable, PointTable, Rows, decode};

use crate::facts::{Facts, Txn, user_id};
use crate::handle::Handle;
use crate::ids::{UserId, UserRef};
use crate::limits::{SEARCHED_MAX, SIMILAR_MAX};
use crate::similar::similar;
use crate::users::User;
use crate::write;

impl<R: Rows + ?Sized> Facts<'_, R> {
    /// Profile of a user.
    #[must_use]
    pub fn user(&self, user: UserId) -> Option<User> {
        self.stored_user(user).filter(|_| !self.is_deleted(user))
    }

    /// Profile of a user who may be deleted, in which case only the handle and the time of registration are left.
    #[must_use]
    pub fn stored_user(&self, user: UserId) -> Option<User> {
        self.rows.point(PointTable::User, u64::from(user.0)).map(|row| decode::<User>(&row))
    }

    /// Calls `each` with every user, including deleted ones, in the order of ids. Reads all of them in one scan.
    pub fn each_stored_user(&self, mut each: impl FnMut(UserId, User)) {
        self.rows.each_point(PointTable::User, &mut |id, row| {
            user_id(id).into_iter().for_each(|id| each(id, decode::<User>(row)));
        });
    }

    /// Users with ids smaller than `before`, including deleted ones, greatest id first: at most `limit`.
    #[must_use]
    pub fn users_before(&self, before: UserId, limit: usize) -> Vec<(UserId, User)> {
        let mut users = Vec::new();
        self.rows.points_below(PointTable::User, before.0.into(), limit, &mut |id, row| {
            users.extend(user_id(id).map(|id| (id, decode::<User>(row))));
        });
        users
    }

    /// User with this handle.
    #[must_use]
    pub fn by_handle(&self, handle: &Handle) -> Option<UserId> {
        self.first_by_handle(handle).filter(|user| !self.is_deleted(*user))
    }

    /// User who registered this handle, possibly deleted: a handle never gets another owner.
    #[must_use]
    pub fn first_by_handle(&self, handle: &Handle) -> Option<UserId> {
        self.rows.name(NameTable::Handle, handle.as_str().as_bytes()).map(|row| decode(&row))
    }

    /// Id of a user, if registered and not deleted.
    #[must_use]
    pub fn resolve(&self, user: &UserRef) -> Option<UserId> {
        match user {
            UserRef::Id(user) => self.exists(*user).then_some(*user),
            UserRef::Handle(handle) => self.by_handle(handle),
        }
    }
}

impl Txn<'_> {
    /// Writes a user's profile.
    pub fn put_user(&mut self, id: UserId, user: &User) {
        write::user(self.rows, id, user);
    }

    /// Assigns a handle to a user.
    pub fn put_handle(&mut self, handle: &Handle, id: UserId) {
        write::handle(self.rows, handle, id);
    }
}

/// Handles per read of a search.
const RUN: usize = 20;
/// Maximum number of handles with the prefix for which a search among followed users checks each handle. With more, it
/// reads the followed users instead.
const FEW: usize = 256;

impl<'r, R: Rows + ?Sized> Facts<'r, R> {
    /// Users whose handles begin with `start`, in the order of handles, then users whose handles begin similarly. Reads
    /// at most [`SEARCHED_MAX`] and [`SIMILAR_MAX`] handles, a few at a time and only when the iterator needs them.
    pub fn search_users(self, start: &Handle) -> impl Iterator<Item = UserId> + use<'r, R> {
        let (begins, similar) = (start.as_str().as_bytes().to_vec(), start.clone());
        let (mut from, mut left) = (Some(Vec::new()), SEARCHED_MAX);
        let runs = std::iter::from_fn(move || {
            let (low, limit) = (from.take()?, left.min(RUN));
            let ends = self.rows.names_under(NameTable::Handle, &begins, &low, limit);
            left -= ends.len();
            let last = ends.last().filter(|_| ends.len() == limit && left > 0);
            // Smallest name after this one.
            from = last.map(|last| [last, [0].as_slice()].concat());
            Some(ends.into_iter().map(|end| [&begins[..], &end].concat()).collect::<Vec<_>>())
        });
        let rows = runs.flatten().filter_map(move |name| self.rows.name(NameTable::Handle, &name));
        let users = rows
            .map(|row| decode(&row))
            .filter(move |user| !self.is_deleted(*user) || rows::has_bug("find-deleted-users"));
        let similar = std::iter::once_with(move || self.users_similar(&similar, SIMILAR_MAX));
        users.chain(similar.flatten())
    }

    /// Same as [`Facts::search_users`] among the users whom `follower` follows, regardless of the number of other
    /// matches.
    pub fn search_followed(
        self,
        start: &Handle,
        follower: UserId,
    ) -> impl Iterator<Item = UserId> + use<'r, R> {
        let begins = start.as_str();
        let few = self.rows.names_under(NameTable::Handle, begins.as_bytes(), &[], FEW);
        let follows = move |user: &UserId| self.follows(follower, *user);
        let found: Vec<UserId> = match few.len() < FEW {
            true => {
                let names = few.iter().map(|end| [begins.as_bytes(), end].concat());
                let rows = names.filter_map(|name| self.rows.name(NameTable::Handle, &name));
                rows.map(|row| decode(&row)).filter(follows).collect()
            }
            false => {
                let followed = self.following_all(follower).into_iter();
                let named = followed.filter_map(|user| Some((self.user(user)?.handle, user)));
                let mut found: Vec<_> =
                    named.filter(|(handle, _)| handle.as_str().starts_with(begins)).collect();
                found.sort_unstable_by(|(one, _), (other, _)| one.as_str().cmp(other.as_str()));
                found.into_iter().map(|(_, user)| user).collect()
            }
        };
        let start = start.clone();
        let similar = std::iter::once_with(move || self.users_similar(&start, SIMILAR_MAX));
        let found = found.into_iter().filter(move |user| !self.is_deleted(*user));
        found.chain(similar.flatten().filter(follows))
    }
}

impl<R: Rows + ?Sized> Facts<'_, R> {
    /// Users whose handles have a prefix similar to `start`, but not `start` itself. Finds at most `limit` handles,
    /// including those of deleted users, with at most 500 reads.
    #[must_use]
    pub fn users_similar(&self, start: &Handle, limit: usize) -> Vec<UserId> {
        let handles = similar(start.as_str(), limit, |begins, from| {
            let end = self.rows.names_under(NameTable::Handle, begins.as_bytes(), from, 1).pop()?;
            String::from_utf8([begins.as_bytes(), &end].concat()).ok()
        });
        let rows =
            handles.iter().map(|handle| self.rows.name(NameTable::Handle, handle.as_bytes()));
        rows.flatten().map(|row| decode(&row)).filter(|user| !self.is_deleted(*user)).collect()
    }
}
