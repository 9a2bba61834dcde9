//! Import of lists. Their lines precede those of follows, so the import remembers which follows the lists need.

use feed::limits::{LIST_MEMBERS_MAX, LISTS_MAX};
use feed::relation::Relation;
use feed::{ListId, ListReplies, ListTitle, Refusal, UserId, write};
use hashbrown::{HashMap, HashSet};
use rows::SetTable;
use store::Loader;

use super::Wrong;
use super::ids::Ids;
use super::users::Users;
use crate::export::lines::Id;
use crate::export::list_lines::List;

/// Lists that were read, in memory.
#[derive(Default)]
pub(super) struct Lists {
    /// Lists of each user.
    owned: HashMap<UserId, Vec<ListId>>,
    /// Owners and members for whom no line of a follow was read yet, 8 bytes each.
    without_follow: HashSet<(UserId, UserId)>,
}

impl Lists {
    /// Adds a list of `user` with these members.
    pub(super) fn add(
        &mut self,
        loader: &mut Loader,
        ids: &mut Ids,
        (user, members): (UserId, &[UserId]),
        line: &List<'_>,
    ) -> Result<(), Wrong> {
        let owned = self.owned.entry(user).or_default();
        if owned.len() >= LISTS_MAX {
            return Err(Refusal::TooManyLists.into());
        }
        let id = match line.id {
            Some(id) => id,
            None => Id(ids.at_or_now(None)?.after(owned.len() as u64).0),
        };
        let id = ListId(ids.used(id)?.0);
        if owned.contains(&id) {
            return Err(format!("the user {} has the list {} twice", user.0, id.0).into());
        }
        owned.push(id);
        let title = ListTitle::parse(&line.title)?;
        let replies = line.replies.as_deref().map(ListReplies::named);
        let replies = replies.map(|found| found.ok_or("there is no such choice of replies"));
        let replies = replies.transpose()?.unwrap_or_default();
        write::list(loader, user, id, Some(&feed::List { title, replies }));
        if members.len() > LIST_MEMBERS_MAX {
            return Err(Refusal::ListFull.into());
        }
        let mut known = HashSet::new();
        for other in members {
            if !known.insert(*other) {
                return Err(format!("the list {} has the user {} twice", id.0, other.0).into());
            }
            self.without_follow.insert((user, *other));
            write::list_member(loader, user, id, *other, true);
        }
        Ok(())
    }

    /// Records that `user` has a relation to `other`.
    pub(super) fn related(&mut self, relation: &Relation, user: UserId, other: UserId) {
        if relation.forward == SetTable::Following && !self.without_follow.is_empty() {
            self.without_follow.remove(&(user, other));
        }
    }

    /// # Errors
    /// A list has a member whom its owner does not follow.
    pub(super) fn finish(&self) -> Result<(), Wrong> {
        match self.without_follow.iter().min() {
            Some((user, other)) => Err(format!(
                "a list of the user {} has the user {}, but no later line has a follow of that user",
                user.0, other.0
            )
            .into()),
            None => Ok(()),
        }
    }
}

impl Users {
    pub(super) fn list(
        &mut self,
        loader: &mut Loader,
        ids: &mut Ids,
        line: &List<'_>,
    ) -> Result<(), Wrong> {
        if self.has_relations {
            return Err("lists must come before follows and friends".into());
        }
        let user = self.find(&line.user)?;
        let members: Vec<UserId> =
            line.members.iter().map(|who| self.find(who)).collect::<Result<_, _>>()?;
        self.lists.add(loader, ids, (user, &members), line)
    }
}
