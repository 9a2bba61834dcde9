//! The events of one user after a position.

use std::sync::Arc;

use feed::{
    Cursor, ListId, Notice, Notification, NotificationId, Page, PageOf, PostId, Tag, UserId,
    is_in_list,
};
use node::Change;

use super::{CONVERSATION, Event};
use crate::entities::{Entities, Renderer};

/// Posts that are read at a time.
const PAGE: usize = 40;
/// Bytes of events after which they are sent.
pub(super) const EVENTS_BYTES: usize = 32 << 10;

/// A question of a stream to the node.
pub(super) struct Question {
    pub(super) user: UserId,
    /// Posts up to this id were reported.
    pub(super) position: u64,
    /// The id up to which everything is visible. Read before the changes.
    pub(super) visible: u64,
    /// Changes that were not reported, each with the number of changes up to it.
    pub(super) changes: Vec<(u64, Change)>,
    /// The number of changes before these.
    pub(super) changes_read: u64,
    /// The lists of the user whose timelines are listened to.
    pub(super) lists: Vec<ListId>,
    /// Whether conversations are listened to.
    pub(super) has_direct: bool,
}

/// The answer.
pub(super) struct News {
    pub(super) events: Vec<Event>,
    pub(super) position: u64,
    pub(super) changes_read: u64,
    pub(super) more: bool,
    /// The hashtags that the user follows, if they may have changed.
    pub(super) tags: Option<Vec<Tag>>,
}

/// The hashtags that a user follows. May block.
pub(super) fn followed_tags(renderer: &Renderer, user: UserId) -> Vec<Tag> {
    let followed = renderer.node.facts().followed_tags(user);
    followed.into_iter().map(|followed| followed.tag).collect()
}

impl Question {
    /// Reads home and notifications after the position, and merges them up to the id that both reach. What is not visible
    /// up to is due later: nothing else wakes the stream for it. May block.
    pub(super) fn answer(&self, renderer: &Renderer) -> News {
        let mut entities = Entities::new(renderer, Some(self.user));
        let node = &renderer.node;
        let page = Page { cursor: Cursor::After(PostId(self.position)), limit: PAGE };
        // Home first, so that the timeline is in memory and later deletions and edits wake the stream.
        let home = node.home_ids(self.user, &page);
        let (mut events, mut bytes) = (Vec::new(), 0);
        let mut changes_read = self.changes_read;
        // A change of follows, mutes, blocks or hashtags is one of these. Home was read with it.
        let is_missed = self.changes.iter().any(|(_, change)| *change == Change::Missed);
        let tags = is_missed.then(|| followed_tags(renderer, self.user));
        for (number, change) in &self.changes {
            let event = self.changed(&mut entities, *change);
            bytes += event.as_ref().map_or(0, |event| event.payload.len());
            events.extend(event);
            changes_read = *number;
            if bytes >= EVENTS_BYTES {
                let (position, more) = (self.position, true);
                return News { events, position, changes_read, more, tags };
            }
        }
        let page = Page { cursor: Cursor::After(NotificationId(self.position)), limit: PAGE };
        let notices = entities.viewer().notifications_but_posts(&page);
        let of_posts = self.of_posts(&entities, &home.posts.items);
        let reaches = [home.reach().map(|post| post.0), reach(&notices, |(id, _)| id.0)];
        let end = reaches.into_iter().flatten().fold(self.visible, u64::min);
        let posts = home.posts.items.iter().map(|post| (post.0, None));
        let notified = notices.items.iter().filter_map(|(_, found)| *found).chain(of_posts);
        let notified = notified.map(|found| (found.id.0, Some(found)));
        let mut all: Vec<_> = posts.chain(notified).collect();
        let read = all.len();
        all.retain(|(id, _)| *id <= end);
        // A post before the notification of it.
        all.sort_by_key(|(id, notice)| (*id, notice.is_some()));
        let mut more = all.len() < read || home.posts.more || notices.more;
        let mut position = self.position.max(end);
        for (index, (id, notice)) in all.iter().enumerate() {
            let event = match notice {
                Some(found) => entities.notification(*found).map(Event::notification),
                None => {
                    let status = entities.home_status(PostId(*id));
                    let lists = || self.lists_with(&entities, PostId(*id));
                    status.map(|it| Event { lists: lists(), ..Event::of("update", it) })
                }
            };
            let of_conversation = self.conversation(&mut entities, (*id, *notice));
            for event in event.into_iter().chain(of_conversation) {
                bytes += event.payload.len();
                events.push(event);
            }
            // A post and the notification of it are not taken apart.
            let next = all.get(index + 1);
            if bytes >= EVENTS_BYTES && next.is_some_and(|(next, _)| next != id) {
                (position, more) = (*id, true);
                break;
            }
        }
        News { events, position, changes_read, more, tags }
    }

