//! Memory and processor time of this process. Only on Linux is the memory known; on other systems it is 0.

/// Resident memory, in bytes.
#[must_use]
pub fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    kib.unwrap_or(0) * 1_024
}

/// Processor time used by all threads so far, in seconds.
#[must_use]
pub fn cpu_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_running_process_has_memory_and_used_time() {
        assert!(super::cpu_seconds() > 0.0);
        if cfg!(target_os = "linux") {
            assert!(super::resident_bytes() > 100_000);
        }
    }
}
