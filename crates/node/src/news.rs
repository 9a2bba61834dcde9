//! News of a user after a position: the engine of live streams, independent of the format of their events.
//!
//! A subscription stores a position and reads the later events whenever there may be new ones. It has no queue, so a
//! slow reader costs nothing, and misses only changes of posts that have left the bounded list of changes
//! ([`Change::Missed`]). Home timeline, notices and stories are read from the position on, and merged up to the id that
//! all three reads have reached.
//!
//! The owner of the subscription writes the events, and decides when and on which thread a question is answered.

use std::sync::Arc;
use std::time::Duration;

use feed::stories::StoryRef;
use feed::{
    Cursor, Notice, NoticeKind, Notification, NotificationFilter, NotificationId, Page, PageOf,
    PostId, Shown, Stamp, StoryId, UserId, limits, of_all, scan,
};

use crate::node::{Node, Watch};
use crate::views::Change;

/// Maximum number of newest stories of friends for which the end of a story is an event.
const STORIES_SHOWN: usize = 1_000;
/// Size of the events that are sent together, in bytes. The last event may exceed it.
pub const EVENTS_BYTES: usize = 32 << 10;

/// Kind of news. The order decides between events with the same id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A post in the home timeline.
    Home,
    /// The same post as a mention of the user, or a notification.
    Notice,
    /// A new story of a friend.
    Story,
}

/// Position of the last reported event. Events are ordered by id, then by kind; posts, notifications and stories share
/// one sequence of ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NewsPosition {
    /// Id of the post, notification or story.
    pub id: u64,
    /// Kind of the event.
    pub kind: Kind,
}

impl NewsPosition {
    /// Returns the position after everything up to an id.
    #[must_use]
    pub fn after(id: u64) -> Self {
        Self { id, kind: Kind::Story }
    }
}

/// Events of a subscription in addition to posts in the home timeline and their changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interest {
    /// Mentions, and stories of friends.
    MentionsAndStories,
    /// Notifications, including home posts by authors whose posts the user wants to be notified of.
    Notifications,
}

impl Interest {
    /// Returns the maximum number of items of each list that are read at a time: about as many as are sent together,
    /// because further items are read again. Notifications and statuses take many bytes.
    const fn page_size(self) -> usize {
        match self {
            Self::MentionsAndStories => limits::PAGE_MAX,
            Self::Notifications => 20,
        }
    }
}

/// Event of a subscription.
#[derive(Clone, Copy, Debug)]
pub enum Event {
    /// Not a new item: an earlier post was edited or deleted, the user's follows or filters changed, or changes were
    /// missed.
    Changed(Change),
    /// A story is no longer shown: it expired, was deleted, or its author is no longer a friend.
    StoryEnded(StoryId),
    /// A post in the home timeline.
    Home(PostId),
    /// A post that mentions the user.
    Mention(PostId),
    /// A notification.
    Notified(Notification),
    /// A new story of a friend.
    Story(StoryRef),
}

/// Source from which events are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Memory only.
    Memory,
    /// Memory or the store. May block.
    Facts,
}

/// Writer of events.
pub trait EventWriter {
    /// Writes an event, or nothing if its subject no longer exists or is not for the user. Returns `None` if it reads
    /// only memory and the subject is not there.
    fn write(&mut self, event: Event) -> Option<()>;

    /// Returns the number of bytes written so far.
    fn bytes(&self) -> usize;
}

/// Events of a user from a position on. Memory: 24 bytes for each shown story, at most 24 kB, and 512 bytes for the
/// newest changes of the user.
pub struct Subscription {
    node: Node,
    user: UserId,
    watch: Watch,
    interest: Interest,
    position: NewsPosition,
    /// Newest stories of friends, newest first.
    shown: Arc<[StoryRef]>,
    /// Counters of mentions and of changes of stories, as of the last read of each.
    mentions_read: Option<u32>,
    stories_read: Option<u64>,
    /// Number of changes of posts and follows that were reported, or came before the subscription.
    changes_read: u64,
}

