//! The central design: one actor has all users and stories, and gathers every home page.

use std::time::Instant;

use crate::actor::{Address, Mailbox, ReplyTo, spawn};
use crate::stories::{Client, Design, Friends, Stories};

enum Message {
    Post { author: u32, number: u64, life_s: u32, reply_to: ReplyTo<()> },
    Home { user: u32, reply_to: ReplyTo<Vec<u64>> },
}

async fn stories(mut mailbox: Mailbox<Message>, friends: Friends) {
    let mut by_author: Vec<Stories> = (0..friends.users).map(|_| Stories::default()).collect();
    while let Some(message) = mailbox.recv().await {
        match message {
            Message::Post { author, number, life_s, reply_to } => {
                if let Some(stories) = by_author.get_mut(author as usize) {
                    stories.post(number, life_s, Instant::now());
                }
                reply_to.send(());
            }
            Message::Home { user, reply_to } => {
                let mut page = Vec::new();
                for friend in friends.of(user) {
                    if let Some(stories) = by_author.get_mut(friend as usize) {
                        page.extend(stories.live(Instant::now()));
                    }
                }
                reply_to.send(page);
            }
        }
    }
}

/// The only actor.
pub(super) struct Central(Address<Message>);

impl Design for Central {
    type Client = CentralClient;

    async fn start(friends: &Friends) -> Self {
        let friends = *friends;
        Self(spawn(|mailbox| stories(mailbox, friends)))
    }

    fn connect(&self) -> CentralClient {
        CentralClient(self.0.clone())
    }
}

/// Client of the actor.
pub(super) struct CentralClient(Address<Message>);

impl Client for CentralClient {
    async fn post(&mut self, author: u32, number: u64, life_s: u32) {
        self.0.ask(|reply_to| Message::Post { author, number, life_s, reply_to }).await;
    }

    async fn home(&mut self, user: u32, page: &mut Vec<u64>) {
        page.extend(self.0.ask(|reply_to| Message::Home { user, reply_to }).await);
    }
}
