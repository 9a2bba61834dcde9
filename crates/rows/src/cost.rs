//! Upper bound of the cost of a change, computed before it is logged.
//!
//! A cost depends only on the command, except that some operations on keys write the existing value of the key again:
//! their cost depends on its length. Every command in the log was checked by its cost, so applying it, live or in a
//! replay, fits into memory and takes a bounded time.
//!
//! **Invariant:** applying a command changes at most `rows` rows; the rows it changes and looks up and the bytes it
//! copies are at most `work`; the changes in memory grow by at most `bytes` (on average over many commands: tables
//! sometimes double in size); and at most `answer` bytes of rows are kept for its answer. `costs.rs`, a test of the
//! store, compares all of this with measured values.

/// Maximum memory in bytes that the rows of one command or transaction may add. Checked before it is logged, so that
/// applying it always fits.
pub const CHANGE_BYTES_MAX: usize = 48 << 20;
/// Maximum number of rows that one command or transaction may change, four per key that is set: about 0.1 s of work.
pub const CHANGE_ROWS_MAX: usize = 1 << 18;
/// Memory of a changed row in a table without its content, in bytes: its entry in a hash table or a tree that has just
/// doubled in size, and two allocations.
pub const ROW_BYTES: usize = 320;
/// Work of looking up or changing a row, in bytes: copying this many bytes takes about as long.
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
    /// Bytes of the longest value that a key may have afterwards; 0 if none changed.
    pub longest: usize,
}

impl Cost {
    /// Returns the cost of changing `rows` rows that hold `held` bytes together.
    #[must_use]
    pub const fn of_rows(rows: usize, held: usize) -> Self {
        // The content of a row may be allocated with up to twice its length.
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
