//! The consistency checker: compares timelines with accepted posts during a run, and measures the delivery lag.
//!
//! Lanes report every accepted post of a checked author. The checker samples some of these posts: it reads a follower's
//! home, the author's posts and, if the post mentions a user, that user's mentions, until the post appears. The
//! delivery lag is the time until the post is in the home. After the run, the homes of all readers are compared with
//! all accepted posts.
//!
//! If newer posts have pushed a post off the page, the lag is measured up to the read that shows this, so it is an
//! upper bound. A post that is not found within [`PATIENCE`] after it was accepted is missing. A post whose request
//! failed may or may not exist.

mod book;

use std::collections::HashSet;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hdrhistogram::Histogram;
use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use tokio::sync::{mpsc, oneshot};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, sleep, timeout};

use super::checked::{CheckedReaders, Reader};
use super::lock;
use super::meter::{histogram, micros, quantile_ms};
use crate::api::{Api, PAGE, Timeline, TimelinePost};
use crate::client::{Client, Dial};
use crate::joined::joined;
use crate::summary::Correctness;
use crate::watch::Delivery;
use crate::workload::{Action, PostKind, What};
use book::{Book, Fault};

/// Longest time until a post must be visible.
const PATIENCE: Duration = Duration::from_secs(10);
/// Interval between two samples, so that the checker adds little load.
const SAMPLE_EVERY: Duration = Duration::from_millis(100);
/// Maximum number of samples in progress.
const SAMPLES_MAX: usize = 16;
/// First and maximum wait before another read; each wait is twice the previous one.
const AGAIN: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(50));
/// Capacity of the queue of reports. If it is full, reports are dropped.
const REPORTS_MAX: usize = 64 * 1024;
/// Maximum number of faults reported in full.
const EXAMPLES_MAX: usize = 5;
/// Number of faults up to which each is counted only once.
const FAULTS_MAX: usize = 10_000;
/// Longest time for the comparison of all homes at the end.
const LAST_LOOK: Duration = Duration::from_secs(20);

/// A report of a lane.
#[derive(Debug, Clone, Copy)]
enum Report {
    Accepted {
        entry: TimelinePost,
        mentioned: Option<u32>,
        at: Instant,
    },
    /// A post of this author may or may not exist.
    InDoubt(u32),
}

pub(super) struct Reports {
    checked: Arc<CheckedReaders>,
    sender: mpsc::Sender<Report>,
    lost: Arc<AtomicBool>,
}

impl Reports {
    /// Reports the outcome of a post: the body of the successful response, or `None`.
    pub(super) fn report(&self, api: &dyn Api, action: &Action, body: Option<&[u8]>, now: Instant) {
        let What::Post { kind, .. } = action.what else { return };
        if !self.checked.is_author(action.user) {
            return;
        }
        let mentioned = match kind {
            PostKind::Plain => None,
            PostKind::MentionFirst(user) | PostKind::MentionWithin(user) => Some(user),
        };
        let report = match body.and_then(|body| api.posted(body)) {
            Some(entry) => Report::Accepted { entry, mentioned, at: now },
            None => {
                self.checked.doubt(action.user);
                Report::InDoubt(action.user)
            }
        };
        if self.sender.try_send(report).is_err() {
            self.lost.store(true, Ordering::Relaxed);
        }
    }
}

struct Findings {
    window_us: Histogram<u64>,
    whole_us: Histogram<u64>,
    correctness: Correctness,
    /// Faults counted so far, because a page may be read more than once.
    reported: HashSet<(Fault, Timeline, u64)>,
}

/// Handle of the checker task, if there are readers to check.
pub(super) struct Checker {
    findings: Option<Arc<Mutex<Findings>>>,
    task: Option<(oneshot::Sender<bool>, JoinHandle<()>)>,
}

impl Checker {
    /// Starts to check the timelines of these readers.
    pub(super) fn start<D>(
        checked: Option<Arc<CheckedReaders>>,
        dial: D,
        api: Arc<dyn Api>,
        start: Instant,
    ) -> (Checker, Option<Reports>)
    where
        D: Dial + Clone + Send + Sync + 'static,
    {
        let Some(checked) = checked.filter(|checked| !checked.readers().is_empty()) else {
            return (Checker { findings: None, task: None }, None);
        };
        let (sender, reports) = mpsc::channel(REPORTS_MAX);
        let lost = Arc::new(AtomicBool::new(false));
        let (correctness, reported) = (Correctness::default(), HashSet::new());
        let findings =
            Findings { window_us: histogram(), whole_us: histogram(), correctness, reported };
        let findings = Arc::new(Mutex::new(findings));
        let (end, ended) = oneshot::channel();
        let look =
            Look { checked: Arc::clone(&checked), findings: Arc::clone(&findings), api, dial };
        let book = Book::new(Arc::clone(&lost), &checked);
        let task = tokio::spawn(Arc::new(look).run(book, reports, ended, start));
        let checker = Checker { findings: Some(findings), task: Some((end, task)) };
        (checker, Some(Reports { checked, sender, lost }))
    }

