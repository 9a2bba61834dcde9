//! What a command costs at most, computed before it is logged.
//!
//! A cost follows from the command alone, except that some operations on keys write the value again that
//! the key has: their cost follows from its length, which [`Lengths`] bounds. Whatever is in the log was
//! admitted by its cost, so applying it, live or in a replay, fits into memory and ends in time.
//!
//! **Invariant:** applying a command changes at most `rows` rows; the rows it changes and looks up and the
//! bytes it copies are at most `work`; the changes in memory grow by at most `bytes` (summed over many
//! commands: tables double now and then); and at most `answer` bytes of rows are kept for its answer. `costs.rs` among the tests of the store compares all of it with what really happens.

use crate::command::{Command, Request};
use crate::ids::BucketId;
use crate::keys::{Bytes, Expiry, KeyOp};
use crate::limits::{
    BIO_BYTES_MAX, KEY_BYTES_MAX, NAME_BYTES_MAX, NUMBERED_BUCKETS, POST_BYTES_MAX, POST_CHARS_MAX,
    SAMPLE_SETS_MAX, SWEEP_BYTES_MAX, SWEEP_ROWS_MAX, SWEEP_SECONDS_MAX, VALUE_BYTES_MAX,
};
use crate::text::PostText;

/// Memory of a changed row in a table, without what it holds: its place in a hash table or a tree that
/// has just doubled, and two allocations.
const ROW_BYTES: usize = 320;
/// Memory of the row of a key, without key and value.
const KEY_ROW_BYTES: usize = 128;
/// Bytes of the longest decimal that adding to a number makes: `f64::MAX` without an exponent, a sign, and
/// places after the point.
const NUMBER_BYTES_MAX: usize = 400;
/// Rows that remembering an idempotency key changes: its own, two old ones that are removed, and one that
/// is only looked up.
const IDEMPOTENCY_ROWS: usize = 4;
/// Most people that a text can mention: a mention has at least two characters.
const MENTIONS_MAX: usize = POST_CHARS_MAX / 2;
/// What looking up or changing a row counts as work, in bytes copied: it takes about as long.
pub const WORK_PER_ROW: usize = 512;

/// Looking up a handle and writing a mention, which takes longer than other rows.
pub(crate) const MENTION_WORK: usize = 4 * WORK_PER_ROW;

/// What a command costs at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Rows changed.
    pub rows: usize,
    /// Bytes by which the changes in memory grow.
    pub bytes: usize,
    /// Bytes copied, and [`WORK_PER_ROW`] for each row looked up or changed.
    pub work: usize,
    /// Bytes of rows kept until the answer is sent.
    pub answer: usize,
    /// Bytes of the longest value that a key may have afterwards; 0 if none changed.
    pub longest: usize,
}

impl Cost {
    /// Of rows that hold so many bytes together.
    const fn of_rows(rows: usize, held: usize) -> Self {
        // What a row holds may be allocated at up to twice its length.
        let bytes = rows * ROW_BYTES + 2 * held;
        Self { rows, bytes, work: 2 * rows * WORK_PER_ROW + held, answer: 0, longest: 0 }
    }

    /// Both, one after the other.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            rows: self.rows.saturating_add(other.rows),
            bytes: self.bytes.saturating_add(other.bytes),
            work: self.work.saturating_add(other.work),
            answer: self.answer.saturating_add(other.answer),
            longest: self.longest.max(other.longest),
        }
    }
}

/// Bounds the lengths of values that keys have when an operation is applied.
pub trait Lengths {
    /// Bytes of the longest value that the key can have then; 0 if it can have none.
    fn value_bytes(&self, bucket: BucketId, key: &[u8]) -> usize;
    /// Number of buckets.
    fn bucket_count(&self) -> usize;
}

impl Request {
    /// What it costs at most. Operations on keys are costed one by one; see [`KeyOp::cost`].
    #[must_use]
    pub fn cost(&self) -> Cost {
        let idempotency = match self.idempotency {
            // Day, digests and outcome.
            Some(_) => Cost::of_rows(IDEMPOTENCY_ROWS, IDEMPOTENCY_ROWS * 64),
            None => Cost::default(),
        };
        self.command.cost().and(idempotency)
    }
}

