//! The task that sends the groups of the window to the stream.

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_nats::Client;
use async_nats::jetstream::Context;

use crate::connect::with_causes;
use crate::shared::Shared;
use crate::window::Send;

/// Pause after a probe that failed; doubled up to [`PAUSE_MAX`].
const PAUSE: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// Sends until the log is dropped.
pub(crate) async fn run(client: Client, context: Context, subject: String, shared: Arc<Shared>) {
    let mut pause = PAUSE;
    loop {
        let next = shared.window.lock().next_to_send(Instant::now());
        match next {
            Some(Send::Plain(message)) => {
                // It is queued in the client. If that fails or it is lost, no group comes back.
                if let Err(error) = client.publish(subject.clone(), message).await {
                    shared.report(&with_causes(&error));
                }
            }
            Some(Send::Probe(message)) => {
                let stored = match context.publish(subject.clone(), message).await {
                    Ok(stored) => stored.await,
                    Err(error) => Err(error),
                };
                match stored {
                    Ok(_) => {
                        pause = PAUSE;
                        shared.window.lock().probe_stored();
                    }
                    Err(error) => {
                        shared.report(&format!("a group is not stored: {}", with_causes(&error)));
                        tokio::time::sleep(pause).await;
                        pause = (pause * 2).min(PAUSE_MAX);
                        shared.window.lock().restart(Instant::now());
                    }
                }
            }
            None => wait(&shared).await,
        }
    }
}

/// Waits until there may be something to send.
async fn wait(shared: &Shared) {
    let Some(stalls_at) = shared.window.lock().stalls_at() else {
        shared.changed.notified().await;
        return;
    };
    let changed = tokio::time::timeout_at(stalls_at.into(), shared.changed.notified()).await;
    let mut window = shared.window.lock();
    let now = Instant::now();
    if changed.is_err() && window.stalls_at().is_some_and(|at| at <= now) {
        drop(window);
        shared.report("no group has come back for a second: all are sent again");
        window = shared.window.lock();
        window.restart(now);
    }
}
