//! The events of a stream after its position.

use std::sync::Arc;

use feed::stories::StoryRef;
use feed::{Cursor, Page, PageOf, PostId, Stamp, StoryId, UserId, Visible, limits};
use node::{Change, Node};

use crate::input::decimal;
use crate::page::push_number;

/// Number of newest stories of friends whose end a stream reports.
pub(super) const STORIES_SHOWN: usize = 1_000;
/// Bytes of events after which a stream sends them. One event is at most 30 kB, and ends of stories are
/// at most 60 kB: so a stream holds at most 128 kB that are not sent yet.
pub(super) const EVENTS_BYTES: usize = 32 << 10;

/// Makes a client load its pages again.
pub(super) const RESYNC: &[u8] = b"event: resync\ndata: {}\n\n";

/// The kind of an event: a post at home, the same post as a mention of the user, or a friend's new
/// story.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Home,
    Mention,
    Story,
}

/// The last event that a stream has sent. Events are ordered by id, then by kind; posts and stories
/// share one sequence of ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Position {
    id: u64,
    kind: Kind,
}

impl Position {
    /// After everything up to an id.
    pub(super) fn after(id: u64) -> Self {
        Self { id, kind: Kind::Story }
    }

    pub(super) fn id(self) -> u64 {
        self.id
    }

    /// Parses an id and `.p`, `.m` or `.s`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (id, kind) = text.split_once('.')?;
        let kind = match kind {
            "p" => Kind::Home,
            "m" => Kind::Mention,
            "s" => Kind::Story,
            _ => return None,
        };
        let id = decimal(id).filter(|id| *id <= Stamp::MAX.0)?;
        Some(Self { id, kind })
    }

    pub(super) fn write(self, out: &mut Vec<u8>) {
        push_number(self.id, out);
        out.extend_from_slice(match self.kind {
            Kind::Home => b".p",
            Kind::Mention => b".m",
            Kind::Story => b".s",
        });
    }
}

/// A query of a stream to the node.
#[derive(Clone)]
pub(super) struct Question {
    pub(super) user: UserId,
    pub(super) position: Position,
    /// The id up to which everything is visible. Read before the other fields.
    pub(super) visible_up_to: u64,
    /// Unsent changes of posts and follows, each with the number of changes up to it.
    pub(super) changes: Arc<[(u64, Change)]>,
    /// The number of changes before `changes`.
    pub(super) changes_read: u64,
    /// Whether there may be unread mentions. Home is always read: that is cheap, and its timeline may have
    /// been evicted without a notification.
    pub(super) mentions_due: bool,
    /// Whether stories may have been posted or ended since `shown` was read.
    pub(super) stories_due: bool,
    /// The newest stories of friends at the previous read, newest first.
    pub(super) shown: Arc<[StoryRef]>,
}

/// The events after a position.
pub(super) struct News {
    pub(super) events: Vec<u8>,
    pub(super) position: Position,
    pub(super) shown: Arc<[StoryRef]>,
    pub(super) changes_read: u64,
    pub(super) more: bool,
}

/// The source of a read.
#[derive(Clone, Copy)]
pub(super) enum Source {
    /// Memory only.
    Memory,
    /// Memory or the store. May block.
    Facts,
}

