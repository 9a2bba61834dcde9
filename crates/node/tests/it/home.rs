//! Tests that a node's home timeline equals its definition, page by page, whatever was evicted, restarted or written in
//! between.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use feed::{
    Bio, Command, Cursor, Done, Draft, Handle, MuteTime, Name, Page, PageOf, Patch, PostId,
    PostText, Refusal, Tag, UserEdit, UserId, UserRef, Visibility,
};
use node::{Change, Clock, Durability, Node, NodeOptions, Request, SUBMISSION_COMMANDS_MAX};
use proptest::prelude::*;

use crate::support;

const USERS: u32 = 6;
/// Number of hashtags of posts.
const TAGS: usize = 3;

#[derive(Clone, Debug)]
enum Step {
    Follow(u32, u32, bool),
    /// Follows all of them with one command.
    FollowMany(u32, Vec<u32>),
    Block(u32, u32, bool),
    Mute(u32, u32, bool),
    FollowTag(u32, usize, bool),
    Mentions(u32),
    Post(u32, Option<u32>),
    /// Publishes many posts in a row, so that bounded lists overflow.
    Burst(u32, usize),
    Reply(u32, usize),
    Edit(usize),
    Delete(usize),
    Rename(u32),
    DeleteUser(u32),
    /// Waits until all rows of deleted users are removed.
    Erase,
    Read(u32, Page),
    ReadAround(u32, usize, bool, usize),
    Restart,
    /// Exports, and imports into another directory.
    Move,
}

fn step() -> impl Strategy<Value = Step> {
    let user = 0..USERS;
    prop_oneof![
        4 => (user.clone(), user.clone(), prop::bool::weighted(0.8))
            .prop_map(|(user, other, on)| Step::Follow(user, other, on)),
        1 => (user.clone(), prop::collection::vec(user.clone(), 0..4))
            .prop_map(|(user, others)| Step::FollowMany(user, others)),
        2 => (user.clone(), user.clone(), prop::bool::weighted(0.5))
            .prop_map(|(user, other, on)| Step::Block(user, other, on)),
        2 => (user.clone(), user.clone(), prop::bool::weighted(0.5))
            .prop_map(|(user, other, on)| Step::Mute(user, other, on)),
        2 => (user.clone(), 0..TAGS, prop::bool::weighted(0.7))
            .prop_map(|(user, tag, on)| Step::FollowTag(user, tag, on)),
        1 => user.clone().prop_map(Step::Mentions),
        6 => (user.clone(), prop::option::of(user.clone())).prop_map(|(a, to)| Step::Post(a, to)),
        1 => (user.clone(), 1usize..70).prop_map(|(author, posts)| Step::Burst(author, posts)),
        3 => (user.clone(), 0usize..10_000).prop_map(|(author, at)| Step::Reply(author, at)),
        1 => (0usize..10_000).prop_map(Step::Edit),
        2 => (0usize..10_000).prop_map(Step::Delete),
        1 => user.clone().prop_map(Step::Rename),
        1 => user.clone().prop_map(Step::DeleteUser),
        1 => Just(Step::Erase),
        6 => (user.clone(), 1usize..=100)
            .prop_map(|(user, limit)| Step::Read(user, Page::newest(limit))),
        4 => (user, 0usize..10_000, any::<bool>(), 1usize..=100)
            .prop_map(|(user, at, before, limit)| Step::ReadAround(user, at, before, limit)),
        1 => Just(Step::Restart),
    ]
}

/// Model of the acknowledged changes, stored as simply as possible.
#[derive(Default)]
struct Model {
    follows: Vec<(u32, u32)>,
    blocks: BTreeSet<(u32, u32)>,
    mutes: BTreeSet<(u32, u32)>,
    followed_tags: BTreeSet<(u32, usize)>,
    /// Hashtag of each post, whatever its visibility.
    tags: BTreeMap<PostId, usize>,
    posts: Vec<(PostId, u32, Option<u32>)>,
    /// Parents of replies, which may be deleted.
    parents: BTreeMap<PostId, PostId>,
    /// Visibility of posts that are not public, and the user whom each mentioned when it was published.
    visibility: BTreeMap<PostId, (Visibility, Option<u32>)>,
    edits: BTreeMap<PostId, String>,
    names: Vec<u32>,
    deleted: BTreeSet<u32>,
}

