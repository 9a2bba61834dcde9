//! Description of a sample: center, spread, quantiles.

/// Maximum length of a whisker, as a multiple of the distance between the quartiles (Tukey 1977).
const WHISKER: f64 = 1.5;

/// The sample; `None` if it has fewer than `least` values or one is not finite.
pub(crate) fn finite(sample: &[f64], least: usize) -> Option<&[f64]> {
    (sample.len() >= least && sample.iter().all(|value| value.is_finite())).then_some(sample)
}

/// The arithmetic mean. `None` without values.
pub fn mean(sample: &[f64]) -> Option<f64> {
    let sample = finite(sample, 1)?;
    Some(sample.iter().sum::<f64>() / sample.len() as f64)
}

/// The variance of the distribution, estimated from the sample: the sum of squared distances from the mean, divided by
/// the number of values minus 1. `None` if there are fewer than 2 values.
pub fn variance(sample: &[f64]) -> Option<f64> {
    let sample = finite(sample, 2)?;
    let mean = mean(sample)?;
    let squares: f64 = sample.iter().map(|value| (value - mean).powi(2)).sum();
    Some(squares / (sample.len() - 1) as f64)
}

/// The standard deviation: the root of [`variance`], in the unit of the values.
pub fn deviation(sample: &[f64]) -> Option<f64> {
    Some(variance(sample)?.sqrt())
}

/// The middle value, or the mean of the two middle values. `None` without values.
pub fn median(sample: &[f64]) -> Option<f64> {
    quantile(sample, 0.5)
}

/// The value below which a `share` (0 to 1) of the sample lies, interpolated between neighbors by definition 7 of
/// Hyndman and Fan (Sample quantiles in statistical packages, 1996), the default of R. `None` without values, or if
/// `share` is not between 0 and 1.
pub fn quantile(sample: &[f64], share: f64) -> Option<f64> {
    quantile_of_sorted(&sorted(finite(sample, 1)?), share)
}

pub(crate) fn sorted(sample: &[f64]) -> Vec<f64> {
    let mut sorted = sample.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted
}

/// The [`quantile`] of values in ascending order.
pub(crate) fn quantile_of_sorted(sorted: &[f64], share: f64) -> Option<f64> {
    if !(0.0..=1.0).contains(&share) {
        return None;
    }
    let place = share * sorted.len().checked_sub(1)? as f64;
    let (below, part) = (place.floor(), place.fract());
    let low = *sorted.get(below as usize)?;
    let high = sorted.get(below as usize + 1).copied().unwrap_or(low);
    Some(low + part * (high - low))
}

/// Data of a box plot (Tukey, Exploratory data analysis, 1977).
#[derive(Debug, Clone, PartialEq)]
pub struct BoxSummary {
    /// The lowest value that is at most 1.5 distances of the quartiles below the lower quartile.
    pub low: f64,
    /// The quartile with a quarter of the values below.
    pub lower_quartile: f64,
    /// The median.
    pub median: f64,
    /// The quartile with three quarters of the values below.
    pub upper_quartile: f64,
    /// The highest value that is at most 1.5 distances of the quartiles above the upper quartile.
    pub high: f64,
    /// The values beyond `low` and `high`, in ascending order.
    pub outliers: Vec<f64>,
}

impl BoxSummary {
    /// The summary of a sample, with quartiles by [`quantile`]. `None` without values.
    pub fn of(sample: &[f64]) -> Option<BoxSummary> {
        let sorted = sorted(finite(sample, 1)?);
        let [lower_quartile, median, upper_quartile] =
            [0.25, 0.5, 0.75].map(|share| quantile_of_sorted(&sorted, share));
        let (lower_quartile, upper_quartile) = (lower_quartile?, upper_quartile?);
        let reach = WHISKER * (upper_quartile - lower_quartile);
        let within = lower_quartile - reach..=upper_quartile + reach;
        let (near, outliers): (Vec<f64>, Vec<f64>) =
            sorted.into_iter().partition(|value| within.contains(value));
        // An interpolated quartile may be beyond the last value within the whisker's length.
        let low = near.first().copied().unwrap_or(lower_quartile).min(lower_quartile);
        let high = near.last().copied().unwrap_or(upper_quartile).max(upper_quartile);
        Some(BoxSummary { low, lower_quartile, median: median?, upper_quartile, high, outliers })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_not_defined_is_none() {
        for sample in [&[][..], &[f64::NAN], &[1.0, f64::INFINITY]] {
            let all = [mean(sample), variance(sample), median(sample), quantile(sample, 0.1)];
            assert_eq!(all, [None; 4], "{sample:?}");
            assert_eq!(BoxSummary::of(sample), None);
        }
        assert_eq!(variance(&[1.0]), None);
        for share in [-0.1, 1.1, f64::NAN] {
            assert_eq!(quantile(&[1.0, 2.0], share), None, "{share}");
        }
    }

    #[test]
    fn values_far_from_the_quartiles_are_outliers() {
        let summary = BoxSummary::of(&[9.0, 1.0, 2.0, 3.0, 4.0, 5.0, -8.0]).unwrap();
        let expect = BoxSummary {
            low: 1.0,
            lower_quartile: 1.5,
            median: 3.0,
            upper_quartile: 4.5,
            high: 9.0,
            outliers: vec![-8.0],
        };
        assert_eq!(summary, expect);
    }

    proptest! {
        #[test]
        fn quantiles_rise_and_lie_within_the_sample(
            sample in proptest::collection::vec(-1e6..1e6, 1..40),
            shares in proptest::array::uniform2(0.0..=1.0),
        ) {
            let [a, b] = shares.map(|share| quantile(&sample, share).unwrap());
            let (least, most) = (quantile(&sample, 0.0).unwrap(), quantile(&sample, 1.0).unwrap());
            prop_assert!(sample.iter().all(|&value| (least..=most).contains(&value)));
            prop_assert!((least..=most).contains(&a));
            prop_assert_eq!(a.total_cmp(&b).is_le(), shares[0] <= shares[1] || a == b);
        }

        #[test]
        fn no_value_of_a_box_is_lost(sample in proptest::collection::vec(-1e3..1e3, 1..40)) {
            let summary = BoxSummary::of(&sample).unwrap();
            let BoxSummary { low, lower_quartile, median, upper_quartile, high, outliers } = summary;
            prop_assert!([low, lower_quartile, median, upper_quartile, high].is_sorted());
            let near = sample.iter().filter(|value| (low..=high).contains(*value)).count();
            prop_assert_eq!(near + outliers.len(), sample.len());
        }
    }
}
