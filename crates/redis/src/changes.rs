//! Pending changes of a client.
//!
//! **Invariants:** the pending changes of a client are in one batch. Before they are submitted, memory is reserved for
//! them, and for the rows in their replies as far as the cache knows their lengths.

use std::rc::Rc;

use budget::Reservation;
use kv::{BucketId, KeyAnswer, KeyOp, KeyOps, Only};
use node::Found;
use resp::Protocol;

use super::batch::Batch;
use super::client::Client;
use super::command::{Change, Kept, Plan, ReplyWriter, Restore, Scope, Words};
use super::dump;
use super::failure::Failure;
use super::memory::{BUFFER_BYTES, CHANGE_BYTES, HEADER_BYTES, Output};
use super::reader::is_possible;
use edge::Length;

/// Maximum number of pending changes per client: about 150 KiB with their replies.
const PENDING_MAX: usize = 1_024;
/// Maximum total size of the rows in replies to pending changes of a client, in bytes. The row of a single change may
/// be larger.
const PENDING_ROW_BYTES_MAX: usize = 1 << 20;
/// Maximum number of words of a short change. Longer changes are prepared and submitted separately, because a change of
/// a million words takes tens of milliseconds.
const SHORT_WORDS_MAX: usize = 256;
/// Capacity that the list of pending changes keeps after a flush, in elements.
const PENDING_KEPT: usize = 32;
/// Number of bytes that encode the length of a word in an operation.
const OPERATION_WORD_BYTES: usize = 4;
/// Size of a pending change without its words, in bytes.
const PENDING_BYTES: usize = 24;
/// Size of a reply without a row, in bytes.
const SHORT_REPLY_BYTES: usize = 112;
/// Number of short changes of a client for which the memory of its connection suffices: a common length of pipelines.
const CHANGES_FREE: usize = 16;
/// Maximum size of the words of a short change, in bytes.
const CHANGE_BYTES_SHORT: usize = 64;

const _: () = assert!(CHANGES_FREE * SHORT_REPLY_BYTES + HEADER_BYTES <= BUFFER_BYTES);
const _: () = assert!(CHANGES_FREE * (CHANGE_BYTES_SHORT + PENDING_BYTES) <= CHANGE_BYTES);
/// Maximum length of a payload that is unpacked immediately, in bytes. Longer payloads are unpacked as long reads.
const UNPACK_BYTES_SHORT: usize = 64 << 10;

/// Pending changes of a client, all in one batch.
#[derive(Default)]
pub(crate) struct Pending {
    batch: Option<Rc<Batch>>,
    /// Places of the changes in the batch, and the writers of their replies; `None` if the client wants no reply.
    writers: Vec<(usize, Option<ReplyWriter>)>,
    /// Size of the words of the changes, in bytes.
    bytes: usize,
    /// Size of the rows in the replies to the changes, in bytes.
    row_bytes: usize,
    /// Whether one of the changes may lengthen a value.
    lengthens: bool,
}

impl Client {
    /// Prepares a change and adds it to the open batch.
    pub(crate) async fn change(
        &mut self,
        change: Change,
        words: &Words<'_>,
        silent: bool,
    ) -> Result<(), Failure> {
        if words.len() > SHORT_WORDS_MAX
            && let Some(writer) = self.change_of_many(change, words).await?
        {
            self.pending.writers.push((0, Some(writer).filter(|_| !silent)));
            return Ok(());
        }
        let plan = {
            let node = &self.shared.node;
            change(&Scope { bucket: self.bucket, now_ms: &|| node.keys().now_ms() }, words)?
        };
        let bytes = words.iter().map(|word| word.len()).sum();
        match plan {
            Plan::Change(op, writer) => {
                self.add(&op, Some(writer).filter(|_| !silent), bytes).await
            }
            Plan::Restore(restore, writer) => {
                let (value, _held) = match self.unpack(restore.payload).await {
                    Ok(unpacked) => unpacked,
                    Err(failure) => return Err(self.not_restored(&restore, failure).await?),
                };
                let writer = Some(writer).filter(|_| !silent);
                self.add(&restore.op(&value), writer, bytes + value.len()).await
            }
            Plan::Read(read) => {
                self.flush_changes().await;
                let start = self.output.len();
                self.read(read, words).await?;
                if silent {
                    self.output.truncate(start);
                }
                Ok(())
            }
        }
    }

