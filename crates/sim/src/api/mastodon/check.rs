//! Checks before a population is generated: whether a server has the API and can be loaded. Also sends the requests of
//! the steps of loading.

use serde::de::DeserializeOwned;
use tokio::time::timeout;

use super::Mastodon;
use super::fields::Instance;
use crate::api::error::shown;
use crate::api::{LoadError, Needs, PATIENCE};
use crate::client::{Client, TOO_MANY, Target};

/// Route of the server's description of itself.
const INSTANCE: &str = "/api/v1/instance";

/// Connection for the steps before a run.
pub(super) struct Caller {
    pub(super) client: Client<Target>,
    pub(super) request: Vec<u8>,
}

impl Caller {
    pub(super) fn new(mastodon: &Mastodon) -> Caller {
        Caller { client: Client::new(mastodon.target()), request: Vec::new() }
    }

    /// Sends the request; returns the status and body of the response.
    ///
    /// # Errors
    /// If there is no response in time, or the server refuses with a rate limit.
    pub(super) async fn send(&mut self, what: &'static str) -> Result<(u16, Vec<u8>), LoadError> {
        let (status, body) = match timeout(PATIENCE, self.client.send(&self.request)).await {
            Ok(answer) => answer.map(|answer| (answer.status, answer.body.to_vec()))?,
            Err(_) => return Err(LoadError::Stalled { seconds: PATIENCE.as_secs() }),
        };
        if status == TOO_MANY {
            return Err(LoadError::Limited { what, limits: self.client.limits().to_owned() });
        }
        Ok((status, body))
    }

    /// Sends the request; returns the entity in the response.
    ///
    /// # Errors
    /// Those of [`Caller::send`]; or if the server refuses the request, or the response is not this entity.
    pub(super) async fn ask<T: DeserializeOwned>(
        &mut self,
        what: &'static str,
    ) -> Result<T, LoadError> {
        let (status, body) = self.send(what).await?;
        if !(200..300).contains(&status) {
            return Err(LoadError::Step { what, status, body: shown(&body) });
        }
        parse(what, &body)
    }
}

/// Parses the entity of a response.
pub(super) fn parse<T: DeserializeOwned>(what: &'static str, body: &[u8]) -> Result<T, LoadError> {
    serde_json::from_slice(body).map_err(|_| LoadError::Answer { what, body: shown(body) })
}

impl Mastodon {
    /// Checks that the server has the API, and satisfies `needs`.
    ///
    /// # Errors
    /// If the server lacks the API, or does not satisfy `needs`.
    pub(super) async fn check_instance(&self, needs: Needs) -> Result<(), LoadError> {
        let mut caller = Caller::new(self);
        self.requests.get(INSTANCE, &mut caller.request);
        let (status, body) = caller.send("read what the server says about itself").await?;
        let instance = serde_json::from_slice::<Instance>(&body).ok().filter(|_| status == 200);
        let Some(instance) = instance else {
            return Err(LoadError::NoMastodon { path: INSTANCE, status, body: shown(&body) });
        };
        if self.options.credentials.is_some() {
            return Ok(());
        }
        if !needs.no_users {
            return Err(LoadError::NoTokens);
        }
        match (instance.registrations, instance.approval_required) {
            (true, false) => Ok(()),
            (true, true) => {
                Err(LoadError::SignUpClosed { why: "an operator must approve every new account" })
            }
            (false, _) => Err(LoadError::SignUpClosed { why: "sign-up is closed" }),
        }
    }
}
