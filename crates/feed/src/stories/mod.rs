//! Stories: their stored records and durations, and pages of stories: the live stories of a user's friends, newest first.
//!
//! [`gather`] computes a page on each read; nothing is cached. A cursor is the id of a story. The page
//! after a cursor does not depend on whether that story is still live.

pub(crate) mod facts;
pub(crate) mod mend;
pub(crate) mod rules;

use rows::Span;
use serde::{Deserialize, Serialize};

use crate::ids::{StoryId, UserId};
use crate::limits;
use crate::page::{Item, Page, PageOf};
use crate::refusal::Refusal;
use crate::scan::{Batch, Shown, merged, scan};

/// A posted story that is not swept yet. The id contains the time of posting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Story {
    /// Author of the story.
    pub author: UserId,
    /// Time of expiry in milliseconds since 1970; 0 once the story is deleted.
    pub expires_ms: u64,
    /// Upper bound of the number of view rows that are not swept: a second view by the same friend counts again. The
    /// number of sweep commands depends on this count only, since the rows are ephemeral.
    pub views: u32,
}

impl Story {
    /// Whether users can see the story at `now_ms`, in milliseconds since 1970.
    #[must_use]
    pub fn is_live(&self, now_ms: u64) -> bool {
        let now_ms = now_ms - u64::from(rows::has_bug("show-expired-story"));
        now_ms < self.expires_ms
    }
}

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

/// Lifetime of a story: one second to seven days, stored in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lifetime(u64);

impl Lifetime {
    /// Checks a number of seconds.
    ///
    /// # Errors
    /// [`Refusal::BadLifetime`] if it is not 1 to 604,800.
    pub fn from_secs(secs: u64) -> Result<Self, Refusal> {
        if (limits::STORY_SECS_MIN..=limits::STORY_SECS_MAX).contains(&secs) {
            Ok(Self(secs * 1_000))
        } else {
            Err(Refusal::BadLifetime)
        }
    }

    /// Lifetime in milliseconds.
    #[must_use]
    pub const fn ms(self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lifetime_is_one_second_to_seven_days() {
        for (secs, expect_ms) in [
            (0, None),
            (1, Some(1_000)),
            (86_400, Some(86_400_000)),
            (604_800, Some(604_800_000)),
            (604_801, None),
            (u64::MAX, None),
        ] {
            assert_eq!(Lifetime::from_secs(secs).ok().map(Lifetime::ms), expect_ms, "{secs} s");
        }
    }
}
