//! A bucket as an actor: one dictionary, and the value that was used last.

use std::collections::HashMap;

use crate::actor::{Address, Mailbox, ReplyTo, spawn};
use crate::keys::Value;

/// Message to a bucket.
pub(super) enum Message {
    /// Replies with a value.
    Read { key: u32, reply_to: ReplyTo<Option<Value>> },
    /// Stores a value, and replies with true.
    Write { key: u32, value: Value, reply_to: ReplyTo<bool> },
}

impl Message {
    /// Replies that the bucket does not exist.
    pub(super) fn refuse(self) {
        match self {
            Self::Read { reply_to, .. } => reply_to.send(None),
            Self::Write { reply_to, .. } => reply_to.send(false),
        }
    }
}

/// Starts an empty bucket.
pub(super) fn start() -> Address<Message> {
    spawn(bucket)
}

async fn bucket(mut mailbox: Mailbox<Message>) {
    let mut values = HashMap::new();
    let mut last: Option<(u32, Value)> = None;
    while let Some(message) = mailbox.recv().await {
        match message {
            Message::Read { key, reply_to } => {
                let cached = last.filter(|(last, _)| *last == key).map(|(_, value)| value);
                let found = cached.or_else(|| values.get(&key).copied());
                last = found.map(|value| (key, value)).or(last);
                reply_to.send(found);
            }
            Message::Write { key, value, reply_to } => {
                values.insert(key, value);
                last = Some((key, value));
                reply_to.send(true);
            }
        }
    }
}
