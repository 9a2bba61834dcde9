//! Lists of posts that pages are read from directly: each row of a list can be on a page.
//!
//! Direct posts, replies and boosts are not in the public lists, so they neither delay a page of the public timeline
//! nor displace a post from it.

use rows::{Rows, SetTable, Span};

use crate::facts::{Facts, Txn};
use crate::ids::{PostId, UserId};
pub use crate::index::PublicList;
use crate::index::{self, pictures_of};
use crate::limits::RELISTED_POSTS_MAX;
use crate::page::{Page, PageOf};
use crate::posts::{Listed, Posted};
use crate::scan::{Batch, Shown, scan};
use crate::tags::Tagged;
use crate::visible::Viewer;

/// Returns a page of a list without the posts of users whom the viewer may not see or has muted.
pub fn posts<R: Rows + ?Sized>(
    viewer: &Viewer<'_, R>,
    list: PublicList,
    page: &Page,
) -> PageOf<PostId> {
    let facts = viewer.facts();
    let read = |span| Batch::of(facts.public_posts(list, span), span);
    scan(page, read, |(post, author)| {
        Shown::when(!facts.is_being_erased(author) && viewer.wants_public_by(author), post)
    })
}

/// Number of rows to read for a count about a post if some of the counted rows are about to be removed.
const REPLIES_READ: usize = 1_000;

impl<R: Rows + ?Sized> Facts<'_, R> {
    /// Posts of a list within `span` of post ids, each with its author, who may be deleted: see [`Facts::is_being_erased`].
    #[must_use]
    pub fn public_posts(&self, list: PublicList, span: Span) -> Vec<Tagged> {
        let rows = self.rows.members(SetTable::PostLists, list.owner(), span);
        rows.into_iter().map(|(post, author)| (PostId(post), UserId(author as u32))).collect()
    }

    /// Posts with pictures by a user: see [`Facts::posts_by`].
    #[must_use]
    pub fn pictures_by(&self, author: UserId, span: Span) -> Vec<Posted> {
        if self.is_being_erased(author) {
            return Vec::new();
        }
        let rows = self.rows.members(SetTable::PostLists, pictures_of(author), span);
        rows.into_iter().map(|(post, number)| (PostId(post), Listed::of_number(number))).collect()
    }

    /// Whether a post by `author` has pictures. Does not read the post.
    #[must_use]
    pub fn has_pictures(&self, (post, author): Tagged) -> bool {
        self.rows.member(SetTable::PostLists, pictures_of(author), post.0).is_some()
    }

    /// Users other than `author` among the authors of the first `max` public and unlisted replies to a post.
    #[must_use]
    pub fn repliers(&self, post: PostId, author: UserId, max: usize) -> Vec<UserId> {
        let span = Span { limit: max, ..Span::ALL };
        let rows = self.rows.members(SetTable::OpenReplies, post.0, span).into_iter();
        let mut users: Vec<_> = rows.map(|(_, user)| UserId(user as u32)).collect();
        users.retain(|user| *user != author);
        users.sort_unstable();
        users.dedup();
        users
    }

    /// Number of posts in a table of public and unlisted posts about a post, counted up to `max`, without those by deleted
    /// or disabled users.
    #[must_use]
    pub fn open_count(&self, table: SetTable, post: PostId, max: usize) -> usize {
        let read = |limit| {
            let span = Span { limit, ..Span::ALL };
            let rows = self.rows.members(table, post.0, span);
            let found = rows.len();
            let authors = rows.into_iter().map(|(_, author)| UserId(author as u32));
            let shown =
                authors.filter(|user| !self.is_being_erased(*user) && !self.is_disabled(*user));
            (shown.take(max).count(), found)
        };
        match read(max) {
            // Rows of hidden users are removed soon.
            (shown, found) if shown < found => read(REPLIES_READ).0,
            (shown, _) => shown,
        }
    }
}

impl Txn<'_> {
    /// Removes some posts of a user from lists shared by many authors, or adds them again, as the state of the account
    /// requires, starting at `from`. Returns the first post that may be left, if any.
    pub(crate) fn relist_posts(&mut self, user: UserId, from: PostId) -> Option<u64> {
        let span = Span { low: from.0, limit: RELISTED_POSTS_MAX, ..Span::ALL };
        let posts = self.facts().posts_by(user, span);
        let is_disabled = self.facts().is_disabled(user);
        let open = posts.iter().filter(|(_, listed)| listed.visibility().is_open());
        for (id, _) in open.filter(|(_, listed)| !listed.is_boost()) {
            let Some(post) = self.facts().stored_post(*id) else { continue };
            for row in index::shared_of_post(*id, &post) {
                if is_disabled { row.remove(self.rows) } else { row.put(self.rows) }
            }
        }
        let last = posts.last().filter(|_| posts.len() >= RELISTED_POSTS_MAX);
        last.map(|(post, _)| post.0 + 1)
    }
}
