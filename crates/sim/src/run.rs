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
#[cfg(test)]
mod tests;

use std::io::{self, Write};
use std::panic::resume_unwind;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, interval_at, sleep_until, timeout_at};

use crate::client::{Client, ClientError, Dial, Requests, Response};
use crate::texts;
use crate::workload::{Action, What};
pub(crate) use meter::{Failure, Kind, Meter, Start};

/// The resolution of timers.
const TICK: Duration = Duration::from_millis(1);
/// How long an answer may take.
const ANSWER: Duration = Duration::from_secs(10);
/// How long after the end actions that were due before it may still be done.
const GRACE: Duration = Duration::from_secs(5);
/// Time between two lines about the run.
const REPORT_EVERY: Duration = Duration::from_secs(3);
/// How many posts or mentions are read at once.
const PAGE: u32 = 20;

/// How to turn actions into requests.
pub(crate) struct Script {
    pub(crate) requests: Requests,
    /// Seed of the handles.
    pub(crate) seed: u64,
}

impl Script {
    /// Replaces `request` with the action's request.
    fn write(&self, action: &Action, request: &mut Vec<u8>) {
        let person = action.person;
        match action.what {
            What::ReadHome => {
                self.requests.get(&format!("/v1/users/{person}/timeline?limit={PAGE}"), request);
            }
            What::ReadMentions => {
                self.requests.get(&format!("/v1/users/{person}/mentions?limit={PAGE}"), request);
            }
            What::Post { kind, text_seed } => {
                let kind = kind.map(|mentioned| texts::handle(self.seed, mentioned));
                let text = texts::seeded_post_text(text_seed, kind.as_deref());
                let body = format!("{{\"text\":\"{text}\"}}");
                self.requests.post(&format!("/v1/users/{person}/posts"), body.as_bytes(), request);
            }
        }
    }
}

fn kind_of(what: What) -> Kind {
    match what {
        What::Post { .. } => Kind::Post,
        What::ReadHome => Kind::Home,
        What::ReadMentions => Kind::Mentions,
    }
}

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
    let (actions, meter) = (Mutex::new(actions), Mutex::new(Meter::new()));
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
    let meter = std::mem::replace(&mut *lock(&run.meter), Meter::new());
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
        let kind = kind_of(action.what);
        let (failure, waited) = match outcome {
            Some(Ok(response)) if response.is_success() => {
                lock(&self.meter).answered(kind, action.person, latency);
                return;
            }
            Some(Ok(response)) => {
                let body = String::from_utf8_lossy(response.body);
                let body: String = body.chars().take(200).collect();
                ((format!("status {}", response.status), body), None)
            }
            Some(Err(error)) => (("connection".to_owned(), error.to_string()), None),
            None => (("timeout".to_owned(), format!("no answer in {latency:.1?}")), Some(latency)),
        };
        let (what, detail) = failure;
        let message = format!("{} of person {}: {what}: {detail}", kind.name(), action.person);
        lock(&self.meter).failed(kind, Failure { kind: what, message }, waited);
    }

    /// Actions that were due but found no free connection to the last have failed too.
    fn count_unstarted(&self) {
        let elapsed = self.start.elapsed();
        while let Some(action) = self.next_action() {
            let failure = Failure {
                kind: "not started".to_owned(),
                message: format!("an action due after {:.1?} found no free connection", action.due),
            };
            let waited = elapsed.saturating_sub(action.due);
            lock(&self.meter).failed(kind_of(action.what), failure, Some(waited));
        }
    }
}

fn report_window<I>(run: &Run<I>, out: &mut (dyn Write + Send)) -> io::Result<()> {
    let mut meter = lock(&run.meter);
    write!(out, "{:>5.0} s", run.start.elapsed().as_secs_f64())?;
    let mut errors = 0;
    for (kind, window) in Kind::ALL.into_iter().zip(&meter.window) {
        errors += window.errors;
        write!(
            out,
            "  {} {} ({:.0}/s, p50 {:.2} p99 {:.2} ms)",
            kind.name(),
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
