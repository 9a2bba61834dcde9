//! Stories homes from memory: everybody's newest stories, and of readers who they are friends with
//! and what they have seen. A home is gathered at each read; what is kept here is what that asks for.

use std::sync::Arc;

use feed::stories::{Told, gather};
use feed::{Effect, Facts, Page, PageOf, Rows, Span, StoryId, UserId};

use super::known::{Held, Known};
use super::recent::Recent;

/// Stories that a reader is known to have seen, dead ones among them, at which the list is read anew
/// from the facts, which know only those that stand.
const SEEN_MAX: usize = 1_024;

/// Who and what stories homes are gathered from.
pub(crate) struct Stories {
    readers: Known<Arc<Reader>>,
    recent: Known<Recent<Told>>,
}

/// What a stories home depends on besides the stories.
#[derive(Clone)]
pub(crate) struct Reader {
    /// Sorted.
    friends: Vec<UserId>,
    /// Sorted; all stories that stand and that the reader has seen.
    seen: Vec<StoryId>,
}

impl Reader {
    fn read<R: Rows + ?Sized>(facts: Facts<'_, R>, user: UserId) -> Arc<Self> {
        let (friends, seen) = (facts.friends_all(user), facts.seen_by(user, Span::ALL));
        Arc::new(Self { friends, seen })
    }

    /// Whether the reader has seen a story that stands.
    pub(crate) fn has_seen(&self, story: StoryId) -> bool {
        self.seen.binary_search(&story).is_ok()
    }

    fn sees(&mut self, story: StoryId) {
        if let Err(at) = self.seen.binary_search(&story) {
            self.seen.insert(at, story);
        }
    }
}

impl Held for Arc<Reader> {
    fn bytes(&self) -> usize {
        size_of::<Reader>() + self.friends.capacity() * 4 + self.seen.capacity() * 8
    }
}

impl Stories {
    /// Keeps at most `bytes`.
    pub(super) fn new(bytes: usize) -> Self {
        Self { readers: Known::new(bytes / 3), recent: Known::new(bytes - bytes / 3) }
    }

    /// Takes in what a command did. Writer only, in order, once the facts show it.
    pub(super) fn take_in(&self, effect: Effect) {
        match effect {
            Effect::FriendsChanged { user, other } => {
                for person in [user, other] {
                    self.readers.change(person, |_| false);
                }
            }
            Effect::StoryTold { story, author, expires_ms } => {
                self.recent.change(author, |recent| {
                    recent.push(Told { story, author, expires_ms });
                    true
                });
            }
            Effect::StoryGone { story, author } => {
                self.recent.change(author, |recent| recent.remove(story.0));
            }
            Effect::StoryViewed { story, viewer } => self.readers.change(viewer, |reader| {
                Arc::make_mut(reader).sees(story);
                reader.seen.len() < SEEN_MAX
            }),
            _ => {}
        }
    }

    /// A page of the stories home of `user` at `now_ms`, newest first, if it is all in memory, and
    /// whose it is.
    pub(crate) fn try_home(
        &self,
        user: UserId,
        now_ms: u64,
        page: &Page<StoryId>,
    ) -> Option<(Arc<Reader>, PageOf<Told>)> {
        let reader = self.readers.look(user, Arc::clone)?;
        let mut all_known = true;
        let page = gather(&reader.friends, page, |friend, span, found| {
            all_known = all_known && self.try_by(friend, now_ms, span, found);
        });
        all_known.then_some((reader, page))
    }

    /// The same, with what is missing read from the facts.
    pub(crate) fn home<R: Rows + ?Sized>(
        &self,
        facts: Facts<'_, R>,
        user: UserId,
        now_ms: u64,
        page: &Page<StoryId>,
    ) -> (Arc<Reader>, PageOf<Told>) {
        let reader = self.readers.look_or_read(user, || Reader::read(facts, user), Arc::clone);
        let page = gather(&reader.friends, page, |friend, span, found| {
            self.by(facts, friend, now_ms, span, found);
        });
        (reader, page)
    }

    fn try_by(&self, author: UserId, now_ms: u64, span: Span, found: &mut Vec<Told>) -> bool {
        let read =
            |recent: &Recent<Told>| recent.read(span, |told| now_ms < told.expires_ms, found);
        self.recent.look(author, read).unwrap_or(false)
    }

    /// Appends the stories of `author` within `span` that are live at `now_ms`.
    pub(crate) fn by<R: Rows + ?Sized>(
        &self,
        facts: Facts<'_, R>,
        author: UserId,
        now_ms: u64,
        span: Span,
        found: &mut Vec<Told>,
    ) {
        let newest =
            || Recent::scanned(facts.live_stories_by(author, now_ms, Recent::<Told>::NEWEST));
        let live = |told: &Told| now_ms < told.expires_ms;
        if !self.recent.look_or_read(author, newest, |recent| recent.read(span, live, found)) {
            found.extend(facts.live_stories_by(author, now_ms, span));
        }
    }

    /// Estimated bytes held.
    pub(super) fn bytes(&self) -> usize {
        self.readers.bytes() + self.recent.bytes()
    }
}