impl Model {
    fn are_hidden(&self, one: u32, other: u32) -> bool {
        self.blocks.contains(&(one, other)) || self.blocks.contains(&(other, one))
    }

    /// Whether a reader may see a post.
    fn sees(&self, reader: u32, post: PostId, author: u32) -> bool {
        let public = (Visibility::Public, None);
        let (visibility, to) = self.visibility.get(&post).copied().unwrap_or(public);
        let follows = || self.follows.contains(&(reader, author));
        let is_for = match visibility {
            Visibility::Public | Visibility::Unlisted => true,
            // The edits in this test mention nobody.
            Visibility::Followers => {
                follows() || to == Some(reader) && !self.edits.contains_key(&post)
            }
            Visibility::Direct => to == Some(reader),
        };
        reader == author || is_for && !self.are_hidden(reader, author)
    }

    fn has_followed_tag(&self, reader: u32, post: PostId, author: u32) -> bool {
        let is_public = self.visibility.get(&post).is_none_or(|(it, _)| *it == Visibility::Public);
        let is_wanted = is_public && !self.mutes.contains(&(reader, author));
        let tag = self.tags.get(&post).filter(|_| is_wanted && !self.are_hidden(reader, author));
        tag.is_some_and(|tag| self.followed_tags.contains(&(reader, *tag)))
    }

    fn page(&self, reader: u32, page: &Page) -> PageOf<PostId> {
        let follows = |other: u32| {
            let pair = (reader, other);
            other == reader || self.follows.contains(&pair) && !self.mutes.contains(&pair)
        };
        let seen = |(post, author, to): &&(PostId, u32, Option<u32>)| {
            let is_wanted = *author == reader || to.is_none_or(follows);
            let is_by_author = follows(*author) && is_wanted && self.sees(reader, *post, *author);
            is_by_author || self.has_followed_tag(reader, *post, *author)
        };
        let mut home: Vec<PostId> = self.posts.iter().filter(seen).map(|(p, _, _)| *p).collect();
        home.sort_by(|one, other| other.cmp(one));
        home.retain(|post| page.below.is_none_or(|below| post.0 < below));
        home.retain(|post| page.above.is_none_or(|above| post.0 > above));
        let surplus = home.len().saturating_sub(page.limit);
        let items = if page.is_up {
            home.split_off(surplus)
        } else {
            home[..home.len() - surplus].to_vec()
        };
        PageOf::newest_first(items, surplus > 0, page)
    }
}

/// A node with budgets so small that everything overflows, in a directory that outlives it.
struct Subject {
    /// `None` only during a restart.
    node: Option<Node>,
    options: NodeOptions,
    runtime: tokio::runtime::Runtime,
    model: Model,
    data: tempfile::TempDir,
}

impl Subject {
    fn new() -> Self {
        Self::with_post_memory(64 * 1_024)
    }

    fn with_post_memory(bytes: usize) -> Self {
        let data = tempfile::tempdir().unwrap();
        let mut options = NodeOptions::new(data.path());
        options.durability = Durability::Never;
        options.timeline_memory = 64 * 1_500;
        options.post_memory = bytes;
        options.entity_memory = 0;
        options.overlay_memory = 20_000;
        let node = Node::open(&options).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let subject = Self { node: Some(node), options, runtime, model: Model::default(), data };
        for user in 0..USERS {
            let handle = Handle::parse(&format!("u{user}")).unwrap();
            let _ = subject.submit(Command::Register {
                handle,
                name: Name::default(),
                bio: Bio::default(),
            });
        }
        subject
    }

    fn node(&self) -> &Node {
        self.node.as_ref().unwrap()
    }

    fn submit(&self, command: Command) -> feed::Outcome {
        self.runtime.block_on(self.node().submit(Request::from(command))).unwrap().outcome
    }

