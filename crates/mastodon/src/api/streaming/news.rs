//! New events of a user after a position.

use std::sync::Arc;

use feed::{ListId, Notice, Notification, PostId, Tag, UserId, is_in_list};
use node::Change;
use node::news::{self, Answered, EventWriter, Question, Source};

use super::{CONVERSATION, Event};
use crate::entities::{Entities, Renderer};

/// Subscriptions of a user other than home and notifications.
#[derive(Clone, Debug, Default)]
pub(super) struct Wanted {
    /// Lists of the user with a subscription.
    pub(super) lists: Vec<ListId>,
    /// Whether conversations have a subscription.
    pub(super) has_direct: bool,
}

/// Events found for a request about a user's news.
pub(super) struct News {
    pub(super) events: Vec<Event>,
    pub(super) answered: Answered,
    /// Hashtags that the user follows, if they may have changed.
    pub(super) tags: Option<Vec<Tag>>,
}

/// Hashtags that a user follows. May block.
pub(super) fn followed_tags(renderer: &Renderer, user: UserId) -> Vec<Tag> {
    let followed = renderer.node.facts().followed_tags(user);
    followed.into_iter().map(|followed| followed.tag).collect()
}

/// Reads new events of a user. May block.
pub(super) fn answer(
    renderer: &Renderer,
    user: UserId,
    question: &Question,
    wanted: &Wanted,
) -> Option<News> {
    let entities = Entities::new(renderer, Some(user));
    let mut writer =
        Writer { entities, user, wanted, events: Vec::new(), bytes: 0, is_missed: false };
    let answered = question.answer(&renderer.node, Source::Facts, &mut writer)?;
    let Writer { events, is_missed, .. } = writer;
    // A change of follows, mutes, blocks or hashtags is reported as missed changes, so the followed hashtags are read
    // again, together with home.
    let tags = is_missed.then(|| followed_tags(renderer, user));
    Some(News { events, answered, tags })
}

/// Writer of a user's events as entities.
struct Writer<'a> {
    entities: Entities<'a>,
    user: UserId,
    wanted: &'a Wanted,
    events: Vec<Event>,
    bytes: usize,
    /// Whether changes were missed.
    is_missed: bool,
}

impl EventWriter for Writer<'_> {
    fn write(&mut self, event: news::Event) -> Option<()> {
        match event {
            news::Event::Changed(change) => {
                self.is_missed |= change == Change::Missed;
                let event = self.changed(change);
                self.push(event);
            }
            news::Event::Home(post) => {
                let status = self.entities.home_status(post);
                let event = status.map(|status| Event {
                    lists: self.lists_with(post),
                    ..Event::of("update", status)
                });
                self.push(event);
                let event = self.conversation((post.0, None));
                self.push(event);
            }
            news::Event::Notified(found) => {
                let event = self.entities.notification(found).map(Event::notification);
                self.push(event);
                let event = self.conversation((found.id.0, Some(found)));
                self.push(event);
            }
            // Streams of this API have notifications instead of mentions, and no stories.
            news::Event::Mention(_) | news::Event::Story(_) | news::Event::StoryEnded(_) => {}
        }
        Some(())
    }

    fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Writer<'_> {
    fn push(&mut self, event: Option<Event>) {
        self.bytes += event.as_ref().map_or(0, |event| event.payload.len());
        self.events.extend(event);
    }

    /// The conversation of a direct post, if it is new to the user: their own post at home, or a mention.
    fn conversation(&mut self, (id, notice): (u64, Option<Notification>)) -> Option<Event> {
        let is_mention = notice.is_some_and(|found| matches!(found.notice, Notice::Mention(_)));
        let facts = self.entities.facts();
        let is_own = || facts.post(PostId(id)).is_some_and(|it| it.author == self.user);
        if !self.wanted.has_direct || !(is_mention || notice.is_none() && is_own()) {
            return None;
        }
        self.entities.conversation_of(PostId(id)).map(|found| Event::of(CONVERSATION, found))
    }

    fn changed(&mut self, change: Change) -> Option<Event> {
        let deleted = |post: PostId| {
            let payload = Arc::from(post.0.to_string());
            Event { name: "delete", payload, published: None, lists: Vec::new() }
        };
        match change {
            Change::Deleted(post) => Some(deleted(post)),
            Change::MentionDeleted(post, author) => {
                self.entities.viewer().notified_by(author).then(|| deleted(post))
            }
            Change::Edited(post) => {
                let found = self.entities.facts().post(post)?;
                let is_wanted = self.entities.viewer().receives_updates_of(&found);
                let status = is_wanted.then(|| self.entities.status(post)).flatten()?;
                let lists = self.lists_with(post);
                Some(Event { lists, ..Event::of("status.update", status) })
            }
            Change::Filters => {
                let (payload, lists) = (Arc::from(""), Vec::new());
                Some(Event { name: "filters_changed", payload, published: None, lists })
            }
            // This API has no events for these changes. The app of the user who makes them shows them without an event.
            Change::Followed(_) | Change::Unfollowed(_) | Change::Missed => None,
        }
    }

    /// Lists whose timelines contain a post.
    fn lists_with(&self, id: PostId) -> Vec<ListId> {
        let (facts, lists) = (self.entities.facts(), &self.wanted.lists);
        let Some(post) = lists.first().and_then(|_| facts.post(id)) else { return Vec::new() };
        let posted = (id, post.listed());
        let viewer = self.entities.viewer();
        let has = |list: &&ListId| is_in_list(viewer, (self.user, **list), post.author, posted);
        lists.iter().filter(has).copied().collect()
    }
}
