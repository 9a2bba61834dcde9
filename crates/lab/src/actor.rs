//! Actors: tasks with a mailbox, implemented as simply as possible. The experiments also measure the cost of the
//! mailbox.
//!
//! An actor handles one message at a time, in the order of arrival. Only the actor accesses its state. It ends when its
//! last address is dropped.
//!
//! Mailboxes are unbounded, as in Erlang, because actors that send to each other could otherwise deadlock. The
//! parameters of a trial bound their content: a client has one request in progress, and a request causes a known number
//! of messages.

use tokio::sync::{mpsc, oneshot};

/// Receiver of an actor's messages.
pub(crate) type Mailbox<M> = mpsc::UnboundedReceiver<M>;

/// Sender of the reply to a message.
pub(crate) struct ReplyTo<R>(oneshot::Sender<R>);

impl<R> ReplyTo<R> {
    /// Sends the reply. If the client has ended, the reply is dropped.
    pub(crate) fn send(self, reply: R) {
        let _gone = self.0.send(reply);
    }
}

/// Address of an actor.
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

    /// Sends a message with an address for the reply, and waits for the reply.
    ///
    /// # Panics
    /// If the actor, or one to which it forwarded the message, has panicked.
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
