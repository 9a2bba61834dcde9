//! Times at which stories were posted, and the stories that a home page must therefore show. If the machine stalls, a
//! story may expire before it is posted again; a page read in between rightly lacks it. Pages are therefore judged by
//! the measured times, not by the planned ones.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// Maximum difference between the clocks of a design and of the trial. The engine uses whole milliseconds of the
/// system's clock, which may be adjusted.
const CLOCKS_DIFFER: Duration = Duration::from_millis(20);

/// Begin and end of a period in which an event happened.
#[derive(Clone, Copy)]
pub(super) struct Span {
    pub(super) begin: Instant,
    pub(super) end: Instant,
}

/// Times at which each author posted all stories, in order.
pub(super) struct Posted {
    spans: Vec<Vec<Span>>,
    life: Duration,
}

/// Requirement for the stories of an author on a home page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Must {
    Show,
    Hide,
    /// Both are right: the stories were posted, or expired, while the page was read.
    Either,
}

impl Posted {
    /// Creates an empty record of `authors` authors, whose stories live for `life_s` seconds.
    pub(super) fn new(authors: u32, life_s: u32) -> Self {
        let life = Duration::from_secs(life_s.into());
        Self { spans: vec![Vec::new(); authors as usize], life }
    }

    /// Records that the author posted all stories within this period.
    pub(super) fn add(&mut self, author: u32, span: Span) {
        if let Some(spans) = self.spans.get_mut(author as usize) {
            spans.push(span);
        }
    }

    fn must(&self, author: u32, read: Span) -> Must {
        let spans = self.spans.get(author as usize).map_or(&[][..], Vec::as_slice);
        let is_live = |posted: &Span| {
            posted.end <= read.begin && posted.begin + self.life > read.end + CLOCKS_DIFFER
        };
        let may_be_live = |posted: &Span| {
            posted.begin <= read.end && posted.end + self.life + CLOCKS_DIFFER > read.begin
        };
        if spans.iter().any(is_live) {
            Must::Show
        } else if spans.iter().any(may_be_live) {
            Must::Either
        } else {
            Must::Hide
        }
    }

    /// Stories that the page handles rightly, plus those that do not belong there. For a right page, the result is
    /// exactly `wanted`: the stories of all friends, with their authors.
    pub(super) fn right(
        &self,
        read: Span,
        page: Vec<u64>,
        wanted: impl Iterator<Item = (u32, u64)>,
    ) -> BTreeSet<u64> {
        let mut page: BTreeSet<u64> = page.into_iter().collect();
        let mut right = BTreeSet::new();
        for (author, story) in wanted {
            let is_shown = page.remove(&story);
            let is_right = match self.must(author, read) {
                Must::Show => is_shown,
                Must::Hide => !is_shown,
                Must::Either => true,
            };
            right.extend(is_right.then_some(story));
        }
        right.append(&mut page);
        right
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Author 0 posts story 7 at 100 to 110 ms, and again at 600 to 610 ms, with a TTL of a second. Author 1 posts
    /// story 8 once.
    #[test]
    fn a_page_is_judged_by_when_stories_were_posted() {
        let start = Instant::now();
        let span = |begin: u64, end: u64| Span {
            begin: start + Duration::from_millis(begin),
            end: start + Duration::from_millis(end),
        };
        let mut posted = Posted::new(2, 1);
        posted.add(0, span(100, 110));
        posted.add(0, span(600, 610));
        posted.add(1, span(0, 5));
        let check = |read: (u64, u64), page: &[u64], is_right: bool| {
            let wanted = [(0, 7), (1, 8)].into_iter();
            let found = posted.right(span(read.0, read.1), page.to_vec(), wanted);
            assert_eq!(found == [7, 8].into(), is_right, "{read:?} {page:?}: {found:?}");
        };
        check((200, 210), &[7, 8], true);
        check((200, 210), &[8], false);
        check((200, 210), &[7, 7, 8], true);
        check((200, 210), &[7, 8, 9], false);
        // The page is read while the first story is posted.
        check((105, 108), &[8], true);
        check((105, 108), &[7, 8], true);
        // The page has a story that was not posted yet.
        check((50, 60), &[7, 8], false);
        check((50, 60), &[8], true);
        // Story 8 expires at 1,000 to 1,005 ms. A read that stalls may or may not see it.
        check((700, 1_400), &[7], true);
        check((900, 990), &[7, 8], true);
        check((1_100, 1_110), &[7, 8], false);
        check((1_100, 1_110), &[7], true);
        // All stories have expired. They were not posted again in time.
        check((1_700, 1_710), &[], true);
        check((1_700, 1_710), &[7], false);
        check((1_605, 1_606), &[7], true);
    }
}
