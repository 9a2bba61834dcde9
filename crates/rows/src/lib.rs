//! What the rules (`feed`, `kv`) and the store share: which tables there are and how their rows are
//! reached, the stamps that order changes, and what a change costs.
//!
//! The rules say what is in a row and when it changes; the store keeps rows without knowing what they
//! mean. Neither has to know the other.
//!
//! **Invariant:** no clock, no randomness, no I/O and no lock.

mod access;
mod cost;
mod record;
mod span;
mod stamp;
mod table;
mod totals;

pub use access::{Rows, RowsMut, advance};
pub use cost::{CHANGE_BYTES_MAX, CHANGE_ROWS_MAX, Cost, ROW_BYTES, WORK_PER_ROW};
pub use record::{Value, decode, encode};
pub use span::{Order, Span};
pub use stamp::{EPOCH_MS, Stamp, StampClock};
pub use table::{NameTable, PointTable, SetTable};
pub use totals::Totals;
