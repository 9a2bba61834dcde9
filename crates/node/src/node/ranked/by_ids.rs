//! Pages of a ranked feed for clients that page with ids of posts, as those of the Mastodon API do.

use feed::{Page, PageOf, PostId, UserId};
use rank::Feed;

use super::{Node, RankedPage, RankedPlace};

/// Time since the last page of a ranking after which a request for newer posts makes a new ranking, in milliseconds.
/// Clients that ask until nothing is newer come to an end, and clients that ask often displace no ranking that is being
/// read.
const RENEWED_AFTER_MS: u64 = 60_000;

impl Node {
    /// Reads a page of a ranked feed in the order of the ranking. May block.
    ///
    /// The page is the first one of a new ranking if it has no bounds or is above a post; above a post, it is empty if
    /// a page of a kept ranking was read less than a minute ago. Below a post, the page continues the ranking after
    /// this post; it is empty if no kept ranking has the post.
    #[must_use]
    pub fn ranked_by_ids(
        &self,
        user: UserId,
        (name, feed): (&str, &Feed),
        page: &Page,
    ) -> PageOf<PostId> {
        let (snapshots, now_ms) = (self.views().ranked.snapshots(), self.now_ms());
        let place = match (page.below, page.above) {
            (Some(below), _) => {
                let place = snapshots.place_after(user, name, PostId(below), now_ms);
                let Some((snapshot, index)) = place else { return PageOf::default() };
                Some(RankedPlace { snapshot, index })
            }
            (None, Some(_))
                if snapshots.has_since(user, name, now_ms.saturating_sub(RENEWED_AFTER_MS)) =>
            {
                return PageOf::default();
            }
            (None, _) => None,
        };
        let asked = RankedPage { place, limit: page.limit, explains: false };
        let Some((posts, next)) = self.ranked(user, (name, feed), &asked) else {
            return PageOf::default();
        };
        let next = next.and(posts.last()).map(|last| last.post.0);
        PageOf { items: posts.into_iter().map(|found| found.post).collect(), next }
    }
}
