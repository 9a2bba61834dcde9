//! Reports of raw data, as pure functions.

mod against_itself;
mod analysis;
mod comparison;
mod figures;
mod page;
mod plots;
mod text;

pub use against_itself::against_itself;
pub use analysis::{Analysis, CellResult, ExperimentResult, Judgement, MARGIN, Scaling};
pub use comparison::compare;
pub use page::page;
pub use text::text;
