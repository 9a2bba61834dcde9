//! Actors: a task with a mailbox, and nothing else. The cost of a mailbox is a part of what the experiments measure.
//!
//! An actor handles one message at a time, in the order of arrival, and is the only one who touches its state. It ends
//! when the last address of it is dropped.
//!
//! Mailboxes have no bound, as in Erlang: actors that send to each other could otherwise wait for each other for ever.
//! What is in them is bounded by the parameters of the trial: a client has one request under way, and the number of
//! messages that a request causes is known.

use tokio::sync::{mpsc, oneshot};

/// Where an actor receives its messages.
pub(crate) type Mailbox<M> = mpsc::UnboundedReceiver<M>;

/// Where the actor that receives a message sends its reply.
pub(crate) struct ReplyTo<R>(oneshot::Sender<R>);

impl<R> ReplyTo<R> {
    /// Sends the reply. A client that has gone does not get it.
    pub(crate) fn send(self, reply: R) {
        let _gone = self.0.send(reply);
    }
}

/// Where an actor can be reached.
pub(crate) struct Address<M>(mpsc::UnboundedSender<M>);

impl<M> Clone for Address<M> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<M> Address<M> {
    /// Sends a message.
    ///
    /// # Panics
    /// If the actor has panicked.
    pub(crate) fn send(&self, message: M) {
        let sent = self.0.send(message);
        assert!(sent.is_ok(), "an actor lives as long as it has an address");
    }

    /// Sends a message that says where to reply, and waits for the reply.
    ///
    /// # Panics
    /// If the actor, or one that it forwarded the message to, has panicked.
    pub(crate) async fn ask<R>(&self, message: impl FnOnce(ReplyTo<R>) -> M) -> R {
        let (reply_to, reply) = oneshot::channel();
        self.send(message(ReplyTo(reply_to)));
        match reply.await {
            Ok(reply) => reply,
            Err(_) => unreachable!("every message that asks for a reply gets one"),
        }
    }
}

/// Starts an actor on the runtime of the caller.
pub(crate) fn spawn<M, F>(body: impl FnOnce(Mailbox<M>) -> F) -> Address<M>
where
    F: Future<Output = ()> + Send + 'static,
{
    let (address, mailbox) = mpsc::unbounded_channel();
    tokio::spawn(body(mailbox));
    Address(address)
}
