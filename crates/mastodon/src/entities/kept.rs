//! Entities that were made before, as JSON: accounts, and of statuses the part that is the same for all readers.
//!
//! What is kept names the rows it was made of, with the number of their changes from before they were read. It is used only
//! while these numbers are the same. The numbers are raised before a change is acknowledged: so a reader who knows of a
//! change never gets what was made before it.
//!
//! While rows of deleted users are removed, counts leave out what is not removed yet, which no row says: then nothing is
//! kept and nothing of it is used.

use std::sync::Arc;

use feed::{Post, PostId, UserId};
use node::{Node, Subject};
use quick_cache::Weighter;
use quick_cache::sync::Cache;

/// Bytes of an entry in addition to its JSON and what the post in it takes.
const ENTRY_BYTES: usize = 256;
/// Bytes of a typical entry, for sizing the tables.
const TYPICAL_BYTES: usize = 2_048;

/// Rows, by what they are about, and the number of their changes.
#[derive(Debug, Default)]
pub(super) struct Depends(Vec<(Subject, u64)>);

impl Depends {
    /// Adds a subject, before its rows are read.
    pub(super) fn on(&mut self, subject: Subject, node: &Node) {
        self.0.push((subject, node.revision(subject)));
    }

    fn are_current(&self, node: &Node) -> bool {
        self.0.iter().all(|(subject, revision)| node.revision(*subject) == *revision)
    }
}

/// The entity `Account`.
pub(super) struct KeptAccount {
    pub(super) depends: Depends,
    pub(super) json: Vec<u8>,
}

/// The part of an entity `Status` that is the same for all readers who see all `users`.
pub(super) struct KeptStatus {
    pub(super) depends: Depends,
    pub(super) post: Post,
    /// Whom the status names beside its author: those whom it mentions, and the author of what it replies to. All exist.
    pub(super) users: Vec<UserId>,
    pub(super) has_favourites: bool,
    pub(super) has_boosts: bool,
    /// An object that is not closed.
    pub(super) json: Vec<u8>,
}

#[derive(Clone)]
struct Bytes;

impl Weighter<UserId, Arc<KeptAccount>> for Bytes {
    fn weight(&self, _: &UserId, account: &Arc<KeptAccount>) -> u64 {
        (account.json.capacity() + ENTRY_BYTES) as u64
    }
}

impl Weighter<PostId, Arc<KeptStatus>> for Bytes {
    fn weight(&self, _: &PostId, status: &Arc<KeptStatus>) -> u64 {
        let KeptStatus { post, users, json, .. } = status.as_ref();
        let ids = post.mentions.capacity() + post.media.capacity() * 2 + users.capacity();
        let bytes = json.capacity() + post.text.as_str().len() + post.warning.as_str().len();
        (bytes + ids * 4 + size_of::<Post>() + ENTRY_BYTES) as u64
    }
}

/// Entities within a budget.
pub(crate) struct KeptEntities {
    accounts: Cache<UserId, Arc<KeptAccount>, Bytes>,
    statuses: Cache<PostId, Arc<KeptStatus>, Bytes>,
}

impl KeptEntities {
    /// Keeps at most `bytes`, a third of them accounts.
    pub(crate) fn new(bytes: usize) -> Self {
        let (accounts, statuses) = (bytes / 3, bytes - bytes / 3);
        Self {
            accounts: Cache::with_weighter(accounts / TYPICAL_BYTES, accounts as u64, Bytes),
            statuses: Cache::with_weighter(statuses / TYPICAL_BYTES, statuses as u64, Bytes),
        }
    }

    pub(super) fn account(&self, user: UserId, node: &Node) -> Option<Arc<KeptAccount>> {
        self.accounts.get(&user).filter(|kept| kept.depends.are_current(node))
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
