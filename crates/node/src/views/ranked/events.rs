//! Events of the view, made of effects and the facts. Each event has the present counts, so that applying it twice
//! changes nothing.

use feed::post_lists::PublicList;
use feed::{
    Act, Effect, Facts, Post, PostChange, PostCounts, PostId, Reaction, UserChange, UserId,
    Visibility,
};
use rows::{Rows, Span};

use super::recent::{Recent, TAGS_MAX, YOUNG_EXTRA, language_number, tag_number};

/// Maximum number of replies that are read to count the users who replied.
const REPLIES_READ: usize = 100;
/// Maximum number of reactions of a post that are read when the view is loaded.
const REACTIONS_LOADED: usize = 64;
/// Maximum number of reactions of a kind that are read to count those by young accounts, and by others if these are many.
const REACTIONS_COUNTED: usize = 64;
/// Number of posts that are read at a time when the view is loaded.
const LOADED_AT_ONCE: usize = 1_024;
/// Number of posts up to which an author is new.
const NEW_AUTHOR_POSTS: u32 = 10;
/// Age up to which an account is young.
const YOUNG_MS: u64 = 3_600_000;

/// A change of the view.
pub(super) enum Event {
    Posted {
        post: Recent,
        is_new_author: bool,
    },
    Edited {
        post: PostId,
        subjects: Subjects,
    },
    Removed(PostId),
    /// The posts of a user are hidden or deleted.
    Hidden(UserId),
    Replied {
        post: PostId,
        replies: u16,
    },
    Reacted {
        user: UserId,
        post: PostId,
        is_added: bool,
        counts: Counts,
    },
}

/// Numbers of reactions to a post by users other than the author.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub(super) favourites: u32,
    pub(super) boosts: u32,
    /// Number of those by young accounts; 0 if many others reacted too.
    pub(super) young: u32,
}

/// Data of a post that an edit may change.
pub(super) struct Subjects {
    pub(super) tags: [u32; TAGS_MAX],
    pub(super) language: u16,
    pub(super) is_plain: bool,
}

/// Source of the data of events.
pub(super) struct Reader<'a, R: Rows + ?Sized> {
    pub(super) facts: Facts<'a, R>,
    /// First young account.
    pub(super) young_from: UserId,
}

/// Makes the events of effects. `author_of` returns the author of a recent post. Takes one from `left` for each effect
/// that reads the facts, and ends at 0.
pub(super) fn events<R: Rows + ?Sized>(
    reader: &Reader<'_, R>,
    effects: &[Effect],
    author_of: impl Fn(PostId) -> Option<UserId>,
    left: &mut usize,
) -> Vec<Event> {
    let mut events = Vec::new();
    for effect in effects {
        if *left == 0 {
            break;
        }
        events.extend(reader.event(effect, &author_of, left));
    }
    events
}

