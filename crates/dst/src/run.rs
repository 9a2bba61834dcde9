//! A run: a node, its disk, its clients and its clock, all on one thread and determined by one seed.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use commitlog::LogOptions;
use feed::{Command, Conditional, ErasurePhase, UserId};
use node::{Clock, Durability, Logged, NodeOptions, Request, SimulatedNode};
use parking_lot::Mutex;
use rows::{SetTable, Table};
use store::{Gate, MemoryDisk};

use crate::commands::Generator;
use crate::events::{self, Event};
use crate::history::History;
use crate::model::{Expected, Model};
use crate::pending::{self, Answered, Pending};
use testkit::Random;
use testkit::disk::{Faults, FaultyDisk};

/// 2026-11-22T12:00:00Z.
const START_MS: u64 = 1_795_348_800_000;
const KIB: usize = 1 << 10;

/// Counts of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Number of applied commands. Each operation on keys counts as a command.
    pub(crate) commands: u64,
    pub(crate) crashes: u64,
    /// Number of starts, including starts that were refused.
    pub(crate) starts: u64,
    pub(crate) checks: u64,
    /// Digest of all logged data, equal for equal seeds.
    pub(crate) digest: u64,
}

/// State of a run.
pub(crate) struct Run {
    pub(crate) random: Random,
    pub(crate) options: NodeOptions,
    pub(crate) log_options: LogOptions,
    pub(crate) store_seed: [u8; 16],
    pub(crate) disk: FaultyDisk,
    pub(crate) rows: MemoryDisk,
    pub(crate) history: Arc<Mutex<History>>,
    unix_ms: Arc<AtomicU64>,
    elapsed_ms: Arc<AtomicU64>,
    /// Simulated node; `None` only during a restart.
    pub(crate) node: Option<SimulatedNode>,
    pub(crate) model: Model,
    /// Number of groups that the model has applied.
    pub(crate) applied: u64,
    pub(crate) pending: Vec<Pending>,
    pub(crate) generator: Generator,
    pub(crate) step: u64,
    pub(crate) tally: Tally,
    /// Whether the disk has written data to a wrong place and reported success. Acknowledged data may then be lost.
    pub(crate) lied: bool,
    /// Latest time that the node reported, in milliseconds since 1970.
    pub(crate) seen_ms: u64,
}