    fn post(&mut self, author: u32, to: Option<u32>) {
        let tag = self.model.posts.len() / 4 % (TAGS + 2);
        let text = to.map_or("plain".into(), |to| format!("@u{to} hello"));
        let text = PostText::parse(&format!("{text} #t{tag}")).unwrap();
        let to = to.filter(|to| !self.model.deleted.contains(to));
        let visibility = Visibility::ALL[self.model.posts.len() % 4];
        // A post by the 2014 report's API replies to the users in its text.
        let is_public = visibility == Visibility::Public;
        let new = Draft { visibility, ..Draft::new(id(author), text.clone()) };
        let done = self.submit(match is_public {
            true => Command::post(id(author), text),
            false => Command::Publish(Box::new(new)),
        });
        let Ok(Done::Posted(id)) = done else { panic!("a post is accepted") };
        self.model.posts.push((id, author, to.filter(|_| is_public)));
        self.model.tags.insert(id, tag);
        self.model.visibility.insert(id, (visibility, to));
        assert_eq!(self.read(author, &newest(1)).items, [id], "one's own post is there at once");
    }

    fn read(&self, user: u32, page: &Page) -> PageOf<PostId> {
        self.node().home_ids(UserId(user), page)
    }

    fn check(&self, user: u32, page: &Page) {
        assert_eq!(self.read(user, page), self.model.page(user, page), "{user} {page:?}");
    }

    /// Whether a step names a deleted user, whom no request finds.
    fn has_deleted(&self, step: &Step) -> bool {
        let users = match *step {
            Step::Follow(user, other, _)
            | Step::Block(user, other, _)
            | Step::Mute(user, other, _) => vec![user, other],
            Step::FollowMany(user, ref others) => [&[user], others.as_slice()].concat(),
            Step::Post(user, _)
            | Step::Burst(user, _)
            | Step::Reply(user, _)
            | Step::Rename(user)
            | Step::DeleteUser(user)
            | Step::FollowTag(user, ..)
            | Step::Mentions(user)
            | Step::Read(user, _)
            | Step::ReadAround(user, ..) => vec![user],
            Step::Edit(_) | Step::Delete(_) | Step::Erase | Step::Restart | Step::Move => {
                vec![]
            }
        };
        users.iter().any(|user| self.model.deleted.contains(user))
    }

    fn delete_user(&mut self, user: u32) {
        let model = &mut self.model;
        model.deleted.insert(user);
        model.follows.retain(|(one, other)| ![*one, *other].contains(&user));
        model.blocks.retain(|(one, other)| ![*one, *other].contains(&user));
        model.mutes.retain(|(one, other)| ![*one, *other].contains(&user));
        let (gone, left) = model.posts.iter().partition(|(_, author, _)| *author == user);
        model.posts = left;
        assert_eq!(self.submit(Command::DeleteUser { user: id(user) }), Ok(Done::UserDeleted));
        let gone: Vec<(PostId, u32, Option<u32>)> = gone;
        for (post, ..) in gone {
            assert!(!self.node().post(post, &mut Vec::new()), "a post of a deleted user is gone");
            let replies: Vec<PostId> = self.replies(post).collect();
            replies.into_iter().for_each(|reply| self.check_thread(reply));
        }
        assert_eq!(self.node().try_resolve(&id(user)), Some(None));
        self.check_all();
    }

    /// Checks all homes, profiles and counts.
    fn check_all(&self) {
        let facts = self.node().facts();
        for user in 0..USERS {
            let exists = !self.model.deleted.contains(&user);
            assert_eq!(self.node().resolve(&id(user)).is_some(), exists);
            let handle = UserRef::Handle(Handle::parse(&format!("u{user}")).unwrap());
            assert_eq!(self.node().resolve(&handle).is_some(), exists);
            assert_eq!(facts.user(UserId(user)).is_some(), exists);
            if exists {
                self.check(user, &newest(100));
                let follows = &self.model.follows;
                let following = follows.iter().filter(|(one, _)| *one == user).count();
                let followers = follows.iter().filter(|(_, other)| *other == user).count();
                let counts = || {
                    let counts = facts.counts(UserId(user));
                    (counts.following as usize, counts.followers as usize)
                };
                // A follow of a deleted user that is being removed may be subtracted twice for a moment.
                while counts() != (following, followers) && facts.totals().users_erasing > 0 {
                    std::thread::yield_now();
                }
                assert_eq!(counts(), (following, followers));
            }
        }
        let sizes = self.node().sizes();
        let users = u64::from(USERS) - self.model.deleted.len() as u64;
        let model = (users, self.model.posts.len() as u64, self.model.follows.len() as u64);
        assert_eq!((sizes.users, sizes.posts, sizes.follows), model);
    }

