//! The sharded design: several users per actor, and a register that maps users to actors.
//!
//! A client asks the register once for each user, and then sends to that user's actor. The author's actor sends a post
//! to each actor that has followers of the author, in one message for all these followers. The author's client gets its
//! answer before the post is delivered, so a follower may read a timeline that lacks the post.

use std::collections::HashMap;
use std::sync::Arc;

use crate::actor::{Address, Mailbox, ReplyTo, spawn};
use crate::feed::network::Network;
use crate::feed::timeline::{Post, Timeline};
use crate::feed::{Client, Delivery, Design, PAGE, Undelivered};

enum Message {
    Post {
        author: u32,
        number: u64,
        undelivered: Undelivered,
        reply_to: ReplyTo<()>,
    },
    /// Post by a user of another actor, for these users.
    Deliver {
        post: Arc<Post>,
        to: Arc<[u32]>,
        undelivered: Undelivered,
    },
    Timeline {
        user: u32,
        count: usize,
        reply_to: ReplyTo<Vec<Arc<Post>>>,
    },
    Profile {
        user: u32,
        reply_to: ReplyTo<Vec<Arc<Post>>>,
    },
    /// Initial message: the actors that have followers of a user, and these followers.
    Follow {
        user: u32,
        followers: Vec<(Address<Message>, Arc<[u32]>)>,
    },
}

/// Request for the address of a user's actor.
struct Redirect {
    user: u32,
    reply_to: ReplyTo<Address<Message>>,
}

#[derive(Default)]
struct User {
    followers: Vec<(Address<Message>, Arc<[u32]>)>,
    own: Timeline,
    home: Timeline,
}

async fn shard(mut mailbox: Mailbox<Message>) {
    let mut users: HashMap<u32, User> = HashMap::new();
    while let Some(message) = mailbox.recv().await {
        match message {
            Message::Post { author, number, undelivered, reply_to } => {
                let (post, user) = (Post::new(number), users.entry(author).or_default());
                user.own.add(Arc::clone(&post));
                user.home.add(Arc::clone(&post));
                for (actor, to) in &user.followers {
                    let (post, to) = (Arc::clone(&post), Arc::clone(to));
                    actor.send(Message::Deliver { post, to, undelivered: undelivered.clone() });
                }
                reply_to.send(());
            }
            Message::Deliver { post, to, undelivered } => {
                for user in &*to {
                    users.entry(*user).or_default().home.add(Arc::clone(&post));
                }
                drop(undelivered);
            }
            Message::Timeline { user, count, reply_to } => {
                reply_to.send(users.entry(user).or_default().home.newest(count));
            }
            Message::Profile { user, reply_to } => {
                reply_to.send(users.entry(user).or_default().own.newest(PAGE));
            }
            Message::Follow { user, followers } => {
                users.entry(user).or_default().followers = followers;
            }
        }
    }
}

async fn register(
    mut mailbox: Mailbox<Redirect>,
    users_per_actor: u32,
    shards: Vec<Address<Message>>,
) {
    while let Some(Redirect { user, reply_to }) = mailbox.recv().await {
        if let Some(shard) = shards.get((user / users_per_actor) as usize) {
            reply_to.send(shard.clone());
        }
    }
}

/// The register, which is one actor. `N` is the number of users per actor.
pub(super) struct Sharded<const N: u32>(Address<Redirect>);

impl<const N: u32> Design for Sharded<N> {
    type Client = ShardedClient;

    async fn start(network: &Network) -> Self {
        let shards: Vec<_> = (0..network.users().div_ceil(N)).map(|_| spawn(shard)).collect();
        for user in 0..network.users() {
            // Followers are in the order of numbers, so those of one actor are adjacent.
            let groups = network.followers(user).chunk_by(|a, b| a / N == b / N);
            let address = |group: &[u32]| {
                let shard = group.first().and_then(|user| shards.get((user / N) as usize))?;
                Some((shard.clone(), Arc::from(group)))
            };
            let followers = groups.filter_map(address).collect();
            if let Some(shard) = shards.get((user / N) as usize) {
                shard.send(Message::Follow { user, followers });
            }
        }
        Self(spawn(|mailbox| register(mailbox, N, shards)))
    }

    fn connect(&self) -> ShardedClient {
        ShardedClient { register: self.0.clone(), known: HashMap::new() }
    }
}

/// Client that remembers the addresses that the register returned.
pub(super) struct ShardedClient {
    register: Address<Redirect>,
    known: HashMap<u32, Address<Message>>,
}

impl ShardedClient {
    /// Sends a message to the actor of a user, and waits for the reply.
    async fn ask<R>(&mut self, user: u32, message: impl FnOnce(ReplyTo<R>) -> Message) -> R {
        if let Some(actor) = self.known.get(&user) {
            return actor.ask(message).await;
        }
        let actor = self.register.ask(|reply_to| Redirect { user, reply_to }).await;
        self.known.entry(user).insert_entry(actor).get().ask(message).await
    }
}

impl Client for ShardedClient {
    async fn post(&mut self, author: u32, number: u64) -> Delivery {
        let (undelivered, delivery) = Delivery::begin();
        let message = |reply_to| Message::Post { author, number, undelivered, reply_to };
        self.ask(author, message).await;
        delivery
    }

    async fn timeline(&mut self, user: u32, page: &mut Vec<u64>) {
        let message = |reply_to| Message::Timeline { user, count: PAGE, reply_to };
        page.extend(self.ask(user, message).await.iter().map(|post| post.number));
    }

    async fn profile(&mut self, user: u32, page: &mut Vec<u64>) {
        let posts = self.ask(user, |reply_to| Message::Profile { user, reply_to }).await;
        page.extend([posts.first(), posts.last()].into_iter().flatten().map(|post| post.number));
    }

    async fn everything(&mut self, user: u32) -> Vec<u64> {
        let message = |reply_to| Message::Timeline { user, count: usize::MAX, reply_to };
        self.ask(user, message).await.iter().map(|post| post.number).collect()
    }
}
