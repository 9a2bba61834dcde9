//! `roost webhook`: adds, removes and lists the webhooks of a data directory, tests them, and sends changes again.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};
use webhooks::{Secret, Target, WEBHOOKS_MAX, Webhook, ping, system_tls};

use super::{WebhookRequest, check, file, name_width};
use crate::key::Directory;
use crate::output::{self, out};

/// Position of `replay` before the oldest kept change.
const OLDEST: &str = "oldest";

/// Add, remove, list and test webhooks, and send changes again.
///
/// A webhook sends every change to a URL, in signed requests: see docs/webhooks.md. The server needs --changes-max.
/// Works on a data directory, also while its server runs: a change takes effect before the command ends.
#[derive(Args)]
pub(crate) struct WebhookCommand {
    #[command(subcommand)]
    action: Action,
    #[command(flatten)]
    directory: Directory,
}

#[derive(Subcommand)]
enum Action {
    /// Add a webhook and print the secret of its signatures
    ///
    /// It begins with the next change, or, if there was a webhook with this name, where that one ended.
    Add(Box<Add>),
    /// Remove a webhook. Its position is kept for a webhook with the same name
    Remove {
        /// Name of the webhook
        name: String,
    },
    /// List webhooks with their state, lag, last delivery, last error and dead letters
    List,
    /// Send a signed ping from this process, and print the status of the response
    Test {
        /// Name of the webhook
        name: String,
    },
    /// Send changes again. Needs a running server
    Replay {
        /// Name of the webhook
        name: String,
        /// Position after which everything is sent again; `oldest` for all kept changes
        #[arg(required_unless_present = "dead_letters")]
        position: Option<String>,
        /// Send the dead letters again instead, and drop those that are no longer kept
        #[arg(long, conflicts_with = "position")]
        dead_letters: bool,
    },
    /// Forget the dead letters. Needs a running server
    Discard {
        /// Name of the webhook
        name: String,
    },
}

#[derive(Args)]
struct Add {
    /// Name of the webhook: 1 to 64 of a-z A-Z 0-9 _ . -
    name: String,
    /// URL that receives the changes
    #[arg(value_parser = Target::parse)]
    url: Target,
    /// Kinds of changes to send [default: all]
    #[arg(long = "kind", value_name = "KINDS", value_delimiter = ',', value_parser = kinds())]
    kinds: Vec<String>,
    /// Send ids only, without posts, stories and profiles
    #[arg(long)]
    ids_only: bool,
    /// Allow an address of this machine or of a private network, and http://
    #[arg(long)]
    allow_private: bool,
    /// Read the secret from standard input instead of generating one
    #[arg(long)]
    secret_stdin: bool,
}

fn kinds() -> impl TypedValueParser<Value = String> {
    PossibleValuesParser::new(api::webhooks::kind_names())
}

impl WebhookCommand {
    /// Runs the part of the command that needs no server. Returns the data directory, and the request to its server.
    ///
    /// # Errors
    /// If the command fails.
    pub(crate) async fn run(self) -> anyhow::Result<(PathBuf, Option<WebhookRequest>)> {
        let data = self.directory.path()?;
        let request = self.action.run(&data).await?;
        Ok((data, request))
    }
}

impl Action {
    async fn run(self, data: &Path) -> anyhow::Result<Option<WebhookRequest>> {
        Ok(Some(match self {
            Action::Add(add) => {
                add.run(data)?;
                WebhookRequest::Reload
            }
            Action::Remove { name } => {
                file::change(data, |webhooks| {
                    let before = webhooks.len();
                    webhooks.retain(|webhook| webhook.name != name);
                    anyhow::ensure!(webhooks.len() < before, "there is no webhook {name:?}");
                    Ok(())
                })?;
                WebhookRequest::Reload
            }
            Action::List => {
                WebhookRequest::List { stopped: file::load(data).map(|stored| stopped(&stored)) }
            }
            Action::Test { name } => {
                let webhooks = file::load(data)?;
                let webhook = webhooks.iter().find(|webhook| webhook.name == name);
                let webhook = webhook.with_context(|| format!("there is no webhook {name:?}"))?;
                let tls = tokio::task::spawn_blocking(system_tls).await?;
                out!("the receiver answered {}", ping(webhook, tls).await?);
                return Ok(None);
            }
            Action::Replay { name, position, dead_letters: _ } => {
                let action = match position {
                    Some(position) if position == OLDEST => webhooks::Action::SendOldest,
                    Some(position) => webhooks::Action::SendAfter(position),
                    None => webhooks::Action::SendDeadLetters,
                };
                WebhookRequest::Act { name, action }
            }
            Action::Discard { name } => {
                WebhookRequest::Act { name, action: webhooks::Action::DropDeadLetters }
            }
        }))
    }
}

impl Add {
    fn run(self, data: &Path) -> anyhow::Result<()> {
        let secret = if self.secret_stdin {
            let mut text = String::new();
            std::io::stdin().take(4_096).read_to_string(&mut text).context("no standard input")?;
            Secret::parse(text.trim())?
        } else {
            Secret::generate().context("the operating system gives no random bytes")?
        };
        let webhook = Webhook {
            name: self.name,
            url: self.url,
            secret: secret.clone(),
            kinds: Arc::from(self.kinds),
            ids_only: self.ids_only,
            allow_private: self.allow_private,
        };
        check(&webhook)?;
        file::change(data, |webhooks| {
            let name = &webhook.name;
            let is_new = webhooks.iter().all(|other| other.name != *name);
            anyhow::ensure!(is_new, "there is a webhook {name:?} already");
            anyhow::ensure!(
                webhooks.len() < WEBHOOKS_MAX,
                "there are already {WEBHOOKS_MAX} webhooks, the maximum"
            );
            webhooks.push(webhook);
            if self.secret_stdin { Ok(()) } else { output::secret(&secret.text()) }
        })
    }
}

/// Returns lines about the webhooks of a server that does not run.
fn stopped(webhooks: &[Webhook]) -> Vec<String> {
    let width = name_width(webhooks.iter().map(|webhook| &webhook.name));
    let mut lines = vec![format!("{:width$}  {:8}  URL", "NAME", "STATE")];
    for Webhook { name, url, .. } in webhooks {
        lines.push(format!("{name:width$}  {:8}  {url}", "stopped"));
    }
    lines
}
