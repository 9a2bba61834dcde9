//! `roost cluster`: creates a cluster, adds a node, and removes a node.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::{Arg, Args, Subcommand};
use jetlog::{JetLog, JetLogOptions};
use node::RestoreOptions;
use serde::Deserialize;
use sim::client::{Connection, Dial as _, Requests, Target};

use crate::exit::Exit;
use crate::operate::fetched;
use crate::output::out;
use crate::settings::{DATA_DIRECTORY, Nats};
use crate::simulate::target;
use crate::{key, permissions};

/// Create a cluster of several servers, join one, or leave it.
///
/// The servers of a cluster, called nodes, share one log on NATS JetStream. Each has all data in its own directory. See
/// docs/cluster.md.
#[derive(Args)]
pub(crate) struct Cluster {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Init(Init),
    Join(Join),
    Leave(Leave),
}

/// Create a cluster, empty or from the data of a stopped server.
///
/// Creates the stream `roost` on the NATS servers, with three replicas. The data directory then belongs to the first
/// node: start it with `roost serve --nats`.
#[derive(Args)]
#[command(mut_arg("servers", required))]
struct Init {
    /// Confirm that clusters are not ready for important data (required). docs/cluster.md lists the known faults
    #[arg(long, required = true)]
    experimental: bool,
    /// Data directory of the first node, created if it does not exist
    #[arg(long, env = "ROOST_DATA", value_name = "DIR", default_value = DATA_DIRECTORY)]
    data: PathBuf,
    #[command(flatten)]
    nats: Nats,
}

/// Add a node to a cluster: create its data directory from a running node's data.
///
/// Set the environment variable ROOST_SERVER_KEY to an application key of the running node with the scope `admin`. The
/// new node gets the same application keys.
#[derive(Args)]
#[command(mut_arg("servers", required))]
struct Join {
    /// URL of a running node
    #[arg(long, value_name = "URL")]
    server: String,
    /// Trusted certificate authorities for an https URL, in a PEM file [default: those of the system]
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// Data directory to create; it must be empty or missing
    #[arg(long, env = "ROOST_DATA", value_name = "DIR", default_value = DATA_DIRECTORY)]
    data: PathBuf,
    #[command(flatten)]
    nats: Nats,
}

/// Turn a stopped node into a standalone server that keeps all data.
///
/// The other nodes do not change.
#[derive(Args)]
struct Leave {
    /// Data directory of the node
    #[arg(long, env = "ROOST_DATA", value_name = "DIR", default_value = DATA_DIRECTORY)]
    data: PathBuf,
    /// Leave even if the node was not stopped cleanly, lacks picture files, or differs from most other nodes. Loses the
    /// changes after its last checkpoint
    #[arg(long)]
    accept_loss: bool,
}

/// Makes an option of `roost serve` required.
fn required(servers: Arg) -> Arg {
    let help = servers.get_help().map(ToString::to_string).unwrap_or_default();
    let help = help.split(" [default:").next().unwrap_or_default().to_owned();
    servers.required(true).help(help)
}

/// Options of the log on the NATS servers.
fn options(nats: &Nats) -> anyhow::Result<JetLogOptions> {
    let options = nats.options().map_err(Exit::setting)?;
    options.ok_or_else(|| Exit::usage("name the NATS servers with --nats or ROOST_NATS"))
}

impl Cluster {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        permissions::keep_new_files_private();
        match self.command {
            Command::Init(init) => tokio::task::spawn_blocking(|| init.run()).await?,
            Command::Join(join) => join.run().await,
            Command::Leave(leave) => {
                node::leave_cluster(&leave.data, leave.accept_loss)?;
                let data = leave.data.display();
                out!("{data} has left its cluster; start it with roost serve --data {data}");
                Ok(())
            }
        }
    }
}

impl Init {
    fn run(self) -> anyhow::Result<()> {
        let data = self.data.display().to_string();
        let options = options(&self.nats)?;
        let cluster = node::init_cluster(&self.data, |cluster, after| {
            JetLog::create(&options, cluster, after).map_err(anyhow::Error::from)
        })?;
        out!(
            "made the cluster {cluster}; start its first node with {}",
            start(&data, &options.servers)
        );
        Ok(())
    }
}

impl Join {
    async fn run(self) -> anyhow::Result<()> {
        let Self { server, ca, data, nats } = self;
        let options = options(&nats)?;
        let servers = options.servers.clone();
        let of_log = tokio::task::spawn_blocking(move || JetLog::cluster(&options)).await??;
        let target = target::parse(&server, ca.as_deref())?;
        let of_node = cluster_of(&target).await.with_context(|| format!("cannot use {server}"))?;
        anyhow::ensure!(
            of_log.to_string() == of_node,
            "the log belongs to the cluster {of_log}, and {server} to the cluster {of_node}"
        );
        let to = data.clone();
        let restored = fetched(&target, move |pieces| {
            let keys = |file: &[u8]| key::restore(&to, file);
            let restored = node::restore(pieces, &to, RestoreOptions::default(), keys)?;
            node::mark_member(&to, of_log)?;
            Ok(restored)
        });
        let data = data.display().to_string();
        let restored = restored.await.with_context(|| format!("cannot create {data}"))?;
        let (users, posts, _) = restored.counts;
        out!(
            "joined the cluster {of_log} with {users} users and {posts} posts; start the node with {}",
            start(&data, &servers)
        );
        Ok(())
    }
}

/// Returns the command line that starts a node, without a password, which other users of the machine could read.
fn start(data: &str, servers: &str) -> String {
    if servers.contains('@') {
        format!("roost serve --data {data} and the same ROOST_NATS")
    } else {
        format!("roost serve --data {data} --nats {servers}")
    }
}

/// Returns the name of a running node's cluster.
async fn cluster_of(target: &Target) -> anyhow::Result<String> {
    #[derive(Deserialize)]
    struct Answer {
        cluster: Option<String>,
        message: Option<String>,
    }
    let key = target::key(target);
    let stream = target.dial().await.with_context(|| format!("cannot connect to {target:?}"))?;
    let mut request = Vec::new();
    Requests::new(target.authority(), key.as_deref()).get("/v1/cluster", &mut request);
    let mut connection = Connection::over(stream);
    let mut body = Vec::new();
    let mut keep = |bytes: &[u8]| {
        body.extend_from_slice(bytes);
        Ok(())
    };
    let response = connection.download(&request, &mut keep).await?;
    let (status, error) = (response.status, response.body.to_vec());
    let text = if (200..300).contains(&status) { &body } else { &error };
    let answer: Option<Answer> = serde_json::from_slice(text).ok();
    match answer {
        Some(Answer { cluster: Some(cluster), .. }) => Ok(cluster),
        _ if matches!(status, 401 | 403) => anyhow::bail!(
            "the server refused the request: set {} to an application key with the scope admin",
            target::SERVER_KEY
        ),
        Some(Answer { message: Some(message), .. }) => anyhow::bail!("{message}"),
        _ => anyhow::bail!("the server returned {status}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_to_start_a_node_has_no_password() {
        for (servers, expected) in [
            ("nats://a:1,tls://b", "roost serve --data d --nats nats://a:1,tls://b"),
            ("nats://u:secret@a:1,nats://b", "roost serve --data d and the same ROOST_NATS"),
        ] {
            assert_eq!(start("d", servers), expected);
        }
    }
}
