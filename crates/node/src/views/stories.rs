//! Lists of friends' stories from memory: the newest stories of all authors, and the friends and seen stories of
//! readers. Each read gathers a list from this data.

use feed::stories::{StoryRef, gather};
use feed::{Effect, Facts, Input, Page, PageOf, StoryChange, StoryId, UserChange, UserId};
use rows::{Rows, Span};

use super::newest_stories::{Item, NewestStories};
use super::user_cache::{Cached, UserCache};

/// Maximum number of seen stories that are kept of a reader, ended ones included. They take 8 KiB, which are copied for
/// each newly seen story. Older seen stories are read from the facts one by one.
const SEEN_MAX: usize = 1_024;

/// Data for lists of stories.
pub(crate) struct Stories {
    readers: UserCache<Reader>,
    newest: UserCache<NewestStories>,
}

/// Data of a reader that the list of stories depends on.
struct Reader {
    /// Friends whom the reader does not mute, sorted.
    friends: Box<[UserId]>,
    /// Stories that the reader has seen, sorted: all live ones from `seen_from` on.
    seen: Box<[StoryId]>,
    seen_from: StoryId,
}

/// A story in the list of a reader.
#[derive(Clone, Copy)]
pub(crate) struct Shown {
    pub(crate) story: StoryRef,
    pub(crate) seen: bool,
}

impl feed::Item for Shown {
    fn id(&self) -> u64 {
        self.story.id()
    }
}

impl Reader {
    fn read<R: Rows + ?Sized>(facts: Facts<'_, R>, user: UserId) -> Self {
        let newest = Span::below(None, SEEN_MAX).map(|span| facts.seen_by(user, span));
        let mut seen = newest.unwrap_or_default();
        seen.reverse();
        let is_cut = seen.len() >= SEEN_MAX;
        let seen_from = seen.first().copied().filter(|_| is_cut).unwrap_or(StoryId(0));
        Self { friends: facts.story_authors(user).into(), seen: seen.into(), seen_from }
    }

    /// Returns a copy with one more seen story.
    fn seeing(&self, story: StoryId) -> Self {
        let (mut seen, mut seen_from) = (self.seen.to_vec(), self.seen_from);
        if story >= seen_from
            && let Err(at) = seen.binary_search(&story)
        {
            seen.insert(at, story);
        }
        if seen.len() > SEEN_MAX {
            seen.remove(0);
            seen_from = seen.first().copied().unwrap_or(seen_from);
        }
        Self { friends: self.friends.clone(), seen: seen.into(), seen_from }
    }

    /// Whether the reader has seen a live story; `None` if only the facts can decide.
    fn has_seen(&self, story: StoryId) -> Option<bool> {
        let found = self.seen.binary_search(&story).is_ok();
        (found || story >= self.seen_from).then_some(found)
    }
}

impl Cached for Reader {
    fn bytes(&self) -> usize {
        self.friends.len() * 4 + self.seen.len() * 8
    }
}

impl Stories {
    /// Creates an empty cache of at most `bytes`.
    pub(super) fn new(bytes: usize) -> Self {
        Self { readers: UserCache::new(bytes / 3), newest: UserCache::new(bytes - bytes / 3) }
    }

    /// Applies the effect of a command; returns whether it may change any reader's list of stories. Called by the
    /// writer only, in order, after the facts show it.
    pub(super) fn apply(&self, effect: &Effect) -> bool {
        match *effect {
            Effect::Input { user, input: Input::Friends | Input::Hidden } => {
                self.readers.change(user, |_| None);
            }
            Effect::Story { story, author, change } => match change {
                StoryChange::Posted { expires_ms } => {
                    self.newest.change(author, |newest| Some(newest.with((story, expires_ms))));
                }
                StoryChange::Gone => self.newest.change(author, |newest| newest.without(story.0)),
                StoryChange::Viewed { viewer } => {
                    self.readers.change(viewer, |reader| Some(reader.seeing(story)));
                    return false;
                }
            },
            // The user remains in the lists of friends, but has no stories any more.
            Effect::User { user, change: UserChange::Deleted } => {
                self.newest.change(user, |_| None);
                self.readers.change(user, |_| None);
            }
            // Only operators cause this. All readers are dropped, because the row does not list the friends of the
            // user.
            Effect::User { .. } => self.readers.clear(),
            _ => return false,
        }
        true
    }

    /// Drops everything. Called by the writer only, in the same order as [`Stories::apply`].
    pub(super) fn clear(&self) {
        self.readers.clear();
        self.newest.clear();
    }

    /// Returns a page of the stories of the user's friends at `now_ms`, newest first, if it is all in memory.
    pub(crate) fn try_home(&self, user: UserId, now_ms: u64, page: &Page) -> Option<PageOf<Shown>> {
        let PageOf { items, next } = self.try_stories(user, now_ms, page)?;
        let readers = self.readers.reader();
        let reader = readers.get(&user)?;
        let shown = |story: StoryRef| Some(Shown { story, seen: reader.has_seen(story.story)? });
        Some(PageOf { items: items.into_iter().map(shown).collect::<Option<_>>()?, next })
    }