    /// The notifications of posts at home because their authors' posts are to be known of.
    fn of_posts(&self, entities: &Entities<'_>, home: &[PostId]) -> Vec<Notification> {
        if home.is_empty() || !entities.facts().wants_posts(self.user) {
            return Vec::new();
        }
        let found = home.iter().map(|post| NotificationId(post.0));
        let found = found.filter_map(|id| entities.viewer().notification(id));
        found.filter(|found| matches!(found.notice, Notice::Post(_))).collect()
    }

    /// The conversation of a direct post, if it is new to the user: their own at home, or one that mentions them.
    fn conversation(
        &self,
        entities: &mut Entities<'_>,
        (id, notice): (u64, Option<Notification>),
    ) -> Option<Event> {
        let is_mention = notice.is_some_and(|found| matches!(found.notice, Notice::Mention(_)));
        let is_own = || entities.facts().post(PostId(id)).is_some_and(|it| it.author == self.user);
        if !self.has_direct || !(is_mention || notice.is_none() && is_own()) {
            return None;
        }
        entities.conversation_of(PostId(id)).map(|found| Event::of(CONVERSATION, found))
    }

    fn changed(&self, entities: &mut Entities<'_>, change: Change) -> Option<Event> {
        let deleted = |post: PostId| {
            let payload = Arc::from(post.0.to_string());
            Event { name: "delete", payload, published: None, lists: Vec::new() }
        };
        match change {
            Change::Deleted(post) => Some(deleted(post)),
            Change::MentionDeleted(post, author) => {
                entities.viewer().notified_by(author).then(|| deleted(post))
            }
            Change::Edited(post) => {
                let found = entities.facts().post(post);
                let is_wanted = found.is_some_and(|found| entities.viewer().sees_edits(&found));
                let status = is_wanted.then(|| entities.status(post)).flatten()?;
                let lists = self.lists_with(entities, post);
                Some(Event { lists, ..Event::of("status.update", status) })
            }
            Change::Filters => {
                let (payload, lists) = (Arc::from(""), Vec::new());
                Some(Event { name: "filters_changed", payload, published: None, lists })
            }
            // Apps have no event for these, and change by themselves what their users did.
            Change::Followed(_) | Change::Unfollowed(_) | Change::Missed => None,
        }
    }

    /// The lists whose timelines have a post.
    fn lists_with(&self, entities: &Entities<'_>, id: PostId) -> Vec<ListId> {
        let facts = entities.facts();
        let Some(post) = self.lists.first().and_then(|_| facts.post(id)) else { return Vec::new() };
        let posted = (id, post.listed());
        let has = |list: &&ListId| is_in_list(facts, (self.user, **list), post.author, posted);
        self.lists.iter().filter(has).copied().collect()
    }
}

/// The id up to which a page is complete, if there are more items.
fn reach<T>(page: &PageOf<T>, id: impl Fn(&T) -> u64) -> Option<u64> {
    page.items.first().filter(|_| page.more).map(id)
}

#[cfg(test)]
mod tests {
    use feed::{Command, Handle, Name, NewPost, PostText, UserRef};
    use node::{Node, NodeOptions};

    use super::*;

    #[tokio::test]
    async fn a_post_that_is_not_visible_up_to_yet_is_due_later() {
        let data = tempfile::tempdir().unwrap();
        let node = Node::open(&NodeOptions::new(data.path())).unwrap();
        let submit = async |command: Command| {
            node.submit(command.into()).await.unwrap().outcome.unwrap();
        };
        let (handle, name) = (Handle::parse("ada").unwrap(), Name::parse("Ada").unwrap());
        submit(Command::Register { handle, name, bio: feed::Bio::default() }).await;
        let (before, renderer) = (node.visible_up_to().0, Renderer::new(node.clone(), "", false));
        let (author, text) = (UserRef::Id(UserId(0)), PostText::parse("x").unwrap());
        submit(Command::Publish(Box::new(NewPost::new(author, text)))).await;
        let question = |visible| {
            let (changes, changes_read, lists) = (Vec::new(), 0, Vec::new());
            let (user, position, has_direct) = (UserId(0), before, false);
            Question { user, position, visible, changes, changes_read, lists, has_direct }
        };
        let early = question(before).answer(&renderer);
        assert_eq!((early.events.len(), early.position, early.more), (0, before, true));
        let later = question(node.visible_up_to().0).answer(&renderer);
        assert_eq!((later.events.len(), later.more), (1, false));
        node.close();
    }
}
