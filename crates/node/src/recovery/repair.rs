//! Repair of a data directory: writes the readable data to a new directory, and leaves the damaged one unchanged.
//!
//! The store is read at a checkpoint, and the later log is replayed as at any start. If a complete log follows the
//! newest complete checkpoint, nothing is lost. Without a complete checkpoint some rows are lost, and rows that can be
//! computed from others are rebuilt. A log with missing groups is used up to the first missing group, if the operator
//! accepts this.
//!
//! **Invariant:** until everything is durable, the new directory is marked as unfinished, and no node opens it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use commitlog::disk::RealDisk;
use commitlog::{LocalLog, Log as _, LogError, LogSurvey, Position, SEGMENT_BYTES, begin_after};
use feed::Facts;
use rows::Finding;
use store::{Base, Salvage, Salvaged, Store, StoreError, StoreWriter, unless_unreadable};

use super::restore::{self, Completed};
use crate::directory::lock::DataLock;
use crate::directory::open_error::OpenError;
use crate::node::{recover_once, store_once};
use crate::options::NodeOptions;
use crate::pictures::{self, check::FilesReport};
use crate::submission::entry::Entry;

/// Maximum number of findings of each kind that are reported individually; the others are counted.
const FINDINGS_MAX: usize = 1_000;

/// Memory of the changes that a check makes and drops at its end, in bytes. The check stops when they take more.
const CHECK_BYTES_MAX: usize = 64 << 20;

/// Reason why a directory is not repaired.
#[derive(Debug, thiserror::Error)]
pub enum RepairError {
    /// One of the two directories cannot be used.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The log cannot be read or written.
    #[error("the log cannot be read or written")]
    Log(#[from] LogError),
    /// The store cannot be read or written.
    #[error("the store cannot be read or written")]
    Store(#[from] StoreError),
    /// Groups of the log are lost, and the caller has not accepted this.
    #[error("{0}; nothing was made. To accept this loss, repeat with --drop-after {after}", after = .0.after)]
    DropsGroups(LostGroups),
    /// Too much is missing.
    #[error(
        "the row with the checkpoint's position in the log cannot be read, and the log does not begin at group 1: \
         restore the last backup (roost restore)"
    )]
    Hopeless,
    /// The rows already contain groups that are to be dropped.
    #[error(
        "groups after {after} cannot be dropped: the store has those up to {applied} in its rows, and the log does not begin \
         at group 1. Restore a backup (roost restore)"
    )]
    Applied {
        /// Last group to keep.
        after: u64,
        /// Last group that all checkpoints have.
        applied: u64,
    },
}

/// Groups of the log that are unreadable, or cannot be applied without the missing ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostGroups {
    /// Last group that can be applied.
    pub after: u64,
    /// Last known group.
    pub last: u64,
    /// Number of readable groups after `after`, and of the commands in them.
    pub readable: (u64, u64),
    /// Times of the first and the last readable group, in milliseconds since 1970.
    pub times_ms: Option<(u64, u64)>,
}

impl std::fmt::Display for LostGroups {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (groups, commands) = self.readable;
        write!(f, "the log is kept up to group {}; after it", self.after)?;
        match self.times_ms {
            Some((first, last)) => write!(
                f,
                " {groups} whole groups with {commands} commands up to group {}, made from {} to {}, are lost, and all \
                 that cannot be read",
                self.last,
                crate::backup::time(first),
                crate::backup::time(last)
            ),
            None if self.last > self.after => write!(f, " groups up to {} are lost", self.last),
            None => write!(f, " an unknown number of groups is lost"),
        }
    }
}

/// Findings, corrections and losses of a repair.
#[derive(Debug, Default)]
pub struct Repaired {
    /// Damage to files.
    pub damage: Vec<String>,
    /// Data that was corrected, or computed from other rows.
    pub corrected: Vec<String>,
    /// Data that is lost, or may be out of date.
    pub lost: Vec<String>,
    /// Positions of the checkpoint that the new store begins with, and of the last group.
    pub positions: (u64, u64),
    /// Number of users, posts and follows.
    pub counts: (u64, u64, u64),
    /// Number of findings that were not added to `corrected` and `lost`.
    more: (u64, u64),
}

