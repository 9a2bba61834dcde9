//! What a connection carries out: the commands in its input.

use resp::Parser;

use super::client::Client;
use super::connection::LIMITS;
use super::failure::Failure;
use super::memory::shrink;

/// Commands wait while so many bytes of replies do.
const OUTPUT_FULL: usize = 1 << 20;
/// As before, while more than half of the budget of all clients is used.
const OUTPUT_FULL_SCARCE: usize = 64 << 10;
/// As before, until the client has authenticated: all that it gets are refusals.
const OUTPUT_FULL_UNAUTHENTICATED: usize = 512;
/// Steps of work in one turn: a command is one, and some are more. Others on the same thread wait for
/// a millisecond or so.
const WORK_MAX: usize = 4_096;
const UNAUTHENTICATED: Failure =
    Failure::said("ERR Protocol error: unauthenticated request too long");

/// A client with what it has sent.
pub(crate) struct Session {
    pub(crate) client: Client,
    pub(crate) parser: Parser,
    /// What has arrived.
    pub(crate) input: Vec<u8>,
    /// How much of it has been carried out.
    executed: usize,
    /// No whole command is left.
    pub(crate) starved: bool,
}

impl Session {
    pub(crate) fn new(client: Client) -> Self {
        let (parser, input) = (Parser::new(LIMITS), Vec::new());
        Self { client, parser, input, executed: 0, starved: true }
    }

    /// Carries out commands until none is left, there are replies enough, or others are to have their
    /// turn. `sent` bytes of the replies have been sent. Returns whether there was a command.
    pub(crate) async fn carry_out(&mut self, sent: usize) -> bool {
        self.starved = false;
        self.client.renew_grant();
        let full = self.output_full();
        let mut rest = self.input.get(self.executed..).unwrap_or_default();
        while !self.client.closing && self.client.work < WORK_MAX {
            if self.client.output.len() - sent >= full || !self.client.has_room() {
                break;
            }
            self.client.work += 1;
            self.parser.set_authenticated(self.client.authenticated());
            match self.parser.next(&mut rest) {
                Ok(Some(command)) => self.client.carry_out(command).await,
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
        }
        self.executed = self.input.len() - rest.len();
        self.executed > 0
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

    /// Forgets what has been carried out, and gives back memory that is not needed again soon.
    pub(crate) fn tidy(&mut self) {
        if self.executed == self.input.len() {
            self.input.clear();
        } else {
            self.input.drain(..self.executed);
        }
        self.executed = 0;
        shrink(&mut self.input);
    }

    /// Bytes of memory that the input takes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.input.capacity() + self.parser.memory_bytes()
    }

    /// Ends the connection with the reason: it may not send as much.
    pub(crate) fn refuse_input(&mut self) {
        self.client.reply().error(UNAUTHENTICATED);
        self.client.closing = true;
    }
}
