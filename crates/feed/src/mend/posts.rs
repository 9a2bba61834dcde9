//! Posts, and the rows by author, by mentioned user and by the post replied to.

use rows::{PointTable, RowsMut, Scan, SetTable};

use super::{Mend, Rows, at};
use crate::ids::PostId;
use crate::records::Post;

impl Mend {
    pub(super) fn post<R: Scan + RowsMut>(
        &mut self,
        step: &mut Rows<'_, R>,
        key: u64,
        value: &[u8],
    ) {
        let post = Post::decode(value);
        if step.user(post.author.0.into()).is_none() {
            step.lost(format!("post {}: there is no user {}", at(key), post.author.0));
            step.rows.put_point(PointTable::Post, key, None);
            return;
        }
        if step.is_gone(post.author) {
            self.erase_again(step, post.author);
        }
        let last = post.edited.map_or(key, |edited| edited.0.max(key));
        self.counted.last_stamp = self.counted.last_stamp.max(last);
        let mut missing = Vec::new();
        if step.set(SetTable::AuthorPosts, post.author.0.into(), key, Some(post.listed().number()))
        {
            missing.push("by author");
        }
        // Mentions of deleted users are removed, and the post still names them.
        for user in &post.mentions {
            let is_user = step.user(user.0.into()).is_some() && !step.is_deleted(*user);
            if is_user && step.set(SetTable::Mentions, user.0.into(), key, Some(0)) {
                missing.push("by mentioned user");
            }
        }
        if let Some(parent) = post.in_reply_to
            && step.set(SetTable::Replies, parent.0, key, Some(post.visibility as u64))
        {
            missing.push("by the post replied to");
        }
        if !self.is_check {
            step.add_tags(PostId(key), &post);
        }
        if !missing.is_empty() {
            step.derived(format!(
                "post {}: rows are missing or wrong: {}",
                at(key),
                missing.join(", ")
            ));
        }
    }
}

impl<R: Scan + RowsMut> Rows<'_, R> {
    fn stored_post(&self, id: u64) -> Option<Post> {
        self.facts().stored_post(PostId(id))
    }

    pub(super) fn author_post(&mut self, owner: u64, item: u64) {
        match self.stored_post(item) {
            Some(post) if u64::from(post.author.0) == owner => return,
            Some(post) => {
                self.derived(format!(
                    "AuthorPosts {owner}, {item}: the author is user {}",
                    post.author.0
                ));
            }
            None => self.lost(format!("post {} of user {owner}: its text is lost", at(item))),
        }
        self.rows.put_member(SetTable::AuthorPosts, owner, item, None);
    }

    pub(super) fn mention(&mut self, owner: u64, item: u64) {
        let post = self.stored_post(item);
        if !post.is_some_and(|post| post.mentions.iter().any(|user| u64::from(user.0) == owner)) {
            self.derived(format!("Mentions {owner}, {item}: no such post mentions the user"));
            self.rows.put_member(SetTable::Mentions, owner, item, None);
        }
    }

    pub(super) fn reply(&mut self, owner: u64, item: u64) {
        if self.stored_post(item).and_then(|post| post.in_reply_to) != Some(PostId(owner)) {
            self.derived(format!(
                "Replies {owner}, {item}: the reply does not exist, or is to another post"
            ));
            self.rows.put_member(SetTable::Replies, owner, item, None);
        }
    }
}