/// Query of a subscription to the node.
#[derive(Clone)]
pub struct Question {
    user: UserId,
    interest: Interest,
    position: NewsPosition,
    /// Id up to which everything is visible. It is read before the other fields.
    visible_up_to: u64,
    /// Unreported changes, each with the number of changes up to it.
    changes: Arc<[(u64, Change)]>,
    /// Number of changes before `changes`.
    changes_read: u64,
    /// Whether there may be unread notices. The home timeline needs no such field, because it is read each time: that
    /// is cheap, and the timeline may have been evicted without a notification.
    notices_due: bool,
    /// Whether stories may have been posted or ended since `shown` was read.
    stories_due: bool,
    /// Newest stories of friends at the previous read, newest first.
    shown: Arc<[StoryRef]>,
    /// Numbers of mentions and of changes of stories that the answer includes.
    mentions: u32,
    stories: u64,
}

/// Mentions or notifications.
#[derive(Default)]
struct Notices {
    /// The notices, each with its id.
    found: Vec<(u64, Event)>,
    /// Id up to which the notices are complete, if there are more.
    reach: Option<u64>,
}

/// Result of writing the answer to a question.
pub struct Answered {
    position: NewsPosition,
    shown: Arc<[StoryRef]>,
    changes_read: u64,
    /// Whether there are more events, now or soon.
    pub more: bool,
}

impl Subscription {
    /// Begins after a position, or now. May block.
    ///
    /// The watch begins before the first read, so no change in between is missed. Deletions are known only for
    /// timelines in memory, so deletions may be missed until the first event.
    #[must_use]
    pub fn begin(
        node: &Node,
        user: UserId,
        interest: Interest,
        from: Option<NewsPosition>,
    ) -> Self {
        let watch = node.watch(user);
        drop(node.home_ids(user, &Page::newest(1)));
        let position = from.unwrap_or(NewsPosition::after(node.visible_up_to().0));
        let shown = match interest {
            Interest::MentionsAndStories => node.stories_of_friends(user, STORIES_SHOWN),
            Interest::Notifications => Vec::new(),
        };
        Self {
            node: node.clone(),
            user,
            interest,
            changes_read: watch.changes_end(),
            watch,
            position,
            shown: shown.into(),
            mentions_read: None,
            stories_read: None,
        }
    }

    /// Returns the position after the last event.
    #[must_use]
    pub fn position(&self) -> NewsPosition {
        self.position
    }

    /// Waits until there may be news, including the expiry of a shown story.
    pub async fn changed(&mut self) {
        let changed = self.watch.changed();
        match self.shown.iter().map(|story| story.expires_ms).min() {
            Some(expires_ms) => {
                let rest_ms = expires_ms.saturating_sub(self.node.now_ms());
                drop(tokio::time::timeout(Duration::from_millis(rest_ms), changed).await);
            }
            None => changed.await,
        }
    }

    /// Creates a question for the present news.
    pub fn ask(&mut self) -> Question {
        // The order matters: the numbers and pages that are read next include everything up to `visible_up_to`.
        let visible_up_to = self.node.visible_up_to().0;
        let (mentions, stories) = (self.watch.mentions(), self.node.story_changes());
        let now_ms = self.node.now_ms();
        let expired = self.shown.iter().any(|story| story.expires_ms <= now_ms);
        let has_stories = self.interest == Interest::MentionsAndStories;
        Question {
            user: self.user,
            interest: self.interest,
            position: self.position,
            visible_up_to,
            changes_read: self.changes_read,
            changes: self.watch.changes_after(self.changes_read).into(),
            // Only mentions have a counter, so other notifications are always read.
            notices_due: !has_stories || self.mentions_read != Some(mentions),
            stories_due: has_stories && (self.stories_read != Some(stories) || expired),
            shown: Arc::clone(&self.shown),
            mentions,
            stories,
        }
    }

