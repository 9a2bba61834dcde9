//! `roost demo`: starts a server with simulated users, and prints commands to try.

mod balancer;
mod cluster;
mod processes;
mod writers;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Context as _;
use clap::Args;
use sim::client::Target;
use sim::feeds::{self, World};
use sim::population::Making;
use sim::workload::Load;
use sim::{ApiOptions, Drive, Population, SimulateOptions, StoryLoad, simulate};

use crate::address::resolve;
use crate::logging;
use crate::output::out;
use crate::running::{Prepared, Purpose, RunningServer};
use crate::serve::stop_signals;
use crate::simulate::cancelled_by_signal;

/// Start a server in open mode with simulated users, or a cluster.
///
/// The data is in a temporary directory, which is removed at the end. Ctrl-C stops the demo.
#[derive(Args)]
pub(crate) struct Demo {
    /// Address to serve HTTP on; if it is in use, a free port is used
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:8998", value_parser = resolve)]
    listen: SocketAddr,
    /// Address to serve Redis clients on; if it is in use, a free port is used
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:6380", value_parser = resolve)]
    redis_listen: SocketAddr,
    /// Number of simulated users
    #[arg(long, value_name = "N", default_value_t = 300, value_parser = clap::value_parser!(u32).range(2..))]
    users: u32,
    /// Length of the run
    #[arg(long, value_name = "TIME", default_value = "8h", value_parser = crate::settings::duration)]
    duration: Duration,
    /// Start a cluster instead: three nodes with one common address, and three NATS servers. Clients post while the
    /// demo kills one server after the other. Requires nats-server
    #[arg(long, conflicts_with_all = ["redis_listen", "users"])]
    cluster: bool,
    /// Path of nats-server [default: the one in PATH]
    #[arg(long, value_name = "FILE", requires = "cluster")]
    nats_server: Option<PathBuf>,
}

const SEED: u64 = 1;
/// Story load with a short TTL, so that users see stories appear and expire.
const STORIES: StoryLoad = StoryLoad { friends: 8, stories: 1, life_s: 20, homes_per_second: 2 };

impl Demo {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        logging::start_by_environment()?;
        let [listen, redis] = [self.listen, self.redis_listen].map(free_unless_it_is);
        if self.cluster {
            let nats_server = cluster::nats_server(self.nats_server.as_deref())?;
            return cluster::run(listen, &nats_server, self.duration, stop_signals()?).await;
        }
        let making = Making::of(self.users, SEED);
        let stories = StoryLoad { friends: STORIES.friends.min(self.users - 1), ..STORIES };
        let world = tokio::task::spawn_blocking(move || -> anyhow::Result<_> {
            let now_ms = SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis() as u64;
            Ok(World::new(&making, now_ms))
        });
        let world = world.await??;
        let server = start(&world, stories.friends, [listen, redis]).await?;
        explain(&server, reader(world.population()));
        let target = Target::from(server.address);
        let options = SimulateOptions {
            target: target.clone(),
            api: ApiOptions::Roost,
            key: None,
            making,
            feed: Some(Load::Heavy),
            stories: Some(stories),
            drawings: None,
            keys: None,
            graph: None,
            loaded: true,
        };
        let drive = Drive { connections: 4, ..Drive::new(self.duration) };
        let (_stop, cancel) = cancelled_by_signal()?;
        let reactions = async {
            feeds::react(&world, &target).await?;
            feeds::continue_history(&world, &target).await
        };
        let mut sink = std::io::sink();
        let simulation = simulate(options, &drive, &mut sink, &mut [], cancel);
        tokio::select! {
            done = simulation => { done?; }
            failed = reactions => match failed? {},
        }
        out!("\nThe demo has ended; its data is deleted.");
        Ok(())
    }
}

/// Starts a server with the users, posts and reactions of two days.
async fn start(
    world: &World,
    friends: u32,
    [listen, redis]: [SocketAddr; 2],
) -> anyhow::Result<RunningServer> {
    let friends = Population::friends(world.population().people(), friends, SEED);
    let file = tempfile::NamedTempFile::new().context("no temporary file")?;
    world.write_import(file.as_file(), Some(&friends))?;
    let prepared = Prepared { import: file.path().to_owned(), feeds: None };
    let server = RunningServer::start(listen, Some(redis), Purpose::Demo, Some(&prepared)).await;
    server.context("the demo cannot start a server")
}

/// Returns the address, with a free port if the given port is in use.
fn free_unless_it_is(address: SocketAddr) -> SocketAddr {
    let in_use = std::net::TcpListener::bind(address).is_err();
    if in_use { SocketAddr::new(address.ip(), 0) } else { address }
}

/// Returns a user with a busy timeline: the first who follows a tenth of all users.
fn reader(population: &Population) -> u32 {
    let lively = population.people() / 10;
    (0..population.people())
        .find(|user| population.following(*user).len() as u32 >= lively)
        .unwrap_or(0)
}

fn explain(server: &RunningServer, reader: u32) {
    let (url, life_s) = (format!("http://{}", server.address), STORIES.life_s);
    let redis_port = server.redis.map_or(0, |address| address.port());
    out!(
        "roost runs at {url} in open mode, with simulated users who post, favourite posts and share stories.

Open {url} in a browser, choose a handle and follow three users: \"For You\" shows what they and users like
them favourite. The API reference is at {url}/docs.
In another terminal:

  # a home timeline; repeat the line to see new posts
  curl '{url}/v1/users/{reader}/timeline?limit=3'

  # the same, live: every new post and mention as it is published
  curl -N {url}/v1/users/{reader}/events

  # stories of friends; each expires after {life_s} s
  curl '{url}/v1/users/{reader}/timeline/stories?limit=3'

  # post something yourself
  curl {url}/v1/users/{reader}/posts -H 'Content-Type: application/json' -d '{{\"text\":\"hello\"}}'

  # set a key with any Redis client; the page Buckets lists it
  redis-cli -p {redis_port} SET greeting hello EX 60

Ctrl-C stops it."
    );
}
