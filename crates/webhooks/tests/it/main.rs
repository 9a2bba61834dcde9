//! Webhooks with receivers on real sockets: delivery, failures, changes that are given up, and restarts.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "what fails here is the test")]

mod delivery;
mod receiver;
mod source;
mod tls;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio_rustls::rustls::RootCertStore;
use webhooks::{Options, Secret, Status, Target, Webhook, Webhooks, tls_with};

use source::Memory;

/// Maximum duration of every wait. It is reached only if something hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// Short pauses, and limits that are reached only in tests of them.
fn options() -> Options {
    Options {
        pause_min: Duration::from_millis(1),
        pause_max: Duration::from_millis(4),
        connect_timeout: PATIENCE,
        response_timeout: PATIENCE,
        pace: Duration::ZERO,
        idle_max: PATIENCE,
        ..Options::default()
    }
}

fn webhook(url: &str) -> Webhook {
    Webhook {
        name: "search".to_owned(),
        url: Target::parse(url).unwrap(),
        secret: Secret::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap(),
        kinds: Arc::new([]),
        ids_only: false,
        allow_private: true,
    }
}

fn sender(folder: &Path, source: &Memory, options: Options) -> Webhooks<Memory> {
    let tls = tls_with(RootCertStore::empty());
    Webhooks::new(folder.join("webhooks"), source.clone(), tls, options)
}

async fn set(webhooks: &Webhooks<Memory>, all: Vec<Webhook>) {
    webhooks.load(async { Ok::<_, String>(all) }).await.unwrap();
}

fn status(webhooks: &Webhooks<Memory>) -> Status {
    webhooks.status().remove(0).1
}

/// Waits until the state of the only webhook satisfies a condition.
async fn until(webhooks: &Webhooks<Memory>, is_reached: impl Fn(&Status) -> bool) {
    let reached = async {
        while !is_reached(&status(webhooks)) {
            tokio::task::yield_now().await;
        }
    };
    let waited = tokio::time::timeout(PATIENCE, reached).await;
    assert!(waited.is_ok(), "{:?}", status(webhooks));
}
