//! Pages of home timelines equal the definition, computed naively.

use std::cell::Cell;

use feed::HomeAuthors;
use feed::follow_options::FollowWith;
use feed::timeline::source_within;
use feed::{
    Bio, Command, Cursor, Draft, DueWork, Facts, Handle, Name, Page, PageOf, Patch, PostId,
    PostText, Reaction, Shown, StampedCommand, Txn, UserId, UserRef, Visibility, apply,
    scan_within,
};
use proptest::prelude::*;
use rows::{Stamp, StampClock};
use testkit::MemoryRows;

use crate::support::{gather, page_of};

const PEOPLE: u32 = 5;

#[derive(Clone, Debug)]
enum Step {
    Follow(u32, u32, bool),
    /// A follow of the second user by the first, with or without boosts.
    FollowWith(u32, u32, bool),
    /// A post that replies to a user, or else mentions one.
    Post(u32, Option<u32>, Option<u32>, Visibility),
    /// A reply to a post, which may be deleted.
    Reply(u32, usize),
    Edit(usize, Option<u32>),
    Delete(usize),
    /// A boost of a post, or its end.
    Boost(u32, usize, bool),
}

fn step() -> impl Strategy<Value = Step> {
    let user = 0..PEOPLE;
    prop_oneof![
        3 => (user.clone(), user.clone(), prop::bool::weighted(0.8))
            .prop_map(|(user, other, on)| Step::Follow(user, other, on)),
        2 => (user.clone(), user.clone(), any::<bool>())
            .prop_map(|(user, other, boosts)| Step::FollowWith(user, other, boosts)),
        6 => (user.clone(), prop::option::of(user.clone()), prop::option::of(user.clone()), 0..6usize)
            .prop_map(|(author, to, mentioned, at)| {
                Step::Post(author, to, mentioned, Visibility::ALL[at.saturating_sub(2)])
            }),
        3 => (user.clone(), 0usize..1_000).prop_map(|(author, at)| Step::Reply(author, at)),
        1 => (0usize..1_000, prop::option::of(user.clone()))
            .prop_map(|(at, to)| Step::Edit(at, to)),
        5 => (user, 0usize..1_000, prop::bool::weighted(0.8))
            .prop_map(|(user, at, on)| Step::Boost(user, at, on)),
        1 => any::<prop::sample::Index>().prop_map(|at| Step::Delete(at.index(1_000))),
    ]
}

/// Simple model of the history.
#[derive(Default)]
struct History {
    follows: Vec<(u32, u32)>,
    /// Readers, and users whose boosts they hide.
    hidden: Vec<(u32, u32)>,
    /// Post, author, and the user it replies to.
    posts: Vec<(PostId, u32, Option<u32>)>,
    /// Direct posts, and the users they mention.
    direct: Vec<(PostId, Vec<u32>)>,
    boosts: Vec<BoostOf>,
}

#[derive(Clone)]
struct BoostOf {
    id: PostId,
    user: u32,
    post: PostId,
    earlier: Vec<u32>,
}

impl History {
    /// Returns home(reader) by its definition, newest first.
    fn home(&self, reader: u32) -> Vec<PostId> {
        let follows = |other: u32| self.follows.contains(&(reader, other));
        let mut home: Vec<PostId> = self
            .posts
            .iter()
            .filter(|(_, author, _)| *author == reader || follows(*author))
            .filter(|(_, author, to)| {
                *author == reader || to.is_none_or(|to| to == reader || follows(to))
            })
            .filter(|(post, author, _)| *author == reader || self.is_for(reader, *post))
            .map(|(post, _, _)| *post)
            .collect();
        let shown = |boost: &&BoostOf| {
            let at_home = |user: u32| user == reader || follows(user);
            let boosts_at_home =
                |user: u32| at_home(user) && !self.hidden.contains(&(reader, user));
            let (_, author, to) = self.posts.iter().find(|(post, ..)| *post == boost.post).unwrap();
            // The whole history happens within a day.
            let is_recent = to.is_none_or(|to| to == *author);
            boosts_at_home(boost.user)
                && !(is_recent && at_home(*author))
                && !boost.earlier.iter().any(|user| boosts_at_home(*user))
        };
        home.extend(self.boosts.iter().filter(shown).map(|boost| boost.id));
        home.sort_by(|one, other| other.cmp(one));
        home
    }

    fn is_for(&self, reader: u32, post: PostId) -> bool {
        let direct = self.direct.iter().find(|(direct, _)| *direct == post);
        direct.is_none_or(|(_, mentioned)| mentioned.contains(&reader))
    }

    fn boost(&mut self, id: PostId, user: u32, post: PostId) {
        // The history has fewer users than a boost records, and happens within a day.
        let others = self.boosts.iter().filter(|boost| boost.post == post);
        let earlier = others.map(|boost| boost.user).collect();
        self.boosts.push(BoostOf { id, user, post, earlier });
    }

