//! Arguments of `roost simulate`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use sim::Slo;

use super::feeds::seeds;
use super::parts::{Letter, Profile};
use crate::exit;
use crate::people::People;
use crate::settings::{duration, life};

/// Simulate users: load a population into a server, send requests and measure.
///
/// With --profile feed, the numbers of follows and the rates of posts and reads come from measured statistics of a
/// large network. The same --seed gives the same run. Requests are sent at random times, whether or not the server has
/// answered earlier ones, and latency is measured from the scheduled time, so it includes every stall. For some posts,
/// the run also measures the time until they are in a follower's home timeline, and it compares some timelines with the
/// expected ones. A run is inconclusive if the load generator was late.
///
/// Without --server, a server with default settings and a temporary data directory is started on a free port, at a
/// lower priority than the load generator. After loading, the run begins when the server is idle. A terminal shows a
/// dashboard (q ends the run and prints the summary); otherwise the command prints a line every 3 s.
#[derive(Args)]
#[command(after_long_help = format!("{EXAMPLES}\n\n{}", exit::HELP))]
pub(crate) struct Simulate {
    /// Server to load, for example http://127.0.0.1:8998, `https://feeds.example` or localhost:8998; or several nodes
    /// of a cluster, separated by commas: a request that fails on one node is sent to the next. The server must not
    /// have users yet, except with --loaded. The environment variable ROOST_SERVER_KEY must contain an application key
    /// with the scopes read and write [default: start a server]
    #[arg(long, value_name = "URL", help_heading = SERVER)]
    pub(super) server: Option<String>,
    /// Trusted certificate authorities for an https server, in a PEM file
    /// [default: those of the system]
    #[arg(long, value_name = "FILE", requires = "server", help_heading = SERVER)]
    pub(super) ca: Option<PathBuf>,
    /// API of the server
    #[arg(long, value_enum, default_value_t = Api::Roost, help_heading = SERVER)]
    pub(super) api: Api,
    /// File with the credentials of the users of --api mastodon, in the order of the users, one per line: an access
    /// token, or a name and a password separated by a space if the server lets apps ask for passwords [default: sign
    /// the users up]
    #[arg(long, value_name = "FILE", requires = "server", help_heading = SERVER)]
    pub(super) tokens: Option<PathBuf>,
    /// Skip loading, because the server already has the users of a simulation with the same profile, users, graph and
    /// seed
    #[arg(long, requires = "server", help_heading = SERVER)]
    pub(super) loaded: bool,
    /// Actions of the users
    #[arg(long, value_enum, default_value_t = Profile::Feed, help_heading = USERS)]
    pub(super) profile: Profile,
    #[command(flatten)]
    pub(super) people: People,
    /// Rates at which users post and read [default: light]
    #[arg(long, value_enum, help_heading = FEED)]
    pub(super) load: Option<Busy>,
    /// Time, measured from the start, at which the most followed user posts and all followers read
    #[arg(long, value_name = "TIME", value_parser = duration, help_heading = FEED)]
    pub(super) flash: Option<Duration>,
    /// Average number of friends of a user [default: 10]
    #[arg(long, value_name = "N", help_heading = STORIES)]
    pub(super) friends: Option<u32>,
    /// Number of live stories of each user [default: 10]
    #[arg(long, value_name = "N", help_heading = STORIES)]
    pub(super) stories: Option<u32>,
    /// TTL of a story [default: 5m]
    #[arg(long, value_name = "TIME", value_parser = life_secs, help_heading = STORIES)]
    pub(super) life: Option<u32>,
    /// Total number of reads of story homes per second. Stories of one friend are read half as often [default: one for
    /// every 20 users]
    #[arg(long, value_name = "N", help_heading = STORIES)]
    pub(super) home_reads: Option<u32>,
    /// File with definitions of ranked feeds, which are evaluated in addition to the built-in ones [default: none]
    #[arg(long, value_name = "FILE", help_heading = FEEDS)]
    pub(super) feeds: Option<PathBuf>,
    /// Number of seeds, from --seed on. The figures are means over them, with intervals [default: 5]
    #[arg(long, value_name = "N", value_parser = seeds(), help_heading = FEEDS)]
    pub(super) seeds: Option<u32>,
    /// Core workload of YCSB [default: a]
    #[arg(long, value_enum, value_name = "LETTER", help_heading = BUCKETS)]
    pub(super) ycsb: Option<Letter>,
    /// Number of records at the start [default: 100000]
    #[arg(long, value_name = "N", help_heading = BUCKETS)]
    pub(super) records: Option<u32>,
    /// Size of each value in bytes [default: 1000]
    #[arg(long, value_name = "N", help_heading = BUCKETS)]
    pub(super) value_bytes: Option<u32>,
    /// Length of the run after loading [default: 60s; of each trial of --find-capacity: 10s; feeds: the time in which
    /// the server finds interest groups before the reads, 16 ms for each user]
    #[arg(long, value_name = "TIME", value_parser = duration, help_heading = RUN)]
    pub(super) duration: Option<Duration>,
    /// Average number of requests per second [default: feed and stories: from the number of users;
    /// recognize: 100; buckets and deathstar: 1000]
    #[arg(long, value_name = "N", help_heading = RUN)]
    pub(super) rate: Option<f64>,
    /// Times of requests: open (at scheduled times) or closed (after the response to the previous request on the same
    /// connection)
    #[arg(
        long = "loop",
        value_enum,
        value_name = "LOOP",
        default_value_t = Loop::Open,
        help_heading = RUN
    )]
    pub(super) kind_of_loop: Loop,
    /// Length of a simulated day, in which activity varies by the hour; `off` for a constant rate [default: feed: the
    /// length of the run; others: off]
    #[arg(long, value_name = "TIME|off", value_parser = day, help_heading = RUN)]
    pub(super) day: Option<Duration>,
    /// Number of connections
    #[arg(long, value_name = "N", default_value_t = 64, help_heading = RUN)]
    pub(super) connections: usize,
    /// Number of threads that send requests. Use more only if one thread is the bottleneck
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = RUN)]
    pub(super) threads: usize,
    /// Search for the highest rate that meets --slo, with a confidence interval
    #[arg(
        long,
        conflicts_with_all = ["rate", "flash", "day", "kind_of_loop"],
        help_heading = RESULTS
    )]
    pub(super) find_capacity: bool,
    /// Objectives, separated by commas: p50 p90 p99 p99.9 max (latency of the slowest kind of request), errors (share
    /// of failed requests), lag_p50 lag_p99 lag_max (time until a post is in a follower's home timeline) [default:
    /// none; with --find-capacity: p99<50ms,errors<0.1%,lag_p99<1s]
    #[arg(long, value_name = "OBJECTIVES", help_heading = RESULTS)]
    pub(super) slo: Option<Slo>,
    /// Number of searches of --find-capacity, from which the interval is computed
    #[arg(
        long,
        value_name = "N",
        default_value_t = 5,
        requires = "find_capacity",
        help_heading = RESULTS
    )]
    pub(super) repeats: usize,
    /// Print lines instead of a dashboard, also on a terminal
    #[arg(long, help_heading = RESULTS)]
    pub(super) plain: bool,
    /// Write a report with plots to this file, and the raw data to a directory next to it
    #[arg(long, value_name = "FILE", help_heading = RESULTS)]
    pub(super) html: Option<PathBuf>,
    /// Write the summary as JSON to this file
    #[arg(long, value_name = "FILE", help_heading = RESULTS)]
    pub(super) json: Option<PathBuf>,
}

