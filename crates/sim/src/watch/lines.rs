//! Progress of a run as text, for output that is not a terminal: one line every three seconds.

use std::io::{self, Write};

use hdrhistogram::Histogram;

use super::{Plan, Watcher, Window};

/// Seconds between two lines.
const EVERY_S: f64 = 3.0;
/// Maximum delay of a window's end after the planned time, in seconds, because timers fire late.
const SLACK_S: f64 = 0.05;
/// Minimum length of a last part of the run that gets its own line, in seconds.
const REST_S: f64 = 0.5;

/// Watcher that prints a line every three seconds.
pub struct Lines<W> {
    out: W,
    kinds: Vec<&'static str>,
    since: Since,
}

/// The windows since the last line.
#[derive(Default)]
struct Since {
    seconds: f64,
    end_s: f64,
    counts: Vec<u64>,
    errors: u64,
    latencies_us: Vec<Histogram<u64>>,
    /// Highest value of these windows, because percentiles cannot be merged.
    delivery_p99_ms: Option<f64>,
    memory_bytes: Option<u64>,
}

impl<W: Write + Send> Lines<W> {
    /// Creates a watcher that prints to `out`.
    pub fn new(out: W) -> Self {
        Self { out, kinds: Vec::new(), since: Since::default() }
    }

    fn report(&mut self) -> io::Result<()> {
        let since = std::mem::take(&mut self.since);
        write!(self.out, "{:>5.0} s", since.end_s)?;
        for ((kind, count), latencies) in
            self.kinds.iter().zip(&since.counts).zip(&since.latencies_us)
        {
            let ms = |quantile| latencies.value_at_quantile(quantile) as f64 / 1_000.0;
            let (rate, p50, p99) = (*count as f64 / since.seconds, ms(0.5), ms(0.99));
            write!(self.out, "  {kind} {count} ({rate:.0}/s, p50 {p50:.2} p99 {p99:.2} ms)")?;
        }
        write!(self.out, "  errors {}", since.errors)?;
        if let Some(p99) = since.delivery_p99_ms {
            write!(self.out, "  delivery p99 {p99:.2} ms")?;
        }
        if let Some(bytes) = since.memory_bytes {
            write!(self.out, "  server {:.0} MB", bytes as f64 / 1e6)?;
        }
        writeln!(self.out)?;
        self.out.flush()
    }
}

impl Since {
    fn add(&mut self, window: &Window, latencies_us: &[Histogram<u64>]) {
        self.seconds += window.seconds;
        self.end_s = window.end_s;
        self.errors += window.kinds.iter().map(|kind| kind.errors).sum::<u64>();
        if self.latencies_us.is_empty() {
            self.latencies_us = latencies_us.to_vec();
        } else {
            for (all, latencies) in self.latencies_us.iter_mut().zip(latencies_us) {
                *all += latencies;
            }
        }
        self.counts.resize(window.kinds.len(), 0);
        for (all, kind) in self.counts.iter_mut().zip(&window.kinds) {
            *all += kind.count;
        }
        if let Some(delivery) = window.delivery.filter(|delivery| delivery.samples > 0) {
            let highest = self.delivery_p99_ms.unwrap_or_default().max(delivery.p99_ms);
            self.delivery_p99_ms = Some(highest);
        }
        self.memory_bytes = window.server.map(|server| server.memory_bytes).or(self.memory_bytes);
    }

    fn is_something(&self) -> bool {
        self.errors > 0 || self.counts.iter().any(|&count| count > 0)
    }
}

impl<W: Write + Send> Watcher for Lines<W> {
    fn begin(&mut self, plan: &Plan) -> io::Result<()> {
        self.kinds.clone_from(&plan.kinds);
        self.since = Since::default();
        Ok(())
    }

    fn window(&mut self, window: &Window, latencies_us: &[Histogram<u64>]) -> io::Result<()> {
        self.since.add(window, latencies_us);
        if self.since.seconds + SLACK_S >= EVERY_S { self.report() } else { Ok(()) }
    }

    fn end(&mut self) -> io::Result<()> {
        // A few milliseconds with the last responses get no line of their own.
        let is_rest = self.since.seconds < REST_S && self.since.errors == 0;
        if self.since.is_something() && !is_rest { self.report() } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::watch::{Delivery, ServerLoad, WindowKind};

    /// The lines for windows of `seconds`, each with a post of the given latency.
    fn reported(seconds: f64, posts_ms: &[u64], change: impl Fn(usize, &mut Window)) -> String {
        let mut out = Vec::new();
        let mut lines = Lines::new(&mut out);
        let plan = Plan {
            title: String::new(),
            duration: Duration::from_secs(60),
            window: Duration::from_secs_f64(seconds),
            kinds: vec!["posts"],
            closed: false,
        };
        lines.begin(&plan).unwrap();
        for (at, ms) in posts_ms.iter().enumerate() {
            let mut latencies = Histogram::new_with_bounds(1, 3_600_000_000, 3).unwrap();
            latencies.record(ms * 1_000).unwrap();
            let kinds = vec![WindowKind { count: 1, ..WindowKind::default() }];
            let end_s = (at + 1) as f64 * seconds;
            let mut window = Window { end_s, seconds, kinds, ..Window::default() };
            change(at, &mut window);
            lines.window(&window, &[latencies]).unwrap();
        }
        lines.end().unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_line_reports_of_all_windows_of_three_seconds() {
        assert_eq!(
            reported(1.0, &[1, 1, 4, 2, 2, 2], |_, _| {}),
            "    3 s  posts 3 (1/s, p50 1.00 p99 4.00 ms)  errors 0\n    \
             6 s  posts 3 (1/s, p50 2.00 p99 2.00 ms)  errors 0\n"
        );
    }

    #[test]
    fn what_is_left_at_the_end_is_reported_unless_nothing_happened() {
        let ends = |text: &str| {
            let end = |line: &str| line.trim_start().split_once(' ').unwrap().0.parse().unwrap();
            text.lines().map(end).collect::<Vec<u32>>()
        };
        assert_eq!(ends(&reported(1.0, &[1; 5], |_, _| {})), [3, 5]);
        assert_eq!(ends(&reported(0.25, &[1; 12], |_, _| {})), [3]);
        assert_eq!(ends(&reported(7.0, &[1; 2], |_, _| {})), [7, 14]);
        let idle = |at, window: &mut Window| window.kinds[0].count = u64::from(at < 3);
        assert_eq!(ends(&reported(1.0, &[1; 4], idle)), [3]);
    }

    #[test]
    fn errors_delivery_and_memory_are_reported_when_known() {
        let line = reported(1.0, &[1, 1, 1], |at, window| {
            window.kinds[0].errors = at as u64;
            let p99_ms = [5.0, 9.0, 0.0][at];
            let samples = u64::from(p99_ms > 0.0);
            window.delivery = Some(Delivery { samples, p99_ms, ..Delivery::default() });
            let memory_bytes = (at as u64 + 1) * 100_000_000;
            window.server = (at < 2).then_some(ServerLoad { memory_bytes, cores: 1.0 });
        });
        assert!(line.ends_with("  errors 3  delivery p99 9.00 ms  server 200 MB\n"), "{line}");
    }
}