    /// Continues after the written answer to a question, which is sent now.
    pub fn go_on(&mut self, question: &Question, answered: Answered) {
        if !answered.more {
            (self.mentions_read, self.stories_read) =
                (Some(question.mentions), Some(question.stories));
        }
        (self.position, self.shown) = (answered.position, answered.shown);
        self.changes_read = answered.changes_read;
    }
}

impl Question {
    /// Writes the events after the position: changes, the ends of shown stories, and the news up to the id that all
    /// pages have reached, so that an event is reported only when every earlier one is known. News that are not visible
    /// yet are reported later. Returns `None` if not everything is in memory.
    pub fn answer(
        &self,
        node: &Node,
        source: Source,
        writer: &mut impl EventWriter,
    ) -> Option<Answered> {
        let position = self.position;
        // The home timeline is read first: it is then in memory, so that later deletions and edits wake the stream.
        let home = self.home(node, source)?;
        let mut changes_read = self.changes_read;
        for (number, change) in self.changes.iter() {
            if writer.bytes() >= EVENTS_BYTES {
                break;
            }
            writer.write(Event::Changed(*change))?;
            changes_read = *number;
        }
        if writer.bytes() >= EVENTS_BYTES {
            let shown = Arc::clone(&self.shown);
            return Some(Answered { position, shown, changes_read, more: true });
        }
        let notices = self.notices(node, source, &home)?;
        let shown = self.shown(node, source)?;
        let unread = shown.iter().copied().take_while(|story| story.story.0 > position.id);
        let stories = scan(&self.after(position.id), of_all(unread.collect()), Shown::Yes);

        let reaches = [home.next, notices.reach, stories.next];
        let end = reaches.into_iter().flatten().fold(self.visible_up_to, u64::min);
        let at = |id, kind| NewsPosition { id, kind };
        let home_posts = home.items.iter();
        let mut due: Vec<(NewsPosition, Event)> =
            home_posts.map(|post| (at(post.0, Kind::Home), Event::Home(*post))).collect();
        let more_notices = notices.reach.is_some();
        due.extend(notices.found.into_iter().map(|(id, notice)| (at(id, Kind::Notice), notice)));
        let new_stories = stories.items.iter();
        due.extend(new_stories.map(|story| (at(story.story.0, Kind::Story), Event::Story(*story))));
        let read = due.len();
        due.retain(|(event, _)| event.id <= end);
        due.sort_unstable_by_key(|(event, _)| *event);
        for story in gone(&self.shown, &shown) {
            writer.write(Event::StoryEnded(story))?;
        }
        let has_more = home.next.is_some() || more_notices || stories.next.is_some();
        let mut more = due.len() < read || has_more;
        // Everything up to `end` counts as reported, so that a later follow does not report older posts.
        let mut reported = position.max(NewsPosition::after(end));
        let mut last = position;
        for (at, event) in due {
            if writer.bytes() >= EVENTS_BYTES {
                (more, reported) = (true, last);
                break;
            }
            writer.write(event)?;
            last = at;
        }
        Some(Answered { position: reported, shown, changes_read, more })
    }

    /// Returns the page after a position.
    fn after(&self, position: u64) -> Page {
        Page::at(Cursor::After(position), self.interest.page_size())
    }

    fn home(&self, node: &Node, source: Source) -> Option<PageOf<PostId>> {
        let page = self.after(self.position.id);
        match source {
            Source::Memory => node.try_home_ids(self.user, &page),
            Source::Facts => Some(node.home_ids(self.user, &page)),
        }
    }

