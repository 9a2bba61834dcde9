//! Drives a server with actions at their due times, and measures it.
//!
//! The loop is open: the due time of an action does not depend on the server. A bounded number of connections share the
//! sequence of actions. An idle connection waits for its turn, takes the next action, waits until it is due and sends
//! it. When all connections are busy, actions start late. Latency is measured from the due time, so the percentiles
//! show a stall in full (no coordinated omission). In a closed loop, each connection sends the next action after the
//! response to the previous one, and latency is measured from sending.
//!
//! Connections are distributed over lanes. Each lane is a thread with a runtime, a timer and a meter. At the end of
//! each window the meters are taken and reported to the watchers.

mod checked;
mod checker;
mod exchange;
mod meter;
#[cfg(test)]
mod tests;
mod timer;
mod windows;

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::{Instant, interval_at, timeout_at};

use crate::api::Api;
use crate::client::{Client, ClientError, Dial, Response};
use crate::joined::joined;
use crate::watch::Watcher;
use crate::workload::{Action, What};
pub(crate) use checked::CheckedReaders;
use checker::{Checker, Reports};
use exchange::{Exchange, Keys};
pub(crate) use meter::{Failure, Kind, Meter, Start};
use timer::Timer;
use windows::Windows;
pub(crate) use windows::{Ended, Finished, window_of};

/// Longest time for a response.
const ANSWER: Duration = Duration::from_secs(10);
/// Time after the end of the run in which actions that were due before the end may still be sent.
const GRACE: Duration = Duration::from_secs(5);

/// The options of a run that do not depend on the scenario.
#[derive(Debug, Clone)]
pub(crate) struct RunConfig {
    /// The scenario as one line of text.
    pub(crate) title: String,
    /// The kinds of requests of the actions.
    pub(crate) kinds: Vec<Kind>,
    /// End of the run. Actions that are due later are not part of it.
    pub(crate) end: Duration,
    /// Length of a window.
    pub(crate) window: Duration,
    /// Number of connections, at least 1.
    pub(crate) connections: usize,
    /// The threads of the connections.
    pub(crate) lanes: Lanes,
    /// Whether each connection sends its next action after the response to the previous one, instead of at its due
    /// time.
    pub(crate) closed: bool,
    /// Whether a request that failed on one node of a cluster is sent to another.
    pub(crate) retries: bool,
}

impl RunConfig {
    /// Number of threads; each has at least one connection.
    fn threads(&self) -> usize {
        match self.lanes {
            Lanes::Threads(threads) => threads.min(self.connections),
            #[cfg(test)]
            Lanes::Here => 1,
        }
    }
}

/// The threads that connections run on.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Lanes {
    /// Separate threads (this number, at least 1), with the most precise timers available.
    Threads(usize),
    /// Runtime and clock of the caller. A test may have paused the clock.
    #[cfg(test)]
    Here,
}

/// The state of a run, shared by its lanes.
struct Run<I> {
    api: Arc<dyn Api>,
    config: RunConfig,
    start: Instant,
    actions: Mutex<I>,
    reports: Option<Reports>,
    /// Total time in which the threads of finished lanes were busy.
    busy: Arc<Mutex<Duration>>,
    keys: Keys,
}

