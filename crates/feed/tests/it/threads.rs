//! Replies, edits and threads, compared with a plain list of posts and parents.

use std::collections::BTreeMap;

use crate::support::{World, id};
use feed::limits::{THREAD_ANCESTORS_MAX, THREAD_DEPTH_MAX};
use feed::thread::{ancestors, descendants};
use feed::{
    Command, Done, Draft, Effect, Facts, Patch, PostChange, PostId, PostText, Refusal, Rows as _,
    SetTable, Span, UserId, Viewer,
};
use proptest::prelude::*;
use testkit::MemoryRows;

fn text(text: &str) -> PostText {
    PostText::parse(text).unwrap()
}

fn reply(world: &mut World, author: u32, parent: PostId, words: &str) -> PostId {
    match world.run(Command::Publish(Box::new(Draft {
        parent: Some(parent),
        ..Draft::new(id(author), text(words))
    }))) {
        Ok(Done::Posted(id)) => id,
        other => panic!("{words:?}: {other:?}"),
    }
}

#[test]
fn a_reply_is_to_the_author_of_its_post_and_mentions_them_unless_it_is_their_own() {
    for (author, words, mentions) in [
        (0, "yes", vec![1]),
        (0, "@cy yes", vec![1, 2]),
        (0, "@cy and @bob", vec![2, 1]),
        (1, "and another thing", vec![]),
        (1, "@bob to myself", vec![1]),
    ] {
        let mut world = World::new();
        let parent = world.post(1, "a question");
        let id = reply(&mut world, author, parent, words);
        let post = world.facts().post(id).unwrap();
        let mentions: Vec<_> = mentions.into_iter().map(UserId).collect();
        assert_eq!((post.reply_to, &post.mentions), (Some(UserId(1)), &mentions), "{words:?}");
        assert_eq!(post.in_reply_to, Some(parent));
        let (author, listed, users) = (UserId(author), post.listed(), None);
        let change = PostChange::Published;
        let mut effects = vec![Effect::Post { post: id, author, listed, users, change }];
        let others: Vec<_> = mentions.into_iter().filter(|user| *user != author).collect();
        let mentioned = |user: &UserId| Effect::Mention { post: id, author, user: *user, change };
        effects.extend(others.iter().map(mentioned));
        assert_eq!(world.effects, effects, "{words:?}");
        for user in (0..3).map(UserId) {
            let found = world.facts().mentions_of(user, Span::ALL);
            assert_eq!(found.contains(&id), others.contains(&user), "{words:?}");
        }
    }
}

#[test]
fn a_reply_to_a_post_that_does_not_exist_is_refused_and_changes_nothing() {
    let mut world = World::new();
    let gone = world.post(1, "a question");
    world.run(Command::DeletePost { post: gone }).unwrap();
    let before = world.snapshot();
    for parent in [gone, PostId(0), PostId(u64::MAX)] {
        let command = Command::Publish(Box::new(Draft {
            parent: Some(parent),
            ..Draft::new(id(0), text("yes"))
        }));
        assert_eq!(world.run(command), Err(Refusal::ParentNotFound));
        assert_eq!((world.effects.as_slice(), &world.snapshot()), (&[][..], &before));
    }
}

#[test]
fn a_reply_outlives_its_post_and_leaves_no_rows_when_it_is_deleted() {
    let mut world = World::new();
    let before = world.snapshot();
    let top = world.post(0, "a question");
    let parent = reply(&mut world, 1, top, "an answer");
    let last = reply(&mut world, 2, parent, "thanks");
    world.run(Command::DeletePost { post: parent }).unwrap();
    assert_eq!(world.facts().post(last).unwrap().in_reply_to, Some(parent));
    let all = Viewer::new(world.facts(), None);
    assert_eq!(ancestors(&all, last), []);
    assert_eq!(descendants(&all, top, &[], 10).posts, []);
    for post in [last, top] {
        world.run(Command::DeletePost { post }).unwrap();
    }
    for parent in [top, parent] {
        assert_eq!(world.rows.members(SetTable::Replies, parent.0, Span::ALL), []);
    }
    assert_eq!(before.totals().posts, world.rows.totals().posts);
}

