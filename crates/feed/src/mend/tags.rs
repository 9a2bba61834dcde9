//! Hashtags: their rows follow from public posts.

use rows::{NameTable, RowsMut, Scan};

use super::Rows;
use crate::facts::{Facts, read_post};
use crate::ids::{PostId, UserId};
use crate::records::Post;
use crate::tag::Tag;
use crate::write;

impl<R: Scan + RowsMut> Rows<'_, R> {
    /// Adds the hashtags of a post; returns whether any were missing.
    pub(super) fn add_tags(&mut self, id: PostId, post: &Post) -> bool {
        let is_missing = |tag: &Tag, rows: &R| {
            let key = write::author_tag_key(post.author, tag, id);
            !Facts::new(rows).has_tag(tag, (id, post.author))
                || rows.name(NameTable::AuthorTag, &key).is_none()
        };
        let missing: Vec<_> =
            post.tags().into_iter().filter(|tag| is_missing(tag, self.rows)).collect();
        for tag in &missing {
            write::tag(self.rows, tag, (id, post.author), true);
        }
        !missing.is_empty()
    }

    /// A row of a hashtag, whose post must have it.
    pub(super) fn tag_post(&mut self, name: &[u8]) {
        let end = name.iter().position(|byte| *byte == 0);
        let parts = end.and_then(|end| Some((name.get(..end)?, name.get(end + 1..)?)));
        let post = parts.and_then(|(tag, post)| Some((Tag::of_row(tag)?, read_post(post)?)));
        let is_right = post.is_some_and(|(tag, post)| self.post_has_tag(&tag, post));
        self.keep_name(NameTable::TagPost, name, is_right);
    }

    /// A hashtag in a row of its author.
    pub(super) fn author_tag(&mut self, name: &[u8]) {
        let found = || {
            let (author, rest) = name.split_first_chunk()?;
            let (rest, post) = rest.split_last_chunk()?;
            let tag = Tag::of_row(rest.strip_suffix(&[0])?)?;
            Some((tag, (PostId(!u64::from_be_bytes(*post)), UserId(u32::from_be_bytes(*author)))))
        };
        let is_right = found().is_some_and(|(tag, post)| self.post_has_tag(&tag, post));
        self.keep_name(NameTable::AuthorTag, name, is_right);
    }

    /// A hashtag that a profile shows, or that a user follows.
    pub(super) fn user_tag(&mut self, table: NameTable, name: &[u8]) {
        let user = name.first_chunk().map(|user| u32::from_be_bytes(*user));
        let user = user.and_then(|user| self.user(user.into()));
        let tag = name.get(4..).and_then(|tag| std::str::from_utf8(tag).ok());
        let is_tag = tag.is_some_and(|tag| Tag::parse(tag).is_ok());
        let exists = user.is_some_and(|user| !self.is_gone(user));
        self.keep_name(table, name, is_tag && exists);
    }

    fn post_has_tag(&self, tag: &Tag, (post, author): (PostId, UserId)) -> bool {
        let post = self.facts().stored_post(post);
        post.is_some_and(|post| post.author == author && post.tags().contains(tag))
    }

    fn keep_name(&mut self, table: NameTable, name: &[u8], is_right: bool) {
        if !is_right {
            let shown = name.escape_ascii();
            self.derived(format!("{table:?} {shown}: no post or user has this hashtag"));
            self.rows.put_name(table, name, None);
        }
    }
}
