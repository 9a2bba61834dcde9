//! Expected state: plain maps and lists, which the groups of the log change in order. The model has no rows, layers or
//! views, and shares no rules with `feed` and `kv`: it implements their guarantees a second time.

mod accounts;
mod conversations;
mod feed;
mod filters;
mod follows;
mod hidden;
mod keys;
mod lists;
mod markers;
mod media;
mod notes;
mod notices;
mod numbers;
mod polls;
pub(crate) mod posts;
pub(crate) mod quotes;
mod reactions;
mod revisions;
mod stories;
mod tags;
pub(crate) mod versions;

use std::collections::BTreeMap;

use ::feed::{Command, Outcome, Page, PageOf, PostId, Reply};
use kv::{KeyAnswer, KeyOp, KeyRefusal};
use node::Logged;
use rows::Stamp;

pub(crate) use self::accounts::ModelAccount;
pub(crate) use self::feed::{Feed, ModelSettings, texts};
pub(crate) use self::filters::ModelFilter;
pub(crate) use self::follows::ModelOptions;
pub(crate) use self::keys::{Keys, ModelKey, same};
pub(crate) use self::lists::ModelList;
pub(crate) use self::media::ModelMedia;
pub(crate) use self::polls::ModelPoll;

/// Format of stamps: 41 bits of milliseconds since 2024, and 22 bits of sequence.
const EPOCH_MS: u64 = 1_704_067_200_000;
const SEQUENCE_BITS: u32 = 22;
const DAY_MS: u64 = 86_400_000;

/// Time of a stamp, in milliseconds since 1970.
pub(crate) fn ms_of(stamp: u64) -> u64 {
    (stamp >> SEQUENCE_BITS) + EPOCH_MS
}

/// Expected state after the applied groups.
#[derive(Clone, Default)]
pub(crate) struct Model {
    /// Last stamp.
    pub(crate) last: u64,
    pub(crate) feed: Feed,
    pub(crate) keys: Keys,
    /// Results by idempotency key, each with its day and the digest of the content.
    remembered: BTreeMap<[u8; 16], (u64, [u8; 8], Outcome)>,
}

/// Expected reply to an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Expected {
    Reply(Reply),
    Keys {
        answers: Vec<KeyAnswer>,
        now_ms: u64,
    },
    /// Sweep, scheduled work, or removal of rows of a deleted user. The node itself submits these.
    Sweep,
}

impl Model {
    /// Applies a group. Returns the expected reply to each of its entries.
    pub(crate) fn apply(&mut self, time_ms: u64, entries: &[Logged]) -> Vec<Expected> {
        entries.iter().map(|entry| self.apply_entry(time_ms, entry)).collect()
    }

    fn apply_entry(&mut self, time_ms: u64, entry: &Logged) -> Expected {
        let stamps = match entry {
            Logged::Feed(_) => 1,
            Logged::Keys(ops) => ops.len().max(1) as u64,
        };
        let of_time = time_ms.saturating_sub(EPOCH_MS).max(1) << SEQUENCE_BITS;
        let first = of_time.max(self.last + 1);
        self.last = first + stamps - 1;
        if node::seeded::is_at(Stamp(first)) {
            return failed(entry, ms_of(first));
        }
        match entry {
            Logged::Feed(node::Request {
                command: Command::EraseUser { user, phase, from },
                ..
            }) => {
                self.feed.erased(*user, *phase, *from);
                Expected::Sweep
            }
            Logged::Feed(node::Request { command: Command::DoDue(due), .. }) => {
                self.feed.do_due(first, *due);
                Expected::Sweep
            }
            Logged::Feed(request) => Expected::Reply(self.reply(first, request)),
            Logged::Keys(ops) => {
                let now_ms = ms_of(first);
                match self.keys.apply(first, now_ms, ops) {
                    Some(answers) => Expected::Keys { answers, now_ms },
                    None => Expected::Sweep,
                }
            }
        }
    }

    fn reply(&mut self, stamp: u64, request: &node::Request) -> Reply {
        let Some(key) = &request.idempotency else {
            return Reply { outcome: self.feed.apply(stamp, &request.command), replayed: false };
        };
        let day = ms_of(stamp) / DAY_MS;
        let known = self.remembered.get(&key.key).filter(|(of, ..)| *of + 1 >= day);
        match known {
            Some((_, content, outcome)) if *content == key.content => {
                Reply { outcome: *outcome, replayed: true }
            }
            Some(_) => Reply { outcome: Err(::feed::Refusal::KeyReused), replayed: false },
            None => {
                let outcome = self.feed.apply(stamp, &request.command);
                if outcome.is_ok() {
                    self.remembered.insert(key.key, (day, key.content, outcome));
                }
                Reply { outcome, replayed: false }
            }
        }
    }
}

/// Returns the expected reply to an entry whose rule panics. The entry changes nothing.
fn failed(entry: &Logged, now_ms: u64) -> Expected {
    match entry {
        Logged::Feed(request) if is_of_node(&request.command) => Expected::Sweep,
        Logged::Keys(ops) if ops.iter().all(|op| op == KeyOp::Sweep) => Expected::Sweep,
        Logged::Feed(_) => {
            Expected::Reply(Reply { outcome: Err(::feed::Refusal::Internal), replayed: false })
        }
        Logged::Keys(ops) => {
            let answers = vec![KeyAnswer::Refused(KeyRefusal::Internal); ops.len()];
            Expected::Keys { answers, now_ms }
        }
    }
}

/// Whether only the node itself submits this command.
fn is_of_node(command: &Command) -> bool {
    matches!(command, Command::DoDue(_) | Command::EraseUser { .. })
}

/// Returns a page of `newest_first`, which contains all items.
pub(crate) fn page_of(newest_first: impl Iterator<Item = u64>, page: &Page) -> PageOf<PostId> {
    let below = newest_first.skip_while(|id| page.below.is_some_and(|below| *id >= below));
    let within = below.take_while(|id| page.above.is_none_or(|above| *id > above));
    let mut items: Vec<PostId> = match page.is_up {
        true => within.map(PostId).collect(),
        false => within.take(page.limit + 1).map(PostId).collect(),
    };
    let surplus = items.len().saturating_sub(page.limit);
    let last = if page.is_up {
        drop(items.drain(..surplus));
        items.first()
    } else {
        items.truncate(page.limit);
        items.last()
    };
    let next = last.filter(|_| surplus > 0).map(|last| last.0);
    PageOf { items, next }
}