    /// Submits a change of many words, which is prepared where blocking is allowed. Returns the writer of its reply;
    /// `None` if the words are not those of a change, and then does nothing.
    ///
    /// # Errors
    /// If the command is invalid, or the budget has no room for it.
    async fn change_of_many(
        &mut self,
        change: Change,
        words: &Words<'_>,
    ) -> Result<Option<ReplyWriter>, Failure> {
        self.flush_changes().await;
        let bytes: usize = words.iter().map(|word| word.len()).sum();
        // The words are in memory twice: copied, and in the operation.
        let held = Kept::memory_of(words) + bytes + words.len() * OPERATION_WORD_BYTES;
        if !self.reserve_change(held, 0) {
            return Err(Failure::BUSY);
        }
        let (kept, bucket) = (Kept::new(words), self.bucket);
        let planned = self.block(Length::Quick, move |node, _| {
            let words = kept.words();
            match change(&Scope { bucket, now_ms: &|| node.keys().now_ms() }, &words)? {
                Plan::Change(op, writer) => Ok(Some(([op].into_iter().collect(), writer))),
                Plan::Restore(..) | Plan::Read(_) => Ok(None),
            }
        });
        let planned: Result<Option<(KeyOps, ReplyWriter)>, Failure> = planned.await?;
        let Some((ops, writer)) = planned? else { return Ok(None) };
        self.pending.batch = Some(self.batches.submit_alone(ops));
        self.pending.bytes += held;
        Ok(Some(writer))
    }

    /// Adds a change of `bytes` bytes to the open batch.
    ///
    /// # Errors
    /// If the budget has no room for the change or its reply. The change was then not added.
    pub(crate) async fn add(
        &mut self,
        op: &KeyOp<'_>,
        writer: Option<ReplyWriter>,
        bytes: usize,
    ) -> Result<(), Failure> {
        let row_bytes = match answering_row(op) {
            Some((bucket, key)) => self.row_bytes(bucket, key).await?,
            None => 0,
        };
        // Refuse an invalid change here, so that it does not make other changes of its batch fail.
        self.shared.node.admit(op)?;
        let alone = self.shared.node.takes_long(op);
        if alone {
            self.flush_changes().await;
        }
        loop {
            let fits = self.reserve_change(bytes, row_bytes);
            if fits && alone {
                self.note_change(
                    (self.batches.submit_alone([op.clone()].into_iter().collect()), 0),
                    writer,
                    (bytes, row_bytes),
                    op,
                );
                return Ok(());
            }
            if fits && let Ok(place) = self.batches.add(op, self.pending.batch.as_ref()) {
                self.note_change(place, writer, (bytes, row_bytes), op);
                return Ok(());
            }
            if self.pending.batch.is_none() {
                return Err(Failure::BUSY);
            }
            self.flush_changes().await;
        }
    }

    /// Records the place of a change in its batch.
    fn note_change(
        &mut self,
        (batch, at): (Rc<Batch>, usize),
        writer: Option<ReplyWriter>,
        (bytes, row_bytes): (usize, usize),
        op: &KeyOp<'_>,
    ) {
        let pending = &mut self.pending;
        pending.writers.push((at, writer));
        pending.bytes += bytes;
        pending.row_bytes += row_bytes;
        pending.lengthens |= lengthens(op);
        pending.batch = Some(batch);
    }

    /// Reserves the memory of another change and its reply.
    fn reserve_change(&mut self, bytes: usize, row_bytes: usize) -> bool {
        let pending = &self.pending;
        let changes = pending.writers.len() + 1;
        let row_bytes = pending.row_bytes + row_bytes;
        if changes > 1 && (changes > PENDING_MAX || row_bytes > PENDING_ROW_BYTES_MAX) {
            return false;
        }
        let bytes = pending.bytes + bytes + row_bytes + changes * PENDING_BYTES;
        self.memory.changes.cover(bytes)
            && self.output.make_room(row_bytes + changes * SHORT_REPLY_BYTES)
    }