    fn page(&self, reader: u32, page: &Page) -> PageOf<PostId> {
        page_of(self.home(reader), page)
    }
}

/// Time between two steps: all 200 steps happen within a day and span many hours.
const STEP_MS: u64 = 6 * 60 * 1_000;
const START_MS: u64 = 1_800_000_000_000;

fn build(steps: &[Step]) -> (MemoryRows, History) {
    let (mut rows, mut history) = (MemoryRows::default(), History::default());
    let (mut clock, now_ms) = (StampClock::new(Stamp(0)), Cell::new(START_MS));
    let mut run = |command| {
        let stamp = clock.next(now_ms.get());
        let entry = StampedCommand { stamp, idempotency: None, command };
        let reply = apply(&mut Txn::new(&mut rows), &entry, &mut Vec::new());
        (PostId(entry.stamp.0), reply.outcome.is_ok())
    };
    let id = |user| UserRef::Id(UserId(user));
    for user in 0..PEOPLE {
        let handle = Handle::parse(&format!("u{user}")).unwrap();
        run(Command::Register { handle, name: Name::default(), bio: Bio::default() });
    }
    for step in steps {
        now_ms.set(now_ms.get() + STEP_MS);
        match *step {
            Step::Follow(..) | Step::FollowWith(..) => follow(&mut history, step, &mut run),
            Step::Post(author, to, mentioned, visibility) => {
                let mut text = to.map_or("plain".into(), |to| format!("@u{to} hello"));
                text.extend(mentioned.map(|user| format!(" @u{user}")));
                let text = PostText::parse(&text).unwrap();
                // In posts of the 2014 report, the text decides about the user replied to.
                let is_public = visibility == Visibility::Public;
                let new = Draft { visibility, ..Draft::new(id(author), text.clone()) };
                let (post, done) = run(match is_public {
                    true => Command::post(id(author), text),
                    false => Command::Publish(Box::new(new)),
                });
                assert!(done);
                history.posts.push((post, author, to.filter(|_| is_public)));
                if visibility == Visibility::Direct {
                    history.direct.push((post, to.into_iter().chain(mentioned).collect()));
                }
            }
            Step::Reply(author, at) if !history.posts.is_empty() => {
                let (parent, replied, _) = history.posts[at % history.posts.len()];
                // The user at the start of the text is mentioned, but not replied to.
                let text = PostText::parse(&format!("@u{} yes", at % PEOPLE as usize)).unwrap();
                let new = Draft { parent: Some(parent), ..Draft::new(id(author), text) };
                let (post, done) = run(Command::Publish(Box::new(new)));
                // The parent may be hidden from the author: see `feed/tests/it/visibility.rs`.
                if done {
                    history.posts.push((post, author, Some(replied)));
                }
            }
            Step::Edit(at, to) if !history.posts.is_empty() => {
                // An edit does not change the user replied to.
                let (post, _, _) = history.posts[at % history.posts.len()];
                let text = to.map_or("edited".into(), |to| format!("@u{to} edited"));
                let text = PostText::parse(&text).unwrap();
                assert!(run(Command::edit(post, Patch::of_text(text))).1);
            }
            Step::Delete(at) => {
                if !history.posts.is_empty() {
                    let (post, _, _) = history.posts.remove(at % history.posts.len());
                    let (deleted, done) = run(Command::DeletePost { post });
                    assert!(done);
                    let sweep = DueWork::SweepReactions { post }.since(Stamp(deleted.0));
                    run(Command::DoDue(sweep));
                    history.boosts.retain(|boost| boost.post != post);
                }
            }
            Step::Boost(user, at, on) if !history.posts.is_empty() => {
                boost(&mut history, (user, at, on), &mut run);
            }
            Step::Reply(..) | Step::Edit(..) | Step::Boost(..) => {}
        }
    }
    (rows, history)
}

/// Follows a user, with or without options, or unfollows.
fn follow(history: &mut History, step: &Step, run: &mut impl FnMut(Command) -> (PostId, bool)) {
    let id = |user| UserRef::Id(UserId(user));
    match *step {
        Step::Follow(user, other, on) => {
            let (user_ref, other_ref) = (id(user), id(other));
            history.follows.retain(|follow| *follow != (user, other));
            if on && user != other {
                history.follows.push((user, other));
            }
            if !on {
                history.hidden.retain(|hidden| *hidden != (user, other));
            }
            run(if on {
                Command::Follow { user: user_ref, other: other_ref }
            } else {
                Command::Unfollow { user: user_ref, other: other_ref }
            });
        }
        Step::FollowWith(user, other, boosts) => {
            if user != other {
                history.follows.retain(|follow| *follow != (user, other));
                history.follows.push((user, other));
                history.hidden.retain(|hidden| *hidden != (user, other));
                history.hidden.extend((!boosts).then_some((user, other)));
            }
            let (user, other, boosts) = (id(user), id(other), Some(boosts));
            let with = FollowWith { user, other, boosts, notify: None };
            run(Command::FollowWith(Box::new(with)));
        }
        _ => unreachable!("no follow"),
    }
}

