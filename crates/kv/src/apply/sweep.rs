//! Sweep: removal of rows that no client can read, a bounded number per command. A sweep first removes expired keys,
//! then keys of spaces without a bucket.
//!
//! **Invariant:** the rows that a sweep removes, and the place where it ends, depend only on the stored rows and its
//! stamp, not on which rows are in memory. All nodes that apply a sweep therefore have the same rows.

use rows::WORK_PER_ROW;

use super::Keys;
use crate::answer::KeyAnswer;
use crate::facts::KeyExpiry;
use crate::key_rows::WalkLimit;
use crate::limits::{SWEEP_BYTES_MAX, SWEEP_ROWS_MAX};
use crate::row::KeyRow;

/// Cost of one step of a walk, in rows.
const WALK_ROWS: usize = 64;
/// Number of expiries that are read at a time.
const STRIDE: usize = 64;
/// Approximate maximum number of rows that one step of a walk reads. In memory, a walk reads the rows of all spaces.
const STEP_ROWS: u64 = 16_384;
/// Binary logarithms of the minimum and the maximum number of steps of a walk through a space. The limits of rows and
/// bytes may end a step early. Even few stored rows need the minimum, because removed rows may still be in memory. The
/// maximum is the number of parts into which a store divides its rows.
const STEPS_LOG: (u32, u32) = (5, 10);

/// Rows and bytes that a sweep may still remove. The sweep ends after the row with which either reaches 0.
struct Budget {
    rows: usize,
    bytes: usize,
    /// Number of rows removed so far.
    removed: u32,
}

impl Budget {
    fn is_used_up(&self) -> bool {
        self.rows == 0 || self.bytes == 0
    }

    /// Counts a removed row, and the bytes read to remove it.
    fn spend(&mut self, bytes: usize) {
        self.removed += 1;
        self.rows = self.rows.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(bytes);
    }
}

impl Keys<'_, '_> {
    pub(super) fn sweep(&mut self) -> KeyAnswer {
        let mut budget =
            Budget { rows: SWEEP_ROWS_MAX as usize, bytes: SWEEP_BYTES_MAX, removed: 0 };
        let more = self.sweep_expired(&mut budget) || self.sweep_orphaned(&mut budget);
        KeyAnswer::Swept { rows: budget.removed, more }
    }

    /// Removes expired keys, those with the earliest expiry first. Returns whether expired keys are left.
    fn sweep_expired(&mut self, budget: &mut Budget) -> bool {
        loop {
            let first = self.txn.facts().first_key_expiries(STRIDE);
            let early_ms = u64::from(rows::has_bug("sweep-live-key"));
            let expired = |next: &&KeyExpiry| next.expires_ms <= self.now_ms + early_ms;
            let count = first.iter().take_while(expired).count();
            for next in first.iter().take(count) {
                if budget.is_used_up() {
                    return true;
                }
                self.sweep_one(next, budget);
            }
            if count < STRIDE {
                return false;
            }
        }
    }

    fn sweep_one(&mut self, next: &KeyExpiry, budget: &mut Budget) {
        let row = self.txn.facts().key(next.space, &next.key);
        budget.spend(next.key.len() + row.as_ref().map_or(0, |row| row.data_bytes() as usize));
        match row.filter(|row| row.expires_ms() == Some(next.expires_ms)) {
            Some(row) => self.remove_expired(&row),
            // No row has this expiry. This should not happen, but must not stop the sweep.
            None => self.txn.put_key_expiry(next.expires_ms, next.space, &next.key, false),
        }
    }

    fn remove_expired(&mut self, row: &KeyRow) {
        let id = self.txn.facts().bucket_of(row.space());
        match id.and_then(|id| Some((id, self.txn.facts().bucket(id)?))) {
            Some((id, bucket)) => self.txn.remove_key(id, bucket, row, self.stamp),
            None => {
                self.txn.remove_orphaned_key(row, self.stamp);
                self.txn.count_orphaned_keys(-1);
            }
        }
    }

    /// Removes rows of spaces without a bucket. Returns whether rows are left.
    fn sweep_orphaned(&mut self, budget: &mut Budget) -> bool {
        while let Some((space, cursor)) = self.txn.facts().first_orphaned_space() {
            if budget.is_used_up() {
                return true;
            }
            let up_to = step_end(cursor, self.txn.facts().stored_keys());
            let limit =
                WalkLimit { rows: budget.rows, bytes: budget.bytes, up_to, ..WalkLimit::NONE };
            let (rows, next) = self.txn.facts().rows_of_keys(space, cursor, limit);
            // Count a fixed cost, because the walk may also have read rows of other spaces.
            budget.rows = budget.rows.saturating_sub(WALK_ROWS);
            self.txn.add_work(WALK_ROWS * WORK_PER_ROW);
            for row in &rows {
                self.txn.remove_orphaned_key(row, self.stamp);
                budget.spend(row.data_bytes() as usize);
            }
            if !rows.is_empty() {
                self.txn.count_orphaned_keys(-(rows.len() as i64));
            }
            self.txn.put_orphaned_space(space, next);
            if next.is_none() {
                self.txn.put_free_space(space, true);
            }
        }
        false
    }
}

/// Last position of the step that begins at `cursor`, when all spaces together have `stored` rows.
fn step_end(cursor: u64, stored: u64) -> u64 {
    let (least, most) = STEPS_LOG;
    let steps = (least..most).find(|steps| stored >> steps <= STEP_ROWS).unwrap_or(most);
    cursor | u64::MAX >> steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_ends_at_a_multiple_that_depends_on_the_number_of_rows() {
        for (cursor, stored, steps) in [
            (0, 0, 5),
            (0, 32 * STEP_ROWS, 5),
            (0, 33 * STEP_ROWS, 6),
            (0, 64 * STEP_ROWS + 63, 6),
            (0, 1_000 * STEP_ROWS, 10),
            (0, u64::MAX, 10),
        ] {
            assert_eq!(step_end(cursor, stored), u64::MAX >> steps, "{stored}");
        }
        assert_eq!(step_end(7 << 50, 0), u64::MAX >> 5, "the rest of the first step");
        assert_eq!(step_end(u64::MAX >> 5, 0), u64::MAX >> 5);
        assert_eq!(step_end((u64::MAX >> 5) + 1, 0), u64::MAX >> 4);
        assert_eq!(step_end(u64::MAX - 1, 0), u64::MAX);
    }
}