    /// Deliveries observed since the last call, if any.
    pub(super) fn window(&self) -> Option<Delivery> {
        let mut findings = lock(self.findings.as_ref()?);
        let delivery = delivery(&findings.window_us);
        findings.window_us.reset();
        delivery
    }

    /// Deliveries observed in the whole run, if any.
    pub(super) fn whole(&self) -> Option<Delivery> {
        delivery(&lock(self.findings.as_ref()?).whole_us)
    }

    /// Ends the checks: waits for the samples and, if `fully`, compares all homes.
    pub(super) async fn end(&mut self, fully: bool) -> Option<Correctness> {
        let (end, task) = self.task.take()?;
        // If the task has panicked, sending fails, and the join reports the panic.
        let _ = end.send(fully);
        joined(task.await);
        Some(lock(self.findings.as_ref()?).correctness.clone())
    }
}

fn delivery(lag_us: &Histogram<u64>) -> Option<Delivery> {
    (!lag_us.is_empty()).then(|| Delivery {
        samples: lag_us.len(),
        p50_ms: quantile_ms(lag_us, 0.5),
        p99_ms: quantile_ms(lag_us, 0.99),
        max_ms: lag_us.max() as f64 / 1_000.0,
    })
}

struct Look<D> {
    checked: Arc<CheckedReaders>,
    findings: Arc<Mutex<Findings>>,
    api: Arc<dyn Api>,
    dial: D,
}

/// Sampled post.
#[derive(Clone, Copy)]
struct Sample {
    entry: TimelinePost,
    at: Instant,
}

