//! Import of options of follows. Their lines precede those of follows and requests, so the import remembers which
//! follows the options need.

use feed::UserId;
use feed::follow_options::{FollowOptions, OptionsOf};
use feed::relation::Relation;
use feed::whole::FOLLOW_OPTIONS;
use hashbrown::{HashMap, HashSet};
use rows::{SetTable, Stamp};
use store::Loader;

use super::Wrong;
use super::ids::Ids;
use super::users::Users;
use crate::export::lines;

/// Options that were read, in memory.
#[derive(Default)]
pub(super) struct AllOptions {
    of: HashMap<UserId, Vec<OptionsOf>>,
    /// Pairs of users for whom no line of a follow or a request was read yet, 8 bytes each.
    without_follow: HashSet<(UserId, UserId)>,
}

impl AllOptions {
    /// Records that `user` has a relation to `other`.
    pub(super) fn related(&mut self, relation: &Relation, user: UserId, other: UserId) {
        let follows = matches!(relation.forward, SetTable::Following | SetTable::Requested);
        if follows && !self.without_follow.is_empty() {
            self.without_follow.remove(&(user, other));
        }
    }

    /// # Errors
    /// There are options without a follow or a request.
    pub(super) fn finish(&self, loader: &mut Loader) -> Result<(), Wrong> {
        if let Some((user, other)) = self.without_follow.iter().min() {
            let (user, other) = (user.0, other.0);
            let what = format!(
                "the user {user} has options of a follow of {other}, but no later line has this follow or request"
            );
            return Err(what.into());
        }
        self.of.iter().for_each(|(user, all)| FOLLOW_OPTIONS.put(loader, *user, all));
        Ok(())
    }
}

impl Users {
    pub(super) fn follow_options(
        &mut self,
        ids: &mut Ids,
        line: &lines::FollowOptions,
    ) -> Result<(), Wrong> {
        if self.has_relations {
            return Err("options of follows must come before follows and requests".into());
        }
        let (user, other) = (self.find(&line.user)?, self.find(&line.follows)?);
        let since = line.notified_since.map(|since| ids.used(since)).transpose()?;
        let notified_since = since.map(|since| Stamp(since.0));
        let options = FollowOptions { hides_boosts: line.without_boosts, notified_since };
        if !self.options.without_follow.insert((user, other)) || options == FollowOptions::default()
        {
            return Err("a follow must have at most one line of options, with at least one that is not the default".into());
        }
        options.put_among(self.options.of.entry(user).or_default(), other)?;
        Ok(())
    }
}
