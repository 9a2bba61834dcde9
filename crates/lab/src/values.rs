//! Compared values, computed from the raw data of a trial.

use crate::experiment::{Experiment, Quantity};
use crate::measured::Measured;
use crate::record::Record;

/// Warm-up of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WarmUp {
    /// Number of marks up to the steady part. The time until the last of these marks does not count.
    Marks(usize),
    /// The trial was never steady, or is too short. All of it counts.
    Unknown,
}

/// Finds the warm-up by applying [`stats::warm_up`] to the times between marks.
#[must_use]
pub fn warm_up(measured: &Measured) -> WarmUp {
    let mut before = 0;
    let times = measured.marks_ns.iter().map(|at| {
        let time = at - before;
        before = *at;
        time as f64
    });
    match stats::warm_up(&times.collect::<Vec<_>>()) {
        stats::WarmUp::Ends { at } => WarmUp::Marks(at),
        stats::WarmUp::NeverSteady | stats::WarmUp::TooShort => WarmUp::Unknown,
    }
}

/// Operations per second after the warm-up.
fn throughput(measured: &Measured) -> f64 {
    let WarmUp::Marks(cold) = warm_up(measured) else { return whole(measured) };
    let steady = measured.marks_ns.get(cold..).unwrap_or_default();
    let before = cold.checked_sub(1).and_then(|last| measured.marks_ns.get(last));
    let (start, Some(end)) = (before.copied().unwrap_or(0), steady.last()) else {
        return whole(measured);
    };
    let operations = steady.len() as u64 * measured.mark_operations;
    operations as f64 / ((end - start) as f64 / 1e9)
}

fn whole(measured: &Measured) -> f64 {
    measured.operations as f64 / (measured.wall_ns as f64 / 1e9)
}

/// Value of a quantity in a trial; `None` if it was not measured.
#[must_use]
pub fn value(measured: &Measured, quantity: &Quantity) -> Option<f64> {
    let value = match quantity.name {
        name if name == Quantity::THROUGHPUT.name => throughput(measured),
        name if name == Quantity::CPU.name => {
            measured.cpu_ns as f64 / 1e3 / measured.operations as f64
        }
        name => *measured.quantities.get(name)?,
    };
    value.is_finite().then_some(value)
}

/// Value that decides the number of trials.
pub(crate) fn main(record: &Record) -> Option<f64> {
    let quantity = Experiment::named(&record.experiment)?.quantities.first()?;
    value(&record.measured, quantity)
}