    /// Returns the length of the value in the reply to a change.
    async fn row_bytes(&mut self, bucket: BucketId, key: &[u8]) -> Result<usize, Failure> {
        if !is_possible(key) {
            return Ok(0);
        }
        if self.pending.lengthens {
            self.flush_changes().await;
        }
        let found = self.shared.node.keys().try_row(bucket, key);
        match found {
            Found::Row(row) => Ok(row.value().len()),
            Found::Absent => Ok(0),
            Found::Unknown => {
                let key = Box::<[u8]>::from(key);
                let length = move |node: &node::Node| {
                    node.keys().row(bucket, &key).map_or(0, |row| row.value().len())
                };
                self.block(Length::Quick, move |node, _| length(node)).await
            }
        }
    }

    /// Waits for the pending changes and writes their replies.
    pub(crate) async fn flush_changes(&mut self) {
        let Some(batch) = self.pending.batch.take() else { return };
        let answers = batch.answered().await;
        self.waited();
        for (at, writer) in self.pending.writers.drain(..) {
            let Some(writer) = writer else { continue };
            let answer = match answers {
                Ok(replies) => replies.answers.get(at),
                Err(error) => {
                    let failure = Failure::from(*error);
                    failure.log(&self.registered.entry, self.last);
                    self.output.encoder(self.protocol).error(failure);
                    continue;
                }
            };
            let Some(answer) = answer else { unreachable!("every operation is answered") };
            write_answer(answer, writer, &mut self.output, self.protocol);
        }
        self.pending.bytes = 0;
        self.pending.row_bytes = 0;
        self.pending.lengthens = false;
        self.pending.writers.shrink_to(PENDING_KEPT);
        self.memory.changes.cover(0);
    }

    /// Returns the error for a RESTORE with an invalid payload. As in Redis, "the key exists" takes precedence.
    async fn not_restored(
        &mut self,
        restore: &Restore<'_>,
        failure: Failure,
    ) -> Result<Failure, Failure> {
        if failure.is_busy() || restore.only != Only::IfAbsent {
            return Ok(failure);
        }
        self.flush_changes().await;
        let (bucket, key) = (restore.bucket, Box::<[u8]>::from(&restore.key[..]));
        let exists = match self.shared.node.keys().try_row(bucket, &key) {
            Found::Row(_) => true,
            Found::Absent => false,
            Found::Unknown => {
                let exists = move |node: &node::Node| node.keys().row(bucket, &key).is_some();
                self.block(Length::Quick, move |node, _| exists(node)).await?
            }
        };
        Ok(if exists { Failure::BUSY_KEY } else { failure })
    }

    /// Unpacks the value of a RESTORE payload, and reserves its memory.
    ///
    /// # Errors
    /// If the payload is invalid, or the budget has no room for the value.
    pub(crate) async fn unpack(
        &mut self,
        payload: &[u8],
    ) -> Result<(Vec<u8>, Reservation), Failure> {
        let bytes = dump::work_bytes(payload);
        if bytes <= UNPACK_BYTES_SHORT {
            return Ok((dump::restore(payload)?, self.memory.budget.empty()));
        }
        let held = self.memory.budget.try_reserve(payload.len() + bytes).ok_or(Failure::BUSY)?;
        let payload = Box::<[u8]>::from(payload);
        let restored = self.block(Length::Long, move |_, _| dump::restore(&payload)).await?;
        Ok((restored?, held))
    }
}

/// Returns the key whose row is in the answer to an operation, if any.
pub(crate) fn answering_row<'a>(op: &KeyOp<'a>) -> Option<(BucketId, &'a [u8])> {
    match op {
        KeyOp::Put { bucket, key, old: true, .. }
        | KeyOp::Take { bucket, key, .. }
        | KeyOp::Expire { bucket, key, read: true, .. } => Some((*bucket, key)),
        _ => None,
    }
}

/// Whether an operation may make a value much longer than its own data.
fn lengthens(op: &KeyOp<'_>) -> bool {
    matches!(
        op,
        KeyOp::Append { .. }
            | KeyOp::SetRange { .. }
            | KeyOp::SetBit { .. }
            | KeyOp::Rename { .. }
            | KeyOp::Copy { .. }
            | KeyOp::Move { .. }
            | KeyOp::Swap { .. }
    )
}

/// Writes the reply to an answered change.
pub(crate) fn write_answer(
    answer: &KeyAnswer,
    writer: ReplyWriter,
    output: &mut Output,
    protocol: Protocol,
) {
    if let KeyAnswer::Row(row) = answer
        && !output.make_room(row.value().len())
    {
        return output.encoder(protocol).error(Failure::NO_REPLY);
    }
    writer(answer, &mut output.encoder(protocol));
}
