//! Experiment 5: stories that expire, shown to the friends of their authors, in three designs.

mod central;
mod experiment;
mod friends;
mod http;
mod per_user;
mod posted;
mod roost;

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::time::{Duration, Instant};

pub(crate) use experiment::EXPERIMENT;

use friends::Friends;

/// Design of stories.
trait Design: Sized + Send + Sync + 'static {
    type Client: Client;

    /// Starts the design without stories, on the runtime of the caller.
    fn start(friends: &Friends) -> impl Future<Output = Self> + Send;

    /// Creates a client, which may act for every user.
    fn connect(&self) -> Self::Client;

    /// Returns the number of a story on a home page.
    fn number(&self, story: u64) -> u64 {
        story
    }
}

/// Client with at most one request in progress.
trait Client: Send + 'static {
    /// Posts a story that expires after `life_s` seconds.
    fn post(&mut self, author: u32, number: u64, life_s: u32) -> impl Future<Output = ()> + Send;

    /// Posts several stories, in any order, in one request if the design allows it.
    fn post_all(
        &mut self,
        author: u32,
        numbers: &[u64],
        life_s: u32,
    ) -> impl Future<Output = ()> + Send {
        async move {
            for number in numbers {
                self.post(author, *number, life_s).await;
            }
        }
    }

    /// Adds the live stories of a user's friends to a home page, in any order.
    fn home(&mut self, user: u32, page: &mut Vec<u64>) -> impl Future<Output = ()> + Send;
}

/// Stories of an author, oldest first. All have the same TTL, so the oldest expires first.
#[derive(Default)]
struct Stories(VecDeque<(u64, Instant)>);

impl Stories {
    fn post(&mut self, number: u64, life_s: u32, now: Instant) {
        self.0.push_back((number, now + Duration::from_secs(life_s.into())));
    }

    /// Removes expired stories, and returns the others.
    fn live(&mut self, now: Instant) -> impl Iterator<Item = u64> {
        while self.0.front().is_some_and(|(_, expires)| *expires <= now) {
            self.0.pop_front();
        }
        self.0.iter().map(|(number, _)| *number)
    }
}
