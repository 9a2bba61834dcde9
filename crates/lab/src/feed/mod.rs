//! Experiments 1 to 4 and 9: users who follow each other, and timelines with the posts of the user and of followed
//! users. In the designs with actors, posts are delivered: every post is written to the timelines of all followers.

mod broadcast;
mod central;
mod experiments;
mod http;
mod network;
mod requests;
mod roost;
mod sharded;
mod timeline;

#[cfg(test)]
mod tests;

use tokio::sync::mpsc;

pub(crate) use broadcast::{BROADCAST, CELEBRITY};
pub(crate) use experiments::{PROFILES, SENDS, STALENESS, TIMELINES, USERS_PER_ACTOR};

use network::Network;

/// Number of posts on a page.
const PAGE: usize = 20;

/// Design of the feed.
trait Design: Sized + Send + Sync + 'static {
    type Client: Client;

    /// Starts a feed with the users and follows of a network, without posts, on the runtime of the caller.
    fn start(network: &Network) -> impl Future<Output = Self> + Send;

    /// Creates a client, which may act for every user.
    fn connect(&self) -> Self::Client;

    /// Returns the number of a post on a page.
    fn number(&self, post: u64) -> u64 {
        post
    }
}

/// Client with at most one request in progress.
trait Client: Send + 'static {
    /// Publishes a post with a unique number. Newer posts have greater numbers. The post is accepted when this returns.
    fn post(&mut self, author: u32, number: u64) -> impl Future<Output = Delivery> + Send;

    /// Publishes posts in order, before the measurement, in one request if the design allows it.
    fn post_all(&mut self, posts: &[(u32, u64)]) -> impl Future<Output = Vec<Delivery>> + Send {
        async move {
            let mut deliveries = Vec::new();
            for (author, number) in posts {
                deliveries.push(self.post(*author, *number).await);
            }
            deliveries
        }
    }

    /// Adds the newest posts of a user's timeline to a page, newest first.
    fn timeline(&mut self, user: u32, page: &mut Vec<u64>) -> impl Future<Output = ()> + Send;

    /// Reads the newest posts by a user, and adds the first and the last of these posts to a page.
    fn profile(&mut self, user: u32, page: &mut Vec<u64>) -> impl Future<Output = ()> + Send;

    /// All posts in a user's timeline, in any order.
    fn everything(&mut self, user: u32) -> impl Future<Output = Vec<u64>> + Send;

    /// Waits until an accepted post is in the timelines of all followers.
    fn delivered(
        &mut self,
        delivery: Delivery,
        followers: &[u32],
    ) -> impl Future<Output = ()> + Send {
        let _unused = followers;
        delivery.end()
    }
}

/// Post that is being delivered to timelines.
struct Delivery(mpsc::Receiver<()>);

/// Token that every actor holds until it has delivered a post.
#[derive(Clone)]
struct Undelivered(#[expect(dead_code, reason = "held, and dropped")] mpsc::Sender<()>);

impl Delivery {
    fn begin() -> (Undelivered, Self) {
        let (sender, receiver) = mpsc::channel(1);
        (Undelivered(sender), Self(receiver))
    }

    /// Waits until the post is delivered everywhere.
    async fn end(mut self) {
        while self.0.recv().await.is_some() {}
    }
}
