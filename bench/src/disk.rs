//! Size on disk of a follow, a post, a story and a key, and the size that is freed when half of them are deleted.
//!
//! Only the store is measured, because each checkpoint truncates the log.

use feed::{Command, Done, Lifetime, PostId, PostText, StoryId, UserId, UserRef};
use kv::{BucketId, Bytes, Expiry, KeyOp, KeyOps, Only};
use node::{Durability, Node, NodeOptions};
use sim::Population;
use sim::population::Making;
use tokio::runtime::Runtime;

use crate::cold_homes::settle;
use crate::report::Report;
use crate::scale::disk_mb;
use crate::stories::{register, submit_all, submit_each};

const USERS: u32 = 20_000;
const POSTS: u32 = 1_000_000;
const STORIES: u32 = 500_000;
const KEYS: u32 = 1_000_000;
/// Size of a value, in bytes.
const VALUE: usize = 100;
/// Number of keys that are changed together.
const KEYS_AT_ONCE: u32 = 1_000;

/// Kind of record, with functions that create records and delete half of them.
struct Kind {
    name: &'static str,
    make: fn(&Node, &Runtime, &mut Vec<u64>) -> anyhow::Result<()>,
    /// Deletes every second of the records with these ids.
    delete: fn(&Node, &Runtime, &[u64]) -> anyhow::Result<()>,
}

const KINDS: [Kind; 4] = [
    Kind { name: "follow, both directions", make: follow, delete: unfollow },
    Kind { name: "post of 78 bytes, half of them random", make: post, delete: delete_posts },
    Kind {
        name: "story of 78 bytes, half of them random",
        make: post_stories,
        delete: delete_stories,
    },
    Kind { name: "key with a value of 100 bytes", make: put, delete: remove },
];

pub(crate) fn measure(report: &mut Report) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    for Kind { name, make, delete } in KINDS {
        let data = tempfile::tempdir()?;
        let mut ids = Vec::new();
        let with = |act: &mut dyn FnMut(&Node) -> anyhow::Result<()>| {
            let mut options = NodeOptions::new(data.path());
            options.durability = Durability::Never;
            let node = Node::open(&options)?;
            act(&node)?;
            settle(&node);
            node.close();
            Ok::<_, anyhow::Error>(disk_mb(&data.path().join(STORE))? * 1e6)
        };
        let empty = with(&mut |node| submit_all(node, &runtime, (0..USERS).map(register)))?;
        let full = with(&mut |node| make(node, &runtime, &mut ids))?;
        let half: Vec<u64> = ids.iter().copied().step_by(2).collect();
        let deleted = with(&mut |node| delete(node, &runtime, &half))?;
        let later = with(&mut |_| Ok(()))?;
        let made = full - empty;
        report.add(format!("disk of a {name}"), "bytes", vec![made / ids.len() as f64], None);
        let back = |now: f64| vec![(full - now) / (made / 2.0)];
        report.add(format!("{name}: back when half are deleted"), "share", back(deleted), None);
        report.add(format!("{name}: the same after a restart"), "share", back(later), None);
    }
    Ok(())
}

/// Folder of the store in a data directory.
const STORE: &str = "store";

fn id(user: u32) -> UserRef {
    UserRef::Id(UserId(user))
}

/// Follows of the simulator's population.
fn follows() -> Vec<(u32, u32)> {
    let population = Population::made(&Making::of(USERS, 1));
    let of = |user| population.following(user).iter().map(move |other| (user, *other));
    (0..USERS).flat_map(of).collect()
}

fn follow(node: &Node, runtime: &Runtime, ids: &mut Vec<u64>) -> anyhow::Result<()> {
    let follows = follows();
    ids.extend(0..follows.len() as u64);
    let command = |(user, other)| Command::Follow { user: id(user), other: id(other) };
    submit_all(node, runtime, follows.into_iter().map(command))
}

