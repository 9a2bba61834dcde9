//! Checks whether a server can be used, before a population is generated for it.

use serde::Deserialize;
use serde::de::IgnoredAny;
use tokio::time::timeout;

use super::Roost;
use super::keys::BUCKET;
use crate::api::error::shown;
use crate::api::{LoadError, Needs, PATIENCE};
use crate::client::Client;

#[derive(Deserialize)]
struct Page {
    items: Vec<IgnoredAny>,
}

impl Roost {
    /// Checks that the server answers, accepts the key, and satisfies `needs`.
    ///
    /// # Errors
    /// If one of these does not hold.
    pub(super) async fn check_empty(&self, needs: Needs) -> Result<(), LoadError> {
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
