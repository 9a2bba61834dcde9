//! `roost simulate`: a population made to measure against a server of our own or another.

use std::net::{SocketAddr, ToSocketAddrs as _};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use sim::workload::Load;
use sim::{Drawings, Drive, SimulateOptions, Storytelling, simulate};
use tokio::sync::watch;

use crate::logging::{self, LogFormat};
use crate::running::RunningServer;
use crate::serve::stop_signal;
use crate::settings::duration;

/// Rehearse a launch: make a population, load it into a server over HTTP and drive it.
///
/// The people of --profile feed, whom they follow and how often they do what come from measured
/// statistics of a large network. Those of --profile stories have friends at random, tell each of
/// their stories again when its life ends, and read. --profile recognise makes no people: it sends
/// the built-in digits, each moved and blotted a little, to be recognised. --seed makes the same
/// again. Actions are due at random times whatever the server does, and latency counts from when an
/// action was due. Without --target a server of its own is started on a free port and a temporary
/// directory, with the default settings.
#[derive(Args)]
pub(crate) struct Simulate {
    /// Server to drive, for example http://127.0.0.1:8998; it must have no users yet, but see
    /// --loaded. Its key is read from ROOST_KEY
    #[arg(long, value_name = "URL")]
    target: Option<String>,
    /// What people do
    #[arg(long, value_enum, default_value_t = Profile::Feed)]
    profile: Profile,
    /// People to make
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    users: u32,
    /// feed: How busy they are [default: light]
    #[arg(long, value_enum)]
    load: Option<Busy>,
    /// stories: Friends of each, about [default: 10]
    #[arg(long, value_name = "N")]
    friends: Option<u32>,
    /// stories: Stories of each that live at a time [default: 10]
    #[arg(long, value_name = "N")]
    stories: Option<u32>,
    /// stories: How many seconds a story lives [default: 300]
    #[arg(long, value_name = "SECS", value_parser = clap::value_parser!(u32).range(1..=604_800))]
    life: Option<u32>,
    /// stories: Reads of stories homes a second by all together, and half as many of one friend's
    /// stories [default: one for 20 people]
    #[arg(long, value_name = "N")]
    home_reads: Option<u32>,
    /// Actions a second on average [default: as many as these people make of themselves; of
    /// drawings 100]
    #[arg(long, value_name = "N")]
    rate: Option<f64>,
    /// Whether actions come at their times whatever the server does, or each connection waits for an
    /// answer before it does the next
    #[arg(long = "loop", value_enum, value_name = "LOOP", default_value_t = Loop::Open)]
    kind_of_loop: Loop,
    /// How long a day is, in which people are active by its hours, or `off` for an even load
    /// [default: feed: the whole run is one day; others: off]
    #[arg(long, value_name = "TIME|off", value_parser = day)]
    day: Option<Duration>,
    /// feed: When the most followed person posts and all their followers look, from the start
    #[arg(long, value_name = "TIME", value_parser = duration)]
    flash: Option<Duration>,
    /// How long to drive the server once everybody is loaded
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = duration)]
    duration: Duration,
    /// Seed of everything random
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Take people and follows or friendships from an edge list instead: two numbers a line, mutual
    #[arg(long, value_name = "FILE")]
    graph: Option<PathBuf>,
    /// Connections that carry the load
    #[arg(long, value_name = "N", default_value_t = 64)]
    connections: usize,
    /// Threads that drive them; more than one only where one cannot keep up
    #[arg(long, value_name = "N", default_value_t = 1)]
    threads: usize,
    /// What the server speaks
    #[arg(long, value_enum, default_value_t = Api::Roost)]
    api: Api,
    /// The server has these people already, from a rehearsal with the same profile, users, graph and
    /// seed: load nothing
    #[arg(long, requires = "target")]
    loaded: bool,
    /// Write the summary as JSON to this file as well
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// The parts of the server that can be rehearsed.
#[derive(Clone, Copy, ValueEnum)]
enum Profile {
    /// People follow, post and read home timelines.
    Feed,
    /// Friends tell stories that vanish, and read them.
    Stories,
    /// Drawings of digits are recognised.
    Recognise,
}

/// How the load goes on.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Loop {
    /// Latency counts from when an action was due, so that waiting shows.
    Open,
    /// A slow server is asked less, and waiting does not show.
    Closed,
}

/// The servers that can be driven.
#[derive(Clone, Copy, ValueEnum)]
enum Api {
    /// roost's own API.
    Roost,
}

/// The two loads of the old report.
#[derive(Clone, Copy, ValueEnum)]
enum Busy {
    /// The most active 5 % post every 10 s.
    Light,
    /// The most active 5 % post every 2 s.
    Heavy,
}

