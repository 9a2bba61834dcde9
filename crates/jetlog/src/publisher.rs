//! Task that sends the groups of the window to the stream.

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_nats::Client;
use async_nats::jetstream::Context;
use async_nats::jetstream::context::{PublishError, PublishErrorKind};
use commitlog::Position;

use crate::connect::with_causes;
use crate::shared::Shared;
use crate::window::Send;

/// Pause after a failed probe; doubled up to [`PAUSE_MAX`]. A probe costs the servers little, and clients wait.
const PAUSE: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_millis(200);

/// Sends until the log is dropped.
pub(crate) async fn run(client: Client, context: Context, subject: String, shared: Arc<Shared>) {
    let mut pause = PAUSE;
    loop {
        let next = shared.window.lock().next_to_send(Instant::now());
        match next {
            Some(Send::Plain(message)) => {
                // The message is queued in the client. If that fails or it is lost, no group comes back.
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
                    Ok(stored) => {
                        pause = PAUSE;
                        shared.window.lock().probe_stored(Position(stored.sequence));
                    }
                    Err(error) => {
                        shared.report(&format!("cannot store a group: {}", reason(&error)));
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

fn reason(error: &PublishError) -> String {
    match error.kind() {
        // No subscriber on the subject: the stream existed when the log was opened.
        PublishErrorKind::StreamNotFound => "the stream has no leader now".into(),
        _ => with_causes(error),
    }
}

/// Waits until there may be something to send.
async fn wait(shared: &Shared) {
    let Some(stalls_at) = shared.window.lock().stalls_at() else {
        shared.changed.notified().await;
        return;
    };
    tokio::time::timeout_at(stalls_at.into(), shared.changed.notified()).await.ok();
    // Checked even after a change: groups of other nodes cause changes all the time.
    if shared.window.lock().restart_if_stalled(Instant::now()) {
        shared.report("no group has come back for a second: all are sent again");
    }
}
