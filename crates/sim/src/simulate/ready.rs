//! A server is made ready: everybody is loaded into it, and it is given time to settle.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio::time::timeout;

use super::SimError;
use crate::api::{Api, Roost};
use crate::cast::Cast;
use crate::client::Client;
use crate::run::cancelled;

/// A server that uses less than this of a core for so many seconds has settled.
const QUIET_CORES: f64 = 0.1;
const QUIET_SECONDS: u32 = 2;
/// How long it is waited for.
const SETTLED_AFTER_MAX: Duration = Duration::from_secs(30);

/// Loads everybody and tells how many seconds it took.
pub(super) async fn load(
    api: &Arc<Roost>,
    cast: &Arc<Cast>,
    cancel: &mut watch::Receiver<bool>,
) -> Result<f64, SimError> {
    let start = Instant::now();
    let mut load = Arc::clone(api).load(Arc::clone(cast));
    tokio::select! {
        loaded = &mut load => match loaded {
            Ok(loaded) => loaded?,
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        },
        () = cancelled(cancel) => {
            load.abort();
            return Err(SimError::Interrupted);
        }
    }
    Ok(start.elapsed().as_secs_f64())
}

/// Waits until the server has done what it still does with what was loaded, such as sorting it into
/// place, or for a while: people do not come the moment after. A server that does not tell what it
/// uses is not waited for.
pub(super) async fn settle(target: SocketAddr, api: &dyn Api) {
    let mut client = Client::new(target);
    let mut quiet = 0;
    let mut before = used(&mut client, api).await;
    let start = Instant::now();
    while start.elapsed() < SETTLED_AFTER_MAX && quiet < QUIET_SECONDS {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let now = used(&mut client, api).await;
        let Some((before_s, now_s)) = before.zip(now) else { return };
        quiet = if now_s - before_s < QUIET_CORES { quiet + 1 } else { 0 };
        before = now;
    }
}

/// Processor time that the server has used, in seconds.
async fn used(client: &mut Client<SocketAddr>, api: &dyn Api) -> Option<f64> {
    let mut request = Vec::new();
    api.write_used(&mut request);
    let answer = timeout(Duration::from_secs(1), client.send(&request)).await.ok()?.ok()?;
    Some(api.used(answer.body)?.processor_s)
}
