//! Posts, and the rows by author, by mentioned user and by the post replied to.

use rows::{NameTable, PointTable, RowsMut, Scan, SetTable, Span};

use super::{Mend, Rows, at};
use crate::boost::Boost;
use crate::due::DueWork;
use crate::ids::{PostId, UserId};
use crate::list_rows::{self, ListRow};
use crate::notification::{BESIDE, MENTION_ADDED, Stored, added_at};
use crate::reaction::Reaction;
use crate::records::Post;
use crate::write;

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
        if step.media_of_post(key, &post) {
            return;
        }
        post.poll.iter().for_each(|poll| self.poll_of_post(step, key, poll));
        let mut missing = Vec::new();
        if step.set(SetTable::AuthorPosts, post.author.0.into(), key, Some(post.listed().number()))
        {
            missing.push("by author");
        }
        // Mentions of deleted users are removed, and the post still names them.
        for user in post.mentioned_others() {
            let is_user = step.user(user.0.into()).is_some() && !step.is_deleted(user);
            let row = step.rows.member(SetTable::Mentions, user.0.into(), key);
            let number = Some(post.mention_number());
            // Since an edit.
            let is_added = row.and_then(added_at).is_some_and(|added| {
                added > key && post.edited.is_some_and(|edited| added <= edited.0)
            });
            if !is_user || row == number || is_added {
                continue;
            }
            let number = step.mention_added(user, key).or(number);
            step.rows.put_member(SetTable::Mentions, user.0.into(), key, number);
            missing.push("by mentioned user");
        }
        if let Some(parent) = post.in_reply_to
            && step.set(SetTable::Replies, parent.0, key, Some(post.visibility as u64))
        {
            missing.push("by the post replied to");
        }
        match post.boost.as_ref().map(|boost| step.boost(key, post.author, boost)) {
            Some(BoostRows::Wrong) => {
                step.rows.put_point(PointTable::Post, key, None);
                step.rows.put_member(SetTable::AuthorPosts, post.author.0.into(), key, None);
                return;
            }
            Some(BoostRows::Missing) => missing.push("by the boosted post"),
            Some(BoostRows::Right) | None => {}
        }
        if step.add_tags(PostId(key), &post) {
            missing.push("by hashtag");
        }
        if step.add_to_lists(PostId(key), &post) {
            missing.push("in lists");
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

/// How the row of a boosted post is for a boost.
enum BoostRows {
    Right,
    /// It was added.
    Missing,
    /// The boost must go.
    Wrong,
}

impl<R: Scan + RowsMut> Rows<'_, R> {
    /// The row of the boosted post for a boost by `user`.
    fn boost(&mut self, key: u64, user: UserId, boost: &Boost) -> BoostRows {
        let is_of = |post: Post| post.boost.is_none() && post.author == boost.author;
        let exists = self.user(boost.author.0.into()).is_some();
        if !exists || !self.stored_post(boost.post.0).is_none_or(is_of) {
            self.lost(format!("post {}: what it boosts is another post", at(key)));
            return BoostRows::Wrong;
        }
        let (owner, item) = (boost.post.0, Reaction::Boost.item(user));
        match self.rows.member(SetTable::Reactions, owner, item) {
            Some(number) if number == key => {
                match self.set(SetTable::Boosts, owner, key, Some(user.0.into())) {
                    true => BoostRows::Missing,
                    false => BoostRows::Right,
                }
            }
            // Of two boosts by one user, the first counts.
            Some(number) if number < key && self.is_boost(number, boost.post) => {
                self.derived(format!("post {}: its author boosts the same twice", at(key)));
                BoostRows::Wrong
            }
            _ => {
                self.rows.put_member(SetTable::Reactions, owner, item, Some(key));
                self.set(SetTable::Boosts, owner, key, Some(user.0.into()));
                BoostRows::Missing
            }
        }
    }

    fn is_boost(&self, id: u64, of: PostId) -> bool {
        self.stored_post(id).and_then(|post| post.boost).is_some_and(|boost| boost.post == of)
    }

    fn stored_post(&self, id: u64) -> Option<Post> {
        self.facts().stored_post(PostId(id))
    }

    /// Adds rows of a post in lists and conversations; returns whether any were missing.
    fn add_to_lists(&mut self, id: PostId, post: &Post) -> bool {
        let (shared, mut any) = (list_rows::shared_rows_of(post), false);
        let in_shared = self.in_shared_lists(post.author);
        for row in list_rows::rows_of(post) {
            if !shared.contains(&row) || in_shared == Some(true) {
                let (table, owner, number) = row;
                any |= self.set(table, owner, id.0, Some(number));
            }
        }
        let Some(first) = post.conversation_or(id) else { return any };
        let users = std::iter::once(post.author).chain(post.mentions.iter().copied());
        for user in users.filter(|user| !self.is_deleted(*user)).collect::<Vec<_>>() {
            if self.user(user.0.into()).is_some() && !self.has_direct(user, (id, first)) {
                write::direct_rows(&mut *self.rows, user, (id, first), true);
                any = true;
            }
        }
        any
    }

    fn has_direct(&self, user: UserId, (post, first): (PostId, PostId)) -> bool {
        let key = write::conversation_post_key(user, first, post);
        self.rows.member(SetTable::DirectPosts, user.0.into(), post.0) == Some(first.0)
            && self.rows.name(NameTable::ConversationPost, &key).is_some()
    }

    /// Whether the posts of a user are in lists with posts of many users; none if some may be: of a user who was deleted, or
    /// whose posts are being removed from lists or added again.
    fn in_shared_lists(&self, user: UserId) -> Option<bool> {
        let changes = self.pending.contains(&DueWork::Relist { user });
        (!changes && !self.is_deleted(user)).then(|| !self.facts().is_disabled(user))
    }

    /// A row of a list, whose post must be in it.
    pub(super) fn listed_post(&mut self, row: ListRow, item: u64) {
        let is_in = |post: Post| {
            let is_hidden = self.in_shared_lists(post.author) == Some(false)
                && list_rows::shared_rows_of(&post).contains(&row);
            list_rows::rows_of(&post).contains(&row) && !is_hidden
        };
        if !self.stored_post(item).is_some_and(is_in) {
            let (table, owner, _) = row;
            self.derived(format!("{table:?} {owner}, {item}: no such post is in the list"));
            self.rows.put_member(table, owner, item, None);
        }
    }

    /// A direct post by or to a user.
    pub(super) fn direct_post(&mut self, owner: u64, item: u64, first: u64) {
        let user = self.user(owner);
        if !user.is_some_and(|user| self.is_direct(user, (PostId(item), PostId(first)))) {
            self.derived(format!("DirectPosts {owner}, {item}: no such post is by or to the user"));
            self.rows.put_member(SetTable::DirectPosts, owner, item, None);
        }
    }

    /// Checks the row of a direct post in its conversation.
    pub(super) fn conversation_post(&mut self, name: &[u8]) {
        let found = write::read_conversation_post(name);
        let is_right = found.is_some_and(|(user, first, post)| {
            self.user(user.0.into()).is_some() && self.is_direct(user, (post, first))
        });
        if !is_right {
            self.remove_named(NameTable::ConversationPost, name);
        }
    }

    fn is_direct(&self, user: UserId, (post, first): (PostId, PostId)) -> bool {
        self.stored_post(post.0).is_some_and(|found| {
            let is_of = found.author == user || found.mentions.contains(&user);
            is_of && found.conversation_or(post) == Some(first)
        })
    }

    /// The number of the row of a mention of whose edit the user has a notification.
    fn mention_added(&self, user: UserId, post: u64) -> Option<u64> {
        let stored = Stored::Mention(PostId(post)).number();
        let span = Span { low: BESIDE, ..Span::ALL };
        let rows = self.rows.members(SetTable::Notifications, user.0.into(), span);
        let found = rows.iter().rev().find(|(_, number)| *number == stored);
        found.map(|(id, _)| MENTION_ADDED | id & !BESIDE)
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
        if !post.is_some_and(|post| post.mentioned_others().any(|user| u64::from(user.0) == owner))
        {
            self.derived(format!("Mentions {owner}, {item}: no such post mentions the user"));
            self.rows.put_member(SetTable::Mentions, owner, item, None);
        }
    }

    /// A boost among those of a post.
    pub(super) fn boost_of_post(&mut self, owner: u64, item: u64, number: u64) {
        let is_right = self.stored_post(item).is_some_and(|post| {
            let boosts = post.boost.is_some_and(|boost| boost.post.0 == owner);
            boosts && u64::from(post.author.0) == number
        });
        if !is_right {
            self.derived(format!("Boosts {owner}, {item}: there is no such boost"));
            self.rows.put_member(SetTable::Boosts, owner, item, None);
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