fn unfollow(node: &Node, runtime: &Runtime, ids: &[u64]) -> anyhow::Result<()> {
    let follows = follows();
    let pairs = ids.iter().filter_map(|number| follows.get(*number as usize));
    let command =
        |(user, other): &(u32, u32)| Command::Unfollow { user: id(*user), other: id(*other) };
    submit_all(node, runtime, pairs.map(command))
}

/// Text of 78 characters, half of them random.
fn checked(number: u32) -> PostText {
    let random: String = value(number).chars().take(40).collect();
    PostText::parse(&format!("{random} is what somebody had to say about it."))
        .unwrap_or_else(|_| unreachable!("valid"))
}

fn post(node: &Node, runtime: &Runtime, ids: &mut Vec<u64>) -> anyhow::Result<()> {
    let author = |n: u32| id(n.wrapping_mul(7_919) % USERS);
    let posts = (0..POSTS).map(|n| Command::post(author(n), checked(n)));
    submit_each(node, runtime, posts, |done| match done {
        Done::Posted(PostId(post)) => ids.push(post),
        other => unreachable!("{other:?} is no post"),
    })
}

fn delete_posts(node: &Node, runtime: &Runtime, ids: &[u64]) -> anyhow::Result<()> {
    submit_all(node, runtime, ids.iter().map(|post| Command::DeletePost { post: PostId(*post) }))
}

fn post_stories(node: &Node, runtime: &Runtime, ids: &mut Vec<u64>) -> anyhow::Result<()> {
    let life = Lifetime::from_secs(86_400).unwrap_or_else(|_| unreachable!("a day"));
    let stories = (0..STORIES).map(|n| {
        let (author, text) = (id(n.wrapping_mul(7_919) % USERS), checked(n));
        Command::PostStory { author, text, life }
    });
    submit_each(node, runtime, stories, |done| match done {
        Done::StoryPosted { story: StoryId(story), .. } => ids.push(story),
        other => unreachable!("{other:?} is no story"),
    })
}

fn delete_stories(node: &Node, runtime: &Runtime, ids: &[u64]) -> anyhow::Result<()> {
    let stories = ids.iter().map(|story| Command::DeleteStory { story: StoryId(*story) });
    submit_all(node, runtime, stories)?;
    // Remove the rows of the deleted records.
    node.do_due();
    Ok(())
}

const BUCKET: BucketId = BucketId(0);

fn key(number: u32) -> String {
    format!("key:{number:08}")
}

/// Hexadecimal digits, which cannot be compressed to less than half their length.
fn value(number: u32) -> String {
    let mixed = |n: usize| (u64::from(number) << 8 | n as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut digits: String =
        (0..VALUE.div_ceil(16)).map(|n| format!("{:016x}", mixed(n))).collect();
    digits.truncate(VALUE);
    digits
}

fn put(node: &Node, runtime: &Runtime, ids: &mut Vec<u64>) -> anyhow::Result<()> {
    ids.extend((0..KEYS).map(u64::from));
    for first in (0..KEYS).step_by(KEYS_AT_ONCE as usize) {
        let mut ops = KeyOps::default();
        for number in first..first + KEYS_AT_ONCE {
            let (key, value) = (key(number), value(number));
            let (key, value) = (Bytes::new(key.as_bytes()), Bytes::new(value.as_bytes()));
            let (expiry, only, old) = (Expiry::Never, Only::Always, false);
            ops.push(&KeyOp::Put { bucket: BUCKET, key, value, expiry, only, old });
        }
        runtime.block_on(node.submit_keys_waiting(ops, Vec::new()))?;
    }
    Ok(())
}

fn remove(node: &Node, runtime: &Runtime, ids: &[u64]) -> anyhow::Result<()> {
    for ids in ids.chunks(KEYS_AT_ONCE as usize) {
        let keys: Vec<String> = ids.iter().map(|number| key(*number as u32)).collect();
        let keys = keys.iter().map(|key| Bytes::new(key.as_bytes())).collect();
        let ops: KeyOps = [KeyOp::Remove { bucket: BUCKET, keys }].into_iter().collect();
        runtime.block_on(node.submit_keys_waiting(ops, Vec::new()))?;
    }
    Ok(())
}
