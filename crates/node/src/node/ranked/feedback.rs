//! Feedback of a user on posts and authors of ranked feeds: "less like this" and "not this author".
//!
//! **Invariant:** it changes only the feeds of this user.

use feed::{Facts, Post, PostId, Reaction, UserId};
use rows::Span;
use store::Store;

use crate::views::ranked::{Less, Ranked};

/// Number of posts, the last ones first, of which the viewer wants less and that are compared with candidates.
const LESS_READ: usize = 100;

/// Posts of which a user wants to see less, with their subjects.
pub(super) fn less(facts: Facts<'_, Store>, user: UserId, view: &Ranked) -> Less {
    let found = Span::below(None, LESS_READ)
        .map_or_else(Vec::new, |span| facts.reactions_of(user, Reaction::Less, span));
    let mut less = view.less(found.into_iter().map(|(_, post)| post).collect());
    let older = std::mem::take(&mut less.older).into_iter();
    less.authors.extend(older.filter_map(|post| Some(facts.post(post)?.author)));
    less
}

/// Feedback of a user, for a page.
pub(super) struct Feedback {
    /// Authors in whom the user is not interested, in ascending order of ids.
    not_interested: Vec<UserId>,
    /// Whether there are posts of which the user wants less.
    has_less: bool,
}

impl Feedback {
    pub(super) fn of(facts: Facts<'_, Store>, user: UserId) -> Self {
        let one = Span { limit: 1, ..Span::ALL };
        let has_less = !facts.reactions_of(user, Reaction::Less, one).is_empty();
        Self { not_interested: facts.not_interested(user), has_less }
    }

    /// Whether a post leaves the feeds of the user. Posts by authors in whom the user is not interested stay if they
    /// come from the home timeline.
    pub(super) fn hides(
        &self,
        facts: Facts<'_, Store>,
        user: UserId,
        (id, post): (PostId, &Post),
        comes_from_home: bool,
    ) -> bool {
        !comes_from_home && self.not_interested.binary_search(&post.author).is_ok()
            || self.has_less && facts.reaction(user, id, Reaction::Less).is_some()
    }
}
