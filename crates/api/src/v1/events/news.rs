//! Frames of events, and positions as event ids.

use feed::{Stamp, StoryId, UserId};
use node::news::{Event, EventWriter, Kind, NewsPosition, Source};
use node::{Change, Node};

use crate::input::decimal;
use crate::page::push_number;

/// Frame that makes a client load its pages again.
pub(super) const RESYNC: &[u8] = b"event: resync\ndata: {}\n\n";

/// Parses a position: an id and `.p`, `.m` or `.s`.
pub(super) fn parse(text: &str) -> Option<NewsPosition> {
    let (id, kind) = text.split_once('.')?;
    let kind = match kind {
        "p" => Kind::Home,
        "m" => Kind::Notice,
        "s" => Kind::Story,
        _ => return None,
    };
    let id = decimal(id).filter(|id| *id <= Stamp::MAX.0)?;
    Some(NewsPosition { id, kind })
}

/// Writes a position in the form that [`parse`] reads.
pub(super) fn write(position: NewsPosition, out: &mut Vec<u8>) {
    push_number(position.id, out);
    out.extend_from_slice(match position.kind {
        Kind::Home => b".p",
        Kind::Notice => b".m",
        Kind::Story => b".s",
    });
}

/// Writer of a user's events as Server-Sent Events.
pub(super) struct Frames<'a> {
    pub(super) node: &'a Node,
    pub(super) user: UserId,
    pub(super) source: Source,
    pub(super) out: Vec<u8>,
}

impl EventWriter for Frames<'_> {
    fn write(&mut self, event: Event) -> Option<()> {
        match event {
            Event::Changed(change) => self.changed(change)?,
            Event::StoryEnded(story) => self.id("story_expired", story.0),
            Event::Home(post) => {
                self.item((b"post", post.0, Kind::Home), |Self { node, user, source, out }| {
                    match source {
                        Source::Memory => node.try_home_post(*user, post, out),
                        Source::Facts => node.home_post(*user, post, out),
                    }
                })?;
            }
            Event::Mention(post) => {
                self.item(
                    (b"mention", post.0, Kind::Notice),
                    |Self { node, source, out, .. }| {
                        // Mentions are not in memory.
                        *source == Source::Facts && node.post(post, out)
                    },
                )?;
            }
            Event::Story(story) => {
                let StoryId(id) = story.story;
                self.item((b"story", id, Kind::Story), |Self { node, user, source, out }| {
                    match source {
                        Source::Memory => node.try_story(story, *user, out),
                        Source::Facts => node.story(story.story, Some(*user), out),
                    }
                })?;
            }
            // Streams of `/v1` send mentions instead of notifications.
            Event::Notified(_) => {}
        }
        Some(())
    }

    fn bytes(&self) -> usize {
        self.out.len()
    }
}

impl Frames<'_> {
    fn changed(&mut self, change: Change) -> Option<()> {
        match change {
            Change::Deleted(post) => self.id("delete", post.0),
            Change::MentionDeleted(post, author) => {
                if self.may_see(author)? {
                    self.id("delete", post.0);
                }
            }
            Change::Followed(other) => self.id("follow", other.0.into()),
            Change::Unfollowed(other) => self.id("unfollow", other.0.into()),
            // Streams of `/v1` do not mark filtered posts.
            Change::Filters => {}
            Change::Missed => self.out.extend_from_slice(RESYNC),
            Change::Edited(post) => {
                let start = self.out.len();
                self.out.extend_from_slice(b"event: edit\ndata: ");
                let (node, out) = (self.node, &mut self.out);
                let written = match self.source {
                    Source::Memory => node.try_post_for(self.user, post, out),
                    Source::Facts => {
                        let viewer = node.viewer(Some(self.user));
                        let found = viewer.facts().post(post);
                        found.is_some_and(|found| viewer.receives_updates_of(&found))
                            && node.post(post, out)
                    }
                };
                self.end(written, start)?;
            }
        }
        Some(())
    }

    /// Whether the user may see events of an author; `None` if the answer is not in memory.
    fn may_see(&self, author: UserId) -> Option<bool> {
        match self.source {
            Source::Memory => self.node.surely_wants(self.user, author).then_some(true),
            Source::Facts => Some(self.node.viewer(Some(self.user)).notified_by(author)),
        }
    }

    /// Writes a new post or story with its position, or nothing if it no longer exists. `None` if it is not in memory.
    fn item(
        &mut self,
        (name, id, kind): (&[u8], u64, Kind),
        data: impl FnOnce(&mut Self) -> bool,
    ) -> Option<()> {
        let start = self.out.len();
        for part in [b"event: ".as_slice(), name, b"\nid: "] {
            self.out.extend_from_slice(part);
        }
        write(NewsPosition { id, kind }, &mut self.out);
        self.out.extend_from_slice(b"\ndata: ");
        let written = data(self);
        self.end(written, start)
    }

    /// Ends the event that begins at `start`; removes it if its post or story no longer exists. `None` if that is not
    /// in memory.
    fn end(&mut self, written: bool, start: usize) -> Option<()> {
        match (written, self.source) {
            (true, _) => self.out.extend_from_slice(b"\n\n"),
            (false, Source::Facts) => self.out.truncate(start),
            (false, Source::Memory) => return None,
        }
        Some(())
    }

    fn id(&mut self, kind: &str, id: u64) {
        for part in [b"event: ".as_slice(), kind.as_bytes(), b"\ndata: {\"id\":\""] {
            self.out.extend_from_slice(part);
        }
        push_number(id, &mut self.out);
        self.out.extend_from_slice(b"\"}\n\n");
    }
}
