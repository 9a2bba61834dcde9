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

/// First pause after a failed probe; later pauses double up to [`PAUSE_MAX`]. They are short, because clients wait and
/// a probe costs the servers little.
const PAUSE: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_millis(200);

/// Sends until the log is dropped.
pub(crate) async fn run(client: Client, context: Context, subject: String, shared: Arc<Shared>) {
    let mut pause = PAUSE;
    loop {
        let next = shared.window.lock().next_to_send(Instant::now());
        match next {
            Some(Send::Plain(message)) => {
                // The message is now queued in the client. If sending fails or the message is lost, the group does not
                // come back and is sent again.
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
        // The stream existed when the log was opened, so only its leader is missing.
        PublishErrorKind::StreamNotFound => "the stream has no leader now".into(),
        _ => with_causes(error),
    }
}

/// Waits until there may be a message to send.
async fn wait(shared: &Shared) {
    let Some(stalls_at) = shared.window.lock().stalls_at() else {
        shared.changed.notified().await;
        return;
    };
    tokio::time::timeout_at(stalls_at.into(), shared.changed.notified()).await.ok();
    // Check even after a change: groups of other nodes cause changes all the time.
    if shared.window.lock().restart_if_stalled(Instant::now()) {
        shared.report("no group has come back for a second: all are sent again");
    }
}
