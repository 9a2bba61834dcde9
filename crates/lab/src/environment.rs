//! Machine and version of a trial.

use std::fs;

use serde::{Deserialize, Serialize};

use crate::threads;

/// Machine and version.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Environment {
    /// Model of the processor.
    pub processor: String,
    /// Cores that the process may use.
    pub cores: u64,
    /// Memory of the machine in MiB.
    pub memory_mib: u64,
    /// Operating system and its version.
    pub system: String,
    /// Version of roost, and whether it was built with optimizations.
    pub version: String,
    /// Load average of the last minute, at the start of the trial.
    pub load: f64,
}

impl Environment {
    /// Describes this machine at this time. Values that the system does not report are empty or 0.
    #[must_use]
    pub fn here(version: &str) -> Self {
        let read = |path| fs::read_to_string(path).unwrap_or_default();
        let field = |text: &str, name: &str| {
            let line = text.lines().find(|line| line.starts_with(name))?;
            Some(line.split_once(':')?.1.trim().to_owned())
        };
        let memory = field(&read("/proc/meminfo"), "MemTotal");
        let memory_kib = memory.and_then(|text| text.split(' ').next()?.parse::<u64>().ok());
        Self {
            processor: field(&read("/proc/cpuinfo"), "model name").unwrap_or_default(),
            cores: threads::cores(),
            memory_mib: memory_kib.unwrap_or_default() / 1_024,
            system: format!(
                "{} {}",
                std::env::consts::OS,
                read("/proc/sys/kernel/osrelease").trim()
            ),
            version: version.to_owned(),
            load: read("/proc/loadavg")
                .split(' ')
                .next()
                .and_then(|load| load.parse().ok())
                .unwrap_or(0.0),
        }
    }
}
