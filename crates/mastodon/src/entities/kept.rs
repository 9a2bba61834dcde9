//! Entities that were made before, as JSON: accounts, and of statuses the part that is the same for all readers.
//!
//! What is kept names the rows it was made of, with the number of their changes from before they were read. It is used only
//! while these numbers are the same. The numbers are raised before a change is acknowledged: so a reader who knows of a
//! change never gets what was made before it.
//!
//! When a user is deleted, counts leave out at once what is removed row by row. So what is kept also has how often users were
//! hidden until it was made; if that has changed, whoever may read checks first whether the users who are being removed
//! concern it, which few rows say.
//!
//! **Invariant:** an entity that is kept is one that would be made again. `tests/api/kept.rs` compares two servers on
//! one node, one of which keeps nothing, after random changes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use feed::{Handle, Post, PostDefaults, PostId, Reaction, UserId};
use node::{Node, Subject};
use quick_cache::Weighter;
use quick_cache::sync::Cache;

/// Bytes of an entry in addition to its JSON and what the post in it takes.
const ENTRY_BYTES: usize = 256;
/// Bytes of a typical entry, for sizing the tables.
const TYPICAL_BYTES: usize = 2_048;
/// Bytes of a reader who is known to have no marks.
const READER_BYTES: usize = 64;

/// Rows, by what they are about, and the number of their changes. Most entries depend on one subject.
#[derive(Debug)]
pub(super) struct Depends {
    first: (Subject, u32),
    more: Box<[(Subject, u32)]>,
    /// The number of times that users were hidden, up to which it is known to be right.
    hidings: AtomicU64,
}

impl Depends {
    /// A subject, before its rows are read, after users were hidden so many times.
    pub(super) fn on(subject: Subject, node: &Node, hidings: u64) -> Self {
        let first = (subject, node.revision(subject));
        Self { first, more: Box::default(), hidings: AtomicU64::new(hidings) }
    }

    /// Whether it is known to be right after users were hidden so many times. The number alone matters: what it says of was
    /// read before it was stored.
    pub(super) fn is_right_after(&self, hidings: u64) -> bool {
        self.hidings.load(Ordering::Acquire) == hidings
    }

    /// Remembers that those who were hidden since do not concern it.
    pub(super) fn set_right_after(&self, hidings: u64) {
        self.hidings.fetch_max(hidings, Ordering::AcqRel);
    }

    /// The same and other subjects, before their rows are read.
    pub(super) fn and(self, subjects: impl Iterator<Item = Subject>, node: &Node) -> Self {
        let more = subjects.map(|subject| (subject, node.revision(subject)));
        Self { more: more.collect(), ..self }
    }

    /// The same, and what `others` depends on but for its first subject.
    pub(super) fn with_more_of(self, others: &Self) -> Self {
        Self { more: others.more.clone(), ..self }
    }

    pub(super) fn are_current(&self, node: &Node) -> bool {
        let is_current =
            |(subject, revision): &(Subject, u32)| node.revision(*subject) == *revision;
        is_current(&self.first) && self.more.iter().all(is_current)
    }
}

/// The entity `Account`.
pub(super) struct KeptAccount {
    pub(super) depends: Depends,
    /// Of the profile alone.
    pub(super) profile: Arc<KeptProfile>,
    pub(super) json: Box<[u8]>,
}

/// What changes less often than a user's counts.
pub(super) struct KeptProfile {
    pub(super) depends: Depends,
    pub(super) handle: Handle,
    pub(super) defaults: PostDefaults,
    /// The part of the entity `Account` without counts: an object that is not closed.
    pub(super) json: Box<[u8]>,
}

/// The part of an entity `Status` that is the same for all readers who see all `users`.
pub(super) struct KeptStatus {
    pub(super) depends: Depends,
    /// Apart from the rest, most of which is read each time.
    pub(super) post: Box<Post>,
    pub(super) author: UserId,
    /// Whether it is for everybody.
    pub(super) is_open: bool,
    pub(super) has_poll: bool,
    /// Whether replies are counted.
    pub(super) has_replies: bool,
    pub(super) boosted: Option<PostId>,
    /// Whom the status names beside its author: those whom it mentions, and the author of what it replies to. All exist.
    pub(super) users: Box<[UserId]>,
    /// All reactions to the post, if they are few: kinds and users, in order.
    pub(super) reactions: Option<Box<[(Reaction, UserId)]>>,
    /// An object that is not closed.
    pub(super) json: Box<[u8]>,
}

