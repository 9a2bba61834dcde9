//! Measurements of a trial: the duration of a workload, its processor time, and its progress.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use crate::experiment::Quantity;

/// Maximum number of marks per trial.
pub(crate) const MARKS: usize = 100;

/// Measurements of one trial.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// Time of the measured part, in nanoseconds.
    pub wall_ns: u64,
    /// Processor time of the process and of its child processes in the measured part, in nanoseconds.
    pub cpu_ns: u64,
    /// Number of operations in the measured part.
    pub operations: u64,
    /// Checksum of the answers.
    pub checksum: u64,
    /// Times at which each further [`Measured::mark_operations`] operations had ended, in nanoseconds from the start.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub marks_ns: Vec<u64>,
    /// Number of operations between two marks.
    #[serde(default)]
    pub mark_operations: u64,
    /// Further quantities by name, with the unit at the end of the name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub quantities: BTreeMap<String, f64>,
}

/// Running measurement of time and processor time.
pub(crate) struct Stopwatch {
    start: Instant,
    cpu: Duration,
}

impl Stopwatch {
    pub(crate) fn start() -> Self {
        Self { cpu: cpu_time(), start: Instant::now() }
    }

    /// Start of the measurement, to which marks are relative.
    pub(crate) fn started(&self) -> Instant {
        self.start
    }

    /// Ends the measurement. `marks` are those of all clients, which all did the same number of operations.
    pub(crate) fn end(self, operations: u64, marks: Vec<Marks>) -> Measured {
        // In tests, trials share a process: a child process of another trial may have ended meanwhile.
        let (wall, cpu) = (self.start.elapsed(), cpu_time().saturating_sub(self.cpu));
        let (marks_ns, mark_operations) = Marks::together(marks);
        Measured {
            wall_ns: nanoseconds(wall),
            cpu_ns: nanoseconds(cpu),
            operations,
            marks_ns,
            mark_operations,
            ..Measured::default()
        }
    }
}

/// Progress of a client: times after equal numbers of operations, at most [`MARKS`] of them.
pub(crate) struct Marks {
    start: Instant,
    every: usize,
    done: usize,
    at_ns: Vec<u64>,
}

impl Marks {
    /// Creates marks for a client with this many operations.
    pub(crate) fn new(start: Instant, operations: usize) -> Self {
        let every = operations.div_ceil(MARKS).max(1);
        Self { start, every, done: 0, at_ns: Vec::with_capacity(MARKS) }
    }

    /// Counts a finished operation.
    pub(crate) fn done(&mut self) {
        self.done += 1;
        if self.done == self.every {
            self.done = 0;
            self.at_ns.push(nanoseconds(self.start.elapsed()));
        }
    }

    /// Combines the marks of all clients. Also returns the number of operations between two marks.
    fn together(clients: Vec<Self>) -> (Vec<u64>, u64) {
        let operations = clients.first().map_or(0, |client| client.every);
        let (marks, every) =
            Self::of(clients.into_iter().flat_map(|client| client.at_ns).collect());
        (marks, every * operations as u64)
    }

    /// Returns marks for operations that ended at these times, and the number of operations between two marks.
    pub(crate) fn of(mut done_ns: Vec<u64>) -> (Vec<u64>, u64) {
        done_ns.sort_unstable();
        let every = done_ns.len().div_ceil(MARKS).max(1);
        let marks = done_ns.chunks_exact(every).filter_map(|share| share.last().copied());
        (marks.collect(), every as u64)
    }
}

impl Measured {
    /// Adds a quantity.
    pub(crate) fn put(&mut self, quantity: &Quantity, value: f64) {
        self.quantities.insert(quantity.name.to_owned(), value);
    }
}

/// Durations of requests, in nanoseconds, up to 4 s each.
#[derive(Default)]
pub(crate) struct Latencies(Vec<u32>);

impl Latencies {
    pub(crate) fn for_requests(count: usize) -> Self {
        Self(Vec::with_capacity(count))
    }

