//! `roost simulate --profile feeds`: evaluates ranked feeds with users whose taste is known.

use std::net::SocketAddr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Context as _;
use sim::SimError;
use sim::client::Target;
use sim::feeds::{Evaluation, Figures, PAUSE, PAUSE_TOML, SEEDS, USERS, World};
use sim::population::Making;
use tokio::sync::watch;

use super::{Simulate, cancelled_by_signal, command_line};
use crate::exit::Exit;
use crate::output::out;
use crate::running::{Prepared, Purpose, RunningServer};
use crate::settings::feeds_of;

/// Default number of seeds.
const SEEDS_USUAL: u32 = 5;
/// Time for each user that a server has to find interest groups before the feeds are read: it looks at 320 users per
/// second, and each user may change the group several times.
const GROUPING_OF_USER: Duration = Duration::from_millis(16);
/// The minimum time.
const GROUPING_MIN: Duration = Duration::from_secs(5);

impl Simulate {
    /// Checks that no option is given that has no meaning for this profile.
    pub(super) fn check_feeds(&self) -> anyhow::Result<()> {
        let of_load = self.rate.is_some() || self.day.is_some() || self.slo.is_some();
        if self.server.is_some() || self.find_capacity || of_load || self.people.graph.is_some() {
            return Err(Exit::usage(
                "--profile feeds starts its own server and has no load: it does not work with --server, \
                 --find-capacity, --slo, --rate, --day and --graph",
            ));
        }
        let (least, most) = USERS;
        if !(least..=most).contains(&self.people.users) {
            return Err(Exit::usage(&format!("--profile feeds needs {least} to {most} --users")));
        }
        Ok(())
    }

    /// Evaluates the built-in feeds and those of `--feeds`.
    pub(super) async fn evaluate(&self) -> anyhow::Result<()> {
        let (text, feeds) = match &self.feeds {
            Some(file) => feeds_of(file, PAUSE_TOML)?,
            None => (PAUSE_TOML.to_owned(), node::Feeds::parse(PAUSE_TOML)?),
        };
        let names = feeds.names().filter(|name| *name != PAUSE).map(str::to_owned);
        let names: Vec<String> = names.collect();
        let (_stop, mut cancel) = cancelled_by_signal()?;
        let mut worlds = Vec::new();
        let making = self.people.making()?;
        for number in 0..u64::from(self.seeds.unwrap_or(SEEDS_USUAL)) {
            // Other commands use adjacent seeds for other purposes, so the seeds of worlds need not be far apart.
            let making = Making { seed: making.seed.wrapping_add(number), ..making };
            let world = self.evaluate_world(making, &names, &text);
            worlds.push((making.seed, unless_cancelled(world, &mut cancel).await?));
        }
        let evaluation = Evaluation::new(self.people.users, &worlds);
        let evaluation = evaluation.context("the worlds have different feeds")?;
        out!("\n{}", evaluation.to_string().trim_end());
        if let Some(path) = &self.json {
            std::fs::write(path, serde_json::to_vec_pretty(&evaluation)?)
                .with_context(|| format!("cannot write {}", path.display()))?;
        }
        if let Some(path) = &self.html {
            sim::report::write_evaluation(path, &evaluation, &command_line())
                .with_context(|| format!("cannot write {}", path.display()))?;
            out!("report: {}", path.display());
        }
        Ok(())
    }

    /// Imports a world into a new server, and lets its readers read the feeds.
    async fn evaluate_world(
        &self,
        making: Making,
        names: &[String],
        feeds: &str,
    ) -> anyhow::Result<Vec<(String, Figures)>> {
        let now_ms = SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis() as u64;
        let world = tokio::task::spawn_blocking(move || World::new(&making, now_ms)).await?;
        out!("{}", world.describe());
        let folder = tempfile::tempdir().context("no temporary directory")?;
        let [import, file] = ["world.ndjson", "feeds.toml"].map(|name| folder.path().join(name));
        world.write_import(std::fs::File::create(&import)?, None)?;
        std::fs::write(&file, feeds)?;
        let prepared = Prepared { import, feeds: Some(file) };
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let purpose = Purpose::Simulation { drawn: false };
        let server = RunningServer::start(any, None, purpose, Some(&prepared)).await?;
        let target = Target::from(server.address);
        // The server begins to find groups at the first read.
        sim::feeds::warm(&world, &target).await?;
        let grouping = (GROUPING_OF_USER * self.people.users).max(GROUPING_MIN);
        tokio::time::sleep(self.duration.unwrap_or(grouping)).await;
        sim::feeds::react(&world, &target).await?;
        Ok(sim::feeds::read(&world, &target, names).await?)
    }
}

/// Parses the number of seeds.
pub(super) fn seeds() -> clap::builder::RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(i64::from(SEEDS.0)..=i64::from(SEEDS.1))
}

async fn unless_cancelled<T>(
    work: impl Future<Output = anyhow::Result<T>>,
    cancel: &mut watch::Receiver<bool>,
) -> anyhow::Result<T> {
    tokio::select! {
        done = work => done,
        _ = cancel.wait_for(|cancelled| *cancelled) => Err(SimError::Interrupted.into()),
    }
}