impl Run {
    pub(crate) fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let (disk, rows) = empty_disks(random.fork());
        let unix_ms = Arc::new(AtomicU64::new(START_MS));
        let elapsed_ms = Arc::new(AtomicU64::new(0));
        let clock = {
            let (unix_ms, elapsed_ms) = (Arc::clone(&unix_ms), Arc::clone(&elapsed_ms));
            Clock::from_fns(
                move || unix_ms.load(Ordering::Relaxed),
                move || Duration::from_millis(elapsed_ms.load(Ordering::Relaxed)),
            )
        };
        let (options, log_options) = options(&mut random, clock);
        let mut store_seed = [0; 16];
        store_seed[..8].copy_from_slice(&random.next().to_le_bytes());
        let generator = Generator::new(random.fork());
        let mut run = Self {
            options,
            log_options,
            store_seed,
            disk,
            rows,
            history: Arc::default(),
            unix_ms,
            elapsed_ms,
            node: None,
            model: Model::default(),
            applied: 0,
            pending: Vec::new(),
            generator,
            step: 0,
            tally: Tally::default(),
            lied: false,
            seen_ms: 0,
            random,
        };
        run.open(0, 0);
        run
    }

    pub(crate) fn node(&self) -> &SimulatedNode {
        let Some(node) = &self.node else { unreachable!("a failed node restarts at once") };
        node
    }

    fn node_mut(&mut self) -> &mut SimulatedNode {
        let Some(node) = &mut self.node else { unreachable!("a failed node restarts at once") };
        node
    }

    pub(crate) fn record(&self, event: Event) {
        events::record(self.step, event);
    }

    /// Submits a few commands at the same time.
    pub(crate) fn submit(&mut self, commands: usize) {
        if self.generator.random.once_in(2) {
            let mut requests: Vec<_> = match self.generator.makes_crowd() {
                true => self.generator.crowd(&self.model),
                false => (0..commands).map(|_| self.generator.request(&self.model)).collect(),
            };
            requests.iter_mut().for_each(|request| self.read_revision(request));
            self.record(Event::Submit { commands: requests.len() });
            match self.node_mut().submit(requests.clone()) {
                Ok(reply) => self.pending.push(Pending::of_requests(requests, reply)),
                Err(_) => self.record(Event::Busy),
            }
        } else {
            let ops = self.generator.key_ops(&self.model);
            self.record(Event::SubmitKeys { ops: ops.len() });
            match self.node_mut().submit_keys(ops.clone(), Vec::new()) {
                Ok(reply) => self.pending.push(Pending::of_keys(ops, reply)),
                Err(_) => self.record(Event::Busy),
            }
        }
    }

    /// Lets some changes be on the condition of the revision that a client has just read.
    fn read_revision(&mut self, request: &mut Request) {
        let Command::If(condition) = &mut request.command else { return };
        if condition.revisions.is_none() || self.generator.random.once_in(3) {
            return;
        }
        let facts = self.node().node().facts();
        let of_user = |user| facts.resolve(user).and_then(|user| facts.user_revision(user));
        let revision = match &condition.change {
            Conditional::Edit { post, .. } | Conditional::DeletePost { post } => {
                facts.post_revision(*post)
            }
            Conditional::DeleteStory { story } => facts.story_revision(*story),
            Conditional::EditUser(edit) => of_user(&edit.user),
            Conditional::DeleteUser { user } => of_user(user),
        };
        let read = revision.zip(self.model.feed.revised(&condition.change));
        if let Some((revision, state)) = read {
            self.model.feed.revisions.insert(revision.0, state);
            condition.revisions = Some(vec![revision]);
        }
    }

    /// Runs a turn of the writer. Then the model applies the same groups, and the replies are compared.
    pub(crate) fn turn(&mut self) {
        let holds_values = self.pending.iter().any(Pending::holds_values);
        let Ok(taken) = self.node_mut().turn() else {
            self.record(Event::Stopped);
            return self.crash(None);
        };
        let appended = self.history.lock().appended;
        let groups = (appended - self.applied) as usize;
        let entries = self.catch_up_to(appended);
        self.record(Event::Turn { groups, entries: entries.len() });
        pending::distribute(&mut self.pending, &taken, entries);
        self.check_answers(holds_values);
    }

    /// Applies groups of the history to the model. Returns their entries with the expected replies.
    pub(crate) fn catch_up_to(&mut self, position: u64) -> Vec<(Logged, Expected)> {
        let mut all = Vec::new();
        while self.applied < position {
            let (time_ms, entries) = {
                let history = self.history.lock();
                let group = &history.groups[self.applied as usize];
                (group.time_ms, Logged::read_all(&group.payload))
            };
            let length = self.history.lock().groups[self.applied as usize].payload.len() as u64;
            self.tally.digest = self.tally.digest.rotate_left(7) ^ time_ms ^ (length << 40);
            let expected = self.model.apply(time_ms, &entries);
            self.applied += 1;
            let commands = entries.iter().map(|entry| match entry {
                Logged::Feed(_) => 1,
                Logged::Keys(ops) => ops.len() as u64,
            });
            self.tally.commands += commands.sum::<u64>();
            all.extend(entries.into_iter().zip(expected));
        }
        self.decide_unsure();
        all
    }

    /// Adds notifications of edits to the model that the node has stored, for users of whom the model cannot know
    /// whether they were notified.
    fn decide_unsure(&mut self) {
        let Some(node) = &self.node else { return };
        let (facts, feed) = (node.node().facts(), &mut self.model.feed);
        for ((user, stamp), notice) in std::mem::take(&mut feed.unsure) {
            let notifications = ErasurePhase::of(Table::Set(SetTable::Notifications));
            let stored = facts.items_in_phase(UserId(user), notifications, stamp, 1);
            if stored.first() == Some(&stamp) {
                feed.notices.insert((user, stamp), notice);
            }
        }
    }

    /// Checks replies. `holds_values` says whether, before the turn, an unfinished submission held memory for its
    /// answers.
    fn check_answers(&mut self, holds_values: bool) {
        let generator = &mut self.generator;
        self.pending.retain_mut(|pending| match pending.check(holds_values) {
            Answered::NotYet => true,
            Answered::Requests(replies) => {
                replies.into_iter().for_each(|reply| generator.note(reply.outcome));
                false
            }
            Answered::Keys => false,
        });
    }

    /// Runs the node until all pending submissions are answered.
    pub(crate) fn drain(&mut self) {
        for _ in 0..10_000 {
            if self.pending.is_empty() {
                return;
            }
            let before = self.pending.len();
            self.turn();
            // Costly changes may wait for a checkpoint, which only the simulator starts.
            if self.pending.len() == before {
                self.run_job();
            }
        }
        panic!("{} submissions are never answered", self.pending.len());
    }

    pub(crate) fn sweep(&mut self) {
        self.record(Event::Sweep);
        self.node_mut().do_due();
    }

    /// Reads keys and posts into memory, as after a start.
    pub(crate) fn warm(&mut self) {
        self.node().warm_keys();
        self.node().warm_posts();
    }

    pub(crate) fn run_job(&mut self) {
        self.record(Event::Job);
        if self.node_mut().run_job().is_err() {
            self.record(Event::Stopped);
            self.crash(None);
        }
    }

    /// Runs the periodic sync, if the durability policy has one.
    pub(crate) fn sync(&mut self) {
        if !matches!(self.options.durability, Durability::Interval(_)) {
            return;
        }
        self.record(Event::Sync);
        match self.node_mut().sync() {
            Ok(()) => {
                let mut history = self.history.lock();
                history.synced = history.synced.max(history.pointed);
            }
            Err(_) => {
                self.record(Event::Stopped);
                self.crash(None);
            }
        }
    }

    /// Advances the time. Sometimes the clock jumps.
    pub(crate) fn tick(&mut self) {
        let passed = match self.random.below(20) {
            0 => self.random.below(40_000),
            1..5 => self.random.below(2_000),
            _ => self.random.below(20),
        };
        self.elapsed_ms.fetch_add(passed, Ordering::Relaxed);
        let now = self.unix_ms.load(Ordering::Relaxed) + passed;
        let leap = match self.random.below(400) {
            0 => self.random.below(3 * 86_400_000),
            1..5 => self.random.below(20_000),
            _ => 0,
        };
        let now = match leap {
            0 => now,
            leap if self.random.once_in(2) => now + leap,
            leap => now.saturating_sub(leap),
        };
        let now = if self.random.once_in(4) { self.expiry_after(now).unwrap_or(now) } else { now };
        self.unix_ms.store(now, Ordering::Relaxed);
        self.record(Event::Clock { unix_ms: now });
    }

    /// Returns a time at which a key or a story expires, or the millisecond before or after it; at most some minutes
    /// from now.
    fn expiry_after(&mut self, now: u64) -> Option<u64> {
        const AHEAD_MS: u64 = 400_000;
        let keys = self.model.keys.buckets.get(&0)?;
        let start = self.random.index(keys.len().max(1));
        let of_keys = keys.values().skip(start).take(30).filter_map(|key| key.expires_ms);
        let of_stories = self.model.feed.stories.values().rev().take(30);
        let expiries = of_keys.chain(of_stories.map(|story| story.expires_ms));
        let of_polls = self.model.feed.posts.values().rev().take(30);
        let expiries =
            expiries.chain(of_polls.filter_map(|post| Some(post.poll.as_ref()?.ends_ms)));
        let scheduled = self.model.feed.scheduled.values().map(|post| post.due_ms);
        let expiries = expiries.chain(scheduled.take(30));
        let first = expiries.filter(|at| (now..now + AHEAD_MS).contains(at)).min()?;
        Some(first + self.random.below(3) - 1)
    }

    pub(crate) fn set_faults(&mut self, faults: Faults) {
        self.record(Event::Fault(faults));
        self.disk.set_faults(faults);
    }

    /// Closes the node and opens it again. Returns false if the node stopped instead, without a last checkpoint.
    pub(crate) fn reopen(&mut self) -> bool {
        self.record(Event::Close);
        self.drain();
        let Some(node) = self.node.take() else { unreachable!("a failed node restarts at once") };
        if node.close().is_err() {
            self.record(Event::Stopped);
            self.crash(None);
            return false;
        }
        let appended = self.history.lock().appended;
        // The node may have swept while it closed.
        self.catch_up_to(appended);
        self.lied |= self.disk.take_lie();
        self.open(if self.lied { 0 } else { appended }, 0);
        true
    }
}