/// Boosts a post, or sometimes a boost of it, or ends the boost.
fn boost(
    history: &mut History,
    (user, at, on): (u32, usize, bool),
    run: &mut impl FnMut(Command) -> (PostId, bool),
) {
    let (post, _, _) = history.posts[at % history.posts.len()];
    let mut known = history.boosts.iter();
    let known = known.position(|boost| (boost.user, boost.post) == (user, post));
    let named = history.boosts.iter().find(|boost| boost.post == post && at.is_multiple_of(3));
    let named = named.map_or(post, |boost| boost.id);
    let (reference, reaction) = (UserRef::Id(UserId(user)), Reaction::Boost);
    let (id, done) = run(Command::React { user: reference, post: named, reaction, on });
    match (known, on) {
        // Some users may not see the post, or not boost it.
        (None, true) if done => history.boost(id, user, post),
        (Some(known), false) => {
            let ended = history.boosts.remove(known);
            for boost in history.boosts.iter_mut().filter(|boost| boost.post == ended.post) {
                boost.earlier.retain(|other| *other != ended.user);
            }
        }
        _ => {}
    }
}

proptest! {
    #[test]
    fn a_gathered_page_equals_the_definition(
        steps in prop::collection::vec(step(), 0..200),
        reader in 0..PEOPLE,
        limit in 1usize..30,
        pick in any::<prop::sample::Index>(),
        offset in -1i64..=1,
        which in 0..3,
    ) {
        let (rows, history) = build(&steps);
        let around = if history.posts.is_empty() {
            PostId(5)
        } else {
            let (post, _, _) = history.posts[pick.index(history.posts.len())];
            PostId(post.0.saturating_add_signed(offset))
        };
        let cursor = match which {
            0 => Cursor::Newest,
            1 => Cursor::Before(around),
            _ => Cursor::After(around),
        };
        let page = Page::at(cursor, limit);
        let facts = Facts::new(&rows);
        let authors = facts.home_authors(UserId(reader));
        let gathered = gather(facts, UserId(reader), &authors, &page);
        prop_assert_eq!(gathered, history.page(reader, &page));
    }

    #[test]
    fn following_the_cursors_visits_every_post_once_in_both_directions(
        steps in prop::collection::vec(step(), 0..200),
        limit in 1usize..20,
        rows_max in prop_oneof![3 => 0usize..6, 1 => Just(usize::MAX)],
    ) {
        let (rows, history) = build(&steps);
        let facts = Facts::new(&rows);
        let authors = facts.home_authors(UserId(0));
        let page = |cursor| {
            let source = source_within(facts, UserId(0), &authors, rows_max);
            scan_within(rows_max, &Page::at(cursor, limit), source, Shown::Yes)
        };
        let mut down: Vec<PostId> = Vec::new();
        let mut next = Some(Cursor::Newest);
        while let Some(cursor) = next {
            let found = page(cursor);
            down.extend(&found.items);
            next = found.next.map(|next| Cursor::Before(PostId(next)));
        }
        prop_assert_eq!(&down, &history.home(0));
        let mut up: Vec<PostId> = Vec::new();
        let mut next = Some(Cursor::After(PostId(0)));
        while let Some(cursor) = next {
            let got = page(cursor);
            up.splice(0..0, got.items.iter().copied());
            next = got.next.map(|next| Cursor::After(PostId(next)));
        }
        prop_assert_eq!(&up, &history.home(0));
    }
}

proptest! {
    #[test]
    fn all_posts_are_read_newest_first_each_once(
        steps in prop::collection::vec(step(), 0..200),
        limit in 1usize..20,
    ) {
        let (rows, history) = build(&steps);
        let (facts, mut found, mut next) = (Facts::new(&rows), Vec::new(), Some(PostId(u64::MAX)));
        while let Some(before) = next {
            let (posts, older) = facts.posts_before(before, limit);
            found.extend(posts.into_iter().map(|loaded| {
                let ((post, listed), author) = (loaded.posted, loaded.author.0);
                (post, author, listed.reply_to().map(|to| to.0))
            }));
            next = older;
        }
        let mut posts = history.posts;
        posts.extend(history.boosts.iter().map(|boost| (boost.id, boost.user, None)));
        posts.sort_by(|one, other| other.cmp(one));
        prop_assert_eq!(found, posts);
    }
}

#[test]
fn pages_at_the_ends_of_the_id_range_are_empty_and_not_errors() {
    let (rows, _) = build(&[Step::Post(0, None, None, Visibility::Public)]);
    let facts = Facts::new(&rows);
    for cursor in [Cursor::Before(PostId(0)), Cursor::After(PostId(u64::MAX))] {
        let page = Page::at(cursor, 5);
        let got = gather(facts, UserId(0), &HomeAuthors::default(), &page);
        assert_eq!(got, PageOf::default());
    }
}
