//! The Mastodon client API, against controls and targets: see `bench apps --help`.
//!
//! Many users act, so that none reaches the limits of one user: the measured server has the default settings.

mod home;
mod log_ins;
mod posts;
mod search;
mod size;
mod streams;
mod token;

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use sim::client::Requests;
use tokio::process::Command;

use crate::Plan;
use crate::report::Report;
use crate::rig::Server;

/// Measure the Mastodon client API.
#[derive(Args)]
pub(crate) struct Apps {
    /// Parts to measure [default: all]
    #[arg(value_enum)]
    parts: Vec<Part>,
    /// Interleaved runs of each measurement
    #[arg(long, default_value_t = 5)]
    pub(crate) runs: usize,
    /// Length of a run of a load, in seconds
    #[arg(long, default_value_t = 4)]
    pub(crate) seconds: u64,
    /// The roost binary to measure [default: the one next to this program]
    #[arg(long, value_name = "FILE")]
    pub(crate) roost: Option<PathBuf>,
    /// Directory for the raw data and the summary
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Home timelines of 20 full entities over 64 connections, compared with a constant response of the same size
    Home,
    /// Cost of checking a token, measured inside the process
    Token,
    /// Home timelines at a fixed rate while people log in
    LogIns,
    /// Posts to 100 active followers for each durability policy, through this API and through roost's own
    Posts,
    /// Delivery to streams of followers at 5,000 posts per second
    Streams,
    /// Search for accounts and hashtags among a million users
    Search,
    /// Memory and start time of a server with 100,000 accounts, 12 million follows, 1 million posts and 3 million
    /// reactions
    Size,
}

impl Apps {
    pub(crate) fn measure(&self, plan: &Plan, report: &mut Report) -> anyhow::Result<()> {
        let wanted = |part| self.parts.is_empty() || self.parts.contains(&part);
        if wanted(Part::Token) {
            token::measure(plan, report)?;
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            if wanted(Part::Home) {
                home::measure(plan, report).await?;
            }
            if wanted(Part::LogIns) {
                log_ins::measure(plan, report).await?;
            }
            if wanted(Part::Posts) {
                posts::measure(plan, report).await?;
            }
            if wanted(Part::Streams) {
                streams::measure(plan, report).await?;
            }
            if wanted(Part::Search) {
                search::measure(plan, report).await?;
            }
            if wanted(Part::Size) {
                size::measure(plan, report).await?;
            }
            Ok(())
        })
    }
}

/// A server with accounts.
struct World {
    server: Server,
    /// Tokens of the users, in the order of their ids.
    tokens: Vec<String>,
}

impl World {
    /// Starts a server in `data` with this many accounts, which are its first users.
    async fn new(
        plan: &Plan,
        data: &Path,
        settings: &[&str],
        accounts: u32,
    ) -> anyhow::Result<Self> {
        let server = Server::roost(&plan.roost, data, settings).await?;
        let tokens = test_tokens(&plan.roost, data, accounts).await?;
        Ok(Self { server, tokens })
    }

    /// Writer of requests with the token of a user.
    fn requests(&self, user: usize) -> anyhow::Result<Requests> {
        let token = self.tokens.get(user).context("the user has no token")?;
        Ok(Requests::new(&self.server.address.to_string(), Some(token)))
    }

    /// GET request of a user as bytes.
    fn get(&self, user: usize, path: &str) -> anyhow::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.requests(user)?.get(path, &mut bytes);
        Ok(bytes)
    }

    /// POST request of a user as bytes.
    fn post(&self, user: usize, path: &str, body: &str) -> anyhow::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.requests(user)?.post(path, body.as_bytes(), &mut bytes);
        Ok(bytes)
    }

    /// GET requests, one by each user.
    fn gets(
        &self,
        users: impl IntoIterator<Item = usize>,
        path: &str,
    ) -> anyhow::Result<Vec<Vec<u8>>> {
        users.into_iter().map(|user| self.get(user, path)).collect()
    }
}

/// Creates accounts on the server of a data directory; returns their tokens.
async fn test_tokens(roost: &Path, data: &Path, accounts: u32) -> anyhow::Result<Vec<String>> {
    let mut command = Command::new(roost);
    command.args(["account", "test-tokens", &accounts.to_string(), "--data"]).arg(data);
    let output = command.kill_on_drop(true).output().await?;
    let errors = String::from_utf8_lossy(&output.stderr);
    anyhow::ensure!(output.status.success(), "test-tokens: {errors}");
    Ok(String::from_utf8(output.stdout)?.lines().map(str::to_owned).collect())
}

/// Text of typical length with a mention and a hashtag.
fn rich_text(number: u64, mentioned: &str) -> String {
    let tag = number % 1_000;
    format!(
        "Number {number:07}: today the weather was kinder than the forecast, so @{mentioned} and I went out \
         for a walk along the river. #walk{tag}"
    )
}