const SERVER: &str = "Server";
const USERS: &str = "Users";
const FEED: &str = "Options of --profile feed";
const STORIES: &str = "Options of --profile stories";
const FEEDS: &str = "Options of --profile feeds";
const BUCKETS: &str = "Options of --profile buckets";
const RUN: &str = "Run";
const RESULTS: &str = "Results";

const EXAMPLES: &str = "Examples:
  A launch, with a report:
    roost simulate --users 100000 --load heavy --duration 60s --html report.html
  The capacity of this machine:
    roost simulate --users 100000 --find-capacity --slo 'p99<50ms,errors<0.1%,lag_p99<1s'
  The most followed user posts after 30 s, and all followers read:
    roost simulate --users 100000 --flash 30s
  Ranked feeds of a file, compared with the built-in ones:
    roost simulate --profile feeds --users 2000 --feeds feeds.toml
  Mastodon's client API, of a server with open sign-up:
    roost simulate --api mastodon --users 200 --server https://social.example
  A key-value load against another server:
    ROOST_SERVER_KEY=... roost simulate --server https://feeds.example --profile buckets --ycsb b";

/// The two loads that a report from 2014 compared.
#[derive(Clone, Copy, ValueEnum)]
pub(super) enum Busy {
    /// The most active 5 % post every 10 s.
    Light,
    /// The most active 5 % post every 2 s.
    Heavy,
}

/// Arrival process of requests.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Loop {
    /// Each request is sent at its scheduled time. Latency is measured from then, so it includes waiting.
    Open,
    /// Each request is sent after the response to the previous one. Latency does not include waiting.
    Closed,
}

/// Supported APIs of servers.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Api {
    /// roost's own API.
    Roost,
    /// Mastodon's client API, of roost or another server, for the profiles feed and deathstar. Each user has an access
    /// token
    Mastodon,
}

/// Parses the TTL of a story in seconds.
fn life_secs(text: &str) -> anyhow::Result<u32> {
    Ok(u32::try_from(life(text)?.ms() / 1_000)?)
}

/// Parses the length of a day. `off` gives zero.
fn day(text: &str) -> Result<Duration, String> {
    if text == "off" {
        Ok(Duration::ZERO)
    } else {
        duration(text).map_err(|error| error.to_string())
    }
}
