//! Applying to a store what the log has after it, when a node is opened.

use std::time::Duration;

use commitlog::{Log, LogError, Position};
use store::{StoreError, StoreWriter};

use crate::applier::Applier;
use crate::checkpoints::{WORK_MAX, reading_work};
use crate::inbox::Ticket;
use crate::open_error::OpenError;
use crate::options::NodeOptions;
use crate::samples::{memory_for, taught_bytes};

/// A start reports that it waits for the log after this time.
const CATCH_UP_WAIT: Duration = Duration::from_secs(5);

/// Groups that a start has applied.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Replayed {
    /// Commands, each operation on keys by itself.
    pub(super) commands: usize,
    /// What is not in the store yet, in the unit of [`rows::Cost::work`].
    pub(super) work: usize,
}

/// Applies what the log had when it was opened, for which it waits as long as it takes. Effects are dropped: views begin
/// empty. It takes checkpoints as a running node does: that bounds memory, and a start that is killed part-way still makes
/// progress. `up_to` is what is applied, also after an error.
pub(super) fn catch_up(
    log: &mut dyn Log,
    up_to: &mut Position,
    applier: &mut Applier<StoreWriter, Ticket>,
    options: &NodeOptions,
) -> Result<Replayed, OpenError> {
    let mut replayed = Replayed::default();
    let applied = *up_to;
    options.progress.begin(log.last_at_open().0.saturating_sub(applied.0));
    while log.last() < log.last_at_open() {
        let Some(group) = log.next_within(CATCH_UP_WAIT)? else {
            tracing::warn!(position = log.last().0, "waiting for groups of the log");
            continue;
        };
        let is_first = group.position.0 == applied.0 + 1;
        let times = if rows::has_bug("apply-twice") && is_first { 2 } else { 1 };
        for _ in 0..times {
            let done = applier.apply_group(&group, |_, _| ());
            let done = done.map_err(|error| LogError::Shared(Box::new(error)))?;
            replayed.commands += done.commands;
            replayed.work += done.work;
        }
        replayed.work += reading_work(group.payload.len());
        *up_to = group.position;
        write_if_much(applier.rows_mut(), up_to.0, &mut replayed, options)?;
        options.progress.replayed(up_to.0 - applied.0);
    }
    Ok(replayed)
}

/// Takes a checkpoint of what was replayed up to `position`, if it is much.
fn write_if_much(
    rows: &mut StoreWriter,
    position: u64,
    replayed: &mut Replayed,
    options: &NodeOptions,
) -> Result<(), StoreError> {
    if rows.overlay_bytes() >= options.overlay_memory || replayed.work >= WORK_MAX {
        if let Some(checkpoint) = rows.freeze(position) {
            checkpoint.run()?;
        }
        replayed.work = 0;
    }
    Ok(())
}

pub(super) fn check_samples(
    applier: &Applier<StoreWriter, Ticket>,
    taught_bytes_max: usize,
) -> Result<(), OpenError> {
    let taught = taught_bytes(applier.facts());
    match taught > taught_bytes_max {
        true => Err(OpenError::Samples(memory_for(taught).div_ceil(1 << 20))),
        false => Ok(()),
    }
}
