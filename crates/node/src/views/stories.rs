//! Stories homes from memory: everybody's newest stories, and of readers who they are friends with
//! and what they have seen. A home is gathered at each read; what is kept here is what that asks for.

use feed::stories::{Told, gather};
use feed::{Effect, Facts, Page, PageOf, Rows, Span, StoryId, UserId};

use super::known::{Held, Known};
use super::recent::Recent;

/// Stories that a reader is known to have seen, dead ones among them, at which the list is read anew
/// from the facts, which know only those that stand.
const SEEN_MAX: usize = 1_024;

/// Who and what stories homes are gathered from.
pub(crate) struct Stories {
    readers: Known<Reader>,
    recent: Known<Recent<(StoryId, u64)>>,
}

/// What a stories home depends on besides the stories.
struct Reader {
    /// Sorted.
    friends: Box<[UserId]>,
    /// Sorted; all stories that stand and that the reader has seen.
    seen: Box<[StoryId]>,
}

/// A story on somebody's home.
#[derive(Clone, Copy)]
pub(crate) struct Shown {
    pub(crate) told: Told,
    pub(crate) seen: bool,
}

impl Reader {
    fn read<R: Rows + ?Sized>(facts: Facts<'_, R>, user: UserId) -> Self {
        let (friends, seen) = (facts.friends_all(user), facts.seen_by(user, Span::ALL));
        Self { friends: friends.into(), seen: seen.into() }
    }

    /// With one more story seen; nothing if there are too many to go on so.
    fn seeing(&self, story: StoryId) -> Option<Self> {
        let mut seen = self.seen.to_vec();
        if let Err(at) = seen.binary_search(&story) {
            seen.insert(at, story);
        }
        let few = seen.len() < SEEN_MAX;
        few.then(|| Self { friends: self.friends.clone(), seen: seen.into() })
    }

    /// A page of this reader's home; `stories_by` appends live stories of a friend.
    fn home(
        &self,
        page: &Page<StoryId>,
        stories_by: impl FnMut(UserId, Span, &mut Vec<Told>),
    ) -> PageOf<Shown> {
        let PageOf { items, more } = gather(&self.friends, page, stories_by);
        let shown = |told: Told| Shown { told, seen: self.seen.binary_search(&told.story).is_ok() };
        PageOf { items: items.into_iter().map(shown).collect(), more }
    }
}

impl Held for Reader {
    fn bytes(&self) -> usize {
        self.friends.len() * 4 + self.seen.len() * 8
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
            Effect::FriendsChanged { user, other, .. } => {
                for person in [user, other] {
                    self.readers.change(person, |_| None);
                }
            }
            Effect::StoryTold { story, author, expires_ms } => {
                self.recent.change(author, |recent| Some(recent.with((story, expires_ms))));
            }
            Effect::StoryGone { story, author } => {
                self.recent.change(author, |recent| recent.without(story.0));
            }
            Effect::StoryViewed { story, viewer } => {
                self.readers.change(viewer, |reader| reader.seeing(story));
            }
            _ => {}
        }
    }

    /// A page of the stories home of `user` at `now_ms`, newest first, if it is all in memory.
    pub(crate) fn try_home(
        &self,
        user: UserId,
        now_ms: u64,
        page: &Page<StoryId>,
    ) -> Option<PageOf<Shown>> {
        let (readers, recent) = (self.readers.look(), self.recent.look());
        let mut all_known = true;
        let page = readers.get(&user)?.home(page, |friend, span, found| {
            let read = |recent: &Recent<_>| read_live(recent, friend, now_ms, span, found);
            all_known = all_known && recent.get(&friend).is_some_and(read);
        });
        all_known.then_some(page)
    }

    /// Whether `user` has seen a story that is live, if that is in memory.
    pub(crate) fn try_seen(&self, user: UserId, story: StoryId) -> Option<bool> {
        Some(self.readers.look().get(&user)?.seen.binary_search(&story).is_ok())
    }

    /// As [`Stories::try_home`], with what is missing read from the facts.
    pub(crate) fn home<R: Rows + ?Sized>(
        &self,
        facts: Facts<'_, R>,
        user: UserId,
        now_ms: u64,
        page: &Page<StoryId>,
    ) -> PageOf<Shown> {
        let gather = |reader: &Reader| {
            reader.home(page, |friend, span, found| self.by(facts, friend, now_ms, span, found))
        };
        self.readers.look_or_read(user, || Reader::read(facts, user), gather)
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
        let newest = || {
            let live = facts.live_stories_by(author, now_ms, Recent::<(StoryId, u64)>::NEWEST);
            Recent::scanned(live.into_iter().map(|told| (told.story, told.expires_ms)))
        };
        let read = |recent: &Recent<_>| read_live(recent, author, now_ms, span, found);
        if !self.recent.look_or_read(author, newest, read) {
            found.extend(facts.live_stories_by(author, now_ms, span));
        }
    }

    /// Estimated bytes held.
    pub(super) fn bytes(&self) -> usize {
        self.readers.bytes() + self.recent.bytes()
    }
}

fn read_live(
    recent: &Recent<(StoryId, u64)>,
    author: UserId,
    now_ms: u64,
    span: Span,
    found: &mut Vec<Told>,
) -> bool {
    let live = |&(story, expires_ms): &(StoryId, u64)| {
        (now_ms < expires_ms).then_some(Told { story, author, expires_ms })
    };
    recent.read(span, live, found)
}
