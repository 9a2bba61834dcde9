//! Facts about lists of posts: see [`crate::post_lists`].

use rows::{Rows, SetTable, Span};

use super::Facts;
use super::tags::Tagged;
use crate::ids::{PostId, UserId};
use crate::list_rows::{PublicList, pictures_of};
use crate::post::{Listed, Posted};

impl<R: Rows + ?Sized> Facts<'_, R> {
    /// Posts of a list within `span` of post ids, each with its author, who may be deleted: see [`Facts::is_hidden`].
    #[must_use]
    pub fn public_posts(&self, list: PublicList, span: Span) -> Vec<Tagged> {
        let rows = self.rows.members(SetTable::PostLists, list.owner(), span);
        rows.into_iter().map(|(post, author)| (PostId(post), UserId(author as u32))).collect()
    }

    /// Posts with pictures by a user: see [`Facts::posts_by`].
    #[must_use]
    pub fn pictures_by(&self, author: UserId, span: Span) -> Vec<Posted> {
        if self.is_hidden(author) {
            return Vec::new();
        }
        let rows = self.rows.members(SetTable::PostLists, pictures_of(author), span);
        rows.into_iter().map(|(post, number)| (PostId(post), Listed::of_number(number))).collect()
    }

    /// Whether a post by `author` has pictures, without reading it.
    #[must_use]
    pub fn has_pictures(&self, (post, author): Tagged) -> bool {
        self.rows.member(SetTable::PostLists, pictures_of(author), post.0).is_some()
    }
}
