//! Percentile distributions as text, in the format of HdrHistogram's plotters.
//!
//! The format is that of `outputPercentileDistribution` in the Java library: four columns with five ticks for each
//! halving of the distance to 100 %, and three lines with totals.

use std::io::{self, Write};

use hdrhistogram::Histogram;

/// Rows for each halving of the distance to 100 %.
const TICKS: u32 = 5;

/// Writes a distribution. Divided by `per_ms`, its values are milliseconds.
///
/// # Errors
/// If it cannot be written.
pub fn write(values: &Histogram<u64>, per_ms: f64, out: &mut impl Write) -> io::Result<()> {
    let ms = |value: f64| value / per_ms;
    writeln!(out, "{:>12} {:>14} {:>10} 1/(1-Percentile)\n", "Value", "Percentile", "TotalCount")?;
    let mut total = 0;
    for row in values.iter_quantiles(TICKS) {
        total += row.count_since_last_iteration();
        let (value, quantile) = (ms(row.value_iterated_to() as f64), row.quantile_iterated_to());
        write!(out, "{value:>12.3} {quantile:>2.12} {total:>10}")?;
        if quantile < 1.0 {
            write!(out, " {:>14.2}", 1.0 / (1.0 - quantile))?;
        }
        writeln!(out)?;
    }
    let (mean, deviation) = (ms(values.mean()), ms(values.stdev()));
    writeln!(out, "#[Mean    = {mean:>12.3}, StdDeviation   = {deviation:>12.3}]")?;
    let (max, count) = (ms(values.max() as f64), values.len());
    writeln!(out, "#[Max     = {max:>12.3}, Total count    = {count:>12}]")?;
    let (buckets, parts) = (values.buckets(), parts_of_bucket(values.sigfig()));
    writeln!(out, "#[Buckets = {buckets:>12}, SubBuckets     = {parts:>12}]")
}

/// Number of sub-buckets of a bucket: a power of two that gives this many significant digits.
fn parts_of_bucket(digits: u8) -> u64 {
    (2 * 10_u64.pow(u32::from(digits))).next_power_of_two()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn histogram(values: impl IntoIterator<Item = u64>) -> Histogram<u64> {
        let mut histogram = Histogram::new_with_bounds(1, 3_600_000_000, 3).unwrap();
        for value in values {
            histogram.record(value).unwrap();
        }
        histogram
    }

    fn text(histogram: &Histogram<u64>, per_ms: f64) -> String {
        let mut out = Vec::new();
        write(histogram, per_ms, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    /// The numbers of each row; the last column is missing in the last row.
    fn rows(text: &str) -> Vec<Vec<f64>> {
        let row = |line: &str| line.split_whitespace().map(|cell| cell.parse().unwrap()).collect();
        text.lines().skip(2).take_while(|line| !line.starts_with('#')).map(row).collect()
    }

    #[test]
    fn an_even_distribution_has_its_known_percentiles() {
        let rows = rows(&text(&histogram(1..=10_000), 1.0));
        let check = |percentile: f64, value: f64| {
            let found = rows.iter().find(|row| row[1] == percentile).expect("a row of its own");
            assert!((found[0] - value).abs() <= value / 1_000.0 + 1.0, "{percentile}: {found:?}");
            assert!((found[2] - value).abs() <= value / 1_000.0 + 1.0, "{percentile}: {found:?}");
        };
        for (percentile, value) in [
            (0.0, 1.0),
            (0.1, 1_000.0),
            (0.5, 5_000.0),
            (0.75, 7_500.0),
            (0.9, 9_000.0),
            (0.987_5, 9_875.0),
            (1.0, 10_000.0),
        ] {
            check(percentile, value);
        }
    }

    #[test]
    fn the_lines_are_those_of_the_java_library() {
        let text = text(&histogram([1_000; 4].into_iter().chain([2_000])), 1_000.0);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[0], "       Value     Percentile TotalCount 1/(1-Percentile)");
        assert_eq!(lines[1], "");
        assert_eq!(lines[2], "       1.000 0.000000000000          4           1.00");
        assert_eq!(lines[lines.len() - 4], "       2.000 1.000000000000          5");
        assert_eq!(
            lines[lines.len() - 3..],
            [
                "#[Mean    =        1.200, StdDeviation   =        0.400]",
                "#[Max     =        2.000, Total count    =            5]",
                "#[Buckets =           22, SubBuckets     =         2048]",
            ]
        );
    }

    #[test]
    fn nothing_measured_is_a_header_and_totals() {
        let text = text(&histogram([]), 1_000.0);
        assert_eq!((rows(&text).len(), text.lines().count()), (0, 5));
        assert!(text.contains("Total count    =            0]"), "{text}");
    }

    proptest! {
        #[test]
        fn columns_only_rise_and_end_with_everything(
            values in proptest::collection::vec(1_u64..3_000_000_000, 1..300)
        ) {
            let count = values.len() as f64;
            let rows = rows(&text(&histogram(values), 1_000.0));
            for pair in rows.windows(2) {
                prop_assert!((0..3).all(|column| pair[0][column] <= pair[1][column]), "{pair:?}");
            }
            let last = rows.last().unwrap();
            prop_assert_eq!((last[1], last[2], last.len()), (1.0, count, 3));
            prop_assert!(rows[..rows.len() - 1].iter().all(|row| row.len() == 4));
        }
    }
}