/// Creates the directory `to`, which must be empty or missing, from the readable data of `from`, which is not changed.
/// `drop_after` is the last group to keep; without it all groups must be readable. For `accept_other_outcomes`, see
/// [`NodeOptions::accept_other_outcomes`]. `keys` writes the file of application keys into the new directory, durably.
/// Blocks.
///
/// # Errors
/// [`RepairError`]. Unless `to` was refused, it may be left marked as an unfinished restore.
pub fn repair(
    from: &Path,
    to: &Path,
    (drop_after, accept_other_outcomes): (Option<u64>, bool),
    keys: impl FnOnce() -> std::io::Result<()>,
) -> Result<Repaired, RepairError> {
    let (old, mut new) = (NodeOptions::new(from), NodeOptions::new(to));
    new.accept_other_outcomes = accept_other_outcomes;
    if !old.log_dir().is_dir() && !old.store_dir().is_dir() {
        let error =
            std::io::Error::new(std::io::ErrorKind::NotFound, "it has neither a log nor a store");
        return Err(OpenError::Directory(from.to_owned(), error).into());
    }
    let _lock = DataLock::take_to_read(from)?;
    let salvage = Salvage::open(&old.store_dir())?;
    let survey = survey(&old.log_dir())?;
    let mut repaired = Repaired { damage: salvage.damage.clone(), ..Repaired::default() };
    repaired.damage.extend(survey.damage.iter().map(|damage| {
        let (file, offset, what) = (damage.file.display(), damage.offset, damage.what);
        format!("{file} at byte {offset}, group {}: {what}", damage.position.0)
    }));
    let plan = choose(salvage.bases()?, &survey, drop_after)?;
    if !plan.is_complete {
        let known = survey.last.map_or(0, |last| last.0);
        let lost = lost_groups(&old.log_dir(), (plan.last, known))?;
        if drop_after != Some(plan.last) {
            return Err(RepairError::DropsGroups(lost));
        }
        repaired.lost.push(lost.to_string());
    }
    let mut lock = DataLock::take_to_restore(to)?;
    let io = |error| OpenError::Directory(to.to_owned(), error);
    if let Some(base) = &plan.base {
        let salvaged = salvage.write(base, &new.store_dir())?;
        repaired.report(base, &salvaged);
        unless_unreadable(|| mend(&new, &mut repaired)).ok_or(OpenError::Unreadable)??;
    }
    // If rows are lost, later changes have other outcomes, whatever the rules are.
    new.accept_other_outcomes |= !repaired.lost.is_empty();
    copy_log(&old.log_dir(), &new.log_dir(), (plan.applied(), plan.last))?;
    keys().map_err(io)?;
    let files = unless_unreadable(|| copy_files(&old, &new)).ok_or(OpenError::Unreadable)??;
    // Rows of pictures without files stay: the operator may put the files back, and the descriptions are kept.
    repaired.damage.extend(files.damage);
    let mut other_outcomes = None;
    if plan.base.is_some() && plan.last > plan.applied() {
        // Older files may have restored rows that an unfinished removal has passed, so `mend` runs again after the log.
        other_outcomes = store_once(&new)?.other_outcomes;
        unless_unreadable(|| mend(&new, &mut repaired)).ok_or(OpenError::Unreadable)??;
    }
    let Completed { totals, missing_files, other_outcomes: later } =
        restore::complete(&new, &mut lock)?;
    let other_outcomes = other_outcomes.or(later);
    if missing_files > 0 {
        let what = "files of pictures: put copies, if there are any, into the directory media";
        repaired.lost.push(format!("{missing_files} {what}"));
    }
    repaired.lost.extend(other_outcomes.map(|position| {
        format!(
            "outcomes that another build acknowledged: those of group {}, and perhaps later ones",
            position.0
        )
    }));
    repaired.positions = (plan.applied(), plan.last);
    for (list, more) in
        [(&mut repaired.corrected, repaired.more.0), (&mut repaired.lost, repaired.more.1)]
    {
        list.extend((more > 0).then(|| and_more(more)));
    }
    let users = totals.users - totals.users_deleted;
    repaired.counts = (users.into(), totals.posts, totals.follows);
    Ok(repaired)
}