    fn follow_many(&mut self, user: u32, others: &[u32]) {
        let others_ids = others.iter().copied().map(id).collect();
        let command = Command::FollowMany { user: id(user), others: others_ids };
        let hidden = others.iter().any(|other| self.model.are_hidden(user, *other));
        let done = self.submit(command);
        assert!(done.is_err() || !hidden, "nobody follows across a block");
        if done.is_ok() {
            let followed: BTreeSet<u32> = others.iter().copied().collect();
            let follows = &mut self.model.follows;
            follows.retain(|(one, other)| *one != user || !followed.contains(other));
            follows.extend(followed.into_iter().map(|other| (user, other)));
        }
        self.check(user, &newest(20));
    }

    fn step(&mut self, step: &Step) {
        if self.has_deleted(step) {
            return;
        }
        match *step {
            Step::DeleteUser(user) => self.delete_user(user),
            Step::Erase => self.node().do_due(),
            Step::Follow(user, other, on) => {
                let (user_ref, other_ref) = (id(user), id(other));
                self.model.follows.retain(|follow| *follow != (user, other));
                if on && user != other && !self.model.are_hidden(user, other) {
                    self.model.follows.push((user, other));
                }
                let _ = self.submit(if on {
                    Command::Follow { user: user_ref, other: other_ref }
                } else {
                    Command::Unfollow { user: user_ref, other: other_ref }
                });
                self.check(user, &newest(20));
            }
            Step::FollowMany(user, ref others) => self.follow_many(user, others),
            Step::Block(user, other, on) => self.block(user, other, on),
            Step::Mute(user, other, on) => self.mute(user, other, on),
            Step::FollowTag(user, number, on) => self.follow_tag(user, number, on),
            Step::Mentions(user) => self.check_mentions(user),
            Step::Post(author, to) => self.post(author, to),
            Step::Burst(author, posts) => (0..posts).for_each(|_| self.post(author, None)),
            Step::Reply(author, at) => self.reply(author, at),
            Step::Edit(at) => self.edit(at),
            Step::Delete(at) => {
                if let Some((post, author, _)) = self.picked(at) {
                    self.model.posts.retain(|(id, _, _)| *id != post);
                    assert_eq!(self.submit(Command::DeletePost { post }), Ok(Done::Deleted));
                    assert!(!self.node().post(post, &mut Vec::new()), "a deleted post is gone");
                    self.check(author, &newest(100));
                    let replies: Vec<PostId> = self.replies(post).collect();
                    replies.into_iter().for_each(|reply| self.check_thread(reply));
                }
            }
            Step::Rename(user) => self.rename(user),
            Step::Read(user, ref page) => self.check(user, page),
            Step::ReadAround(user, at, before, limit) => {
                let around = match self.model.posts.len() {
                    0 => PostId(7),
                    posts => self.model.posts[at % posts].0,
                };
                let cursor = if before { Cursor::Before(around) } else { Cursor::After(around) };
                self.check(user, &Page::at(cursor, limit));
            }
            Step::Restart => {
                self.node.take().unwrap().close();
                self.node = Some(Node::open(&self.options).unwrap());
            }
            Step::Move => {
                self.node.take().unwrap().close();
                (self.options, self.data) = support::moved(&self.options);
                self.node = Some(Node::open(&self.options).unwrap());
                self.check_all();
            }
        }
    }

    fn edit(&mut self, at: usize) {
        if let Some((post, author, _)) = self.picked(at) {
            let tag = self.model.edits.len() % TAGS;
            let text = format!("edit {} #t{tag}", self.model.edits.len());
            self.model.tags.insert(post, tag);
            let edit = Command::edit(post, Patch::of_text(PostText::parse(&text).unwrap()));
            assert_eq!(self.submit(edit), Ok(Done::PostEdited));
            self.model.edits.insert(post, text);
            self.check_thread(post);
            self.check(author, &newest(100));
        }
    }

    fn follow_tag(&mut self, user: u32, number: usize, on: bool) {
        let tag = Tag::parse(&format!("t{number}")).unwrap();
        let done = self.submit(Command::FollowTag { user: id(user), tag, on });
        assert_eq!(done, Ok(Done::TagFollowed));
        match on {
            true => self.model.followed_tags.insert((user, number)),
            false => self.model.followed_tags.remove(&(user, number)),
        };
        self.check(user, &newest(20));
    }

