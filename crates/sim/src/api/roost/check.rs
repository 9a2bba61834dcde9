//! Checks whether a server can be used, before a population is generated.

use std::time::Duration;

use serde::Deserialize;
use serde::de::IgnoredAny;
use tokio::time::{sleep, timeout};

use super::Roost;
use super::keys::BUCKET;
use crate::api::error::shown;
use crate::api::{LoadError, Needs, PATIENCE};
use crate::client::{Client, Target};

/// Pause between two checks of a node's position.
const CATCH_UP: Duration = Duration::from_millis(20);

/// A node of a cluster.
#[derive(Deserialize)]
struct Node {
    position: u64,
}

#[derive(Deserialize)]
struct Page {
    items: Vec<IgnoredAny>,
}

impl Roost {
    /// Checks that the server answers, accepts the key, and satisfies `needs`.
    ///
    /// # Errors
    /// If the server does not answer, refuses the key, or does not satisfy `needs`.
    pub(super) async fn check_empty(&self, needs: Needs) -> Result<(), LoadError> {
        let (status, body) = self.ask(&self.target, "/v1/users?limit=1").await?;
        if matches!(status, 401 | 403) {
            return Err(LoadError::Unauthorized { status });
        }
        let refused = || LoadError::Refused { status, body: shown(&body) };
        if needs.no_users {
            let page = serde_json::from_slice::<Page>(&body).ok().filter(|_| status == 200);
            if !page.ok_or_else(refused)?.items.is_empty() {
                return Err(LoadError::NotEmpty);
            }
        }
        if needs.no_bucket
            && self.ask(&self.target, &format!("/v1/buckets/{BUCKET}")).await?.0 == 200
        {
            return Err(LoadError::BucketExists(BUCKET));
        }
        Ok(())
    }

    /// Waits until every node of a cluster has applied all changes that any node has applied so far.
    ///
    /// # Errors
    /// If a node does not report its position, or does not reach the highest one within [`PATIENCE`].
    pub(super) async fn wait_for_all_nodes(&self) -> Result<(), LoadError> {
        if !self.target.is_cluster() {
            return Ok(());
        }
        let mut last = 0;
        for node in self.target.nodes() {
            last = self.position(&node).await?.max(last);
        }
        let arrived = async {
            for node in self.target.nodes() {
                while self.position(&node).await? < last {
                    sleep(CATCH_UP).await;
                }
            }
            Ok(())
        };
        let stalled = |_| LoadError::Stalled { seconds: PATIENCE.as_secs() };
        timeout(PATIENCE, arrived).await.map_err(stalled)?
    }

    /// Position up to which a node has applied all changes.
    async fn position(&self, node: &Target) -> Result<u64, LoadError> {
        let (status, body) = self.ask(node, "/v1/cluster").await?;
        let node = serde_json::from_slice::<Node>(&body).ok().filter(|_| status == 200);
        node.map(|node| node.position).ok_or_else(|| LoadError::NoCluster(shown(&body)))
    }

    async fn ask(&self, target: &Target, path: &str) -> Result<(u16, Vec<u8>), LoadError> {
        let (mut client, mut request) = (Client::new(target.clone()), Vec::new());
        self.requests.get(path, &mut request);
        match timeout(PATIENCE, client.send(&request)).await {
            Ok(answer) => answer.map(|answer| (answer.status, answer.body.to_vec())),
            Err(_) => return Err(LoadError::Stalled { seconds: PATIENCE.as_secs() }),
        }
        .map_err(LoadError::Client)
    }
}