/// Plan of a repair: where the rows of the new store come from.
struct Plan {
    /// Rows to begin with; `None` if the log has everything.
    base: Option<Base>,
    /// Last group that can be applied.
    last: u64,
    /// Whether no later group existed.
    is_complete: bool,
}

impl Plan {
    fn applied(&self) -> u64 {
        self.base.map_or(0, |base| base.applied)
    }

    /// Creates the plan for a base. `newest` is the last group that is known to have been applied.
    fn new(base: Option<Base>, survey: &LogSurvey, newest: u64) -> Self {
        let applied = base.map_or(0, |base| base.applied);
        let holds = survey
            .stretches
            .iter()
            .find(|stretch| (stretch.first.0..=stretch.last.0).contains(&(applied + 1)));
        let last = holds.map_or(applied, |stretch| stretch.last.0);
        let is_damaged = survey.damage.iter().any(|damage| damage.position.0 > last);
        // If the log is missing or ends before the store, an unknown number of groups at the log's end is lost.
        let has_end = survey.last == Some(Position(last)) && last >= newest;
        Self { base, last, is_complete: has_end && !is_damaged }
    }

    /// Returns the plan without the groups after `last`; `None` if the rows contain them.
    fn up_to(self, last: u64) -> Option<Self> {
        if self.last <= last {
            return Some(self);
        }
        (self.applied() <= last).then_some(Self { last, is_complete: false, ..self })
    }

    /// Returns the criteria for choosing a plan, the most important first.
    fn rank(&self) -> (bool, bool, u64, u64) {
        let is_whole = self.base.is_none_or(|base| base.is_whole);
        (self.is_complete, is_whole, self.last, self.applied())
    }
}

fn choose(
    bases: Vec<Base>,
    survey: &LogSurvey,
    drop_after: Option<u64>,
) -> Result<Plan, RepairError> {
    let from_begin = survey.stretches.first().is_some_and(|stretch| stretch.first.0 == 1);
    let newest = bases.iter().map(|base| base.applied).max().unwrap_or(0);
    let oldest = bases.iter().map(|base| base.applied).min();
    let bases = bases.into_iter().map(Some).chain(from_begin.then_some(None));
    let plans = bases.map(|base| Plan::new(base, survey, newest));
    let plans = plans.filter_map(|plan| plan.up_to(drop_after.unwrap_or(u64::MAX)));
    plans.max_by_key(Plan::rank).ok_or(match (drop_after, oldest) {
        (Some(after), Some(applied)) if applied > after => RepairError::Applied { after, applied },
        _ => RepairError::Hopeless,
    })
}

fn survey(dir: &Path) -> Result<LogSurvey, LogError> {
    match dir.is_dir() {
        true => commitlog::salvage(dir, &mut |_| Ok(())),
        false => Ok(LogSurvey::default()),
    }
}

/// Returns the groups that the log still has after the group `after`; groups up to `known` existed.
fn lost_groups(dir: &Path, (after, known): (u64, u64)) -> Result<LostGroups, LogError> {
    let last = known.max(after);
    let mut lost = LostGroups { after, last, readable: (0, 0), times_ms: None };
    if dir.is_dir() {
        commitlog::salvage(dir, &mut |group| {
            if group.position.0 > after {
                lost.readable.0 += 1;
                lost.readable.1 += commands(&group);
                let time_ms = group.time_ms;
                let first = lost.times_ms.map_or(time_ms, |(first, _)| first);
                lost.times_ms = Some((first, time_ms));
            }
            Ok(())
        })?;
    }
    Ok(lost)
}

fn commands(group: &commitlog::Group<'_>) -> u64 {
    let (mut count, mut payload) = (0, group.payload);
    while let Ok((entry, rest)) = Entry::read(payload) {
        count += entry.stamps() as u64;
        payload = rest;
    }
    count
}

