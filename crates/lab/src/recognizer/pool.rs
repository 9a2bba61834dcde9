//! The pool design: as many actors as threads, which get the requests in turn. A request costs one message and one
//! reply.

use std::sync::atomic::{AtomicUsize, Ordering};

use knn::Bits;

use crate::actor::{Address, Mailbox, ReplyTo, spawn};
use crate::recognizer::inline::Inline;
use crate::recognizer::{Design, Nearest};

struct Recognize {
    query: Bits,
    reply_to: ReplyTo<Nearest>,
}

async fn worker(mut mailbox: Mailbox<Recognize>, samples: Inline) {
    while let Some(Recognize { query, reply_to }) = mailbox.recv().await {
        reply_to.send(samples.compute(&query));
    }
}

/// Actors, and a counter for their turns.
pub(super) struct Pool {
    workers: Vec<Address<Recognize>>,
    turn: AtomicUsize,
}

impl Pool {
    /// Starts the actors on the runtime of the caller.
    pub(super) fn start(workers: u32) -> Self {
        let samples = Inline::best();
        let worker = |_| spawn(|mailbox| worker(mailbox, samples.clone()));
        Self { workers: (0..workers).map(worker).collect(), turn: AtomicUsize::new(0) }
    }
}

impl Design for Pool {
    async fn nearest(&self, query: Bits) -> Nearest {
        // Relaxed suffices: it does not matter which worker gets which request.
        let turn = self.turn.fetch_add(1, Ordering::Relaxed) % self.workers.len();
        match self.workers.get(turn) {
            Some(worker) => worker.ask(|reply_to| Recognize { query, reply_to }).await,
            None => unreachable!("a remainder is less than the divisor"),
        }
    }
}
