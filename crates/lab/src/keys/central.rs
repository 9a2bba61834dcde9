//! The central design: one actor with a dictionary of dictionaries. The requests of all clients wait in its mailbox.

use std::collections::HashMap;

use crate::actor::{Address, Mailbox, ReplyTo, spawn};
use crate::keys::{Client, Design, Value};

enum Message {
    Create { bucket: u32, reply_to: ReplyTo<()> },
    Read { bucket: u32, key: u32, reply_to: ReplyTo<Option<Value>> },
    Write { bucket: u32, key: u32, value: Value, reply_to: ReplyTo<bool> },
}

async fn store(mut mailbox: Mailbox<Message>) {
    let mut buckets: HashMap<u32, HashMap<u32, Value>> = HashMap::new();
    while let Some(message) = mailbox.recv().await {
        match message {
            Message::Create { bucket, reply_to } => {
                buckets.entry(bucket).or_default();
                reply_to.send(());
            }
            Message::Read { bucket, key, reply_to } => {
                reply_to.send(buckets.get(&bucket).and_then(|values| values.get(&key).copied()));
            }
            Message::Write { bucket, key, value, reply_to } => {
                let values = buckets.get_mut(&bucket);
                reply_to.send(values.map(|values| values.insert(key, value)).is_some());
            }
        }
    }
}

/// The only actor.
pub(super) struct Central(Address<Message>);

impl Design for Central {
    type Client = CentralClient;

    async fn start(_clients: u32) -> Self {
        Self(spawn(store))
    }

    fn connect(&self, _client: u32) -> CentralClient {
        CentralClient(self.0.clone())
    }
}

/// Client of the actor.
pub(super) struct CentralClient(Address<Message>);

impl Client for CentralClient {
    async fn create(&mut self, bucket: u32) {
        self.0.ask(|reply_to| Message::Create { bucket, reply_to }).await;
    }

    async fn read(&mut self, bucket: u32, key: u32) -> Option<Value> {
        self.0.ask(|reply_to| Message::Read { bucket, key, reply_to }).await
    }

    async fn write(&mut self, bucket: u32, key: u32, value: Value) -> bool {
        self.0.ask(|reply_to| Message::Write { bucket, key, value, reply_to }).await
    }
}
