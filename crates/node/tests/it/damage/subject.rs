//! The directory that is damaged, and everything that can be read of it.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use feed::{
    Bio, Command, Done, Handle, Label, Lifetime, Name, Page, PostText, SetName, Span, StoryId,
    UserId, UserRef,
};
use kv::{BucketId, Bytes, Expiry, KeyOp, KeyOps, Only};
use node::{Clock, Node, NodeOptions, OpenError, Request};
use tokio::runtime::Runtime;

const NOW_MS: u64 = 1_800_000_000_000;
const USERS: u32 = 5;
const BUCKETS: [BucketId; 2] = [BucketId(0), BucketId(7)];
/// Offsets of fields in the header of a log segment, and the length of a sector.
const LENGTH_AT: usize = 16;
const CRC_AT: usize = 24;
const SECTOR: usize = 512;
/// Number of sectors left free in the segment.
const FREE_SECTORS: usize = 4;

/// Answers of the undamaged directory.
pub(crate) struct Answers {
    pub(crate) all: String,
    /// Answers without the last group of the log.
    pub(crate) without_last_group: String,
}

impl Answers {
    pub(crate) fn read(folder: &Path) -> Self {
        let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap();
        Self { all: read("all.txt"), without_last_group: read("without-last-group.txt") }
    }

    /// Returns the first line that differs.
    pub(crate) fn difference(&self, read: &str) -> String {
        let mut lines = self.all.lines().zip(read.lines());
        match lines.find(|(expected, found)| expected != found) {
            Some((expected, found)) => format!("{found:.200} instead of {expected:.200}"),
            None => {
                format!("{} lines instead of {}", read.lines().count(), self.all.lines().count())
            }
        }
    }
}

pub(crate) fn options(data: &Path) -> NodeOptions {
    let mut options = NodeOptions::new(data);
    options.clock = Clock::from_fn(|| NOW_MS);
    options.overlay_memory = 64 << 10;
    options.store_cache = 1 << 20;
    options
}

/// Creates the directory `whole` in `folder` in the state after `kill -9`, and records its answers.
pub(crate) fn prepare(folder: &Path) {
    let (first, whole) = (folder.join("first"), folder.join("whole"));
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    for round in 0..3 {
        let node = Node::open(&options(&first)).unwrap();
        fill(&node, &runtime, round);
        // A checkpoint, so that the store has tables of several ages.
        node.close();
    }
    let node = Node::open(&options(&first)).unwrap();
    fill(&node, &runtime, 3);
    fs::write(folder.join("without-last-group.txt"), dump(&node)).unwrap();
    post(&node, &runtime, 0, "the last group");
    fs::write(folder.join("all.txt"), dump(&node)).unwrap();
    super::copy(&first, &whole);
    drop(node);
    fs::remove_dir_all(&first).unwrap();
    shorten(&whole.join("log"));
    // Opening changes the directory, so a copy is opened.
    super::copy(&whole, &first);
    assert_eq!(read_all(&first).unwrap(), Answers::read(folder).all);
}

/// Shortens the segments to their contents, which the format allows: all zeros are alike.
fn shorten(log: &Path) {
    for entry in fs::read_dir(log).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "log") {
            fs::remove_file(path).unwrap();
            continue;
        }
        let mut bytes = fs::read(&path).unwrap();
        let used = bytes.iter().rposition(|byte| *byte != 0).unwrap() / SECTOR + 1;
        bytes.truncate(bytes.len().min((used + FREE_SECTORS) * SECTOR));
        let length = bytes.len() as u64;
        bytes[LENGTH_AT..LENGTH_AT + 8].copy_from_slice(&length.to_le_bytes());
        let crc = crc32c::crc32c(&bytes[..CRC_AT]);
        bytes[CRC_AT..CRC_AT + 4].copy_from_slice(&crc.to_le_bytes());
        fs::write(&path, bytes).unwrap();
    }
}

