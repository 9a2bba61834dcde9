//! The format of times in responses: RFC 3339, UTC, with milliseconds.

use jiff::Timestamp;

/// Formats a time. Times beyond the range of the format, which only expiry times of keys can be, become its last
/// instant.
pub(crate) fn rfc3339(unix_ms: u64) -> String {
    let time = i64::try_from(unix_ms).ok();
    let time = time.and_then(|ms| Timestamp::from_millisecond(ms).ok());
    format!("{:.3}", time.unwrap_or(Timestamp::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_is_a_time() {
        for (ms, expect) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (1_800_000_000_001, "2027-01-15T08:00:00.001Z"),
            (i64::MAX as u64, "9999-12-30T22:00:00.999Z"),
            (u64::MAX, "9999-12-30T22:00:00.999Z"),
        ] {
            assert_eq!(rfc3339(ms), expect);
        }
    }
}
