//! Numbers in values, and the maximum length of a value.

use kv::KeyRefusal;
use kv::limits::VALUE_BYTES_MAX;

pub(super) fn long_enough(length: u64) -> Result<(), KeyRefusal> {
    if length > VALUE_BYTES_MAX as u64 { Err(KeyRefusal::TooLong) } else { Ok(()) }
}

pub(super) fn integer(text: &[u8]) -> Result<i64, KeyRefusal> {
    let number = std::str::from_utf8(text).ok().and_then(|text| text.parse::<i64>().ok());
    number.filter(|number| number.to_string().as_bytes() == text).ok_or(KeyRefusal::NotInteger)
}

/// Parses a number with at most two decimal places. The commands add only such numbers.
pub(super) fn hundredths(text: &[u8]) -> Result<i64, KeyRefusal> {
    let text = std::str::from_utf8(text).map_err(|_| KeyRefusal::NotFloat)?;
    let number: f64 = text.parse().map_err(|_| KeyRefusal::NotFloat)?;
    Ok((number * 100.0).round() as i64)
}

pub(super) fn decimal(hundredths: i64) -> String {
    let sign = if hundredths < 0 { "-" } else { "" };
    let (whole, places) = (hundredths.unsigned_abs() / 100, hundredths.unsigned_abs() % 100);
    match places {
        0 => format!("{sign}{whole}"),
        places if places % 10 == 0 => format!("{sign}{whole}.{}", places / 10),
        places => format!("{sign}{whole}.{places:02}"),
    }
}