    fn block(&mut self, user: u32, other: u32, on: bool) {
        let (user_ref, other_ref) = (id(user), id(other));
        let done = self.submit(match on {
            true => Command::Block { user: user_ref, other: other_ref },
            false => Command::Unblock { user: user_ref, other: other_ref },
        });
        if done.is_ok() && on {
            self.model.blocks.insert((user, other));
            self.model.follows.retain(|pair| ![(user, other), (other, user)].contains(pair));
        } else {
            self.model.blocks.remove(&(user, other));
        }
        for user in [user, other] {
            self.check(user, &newest(20));
            self.check_mentions(user);
        }
    }

    fn mute(&mut self, user: u32, other: u32, on: bool) {
        let (user_ref, other_ref) = (id(user), id(other));
        let done = self.submit(match on {
            true => Command::Mute { user: user_ref, other: other_ref, mentions: false, time: None },
            false => Command::Unmute { user: user_ref, other: other_ref },
        });
        if done.is_ok() && on {
            self.model.mutes.insert((user, other));
        } else {
            self.model.mutes.remove(&(user, other));
        }
        self.check(user, &newest(20));
    }

    /// Checks the mentions of a user, without those by hidden users.
    fn check_mentions(&self, user: u32) {
        let mut json = b"[".to_vec();
        self.node().mentions(UserId(user), &newest(100), &mut json);
        json.push(b']');
        let shown: Vec<serde_json::Value> = serde_json::from_slice(&json).unwrap();
        for post in &shown {
            let author: u32 = post["author"]["id"].as_str().unwrap().parse().unwrap();
            assert!(!self.model.are_hidden(user, author), "{post} is shown to {user}");
        }
        let all = self.node().mention_ids(UserId(user), &newest(100)).items;
        let is_shown = |post: &&PostId| {
            let found = self.model.posts.iter().find(|(id, ..)| id == *post);
            found.is_some_and(|(_, author, _)| !self.model.are_hidden(user, *author))
        };
        assert_eq!(shown.len(), all.iter().filter(is_shown).count());
    }

    fn picked(&self, at: usize) -> Option<(PostId, u32, Option<u32>)> {
        self.model.posts.get(at % self.model.posts.len().max(1)).copied()
    }

    fn reply(&mut self, author: u32, at: usize) {
        let Some((parent, replied, _)) = self.picked(at) else { return };
        let tag = self.model.posts.len() % TAGS;
        let text = PostText::parse(&format!("a reply #t{tag}")).unwrap();
        let new = Draft { parent: Some(parent), ..Draft::new(id(author), text) };
        let done = self.submit(Command::Publish(Box::new(new)));
        if !self.model.sees(author, parent, replied) {
            assert_eq!(done, Err(Refusal::ParentNotFound));
            return;
        }
        let Ok(Done::Posted(post)) = done else { panic!("a reply is accepted") };
        self.model.posts.push((post, author, Some(replied)));
        self.model.tags.insert(post, tag);
        self.model.parents.insert(post, parent);
        assert_eq!(self.read(author, &newest(1)).items, [post], "one's own post is there at once");
        self.check_thread(parent);
        self.check_thread(post);
    }

    fn exists(&self, post: PostId) -> bool {
        self.model.posts.iter().any(|(id, _, _)| *id == post)
    }

    /// Whether a reply shows its parent: not if some of its readers may not see that.
    fn names(&self, parent: PostId, reply: PostId) -> bool {
        let of = |post| self.model.visibility.get(&post).map_or(Visibility::Public, |it| it.0);
        of(parent).is_open() || of(parent) as u8 <= of(reply) as u8
    }

    /// Returns the existing replies to a post.
    fn replies(&self, post: PostId) -> impl Iterator<Item = PostId> {
        let all = self.model.parents.iter().filter(move |(_, parent)| **parent == post);
        all.map(|(reply, _)| *reply).filter(|reply| self.exists(*reply))
    }

