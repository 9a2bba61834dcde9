//! A stories home: the live stories of all of a user's friends, newest first.
//!
//! [`gather`] computes a page on each read; nothing is cached. A cursor is the id of a story. The page
//! after a cursor is the same whether that story is still live or not.

use rows::Span;

use crate::gather;
use crate::ids::{StoryId, UserId};
use crate::page::{Page, PageOf};

/// A story on a page of a stories home.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoryRef {
    /// Id of the story.
    pub story: StoryId,
    /// Its author.
    pub author: UserId,
    /// When it expires, in milliseconds since 1970.
    pub expires_ms: u64,
}

impl From<StoryRef> for u64 {
    fn from(story: StoryRef) -> Self {
        story.story.0
    }
}

/// Gathers a page of the stories home of a user with these `friends`. `live_stories_by` appends a
/// friend's live stories within a span, in its order, and may append fewer than the limit only if
/// there are no more.
///
/// The cost is one short read per friend and grows with the size of the page, not with the number of
/// stories that friends have.
pub fn gather(
    friends: &[UserId],
    page: &Page<StoryId>,
    mut live_stories_by: impl FnMut(UserId, Span, &mut Vec<StoryRef>),
) -> PageOf<StoryRef> {
    // All that is read is on the page or one of its list's items: nothing is hidden here.
    let rows_max = usize::MAX;
    let read = |friend, span: Span, found: &mut Vec<StoryRef>| {
        let before = found.len();
        live_stories_by(friend, span, found);
        let full = found.len() - before >= span.limit;
        found.last().filter(|_| full).map(|last| last.story.0)
    };
    gather::gather(friends.iter().copied(), page, rows_max, read).page
}
