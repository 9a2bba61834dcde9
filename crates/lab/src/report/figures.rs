//! Numbers as people read them.

use stats::Interval;

/// Three digits that matter, with commas between thousands.
pub(crate) fn figure(value: f64) -> String {
    let size = value.abs();
    let digits = if size > 0.0 { 2 - size.log10().floor() as i32 } else { 0 };
    let rounded = format!("{value:.*}", digits.clamp(0, 9) as usize);
    let scale = 10_f64.powi((-digits).max(0));
    if scale <= 1.0 {
        return rounded;
    }
    grouped((value / scale).round() * scale)
}

/// An estimate with its interval.
pub(crate) fn interval(interval: &Interval) -> String {
    let Interval { estimate, low, high } = interval;
    format!("{} [{}, {}]", figure(*estimate), figure(*low), figure(*high))
}

/// A whole number with commas between thousands.
fn grouped(value: f64) -> String {
    let plain = format!("{value:.0}");
    let (sign, digits) = plain.strip_prefix('-').map_or(("", &*plain), |digits| ("-", digits));
    let mut text = String::from(sign);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A probability: small ones are not told exactly.
pub(crate) fn probability(p: f64) -> String {
    if p < 0.001 { "< 0.001".to_owned() } else { format!("{p:.3}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_has_three_digits_that_matter() {
        for (value, expect) in [
            (0.0, "0"),
            (1.0, "1.00"),
            (-2.345, "-2.35"),
            (0.012_345, "0.0123"),
            (12.34, "12.3"),
            (123.4, "123"),
            (1_234.0, "1,230"),
            (98_765_432.0, "98,800,000"),
            (-1_234.0, "-1,230"),
        ] {
            assert_eq!(figure(value), expect, "{value}");
        }
    }
}