    /// Checks that a post and its thread are shown in their present state, whatever was shown before.
    fn check_thread(&self, post: PostId) {
        let mut json = Vec::new();
        if !self.node().try_post(post, &mut json) {
            assert!(self.node().post(post, &mut json));
        }
        let shown: serde_json::Value = serde_json::from_slice(&json).unwrap();
        let parent = self.model.parents.get(&post).filter(|parent| self.exists(**parent));
        let named = parent.filter(|parent| self.names(**parent, post));
        let [parent, named] = [parent, named].map(|parent| Some(parent?.0.to_string()));
        assert_eq!(shown["in_reply_to_id"].as_str(), named.as_deref());
        if let Some(edit) = self.model.edits.get(&post) {
            assert_eq!(shown["text"].as_str(), Some(edit.as_str()));
        }
        assert_eq!(shown["edited_at"].is_null(), !self.model.edits.contains_key(&post));
        let mut json = b"{".to_vec();
        self.node().context(None, post, &[], 100, &mut json).unwrap();
        json.extend_from_slice(b"]}");
        let thread: serde_json::Value = serde_json::from_slice(&json).unwrap();
        let ids = |list: &str| -> Vec<String> {
            let posts = thread[list].as_array().unwrap().iter();
            posts.map(|post| post["id"].as_str().unwrap().to_owned()).collect()
        };
        assert_eq!(ids("ancestors").last(), parent.as_ref());
        let direct = |id: &String| {
            let found = &thread["items"].as_array().unwrap();
            let of = found.iter().find(|post| post["id"] == id.as_str()).unwrap();
            of["in_reply_to_id"] == post.0.to_string().as_str()
        };
        let direct: Vec<String> = ids("items").into_iter().filter(direct).collect();
        let expect = self.replies(post).filter(|reply| self.names(post, *reply));
        let expect: Vec<String> = expect.map(|reply| reply.0.to_string()).collect();
        if ids("items").len() < 100 {
            assert_eq!(direct, expect);
        }
    }

    /// Checks that a new name is shown with every post of the user after the acknowledgement.
    fn rename(&mut self, user: u32) {
        self.model.names.push(user);
        let name = format!("name {}", self.model.names.len());
        let new = Some(Name::parse(&name).unwrap());
        let edit = UserEdit { name: new, ..UserEdit::new(id(user)) };
        self.submit(Command::EditUser(Box::new(edit))).unwrap();
        let mut json = Vec::new();
        let ends =
            self.node().posts_by(&self.node().viewer(None), UserId(user), &newest(100), &mut json);
        let json = String::from_utf8(json).unwrap();
        let shown = json.matches(&format!("\"name\":\"{name}\"")).count();
        let posts = self.model.posts.iter().filter(|(_, author, _)| *author == user).count();
        assert_eq!(shown, posts.min(100), "{ends:?}");
    }
}

fn id(user: u32) -> UserRef {
    UserRef::Id(UserId(user))
}

fn newest(limit: usize) -> Page {
    Page::newest(limit)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]
    #[test]
    fn home_equals_its_definition_through_restarts_and_imports(
        // The newest 21, 63 or all posts are in memory.
        post_memory in prop::sample::select(vec![4_096, 8_192, 65_536]),
        steps in prop::collection::vec(step(), 1..120),
    ) {
        let mut subject = Subject::with_post_memory(post_memory);
        for (at, step) in steps.iter().enumerate() {
            if at == steps.len() / 2 {
                subject.step(&Step::Move);
            }
            subject.step(step);
        }
        subject.check_all();
        subject.node().do_due();
        prop_assert!(subject.node().facts().erasing().is_empty());
        subject.check_all();
    }
}

#[test]
fn readers_see_all_that_was_acknowledged_while_a_writer_is_busy() {
    let mut subject = Subject::new();
    for reader in 1..USERS {
        subject.submit(Command::Follow { user: id(reader), other: id(0) }).unwrap();
        subject.model.follows.push((reader, 0));
    }
    let done = AtomicBool::new(false);
    let node = subject.node().clone();
    std::thread::scope(|scope| {
        for reader in 1..USERS {
            let (node, done) = (node.clone(), &done);
            scope.spawn(move || {
                let mut last = PostId(0);
                while !done.load(Ordering::Acquire) {
                    let page = node.home_ids(UserId(reader), &newest(10)).items;
                    let newest = page.first().copied().unwrap_or(last);
                    assert!(newest >= last, "a timeline never goes back");
                    assert!(page.is_sorted_by(|one, other| one > other), "{page:?}");
                    last = newest;
                }
            });
        }
        for _ in 0..400 {
            let text = PostText::parse("news").unwrap();
            let Ok(Done::Posted(post)) =
                subject.submit(Command::Publish(Box::new(Draft::new(id(0), text))))
            else {
                panic!("a post is accepted");
            };
            subject.model.posts.push((post, 0, None));
            for reader in 1..USERS {
                assert_eq!(subject.read(reader, &newest(1)).items, [post]);
            }
        }
        done.store(true, Ordering::Release);
    });
    for user in 0..USERS {
        subject.check(user, &newest(100));
    }
}