impl<D: Dial + Clone + Send + Sync + 'static> Look<D> {
    async fn run(
        self: Arc<Self>,
        mut book: Book,
        mut reports: mpsc::Receiver<Report>,
        mut ended: oneshot::Receiver<bool>,
        start: Instant,
    ) {
        let mut rng = StdRng::seed_from_u64(0);
        let mut samples: JoinSet<Client<D>> = JoinSet::new();
        let (mut clients, mut next) = (Vec::new(), start);
        let fully = loop {
            tokio::select! {
                biased;
                Some(report) = reports.recv() => {
                    book.note(&report);
                    let Report::Accepted { entry, mentioned, at } = report else { continue };
                    if at < next || samples.len() >= SAMPLES_MAX {
                        continue;
                    }
                    let readers = self.checked.readers_of(entry.author, entry.reply_to);
                    let Some(reader) = readers.choose(&mut rng) else { continue };
                    next = at + SAMPLE_EVERY;
                    let client = clients.pop().unwrap_or_else(|| Client::new(self.dial.clone()));
                    let (look, reader) = (Arc::clone(&self), reader.user);
                    samples.spawn(async move {
                        look.sample(Sample { entry, at }, reader, mentioned, client).await
                    });
                }
                Some(client) = samples.join_next() => clients.push(joined(client)),
                fully = &mut ended => break fully.unwrap_or(false),
            }
        };
        while let Ok(report) = reports.try_recv() {
            book.note(&report);
        }
        if fully {
            while let Some(client) = samples.join_next().await {
                clients.push(joined(client));
            }
            let client = clients.pop().unwrap_or_else(|| Client::new(self.dial.clone()));
            // Homes that are not read within this time are not counted.
            let _ = timeout(LAST_LOOK, self.look_at_all(&book, client)).await;
        }
    }

    /// Reads every timeline in which a sampled post belongs.
    async fn sample(
        &self,
        sample: Sample,
        reader: u32,
        mentioned: Option<u32>,
        mut client: Client<D>,
    ) -> Client<D> {
        let home = Some(Timeline::Home(reader));
        let others =
            [Some(Timeline::Posts(sample.entry.author)), mentioned.map(Timeline::Mentions)];
        for timeline in [home].into_iter().chain(others).flatten() {
            self.look_for(sample, timeline, &mut client).await;
        }
        client
    }

    /// Reads a timeline until the post is on its first page, or newer posts fill the page.
    async fn look_for(&self, sample: Sample, timeline: Timeline, client: &mut Client<D>) {
        let mut again = AGAIN.0;
        loop {
            let page = self.read(timeline, client).await;
            let now = Instant::now();
            if let Ok(page) = &page {
                self.check_page(timeline, page);
                if page.iter().any(|entry| entry.id == sample.entry.id) {
                    lock(&self.findings).correctness.posts += 1;
                    self.lagged(timeline, now.saturating_duration_since(sample.at));
                    return;
                }
                let is_overtaken = page.len() == PAGE
                    && page.last().is_some_and(|oldest| oldest.id > sample.entry.id);
                if is_overtaken {
                    // The post may have been visible before, or never: assume the worst case.
                    self.lagged(timeline, now.saturating_duration_since(sample.at));
                    return;
                }
            }
            if now.saturating_duration_since(sample.at) > PATIENCE {
                // If the server does not answer, the post need not be missing.
                if page.is_ok() {
                    self.fault(Fault::Missing, timeline, sample.entry.id);
                    lock(&self.findings).correctness.posts += 1;
                }
                self.lagged(timeline, now.saturating_duration_since(sample.at));
                return;
            }
            sleep(again).await;
            again = AGAIN.1.min(again * 2);
        }
    }

    /// Records the lag of a sample. Only homes count as deliveries.
    fn lagged(&self, timeline: Timeline, lag: Duration) {
        if matches!(timeline, Timeline::Home(_)) {
            let mut findings = lock(&self.findings);
            findings.window_us.saturating_record(micros(lag));
            findings.whole_us.saturating_record(micros(lag));
        }
    }

    /// Checks a page for faults that do not depend on other posts.
    fn check_page(&self, timeline: Timeline, page: &[TimelinePost]) {
        lock(&self.findings).correctness.pages += 1;
        for pair in page.windows(2) {
            if let [newer, older] = pair
                && newer.id <= older.id
            {
                let doubled = page.iter().filter(|entry| entry.id == older.id).count() > 1;
                let fault = if doubled { Fault::Doubled } else { Fault::OutOfOrder };
                self.fault(fault, timeline, older.id);
            }
        }
        for entry in page {
            let belongs = match timeline {
                Timeline::Home(user) => {
                    let mut readers = self.checked.readers().iter();
                    let reader = readers.find(|reader| reader.user == user);
                    reader.is_none_or(|reader| reader.sees(entry.author, entry.reply_to))
                }
                Timeline::Posts(author) => entry.author == author,
                Timeline::Mentions(_) => true,
            };
            if !belongs {
                self.fault(Fault::Unexpected, timeline, entry.id);
            }
        }
    }

    /// Compares every reader's home with all accepted posts.
    async fn look_at_all(&self, book: &Book, mut client: Client<D>) {
        for reader in self.checked.readers() {
            let begun = Instant::now();
            let mut again = AGAIN.0;
            let timeline = Timeline::Home(reader.user);
            loop {
                let page = self.read(timeline, &mut client).await;
                let impatient = begun.elapsed() > PATIENCE;
                if let Ok(page) = &page {
                    let missing = book.missing(reader, page);
                    if missing.is_empty() || impatient {
                        self.look_at(reader, book, page, &missing);
                        break;
                    }
                } else if impatient {
                    break;
                }
                sleep(again).await;
                again = AGAIN.1.min(again * 2);
            }
        }
    }

    fn look_at(&self, reader: &Reader, book: &Book, page: &[TimelinePost], missing: &[u64]) {
        let timeline = Timeline::Home(reader.user);
        self.check_page(timeline, page);
        for id in missing {
            self.fault(Fault::Missing, timeline, *id);
        }
        for entry in page.iter().filter(|entry| book.knows_nothing_of(entry)) {
            self.fault(Fault::Unexpected, timeline, entry.id);
        }
        let mut findings = lock(&self.findings);
        findings.correctness.readers += 1;
        findings.correctness.posts += (page.len() + missing.len()) as u64;
    }

    fn fault(&self, fault: Fault, timeline: Timeline, id: u64) {
        let findings = &mut *lock(&self.findings);
        if findings.reported.len() < FAULTS_MAX && !findings.reported.insert((fault, timeline, id))
        {
            return;
        }
        let correctness = &mut findings.correctness;
        let count = match fault {
            Fault::Missing => &mut correctness.missing,
            Fault::Doubled => &mut correctness.doubled,
            Fault::OutOfOrder => &mut correctness.out_of_order,
            Fault::Unexpected => &mut correctness.unexpected,
        };
        *count += 1;
        if correctness.examples.len() < EXAMPLES_MAX {
            correctness.examples.push(format!("post {id} is {fault} in {timeline}"));
        }
    }

    async fn read(
        &self,
        timeline: Timeline,
        client: &mut Client<D>,
    ) -> io::Result<Vec<TimelinePost>> {
        let mut request = Vec::new();
        self.api.write_page(timeline, &mut request);
        let answer = timeout(super::ANSWER, client.send(&request)).await?;
        let answer = answer.map_err(io::Error::other)?;
        let page = if answer.is_success() { self.api.page(answer.body) } else { None };
        page.ok_or_else(|| io::Error::other("no page"))
    }
}