#[test]
fn an_edit_replaces_only_the_text_and_the_mentions() {
    let mut world = World::new();
    let question = world.post(2, "a question");
    let reply = reply(&mut world, 0, question, "@ada and @bob");
    let opened = world.post(0, "@bob hello");
    for (post, words, reply_to, mentions, concerned) in [
        (reply, "@ada only", 2, vec![2, 0], vec![2, 1]),
        (reply, "nobody", 2, vec![2], vec![2]),
        (opened, "@cy hello", 1, vec![2], vec![2, 1]),
    ] {
        let old = world.facts().post(post).unwrap();
        assert_eq!(
            world.run(Command::edit(post, Patch::of_text(text(words)))),
            Ok(Done::PostEdited)
        );
        let now = world.facts().post(post).unwrap();
        let ids = |users: Vec<u32>| users.into_iter().map(UserId).collect::<Vec<_>>();
        assert_eq!((now.content.text.as_str(), now.reply_to), (words, Some(UserId(reply_to))));
        assert_eq!((now.author, now.in_reply_to), (old.author, old.in_reply_to));
        assert_eq!(now.edited.map(feed::Stamp::unix_ms), Some(world.now_ms));
        let mentions = ids(mentions);
        assert_eq!(now.mentions, mentions, "{words:?}");
        for user in (0..3).map(UserId) {
            let found = world.facts().mentions_of(user, Span::ALL);
            let is_mentioned = mentions.contains(&user) && user != UserId(0);
            assert_eq!(found.contains(&post), is_mentioned, "{words:?}");
        }
        let (author, change) = (UserId(0), PostChange::Edited);
        let changed = |user| Effect::Mention { post, author, user, change };
        let mut effects =
            vec![Effect::Post { post, author, listed: now.listed(), users: None, change }];
        effects.extend(ids(concerned).into_iter().map(changed));
        if post == opened {
            effects.push(Effect::Notified { user: UserId(2) });
        }
        assert_eq!(world.effects, effects, "{words:?}");
        // An edit to the same text changes nothing.
        let before = world.snapshot();
        assert_eq!(
            world.run(Command::edit(post, Patch::of_text(text(words)))),
            Ok(Done::PostEdited)
        );
        assert_eq!((world.effects.as_slice(), &world.snapshot()), (&[][..], &before));
    }
    world.run(Command::DeletePost { post: opened }).unwrap();
    let edit = Command::edit(opened, Patch::of_text(text("too late")));
    assert_eq!(world.run(edit), Err(Refusal::PostNotFound));
    assert_eq!(world.facts().mentions_of(UserId(2), Span::ALL), [reply]);
}

/// All existing posts, each with its parent.
type Model = BTreeMap<PostId, Option<PostId>>;

fn ancestors_by(model: &Model, post: PostId) -> Vec<PostId> {
    let parent = |post: &PostId| model[post].filter(|parent| model.contains_key(parent));
    let mut found: Vec<_> = std::iter::successors(parent(&post), parent).collect();
    found.truncate(THREAD_ANCESTORS_MAX);
    found.reverse();
    found
}

fn descendants_by(model: &Model, post: PostId, depth: usize, found: &mut Vec<PostId>) {
    if depth == THREAD_DEPTH_MAX {
        return;
    }
    for (reply, _) in model.iter().filter(|(_, parent)| **parent == Some(post)) {
        found.push(*reply);
        descendants_by(model, *reply, depth + 1, found);
    }
}

/// All pages of the descendants of a post, concatenated.
fn all_pages(facts: Facts<'_, MemoryRows>, post: PostId, limit: usize) -> Vec<PostId> {
    let (mut all, mut from) = (Vec::new(), Vec::new());
    loop {
        let page = descendants(&Viewer::new(facts, None), post, &from, limit);
        assert!(page.posts.len() <= limit && (page.next.is_none() || page.posts.len() == limit));
        all.extend(page.posts);
        let Some(next) = page.next else { return all };
        assert!((1..=THREAD_DEPTH_MAX).contains(&next.len()));
        from = next;
    }
}

