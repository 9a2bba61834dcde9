//! Events of the view, made of effects and the facts. Each event has the present counts, so that applying it twice
//! changes nothing.

use feed::{
    Act, Effect, Facts, Post, PostChange, PostId, Reaction, UserChange, UserId, Visibility,
};
use hashbrown::HashMap;
use rows::{Rows, Span};

use super::languages::language_number;
use super::recent::{Recent, TAGS_MAX, YOUNG_EXTRA, tag_number};

/// Maximum number of replies that are read to count the users who replied.
const REPLIES_READ: usize = 100;
/// Maximum number of reactions of a kind that are read to count those by young accounts, and by others if these are
/// many.
const REACTIONS_COUNTED: usize = 64;
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

/// Number of effects for which the facts may still be read.
#[derive(Default)]
pub(super) struct Allowance {
    left: usize,
    /// Number of effects that were read, by the user who made the change.
    of_user: HashMap<UserId, usize>,
    per_user_max: usize,
    /// Number of effects that were not allowed.
    skipped: u64,
}

impl Allowance {
    /// Creates an allowance of `max` effects, of which at most `per_user_max` are changes by one user.
    pub(super) fn new(max: usize, per_user_max: usize) -> Self {
        Self { left: max, of_user: HashMap::new(), per_user_max, skipped: 0 }
    }

    /// Takes one effect by a user from the allowance; returns false if it is used up.
    fn take(&mut self, user: UserId) -> bool {
        let of_user = self.of_user.get(&user).copied().unwrap_or_default();
        let is_allowed = self.left > 0 && of_user < self.per_user_max;
        if is_allowed {
            self.left -= 1;
            self.of_user.insert(user, of_user + 1);
        } else {
            self.skipped += 1;
        }
        is_allowed
    }

    /// Number of effects that were not allowed since the last call.
    pub(super) fn take_skipped(&mut self) -> u64 {
        std::mem::take(&mut self.skipped)
    }
}

/// Effects of a group, which become events. Counts of a post are read once for the group, whose changes the facts show.
pub(super) struct Group<'a, R: Rows + ?Sized, A> {
    pub(super) reader: &'a Reader<'a, R>,
    /// Returns the author of a recent post.
    pub(super) author_of: A,
    pub(super) allowance: &'a mut Allowance,
    counted: HashMap<PostId, Counts>,
    replied: HashMap<PostId, u16>,
}

impl<'a, R: Rows + ?Sized, A: Fn(PostId) -> Option<UserId>> Group<'a, R, A> {
    pub(super) fn new(
        reader: &'a Reader<'a, R>,
        author_of: A,
        allowance: &'a mut Allowance,
    ) -> Self {
        let (counted, replied) = (HashMap::new(), HashMap::new());
        Self { reader, author_of, allowance, counted, replied }
    }

