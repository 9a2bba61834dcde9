//! Numbers in values: 64-bit integers, and numbers in the syntax of C's `strtod`. Decimals are added exactly where
//! possible.

use std::borrow::Cow;

use crate::answer::KeyRefusal;
use crate::limits::FLOAT_BYTES_MAX;

/// Maximum number of digits after the decimal point.
const PLACES: u32 = 17;
/// The number 1, in units of the last place.
const ONE: i128 = 10_i128.pow(PLACES);

/// Parses an integer as Redis writes it: without spaces, plus sign and leading zeros.
pub(super) fn whole_number(text: &[u8]) -> Option<i64> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    let plain = match digits {
        b"0" => text == digits,
        [first, ..] => (b'1'..=b'9').contains(first),
        [] => false,
    };
    if !plain || text.len() > 20 {
        return None;
    }
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// Whether a text is a number: decimal, hexadecimal like `0x1.8p3`, or infinite.
#[must_use]
pub fn is_float(text: &[u8]) -> bool {
    number(text).is_ok()
}

/// Adds two numbers. Returns the sum in decimal digits, without an exponent or trailing zeros. The sum is exact if both
/// numbers have at most 17 digits after the point and 20 before it; otherwise it is computed in floating point.
pub(super) fn add_decimals(a: &[u8], b: &[u8]) -> Result<String, KeyRefusal> {
    let (a, b) = (number(a)?, number(b)?);
    if let (Some(a), Some(b)) = (fixed(&a), fixed(&b))
        && let Some(sum) = a.checked_add(b)
    {
        return Ok(show(sum));
    }
    let parse = |text: &str| text.parse::<f64>().map_err(|_| KeyRefusal::NotFloat);
    let sum = parse(&a)? + parse(&b)?;
    if sum.is_finite() { Ok(format!("{sum}")) } else { Err(KeyRefusal::NotFinite) }
}

/// Converts a number to decimal digits. Accepts infinity.
fn number(text: &[u8]) -> Result<Cow<'_, str>, KeyRefusal> {
    if text.len() > FLOAT_BYTES_MAX {
        return Err(KeyRefusal::NotFloat);
    }
    let text = std::str::from_utf8(text).map_err(|_| KeyRefusal::NotFloat)?;
    if let Some(number) = hexadecimal(text) {
        return Ok(number.to_string().into());
    }
    let number = text.parse::<f64>().map_err(|_| KeyRefusal::NotFloat)?;
    if number.is_nan() { Err(KeyRefusal::NotFloat) } else { Ok(text.into()) }
}

