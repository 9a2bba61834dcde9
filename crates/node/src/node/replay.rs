//! Replay: applies to a store the groups of the log after its position, when a node is opened.

use std::time::Duration;

use commitlog::{Log, LogError, Position};
use store::StoreWriter;

use crate::applier::Applier;
use crate::changes::ChangeLog;
use crate::checkpoints::{WORK_MAX, reading_work};
use crate::directory::open_error::OpenError;
use crate::options::NodeOptions;
use crate::submission::entry::origin_of;
use crate::submission::inbox::Ticket;
use crate::submission::versions::rules;
use crate::views::samples::{memory_for, taught_bytes};

/// Time after which a start logs that it waits for the log.
const CATCH_UP_WAIT: Duration = Duration::from_secs(5);

/// Totals of the replayed groups.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Replayed {
    /// Number of commands; each operation on keys counts as one.
    pub(super) commands: usize,
    /// Work that is not in the store yet, in the unit of [`rows::Cost::work`].
    pub(super) work: usize,
    /// First group whose outcomes differ from those that another build acknowledged.
    pub(super) other_outcomes: Option<Position>,
}

/// Applies all groups that the log had when it was opened, and waits for them without a time limit. The effects go to
/// the change feed only: views begin empty. Takes checkpoints like a running node, which bounds memory and keeps the
/// progress of an interrupted start. Sets `up_to` to the last applied group, also on errors.
///
/// Fails at a group whose outcomes differ from those that another build acknowledged, unless the options accept it;
/// then only the groups before this group have been written. The outcomes of the last group are unknown.
pub(super) fn catch_up(
    log: &mut dyn Log,
    up_to: &mut Position,
    (applier, changes): (&mut Applier<StoreWriter, Ticket>, &mut Option<ChangeLog>),
    options: &NodeOptions,
) -> Result<Replayed, OpenError> {
    let mut replayed = Replayed::default();
    let applied = *up_to;
    let is_alone = log.node().is_none();
    // Whether a group of another build was found.
    let mut has_others = false;
    options.progress.begin(log.last_at_open().0.saturating_sub(applied.0));
    while log.delivered() < log.last_at_open() {
        let Some(group) = log.next_within(CATCH_UP_WAIT)? else {
            tracing::warn!(position = log.delivered().0, "waiting for groups of the log");
            continue;
        };
        if is_alone {
            let origin = origin_of(&group.payload);
            has_others |= origin.is_none_or(|origin| origin.rules != rules());
            let acknowledged = origin.and_then(|origin| origin.outcomes_before);
            let found = applier.last_outcomes();
            let differs = acknowledged.zip(found).is_some_and(|(one, other)| one != other);
            if has_others && differs {
                replayed.other_outcomes.get_or_insert(*up_to);
                if !options.accept_other_outcomes {
                    return Err(OpenError::OtherOutcomes(*up_to));
                }
            }
        }
        write_if_much((applier.rows_mut(), changes), up_to.0, &mut replayed, options)?;
        let time_ms = applier.credible_ms(&group);
        let is_first = group.position.0 == applied.0 + 1;
        let times = if rows::has_bug("apply-twice") && is_first { 2 } else { 1 };
        for _ in 0..times {
            let done = applier.apply_group(&group, |_, _| ());
            let done = done.map_err(|error| LogError::Shared(Box::new(error)))?;
            replayed.commands += done.commands;
            replayed.work += done.work;
            if let Some(changes) = changes {
                changes.record(group.position, time_ms, &done.effects);
                changes.shrink(false);
            }
        }
        replayed.work += reading_work(group.payload.len());
        *up_to = group.position;
        options.progress.replayed(up_to.0 - applied.0);
    }
    Ok(replayed)
}