#[derive(Clone)]
struct Bytes;

impl Weighter<UserId, Arc<KeptAccount>> for Bytes {
    fn weight(&self, _: &UserId, account: &Arc<KeptAccount>) -> u64 {
        (account.json.len() + account.profile.json.len() + 2 * ENTRY_BYTES) as u64
    }
}

impl Weighter<PostId, Arc<KeptStatus>> for Bytes {
    fn weight(&self, _: &PostId, status: &Arc<KeptStatus>) -> u64 {
        let KeptStatus { post, users, reactions, json, .. } = status.as_ref();
        let reactions = reactions.as_ref().map_or(0, |found| found.len() * 2);
        let earlier = post.boost.as_ref().map_or(0, |boost| boost.earlier.capacity());
        let ids = post.mentions.capacity()
            + post.media.capacity() * 2
            + earlier
            + users.len()
            + reactions;
        let options = post.poll.iter().flat_map(|poll| poll.options.as_slice());
        let options: usize =
            options.map(|option| option.as_str().len() + size_of::<String>()).sum();
        let bytes = json.len() + post.text.as_str().len() + post.warning.as_str().len();
        (bytes + options + ids * 4 + size_of::<Post>() + ENTRY_BYTES) as u64
    }
}

/// Entities within a budget.
pub(crate) struct KeptEntities {
    /// Readers whose filters match nothing and who have muted no thread, with the number of changes of these.
    without_marks: Cache<UserId, u32>,
    accounts: Cache<UserId, Arc<KeptAccount>, Bytes>,
    statuses: Cache<PostId, Arc<KeptStatus>, Bytes>,
}

impl KeptEntities {
    /// Keeps at most `bytes`: a third of them accounts, and a 32nd readers.
    pub(crate) fn new(bytes: usize) -> Self {
        let (accounts, readers) = (bytes / 3, bytes / 32);
        let statuses = bytes - accounts - readers;
        Self {
            without_marks: Cache::new(readers / READER_BYTES),
            accounts: Cache::with_weighter(accounts / TYPICAL_BYTES, accounts as u64, Bytes),
            statuses: Cache::with_weighter(statuses / TYPICAL_BYTES, statuses as u64, Bytes),
        }
    }

    /// Whether it is known that no filter of a reader can match, and that they have muted no thread.
    pub(super) fn is_without_marks(&self, reader: UserId, node: &Node) -> bool {
        let kept = self.without_marks.get(&reader);
        kept.is_some_and(|revision| node.revision(Subject::Marks(reader.0)) == revision)
    }

    pub(super) fn keep_without_marks(&self, reader: UserId, revision: u32) {
        self.without_marks.insert(reader, revision);
    }

    pub(super) fn account(&self, user: UserId, node: &Node) -> Option<Arc<KeptAccount>> {
        self.accounts.get(&user).filter(|kept| kept.depends.are_current(node))
    }

    /// The profile of a user, also if the counts have changed.
    pub(super) fn profile(&self, user: UserId, node: &Node) -> Option<Arc<KeptProfile>> {
        let profile = Arc::clone(&self.accounts.get(&user)?.profile);
        profile.depends.are_current(node).then_some(profile)
    }

    /// The defaults of the posts of a user, if they are known.
    pub(crate) fn defaults(&self, user: UserId, node: &Node) -> Option<PostDefaults> {
        self.profile(user, node).map(|profile| profile.defaults.clone())
    }

    pub(super) fn keep_account(&self, user: UserId, account: &Arc<KeptAccount>) {
        self.accounts.insert(user, Arc::clone(account));
    }

    pub(super) fn status(&self, id: PostId, node: &Node) -> Option<Arc<KeptStatus>> {
        self.statuses.get(&id).filter(|kept| kept.depends.are_current(node))
    }

    pub(super) fn keep_status(&self, id: PostId, status: &Arc<KeptStatus>) {
        self.statuses.insert(id, Arc::clone(status));
    }
}
