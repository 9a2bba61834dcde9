//! Figures of processes from Linux's `/proc`.

use std::fs;

/// Ticks per second of processor times in `/proc`, on every architecture that Linux still supports.
const TICKS: f64 = 100.0;

/// Memory of a process, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// Current resident memory.
    pub resident: u64,
    /// Maximum resident memory so far.
    pub peak: u64,
}

/// Memory of a process; `None` if it has ended.
#[must_use]
pub fn memory(process: u32) -> Option<Memory> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let bytes = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        Some(line.trim().strip_suffix(" kB")?.parse::<u64>().ok()? << 10)
    };
    Some(Memory { resident: bytes("VmRSS:")?, peak: bytes("VmHWM:")? })
}

/// Number of bytes that this process has read so far, whether from a disk or from the system's cache.
#[must_use]
pub fn bytes_read() -> u64 {
    let io = fs::read_to_string("/proc/self/io").unwrap();
    let read = io.lines().find_map(|line| line.strip_prefix("rchar: "));
    read.unwrap().parse().unwrap()
}

/// Processor time of a process, in seconds; `None` if it has ended.
#[must_use]
pub fn processor_seconds(process: u32) -> Option<f64> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The fields begin after the last parenthesis, because the name of the process may contain any text.
    let (_, fields) = stat.rsplit_once(") ")?;
    let ticks = fields.split(' ').skip(11).take(2).filter_map(|field| field.parse::<f64>().ok());
    Some(ticks.sum::<f64>() / TICKS)
}

/// Processor time of this thread, in nanoseconds. Other work on the machine does not affect it.
#[must_use]
pub fn thread_processor_ns() -> u64 {
    of_schedstat(&fs::read_to_string("/proc/thread-self/schedstat").unwrap()).unwrap()
}

/// Processor time of the thread of this process with this name, in nanoseconds; `None` if there is none.
#[must_use]
pub fn named_thread_processor_ns(name: &str) -> Option<u64> {
    let tasks = fs::read_dir("/proc/self/task").ok()?.filter_map(Result::ok);
    let is_named = |comm: String| comm.trim_end() == name;
    let task = tasks
        .map(|task| task.path())
        .find(|task| fs::read_to_string(task.join("comm")).is_ok_and(is_named))?;
    of_schedstat(&fs::read_to_string(task.join("schedstat")).ok()?)
}

fn of_schedstat(stat: &str) -> Option<u64> {
    stat.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_memory_and_has_used_time() {
        let this = std::process::id();
        let before = memory(this).unwrap();
        assert!(before.peak >= before.resident && before.resident > 100_000, "{before:?}");
        let filled = vec![1_u8; 64 << 20];
        assert!(memory(this).unwrap().peak >= before.resident + (60 << 20), "{}", filled.len());
        assert!(processor_seconds(this).is_some() && thread_processor_ns() > 0);
    }

    #[test]
    fn threads_are_found_by_their_names() {
        let thread = std::thread::Builder::new().name("busy".into());
        let used = thread.spawn(|| named_thread_processor_ns("busy")).unwrap().join().unwrap();
        assert!(used.is_some());
        assert_eq!(named_thread_processor_ns("nobody"), None);
    }

    #[test]
    fn a_process_that_does_not_exist_has_no_figures() {
        // This number is greater than any process id of Linux.
        assert_eq!((memory(u32::MAX), processor_seconds(u32::MAX)), (None, None));
    }
}
