//! Executes the commands in the input of a connection.

use resp::{Ahead, Parser};
use smallvec::SmallVec;

use super::client::Client;
use super::command::{Run, Spec};
use super::connection::LIMITS;
use super::failure::Failure;
use super::memory::shrink;
use super::table;

/// Commands wait while so many bytes of replies do.
const OUTPUT_FULL: usize = 1 << 20;
/// As before, while more than half of the budget of all clients is used.
const OUTPUT_FULL_SCARCE: usize = 64 << 10;
/// As before, until the client has authenticated: all that it gets are refusals.
const OUTPUT_FULL_UNAUTHENTICATED: usize = 512;
/// Steps of work in one turn: a command is one, and each of its words is.
const WORK_MAX: usize = 4_096;
/// Rows of so many reads are prefetched together: more would push each other out of the cache.
const PREFETCH_READS: usize = 16;
/// A longer key is not worth being hashed twice.
const PREFETCH_KEY_BYTES_MAX: usize = 256;
/// Steps after which other connections of the thread get their turn: they wait some 50 microseconds.
pub(crate) const STEPS_MAX: usize = 256;
/// Bytes of input that the parser reads before the same: a command may have a million words.
const PARSED_MAX: usize = 32 << 10;
const UNAUTHENTICATED: Failure =
    Failure::said("ERR Protocol error: unauthenticated request too long");

/// A client with what it has sent.
pub(crate) struct Session {
    pub(crate) client: Client,
    pub(crate) parser: Parser,
    /// Received bytes.
    pub(crate) input: Vec<u8>,
    /// Number of bytes of it that were executed.
    executed: usize,
    /// Number of bytes of the rest that the parser has seen.
    shown: usize,
    /// No whole command is left.
    pub(crate) starved: bool,
}

impl Session {
    pub(crate) fn new(client: Client) -> Self {
        let (parser, input) = (Parser::new(LIMITS), Vec::new());
        Self { client, parser, input, executed: 0, shown: 0, starved: true }
    }

    /// Carries out commands until none is left, there are replies enough, or the turn is over. `sent` bytes
    /// of the replies have been sent. Returns whether there was a command.
    pub(crate) async fn carry_out(&mut self, sent: usize) -> bool {
        self.starved = false;
        self.client.renew_grant();
        let (full, before) = (self.output_full(), self.executed);
        let mut rest = self.input.get(self.executed..).unwrap_or_default();
        // Reads whose rows are prefetched end where so many bytes are left.
        let mut prefetched = rest.len();
        let mut pause_at = STEPS_MAX;
        while !self.client.closing && self.client.work < WORK_MAX {
            if self.client.output.len() - sent >= full || !self.client.has_room() {
                break;
            }
            if self.client.work >= pause_at {
                pause_at = self.client.work + STEPS_MAX;
                tokio::task::yield_now().await;
                self.client.waited();
            }
            self.client.work += 1;
            if rest.len() <= prefetched {
                prefetched = prefetch(&self.client, rest).len();
            }
            self.parser.set_authenticated(self.client.authenticated());
            let shown = rest.get(..self.shown).unwrap_or(rest);
            let mut unread = shown;
            match self.parser.next(&mut unread) {
                Ok(Some(command)) => self.client.carry_out(command).await,
                Ok(None) if shown.len() < rest.len() => {
                    self.shown += PARSED_MAX;
                    tokio::task::yield_now().await;
                    self.client.waited();
                }
                Ok(None) => {
                    self.starved = true;
                    break;
                }
                Err(error) => {
                    self.client.flush_changes().await;
                    self.client.reply().error(error);
                    self.client.closing = true;
                }
            }
            let consumed = shown.len() - unread.len();
            rest = rest.get(consumed..).unwrap_or_default();
            self.shown = self.shown.saturating_sub(consumed);
        }
        self.executed = self.input.len() - rest.len();
        self.executed > before
    }

    /// No further command is carried out while so many bytes of replies are unsent.
    pub(crate) fn output_full(&self) -> usize {
        let budget = &self.client.memory.budget;
        match self.client.authenticated() {
            false => OUTPUT_FULL_UNAUTHENTICATED,
            true if budget.used() > budget.limit() / 2 => OUTPUT_FULL_SCARCE,
            true => OUTPUT_FULL,
        }
    }

    /// Drops the input that has been executed, and frees memory that is not needed again soon.
    pub(crate) fn tidy(&mut self) {
        let rest = self.input.len() - self.executed;
        // What is left is moved to the front only if that is less than what was carried out, or no more
        // can be before the rest of it arrives: a long pipeline would be moved again and again.
        if rest > self.executed && !self.starved && self.client.authenticated() {
            return;
        }
        self.input.drain(..self.executed);
        self.executed = 0;
        shrink(&mut self.input);
    }

    /// Bytes of memory that the input takes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.input.capacity() + self.parser.memory_bytes()
    }

    /// Ends the connection with an error: its input is longer than allowed.
    pub(crate) fn refuse_input(&mut self) {
        self.client.reply().error(UNAUTHENTICATED);
        self.client.closing = true;
    }
}

/// Prefetches the rows of the reads at the front of `input`; returns what follows them.
fn prefetch<'i>(client: &Client, input: &'i [u8]) -> &'i [u8] {
    let mut ahead = Ahead::new(input);
    let reads = ahead.by_ref().take(PREFETCH_READS).take_while(|(name, key)| {
        let read = matches!(table::find(name), Some(Spec { run: Run::Read(_), keys: (1, ..), .. }));
        read && key.len() <= PREFETCH_KEY_BYTES_MAX
    });
    let keys: SmallVec<[&[u8]; PREFETCH_READS]> = reads.map(|(_, key)| key).collect();
    if keys.len() > 1 && client.authenticated() && client.transaction.is_none() {
        let memory = client.keys();
        keys.iter().for_each(|key| memory.prefetch(client.bucket, key));
    }
    ahead.rest()
}
