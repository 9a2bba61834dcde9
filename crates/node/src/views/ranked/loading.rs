//! Loading of the view from the facts, and the first interest groups.
//!
//! The thread builds a new view, which readers do not see, so that no reader waits. The interest groups are found
//! before the lists of their popular posts are filled.

use feed::post_lists::PublicList;
use feed::{Facts, PostCounts, PostId, Reaction, UserId};
use parking_lot::RwLock;
use rows::{Rows, SetTable, Span};
use store::unless_unreadable;

use super::View;
use super::events::{Event, Reader};

/// Maximum number of reactions of a post that are read.
const REACTIONS_LOADED: usize = 64;
/// Number of posts that are read at a time.
const LOADED_AT_ONCE: usize = 1_024;
/// Maximum number of followed users of a user that are read to find the user's group.
const NEIGHBORS_READ: usize = 64;
/// Maximum number of passes over the loaded users, and of users in all passes, to find the first groups.
const PASSES_MAX: usize = 8;
const GROUPED_FIRST_MAX: usize = 1 << 18;
/// Share of users who change their group in a pass from which on the first groups are good enough.
const FEW: usize = 50;

impl<R: Rows + ?Sized> Reader<'_, R> {
    /// Applies the events of the newest posts after `last`, oldest first, each followed by the reactions to it. So the
    /// last reactions of a user are about those to the newest posts. Posts with unreadable rows are left out. Ends
    /// early if `is_stopped`.
    pub(super) fn load(
        &self,
        last: PostId,
        max: usize,
        mut is_stopped: impl FnMut() -> bool,
        mut apply: impl FnMut(Event),
    ) {
        for (id, author) in newest(self.facts, last, max).into_iter().rev() {
            if is_stopped() {
                return;
            }
            let events = unless_unreadable(|| self.load_post(id, author));
            events.into_iter().flatten().for_each(&mut apply);
        }
    }

    fn load_post(&self, id: PostId, author: UserId) -> Vec<Event> {
        let facts = self.facts;
        let Some(post) = facts.post(id) else { return Vec::new() };
        let mut events = vec![self.posted(id, &post)];
        if facts.post_counts(id) != PostCounts::default() {
            let counts = self.counts(id, author);
            for (_, reaction, user, _) in facts.reactions_to(id, 0, REACTIONS_LOADED) {
                if matches!(reaction, Reaction::Favourite | Reaction::Boost) {
                    events.push(Event::Reacted { user, post: id, is_added: true, counts });
                }
            }
        }
        match self.repliers(id, author) {
            0 => {}
            replies => events.push(Event::Replied { post: id, replies }),
        }
        events
    }
}

/// Newest posts of the public timeline after `after`, newest first.
fn newest<R: Rows + ?Sized>(
    facts: Facts<'_, R>,
    after: PostId,
    max: usize,
) -> Vec<(PostId, UserId)> {
    let mut posts = Vec::new();
    let low = after.0 + 1;
    let mut rest = Span::below(None, LOADED_AT_ONCE.min(max)).map(|span| Span { low, ..span });
    while let Some(span) = rest.filter(|span| span.limit > 0) {
        let found = facts.public_posts(PublicList::Posts, span);
        let last = found.last().filter(|_| found.len() >= span.limit).map(|(post, _)| post.0);
        posts.extend(found);
        rest = last.and_then(|last| span.beyond(last, LOADED_AT_ONCE.min(max - posts.len())));
    }
    posts
}

/// Finds the groups of the users of a new view, and fills the lists of popular posts of the groups. Ends early if
/// `is_stopped`.
pub(super) fn find_groups<R: Rows + ?Sized>(
    view: &RwLock<View>,
    facts: Facts<'_, R>,
    mut is_stopped: impl FnMut() -> bool,
) {
    let mut left = GROUPED_FIRST_MAX;
    for _ in 0..PASSES_MAX {
        let (mut place, mut changed) = (0, 0);
        loop {
            let Some(user) = view.read().reactions.at(place).filter(|_| left > 0) else { break };
            if is_stopped() {
                return;
            }
            (place, left) = (place + 1, left - 1);
            let group = unless_unreadable(|| joined(view, facts, user)).flatten();
            if let Some(group) = group {
                changed += usize::from(view.write().reactions.set_group(user, group));
            }
        }
        if changed * FEW <= place {
            break;
        }
    }
    view.write().raise_in_groups();
}

/// Group that a user joins: that of most of the followed users and of the authors of posts to which the user reacted.
/// Groups are the labels of an asynchronous label propagation, which follows changes of the graph.
pub(super) fn joined<R: Rows + ?Sized>(
    view: &RwLock<View>,
    facts: Facts<'_, R>,
    user: UserId,
) -> Option<super::reactions::Group> {
    let span = Span { limit: NEIGHBORS_READ, ..Span::ALL };
    let followed = facts.users_in(SetTable::Following, user, span);
    let view = view.read();
    let liked = view.reactions.of(user).filter_map(|post| view.posts.get(post));
    let neighbors = followed.into_iter().chain(liked.map(|post| post.author));
    view.reactions.joined(user, neighbors)
}