/// A post, or a reply to or deletion of a post, counted back from the newest.
#[derive(Clone, Debug)]
enum Step {
    Post,
    Reply(usize),
    Delete(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        1 => Just(Step::Post),
        // Mostly replies to recent posts, so that threads are deep.
        6 => (0..3_usize).prop_map(Step::Reply),
        4 => (0..60_usize).prop_map(Step::Reply),
        1 => (0..60_usize).prop_map(Step::Delete),
    ]
}

fn build(steps: &[Step]) -> (World, Model) {
    let (mut world, mut model) = (World::new(), Model::new());
    for step in steps {
        let newest: Vec<PostId> = model.keys().rev().copied().collect();
        let picked = |at: usize| newest.get(at % newest.len().max(1)).copied();
        match step {
            Step::Post => drop(model.insert(world.post(0, "text"), None)),
            Step::Reply(at) => {
                if let Some(parent) = picked(*at) {
                    model.insert(reply(&mut world, 1, parent, "text"), Some(parent));
                }
            }
            Step::Delete(at) => {
                if let Some(post) = picked(*at) {
                    world.run(Command::DeletePost { post }).unwrap();
                    model.remove(&post);
                }
            }
        }
    }
    (world, model)
}

proptest! {
    #[test]
    fn a_thread_equals_the_model_on_pages_of_any_length(
        steps in prop::collection::vec(step(), 1..120),
        limit in 1_usize..8,
    ) {
        let (world, model) = build(&steps);
        for post in model.keys() {
            let all = Viewer::new(world.facts(), None);
            prop_assert_eq!(ancestors(&all, *post), ancestors_by(&model, *post));
            let mut below = Vec::new();
            descendants_by(&model, *post, 0, &mut below);
            prop_assert_eq!(all_pages(world.facts(), *post, limit), below);
        }
    }

    #[test]
    fn a_page_that_begins_after_a_deleted_post_continues_with_the_rest(
        steps in prop::collection::vec(step(), 1..80),
        limit in 1_usize..8,
        gone in any::<prop::sample::Index>(),
    ) {
        let (mut world, mut model) = build(&steps);
        let Some(top) = model.keys().next().copied() else { return Ok(()) };
        let mut below = Vec::new();
        descendants_by(&model, top, 0, &mut below);
        let page = descendants(&Viewer::new(world.facts(), None), top, &[], limit);
        let Some(next) = page.next else { return Ok(()) };
        let post = next[gone.index(next.len())];
        world.run(Command::DeletePost { post }).unwrap();
        model.remove(&post);
        let mut left = Vec::new();
        descendants_by(&model, top, 0, &mut left);
        let rest: Vec<_> = below[limit..].iter().filter(|post| left.contains(post)).copied().collect();
        let found = descendants(&Viewer::new(world.facts(), None), top, &next, 100).posts;
        prop_assert_eq!(found, &rest[..rest.len().min(100)]);
    }
}

#[test]
fn threads_are_read_up_to_the_limits() {
    let mut world = World::new();
    let chain = THREAD_ANCESTORS_MAX + 5;
    let mut posts = vec![world.post(0, "text")];
    for _ in 1..chain {
        let last = posts[posts.len() - 1];
        posts.push(reply(&mut world, 1, last, "text"));
    }
    let above = ancestors(&Viewer::new(world.facts(), None), posts[chain - 1]);
    assert_eq!(above, posts[chain - 1 - THREAD_ANCESTORS_MAX..chain - 1]);
    let below = descendants(&Viewer::new(world.facts(), None), posts[0], &[], 100);
    assert_eq!((below.posts.as_slice(), below.next), (&posts[1..=THREAD_DEPTH_MAX], None));
    // A path outside of this thread returns no posts.
    let strange = world.post(0, "elsewhere");
    reply(&mut world, 1, strange, "text");
    for path in [vec![strange], vec![PostId(u64::MAX)], vec![strange; THREAD_DEPTH_MAX]] {
        let all = Viewer::new(world.facts(), None);
        assert_eq!(descendants(&all, posts[0], &path, 100).posts, []);
    }
}
