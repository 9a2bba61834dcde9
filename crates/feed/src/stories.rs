//! A stories home: the live stories of all of a user's friends, newest first.
//!
//! [`gather`] computes a page on each read; nothing is cached. A cursor is the id of a story. The page
//! after a cursor is the same whether that story is still live or not.

use rows::Span;

use crate::ids::{StoryId, UserId};
use crate::page::{Item, Page, PageOf};
use crate::scan::{Batch, Shown, merged, scan};

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

impl Item for StoryRef {
    fn id(&self) -> u64 {
        self.story.0
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
