//! The worker design: an actor per client, called a worker. Each worker has the addresses of all buckets.
//!
//! No actor gets the requests of all clients, but creating a bucket costs more: an actor called the registrar sends the
//! bucket's address to every worker, and the client waits until all workers have it.

use std::collections::HashMap;

use crate::actor::{Address, Mailbox, ReplyTo, spawn};
use crate::keys::{Client, Design, Value, bucket};

enum ToWorker {
    Create {
        bucket: u32,
        reply_to: ReplyTo<()>,
    },
    Forward {
        bucket: u32,
        message: bucket::Message,
    },
    /// Address of a new bucket, sent by the registrar.
    Replicate {
        bucket: u32,
        address: Address<bucket::Message>,
        reply_to: ReplyTo<()>,
    },
}

enum ToRegistrar {
    /// Adds a worker. From now on, it gets the addresses of new buckets.
    Join(Address<ToWorker>),
    Create {
        bucket: u32,
        reply_to: ReplyTo<()>,
    },
}

async fn worker(mut mailbox: Mailbox<ToWorker>, registrar: Address<ToRegistrar>) {
    let mut buckets: HashMap<u32, Address<bucket::Message>> = HashMap::new();
    while let Some(message) = mailbox.recv().await {
        match message {
            // The registrar replies directly to the client: a worker that waited for the registrar could not receive
            // the address from it.
            ToWorker::Create { bucket, reply_to } => {
                registrar.send(ToRegistrar::Create { bucket, reply_to });
            }
            ToWorker::Forward { bucket, message } => match buckets.get(&bucket) {
                Some(address) => address.send(message),
                None => message.refuse(),
            },
            ToWorker::Replicate { bucket, address, reply_to } => {
                buckets.insert(bucket, address);
                reply_to.send(());
            }
        }
    }
}

async fn registrar(mut mailbox: Mailbox<ToRegistrar>) {
    let (mut buckets, mut workers) = (HashMap::new(), Vec::new());
    while let Some(message) = mailbox.recv().await {
        match message {
            ToRegistrar::Join(worker) => workers.push(worker),
            ToRegistrar::Create { bucket, reply_to } => {
                let address = buckets.entry(bucket).or_insert_with(bucket::start).clone();
                for worker in &workers {
                    let address = address.clone();
                    let message = |reply_to| ToWorker::Replicate { bucket, address, reply_to };
                    worker.ask(message).await;
                }
                reply_to.send(());
            }
        }
    }
}

/// The workers, one for each client.
pub(super) struct Worker(Vec<Address<ToWorker>>);

impl Design for Worker {
    type Client = WorkerClient;

    async fn start(clients: u32) -> Self {
        let registrar = spawn(registrar);
        let mut workers = Vec::new();
        for _ in 0..clients {
            let worker = spawn(|mailbox| worker(mailbox, registrar.clone()));
            registrar.send(ToRegistrar::Join(worker.clone()));
            workers.push(worker);
        }
        Self(workers)
    }

    fn connect(&self, client: u32) -> WorkerClient {
        match self.0.get(client as usize) {
            Some(worker) => WorkerClient(worker.clone()),
            None => unreachable!("there is a worker for each client"),
        }
    }
}

/// Client of its own worker.
pub(super) struct WorkerClient(Address<ToWorker>);

impl Client for WorkerClient {
    async fn create(&mut self, bucket: u32) {
        self.0.ask(|reply_to| ToWorker::Create { bucket, reply_to }).await;
    }

    async fn read(&mut self, bucket: u32, key: u32) -> Option<Value> {
        let message = |reply_to| bucket::Message::Read { key, reply_to };
        self.0.ask(|reply_to| ToWorker::Forward { bucket, message: message(reply_to) }).await
    }

    async fn write(&mut self, bucket: u32, key: u32, value: Value) -> bool {
        let message = |reply_to| bucket::Message::Write { key, value, reply_to };
        self.0.ask(|reply_to| ToWorker::Forward { bucket, message: message(reply_to) }).await
    }
}
