//! The text of a report of raw data. Everything here is a pure function of it.

mod analysis;
mod comparison;
mod figures;
mod page;
mod text;

pub use analysis::{Analysis, CellResult, ExperimentResult, Judgement, MARGIN, Scaling};
pub use comparison::compare;
pub use page::page;
pub use text::text;
