//! Execution of the commands in the input of a connection.

use resp::{Ahead, Parser};
use smallvec::SmallVec;

use super::client::Client;
use super::command::{Run, Spec};
use super::connection::LIMITS;
use super::failure::Failure;
use super::memory::shrink;
use super::table;

/// Size of unsent replies from which no further command is executed, in bytes.
const OUTPUT_FULL: usize = 1 << 20;
/// The same size while more than half of the budget of all clients is used, in bytes.
const OUTPUT_FULL_SCARCE: usize = 64 << 10;
/// The same size before authentication, in bytes. All these replies are refusals.
const OUTPUT_FULL_UNAUTHENTICATED: usize = 512;
/// Maximum number of steps of work in a turn. Each command and each word is a step.
const WORK_MAX: usize = 4_096;
/// Number of reads whose rows are prefetched together. With more, the rows would evict each other from the cache.
const PREFETCH_READS: usize = 16;
/// Maximum length of a key that is prefetched, in bytes. Hashing a longer key twice costs too much.
const PREFETCH_KEY_BYTES_MAX: usize = 256;
/// Number of steps after which other connections of the thread have their turn: about 50 microseconds.
pub(crate) const STEPS_MAX: usize = 256;
/// Number of parsed bytes after which other connections have their turn. A command may have a million words.
const PARSED_MAX: usize = 32 << 10;
const UNAUTHENTICATED: Failure =
    Failure::said("ERR Protocol error: unauthenticated request too long");

/// Client with its input.
pub(crate) struct Session {
    pub(crate) client: Client,
    pub(crate) parser: Parser,
    /// Received bytes.
    pub(crate) input: Vec<u8>,
    /// Length of the executed part of the input, in bytes.
    executed: usize,
    /// Number of bytes after the executed part that the parser has seen.
    shown: usize,
    /// Whether the input contains no complete command.
    pub(crate) starved: bool,
}

impl Session {
    pub(crate) fn new(client: Client) -> Self {
        let (parser, input) = (Parser::new(LIMITS), Vec::new());
        Self { client, parser, input, executed: 0, shown: 0, starved: true }
    }

    /// Executes commands until there are no more, too many replies are unsent, or the turn is over. `sent` is the
    /// number of bytes of the replies that were sent. Returns whether there was a command.
    pub(crate) async fn carry_out(&mut self, sent: usize) -> bool {
        self.starved = false;
        self.client.renew_grant();
        let (full, before) = (self.output_full(), self.executed);
        let mut rest = self.input.get(self.executed..).unwrap_or_default();
        // Length of the input after the prefetched reads.
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

    /// Size of unsent replies from which no further command is executed, in bytes.
    pub(crate) fn output_full(&self) -> usize {
        let budget = &self.client.memory.budget;
        match self.client.authenticated() {
            false => OUTPUT_FULL_UNAUTHENTICATED,
            true if budget.used() > budget.limit() / 2 => OUTPUT_FULL_SCARCE,
            true => OUTPUT_FULL,
        }
    }

    /// Drops the executed input, and frees memory that is not needed soon.
    pub(crate) fn tidy(&mut self) {
        let rest = self.input.len() - self.executed;
        // Move the rest to the front only if it is shorter than the executed part, or needs further input to be
        // complete. Otherwise a long pipeline would be moved repeatedly.
        if rest > self.executed && !self.starved && self.client.authenticated() {
            return;
        }
        self.input.drain(..self.executed);
        self.executed = 0;
        shrink(&mut self.input);
    }

    /// Memory of the input, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.input.capacity() + self.parser.memory_bytes()
    }

    /// Ends the connection with an error, because a client without authentication has sent too much.
    pub(crate) fn refuse_input(&mut self) {
        self.client.reply().error(UNAUTHENTICATED);
        self.client.closing = true;
    }
}

/// Prefetches the rows of the reads at the front of `input`. Returns the rest.
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