/// Takes a checkpoint of the replayed groups up to `position` if they are many.
fn write_if_much(
    (rows, changes): (&mut StoreWriter, &mut Option<ChangeLog>),
    position: u64,
    replayed: &mut Replayed,
    options: &NodeOptions,
) -> Result<(), OpenError> {
    if rows.overlay_bytes() >= options.overlay_memory || replayed.work >= WORK_MAX {
        if let Some(checkpoint) = rows.freeze(position) {
            changes.iter_mut().for_each(|changes| changes.sync_point().run());
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

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use commitlog::LocalLog;
    use commitlog::disk::RealDisk;
    use feed::{Bio, Command, Done, Handle, Name};

    use super::*;
    use crate::backup::Backup;
    use crate::submission::entry::{Entry, Origin};
    use crate::{Node, RestoreOptions, repair, restore};

    /// Returns the groups in the log of a node that was killed, with their positions.
    fn killed_groups(data: &Path) -> Vec<(u64, Vec<u8>)> {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let node = Node::open(&NodeOptions::new(data)).unwrap();
        for number in 0..5 {
            let handle = Handle::parse(&format!("user{number}")).unwrap();
            let (name, bio) = (Name::parse("").unwrap(), Bio::parse("").unwrap());
            let register = Command::Register { handle, name, bio };
            let reply = runtime.block_on(node.submit(register.into())).unwrap();
            assert!(matches!(reply.outcome, Ok(Done::Registered(_))), "{reply:?}");
        }
        let log = commitlog::LogReader::open(Arc::new(RealDisk), &data.join("log")).unwrap();
        let mut groups = Vec::new();
        let read = log.read(Position(0), Position(5), &mut |group| {
            groups.push((group.time_ms, group.payload.to_vec()));
            Ok(())
        });
        read.unwrap();
        node.close();
        groups
    }

    /// Makes the directory `data` with a log of these groups. `is_other` selects groups of other rules; the group
    /// `wrong` gets another digest of outcomes.
    fn make(
        data: &Path,
        groups: &[(u64, Vec<u8>)],
        is_other: impl Fn(usize) -> bool,
        wrong: Option<usize>,
    ) {
        std::fs::create_dir_all(data).unwrap();
        let mut log = LocalLog::open(Arc::new(RealDisk), &data.join("log"), Position(0)).unwrap();
        for (at, (time_ms, payload)) in groups.iter().enumerate() {
            let (entry, rest) = Entry::read(payload).unwrap();
            let Entry::Origin(Origin { rules, outcomes_before }) = entry else {
                panic!("{entry:?}")
            };
            assert_eq!(outcomes_before.is_some(), at > 0);
            let is_wrong = |_: &u64| wrong.is_some_and(|wrong| wrong + 1 == at);
            let outcomes_before = outcomes_before.map(|it| it ^ u64::from(is_wrong(&it)));
            let origin = Origin { rules: rules ^ u64::from(is_other(at)), outcomes_before };
            let payload = [&Entry::Origin(origin).write(Vec::new()), rest].concat();
            log.write_group(&payload, *time_ms).unwrap();
        }
        log.sync().unwrap();
    }

    #[test]
    fn what_another_build_acknowledged_is_applied_only_if_the_outcomes_are_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let groups = killed_groups(&folder.path().join("first"));
        for (number, (others, wrong, refused)) in [
            (0..0, None, None),
            (0..5, None, None),
            (0..5, Some(0), Some(1)),
            (0..5, Some(3), Some(4)),
            // The log does not have the outcomes of the last group.
            (0..5, Some(4), None),
            // Other outcomes may come from the build of the group, of an earlier group, or of the next group, so one of
            // them must be another build.
            (0..0, Some(2), None),
            (2..3, Some(2), Some(3)),
            (0..1, Some(2), Some(3)),
            (3..4, Some(2), Some(3)),
            (4..5, Some(2), None),
        ]
        .into_iter()
        .enumerate()
        {
            let data = folder.path().join(format!("data{number}"));
            make(&data, &groups, |at| others.contains(&at), wrong);
            let repaired = |accept| {
                let to = folder.path().join(format!("to{number}{accept}"));
                repair(&data, &to, (None, accept), || Ok(())).map(|repaired| (repaired, to))
            };
            match Node::open(&NodeOptions::new(&data)) {
                Ok(node) => {
                    assert_eq!(refused, None, "{others:?} {wrong:?}");
                    assert_eq!(node.facts().totals().users, 5);
                    node.close();
                }
                Err(OpenError::OtherOutcomes(position)) => {
                    assert_eq!(Some(position.0), refused, "{others:?} {wrong:?}");
                    let found = repaired(false).unwrap_err().to_string();
                    assert_eq!(found, OpenError::OtherOutcomes(position).to_string());
                    let (repaired, to) = repaired(true).unwrap();
                    assert_eq!((repaired.counts.0, repaired.lost.len()), (5, 1), "{repaired:?}");
                    // The store records that the outcomes were accepted.
                    Node::open(&NodeOptions::new(&to)).unwrap().close();
                }
                Err(error) => panic!("{error:?}"),
            }
        }
    }

    #[test]
    fn a_restore_refuses_other_outcomes_unless_they_are_accepted() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        make(&data, &killed_groups(&folder.path().join("first")), |_| true, Some(2));
        let backup = Backup::of_stopped(&NodeOptions::new(&data), "test", |backup| {
            Ok(backup.write(None, Vec::new())?.0)
        });
        let backup = backup.unwrap();
        let restored = |name, accept_other_outcomes| {
            let from = RestoreOptions { accept_other_outcomes, ..RestoreOptions::default() };
            restore(&*backup, &folder.path().join(name), from, |_| Ok(()))
        };
        let refused = restored("refused", false).unwrap_err();
        assert_eq!(refused.to_string(), OpenError::OtherOutcomes(Position(3)).to_string());
        let accepted = restored("accepted", true).unwrap();
        assert_eq!((accepted.counts.0, accepted.other_outcomes), (5, Some(3)));
        // The store records that the outcomes were accepted.
        Node::open(&NodeOptions::new(folder.path().join("accepted"))).unwrap().close();
    }
}