    pub(crate) fn add(&mut self, took: Duration) {
        self.0.push(u32::try_from(took.as_nanos()).unwrap_or(u32::MAX));
    }

    pub(crate) fn add_all(&mut self, mut other: Self) {
        self.0.append(&mut other.0);
    }

    /// Adds the median and the 99th percentile to the measurements.
    pub(crate) fn put(mut self, measured: &mut Measured) {
        self.0.sort_unstable();
        measured.put(&Quantity::P50, self.percentile_us(50));
        measured.put(&Quantity::P99, self.percentile_us(99));
    }

    /// The median in microseconds.
    pub(crate) fn median_us(mut self) -> f64 {
        self.0.sort_unstable();
        self.percentile_us(50)
    }

    /// Percentile of the durations, which must be sorted, in microseconds; 0 if there are none.
    fn percentile_us(&self, percent: usize) -> f64 {
        let rank = (self.0.len() * percent).div_ceil(100).max(1) - 1;
        self.0.get(rank).map_or(0.0, |took| f64::from(*took) / 1e3)
    }
}

/// Resident memory of this process in bytes; 0 if the system does not report it.
pub(crate) fn memory_bytes() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = statm.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok());
    pages.unwrap_or_default() * rustix::param::page_size() as u64
}

pub(crate) fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Processor time of this process and of its running child processes, because some designs have their own process.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let children: u64 = children().into_iter().map(cpu_time_ns_of).sum();
    Duration::try_from(time).unwrap_or_default() + Duration::from_nanos(children)
}

/// Entries of a folder such as `/proc/self/task`.
fn numbered(folder: &str) -> Vec<PathBuf> {
    std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

/// Child processes of this process.
fn children() -> Vec<u32> {
    let of_thread = |thread: PathBuf| {
        let text = std::fs::read_to_string(thread.join("children")).unwrap_or_default();
        text.split_whitespace().filter_map(|number| number.parse().ok()).collect::<Vec<_>>()
    };
    numbered("/proc/self/task").into_iter().flat_map(of_thread).collect()
}

/// Processor time of all threads of a process, in nanoseconds; 0 if the system does not report it.
fn cpu_time_ns_of(process: u32) -> u64 {
    let of_thread = |thread: PathBuf| {
        let text = std::fs::read_to_string(thread.join("schedstat")).unwrap_or_default();
        text.split(' ').next().and_then(|time| time.parse::<u64>().ok()).unwrap_or_default()
    };
    numbered(&format!("/proc/{process}/task")).into_iter().map(of_thread).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_of_clients_become_those_of_one() {
        let start = Instant::now();
        let client = |at_ns: Vec<u64>| Marks { start, every: 1, done: 0, at_ns };
        let two = vec![client(vec![1, 4]), client(vec![2, 3])];
        assert_eq!(Marks::together(two), (vec![1, 2, 3, 4], 1));
        let many = (0..10).map(|number| client((0..50).map(|at| at * 10 + number).collect()));
        let (together, operations) = Marks::together(many.collect());
        assert_eq!((together.len(), operations), (MARKS, 5));
        assert_eq!((together[0], together[MARKS - 1]), (4, 499));
        assert_eq!(Marks::together(Vec::new()), (Vec::new(), 0));
    }

    #[test]
    fn percentiles_are_those_of_all_clients() {
        let mut all = Latencies::default();
        for client in 0..4 {
            let mut latencies = Latencies::for_requests(50);
            (0..50).for_each(|nth| latencies.add(Duration::from_micros(1 + client + 4 * nth)));
            all.add_all(latencies);
        }
        let mut measured = Measured::default();
        all.put(&mut measured);
        let quantity = |quantity: &Quantity| measured.quantities[quantity.name];
        assert_eq!((quantity(&Quantity::P50), quantity(&Quantity::P99)), (100.0, 198.0));
    }

    #[test]
    fn a_client_marks_equal_shares() {
        let mut marks = Marks::new(Instant::now(), 1_000);
        (0..995).for_each(|_| marks.done());
        assert_eq!(marks.at_ns.len(), 99);
    }
}