    /// Makes the event of an effect; `None` if the view does not need it, or if the facts would be read and the
    /// allowance is used up.
    pub(super) fn event(&mut self, effect: &Effect) -> Option<Event> {
        let facts = self.reader.facts;
        match *effect {
            Effect::Act { user, act: Act::Reacted { post, reaction: Reaction::Favourite, on } } => {
                let author = (self.author_of)(post)?;
                // Counts that were read for an earlier effect of the group cost nothing.
                let is_free = on && self.counted.contains_key(&post);
                if !is_free && !self.allowance.take(user) {
                    return None;
                }
                let counts = self.counts((post, author));
                // A user may have favourited and boosted the post.
                let is_added = on || facts.reaction(user, post, Reaction::Boost).is_some();
                Some(Event::Reacted { user, post, is_added, counts })
            }
            Effect::Post { post, change: PostChange::Deleted, listed, .. } => {
                (!listed.is_boost()).then_some(Event::Removed(post))
            }
            Effect::Post { post, author, listed, change, .. } => {
                let is_public = listed.visibility() == Visibility::Public;
                let is_reply = listed.is_reply_to_other(author);
                if change == PostChange::Edited && (self.author_of)(post).is_none()
                    || change == PostChange::Shown
                    || !listed.visibility().is_open()
                    || !is_public && !is_reply && !listed.is_boost()
                    || !self.allowance.take(author)
                {
                    return None;
                }
                let found = facts.post(post)?;
                if let Some(boost) = &found.boost {
                    let of = (boost.post, (self.author_of)(boost.post)?);
                    let counts = self.counts(of);
                    let (user, post) = (author, boost.post);
                    return Some(Event::Reacted { user, post, is_added: true, counts });
                }
                if is_reply {
                    let post = found.in_reply_to?;
                    let author = (self.author_of)(post)?;
                    let count = || self.reader.repliers(post, author);
                    let replies = *self.replied.entry(post).or_insert_with(count);
                    return Some(Event::Replied { post, replies });
                }
                Some(match change {
                    PostChange::Edited => Event::Edited { post, subjects: subjects(&found) },
                    _ => self.reader.posted(post, &found),
                })
            }
            Effect::User { user, change: UserChange::Hidden | UserChange::Deleted } => {
                Some(Event::Hidden(user))
            }
            _ => None,
        }
    }

    fn counts(&mut self, (post, author): (PostId, UserId)) -> Counts {
        let read = || self.reader.counts(post, author);
        *self.counted.entry(post).or_insert_with(read)
    }
}

impl<R: Rows + ?Sized> Reader<'_, R> {
    pub(super) fn posted(&self, id: PostId, post: &Post) -> Event {
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
    pub(super) fn counts(&self, post: PostId, author: UserId) -> Counts {
        let facts = self.facts;
        let all = facts.post_counts(post);
        let of = [(Reaction::Favourite, all.favourites), (Reaction::Boost, all.boosts)];
        // Most posts have reactions of one kind only.
        let kinds = of.into_iter().filter(|(_, count)| *count > 0);
        let [favourites, boosts] = of.map(|(reaction, count)| {
            let is_own = count > 0 && facts.reaction(author, post, reaction).is_some();
            count.saturating_sub(u32::from(is_own))
        });
        let number = |span: Span| {
            let span = Span { limit: REACTIONS_COUNTED, ..span };
            let by = |(reaction, _)| {
                let users = facts.reacted_by(post, reaction, span).into_iter();
                users.filter(|user| *user != author).count()
            };
            kinds.clone().map(by).sum::<usize>()
        };
        let young_from = u64::from(self.young_from.0);
        let are_any_young = self.young_from.0 < facts.totals().users;
        let mut young = match are_any_young {
            true => number(Span { low: young_from, ..Span::ALL }) as u32,
            false => 0,
        };
        if young as usize >= REACTIONS_COUNTED - 1 {
            let others =
                young_from.checked_sub(1).map_or(0, |high| number(Span { high, ..Span::ALL }));
            let are_many = others >= REACTIONS_COUNTED - 1;
            young = if are_many { 0 } else { (favourites + boosts).saturating_sub(others as u32) };
        }
        Counts { favourites, boosts, young }
    }

    /// Counts the users who replied; young accounts are limited as for reactions.
    pub(super) fn repliers(&self, post: PostId, author: UserId) -> u16 {
        let users = self.facts.repliers(post, author, REPLIES_READ);
        let old = users.iter().filter(|user| **user < self.young_from).count();
        users.len().min(2 * old + YOUNG_EXTRA as usize) as u16
    }
}

fn subjects(post: &Post) -> Subjects {
    let mut tags = [0; TAGS_MAX];
    for (number, tag) in tags.iter_mut().zip(&post.tags()) {
        *number = tag_number(tag);
    }
    let language = post.content.language.as_ref().map_or(0, language_number);
    let is_plain = !post.content.sensitive && post.content.warning.as_str().is_empty();
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
