//! Expected lists.

use std::collections::BTreeSet;

use feed::limits::{LIST_MEMBERS_MAX, LISTS_MAX};
use feed::{
    Done, ListChange, ListCommand, ListId, ListReplies, Outcome, Page, PageOf, PostId, Refusal,
    UserId, Visibility,
};

use super::feed::Feed;
use super::page_of;
use super::posts::ModelPost;

/// Expected list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ModelList {
    pub(crate) title: String,
    pub(crate) replies: ListReplies,
    pub(crate) members: BTreeSet<u32>,
}

impl Feed {
    pub(super) fn change_lists(&mut self, stamp: u64, command: &ListCommand) -> Outcome {
        let user = self.resolve(&command.user)?;
        match &command.change {
            ListChange::Create(list) => {
                if self.lists.range((user, 0)..=(user, u64::MAX)).count() >= LISTS_MAX {
                    return Err(Refusal::TooManyLists);
                }
                let (title, members) = (list.title.as_str().to_owned(), BTreeSet::new());
                let list = ModelList { title, replies: list.replies, members };
                self.lists.insert((user, stamp), list);
                Ok(Done::ListSaved(ListId(stamp)))
            }
            ListChange::Edit { list, title, replies } => {
                let found = self.list_of(user, *list)?;
                title.iter().for_each(|title| found.title = title.as_str().to_owned());
                replies.iter().for_each(|replies| found.replies = *replies);
                Ok(Done::ListSaved(*list))
            }
            ListChange::Delete { list } => {
                self.lists.remove(&(user, list.0)).ok_or(Refusal::ListNotFound)?;
                Ok(Done::ListDeleted)
            }
            ListChange::Add { list, users } => {
                self.list_of(user, *list)?;
                let users: BTreeSet<u32> = users.iter().map(|other| other.0).collect();
                for other in &users {
                    self.resolve_other(&feed::UserRef::Id(UserId(*other)))?;
                    if !self.follows.contains(&(user, *other)) {
                        return Err(Refusal::NotFollowed);
                    }
                }
                let found = self.list_of(user, *list)?;
                let members: BTreeSet<u32> = found.members.union(&users).copied().collect();
                if members.len() > LIST_MEMBERS_MAX {
                    return Err(Refusal::ListFull);
                }
                found.members = members;
                Ok(Done::ListMembersChanged)
            }
            ListChange::Remove { list, users } => {
                let found = self.list_of(user, *list)?;
                found.members.retain(|other| !users.contains(&UserId(*other)));
                Ok(Done::ListMembersChanged)
            }
        }
    }

    fn list_of(&mut self, user: u32, list: ListId) -> Result<&mut ModelList, Refusal> {
        self.lists.get_mut(&(user, list.0)).ok_or(Refusal::ListNotFound)
    }

    /// Removes members whom the owner does not follow, and lists of deleted users.
    pub(super) fn leave_lists(&mut self) {
        self.lists.retain(|(user, _), _| !self.users[*user as usize].deleted);
        for ((user, _), list) in &mut self.lists {
            list.members.retain(|other| self.follows.contains(&(*user, *other)));
        }
    }

    /// Whether a post is in the timeline of a list.
    pub(crate) fn is_listed(&self, (user, id): (u32, u64), post: &ModelPost) -> bool {
        let list = &self.lists[&(user, id)];
        let is_muted = |other: u32| self.unwanted(user, other);
        let is_member = |other: u32| list.members.contains(&other) && !is_muted(other);
        if !is_member(post.author) {
            return false;
        }
        if let Some(boost) = &post.boost {
            let is_known = boost.is_recent && is_member(boost.author);
            let is_shown = |other: u32| is_member(other) && !self.hides_boosts(user, other);
            let is_earlier = boost.earlier.iter().any(|other| is_shown(*other));
            let is_wanted = !self.users[boost.author as usize].deleted
                && self.wants_boosts_of(user, boost.author);
            return is_wanted && is_shown(post.author) && !is_known && !is_earlier;
        }
        let is_wanted = post.reply_to.is_none_or(|to| {
            to == user
                || to == post.author
                || match list.replies {
                    ListReplies::List => is_member(to),
                    ListReplies::Followed => self.follows.contains(&(user, to)) && !is_muted(to),
                    ListReplies::None => false,
                }
        });
        let is_addressed = post.visibility != Visibility::Direct || post.mentions.contains(&user);
        is_wanted && is_addressed
    }

    /// Page of the timeline of a list.
    pub(crate) fn list_timeline(
        &self,
        list: (u32, u64),
        page: &Page,
        orphans: &[u64],
    ) -> PageOf<PostId> {
        let newest_first = self.listed_posts(orphans);
        let newest_first = newest_first.filter(|(_, post)| self.is_listed(list, post));
        page_of(newest_first.map(|(id, _)| id), page)
    }
}