impl Command {
    fn cost(&self) -> Cost {
        let text = |text: &PostText| text.as_str().len();
        let mentions = |text: &PostText| text.as_str().matches('@').count().min(MENTIONS_MAX);
        match self {
            Self::Register { handle, name, bio } => {
                let held = 2 * handle.as_str().len() + name.as_str().len() + bio.as_str().len();
                Cost::of_rows(3, held + 64)
            }
            // The row is written as a whole, with what stays.
            Self::EditProfile { .. } => Cost::of_rows(2, NAME_BYTES_MAX + BIO_BYTES_MAX + 128),
            Self::Follow { .. }
            | Self::Unfollow { .. }
            | Self::Befriend { .. }
            | Self::Unfriend { .. } => Cost::of_rows(6, 64),
            Self::Post { text: post, .. } => {
                let mentions = mentions(post);
                let cost = Cost::of_rows(4 + mentions, text(post) + 8 * mentions + 64);
                Cost { work: cost.work + mentions * MENTION_WORK, ..cost }
            }
            Self::Reply { text: reply, .. } => {
                // The author of the post replied to is mentioned as well.
                let cost =
                    Cost::of_rows(6 + mentions(reply), text(reply) + 8 * mentions(reply) + 80);
                let read = POST_BYTES_MAX;
                Cost { work: cost.work + mentions(reply) * MENTION_WORK + read, ..cost }
            }
            Self::EditPost { text: new, .. } => {
                // Those mentioned before, each removed, and those mentioned now.
                let rows = 2 + (MENTIONS_MAX + 1) + (mentions(new) + 1);
                let cost = Cost::of_rows(rows, text(new) + 8 * mentions(new) + 80);
                let read = 2 * POST_BYTES_MAX;
                Cost { work: cost.work + mentions(new) * MENTION_WORK + read, ..cost }
            }
            Self::DeletePost { .. } => Cost::of_rows(6 + MENTIONS_MAX, 64),
            Self::TellStory { text: story, .. } => Cost::of_rows(5, text(story) + 64),
            Self::DeleteStory { .. } | Self::ViewStory { .. } => Cost::of_rows(6, 64),
            Self::SweepStories => {
                let cost = Cost::of_rows(SWEEP_ROWS_MAX as usize + 16, 64);
                let walk = SWEEP_SECONDS_MAX as usize * WORK_PER_ROW;
                Cost { work: cost.work + walk, ..cost }
            }
            // Sets are counted before one is added.
            Self::Teach { .. } | Self::ForgetSample { .. } => {
                Cost::of_rows(6 + SAMPLE_SETS_MAX, 512)
            }
            Self::Keys(_) => Cost::default(),
        }
    }
}

impl KeyOp<'_> {
    /// What it costs at most, where keys have values of these lengths.
    #[must_use]
    pub fn cost(&self, lengths: &dyn Lengths) -> Cost {
        match self {
            Self::Put { bucket, key, value, expiry, old, .. } => {
                let expires = *expiry != Expiry::Never;
                let cost = write(key.len(), value.len(), expires);
                if *old { answering(cost, key, lengths.value_bytes(*bucket, key)) } else { cost }
            }
            Self::PutAll { pairs, .. } => {
                each(pairs, |(key, value)| write(key.len(), value.len(), false).and(look_up()))
            }
            Self::Remove { keys, .. } => each(keys, |key| write(key.len(), 0, false)),
            Self::Take { bucket, key, .. } => {
                let old = lengths.value_bytes(*bucket, key);
                answering(write(key.len(), 0, false), key, old)
            }
            Self::Add { key, .. } => write(key.len(), NUMBER_BYTES_MAX, true),
            Self::AddFloat { key, by, .. } => {
                let cost = write(key.len(), NUMBER_BYTES_MAX, true).and(look_up());
                answering(Cost { work: cost.work + 64 * by.len(), ..cost }, key, NUMBER_BYTES_MAX)
            }
            Self::Append { bucket, key, bytes } => {
                let old = lengths.value_bytes(*bucket, key);
                rewrite(key, old, old.saturating_add(bytes.len()))
            }
            Self::SetRange { bucket, key, offset, bytes } => {
                let end = usize::try_from(*offset).unwrap_or(usize::MAX);
                let old = lengths.value_bytes(*bucket, key);
                rewrite(key, old, end.saturating_add(bytes.len()).max(old))
            }
            Self::SetBit { bucket, key, offset, .. } => {
                let end = usize::try_from(*offset / 8).unwrap_or(usize::MAX).saturating_add(1);
                let old = lengths.value_bytes(*bucket, key);
                rewrite(key, old, end.max(old))
            }
            Self::Expire { bucket, key, read, .. } => {
                let old = lengths.value_bytes(*bucket, key);
                let cost = rewrite(key, 0, old);
                if *read { answering(cost, key, old) } else { cost }
            }
            Self::Rename { bucket, from, to, .. } => {
                let old = lengths.value_bytes(*bucket, from);
                rewrite(to, 0, old).and(write(from.len(), 0, false)).and(look_up())
            }
            Self::Copy { bucket, key, to, .. } => {
                rewrite(to, 0, lengths.value_bytes(*bucket, key)).and(look_up())
            }
            Self::Move { bucket, key, .. } => {
                let old = lengths.value_bytes(*bucket, key);
                rewrite(key, 0, old).and(write(key.len(), 0, false)).and(look_up())
            }
            Self::Flush { bucket: Some(_) } => Cost::of_rows(FLUSH_ROWS, 64),
            Self::Flush { bucket: None } => Cost::of_rows(FLUSH_ROWS * lengths.bucket_count(), 64),
            Self::FlushNumbered => Cost::of_rows(FLUSH_ROWS * NUMBERED_BUCKETS as usize, 1_024),
            Self::Swap { .. } => Cost::of_rows(4, 64),
            Self::Begin { watched, .. } => each(watched, |_| look_up()),
            Self::Create { name } | Self::Drop { name } => {
                Cost::of_rows(FLUSH_ROWS + 2, 2 * name.as_str().len() + 64)
            }
            Self::Sweep => sweep(),
        }
    }

    /// What it costs at most, if that follows from it alone.
    #[must_use]
    pub fn known_cost(&self) -> Option<Cost> {
        if !self.writes_possible_keys() {
            return None;
        }
        match self {
            Self::Put { old: false, .. }
            | Self::PutAll { .. }
            | Self::Remove { .. }
            | Self::Add { .. } => Some(self.cost(&Unknown)),
            _ => None,
        }
    }

    /// Whether keys may have other values afterwards than those whose lengths are known: what follows in
    /// the same group has to be costed with the longest value there can be.
    #[must_use]
    pub fn exchanges_keys(&self) -> bool {
        matches!(self, Self::Swap { .. })
    }
}

