//! Webhooks: `roost webhook`, and the webhooks that a running server sends.
//!
//! They are stored in `webhooks.json` of the data directory. A server reads the file at its start, at SIGHUP, and when
//! `roost webhook` asks for it. An unreadable file changes nothing in a running server. Each server that has the file
//! sends, so in a cluster one node has it.

mod command;
mod file;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use api::webhooks::{ChangeReader, is_position};
use edge::BlockingReads;
use jiff::Timestamp;
use node::Node;
use webhooks::{
    Action, CHANGES_MAX, Metrics, Options, Source as _, Status, Wanted, Webhook, Webhooks,
    system_tls,
};

pub(crate) use command::WebhookCommand;

/// Folder of the positions, in the data directory.
const FOLDER: &str = "webhooks";

/// Request of a command to the server that runs on its data directory.
pub(crate) enum WebhookRequest {
    /// Reload the stored webhooks, if there is a server.
    Reload,
    /// List the webhooks.
    List {
        /// Lines to print if there is no server. A server lists its webhooks also if the file is wrong.
        stopped: anyhow::Result<Vec<String>>,
    },
    /// Request an action of a webhook.
    Act { name: String, action: Action },
}

/// Webhooks of a running server.
pub(crate) struct ServerWebhooks {
    data: PathBuf,
    reader: ChangeReader,
    webhooks: Webhooks<ChangeReader>,
    has_feed: bool,
}

impl ServerWebhooks {
    /// Creates the sender of a server, without webhooks: see [`ServerWebhooks::load`]. `has_feed` says whether the node
    /// has a change feed.
    pub(crate) async fn new(
        data: &Path,
        node: Node,
        reads: BlockingReads,
        has_feed: bool,
    ) -> anyhow::Result<Self> {
        let reader = ChangeReader::new(node, reads);
        let tls = tokio::task::spawn_blocking(system_tls).await?;
        let webhooks = Webhooks::new(data.join(FOLDER), reader.clone(), tls, Options::default());
        Ok(Self { data: data.to_owned(), reader, webhooks, has_feed })
    }

    /// Returns the metrics of the webhooks.
    pub(crate) fn metrics(&self) -> Metrics {
        self.webhooks.metrics()
    }

    /// Reads the stored webhooks, and sends them from now on.
    ///
    /// # Errors
    /// The file cannot be read or is wrong, or there is no change feed, and nothing changes; or a position cannot be
    /// stored.
    pub(crate) async fn load(self: &Arc<Self>) -> anyhow::Result<()> {
        let this = Arc::clone(self);
        // A task of its own, because a load must not be abandoned with the request for it.
        let loading = tokio::spawn(async move { this.webhooks.load(this.read()).await });
        loading.await?.map_err(|error| anyhow::anyhow!("{error}"))
    }

    async fn read(&self) -> anyhow::Result<Vec<Webhook>> {
        let data = self.data.clone();
        let stored = tokio::task::spawn_blocking(move || file::load(&data)).await??;
        anyhow::ensure!(
            self.has_feed || stored.is_empty(),
            "webhooks need the change feed: start the server with --changes-max"
        );
        let names: Vec<&str> = stored.iter().map(|webhook| webhook.name.as_str()).collect();
        if !names.is_empty() {
            tracing::info!(names = names.join(","), "loaded the webhooks");
        }
        Ok(stored)
    }

    /// Reads the stored webhooks, and logs an error.
    pub(crate) async fn load_or_log(self: &Arc<Self>) {
        if let Err(error) = self.load().await {
            tracing::error!("webhooks: {error:#}");
        }
    }

    /// Returns lines about the state of each webhook.
    pub(crate) fn list(&self) -> Vec<String> {
        let all = self.webhooks.status();
        let width = name_width(all.iter().map(|(webhook, _)| &webhook.name));
        let mut lines = vec![format!(
            "{:width$}  {:8}  {:>8}  {:>6}  {:20}  URL",
            "NAME", "STATE", "LAG", "DEAD", "DELIVERED"
        )];
        all.iter().for_each(|(webhook, status)| lines.extend(about(webhook, status, width)));
        let error = self.webhooks.load_error();
        lines.extend(error.map(|error| format!("the last load of the webhooks failed: {error}")));
        lines
    }

    /// Executes an action of a webhook, and stores its effect.
    ///
    /// # Errors
    /// If there is no such webhook, the changes are not kept, or they would be skipped.
    pub(crate) async fn request(&self, name: &str, action: Action) -> anyhow::Result<()> {
        if let Action::SendAfter(position) = &action {
            anyhow::ensure!(is_position(position), "{position:?} is not a position");
            let (kinds, ids_only) = (Arc::new([]), true);
            let wanted = Wanted { changes_max: 1, bytes: 1, kinds, ids_only };
            self.reader.read(Some(position), &wanted).await?;
        }
        let acted = self.webhooks.act(name, action).await;
        acted.map_err(|error| anyhow::anyhow!("webhook {name:?}: {error}"))
    }

    /// Stops sending, and stores the positions.
    pub(crate) async fn stop(&self) {
        self.webhooks.stop().await;
    }
}

/// Width of the column of names.
fn name_width<'a>(names: impl Iterator<Item = &'a String>) -> usize {
    names.map(String::len).max().unwrap_or(0).max("NAME".len())
}

/// Returns lines about a webhook: its state, its error and its dead letters.
fn about(webhook: &Webhook, status: &Status, width: usize) -> Vec<String> {
    let state = match (&status.error, status.pending_since_ms) {
        (Some(_), _) => "failing",
        (None, Some(_)) => "sending",
        (None, None) => "idle",
    };
    let mut lines = vec![format!(
        "{:width$}  {state:8}  {:>7}s  {:>6}  {:20}  {}",
        webhook.name,
        status.lag_secs(),
        status.dead.len(),
        status.delivered_ms.map(time).unwrap_or_default(),
        webhook.url,
    )];
    if let Some((at, error)) = &status.error {
        lines.push(format!("  error at {}: {error}", time(*at)));
    }
    for letter in &status.dead {
        let to = letter.to.as_ref().map(|to| format!(" up to {to}")).unwrap_or_default();
        let what = if letter.is_gap { "missing after" } else { "dead letter" };
        let (position, at) = (&letter.position, time(letter.at_ms));
        lines.push(format!("  {what} {position}{to}, at {at}: {}", letter.error));
    }
    lines
}

/// Formats a time in milliseconds since 1970 in whole seconds.
fn time(unix_ms: u64) -> String {
    let secs = i64::try_from(unix_ms / 1_000).ok();
    let time = secs.and_then(|secs| Timestamp::from_second(secs).ok());
    time.map(|time| time.to_string()).unwrap_or_default()
}

/// Checks a webhook.
///
/// # Errors
/// If a part of it is wrong.
fn check(webhook: &Webhook) -> anyhow::Result<()> {
    let name = &webhook.name;
    anyhow::ensure!(
        webhooks::is_name(name),
        "the name of a webhook is 1 to 64 of a-z A-Z 0-9 _ . -"
    );
    anyhow::ensure!(
        webhook.url.is_https() || webhook.allow_private,
        "the URL of webhook {name} must begin with https://; http:// needs --allow-private"
    );
    for kind in &*webhook.kinds {
        let is_known = api::webhooks::kind_names().any(|known| known == kind);
        is_known.then_some(()).with_context(|| format!("there is no kind of change {kind:?}"))?;
    }
    Ok(())
}

const _: () = assert!(CHANGES_MAX <= feed::limits::PAGE_MAX);