/// Copies the groups between two positions into a new log.
fn copy_log(from: &Path, to: &Path, (after, last): (u64, u64)) -> Result<(), RepairError> {
    begin_after(&RealDisk, to, Position(after), SEGMENT_BYTES)?;
    let mut log = LocalLog::open(Arc::new(RealDisk), to, Position(after))?;
    let mut failed = None;
    let read = match from.is_dir() {
        true => commitlog::salvage(from, &mut |group| {
            if !(after + 1..=last).contains(&group.position.0) {
                return Ok(());
            }
            log.write_group(group.payload, group.time_ms).map(drop).map_err(|error| {
                failed = Some(RepairError::Log(error));
                "the group cannot be copied".into()
            })
        }),
        false => Ok(LogSurvey::default()),
    };
    if let Some(error) = failed {
        return Err(error);
    }
    read?;
    log.sync()?;
    assert_eq!(log.last().0, last.max(after), "groups have no gaps");
    Ok(())
}

/// Copies the files of pictures that match their names.
fn copy_files(old: &NodeOptions, new: &NodeOptions) -> Result<FilesReport, RepairError> {
    let store = recover_once(new)?;
    let copied = pictures::check::copy(Facts::new(&store), (&old.data, &new.data));
    Ok(copied.map_err(|error| OpenError::Directory(old.data.clone(), error))?)
}

/// Makes the rows of a new store consistent.
fn mend(options: &NodeOptions, repaired: &mut Repaired) -> Result<(), RepairError> {
    let (mut rows, applied) = Store::open(&options.store_dir(), options.store())?;
    let is_ahead = rows.store().is_ephemeral_ahead()?;
    let mut feed = feed::Mend::new(is_ahead);
    let mut kv = kv::Mend::default();
    let mut report = |finding: Finding| repaired.found(finding);
    let relieve = |rows: &mut StoreWriter, is_last: bool| -> Result<(), StoreError> {
        if (is_last || rows.overlay_bytes() >= options.overlay_memory)
            && let Some(checkpoint) = rows.freeze(applied)
        {
            checkpoint.run()?;
        }
        Ok(())
    };
    while feed.step(&mut rows, &mut report) {
        relieve(&mut rows, false)?;
    }
    while kv.step(&mut rows, &mut report) {
        relieve(&mut rows, false)?;
    }
    Ok(relieve(&mut rows, true)?)
}

/// Checks all rows without writing anything; passes findings to `report`, up to a limit.
pub(crate) fn check(
    rows: &mut StoreWriter,
    report: &mut dyn FnMut(Finding),
) -> Result<(), StoreError> {
    let is_ahead = rows.store().is_ephemeral_ahead()?;
    let (mut feed, mut kv) = (feed::Mend::new(is_ahead), kv::Mend::default());
    let mut found = 0;
    let mut counted = |finding| {
        found += 1;
        if found <= FINDINGS_MAX {
            report(finding);
        }
    };
    while feed.step(rows, &mut counted) && rows.overlay_bytes() < CHECK_BYTES_MAX {}
    while rows.overlay_bytes() < CHECK_BYTES_MAX && kv.step(rows, &mut counted) {}
    if found > FINDINGS_MAX {
        report(Finding::derived(and_more((found - FINDINGS_MAX) as u64)));
    }
    Ok(())
}

fn and_more(count: u64) -> String {
    format!("and {count} more")
}

impl Repaired {
    fn report(&mut self, base: &Base, salvaged: &Salvaged) {
        let blocks = salvaged.corrected.iter();
        self.corrected.extend(blocks.map(|(file, at): &(PathBuf, u64)| {
            format!("{} at byte {at}: one bit was changed, and is corrected", file.display())
        }));
        if base.is_whole {
            return;
        }
        for hole in &salvaged.facts {
            let older = match hole.older {
                0 => String::new(),
                older => {
                    format!("; {older} rows there are kept from older files and may be out of date")
                }
            };
            self.lost.push(format!("{hole} are lost, unless other rows have the same data{older}"));
        }
        for hole in &salvaged.ephemeral {
            self.lost.push(format!("{hole} (texts and views of stories) are lost"));
        }
    }

    fn found(&mut self, finding: Finding) {
        let (list, more) = match finding.is_lost {
            true => (&mut self.lost, &mut self.more.1),
            false => (&mut self.corrected, &mut self.more.0),
        };
        match list.len() < FINDINGS_MAX {
            true => list.push(finding.what),
            false => *more += 1,
        }
    }
}
