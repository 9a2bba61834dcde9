//! Ids and times of imported records: as given, or assigned in the order of lines.
//!
//! **Invariant:** no id or time is further ahead than the clock may jump, so that a node can continue after it.

use rows::{EPOCH_MS, Stamp};

use super::Wrong;
use crate::clock::Date;
use crate::export::lines::{Id, Time};

/// Assigns ids.
pub(super) struct Ids {
    /// Start of the import, in milliseconds since 1970.
    now_ms: u64,
    latest_ms: u64,
    /// Highest used id or time.
    last: Option<Stamp>,
}

/// Ids of one kind, which must ascend.
#[derive(Default)]
pub(super) struct Rising(u64);

impl Ids {
    /// Creates an empty state; times may be later than `now_ms` by at most `jump_ms`.
    pub(super) fn new(now_ms: u64, jump_ms: u64) -> Self {
        Self { now_ms, latest_ms: now_ms.saturating_add(jump_ms), last: None }
    }

    pub(super) fn last(&self) -> Option<Stamp> {
        self.last
    }

    /// Returns the highest used id or time in milliseconds since 1970.
    pub(super) fn last_ms(&self) -> u64 {
        self.last.map_or(0, Stamp::unix_ms)
    }

    /// Records a used id and checks that it is valid.
    pub(super) fn used(&mut self, Id(id): Id) -> Result<Stamp, Wrong> {
        let stamp = Stamp(id);
        if stamp < Stamp::MIN || stamp > Stamp::MAX {
            return Err(format!("{id} is not a valid id: see docs/import.md").into());
        }
        if stamp.unix_ms() > self.latest_ms {
            let (date, now) = (Date(stamp.unix_ms()), Date(self.now_ms));
            return Err(
                format!("{date} is in the future: the clock of this machine says {now}; if a clock was wrong, see --set-back").into()
            );
        }
        self.last = self.last.max(Some(stamp));
        Ok(stamp)
    }

    /// Returns the first stamp of a time.
    pub(super) fn at(&mut self, Time(ms): Time) -> Result<Stamp, Wrong> {
        if ms <= EPOCH_MS {
            return Err(
                format!("{} is too early: no time before 2024 can be kept", Date(ms)).into()
            );
        }
        let id = Stamp::first_of(ms);
        self.used(Id(id.0))
    }

    /// Returns the first stamp of a time, or of the present one.
    pub(super) fn at_or_now(&mut self, time: Option<Time>) -> Result<Stamp, Wrong> {
        self.at(time.unwrap_or(Time(self.now_ms)))
    }

    /// Returns the next id of a kind: the given one, or one made of the time, or of the present time.
    pub(super) fn next(
        &mut self,
        kind: &mut Rising,
        id: Option<Id>,
        time: Option<Time>,
    ) -> Result<u64, Wrong> {
        let id = match (id, time) {
            (Some(id), time) => {
                let stamp = self.used(id)?;
                if time.is_some_and(|Time(ms)| ms != stamp.unix_ms()) {
                    let made = Date(stamp.unix_ms());
                    return Err(
                        format!("the id {} has the time {made}, not the one given", id.0).into()
                    );
                }
                if stamp.0 <= kind.0 {
                    return Err(format!(
                        "ids must rise: {} is not greater than {}",
                        stamp.0, kind.0
                    )
                    .into());
                }
                stamp.0
            }
            (None, Some(time)) => {
                let next = self.at(time)?.0.max(kind.0 + 1);
                if Stamp(next).unix_ms() != time.0 {
                    let last = Date(Stamp(kind.0).unix_ms());
                    return Err(format!(
                        "lines must be in the order of time: an earlier one has {last}"
                    )
                    .into());
                }
                next
            }
            (None, None) => self.at_or_now(None)?.0.max(kind.0 + 1),
        };
        kind.0 = id;
        Ok(self.used(Id(id))?.0)
    }
}