impl Simulate {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        logging::start(LogFormat::Auto);
        let (feed, stories, drawings) = self.parts()?;
        let (server, target) = match &self.target {
            Some(url) => (None, address(url)?),
            None => {
                let server =
                    RunningServer::start(SocketAddr::from(([127, 0, 0, 1], 0)), None).await?;
                let address = server.address;
                (Some(server), address)
            }
        };
        let drive = self.drive();
        let Api::Roost = self.api;
        let options = SimulateOptions {
            target,
            key: std::env::var("ROOST_KEY").ok().filter(|_| server.is_none()),
            users: self.users,
            feed,
            stories,
            drawings,
            seed: self.seed,
            graph: self.graph,
            loaded: self.loaded,
        };
        let cancel = cancelled_by_signal()?;
        let summary = simulate(options, &drive, &mut std::io::stdout(), &mut [], cancel).await?;
        drop(server);
        if let Some(path) = &self.json {
            summary.write_json(path).with_context(|| format!("cannot write {}", path.display()))?;
        }
        anyhow::ensure!(summary.error_count() == 0, "{} requests failed", summary.error_count());
        let faults = summary.correctness.as_ref().map_or(0, sim::summary::Correctness::faults);
        anyhow::ensure!(faults == 0, "{faults} faults in timelines");
        anyhow::ensure!(summary.invalid.is_empty(), "the run is not valid");
        Ok(())
    }

    fn drive(&self) -> Drive {
        let closed = self.kind_of_loop == Loop::Closed;
        let is_feed = matches!(self.profile, Profile::Feed);
        let day = self.day.or_else(|| (is_feed && !closed).then_some(self.duration));
        Drive {
            duration: self.duration,
            rate: self.rate,
            closed,
            day: day.filter(|day| !day.is_zero()),
            flash: self.flash,
            connections: self.connections,
            threads: self.threads,
        }
    }

    /// Every setting belongs to the profile.
    fn check(&self) -> anyhow::Result<()> {
        let of_stories = [self.friends, self.stories, self.life, self.home_reads];
        anyhow::ensure!(
            matches!(self.profile, Profile::Stories) || of_stories.iter().all(Option::is_none),
            "--friends, --stories, --life and --home-reads belong to --profile stories"
        );
        anyhow::ensure!(
            matches!(self.profile, Profile::Feed) || self.load.is_none(),
            "--load belongs to --profile feed"
        );
        anyhow::ensure!(
            matches!(self.profile, Profile::Feed) || self.flash.is_none(),
            "--flash belongs to --profile feed"
        );
        Ok(())
    }

    /// What is rehearsed of the three parts.
    fn parts(&self) -> anyhow::Result<(Option<Load>, Option<Storytelling>, Option<Drawings>)> {
        self.check()?;
        match self.profile {
            Profile::Feed => {
                let load = match self.load {
                    None | Some(Busy::Light) => Load::Light,
                    Some(Busy::Heavy) => Load::Heavy,
                };
                Ok((Some(load), None, None))
            }
            Profile::Stories => {
                let stories = Storytelling {
                    friends: self.friends.unwrap_or(10),
                    stories: self.stories.unwrap_or(10),
                    life_s: self.life.unwrap_or(300),
                    homes_per_second: self.home_reads.unwrap_or(self.users.div_ceil(20)),
                };
                Ok((None, Some(stories), None))
            }
            Profile::Recognise => {
                let references = knn::digits().iter().map(|(_, _, bits)| bits.to_bytes()).collect();
                Ok((None, None, Some(Drawings { references, per_second: 100 })))
            }
        }
    }
}

/// The length of a day; nothing for `off`.
fn day(text: &str) -> Result<Duration, String> {
    if text == "off" {
        Ok(Duration::ZERO)
    } else {
        duration(text).map_err(|error| error.to_string())
    }
}

/// Turns true at the first SIGINT or SIGTERM.
pub(crate) fn cancelled_by_signal() -> anyhow::Result<watch::Receiver<bool>> {
    let (cancel, cancelled) = watch::channel(false);
    let stop = stop_signal()?;
    tokio::spawn(async move {
        stop.await;
        cancel.send_replace(true);
        // Held open: a closed channel would say nothing.
        std::future::pending::<()>().await;
    });
    Ok(cancelled)
}

/// The address behind `http://HOST:PORT`.
fn address(url: &str) -> anyhow::Result<SocketAddr> {
    let host = url
        .strip_prefix("http://")
        .map(|rest| rest.trim_end_matches('/'))
        .context("a target looks like http://127.0.0.1:8998")?;
    let host = if host.contains(':') { host.to_owned() } else { format!("{host}:80") };
    host.to_socket_addrs()
        .with_context(|| format!("cannot find {host}"))?
        .next()
        .with_context(|| format!("{host} has no address"))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        simulate: Simulate,
    }

    #[test]
    fn a_profile_takes_the_settings_that_belong_to_it() {
        let check = |line: &str, right: bool| {
            let line = ["simulate"].into_iter().chain(line.split_whitespace());
            let parts = Line::try_parse_from(line.clone()).map(|line| line.simulate.parts());
            let one = matches!(
                parts,
                Ok(Ok((Some(_), None, None) | (None, Some(_), None) | (None, None, Some(_))))
            );
            assert_eq!(one, right, "{:?}", line.collect::<Vec<_>>());
        };
        check("", true);
        check("--load heavy", true);
        check("--profile stories", true);
        check("--profile stories --friends 5 --stories 2 --life 1 --home-reads 0", true);
        check("--profile stories --load light", false);
        for wrong in ["--friends 5", "--stories 5", "--life 5", "--home-reads 5"] {
            check(wrong, false);
        }
        check("--profile recognise --rate 1000", true);
        check("--profile recognise --flash 1s", false);
        check("--profile recognise --load light", false);
        check("--profile recognise --friends 5", false);
        check("--rate 5 --flash 1s --day 1h --loop closed", true);
        check("--day off", true);
        check("--day of", false);
        check("--profile stories --life 0", false);
        check("--profile stories --life 604801", false);
    }

    #[test]
    fn a_target_is_an_http_url_of_a_host() {
        for (url, expect) in [
            ("http://127.0.0.1:8998", Some("127.0.0.1:8998")),
            ("http://127.0.0.1:8998/", Some("127.0.0.1:8998")),
            ("http://127.0.0.1", Some("127.0.0.1:80")),
            ("127.0.0.1:8998", None),
            ("http://127.0.0.1:port", None),
        ] {
            assert_eq!(address(url).ok().map(|a| a.to_string()).as_deref(), expect, "{url}");
        }
    }
}
