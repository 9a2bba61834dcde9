//! Checks whether a server can be used, before a population is generated for it.

use std::time::Duration;

use serde::Deserialize;
use serde::de::IgnoredAny;
use tokio::time::timeout;

use super::Roost;
use super::keys::BUCKET;
use super::load::LoadError;
use crate::client::Client;

/// Longest time for a response of the server.
const PATIENCE: Duration = Duration::from_secs(10);

/// Data that must not exist on the server yet.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Needs {
    /// There must be no users.
    pub(crate) no_users: bool,
    /// The bucket to be filled must not exist.
    pub(crate) no_bucket: bool,
}

#[derive(Deserialize)]
struct Page {
    items: Vec<IgnoredAny>,
}

impl Roost {
    /// Checks that the server answers, accepts the key, and satisfies `needs`.
    ///
    /// # Errors
    /// If one of these does not hold.
    pub(crate) async fn check(&self, needs: Needs) -> Result<(), LoadError> {
        let (status, body) = self.ask("/v1/users?limit=1").await?;
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
        if needs.no_bucket && self.ask(&format!("/v1/buckets/{BUCKET}")).await?.0 == 200 {
            return Err(LoadError::BucketExists(BUCKET));
        }
        Ok(())
    }

    async fn ask(&self, path: &str) -> Result<(u16, Vec<u8>), LoadError> {
        let (mut client, mut request) = (Client::new(self.target.clone()), Vec::new());
        self.requests.get(path, &mut request);
        match timeout(PATIENCE, client.send(&request)).await {
            Ok(answer) => answer.map(|answer| (answer.status, answer.body.to_vec())),
            Err(_) => return Err(LoadError::Stalled { seconds: PATIENCE.as_secs() }),
        }
        .map_err(LoadError::Client)
    }
}

fn shown(body: &[u8]) -> String {
    String::from_utf8_lossy(body).chars().take(200).collect()
}
