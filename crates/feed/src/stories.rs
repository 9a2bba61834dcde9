//! What a stories home is: the newest live stories of all of a person's friends, newest first.
//!
//! [`gather`] computes a page of exactly that on each read; there is nothing to keep warm. A cursor
//! is the id of a story, and pages stay the same behind it whether that story still lives or not.

use rows::Span;

use crate::gather;
use crate::ids::{StoryId, UserId};
use crate::page::{Page, PageOf};

/// A story as stories homes know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoryRef {
    /// Which.
    pub story: StoryId,
    /// By whom.
    pub author: UserId,
    /// From when on nobody sees it, in milliseconds since 1970.
    pub expires_ms: u64,
}

impl From<StoryRef> for u64 {
    fn from(told: StoryRef) -> Self {
        told.story.0
    }
}

/// Gathers a page of the stories home of somebody with these `friends`. `live_stories_by` appends a
/// friend's live stories within a span, in its order, and may append fewer than the limit only if
/// there are no more.
///
/// The cost is one short read a friend and grows with the page, not with how many stories friends
/// have.
pub fn gather(
    friends: &[UserId],
    page: &Page<StoryId>,
    mut live_stories_by: impl FnMut(UserId, Span, &mut Vec<StoryRef>),
) -> PageOf<StoryRef> {
    gather::gather(friends.iter().copied(), page, |friend, span, found| {
        let before = found.len();
        live_stories_by(friend, span, found);
        let full = found.len() - before >= span.limit;
        found.last().filter(|_| full).map(|told| told.story.0)
    })
}