/// The two lists of such a home are read one after the other, and posts arrive in both meanwhile.
#[test]
fn pages_upwards_of_a_home_with_hashtags_skip_nothing_while_a_writer_is_busy() {
    let subject = Subject::new();
    subject.submit(Command::Follow { user: id(1), other: id(0) }).unwrap();
    let tag = Tag::parse("t").unwrap();
    subject.submit(Command::FollowTag { user: id(1), tag, on: true }).unwrap();
    let (done, node) = (AtomicBool::new(false), subject.node().clone());
    let mut posts = Vec::new();
    let found = std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let (mut found, mut is_last) = (vec![PostId(0)], false);
            loop {
                let after = Cursor::After(found.last().copied().unwrap());
                let page = Page::at(after, 5);
                let page = node.home_ids(UserId(1), &page);
                found.extend(page.items.iter().rev());
                match is_last && page.items.is_empty() {
                    true => return found.split_off(1),
                    false => is_last = done.load(Ordering::Acquire),
                }
            }
        });
        for number in 0..600 {
            let author = number % 2 * 2;
            let text = PostText::parse(if author == 0 { "news" } else { "#t" }).unwrap();
            let command = Command::Publish(Box::new(Draft::new(id(author), text)));
            let Ok(Done::Posted(post)) = subject.submit(command) else { panic!("it is accepted") };
            posts.push(post);
        }
        done.store(true, Ordering::Release);
        reader.join().unwrap()
    });
    assert_eq!(found, posts);
}

#[test]
fn a_watch_reports_posts_mentions_and_follows() {
    let subject = Subject::new();
    subject.submit(Command::Follow { user: id(1), other: id(0) }).unwrap();
    let mut watch = subject.node().watch(UserId(1));
    let is_woken = |watch: &mut node::Watch| {
        let woken = async {
            tokio::select! {
                biased;
                () = watch.changed() => true,
                () = tokio::task::yield_now() => false,
            }
        };
        subject.runtime.block_on(woken)
    };
    let mut waits_for_news = |what: &str| {
        let start = Instant::now();
        while !is_woken(&mut watch) {
            assert!(start.elapsed() < Duration::from_secs(60), "no news of {what}");
            std::thread::yield_now();
        }
    };
    let post = |author, text| {
        let text = PostText::parse(text).unwrap();
        subject.submit(Command::Publish(Box::new(Draft::new(id(author), text)))).unwrap();
    };
    post(0, "from a followee");
    waits_for_news("a post by a followee");
    post(2, "hi @u1");
    waits_for_news("a mention");
    subject.submit(Command::Follow { user: id(1), other: id(2) }).unwrap();
    waits_for_news("a follow");
    subject.read(1, &newest(1));
    post(2, "from a new followee");
    waits_for_news("a post by a new followee");
}

/// Creates a node with a clock that the test sets, where user 1 follows user 0.
fn with_clock() -> (Subject, Arc<AtomicU64>) {
    let mut subject = Subject::new();
    subject.node.take().unwrap().close();
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let now_ms = Arc::new(AtomicU64::new(now.as_millis() as u64));
    let clock = Arc::clone(&now_ms);
    subject.options.clock = Clock::from_fn(move || clock.load(Ordering::Acquire));
    subject.node = Some(Node::open(&subject.options).unwrap());
    subject.submit(Command::Follow { user: id(1), other: id(0) }).unwrap();
    (subject, now_ms)
}

