//! The central design: one actor with all users, follows and timelines.

use std::sync::Arc;

use crate::actor::{Address, Mailbox, ReplyTo, spawn};
use crate::feed::network::Network;
use crate::feed::timeline::{Post, Timeline};
use crate::feed::{Client, Delivery, Design, PAGE, Undelivered};

enum Message {
    Post { author: u32, number: u64, undelivered: Undelivered, reply_to: ReplyTo<()> },
    Timeline { user: u32, count: usize, reply_to: ReplyTo<Vec<Arc<Post>>> },
    Profile { user: u32, reply_to: ReplyTo<Vec<Arc<Post>>> },
}

#[derive(Default)]
struct User {
    followers: Vec<u32>,
    own: Timeline,
    home: Timeline,
}

async fn feed(mut mailbox: Mailbox<Message>, mut users: Vec<User>) {
    while let Some(message) = mailbox.recv().await {
        match message {
            Message::Post { author, number, undelivered, reply_to } => {
                let post = Post::new(number);
                let Some(user) = users.get_mut(author as usize) else { continue };
                user.own.add(Arc::clone(&post));
                user.home.add(Arc::clone(&post));
                let followers = std::mem::take(&mut user.followers);
                for follower in &followers {
                    if let Some(follower) = users.get_mut(*follower as usize) {
                        follower.home.add(Arc::clone(&post));
                    }
                }
                if let Some(user) = users.get_mut(author as usize) {
                    user.followers = followers;
                }
                drop(undelivered);
                reply_to.send(());
            }
            Message::Timeline { user, count, reply_to } => {
                let user = users.get(user as usize);
                reply_to.send(user.map(|user| user.home.newest(count)).unwrap_or_default());
            }
            Message::Profile { user, reply_to } => {
                let user = users.get(user as usize);
                reply_to.send(user.map(|user| user.own.newest(PAGE)).unwrap_or_default());
            }
        }
    }
}

/// The only actor.
pub(super) struct Central(Address<Message>);

impl Design for Central {
    type Client = CentralClient;

    async fn start(network: &Network) -> Self {
        let users = (0..network.users())
            .map(|user| User { followers: network.followers(user).to_vec(), ..User::default() });
        let users = users.collect();
        Self(spawn(|mailbox| feed(mailbox, users)))
    }

    fn connect(&self) -> CentralClient {
        CentralClient(self.0.clone())
    }
}

/// Client of the actor.
pub(super) struct CentralClient(Address<Message>);

impl Client for CentralClient {
    async fn post(&mut self, author: u32, number: u64) -> Delivery {
        let (undelivered, delivery) = Delivery::begin();
        let message = |reply_to| Message::Post { author, number, undelivered, reply_to };
        self.0.ask(message).await;
        delivery
    }

    async fn timeline(&mut self, user: u32, page: &mut Vec<u64>) {
        let message = |reply_to| Message::Timeline { user, count: PAGE, reply_to };
        page.extend(self.0.ask(message).await.iter().map(|post| post.number));
    }

    async fn profile(&mut self, user: u32, page: &mut Vec<u64>) {
        let posts = self.0.ask(|reply_to| Message::Profile { user, reply_to }).await;
        page.extend([posts.first(), posts.last()].into_iter().flatten().map(|post| post.number));
    }

    async fn everything(&mut self, user: u32) -> Vec<u64> {
        let message = |reply_to| Message::Timeline { user, count: usize::MAX, reply_to };
        self.0.ask(message).await.iter().map(|post| post.number).collect()
    }
}
