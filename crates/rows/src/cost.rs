//! Upper bound of the cost of a change, computed before the change is logged.
//!
//! A cost depends only on the command, with one exception: some operations on keys write the existing value of a key
//! again, and their cost depends on its length. The cost of every command in the log was checked, so applying the
//! command, live or in a replay, fits into memory and takes a bounded time.
//!
//! **Invariant:** a command changes at most `rows` rows. The number of rows that it changes and looks up and the bytes
//! that it copies are at most `work`. The changes in memory grow by at most `bytes` (on average over many commands,
//! because tables sometimes double in size). At most `answer` bytes of rows are held for its answer. `costs.rs`, a test
//! of the store, compares these bounds with measured values.

/// Maximum memory in bytes that the rows of a command or transaction may add. It is checked before the command is
/// logged, so that applying it always fits.
pub const CHANGE_BYTES_MAX: usize = 48 << 20;
/// Maximum number of rows that a command or transaction may change: about 0.1 s of work. Setting a key changes four
/// rows.
pub const CHANGE_ROWS_MAX: usize = 1 << 18;
/// Memory of a changed row in a table, in bytes, without its content: its entry in a hash table or tree that has just
/// doubled in size, and two allocations.
pub const ROW_BYTES: usize = 320;
/// Work of looking up or changing a row, as the number of bytes that can be copied in the same time.
pub const WORK_PER_ROW: usize = 512;

/// Upper bound of the cost of a command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Number of changed rows.
    pub rows: usize,
    /// Bytes by which the changes in memory grow.
    pub bytes: usize,
    /// Bytes copied, and [`WORK_PER_ROW`] for each row looked up or changed.
    pub work: usize,
    /// Bytes of rows kept until the answer is sent.
    pub answer: usize,
    /// Length of the longest value that a key may have after the command, in bytes; 0 if no value changes.
    pub longest: usize,
}

impl Cost {
    /// Returns the cost of changing `rows` rows whose contents have `held` bytes in total.
    #[must_use]
    pub const fn of_rows(rows: usize, held: usize) -> Self {
        // The allocation for the content of a row may be up to twice its length.
        let bytes = rows * ROW_BYTES + 2 * held;
        Self { rows, bytes, work: 2 * rows * WORK_PER_ROW + held, answer: 0, longest: 0 }
    }

    /// Returns the cost of both changes, one after the other.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            rows: self.rows.saturating_add(other.rows),
            bytes: self.bytes.saturating_add(other.bytes),
            work: self.work.saturating_add(other.work),
            answer: self.answer.saturating_add(other.answer),
            longest: self.longest.max(other.longest),
        }
    }
}
