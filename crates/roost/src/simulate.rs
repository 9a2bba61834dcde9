//! `roost simulate`: a population made to measure against a server of our own or another.

mod capacity;
mod parts;

use std::io::{self, IsTerminal as _};
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use sim::report::Recording;
use sim::summary::Correctness;
use sim::watch::{Lines, Watcher};
use sim::{Drive, Measures, Slo, Summary, simulate};
use tokio::sync::watch;

use crate::dashboard::Dashboard;
use crate::logging::{self, LogFormat};
use crate::people::People;
use crate::running::{Purpose, RunningServer};
use crate::serve::stop_signal;
use crate::settings::duration;
use parts::{Letter, Profile};

/// Simulate a launch: make a population, load it into a server over HTTP, drive it and measure.
///
/// The people of --profile feed, whom they follow and how often they do what come from measured
/// statistics of a large network. --seed makes the same again. Actions are due at random times
/// whatever the server does, and latency counts from when an action was due, so that a stall shows
/// in full. Some posts are followed to see how soon they are in a follower's home, and whether homes
/// are right. A run in which the generator itself was the bottleneck is called inconclusive.
///
/// Without --target a server of its own is started on a free port and a temporary directory, with the
/// default settings, at a lower priority than the generator. A server that was loaded is given time to
/// settle. On a terminal a dashboard shows how it goes (q ends it and sums up); elsewhere a
/// line every 3 s does.
#[derive(Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Simulate {
    /// Server to drive, for example http://127.0.0.1:8998; it must have no users yet, but see
    /// --loaded. Its key is read from ROOST_KEY
    #[arg(long, value_name = "URL")]
    target: Option<String>,
    /// What the server speaks
    #[arg(long, value_enum, default_value_t = Api::Roost)]
    api: Api,
    /// The server has these people already, from a simulation with the same profile, users, graph and
    /// seed: load nothing
    #[arg(long, requires = "target")]
    loaded: bool,
    /// What is done
    #[arg(long, value_enum, default_value_t = Profile::Feed)]
    profile: Profile,
    #[command(flatten)]
    people: People,
    /// feed: How busy people are [default: light]
    #[arg(long, value_enum)]
    load: Option<Busy>,
    /// feed: When the most followed person posts and all their followers look, from the start
    #[arg(long, value_name = "TIME", value_parser = duration)]
    flash: Option<Duration>,
    /// stories: Friends of each, about [default: 10]
    #[arg(long, value_name = "N")]
    friends: Option<u32>,
    /// stories: Stories of each that live at a time [default: 10]
    #[arg(long, value_name = "N")]
    stories: Option<u32>,
    /// stories: How many seconds a story lives [default: 300]
    #[arg(long, value_name = "SECS", value_parser = clap::value_parser!(u32).range(1..=604_800))]
    life: Option<u32>,
    /// stories: Reads of story homes a second by all together, and half as many of one friend's
    /// stories [default: one for 20 people]
    #[arg(long, value_name = "N")]
    home_reads: Option<u32>,
    /// buckets: The workload of YCSB [default: a]
    #[arg(long, value_enum, value_name = "LETTER")]
    ycsb: Option<Letter>,
    /// buckets: Records at the start [default: 100000]
    #[arg(long, value_name = "N")]
    records: Option<u32>,
    /// buckets: Bytes of each value [default: 1000]
    #[arg(long, value_name = "N")]
    value_bytes: Option<u32>,
    /// How long to drive the server once everybody is loaded [default: 60s; for each trial of
    /// --find-capacity 10s]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    duration: Option<Duration>,
    /// Requests a second on average [default: feed and stories: as many as these people make of
    /// themselves; recognise: 100; buckets and deathstar: 1000]
    #[arg(long, value_name = "N")]
    rate: Option<f64>,
    /// Whether requests come at their times whatever the server does, or each connection waits for an
    /// answer before it sends the next
    #[arg(long = "loop", value_enum, value_name = "LOOP", default_value_t = Loop::Open)]
    kind_of_loop: Loop,
    /// How long a day is, in which people are active by its hours, or `off` for an even load
    /// [default: feed: the whole run is one day; others: off]
    #[arg(long, value_name = "TIME|off", value_parser = day)]
    day: Option<Duration>,
    /// Connections that carry the load
    #[arg(long, value_name = "N", default_value_t = 64)]
    connections: usize,
    /// Threads that drive them; more than one only where one cannot keep up
    #[arg(long, value_name = "N", default_value_t = 1)]
    threads: usize,
    /// Search for the highest rate that meets --slo: trials, an answer with its interval
    #[arg(long, conflicts_with_all = ["rate", "flash", "day", "kind_of_loop"])]
    find_capacity: bool,
    /// What must be met: p50 p90 p99 p99.9 max (of the slowest kind of request), errors, lag_p50
    /// lag_p99 lag_max (until a post is in a follower's home). Without --find-capacity the run fails
    /// if it is not met [default: --find-capacity: p99<50ms,errors<0.1%,lag_p99<1s]
    #[arg(long, value_name = "OBJECTIVES")]
    slo: Option<Slo>,
    /// How often --find-capacity measures it, for the interval
    #[arg(long, value_name = "N", default_value_t = 5, requires = "find_capacity")]
    repeats: usize,
    /// Lines instead of the dashboard, on a terminal too
    #[arg(long)]
    plain: bool,
    /// Write a report with plots to this file, and the raw data to a folder beside it
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write the summary as JSON to this file as well
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

