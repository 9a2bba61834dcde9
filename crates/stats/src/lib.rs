//! Statistics of repeated measurements: estimates with their uncertainty, comparisons, and scaling.
//!
//! Samples are slices of values in any unit, one value for each trial. A function returns `None` if its result is
//! undefined, because there are too few values or one is not finite. The same input gives the same output: the crate
//! uses no clock, no I/O and no randomness without a seed.
//!
//! **Invariant:** every interval has the same confidence, [`CONFIDENCE`].
//! **Invariant:** results that R also computes are compared with R's (`tests/reference.R`). For intervals, simulations
//! count how often they contain the true value.
//!
//! Sources that several modules use:
//!
//! - Georges, Buytaert, Eeckhout: Statistically rigorous Java performance evaluation. OOPSLA 2007.
//! - Kalibera, Jones: Rigorous benchmarking in reasonable time. ISMM 2013.
//! - Efron, Tibshirani: An introduction to the bootstrap. Chapman & Hall 1993.

mod bootstrap;
mod compare;
mod density;
mod describe;
mod distribution;
mod fit;
mod interval;
mod noise;
mod pairs;
mod plan;
mod ratio;
mod significance;
mod warm_up;

pub use bootstrap::{Bootstrap, Center};
pub use compare::{Comparison, Judged, Verdict, compare, verdicts};
pub use density::{Density, density};
pub use describe::{BoxSummary, deviation, mean, median, quantile, variance};
pub use fit::{
    Amdahl, Measured, PowerLaw, Scalability, fit_amdahl, fit_power_law, fit_scalability,
};
pub use interval::{CONFIDENCE, CONFIDENCE_PERCENT, Interval};
pub use noise::{CALIBRATIONS_MIN, Calibration, Noise, NoiseVerdict, TOLERANCE};
pub use pairs::{Paired, compare_pairs, false_findings_most, paired};
pub use plan::trials_for;
pub use ratio::{Ratio, geometric_mean, ratio_of_means};
pub use significance::{MannWhitney, Welch, holm, mann_whitney, welch};
pub use warm_up::{WarmUp, warm_up};