/// Parses a hexadecimal number of C: `0x`, digits with at most one point, and optionally a binary exponent.
fn hexadecimal(text: &str) -> Option<f64> {
    let (negative, text) = match text.strip_prefix(['+', '-']) {
        Some(rest) => (text.starts_with('-'), rest),
        None => (false, text),
    };
    let text = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"))?;
    let (digits, mut exponent) = match text.split_once(['p', 'P']) {
        Some((digits, exponent)) => (digits, binary_exponent(exponent)?),
        None => (text, 0),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let mut number = 0_u128;
    let places = whole.chars().map(|digit| (digit, 0));
    for (digit, place) in places.chain(fraction.chars().map(|digit| (digit, 4))) {
        let digit = digit.to_digit(16)?;
        if number >> 120 == 0 {
            number = number << 4 | u128::from(digit);
            exponent -= place;
        } else {
            // For rounding, it only matters whether one of the remaining digits is not zero.
            number |= u128::from(digit != 0);
            exponent += 4 - place;
        }
    }
    let mut number = number as f64;
    let factor = if exponent < 0 { 0.5 } else { 2.0 };
    // After this number of steps, every number is 0 or infinite.
    for _ in 0..exponent.unsigned_abs().min(2_500) {
        number *= factor;
    }
    Some(if negative { -number } else { number })
}

/// Parses an exponent of 2 in decimal digits, and limits it to `1 << 20`. A greater exponent gives the same number: 0
/// or infinity.
fn binary_exponent(text: &str) -> Option<i64> {
    const MOST: i64 = 1 << 20;
    let (negative, digits) = match text.strip_prefix(['+', '-']) {
        Some(rest) => (text.starts_with('-'), rest),
        None => (false, text),
    };
    let is_number = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
    let found = is_number.then(|| digits.parse().map_or(MOST, |found: i64| found.min(MOST)))?;
    Some(if negative { -found } else { found })
}

/// The number in units of its 17th decimal place; `None` if it has more places or is too large.
fn fixed(text: &str) -> Option<i128> {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (negative, digits) = match mantissa.as_bytes().first()? {
        b'-' => (true, mantissa.get(1..)?),
        b'+' => (false, mantissa.get(1..)?),
        _ => (false, mantissa),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let fraction = fraction.trim_end_matches('0');
    let mut number = 0_i128;
    for digit in whole.bytes().chain(fraction.bytes()) {
        let digit = digit.is_ascii_digit().then(|| i128::from(digit - b'0'))?;
        number = number.checked_mul(10)?.checked_add(digit)?;
    }
    let shift = i32::try_from(PLACES).ok()?.checked_add(exponent)?;
    let shift = shift.checked_sub(i32::try_from(fraction.len()).ok()?)?;
    let scale = u32::try_from(shift).ok().and_then(|shift| 10_i128.checked_pow(shift));
    let number = if number == 0 { 0 } else { number.checked_mul(scale?)? };
    Some(if negative { -number } else { number })
}

fn show(number: i128) -> String {
    let sign = if number < 0 { "-" } else { "" };
    let (whole, fraction) =
        (number.unsigned_abs() / ONE as u128, number.unsigned_abs() % ONE as u128);
    let places = format!("{fraction:017}");
    let places = places.trim_end_matches('0');
    let point = if places.is_empty() { "" } else { "." };
    format!("{sign}{whole}{point}{places}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_are_plain() {
        for (text, number) in [
            ("0", Some(0)),
            ("-1", Some(-1)),
            ("9223372036854775807", Some(i64::MAX)),
            ("-9223372036854775808", Some(i64::MIN)),
            ("9223372036854775808", None),
            ("", None),
            ("-", None),
            ("-0", None),
            ("01", None),
            ("+1", None),
            (" 1", None),
            ("1 ", None),
            ("1.0", None),
        ] {
            assert_eq!(whole_number(text.as_bytes()), number, "{text:?}");
        }
    }

    #[test]
    fn decimals_add_up() {
        for (a, b, sum) in [
            ("0.1", "0.2", "0.3"),
            ("3", "1.1", "4.1"),
            ("1", "-1", "0"),
            ("-0.5", "0.25", "-0.25"),
            ("5.0e3", "2.0e2", "5200"),
            ("1e-5", "0", "0.00001"),
            ("17179869184", "1.5", "17179869185.5"),
            ("1e200", "1e200", &format!("{}", 2e200)),
            ("0.00000000000000000001", "1", "1"),
            (
                "123456789012345678901234567890",
                "0",
                &format!("{}", 123456789012345678901234567890.0),
            ),
            (".5", "5.", "5.5"),
            ("0x10", "0", "16"),
            ("1", "-0X1.8p3", "-11"),
            ("0x.8", "+0xap0", "10.5"),
            ("0x1P-4", "0.1", "0.1625"),
            ("0xffffffffffffffffffffffffffffffffffff", "0", &format!("{}", 2_f64.powi(144))),
            (&format!("0x0.{}8p4004", "0".repeat(1_000)), "0", "8"),
            (&format!("0x{}1p-400", "0".repeat(2_000)), "0x0", &format!("{}", 2_f64.powi(-400))),
            ("0x1p-99999999999999999999", "1", "1"),
        ] {
            assert_eq!(add_decimals(a.as_bytes(), b.as_bytes()).as_deref(), Ok(sum), "{a} + {b}");
        }
        for (a, b, refusal) in [
            ("abc", "1", KeyRefusal::NotFloat),
            ("", "1", KeyRefusal::NotFloat),
            (" 1", "1", KeyRefusal::NotFloat),
            ("nan", "1", KeyRefusal::NotFloat),
            ("1", "inf", KeyRefusal::NotFinite),
            ("1e308", "1e308", KeyRefusal::NotFinite),
            ("0x1p99999999999999999999", "1", KeyRefusal::NotFinite),
            ("0x", "1", KeyRefusal::NotFloat),
            ("0x.", "1", KeyRefusal::NotFloat),
            ("0xp1", "1", KeyRefusal::NotFloat),
            ("0x1p", "1", KeyRefusal::NotFloat),
            ("0x1p1.5", "1", KeyRefusal::NotFloat),
            ("0x1.2.3", "1", KeyRefusal::NotFloat),
            ("0x+1", "1", KeyRefusal::NotFloat),
            ("+-0x1", "1", KeyRefusal::NotFloat),
            ("10x1", "1", KeyRefusal::NotFloat),
            ("0x1 ", "1", KeyRefusal::NotFloat),
        ] {
            assert_eq!(add_decimals(a.as_bytes(), b.as_bytes()), Err(refusal), "{a:?} + {b:?}");
        }
    }
}
