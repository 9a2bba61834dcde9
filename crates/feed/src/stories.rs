//! Page of stories: the live stories of a user's friends, newest first.
//!
//! [`gather`] computes a page on each read; nothing is cached. A cursor is the id of a story. The page
//! after a cursor does not depend on whether that story is still live.

use rows::Span;

use crate::ids::{StoryId, UserId};
use crate::page::{Item, Page, PageOf};
use crate::scan::{Batch, Shown, merged, scan};

/// A story on a page of stories.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoryRef {
    /// Id of the story.
    pub story: StoryId,
    /// Author of the story.
    pub author: UserId,
    /// Time of expiry, in milliseconds since 1970.
    pub expires_ms: u64,
}

impl Item for StoryRef {
    fn id(&self) -> u64 {
        self.story.0
    }
}

/// Gathers a page of the stories of these `friends`. `live_stories_by` appends a friend's live stories within a span,
/// in its order, and fewer than the limit only at the end.
///
/// The cost is one short read per friend and grows with the size of the page, not with the number of stories.
pub fn gather(
    friends: &[UserId],
    page: &Page,
    mut live_stories_by: impl FnMut(UserId, Span, &mut Vec<StoryRef>),
) -> PageOf<StoryRef> {
    let stories = merged(friends.iter().copied(), |friend, span| {
        let mut found = Vec::new();
        live_stories_by(*friend, span, &mut found);
        Batch::of(found, span)
    });
    scan(page, stories, Shown::Yes)
}
