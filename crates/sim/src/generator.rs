//! Resource usage of the generator itself, if the system reports it.

use std::time::Duration;

use crate::summary::GeneratorSummary;

/// CPU time that this process has used.
pub(crate) fn processor_time() -> Duration {
    let used = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::try_from(used).unwrap_or_default()
}

/// Resource usage of this process in a run of this length. `begun` is the CPU time at the start of the run.
pub(crate) fn used_since(begun: Duration, run: Duration) -> Option<GeneratorSummary> {
    let used = processor_time().saturating_sub(begun);
    let cores = used.as_secs_f64() / run.as_secs_f64().max(f64::MIN_POSITIVE);
    Some(GeneratorSummary { cores, memory_bytes: memory_bytes()? })
}

/// Resident memory of this process.
fn memory_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kibibytes * 1024)
}