const EXAMPLES: &str = "Examples:
  A launch with a report to show:
    roost simulate --users 100000 --load heavy --duration 60s --html report.html
  How much the machine holds:
    roost simulate --users 100000 --find-capacity --slo 'p99<50ms,errors<0.1%,lag_p99<1s'
  A celebrity posts half a minute in, and everybody looks:
    roost simulate --users 100000 --flash 30s
  A server that runs elsewhere, a key-value load:
    ROOST_KEY=... roost simulate --target http://10.0.0.5:8998 --profile buckets --ycsb b --rate 5000";

/// The two loads of the old report.
#[derive(Clone, Copy, ValueEnum)]
enum Busy {
    /// The most active 5 % post every 10 s.
    Light,
    /// The most active 5 % post every 2 s.
    Heavy,
}

/// How the load goes on.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Loop {
    /// Latency counts from when a request was due, so that waiting shows.
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

impl Simulate {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        logging::start(LogFormat::Auto);
        let parts = self.parts()?;
        let Api::Roost = self.api;
        let (server, target) = match &self.target {
            Some(url) => (None, address(url)?),
            None => {
                let any = SocketAddr::from(([127, 0, 0, 1], 0));
                let purpose = Purpose::Simulation { drawn: self.has_dashboard() };
                let server = RunningServer::start(any, None, purpose).await?;
                let address = server.address;
                (Some(server), address)
            }
        };
        let key = std::env::var("ROOST_KEY").ok().filter(|_| server.is_none());
        let options = self.options(parts, target, key)?;
        if self.find_capacity {
            return capacity::find(options, self.drive(), &self).await;
        }
        let (stop, cancel) = cancelled_by_signal()?;
        let (mut recording, mut shown) = (Recording::default(), self.shown(stop));
        let watchers: &mut [&mut dyn Watcher] = &mut [&mut recording, &mut *shown];
        let out = &mut io::stdout();
        let summary = simulate(options, &self.drive(), out, watchers, cancel).await?;
        drop(server);
        if let Some(path) = &self.json {
            summary.write_json(path).with_context(|| format!("cannot write {}", path.display()))?;
        }
        if let Some(path) = &self.html {
            sim::report::write(path, &summary, &recording, &command_line())
                .with_context(|| format!("cannot write {}", path.display()))?;
            println!("report: {}", path.display());
        }
        self.verdict(&summary)
    }

    /// An error unless everything was as it should be.
    fn verdict(&self, summary: &Summary) -> anyhow::Result<()> {
        anyhow::ensure!(
            summary.inconclusive.is_empty(),
            "inconclusive: {}",
            summary.inconclusive.join("; ")
        );
        let faults = summary.correctness.as_ref().map_or(0, Correctness::faults);
        anyhow::ensure!(faults == 0, "{faults} faults in timelines");
        if let Some(slo) = &self.slo {
            let breaches = slo.check(&Measures::of(summary, self.drive().duration));
            let reported: Vec<String> = breaches.iter().map(ToString::to_string).collect();
            anyhow::ensure!(breaches.is_empty(), "{slo} is not met: {}", reported.join(", "));
            println!("{slo} is met");
        }
        let may_fail = self.slo.as_ref().is_some_and(Slo::is_about_errors);
        let errors = summary.error_count();
        anyhow::ensure!(errors == 0 || may_fail, "{errors} requests failed");
        Ok(())
    }

    fn has_dashboard(&self) -> bool {
        !self.plain && !self.find_capacity && io::stdout().is_terminal()
    }

    /// What shows how it goes.
    fn shown(&self, stop: watch::Sender<bool>) -> Box<dyn Watcher> {
        if self.has_dashboard() {
            Box::new(Dashboard::new(stop))
        } else {
            Box::new(Lines::new(io::stdout()))
        }
    }

    fn drive(&self) -> Drive {
        let default_s = if self.find_capacity { 10 } else { 60 };
        let duration = self.duration.unwrap_or(Duration::from_secs(default_s));
        let closed = self.kind_of_loop == Loop::Closed;
        let is_lively = self.profile == Profile::Feed && !closed && !self.find_capacity;
        let day = self.day.or_else(|| is_lively.then_some(duration));
        Drive {
            duration,
            rate: self.rate,
            closed,
            day: day.filter(|day| !day.is_zero()),
            flash: self.flash,
            connections: self.connections,
            threads: self.threads,
        }
    }
}

