//! The design with an actor per user. For each home page, the user's actor starts a task that asks the actors of all
//! friends concurrently. Meanwhile, the user's actor can handle other requests.

use std::sync::Arc;
use std::time::Instant;

use tokio::sync::mpsc;

use crate::actor::{Address, Mailbox, ReplyTo, spawn};
use crate::stories::{Client, Design, Friends, Stories};

enum Message {
    /// Initial message: the actors of all friends.
    Befriend {
        friends: Vec<Address<Message>>,
    },
    Post {
        number: u64,
        life_s: u32,
        reply_to: ReplyTo<()>,
    },
    Home {
        reply_to: ReplyTo<Vec<u64>>,
    },
    /// Request by the task that gathers a friend's home page.
    Live {
        send_to: mpsc::UnboundedSender<Vec<u64>>,
    },
}

async fn user(mut mailbox: Mailbox<Message>) {
    let mut stories = Stories::default();
    let mut all: Arc<[Address<Message>]> = Arc::from([]);
    while let Some(message) = mailbox.recv().await {
        match message {
            Message::Befriend { friends } => all = friends.into(),
            Message::Post { number, life_s, reply_to } => {
                stories.post(number, life_s, Instant::now());
                reply_to.send(());
            }
            Message::Home { reply_to } => drop(tokio::spawn(gather(Arc::clone(&all), reply_to))),
            Message::Live { send_to } => {
                // Sending cannot fail, because the task waits for the stories of all friends.
                let _sent = send_to.send(stories.live(Instant::now()).collect());
            }
        }
    }
}

async fn gather(friends: Arc<[Address<Message>]>, reply_to: ReplyTo<Vec<u64>>) {
    let (send_to, mut received) = mpsc::unbounded_channel();
    for friend in &*friends {
        friend.send(Message::Live { send_to: send_to.clone() });
    }
    drop(send_to);
    let mut page = Vec::new();
    while let Some(stories) = received.recv().await {
        page.extend(stories);
    }
    reply_to.send(page);
}

/// Actors of all users, by number.
#[derive(Clone)]
pub(super) struct PerUser(Arc<[Address<Message>]>);

impl PerUser {
    fn actor(&self, user: u32) -> &Address<Message> {
        match self.0.get(user as usize) {
            Some(actor) => actor,
            None => unreachable!("every user has an actor"),
        }
    }
}

impl Design for PerUser {
    type Client = Self;

    async fn start(friends: &Friends) -> Self {
        let users = Self((0..friends.users).map(|_| spawn(user)).collect());
        for user in 0..friends.users {
            let friends = friends.of(user).map(|friend| users.actor(friend).clone()).collect();
            users.actor(user).send(Message::Befriend { friends });
        }
        users
    }

    fn connect(&self) -> Self {
        self.clone()
    }
}

impl Client for PerUser {
    async fn post(&mut self, author: u32, number: u64, life_s: u32) {
        self.actor(author).ask(|reply_to| Message::Post { number, life_s, reply_to }).await;
    }

    async fn home(&mut self, user: u32, page: &mut Vec<u64>) {
        page.extend(self.actor(user).ask(|reply_to| Message::Home { reply_to }).await);
    }
}
