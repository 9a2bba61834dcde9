//! Log of a cluster: its options from the settings, and opening it.

use std::fs::File;

use anyhow::Context as _;
use jetlog::{JetLog, JetLogOptions};
use node::{Applied, ClusterId, Log, LogError, NodeId};

use crate::settings::{Nats, Policy, Settings};

impl Nats {
    /// Options of the log on the NATS servers, if any are set.
    ///
    /// # Errors
    /// If an address is wrong.
    pub(crate) fn options(&self) -> anyhow::Result<Option<JetLogOptions>> {
        let Some(servers) = &self.servers else { return Ok(None) };
        let (credentials, tls_ca) = (self.creds.clone(), self.tls_ca.clone());
        let options = JetLogOptions { credentials, tls_ca, ..JetLogOptions::new(servers) };
        options.check()?;
        Ok(Some(options))
    }
}

/// Opens the log for a node. May block.
pub(crate) fn open_log(
    options: &JetLogOptions,
    cluster: ClusterId,
    node: NodeId,
    applied: Applied,
) -> Result<Box<dyn Log>, LogError> {
    Ok(Box::new(JetLog::open(options, (cluster, node), applied)?))
}

impl Settings {
    /// Options of the cluster's log; `None` for a standalone server.
    ///
    /// # Errors
    /// If settings contradict each other, an address is wrong, or a file cannot be read.
    pub(crate) fn cluster_log(&self) -> anyhow::Result<Option<JetLogOptions>> {
        let Nats { creds, tls_ca, .. } = &self.nats;
        let Some(options) = self.nats.options()? else {
            anyhow::ensure!(
                creds.is_none() && tls_ca.is_none(),
                "--nats-creds and --nats-tls-ca are for the log of a cluster: add --nats nats://HOST:4222"
            );
            return Ok(None);
        };
        anyhow::ensure!(
            self.durability.is_none_or(|policy| policy == Policy::Always),
            "with --nats every change is synced by the NATS servers before it is acknowledged: remove --durability"
        );
        anyhow::ensure!(
            self.archive.is_none(),
            "--archive copies the log of the data directory, and with --nats there is none: make backups with roost backup"
        );
        for (file, flag) in [(creds, "--nats-creds"), (tls_ca, "--nats-tls-ca")] {
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
        let nats = ["--nats", "nats://a:1,nats://b:2"];
        for (arguments, expected) in [
            (&[][..], "none"),
            (&nats, "nats://a:1,nats://b:2"),
            (&[nats[0], nats[1], "--durability", "always"], "nats://a:1,nats://b:2"),
            (&[nats[0], nats[1], "--durability", "never"], "remove --durability"),
            (&[nats[0], nats[1], "--archive", "x"], "roost backup"),
            (&["--nats-creds", "x"], "add --nats"),
            (&["--nats-tls-ca", "x"], "add --nats"),
            (&["--nats", "http://a:1"], "nats://HOST:4222"),
            (&[nats[0], nats[1], "--nats-creds", "no/such"], "cannot read no/such (--nats-creds)"),
            (
                &[nats[0], nats[1], "--nats-tls-ca", "no/such"],
                "cannot read no/such (--nats-tls-ca)",
            ),
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
