//! Timeline of a list: posts and boosts by its members, newest first, that the owner may see and has not muted.
//!
//! It resembles the home timeline of a user who follows only the members, but has no posts of the owner, and the list
//! decides about replies to others. A boost is left out if a member wrote or boosted the same post shortly before.

use std::cell::OnceCell;

use rows::Rows;

use crate::facts::Facts;
use crate::ids::{PostId, UserId};
use crate::lists::{List, ListId, ListReplies};
use crate::page::{Page, PageOf};
use crate::posts::{Posted, Visibility};
use crate::scan::{Batch, Shown, merged, scan};
use crate::visible::Viewer;

/// Authors and rules of the timeline of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListTimeline {
    owner: UserId,
    /// Members who are neither deleted nor muted by the owner, sorted.
    members: Vec<UserId>,
    /// Users other than the owner to whom the timeline shows replies, sorted.
    replied: Vec<UserId>,
    /// Users whose boosts the owner hides, sorted.
    without_boosts: Vec<UserId>,
}

impl ListTimeline {
    /// Timeline of a list of `owner`; `None` if the list does not exist.
    #[must_use]
    pub fn new<R: Rows + ?Sized>(facts: Facts<'_, R>, owner: UserId, list: ListId) -> Option<Self> {
        let replies = facts.list(owner, list)?.replies;
        // Read before the members, so that a member whose removal ends meanwhile is not shown.
        let erasing = facts.erasing();
        let mut members = facts.without_unwanted(owner, facts.list_members(owner, list));
        members.retain(|member| !erasing.contains(member));
        let replied = match replies {
            ListReplies::List => members.clone(),
            ListReplies::Followed => facts.home_authors(owner).users.into(),
            ListReplies::None => Vec::new(),
        };
        let without_boosts = facts.without_boosts(owner);
        Some(Self { owner, members, replied, without_boosts })
    }

    /// Returns a page of the timeline, without boosts of posts by users who are hidden from the owner. The page ends
    /// early after thousands of posts that are not in the timeline.
    #[must_use]
    pub fn posts<R: Rows + ?Sized>(&self, viewer: &Viewer<'_, R>, page: &Page) -> PageOf<PostId> {
        let facts = viewer.facts();
        let among = |users: &[UserId], user: UserId| users.binary_search(&user).is_ok();
        let is_member = |user| among(&self.members, user);
        let is_replied = |user| among(&self.replied, user);
        let hides_boosts = |user| among(&self.without_boosts, user);
        let rule = Rule { viewer, owner: self.owner, is_member, is_replied, hides_boosts };
        let posts = merged(self.members.iter().copied(), |author, span| {
            let posts = Batch::of(facts.posts_by(*author, span), span);
            posts.filter_map(|posted| rule.has(*author, posted).then_some(posted.0))
        });
        scan(page, posts, Shown::Yes)
    }
}

/// Whether a post by `author` is in the timeline of a list of `owner`. Takes a few lookups, regardless of the number of
/// members.
#[must_use]
pub fn is_in_list<R: Rows + ?Sized>(
    viewer: &Viewer<'_, R>,
    (owner, list): (UserId, ListId),
    author: UserId,
    posted: Posted,
) -> bool {
    let facts = viewer.facts();
    let is_shown = |user| {
        facts.mute(owner, user).is_none()
            && !facts.is_being_erased(user)
            && !facts.is_disabled(user)
    };
    let is_member = |user| facts.is_list_member(owner, list, user) && is_shown(user);
    if !is_member(author) {
        return false;
    }
    let Some(List { replies, .. }) = facts.list(owner, list) else { return false };
    let is_replied = |user| match replies {
        ListReplies::List => is_member(user),
        ListReplies::Followed => facts.follows(owner, user) && is_shown(user),
        ListReplies::None => false,
    };
    let hidden = OnceCell::new();
    let hides_boosts = |user| {
        let hidden: &Vec<UserId> = hidden.get_or_init(|| facts.without_boosts(owner));
        hidden.binary_search(&user).is_ok()
    };
    Rule { viewer, owner, is_member, is_replied, hides_boosts }.has(author, posted)
}

/// Decides which posts of members are in the timeline of a list.
struct Rule<'a, R: Rows + ?Sized, M, P, H> {
    viewer: &'a Viewer<'a, R>,
    owner: UserId,
    is_member: M,
    /// Whether the timeline shows replies to a user other than the owner.
    is_replied: P,
    /// Whether the owner hides boosts by a user.
    hides_boosts: H,
}

impl<R, M, P, H> Rule<'_, R, M, P, H>
where
    R: Rows + ?Sized,
    M: Fn(UserId) -> bool,
    P: Fn(UserId) -> bool,
    H: Fn(UserId) -> bool,
{
    fn has(&self, author: UserId, (post, listed): Posted) -> bool {
        if let Some(boost) = listed.boosted() {
            let is_known = boost.is_recent && (self.is_member)(boost.author);
            let facts = self.viewer.facts();
            let is_hidden =
                || !facts.exists(boost.author) || !self.viewer.wants_boosts_of(boost.author);
            let earlier = || facts.stored_post(post).and_then(|post| post.home_users());
            let shows_boosts = |user: UserId| (self.is_member)(user) && !(self.hides_boosts)(user);
            let was_boosted =
                || earlier().is_some_and(|users| users.iter().copied().any(shows_boosts));
            return !((self.hides_boosts)(author)
                || is_known
                || is_hidden()
                || boost.has_earlier && was_boosted());
        }
        let is_wanted = |to: UserId| to == author || to == self.owner || (self.is_replied)(to);
        let is_allowed = || {
            let is_mentioned = || self.viewer.facts().is_mentioned(self.owner, post);
            listed.visibility() != Visibility::Direct || is_mentioned()
        };
        listed.reply_to().is_none_or(is_wanted) && is_allowed()
    }
}
