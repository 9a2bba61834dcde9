//! Interface between the rules (`feed`, `kv`) and the store: tables, access to their rows, stamps that order changes,
//! and the cost of a change.
//!
//! The rules define the content of rows and when it changes. The store keeps rows, and does not depend on their
//! meaning. Neither depends on the other.
//!
//! **Invariant:** the crate uses no clock, randomness, I/O or lock.
//! **Invariant:** each stamp in the log is greater than the stamp before it; [`advance`] asserts this.
//!
//! Read `table`, `access`, `span`, `stamp`, then `cost`.

mod access;
mod cost;
mod finding;
mod record;
mod refusal;
mod rules;
mod span;
mod stamp;
mod subject;
mod table;
mod totals;

pub use access::{MemberRow, PutRows, Rows, RowsMut, Scan, advance};
pub use cost::{CHANGE_BYTES_MAX, CHANGE_ROWS_MAX, Cost, ROW_BYTES, WORK_PER_ROW};
pub use finding::Finding;
pub use record::{Value, decode, encode, malformed, try_decode};
pub use refusal::RefusalClass;
pub use rules::{catch_rules, is_of_rules, outside_rules, panicked_at, rules_run, within_rules};
pub use span::{Order, Span};
pub use stamp::{EPOCH_MS, Stamp, StampClock};
pub use subject::Subject;
pub use table::{NameTable, PointTable, SetTable, Table, Transfer};
pub use totals::Totals;

/// Whether a seeded bug is switched on. The simulator must find each seeded bug (`cargo xtask dst --bugs NAME`).
#[cfg(feature = "bugs")]
pub fn has_bug(name: &str) -> bool {
    use std::sync::OnceLock;
    static BUG: OnceLock<String> = OnceLock::new();
    BUG.get_or_init(|| std::env::var("ROOST_BUG").unwrap_or_default()) == name
}

/// Always false: seeded bugs exist only with the feature.
#[cfg(not(feature = "bugs"))]
pub const fn has_bug(_name: &str) -> bool {
    false
}
