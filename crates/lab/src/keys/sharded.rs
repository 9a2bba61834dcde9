//! The sharded design: an actor per bucket, and one actor that forwards requests to them.
//!
//! The forwarding actor looks up one bucket per request, or none if the request is for the same bucket as the previous
//! one. The bucket replies directly to the client.

use std::collections::HashMap;

use crate::actor::{Address, Mailbox, ReplyTo, spawn};
use crate::keys::{Client, Design, Value, bucket};

enum Message {
    Create { bucket: u32, reply_to: ReplyTo<()> },
    Forward { bucket: u32, message: bucket::Message },
}

async fn forwarder(mut mailbox: Mailbox<Message>) {
    let mut buckets: HashMap<u32, Address<bucket::Message>> = HashMap::new();
    let mut last: Option<(u32, Address<bucket::Message>)> = None;
    while let Some(message) = mailbox.recv().await {
        match message {
            Message::Create { bucket, reply_to } => {
                buckets.entry(bucket).or_insert_with(bucket::start);
                reply_to.send(());
            }
            Message::Forward { bucket, message } => {
                if last.as_ref().is_none_or(|(last, _)| *last != bucket) {
                    last = buckets.get(&bucket).map(|address| (bucket, address.clone()));
                }
                match &last {
                    Some((_, address)) => address.send(message),
                    None => message.refuse(),
                }
            }
        }
    }
}

/// The forwarding actor, which has the addresses of all buckets.
pub(super) struct Sharded(Address<Message>);

impl Design for Sharded {
    type Client = ShardedClient;

    async fn start(_clients: u32) -> Self {
        Self(spawn(forwarder))
    }

    fn connect(&self, _client: u32) -> ShardedClient {
        ShardedClient(self.0.clone())
    }
}

/// Client of the forwarding actor.
pub(super) struct ShardedClient(Address<Message>);

impl Client for ShardedClient {
    async fn create(&mut self, bucket: u32) {
        self.0.ask(|reply_to| Message::Create { bucket, reply_to }).await;
    }

    async fn read(&mut self, bucket: u32, key: u32) -> Option<Value> {
        let message = |reply_to| bucket::Message::Read { key, reply_to };
        self.0.ask(|reply_to| Message::Forward { bucket, message: message(reply_to) }).await
    }

    async fn write(&mut self, bucket: u32, key: u32, value: Value) -> bool {
        let message = |reply_to| bucket::Message::Write { key, value, reply_to };
        self.0.ask(|reply_to| Message::Forward { bucket, message: message(reply_to) }).await
    }
}
