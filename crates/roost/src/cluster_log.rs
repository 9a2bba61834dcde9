//! The log of a cluster: which one the settings ask for, and opening it.

use std::fs::File;
use std::path::PathBuf;

use anyhow::Context as _;
use jetlog::{JetLog, JetLogOptions};
use node::{Applied, ClusterId, LogError, NodeId, SharedLog};

use crate::settings::{Policy, Settings};

/// The log on these NATS servers.
pub(crate) fn log_options(
    servers: &str,
    credentials: Option<PathBuf>,
    tls_ca: Option<PathBuf>,
) -> JetLogOptions {
    JetLogOptions { credentials, tls_ca, ..JetLogOptions::new(servers) }
}

/// Opens the log for a node. Blocks.
pub(crate) fn open_log(
    options: &JetLogOptions,
    cluster: ClusterId,
    node: NodeId,
    applied: Applied,
) -> Result<Box<dyn SharedLog>, LogError> {
    Ok(Box::new(JetLog::open(options, (cluster, node), applied)?))
}

impl Settings {
    /// The log of the cluster, if the server is a node of one.
    ///
    /// # Errors
    /// If there are settings that do not go together, an address is wrong, or a file cannot be read.
    pub(crate) fn cluster_log(&self) -> anyhow::Result<Option<JetLogOptions>> {
        let Some(servers) = &self.log else {
            anyhow::ensure!(
                self.nats_creds.is_none() && self.nats_tls_ca.is_none(),
                "--nats-creds and --nats-tls-ca are for the log of a cluster: add --log nats://HOST:4222"
            );
            return Ok(None);
        };
        anyhow::ensure!(
            self.durability.is_none_or(|policy| policy == Policy::Always),
            "with --log every change is synced by the NATS servers before it is acknowledged: remove --durability"
        );
        anyhow::ensure!(
            self.archive.is_none(),
            "--archive copies the log of the data directory, and with --log there is none: make backups with roost backup"
        );
        let options = log_options(servers, self.nats_creds.clone(), self.nats_tls_ca.clone());
        options.check()?;
        for (file, flag) in
            [(&self.nats_creds, "--nats-creds"), (&self.nats_tls_ca, "--nats-tls-ca")]
        {
            if let Some(file) = file {
                let cannot = || format!("cannot read {} ({flag})", file.display());
                File::open(file).with_context(cannot)?;
            }
        }
        Ok(Some(options))
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        settings: Settings,
    }

    #[test]
    fn what_a_cluster_cannot_have_is_refused() {
        let log = ["--log", "nats://a:1,nats://b:2"];
        for (arguments, expected) in [
            (&[][..], "none"),
            (&log, "nats://a:1,nats://b:2"),
            (&[log[0], log[1], "--durability", "always"], "nats://a:1,nats://b:2"),
            (&[log[0], log[1], "--durability", "never"], "remove --durability"),
            (&[log[0], log[1], "--archive", "x"], "roost backup"),
            (&["--nats-creds", "x"], "add --log"),
            (&["--nats-tls-ca", "x"], "add --log"),
            (&["--log", "http://a:1"], "nats://HOST:4222"),
            (&[log[0], log[1], "--nats-creds", "no/such"], "cannot read no/such (--nats-creds)"),
            (&[log[0], log[1], "--nats-tls-ca", "no/such"], "cannot read no/such (--nats-tls-ca)"),
        ] {
            let line = Line::parse_from(["roost"].iter().chain(arguments));
            let found = match line.settings.cluster_log() {
                Ok(log) => log.map_or("none".into(), |log| log.servers),
                Err(error) => error.to_string(),
            };
            assert!(found.contains(expected), "{arguments:?}: {found}");
        }
    }
}
