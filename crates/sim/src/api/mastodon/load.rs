//! Loading of follows: through roost's own API if the server has it, otherwise with one request for each follow.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use serde::de::IgnoredAny;
use tokio::task::JoinSet;

use super::Mastodon;
use super::check::Caller;
use crate::Population;
use crate::api::LoadError;
use crate::api::steps::{all, with_progress};
use crate::scenario::{Feed, Scenario};

/// Number of connections that send follows.
const CONNECTIONS: u32 = 16;

/// Loads the follows of the scenario, whose users have signed in.
///
/// # Errors
/// If the server refuses a follow.
pub(super) async fn load(
    mastodon: Arc<Mastodon>,
    scenario: Arc<Scenario>,
) -> Result<(), LoadError> {
    if mastodon.options.own_api
        && let Some(ids) = mastodon.accounts().ids()
    {
        return Arc::new(mastodon.own.loading(scenario, Some(ids))).follow().await;
    }
    let Some(Feed { follows, .. }) = &scenario.feed else { return Ok(()) };
    let (next, done) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU64::new(0)));
    let mut parts = JoinSet::new();
    for _ in 0..CONNECTIONS {
        let (mastodon, follows) = (Arc::clone(&mastodon), Arc::clone(follows));
        let (next, done) = (Arc::clone(&next), Arc::clone(&done));
        parts.spawn(async move { follow(&mastodon, &follows, &next, &done).await });
    }
    with_progress("follows", follows.follows(), &done, all(parts)).await
}

/// Creates the follows of one user after the other, as long as there are users.
async fn follow(
    mastodon: &Mastodon,
    follows: &Population,
    next: &AtomicU32,
    done: &AtomicU64,
) -> Result<(), LoadError> {
    let mut caller = Caller::new(mastodon);
    loop {
        let user = next.fetch_add(1, Ordering::Relaxed);
        if user >= follows.people() {
            return Ok(());
        }
        let token = &mastodon.account(user).token;
        for other in follows.following(user) {
            let path = format!("/api/v1/accounts/{}/follow", mastodon.account(*other).id);
            mastodon.requests.post_as(token, &path, b"{}", &mut caller.request);
            caller.ask::<IgnoredAny>("follow a user").await?;
            done.fetch_add(1, Ordering::Relaxed);
        }
    }
}
