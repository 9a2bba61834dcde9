//! The design with a task per distance: a request starts a task for every sample, and each task sends one message.

use std::sync::Arc;

use knn::Bits;
use tokio::sync::mpsc;

use crate::recognizer::{Design, Nearest, references, select};

/// Samples shared by all tasks.
pub(super) struct Tasks(Arc<[(u64, Bits)]>);

impl Tasks {
    pub(super) fn start() -> Self {
        Self(references().into())
    }
}

impl Design for Tasks {
    async fn nearest(&self, query: Bits) -> Nearest {
        let (sender, mut distances) = mpsc::unbounded_channel();
        for (id, bits) in self.0.iter().copied() {
            let sender = sender.clone();
            tokio::spawn(async move {
                // Sending cannot fail, because the receiver waits for all messages.
                let _sent = sender.send((query.distance(&bits), id));
            });
        }
        drop(sender);
        let mut all = Vec::with_capacity(self.0.len());
        while let Some(distance) = distances.recv().await {
            all.push(distance);
        }
        select(all)
    }
}
