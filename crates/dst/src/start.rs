//! Crashes and starts: checks the state that the next process finds.

use std::path::Path;
use std::sync::Arc;

use commitlog::LocalLog;
use node::{Durability, SimulatedNode};

use crate::events::Event;
use crate::history::{History, RecordingLog};
use crate::model::Model;
use crate::run::{Run, empty_disks};
use testkit::disk::{Crash, Faults};

impl Run {
    /// Ends the process, and starts another one.
    pub(crate) fn crash(&mut self, crash: Option<Crash>) {
        let crash = crash.unwrap_or(match self.random.below(2) {
            0 => Crash::Kill,
            _ => Crash::PowerLoss,
        });
        self.record(Event::Crash(crash));
        self.tally.crashes += 1;
        self.disk.stop();
        self.node = None;
        self.pending.clear();
        self.disk.restart(crash);
        self.lied |= self.disk.take_lie();
        let least = {
            let mut history = self.history.lock();
            if crash == Crash::PowerLoss && self.options.durability != Durability::Always {
                history.appended = history.synced;
            }
            if self.lied { 0 } else { history.appended.min(self.acknowledged(crash, &history)) }
        };
        let flips = u64::from(self.random.once_in(10));
        self.open(least, flips);
        if self.random.once_in(3) {
            self.check_all();
        }
    }

    /// Returns the last position that must exist after a crash.
    fn acknowledged(&self, crash: Crash, history: &History) -> u64 {
        match (crash, self.options.durability) {
            (Crash::PowerLoss, Durability::Always) => self.applied,
            (Crash::PowerLoss, _) => history.synced,
            (Crash::Kill, _) => history.appended,
        }
    }

    /// Opens the node. Tries again until it succeeds. The log must have everything up to `least`.
    pub(crate) fn open(&mut self, mut least: u64, flips: u64) {
        let mut flipped = None;
        if flips > 0 {
            flipped = self.disk.flip_bit();
            if let Some((_, at, bit)) = &flipped {
                self.record(Event::FlipBit { at: *at, bit: *bit });
            }
        }
        let mut stops = if self.random.once_in(6) { self.random.below(3) } else { 0 };
        let node = loop {
            if stops > 0 {
                stops -= 1;
                let stop_at = Some(self.random.between(1, 40));
                self.disk.set_faults(Faults { stop_at, ..Faults::default() });
            }
            self.tally.starts += 1;
            let error = match self.try_open() {
                Ok(node) => break node,
                Err(error) => error,
            };
            self.record(Event::Refused);
            if self.disk.has_stopped() {
                // The process has ended during the start.
                self.disk.stop();
                let crash = if self.random.once_in(2) { Crash::Kill } else { Crash::PowerLoss };
                self.record(Event::Crash(crash));
                self.tally.crashes += 1;
                self.disk.restart(crash);
                least = least.min(self.acknowledged(crash, &self.history.lock()));
            } else if let Some((name, at, bit)) = flipped.take() {
                // The node found the damage, so the operator restores the file.
                self.disk.flip_back(&name, at, bit);
            } else if !self.disk.repair() {
                assert!(self.lied, "the node does not start: {error}");
                self.give_up();
            }
        };
        self.disk.set_faults(Faults::default());
        self.node = Some(node);
        self.after_open(least);
    }

    fn try_open(&self) -> Result<SimulatedNode, String> {
        let history = Arc::clone(&self.history);
        let opened = SimulatedNode::open(&self.options, &self.rows, self.store_seed, |from| {
            let disk = Arc::new(self.disk.clone());
            let inner = LocalLog::open_with(disk, Path::new("/log"), self.log_options, from)?;
            Ok(Box::new(RecordingLog { inner, history }))
        });
        opened.map_err(|error| {
            let mut text = error.to_string();
            let mut source = std::error::Error::source(&error);
            while let Some(cause) = source {
                text = format!("{text}: {cause}");
                source = cause.source();
            }
            text
        })
    }

    /// Starts with an empty state, because the disk has lost data that it had reported as synced.
    fn give_up(&mut self) {
        (self.disk, self.rows) = empty_disks(self.random.fork());
        *self.history.lock() = History::default();
        self.model = Model::default();
        self.applied = 0;
        self.lied = false;
    }

    /// Checks that the recovered groups are the first of the logged groups.
    fn after_open(&mut self, least: u64) {
        let least = if self.history.lock().groups.is_empty() { 0 } else { least };
        let last = self.node().log_last().0;
        self.record(Event::Open { last });
        assert!(
            last >= least,
            "groups up to {least} were acknowledged ({:?}), and the log ends at {last}",
            self.options.durability
        );
        {
            let mut history = self.history.lock();
            history.groups.truncate(last as usize);
            assert_eq!(
                history.groups.len() as u64,
                last,
                "the log has groups that were never logged"
            );
            (history.appended, history.synced, history.pointed) = (last, last, last);
        }
        if last < self.applied {
            // Groups that were not synced are lost. Begin again with an empty model, and apply all groups. Clients keep
            // what they have read.
            let revisions = std::mem::take(&mut self.model.feed.revisions);
            (self.model, self.applied) = (Model::default(), 0);
            self.model.feed.revisions = revisions;
        }
        // After a restart, time continues from the last change.
        self.seen_ms = 0;
        let before = self.tally.commands;
        self.catch_up_to(last);
        self.tally.commands = before;
    }
}
