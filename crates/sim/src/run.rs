//! Drives a server with actions as they fall due, and measures it.
//!
//! The loop is open: when an action is due does not depend on the server. A bounded number of
//! connections share the sequence; a connection that is free takes the next action, waits for its
//! time and does it. When all are busy, actions start late, and since latency counts from when an
//! action was due, a stall shows in full in the percentiles (no coordinated omission).
//!
//! Timers tick in milliseconds. So that half a tick does not pass for latency, an action may start
//! up to one tick early, and then its latency counts from its start.

mod meter;
mod script;
#[cfg(test)]
mod tests;

use std::io::{self, Write};
use std::panic::resume_unwind;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, interval_at, sleep_until, timeout_at};

use crate::client::{Client, ClientError, Dial, Response};
use crate::workload::Action;
pub(crate) use meter::{Failure, Kind, Meter, Start};
pub(crate) use script::Script;
use script::{count_of, done_in, first_refusal, kind_of};

/// The resolution of timers.
const TICK: Duration = Duration::from_millis(1);
/// How long an answer may take.
const ANSWER: Duration = Duration::from_secs(10);
/// How long after the end actions that were due before it may still be done.
const GRACE: Duration = Duration::from_secs(5);
/// Time between two lines about the run.
const REPORT_EVERY: Duration = Duration::from_secs(3);

/// A run under way, shared by its connections.
struct Run<I> {
    script: Script,
    start: Instant,
    /// Actions due from here on are not part of the run.
    end: Duration,
    actions: Mutex<I>,
    meter: Mutex<Meter>,
}

/// A run that is over.
pub(crate) struct Finished {
    pub(crate) meter: Meter,
    /// How long it took, from the start to the last answer.
    pub(crate) took: Duration,
    /// Whether it was cut short.
    pub(crate) interrupted: bool,
}

/// Drives the server that `dial` reaches with the actions due before `end`, over so many
/// connections, and writes a line about each window to `out`. Stops early when `cancel` turns
/// true; requests then under way are not counted.
pub(crate) async fn run<D, I>(
    dial: &D,
    script: Script,
    actions: I,
    end: Duration,
    connections: usize,
    out: &mut (dyn Write + Send),
    cancel: &mut watch::Receiver<bool>,
) -> io::Result<Finished>
where
    D: Dial + Clone + Send + Sync + 'static,
    I: Iterator<Item = Action> + Send + 'static,
{
    let start = Instant::now();
    let (actions, meter) = (Mutex::new(actions), Mutex::new(Meter::new(&script.kinds)));
    let run = Arc::new(Run { script, start, end, actions, meter });
    let mut workers = JoinSet::new();
    for _ in 0..connections {
        workers.spawn(Arc::clone(&run).work(Client::new(dial.clone())));
    }
    let mut report = interval_at(start + REPORT_EVERY, REPORT_EVERY);
    let interrupted = loop {
        tokio::select! {
            biased;
            () = cancelled(cancel) => break true,
            worker = workers.join_next() => match worker {
                None => break false,
                Some(Ok(())) => {}
                Some(Err(panic)) => resume_unwind(panic.into_panic()),
            },
            _ = report.tick() => report_window(&run, out)?,
        }
    };
    let took = start.elapsed();
    workers.shutdown().await;
    if !interrupted {
        run.count_unstarted();
    }
    let meter = std::mem::replace(&mut *lock(&run.meter), Meter::new(&[]));
    Ok(Finished { meter, took, interrupted })
}

/// Waits until a run is to be cut short; if nobody can say so any more, for ever.
pub(crate) async fn cancelled(cancel: &mut watch::Receiver<bool>) {
    if cancel.wait_for(|&cancelled| cancelled).await.is_err() {
        std::future::pending::<()>().await;
    }
}

impl<I: Iterator<Item = Action> + Send> Run<I> {
    /// Does one action after the other over one connection.
    async fn work<D: Dial + Send>(self: Arc<Self>, mut client: Client<D>) {
        let mut request = Vec::new();
        let last = self.start + self.end + GRACE;
        while Instant::now() < last {
            let Some(action) = self.next_action() else { return };
            self.script.write(&action, &mut request);
            let due = self.start + action.due;
            let ready = Instant::now() <= due;
            sleep_until(due - TICK.min(action.due)).await;
            let begun = Instant::now();
            lock(&self.meter).started(Start { late: begun.saturating_duration_since(due), ready });
            let outcome = timeout_at(last.min(begun + ANSWER), client.send(&request)).await;
            let latency = begun.min(due).elapsed();
            self.record(&action, latency, outcome.ok());
        }
    }

    fn next_action(&self) -> Option<Action> {
        lock(&self.actions).next().filter(|action| action.due < self.end)
    }

    /// Counts the outcome of an action; without an outcome, it took too long.
    fn record(
        &self,
        action: &Action,
        latency: Duration,
        outcome: Option<Result<Response<'_>, ClientError>>,
    ) {
        let (kind, count) = (kind_of(action.what), count_of(action.what));
        let done = match &outcome {
            Some(Ok(response)) => done_in(response, count),
            _ => 0,
        };
        let waited = outcome.is_none().then_some(latency);
        let mut meter = lock(&self.meter);
        if done > 0 {
            meter.answered(kind, action.person, latency, done);
        }
        if done < count {
            let (what, detail) = why(outcome, latency);
            let message = format!("{} of person {}: {what}: {detail}", kind.name(), action.person);
            meter.failed(kind, Failure { kind: what, message, count: count - done }, waited);
        }
    }

    /// Actions that were due but found no free connection to the last have failed too.
    fn count_unstarted(&self) {
        let elapsed = self.start.elapsed();
        while let Some(action) = self.next_action() {
            let failure = Failure {
                kind: "not started".to_owned(),
                message: format!("an action due after {:.1?} found no free connection", action.due),
                count: count_of(action.what),
            };
            let waited = elapsed.saturating_sub(action.due);
            lock(&self.meter).failed(kind_of(action.what), failure, Some(waited));
        }
    }
}

/// Why something in a request is not done: the kind of failure, and what there is to say about it.
fn why(outcome: Option<Result<Response<'_>, ClientError>>, latency: Duration) -> (String, String) {
    let beginning = |body| String::from_utf8_lossy(body).chars().take(200).collect();
    match outcome {
        Some(Ok(response)) if response.is_success() => {
            ("refused line".to_owned(), first_refusal(response.body))
        }
        Some(Ok(response)) => (format!("status {}", response.status), beginning(response.body)),
        Some(Err(error)) => ("connection".to_owned(), error.to_string()),
        None => ("timeout".to_owned(), format!("no answer in {latency:.1?}")),
    }
}

fn report_window<I>(run: &Run<I>, out: &mut (dyn Write + Send)) -> io::Result<()> {
    let mut meter = lock(&run.meter);
    write!(out, "{:>5.0} s", run.start.elapsed().as_secs_f64())?;
    let mut errors = 0;
    for window in &meter.window {
        errors += window.errors;
        write!(
            out,
            "  {} {} ({:.0}/s, p50 {:.2} p99 {:.2} ms)",
            window.kind.name(),
            window.answered,
            window.answered as f64 / REPORT_EVERY.as_secs_f64(),
            window.quantile_ms(0.5),
            window.quantile_ms(0.99),
        )?;
    }
    meter.clear_window();
    writeln!(out, "  errors {errors}")?;
    out.flush()
}

/// Nothing is ever left half done under these locks, so a panic elsewhere does not spoil them.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