    fn notices(&self, node: &Node, source: Source, home: &PageOf<PostId>) -> Option<Notices> {
        if !self.notices_due {
            return Some(Notices::default());
        }
        if source == Source::Memory {
            return None;
        }
        // After a home post, the notice with the same id may still be due.
        let NewsPosition { id, kind } = self.position;
        let reported = id.saturating_sub(u64::from(kind == Kind::Home));
        let page = self.after(reported);
        if self.interest == Interest::MentionsAndStories {
            let PageOf { items, next } = node.mention_ids(self.user, &page);
            let mentions = items.into_iter().map(|post| (post.0, Event::Mention(post)));
            return Some(Notices { found: mentions.collect(), reach: next });
        }
        let viewer = node.viewer(Some(self.user));
        // Notifications of posts are derived from the home posts.
        let wanted = NotificationFilter { not: vec![NoticeKind::Post], ..Default::default() };
        let PageOf { items: mut found, next } = viewer.notifications(&page, &wanted);
        let own = (kind == Kind::Home).then_some(PostId(id));
        let mut posts = home.items.iter().copied().chain(own).peekable();
        if posts.peek().is_some() && node.facts().wants_posts(self.user) {
            let of_posts = posts.filter_map(|post| viewer.notification(NotificationId(post.0)));
            found.extend(of_posts.filter(|found| matches!(found.notice, Notice::Post(_))));
        }
        let found = found.into_iter().map(|found| (found.id.0, Event::Notified(found)));
        Some(Notices { found: found.collect(), reach: next })
    }

    fn shown(&self, node: &Node, source: Source) -> Option<Arc<[StoryRef]>> {
        if !self.stories_due {
            return Some(Arc::clone(&self.shown));
        }
        let shown = match source {
            Source::Memory => node.try_stories_of_friends(self.user, STORIES_SHOWN)?,
            Source::Facts => node.stories_of_friends(self.user, STORIES_SHOWN),
        };
        Some(shown.into())
    }
}

/// Returns stories that were shown and no longer are, except those displaced by newer ones. Both lists are newest
/// first.
fn gone(shown: &[StoryRef], now_shown: &[StoryRef]) -> Vec<StoryId> {
    let full = now_shown.last().filter(|_| now_shown.len() >= STORIES_SHOWN);
    let oldest = full.map_or(0, |last| last.story.0);
    let still = |story: &StoryId| {
        now_shown.binary_search_by(|other| story.cmp(&other.story)).is_ok() || story.0 < oldest
    };
    shown.iter().map(|shown| shown.story).filter(|story| !still(story)).collect()
}

/// Maximum difference by which the clock of another node may be ahead, in milliseconds. Positions with later times are
/// invalid.
const AHEAD_MS: u64 = 60_000;

impl Node {
    /// Whether an event with this position may exist.
    #[must_use]
    pub fn may_have_reached(&self, position: NewsPosition) -> bool {
        let latest = Stamp::first_of(self.now_ms() + AHEAD_MS).max(self.visible_up_to());
        position.id <= latest.0
    }
}

#[cfg(test)]
mod tests {
    use feed::{Bio, Command, Draft, Handle, Name, PostText, UserRef};

    use super::*;
    use crate::NodeOptions;

    /// The written events, and the size that is counted for each, in bytes.
    struct Written(Vec<Event>, usize);

    impl EventWriter for Written {
        fn write(&mut self, event: Event) -> Option<()> {
            self.0.push(event);
            Some(())
        }

        fn bytes(&self) -> usize {
            self.0.len() * self.1
        }
    }

    /// Opens a node on which ada and bob follow each other and have written posts that mention each other.
    async fn node(data: &std::path::Path, posts: usize) -> Node {
        let node = Node::open(&NodeOptions::new(data)).unwrap();
        let submit = async |command: Command| {
            node.submit(command.into()).await.unwrap().outcome.unwrap();
        };
        for handle in ["ada", "bob"] {
            let (handle, name) = (Handle::parse(handle).unwrap(), Name::default());
            submit(Command::Register { handle, name, bio: Bio::default() }).await;
        }
        let [ada, bob] = [0, 1].map(|id| UserRef::Id(UserId(id)));
        submit(Command::Follow { user: ada.clone(), other: bob.clone() }).await;
        for _ in 0..posts {
            let text = PostText::parse("hello @ada").unwrap();
            submit(Command::Publish(Box::new(Draft::new(bob.clone(), text)))).await;
        }
        node
    }