/// Creates a disk for the log, and a disk for the store that stops at the same time.
pub(crate) fn empty_disks(random: Random) -> (FaultyDisk, MemoryDisk) {
    let disk = FaultyDisk::new(random);
    let gate: Gate = Arc::new({
        let disk = disk.clone();
        move || disk.pass()
    });
    (disk, MemoryDisk::new(&gate))
}

/// Makes options with budgets so small that each is exceeded from time to time.
fn options(random: &mut Random, clock: Clock) -> (NodeOptions, LogOptions) {
    let mut options = NodeOptions::new(PathBuf::from("/data"));
    options.clock = clock;
    options.durability = match random.below(4) {
        0 => Durability::Interval(Duration::from_millis(1)),
        1 => Durability::Never,
        _ => Durability::Always,
    };
    options.overlay_memory = *random.pick(&[8, 64, 256, 1_024]) * KIB;
    options.bucket_memory = *random.pick(&[4, 16, 64, 4_096]) * KIB;
    if random.once_in(12) {
        options.bucket_memory = 0;
    }
    // A timeline needs at least about 80 KiB of this memory to be cached.
    options.timeline_memory = *random.pick(&[16, 96, 1_024]) * KIB;
    options.post_memory = *random.pick(&[4, 64, 1_024]) * KIB;
    options.entity_memory = 0;
    options.sample_memory = node::SAMPLE_MEMORY_MIN + *random.pick(&[0, 10, 100]) * KIB;
    options.queue_commands_max = *random.pick(&[50, 1_000, 16_384]);
    options.erase_within = Duration::from_secs(random.between(1, 100));
    let segment_bytes = *random.pick(&[1, 4, 16, 64, 256]) * KIB as u64;
    (options, LogOptions { segment_bytes, prepares_on_thread: false })
}