impl Question {
    /// Reads a page of home, one of mentions and one of stories after the position and merges them, up to
    /// the id that all of them reach: an event is reported only when every earlier one is known. Before them
    /// come changes of posts and the ends of stories that were shown before. `None` if not everything is in
    /// memory.
    pub(super) fn answer(&self, node: &Node, source: Source) -> Option<News> {
        let position = self.position;
        // Home first, so that the timeline is in memory and later deletions and edits wake the stream.
        let home = self.home(node, source)?;
        let mut events = Vec::new();
        let changes_read = self.write_changes(node, source, &mut events)?;
        if events.len() >= EVENTS_BYTES {
            let shown = Arc::clone(&self.shown);
            return Some(News { events, position, shown, changes_read, more: true });
        }
        let mentions = self.mentions(node, source)?;
        let shown = self.shown(node, source)?;
        let unread = shown.iter().map(|shown| shown.story);
        let mut unread: Vec<_> = unread.take_while(|story| story.0 > position.id).collect();
        unread.reverse();
        unread.truncate(limits::PAGE_MAX + 1);
        let stories = PageOf::from_scan(unread, &after(position.id, StoryId));

        let reaches = [home.reach().map(|post| post.0), reach(&mentions), reach(&stories)];
        let end = reaches.into_iter().flatten().fold(self.visible_up_to, u64::min);
        let mut due = Vec::new();
        due.extend(home.posts.items.iter().map(|post| Position { id: post.0, kind: Kind::Home }));
        due.extend(mentions.items.iter().map(|post| Position { id: post.0, kind: Kind::Mention }));
        due.extend(stories.items.iter().map(|story| Position { id: story.0, kind: Kind::Story }));
        let read = due.len();
        due.retain(|event| event.id <= end);
        due.sort_unstable();
        for story in gone(&self.shown, &shown) {
            write_id("story_expired", story.0, &mut events);
        }
        let mut more = due.len() < read || home.posts.more || mentions.more || stories.more;
        // Everything up to `end` is reported, also if more follows: a later follow does not report older posts.
        let mut reported = position.max(Position::after(end));
        let mut last = position;
        let start = events.len();
        for event in due {
            if events.len() - start >= EVENTS_BYTES {
                (more, reported) = (true, last);
                break;
            }
            self.write_event(node, source, event, &shown, &mut events)?;
            last = event;
        }
        Some(News { events, position: reported, shown, changes_read, more })
    }

    /// Writes changes up to [`EVENTS_BYTES`]; returns the number of changes sent so far. `None` if not
    /// everything is in memory.
    fn write_changes(&self, node: &Node, source: Source, out: &mut Vec<u8>) -> Option<u64> {
        let mut read = self.changes_read;
        for (number, change) in self.changes.iter() {
            if out.len() >= EVENTS_BYTES {
                break;
            }
            match *change {
                Change::Deleted(post) => write_id("delete", post.0, out),
                Change::MentionDeleted(post, author) => {
                    if self.may_see(node, source, author)? {
                        write_id("delete", post.0, out);
                    }
                }
                Change::Followed(other) => write_id("follow", other.0.into(), out),
                Change::Unfollowed(other) => write_id("unfollow", other.0.into(), out),
                // These posts are not marked.
                Change::Filters => {}
                Change::Missed => out.extend_from_slice(RESYNC),
                Change::Edited(post) => {
                    let start = out.len();
                    out.extend_from_slice(b"event: edit\ndata: ");
                    let written = match source {
                        Source::Memory => {
                            node.facts().totals().mutes == 0
                                && node.try_post_for(self.user, post, out)
                        }
                        Source::Facts => {
                            let viewer = node.viewer(Some(self.user));
                            let found = viewer.facts().post(post);
                            found.is_some_and(|found| viewer.sees_edits(&found))
                                && node.post(post, out)
                        }
                    };
                    end(written, source, start, out)?;
                }
            }
            read = *number;
        }
        Some(read)
    }

    /// Whether the user is notified of what an author does. `None` if that is not in memory.
    fn may_see(&self, node: &Node, source: Source, author: UserId) -> Option<bool> {
        match source {
            Source::Memory if node.facts().totals().mutes > 0 => None,
            Source::Memory => node.try_visible_user(self.user, author),
            Source::Facts => Some(node.viewer(Some(self.user)).notified_by(author)),
        }
    }

    fn home(&self, node: &Node, source: Source) -> Option<Visible> {
        let page = after(self.position.id, PostId);
        match source {
            Source::Memory => {
                Some(Visible { posts: node.try_home_ids(self.user, &page)?, end: None })
            }
            Source::Facts => Some(node.home_ids(self.user, &page)),
        }
    }