/// The command as it would be typed.
fn command_line() -> String {
    let arguments = std::env::args_os().skip(1);
    let quoted = arguments.map(|argument| quoted(&argument.to_string_lossy()));
    std::iter::once("roost".to_owned()).chain(quoted).collect::<Vec<_>>().join(" ")
}

/// An argument as a shell takes it.
fn quoted(argument: &str) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || "-_=./:,%@+".contains(letter);
    if !argument.is_empty() && argument.chars().all(is_plain) {
        return argument.to_owned();
    }
    format!("'{}'", argument.replace('\'', r"'\''"))
}

/// The length of a day; nothing for `off`.
fn day(text: &str) -> Result<Duration, String> {
    if text == "off" {
        Ok(Duration::ZERO)
    } else {
        duration(text).map_err(|error| error.to_string())
    }
}

/// Turns true at the first SIGINT or SIGTERM, and when it is sent.
pub(crate) fn cancelled_by_signal() -> anyhow::Result<(watch::Sender<bool>, watch::Receiver<bool>)>
{
    let (cancel, cancelled) = watch::channel(false);
    let (stop, own) = (stop_signal()?, cancel.clone());
    tokio::spawn(async move {
        stop.await;
        own.send_replace(true);
    });
    Ok((cancel, cancelled))
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

    use super::parts::Parts;
    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        simulate: Simulate,
    }

    impl Parts {
        fn count(&self) -> usize {
            let Parts { feed, stories, drawings, keys } = self;
            [feed.is_some(), stories.is_some(), drawings.is_some(), keys.is_some()]
                .map(usize::from)
                .iter()
                .sum()
        }
    }

    #[test]
    fn a_profile_takes_the_settings_that_belong_to_it() {
        let check = |line: &str, right: bool| {
            let line = ["simulate"].into_iter().chain(line.split_whitespace());
            let parts = Line::try_parse_from(line.clone()).map(|line| line.simulate.parts());
            let one = matches!(parts, Ok(Ok(parts)) if parts.count() == 1);
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
        check("--profile buckets --ycsb e --records 5 --value-bytes 7 --rate 9", true);
        check("--profile buckets --ycsb g", false);
        check("--ycsb a", false);
        check("--profile deathstar --rate 9", true);
        check("--profile deathstar --load heavy", false);
        check("--find-capacity --slo p99<5ms --repeats 3 --duration 2s", true);
        check("--find-capacity --html report.html", true);
        check("--find-capacity --rate 5", false);
        check("--find-capacity --slo p98<5ms", false);
        check("--repeats 3", false);
        check("--loaded", false);
        check("--day of", false);
        check("--profile stories --life 0", false);
        check("--profile stories --life 604801", false);
    }

    #[test]
    fn an_argument_is_quoted_where_a_shell_wants_it() {
        for (argument, expect) in [
            ("--users=5", "--users=5"),
            ("p99<50ms", "'p99<50ms'"),
            ("it's", r"'it'\''s'"),
            ("", "''"),
        ] {
            assert_eq!(quoted(argument), expect);
        }
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
