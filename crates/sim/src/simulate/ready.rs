//! Prepares a server: loads the scenario and waits until the server is idle.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::SimError;
use crate::api::{Api, ask_used};
use crate::client::{Client, Target};
use crate::joined::joined;
use crate::run::cancelled;
use crate::scenario::Scenario;

/// Limits for an idle server: it uses less than this share of a core for this number of seconds.
const QUIET_CORES: f64 = 0.1;
const QUIET_SECONDS: u32 = 2;
/// The maximum wait.
const IDLE_AFTER_MAX: Duration = Duration::from_secs(30);

/// Loads the scenario and returns the duration in seconds.
pub(super) async fn load(
    api: &Arc<dyn Api>,
    scenario: &Arc<Scenario>,
    cancel: &mut watch::Receiver<bool>,
) -> Result<f64, SimError> {
    let start = Instant::now();
    done(Arc::clone(api).load(Arc::clone(scenario)), cancel).await?.map_err(SimError::Load)?;
    Ok(start.elapsed().as_secs_f64())
}

/// Waits for a step, and aborts it when `cancel` turns true.
pub(super) async fn done<T>(
    mut step: JoinHandle<T>,
    cancel: &mut watch::Receiver<bool>,
) -> Result<T, SimError> {
    tokio::select! {
        outcome = &mut step => Ok(joined(outcome)),
        () = cancelled(cancel) => {
            step.abort();
            Err(SimError::Interrupted)
        }
    }
}

/// Waits until the server has finished background work, such as compaction, but at most for a bounded time. Returns at
/// once if the server does not report its resource usage.
pub(super) async fn wait_until_idle(target: &Target, api: &dyn Api) {
    let mut client = Client::new(target.clone());
    let mut quiet = 0;
    let mut before = ask_used(api, &mut client).await;
    let start = Instant::now();
    while start.elapsed() < IDLE_AFTER_MAX && quiet < QUIET_SECONDS {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let now = ask_used(api, &mut client).await;
        let Some((from, to)) = before.zip(now) else { return };
        quiet = if to.processor_s - from.processor_s < QUIET_CORES { quiet + 1 } else { 0 };
        before = now;
    }
}
