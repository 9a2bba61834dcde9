//! Finding users by the beginning of their handles, also with a mistake, and hashtags.

use rows::{NameTable, Rows, decode};

use super::Facts;
use super::similar::similar;
use crate::ids::UserId;
use crate::limits::{SEARCHED_MAX, SIMILAR_MAX};
use crate::tag::Tag;
use crate::text::Handle;

/// Handles that a search reads at a time.
const RUN: usize = 20;
/// Handles of which a search among followed users looks for those who are followed. If more begin so, the followed users
/// are read instead.
const FEW: usize = 256;

impl<'r, R: Rows + ?Sized> Facts<'r, R> {
    /// Users whose handles begin with `start`, in the order of handles, and then those whose handles begin almost so. Of the
    /// first at most [`SEARCHED_MAX`] handles are read, of the others at most [`SIMILAR_MAX`], and none before they are
    /// asked for but for the rest of a run.
    pub fn search_users(self, start: &Handle) -> impl Iterator<Item = UserId> + use<'r, R> {
        let (begins, similar) = (start.as_str().as_bytes().to_vec(), start.clone());
        let (mut from, mut left) = (Some(Vec::new()), SEARCHED_MAX);
        let runs = std::iter::from_fn(move || {
            let (low, limit) = (from.take()?, left.min(RUN));
            let ends = self.rows.names_under(NameTable::Handle, &begins, &low, limit);
            left -= ends.len();
            let last = ends.last().filter(|_| ends.len() == limit && left > 0);
            // The next possible name.
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

    /// Same as [`Facts::search_users`] among the users whom `follower` follows, however many others have such handles.
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

    /// Hashtags of public posts that begin with `prefix`, in order, each read when it is taken, with one short read.
    pub fn tags_by_prefix(self, prefix: &str) -> impl Iterator<Item = Tag> + use<'r, R> {
        let (prefix, mut from) = (prefix.to_owned(), Vec::new());
        let names = std::iter::from_fn(move || {
            let name = self.first_tag(&prefix, &from)?;
            // Above all posts with this hashtag, below those with a longer one.
            from = [name.as_bytes().get(prefix.len()..).unwrap_or_default(), &[1]].concat();
            Some(name)
        });
        names.filter_map(|name| Tag::of_row(name.as_bytes()))
    }
}

impl<R: Rows + ?Sized> Facts<'_, R> {
    /// Users whose handles begin almost as `start` and not with it. At most `limit` handles are read, those of deleted users
    /// included; to find them, at most 500.
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