impl<R: Rows + ?Sized> Reader<'_, R> {
    fn event(
        &self,
        effect: &Effect,
        author_of: impl Fn(PostId) -> Option<UserId>,
        left: &mut usize,
    ) -> Option<Event> {
        match *effect {
            Effect::Act { user, act: Act::Reacted { post, reaction: Reaction::Favourite, on } } => {
                let author = author_of(post)?;
                *left -= 1;
                // A user may have favourited and boosted the post.
                let reacts = on || self.facts.reaction(user, post, Reaction::Boost).is_some();
                let counts = self.counts(post, author);
                Some(Event::Reacted { user, post, is_added: reacts, counts })
            }
            Effect::Post { post, change: PostChange::Deleted, listed, .. } => {
                (!listed.is_boost()).then_some(Event::Removed(post))
            }
            Effect::Post { post, author, listed, change, .. } => {
                let is_public = listed.visibility() == Visibility::Public;
                let is_reply = listed.is_reply_to_other(author);
                if change == PostChange::Edited && author_of(post).is_none()
                    || change == PostChange::Shown
                    || !listed.visibility().is_open()
                    || !is_public && !is_reply && !listed.is_boost()
                {
                    return None;
                }
                *left -= 1;
                let found = self.facts.post(post)?;
                if let Some(boost) = &found.boost {
                    let counts = self.counts(boost.post, author_of(boost.post)?);
                    let (user, post) = (author, boost.post);
                    return Some(Event::Reacted { user, post, is_added: true, counts });
                }
                if is_reply {
                    let parent = found.in_reply_to?;
                    return Some(self.replied(parent, author_of(parent)?));
                }
                Some(match change {
                    PostChange::Edited => Event::Edited { post, subjects: subjects(&found) },
                    _ => self.posted(post, &found),
                })
            }
            Effect::User { user, change: UserChange::Hidden | UserChange::Deleted } => {
                *left -= 1;
                Some(Event::Hidden(user))
            }
            _ => None,
        }
    }

    fn posted(&self, id: PostId, post: &Post) -> Event {
        let Subjects { tags, language, is_plain } = subjects(post);
        let author = post.author;
        let post = Recent {
            id,
            author,
            favourites: 0,
            boosts: 0,
            replies: 0,
            young: 0,
            tags,
            language,
            is_plain,
            is_removed: false,
        };
        let is_new_author = self.facts.stored_counts(author).posts <= NEW_AUTHOR_POSTS;
        Event::Posted { post, is_new_author }
    }

    /// Counts the reactions to a post. Young accounts have the greatest ids, so they are found without the others.
    fn counts(&self, post: PostId, author: UserId) -> Counts {
        let facts = self.facts;
        let all = facts.post_counts(post);
        if all == PostCounts::default() {
            return Counts::default();
        }
        let own = |reaction| u32::from(facts.reaction(author, post, reaction).is_some());
        let favourites = all.favourites.saturating_sub(own(Reaction::Favourite));
        let boosts = all.boosts.saturating_sub(own(Reaction::Boost));
        let number = |span: Span| {
            let span = Span { limit: REACTIONS_COUNTED, ..span };
            let by = |reaction| {
                let users = facts.reacted_by(post, reaction, span).into_iter();
                users.filter(|user| *user != author).count()
            };
            by(Reaction::Favourite) + by(Reaction::Boost)
        };
        let young_from = u64::from(self.young_from.0);
        let mut young = number(Span { low: young_from, ..Span::ALL }) as u32;
        if young as usize >= REACTIONS_COUNTED - 1 {
            let others =
                young_from.checked_sub(1).map_or(0, |high| number(Span { high, ..Span::ALL }));
            let are_many = others >= REACTIONS_COUNTED - 1;
            young = if are_many { 0 } else { (favourites + boosts).saturating_sub(others as u32) };
        }
        Counts { favourites, boosts, young }
    }

    /// Counts the users who replied; young accounts are limited as for reactions.
    fn replied(&self, post: PostId, author: UserId) -> Event {
        let users = self.facts.repliers(post, author, REPLIES_READ);
        let old = users.iter().filter(|user| **user < self.young_from).count();
        let replies = users.len().min(2 * old + YOUNG_EXTRA as usize) as u16;
        Event::Replied { post, replies }
    }
}

fn subjects(post: &Post) -> Subjects {
    let mut tags = [0; TAGS_MAX];
    for (number, tag) in tags.iter_mut().zip(&post.tags()) {
        *number = tag_number(tag);
    }
    let language = post.language.as_ref().map_or(0, language_number);
    let is_plain = !post.sensitive && post.warning.as_str().is_empty();
    Subjects { tags, language, is_plain }
}

/// First account that was registered within the last hour; later accounts are younger.
pub(super) fn first_young<R: Rows + ?Sized>(facts: Facts<'_, R>, now_ms: u64) -> UserId {
    let is_young = |user: u32| {
        let user = facts.stored_user(UserId(user));
        user.is_some_and(|user| user.registered.unix_ms() + YOUNG_MS > now_ms)
    };
    let (mut low, mut high) = (0, facts.totals().users);
    while low < high {
        let middle = u32::midpoint(low, high);
        if is_young(middle) { high = middle } else { low = middle + 1 }
    }
    UserId(low)
}

/// Makes the events of the newest posts, oldest first, each followed by the reactions to it. So the last reactions of a
/// user are about those to the newest posts.
pub(super) fn load<R: Rows + ?Sized>(
    facts: Facts<'_, R>,
    max: usize,
    young_from: UserId,
    mut apply: impl FnMut(Event),
) {
    let reader = Reader { facts, young_from };
    for (id, author) in newest(facts, max).into_iter().rev() {
        let Some(post) = facts.post(id) else { continue };
        apply(reader.posted(id, &post));
        let counts = reader.counts(id, author);
        if facts.post_counts(id) != PostCounts::default() {
            for (_, reaction, user, _) in facts.reactions_to(id, 0, REACTIONS_LOADED) {
                if matches!(reaction, Reaction::Favourite | Reaction::Boost) {
                    apply(Event::Reacted { user, post: id, is_added: true, counts });
                }
            }
        }
        match reader.replied(id, author) {
            Event::Replied { replies: 0, .. } => {}
            replied => apply(replied),
        }
    }
}

/// Newest posts of the public timeline, newest first.
fn newest<R: Rows + ?Sized>(facts: Facts<'_, R>, max: usize) -> Vec<(PostId, UserId)> {
    let mut posts = Vec::new();
    let mut rest = Span::below(None, LOADED_AT_ONCE.min(max));
    while let Some(span) = rest.filter(|span| span.limit > 0) {
        let found = facts.public_posts(PublicList::Posts, span);
        let last = found.last().filter(|_| found.len() >= span.limit).map(|(post, _)| post.0);
        posts.extend(found);
        rest = last.and_then(|last| span.beyond(last, LOADED_AT_ONCE.min(max - posts.len())));
    }
    posts
}