    #[tokio::test]
    async fn a_post_that_is_not_visible_up_to_yet_is_due_later() {
        let data = tempfile::tempdir().unwrap();
        let node = node(data.path(), 0).await;
        let mut own = Subscription::begin(&node, UserId(1), Interest::Notifications, None);
        let before = node.visible_up_to().0;
        let (author, text) = (UserRef::Id(UserId(1)), PostText::parse("x").unwrap());
        let post = Command::Publish(Box::new(Draft::new(author, text)));
        node.submit(post.into()).await.unwrap().outcome.unwrap();
        let mut question = own.ask();
        let visible = std::mem::replace(&mut question.visible_up_to, before);
        let answer = |question: &Question| {
            let mut written = Written(Vec::new(), 1);
            let answered = question.answer(&node, Source::Facts, &mut written).unwrap();
            (written.0.len(), answered)
        };
        let (events, answered) = answer(&question);
        assert_eq!((events, answered.position.id, answered.more), (0, before, true));
        question.visible_up_to = visible;
        let (events, answered) = answer(&question);
        assert_eq!((events, answered.more), (1, false));
        node.close();
    }

    #[tokio::test]
    async fn changes_and_what_is_new_are_sent_within_one_bound() {
        let data = tempfile::tempdir().unwrap();
        let node = node(data.path(), 4).await;
        let (user, start) = (UserId(0), Some(NewsPosition::after(0)));
        let mut own = Subscription::begin(&node, user, Interest::MentionsAndStories, start);
        let page = node.home_ids(user, &Page::newest(2));
        for post in page.items {
            let deletion = Command::DeletePost { post };
            node.submit(deletion.into()).await.unwrap().outcome.unwrap();
        }
        while own.watch.changes_after(own.changes_read).len() < 2 {
            own.changed().await;
        }
        let (mut sent, mut changes) = (0, 0);
        loop {
            let (question, mut written) = (own.ask(), Written(Vec::new(), EVENTS_BYTES / 3));
            let answered = question.answer(&node, Source::Facts, &mut written).unwrap();
            assert!(written.0.len() <= 4, "the bound, and the event that reaches it");
            changes += written.0.iter().filter(|it| matches!(it, Event::Changed(_))).count();
            sent += written.0.len();
            let more = answered.more;
            own.go_on(&question, answered);
            if !more {
                break;
            }
        }
        assert!(changes >= 2 && sent - changes == 4, "{changes} changes of {sent} events");
        node.close();
    }

    #[tokio::test]
    async fn events_come_in_order_and_once_however_few_are_sent_at_a_time() {
        let data = tempfile::tempdir().unwrap();
        let node = node(data.path(), 5).await;
        for interest in [Interest::MentionsAndStories, Interest::Notifications] {
            let start = Some(NewsPosition::after(0));
            let mut own = Subscription::begin(&node, UserId(0), interest, start);
            let mut all = Vec::new();
            loop {
                // Each event has the size of all events that are sent together.
                let (question, mut written) = (own.ask(), Written(Vec::new(), EVENTS_BYTES));
                let answered = question.answer(&node, Source::Facts, &mut written).unwrap();
                assert!(written.0.len() <= 1);
                all.extend(written.0);
                let more = answered.more;
                own.go_on(&question, answered);
                if !more {
                    break;
                }
            }
            let kinds: Vec<_> = all
                .iter()
                .map(|event| match event {
                    Event::Home(post) => (post.0, Kind::Home),
                    Event::Mention(post) => (post.0, Kind::Notice),
                    Event::Notified(found) => (found.id.0, Kind::Notice),
                    other => panic!("{other:?}"),
                })
                .collect();
            assert!(kinds.is_sorted() && kinds.len() == 10, "{interest:?}: {kinds:?}");
            let posts: Vec<_> = kinds.chunks(2).map(|both| both[0].0 == both[1].0).collect();
            assert_eq!(posts, [true; 5], "{interest:?}: {kinds:?}");
        }
        node.close();
    }
}
