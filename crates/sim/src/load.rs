//! Loads a population into an empty server: everybody registers, in order, on one connection, so
//! that the server's ids are our numbers; then the follows go over several connections.

mod batch;

use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use thiserror::Error;
use tokio::task::JoinSet;

use crate::Population;
use crate::client::{ClientError, Requests};
use crate::progress;
use crate::texts;
use batch::batch;

/// Connections that carry follows. The server puts all changes in one order anyway: more
/// connections only keep it fed.
const FOLLOW_CONNECTIONS: u32 = 4;

/// Why a population could not be loaded.
#[derive(Debug, Error)]
pub enum LoadError {
    /// The connection or the answer broke.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The server has refused the batch as a whole.
    #[error("the server refused the batch with status {status}: {body}")]
    Refused {
        /// The status of the answer.
        status: u16,
        /// The beginning of its body.
        body: String,
    },
    /// The server has refused one command.
    #[error("command {number} was refused: {error}: {message}")]
    Command {
        /// Number of the command within its batch, from 0.
        number: u64,
        /// The server's code for the error.
        error: String,
        /// The server's sentence on it.
        message: String,
    },
    /// The server knows other people already.
    #[error("the server already has users; a rehearsal needs an empty one")]
    NotEmpty,
    /// The answer ended before the last result.
    #[error("the answer ended after {done} of {total} results")]
    Short {
        /// Results that came.
        done: u64,
        /// Commands that were sent.
        total: u64,
    },
    /// Nothing came for a long time.
    #[error("no result for {seconds} s")]
    Stalled {
        /// How long was waited.
        seconds: u64,
    },
}

/// Everything needed to load a population.
pub(crate) struct Loading {
    pub(crate) target: SocketAddr,
    pub(crate) requests: Requests,
    pub(crate) population: Arc<Population>,
    /// Seed of the names.
    pub(crate) seed: u64,
}

impl Loading {
    /// Registers everybody and lets them follow whom they follow.
    pub(crate) async fn load(self: Arc<Loading>) -> Result<(), LoadError> {
        let done = AtomicU64::new(0);
        with_progress("people", u64::from(self.population.people()), &done, self.register(&done))
            .await?;
        let done = Arc::new(AtomicU64::new(0));
        let follows = Arc::clone(&self).follow(Arc::clone(&done));
        with_progress("follows", self.population.follows(), &done, follows).await
    }

    async fn register(&self, done: &AtomicU64) -> Result<(), LoadError> {
        let people = self.population.people();
        let mut numbers = 0..people;
        let next = |lines: &mut Vec<u8>| {
            let Some(number) = numbers.next() else { return false };
            write_register(self.seed, number, lines);
            true
        };
        let check = |number: u64, id: Option<u64>| {
            if id != Some(number) {
                return Err(LoadError::NotEmpty);
            }
            done.store(number + 1, Ordering::Relaxed);
            Ok(())
        };
        let registered = batch(self.target, &self.requests, people.into(), next, check).await;
        registered.map_err(|error| match error {
            LoadError::Command { error, .. } if error == "handle_taken" => LoadError::NotEmpty,
            error => error,
        })
    }

    async fn follow(self: Arc<Loading>, done: Arc<AtomicU64>) -> Result<(), LoadError> {
        let mut parts = JoinSet::new();
        for followers in split(&self.population, FOLLOW_CONNECTIONS) {
            parts.spawn(Arc::clone(&self).follow_part(followers, Arc::clone(&done)));
        }
        while let Some(part) = parts.join_next().await {
            match part {
                Ok(outcome) => outcome?,
                Err(panic) => std::panic::resume_unwind(panic.into_panic()),
            }
        }
        Ok(())
    }

    async fn follow_part(
        self: Arc<Loading>,
        followers: Range<u32>,
        done: Arc<AtomicU64>,
    ) -> Result<(), LoadError> {
        let population = &self.population;
        let total = followers.clone().map(|person| population.following(person).len() as u64).sum();
        let (mut person, mut told) = (followers.start, 0);
        let next = |lines: &mut Vec<u8>| {
            while person < followers.end {
                if let Some(&other) = population.following(person).get(told) {
                    write_follow(person, other, lines);
                    told += 1;
                    return true;
                }
                (person, told) = (person + 1, 0);
            }
            false
        };
        let check = |_, _: Option<u64>| {
            done.fetch_add(1, Ordering::Relaxed);
            Ok(())
        };
        batch(self.target, &self.requests, total, next, check).await
    }
}

async fn with_progress(
    what: &'static str,
    total: u64,
    done: &AtomicU64,
    work: impl Future<Output = Result<(), LoadError>>,
) -> Result<(), LoadError> {
    tokio::select! {
        outcome = work => outcome,
        () = progress::show(what, total, done) => unreachable!("shown until the work is done"),
    }
}

fn write_register(seed: u64, number: u32, lines: &mut Vec<u8>) {
    let (handle, name) = (texts::handle(seed, number), texts::display_name(seed, number));
    for part in [r#"{"op":"register","handle":""#, &handle, r#"","name":""#, &name, "\"}\n"] {
        lines.extend_from_slice(part.as_bytes());
    }
}

fn write_follow(person: u32, other: u32, lines: &mut Vec<u8>) {
    lines.extend_from_slice(br#"{"op":"follow","user":"#);
    lines.extend_from_slice(itoa::Buffer::new().format(person).as_bytes());
    lines.extend_from_slice(br#","other":"#);
    lines.extend_from_slice(itoa::Buffer::new().format(other).as_bytes());
    lines.extend_from_slice(b"}\n");
}

/// Ranges of followers with about the same number of follows each; none is empty.
fn split(population: &Population, parts: u32) -> Vec<Range<u32>> {
    let a_part = population.follows().div_ceil(u64::from(parts));
    let mut ranges = Vec::new();
    let (mut start, mut follows) = (0, 0);
    for person in 0..population.people() {
        follows += population.following(person).len() as u64;
        if follows > 0 && (follows >= a_part || person + 1 == population.people()) {
            ranges.push(start..person + 1);
            (start, follows) = (person + 1, 0);
        }
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn followers_are_split_into_parts_of_about_the_same_size() {
        let population = Population::made(2_000, 1);
        let parts = split(&population, 4);
        assert!((3..=5).contains(&parts.len()), "{parts:?}");
        let covered: Vec<u32> = parts.iter().cloned().flatten().collect();
        let follows =
            |range: Range<u32>| range.map(|p| population.following(p).len() as u64).sum::<u64>();
        assert!(covered.iter().copied().eq(0..covered.len() as u32), "one after the other");
        assert_eq!(
            follows(0..covered.len() as u32),
            population.follows(),
            "nobody's follows are left out"
        );
        assert!(split(&Population::made(1, 1), 4).is_empty());
    }
}