/// Drives the server that `dial` reaches with the actions due before the end of the run, and reports each window to the
/// watchers. During the run, the home timelines of `checked` readers are compared with accepted posts. When `cancel`
/// turns true, the run ends early, and requests in progress are not counted.
pub(crate) async fn run<D, I>(
    dial: &D,
    api: Arc<dyn Api>,
    config: RunConfig,
    actions: I,
    checked: Option<Arc<CheckedReaders>>,
    watchers: &mut [&mut dyn Watcher],
    cancel: &mut watch::Receiver<bool>,
) -> io::Result<Finished>
where
    D: Dial + Clone + Send + Sync + 'static,
    I: Iterator<Item = Action> + Send + 'static,
{
    let mut windows = Windows::new(Client::new(dial.clone()), Arc::clone(&api), &config);
    windows.begin(watchers).await?;
    let start = Instant::now();
    let (mut checker, reports) = Checker::start(checked, dial.clone(), Arc::clone(&api), start);
    let actions = Mutex::new(actions);
    let busy = Arc::default();
    let keys = Keys::new(config.retries);
    let run = Arc::new(Run { api, config, start, actions, reports, busy, keys });
    let (stop, stopped) = watch::channel(false);
    let mut lanes = start_lanes(&run, dial, &stopped, &mut windows);
    let window = run.config.window;
    let mut ends = interval_at(start + window, window);
    let interrupted = loop {
        tokio::select! {
            biased;
            () = cancelled(cancel) => break true,
            lane = lanes.join_next() => match lane {
                None => break false,
                Some(lane) => joined(lane)?,
            },
            _ = ends.tick() => windows.close(start, &checker, watchers).await?,
        }
    };
    let took = start.elapsed();
    stop.send_replace(true);
    while let Some(lane) = lanes.join_next().await {
        joined(lane)?;
    }
    if !interrupted {
        run.count_unstarted(&mut lock(&windows.meter()), cancel);
    }
    windows.close(start, &checker, watchers).await?;
    let correctness = tokio::select! {
        correctness = checker.end(!interrupted) => correctness,
        // After a regular end of the run, an interrupt skips only the final check.
        () = cancelled(cancel), if !interrupted => None,
    };
    let busy_share = run.busy_share(took);
    windows.end(&checker, correctness, Ended { took, interrupted, busy_share }, watchers)
}

/// Waits for the cancellation of a run; never returns if the sender was dropped.
pub(crate) async fn cancelled(cancel: &mut watch::Receiver<bool>) {
    if cancel.wait_for(|&cancelled| cancelled).await.is_err() {
        std::future::pending::<()>().await;
    }
}

fn start_lanes<D, I>(
    run: &Arc<Run<I>>,
    dial: &D,
    stopped: &watch::Receiver<bool>,
    windows: &mut Windows<D>,
) -> JoinSet<io::Result<()>>
where
    D: Dial + Clone + Send + Sync + 'static,
    I: Iterator<Item = Action> + Send + 'static,
{
    let mut lanes = JoinSet::new();
    let mut lane = |timer: Option<Timer>, connections: usize| {
        let meter = windows.meter();
        let (run, dial, mut stopped) = (Arc::clone(run), dial.clone(), stopped.clone());
        async move {
            let timer = timer.map_or_else(Timer::precise, Ok)?;
            let lane = Arc::new(Lane { run, timer: timer.into(), meter });
            tokio::select! {
                done = lane.drive(&dial, connections) => done,
                // The task that started this lane has ended.
                _ = stopped.wait_for(|stopped| *stopped) => Ok(()),
            }
        }
    };
    let connections = run.config.connections;
    match run.config.lanes {
        Lanes::Threads(_) => {
            let threads = run.config.threads();
            for number in 0..threads {
                let own = connections / threads + usize::from(number < connections % threads);
                let lane = lane(None, own);
                let busy = Arc::clone(&run.busy);
                lanes.spawn(async move {
                    joined(spawn_blocking(move || on_own_runtime(lane, &busy)).await)
                });
            }
        }
        #[cfg(test)]
        Lanes::Here => {
            lanes.spawn(lane(Some(Timer::Ticking), connections));
        }
    }
    lanes
}

/// Runs a lane on this thread, and measures how long the thread was busy.
fn on_own_runtime(
    lane: impl Future<Output = io::Result<()>>,
    busy: &Mutex<Duration>,
) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let done = runtime.block_on(lane);
    *lock(busy) += runtime.metrics().worker_total_busy_duration(0);
    done
}

/// Some of the connections of a run.
struct Lane<I> {
    run: Arc<Run<I>>,
    /// Timer. The task that holds the lock executes the next action; the others wait in order.
    timer: tokio::sync::Mutex<Timer>,
    meter: Arc<Mutex<Meter>>,
}