pub(crate) fn fill(node: &Node, runtime: &Runtime, round: u32) {
    if round == 0 {
        for user in 0..USERS {
            let handle = Handle::parse(&format!("u{user}")).unwrap();
            let name = Name::parse(&format!("User {user}")).unwrap();
            submit(node, runtime, Command::Register { handle, name, bio: Bio::default() });
        }
    }
    for user in 0..USERS {
        let other = UserId((user + round + 1) % USERS);
        if other != UserId(user) {
            submit(node, runtime, Command::Follow { user: id(UserId(user)), other: id(other) });
            submit(node, runtime, Command::Befriend { user: id(UserId(user)), other: id(other) });
        }
        for number in 0..6 {
            post(node, runtime, user, &format!("{round}.{number} of {user} to @u{}", other.0));
        }
        let (author, text) =
            (id(UserId(user)), PostText::parse(&format!("story {round}")).unwrap());
        let life = Lifetime::from_secs(3_600).unwrap();
        if let Done::StoryPosted { story, .. } =
            submit(node, runtime, Command::PostStory { author, text, life })
        {
            view(node, runtime, story, other);
        }
        let bits = Box::new(feed::SampleBits::from([user as u8 + 1; 128]));
        let (set, label) = (SetName::parse("set").unwrap(), Label::parse("label").unwrap());
        submit(node, runtime, Command::AddSample { set, label, bits });
    }
    for (bucket, number) in BUCKETS.iter().flat_map(|bucket| (0..12).map(move |n| (*bucket, n))) {
        let (key, value) = (format!("k{number}"), format!("{round}-{}", "v".repeat(number * 9)));
        set_key(node, runtime, bucket, (key.as_bytes(), value.as_bytes()));
    }
}

pub(crate) fn set_key(node: &Node, runtime: &Runtime, bucket: BucketId, row: (&[u8], &[u8])) {
    let (key, value) = (Bytes::new(row.0), Bytes::new(row.1));
    let (expiry, only) = (Expiry::Never, Only::Always);
    let put = KeyOp::Put { bucket, key, value, expiry, only, old: false };
    let ops: KeyOps = std::iter::once(put).collect();
    runtime.block_on(node.submit_keys(ops, Vec::new())).unwrap();
}

fn view(node: &Node, runtime: &Runtime, story: StoryId, viewer: UserId) {
    submit(node, runtime, Command::ViewStory { story, viewer: id(viewer) });
}

fn post(node: &Node, runtime: &Runtime, author: u32, text: &str) {
    let (author, text) = (id(UserId(author)), PostText::parse(text).unwrap());
    submit(node, runtime, Command::post(author, text));
}

fn id(user: UserId) -> UserRef {
    UserRef::Id(user)
}

fn submit(node: &Node, runtime: &Runtime, command: Command) -> Done {
    runtime.block_on(node.submit(Request::from(command))).unwrap().outcome.unwrap()
}

/// Opens the directory and reads everything.
pub(crate) fn read_all(data: &Path) -> Result<String, OpenError> {
    Ok(dump(&Node::open(&options(data))?))
}

/// Returns everything that can be read, as text.
fn dump(node: &Node) -> String {
    let mut text = String::new();
    let page = Page::newest(100);
    writeln!(text, "{:?}", node.facts().totals()).unwrap();
    for user in (0..USERS + 1).map(UserId) {
        let facts = node.facts();
        writeln!(text, "{user:?} {:?} {:?}", facts.user(user), facts.counts(user)).unwrap();
        let (following, friends) = (facts.following_all(user), facts.friends_all(user));
        writeln!(text, "following {following:?}, friends {friends:?}").unwrap();
        let handle = Handle::parse(&format!("u{}", user.0)).unwrap();
        writeln!(text, "by handle {:?}", facts.by_handle(&handle)).unwrap();
        let mut json = Vec::new();
        for read in [Node::home, Node::mentions] {
            read(node, user, &page, &mut json);
            json.push(b'\n');
        }
        node.posts_by(&node.viewer(None), user, &page, &mut json);
        json.push(b'\n');
        text.push_str(std::str::from_utf8(&json).unwrap());
        for story in node.stories_of_friends(user, 100) {
            let story = story.story;
            let views: Vec<_> = facts.story_views(story, Span::ALL);
            writeln!(text, "{story:?} {:?} {views:?}", facts.story_text(story)).unwrap();
        }
    }
    node.facts().each_sample(|id, sample| writeln!(text, "{id:?} {sample:?}").unwrap());
    for bucket in BUCKETS {
        let (mut rows, mut next) = (Vec::new(), Some(0));
        while let Some(from) = next {
            let (found, after) = node.keys().walk(bucket, from, 100);
            rows.extend(found.iter().map(|row| format!("{:?}", row.parts())));
            next = after;
        }
        rows.sort();
        writeln!(text, "{bucket:?} {:?}\n{}", node.keys().bucket(bucket), rows.join("\n")).unwrap();
        for number in 0..13 {
            let row = node.keys().row(bucket, format!("k{number}").as_bytes());
            writeln!(text, "{:?}", row.map(|row| row.value().to_vec())).unwrap();
        }
    }
    text
}