/// Returns the changes after the first `read` once they match: watchers are notified after the reply.
fn changes_when(
    watch: &node::Watch,
    read: u64,
    are_wanted: impl Fn(&[Change]) -> bool,
) -> Vec<Change> {
    let start = Instant::now();
    loop {
        let changes = watch.changes_after(read).into_iter().map(|(_, change)| change);
        let changes = Vec::from_iter(changes);
        if are_wanted(&changes) {
            return changes;
        }
        assert!(start.elapsed() < Duration::from_secs(60), "{changes:?}");
        std::thread::yield_now();
    }
}

#[test]
fn a_mute_ends_by_itself_and_its_user_is_notified() {
    let (subject, now_ms) = with_clock();
    let text = PostText::parse("hello").unwrap();
    let Ok(Done::Posted(post)) =
        subject.submit(Command::Publish(Box::new(Draft::new(id(0), text))))
    else {
        panic!("a post is accepted")
    };
    let home = || subject.read(1, &newest(9)).items;
    assert_eq!(home(), [post]);
    let watch = subject.node().watch(UserId(1));
    let time = Some(MuteTime::from_secs(60).unwrap());
    let mute = Command::Mute { user: id(1), other: id(0), mentions: true, time };
    subject.submit(mute).unwrap();
    assert_eq!(home(), []);
    let until = now_ms.load(Ordering::Acquire) + 60_000;
    now_ms.store(until - 1, Ordering::Release);
    subject.node().do_due();
    assert_eq!(home(), []);
    let read = watch.changes_end();
    now_ms.store(until + 1, Ordering::Release);
    subject.node().do_due();
    assert_eq!(home(), [post], "as if it had never been muted");
    changes_when(&watch, read, |changes| changes.contains(&Change::Missed));
    assert_eq!(subject.node().facts().first_due(0, None, 1), []);
}

#[test]
fn whoever_blocks_is_notified_and_whoever_is_blocked_only_if_a_relation_ends() {
    let subject = Subject::new();
    for (user, other) in [(0, 1), (1, 0)] {
        subject.submit(Command::Follow { user: id(user), other: id(other) }).unwrap();
    }
    let watches = [0, 1, 2].map(|user| subject.node().watch(UserId(user)));
    for other in [1, 2] {
        subject.submit(Command::Block { user: id(0), other: id(other) }).unwrap();
    }
    // Both blocks, and the end of the follow by the first.
    let unfollowed = [Change::Missed, Change::Unfollowed(UserId(1))];
    let blocked = [&[Change::Missed], &unfollowed[..], &[Change::Missed]].concat();
    changes_when(&watches[0], 0, |changes| changes == blocked);
    let ended = [Change::Missed, Change::Unfollowed(UserId(0))];
    changes_when(&watches[1], 0, |changes| changes == ended);
    subject.submit(Command::Follow { user: id(2), other: id(1) }).unwrap();
    let followed = [Change::Missed, Change::Followed(UserId(1))];
    let changes = changes_when(&watches[2], 0, |changes| changes.contains(&followed[1]));
    assert_eq!(changes, followed, "a block by a stranger is no news");
}

#[test]
fn a_second_node_in_the_same_directory_is_refused() {
    let mut subject = Subject::new();
    let refused = Node::open(&subject.options).err().unwrap();
    assert!(matches!(refused, node::OpenError::InUse(_)), "{refused}");
    subject.node.take().unwrap().close();
    Node::open(&subject.options).unwrap().close();
}

#[test]
fn commands_submitted_together_keep_their_order_and_a_closed_node_takes_none() {
    let subject = Subject::new();
    let follow = || Request::from(Command::Follow { user: id(0), other: id(1) });
    let unfollow = || Request::from(Command::Unfollow { user: id(0), other: id(1) });
    let pairs = SUBMISSION_COMMANDS_MAX / 2;
    let together = (0..pairs).flat_map(|_| [follow(), unfollow()]).collect();
    let replies = subject.runtime.block_on(subject.node().submit_all(together)).unwrap();
    for pair in replies.chunks(2) {
        assert_eq!(pair[0].outcome, Ok(Done::Followed));
        assert_eq!(pair[1].outcome, Ok(Done::Unfollowed));
    }
    assert_eq!(subject.node().sizes().follows, 0);
    subject.node().close();
    let refused = subject.runtime.block_on(subject.node().submit(follow()));
    assert_eq!(refused, Err(node::SubmitError::Stopped));
}