impl<I: Iterator<Item = Action> + Send + 'static> Lane<I> {
    async fn drive<D>(self: Arc<Self>, dial: &D, connections: usize) -> io::Result<()>
    where
        D: Dial + Clone + Send + Sync + 'static,
    {
        let mut workers = JoinSet::new();
        for _ in 0..connections {
            workers.spawn(Arc::clone(&self).work(Client::new(dial.clone())));
        }
        while let Some(worker) = workers.join_next().await {
            joined(worker)?;
        }
        Ok(())
    }

    /// Executes one action after the other over one connection.
    async fn work<D: Dial + Send>(self: Arc<Self>, mut client: Client<D>) -> io::Result<()> {
        let run = &self.run;
        let mut request = Vec::new();
        let last = run.start + run.config.end + GRACE;
        let mut free = Instant::now();
        while free < last {
            let mut timer = self.timer.lock().await;
            let Some(action) = run.next_action() else { return Ok(()) };
            let key = run.keys.of(&action);
            let exchange = Exchange { run, action: &action, key: key.as_deref() };
            exchange.write(&mut request);
            let mut due = run.start + action.due;
            if run.config.closed {
                due = Instant::now();
            } else {
                timer.until(due).await?;
            }
            drop(timer);
            let begun = Instant::now();
            let start = Start { late: begun.saturating_duration_since(due), ready: free <= due };
            let until = last.min(begun + ANSWER);
            let answered = exchange.answer(&mut client, &mut request, &self.meter);
            let outcome = timeout_at(until, answered).await;
            free = Instant::now();
            let outcome =
                outcome.ok().map(|outcome| outcome.map(|answer| client.response(&answer)));
            self.record(&action, start, free.saturating_duration_since(due), free, outcome);
        }
        Ok(())
    }

    /// Records the outcome of an action; `None` means a timeout.
    fn record(
        &self,
        action: &Action,
        start: Start,
        latency: Duration,
        now: Instant,
        outcome: Option<Result<Response<'_>, ClientError>>,
    ) {
        let (kind, count) = (Kind::of(action.what), action.what.count());
        let done = match &outcome {
            Some(Ok(response)) => self.run.api.done_in(response, count),
            _ => 0,
        };
        if let (Some(reports), What::Post { .. }) = (&self.run.reports, action.what) {
            let body = match &outcome {
                Some(Ok(response)) if done > 0 => Some(response.body),
                _ => None,
            };
            reports.report(&*self.run.api, action, body, now);
        }
        let waited = outcome.is_none().then_some(latency);
        let mut meter = lock(&self.meter);
        meter.started(start);
        if done > 0 {
            meter.answered(kind, action.user, latency, done);
        }
        if done < count {
            let (what, detail) = self.run.why(outcome, latency);
            let message = || format!("{} of user {}: {what}: {detail}", kind.name(), action.user);
            meter.failed(kind, Failure { kind: &what, count: count - done }, message, waited);
        }
    }
}

impl<I: Iterator<Item = Action> + Send> Run<I> {
    /// Share of the time in which the threads of the lanes were busy.
    fn busy_share(&self, took: Duration) -> f64 {
        let whole = took.as_secs_f64() * self.config.threads() as f64;
        if whole > 0.0 { lock(&self.busy).as_secs_f64() / whole } else { 0.0 }
    }

    fn next_action(&self) -> Option<Action> {
        let action = lock(&self.actions).next();
        if self.config.closed {
            return action.filter(|_| self.start.elapsed() < self.config.end);
        }
        action.filter(|action| action.due < self.config.end)
    }

    /// Counts actions as failed that were due but never got a connection. They may be very many, so counting ends when
    /// the run is cancelled.
    fn count_unstarted(&self, meter: &mut Meter, cancel: &watch::Receiver<bool>) {
        if self.config.closed {
            return;
        }
        let elapsed = self.start.elapsed();
        while let Some(action) = self.next_action().filter(|_| !*cancel.borrow()) {
            let due = action.due;
            let message = || format!("an action due after {due:.1?} found no free connection");
            let failure = Failure { kind: "not started", count: action.what.count() };
            let waited = elapsed.saturating_sub(due);
            meter.failed(Kind::of(action.what), failure, message, Some(waited));
        }
    }

    /// Returns the kind of failure of an operation, and a description.
    fn why(
        &self,
        outcome: Option<Result<Response<'_>, ClientError>>,
        latency: Duration,
    ) -> (String, String) {
        let beginning = |body| String::from_utf8_lossy(body).chars().take(200).collect();
        match outcome {
            Some(Ok(response)) if response.is_success() => {
                ("refused line".to_owned(), self.api.first_refusal(response.body))
            }
            Some(Ok(response)) => (format!("status {}", response.status), beginning(response.body)),
            Some(Err(error)) => ("connection".to_owned(), error.to_string()),
            None => ("timeout".to_owned(), format!("no answer in {latency:.1?}")),
        }
    }
}

/// Locks data that is consistent even after a panic.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