/// For operations whose cost does not depend on lengths.
struct Unknown;

impl Lengths for Unknown {
    fn value_bytes(&self, _: BucketId, _: &[u8]) -> usize {
        VALUE_BYTES_MAX
    }

    fn bucket_count(&self) -> usize {
        usize::MAX
    }
}

/// Rows that emptying a bucket changes.
const FLUSH_ROWS: usize = 6;

/// Writing the row of a key, and noting when it expires, newly and no longer.
fn write(key: usize, value: usize, expires: bool) -> Cost {
    let held = key + value;
    let expiries = 1 + usize::from(expires);
    Cost {
        rows: 2 + expiries,
        bytes: KEY_ROW_BYTES + held + expiries * (ROW_BYTES + key),
        work: (3 + expiries) * WORK_PER_ROW + held,
        answer: 0,
        longest: value,
    }
}

/// Writing a row whose value is made of an old one of `old` bytes.
fn rewrite(key: &Bytes, old: usize, new: usize) -> Cost {
    let new = new.min(VALUE_BYTES_MAX);
    let cost = write(key.len(), new, true);
    // The new value is put together before it is copied into its row.
    Cost { work: cost.work + old.min(new) + new, ..cost }
}

/// The same, keeping the row that there was for the answer.
fn answering(cost: Cost, key: &Bytes, old: usize) -> Cost {
    Cost { answer: KEY_ROW_BYTES + key.len() + old, ..cost }
}

fn look_up() -> Cost {
    Cost { work: WORK_PER_ROW, ..Cost::default() }
}

fn each<T>(items: &[T], cost: impl Fn(&T) -> Cost) -> Cost {
    items.iter().map(cost).fold(Cost::default(), Cost::and)
}

/// Rows of the sweep, and one more that is read before it ends: its key is of any length, its value too.
fn sweep() -> Cost {
    // One more than the sweep may remove, and what its walks look at.
    let rows = SWEEP_ROWS_MAX as usize + 65;
    let keys = SWEEP_BYTES_MAX + KEY_BYTES_MAX;
    Cost {
        rows: 4 * rows + 16,
        bytes: rows * (KEY_ROW_BYTES + 2 * ROW_BYTES) + 2 * keys,
        work: 8 * rows * WORK_PER_ROW + SWEEP_BYTES_MAX + VALUE_BYTES_MAX + KEY_BYTES_MAX,
        answer: 0,
        longest: 0,
    }
}