    fn mentions(&self, node: &Node, source: Source) -> Option<PageOf<PostId>> {
        if !self.mentions_due {
            return Some(PageOf { items: Vec::new(), more: false });
        }
        // After the post at home its own mention may still be due.
        let Position { id, kind } = self.position;
        let reported = id.saturating_sub(u64::from(kind == Kind::Home));
        match source {
            Source::Memory => None,
            Source::Facts => Some(node.mention_ids(self.user, &after(reported, PostId))),
        }
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

    /// Writes nothing if the post or story no longer exists. `None` if it is not in memory.
    fn write_event(
        &self,
        node: &Node,
        source: Source,
        event: Position,
        shown: &[StoryRef],
        out: &mut Vec<u8>,
    ) -> Option<()> {
        let start = out.len();
        out.extend_from_slice(match event.kind {
            Kind::Home => b"event: post\nid: ".as_slice(),
            Kind::Mention => b"event: mention\nid: ",
            Kind::Story => b"event: story\nid: ",
        });
        event.write(out);
        out.extend_from_slice(b"\ndata: ");
        let written = match (event.kind, source) {
            (Kind::Home, Source::Memory) => node.try_home_post(self.user, PostId(event.id), out),
            (Kind::Home, Source::Facts) => node.home_post(self.user, PostId(event.id), out),
            // Mentions are read from the facts.
            (Kind::Mention, Source::Memory) => return None,
            (Kind::Mention, Source::Facts) => {
                let notified = node.viewer(Some(self.user)).notified(PostId(event.id));
                notified && node.post(PostId(event.id), out)
            }
            (Kind::Story, Source::Memory) => {
                let found = shown.binary_search_by(|shown| event.id.cmp(&shown.story.0));
                let found = found.ok().and_then(|at| shown.get(at));
                found.is_some_and(|story| node.try_story(*story, self.user, out))
            }
            (Kind::Story, Source::Facts) => node.story(StoryId(event.id), Some(self.user), out),
        };
        end(written, source, start, out)
    }
}

/// Ends the event that begins at `start`, or removes it if its post or story no longer exists. `None` if that
/// is not in memory.
fn end(written: bool, source: Source, start: usize, out: &mut Vec<u8>) -> Option<()> {
    match (written, source) {
        (true, _) => out.extend_from_slice(b"\n\n"),
        (false, Source::Facts) => out.truncate(start),
        (false, Source::Memory) => return None,
    }
    Some(())
}

fn after<I>(position: u64, id: fn(u64) -> I) -> Page<I> {
    Page { cursor: Cursor::After(id(position)), limit: limits::PAGE_MAX }
}

/// The id up to which a page is complete, if there are more items.
fn reach<I: Copy + Into<u64>>(page: &PageOf<I>) -> Option<u64> {
    page.items.first().filter(|_| page.more).map(|newest| (*newest).into())
}

/// Stories that were shown and are not any more, except those displaced by newer ones. Both newest first.
fn gone(shown: &[StoryRef], now_shown: &[StoryRef]) -> Vec<StoryId> {
    let full = now_shown.last().filter(|_| now_shown.len() >= STORIES_SHOWN);
    let oldest = full.map_or(0, |last| last.story.0);
    let still = |story: &StoryId| {
        now_shown.binary_search_by(|other| story.cmp(&other.story)).is_ok() || story.0 < oldest
    };
    shown.iter().map(|shown| shown.story).filter(|story| !still(story)).collect()
}

fn write_id(kind: &str, id: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(b"event: ");
    out.extend_from_slice(kind.as_bytes());
    out.extend_from_slice(b"\ndata: {\"id\":\"");
    push_number(id, out);
    out.extend_from_slice(b"\"}\n\n");
}