    /// Returns the page of [`Stories::try_home`] without the marks of seen stories.
    pub(crate) fn try_stories(
        &self,
        user: UserId,
        now_ms: u64,
        page: &Page,
    ) -> Option<PageOf<StoryRef>> {
        let (readers, newest) = (self.readers.reader(), self.newest.reader());
        let mut is_complete = true;
        let page = gather(&readers.get(&user)?.friends, page, |friend, span, found| {
            let read = |newest: &NewestStories| read_live(newest, friend, now_ms, span, found);
            is_complete = is_complete && newest.get(&friend).is_some_and(read);
        });
        is_complete.then_some(page)
    }

    /// Whether `user` has seen a live story; `None` if that is not in memory.
    pub(crate) fn try_seen(&self, user: UserId, story: StoryId) -> Option<bool> {
        self.readers.reader().get(&user)?.has_seen(story)
    }

    /// Returns the page of [`Stories::try_home`], reading what is not in memory from the facts.
    pub(crate) fn home<R: Rows + ?Sized>(
        &self,
        facts: Facts<'_, R>,
        user: UserId,
        now_ms: u64,
        page: &Page,
    ) -> PageOf<Shown> {
        let home = |reader: &Reader| {
            let stories_by =
                |friend, span, found: &mut _| self.by(facts, friend, now_ms, span, found);
            let seen = |story| reader.has_seen(story).unwrap_or_else(|| facts.seen(user, story));
            let shown = |story: StoryRef| Shown { story, seen: seen(story.story) };
            gather(&reader.friends, page, stories_by).filter_map(|story| Some(shown(story)))
        };
        self.readers.get_or_read(user, || Reader::read(facts, user), home).0
    }

    /// Appends the stories of `author` within `span` that are live at `now_ms`.
    pub(crate) fn by<R: Rows + ?Sized>(
        &self,
        facts: Facts<'_, R>,
        author: UserId,
        now_ms: u64,
        span: Span,
        found: &mut Vec<StoryRef>,
    ) {
        let newest = || {
            let live = facts.live_stories_by(author, now_ms, NewestStories::NEWEST);
            NewestStories::scanned(live.into_iter().map(|story| (story.story, story.expires_ms)))
        };
        let read = |newest: &NewestStories| read_live(newest, author, now_ms, span, found);
        if !self.newest.get_or_read(author, newest, read).0 {
            found.extend(facts.live_stories_by(author, now_ms, span));
        }
    }

    /// Returns the estimated size in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.readers.bytes() + self.newest.bytes()
    }
}

fn read_live(
    newest: &NewestStories,
    author: UserId,
    now_ms: u64,
    span: Span,
    found: &mut Vec<StoryRef>,
) -> bool {
    let live = |&(story, expires_ms): &Item| {
        (now_ms < expires_ms).then_some(StoryRef { story, author, expires_ms })
    };
    newest.read(span, live, found)
}

#[cfg(test)]
mod tests {
    use rows::{PutRows as _, SetTable};
    use testkit::MemoryRows;

    use super::*;

    const ADA: UserId = UserId(1);

    fn see(stories: &Stories, story: u64) {
        let (author, change) = (UserId(2), StoryChange::Viewed { viewer: ADA });
        stories.apply(&Effect::Story { story: StoryId(story), author, change });
    }

    #[test]
    fn a_reader_of_very_many_stories_holds_few_of_them_and_forgets_none() {
        let (stories, mut rows) = (Stories::new(4 << 20), MemoryRows::default());
        let check = |rows: &MemoryRows, stories: &Stories, ids: &[u64]| {
            for id in ids {
                let story = StoryId(*id);
                let known = stories.try_seen(ADA, story);
                let seen = Facts::new(rows).seen(ADA, story);
                assert!(known.is_none_or(|known| known == seen), "story {id}: {known:?}");
            }
        };
        let page = Page::newest(10);
        // Stories with even ids are seen.
        let many = 5 * SEEN_MAX as u64;
        for n in 1..=many {
            rows.put_member(SetTable::Seen, 1, 2 * n, Some(0));
            see(&stories, 2 * n);
            if n == 100 || n == many / 2 {
                drop(stories.home(Facts::new(&rows), ADA, 0, &page));
            }
            assert!(stories.bytes() <= SEEN_MAX * 8 + 400, "after {n}: {}", stories.bytes());
            if n % 512 == 0 {
                check(&rows, &stories, &[2, 3, 2 * n - 2, 2 * n - 1, 2 * n, 2 * n + 1]);
            }
        }
        assert_eq!(stories.try_seen(ADA, StoryId(2 * many)), Some(true), "the newest are kept");
        assert_eq!(stories.try_seen(ADA, StoryId(2 * many - 1)), Some(false));
        // A story that is older than all cached seen stories is now marked as seen.
        rows.put_member(SetTable::Seen, 1, 1, Some(0));
        see(&stories, 1);
        assert_eq!(stories.try_seen(ADA, StoryId(1)), None);
        check(&rows, &stories, &[1, 2, 3, many]);
    }
}
