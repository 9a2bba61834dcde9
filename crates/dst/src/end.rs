//! End of a run: replays the log from the first group, and compares the rows.

use std::path::Path;
use std::sync::Arc;

use commitlog::{LocalLog, Log as _, LogOptions, Position};
use node::SimulatedNode;
use rows::Totals;
use store::MemoryRow;

use crate::run::{Run, empty_disks};
use testkit::Random;
use testkit::disk::Faults;

impl Run {
    /// Closes the node, and compares its rows with those of a node that replays the log.
    pub(crate) fn end(&mut self) {
        // Disable faults, so that the last checkpoint is complete. If the process stops in the last step, this may be
        // noticed only when it is closed.
        self.set_faults(Faults::default());
        self.drain();
        self.check_all();
        while !self.reopen() {}
        self.check_all();
        let totals = self.node().node().facts().totals();
        let live = self.rows.rows();
        let (rows, again) = self.replay();
        assert_eq!(totals, again, "totals, live and replayed");
        for (part, (live, replayed)) in
            ["facts", "ephemeral rows"].into_iter().zip(live.iter().zip(&rows))
        {
            let differing = live.iter().zip(replayed).find(|(one, other)| one != other);
            assert!(
                differing.is_none() && live.len() == replayed.len(),
                "{} {part} live, {} replayed; first differences: {differing:?}",
                live.len(),
                replayed.len()
            );
        }
    }

    fn replay(&mut self) -> ([Vec<MemoryRow>; 2], Totals) {
        let (disk, rows) = empty_disks(Random::new(0));
        let opened = SimulatedNode::open(&self.options, &rows, self.store_seed, |_| {
            let (disk, dir) = (Arc::new(disk), Path::new("/log"));
            let options = LogOptions { segment_bytes: 1 << 20, prepares_on_thread: false };
            let open = || LocalLog::open_with(disk.clone(), dir, options, Position(0));
            let mut log = open()?;
            for group in &self.history.lock().groups {
                log.write_group(&group.payload, group.time_ms)?;
            }
            log.sync()?;
            drop(log);
            Ok(Box::new(open()?))
        });
        let node = match opened {
            Ok(node) => node,
            Err(error) => panic!("the log cannot be replayed from the first group: {error}"),
        };
        let totals = node.node().facts().totals();
        let closed = node.close();
        assert!(closed.is_ok(), "{closed:?}");
        (rows.rows(), totals)
    }
}
