//! Times in entities.

use jiff::Timestamp;
use jiff::fmt::strtime;

/// Formats a time in milliseconds since 1970, such as `2026-11-23T09:30:00.123Z`.
pub(crate) fn time(unix_ms: u64) -> String {
    let time = i64::try_from(unix_ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
    format!("{:.3}", time.unwrap_or(Timestamp::MAX))
}

/// Formats the day of a time in milliseconds since 1970, such as `2026-11-23`.
pub(crate) fn day(unix_ms: u64) -> String {
    let time = i64::try_from(unix_ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
    let day = time.and_then(|time| strtime::format("%Y-%m-%d", time).ok());
    day.unwrap_or_else(|| "1970-01-01".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_a_day() {
        for (ms, expect) in
            [(0, "1970-01-01"), (1_795_000_000_007, "2026-11-18"), (u64::MAX, "1970-01-01")]
        {
            assert_eq!(day(ms), expect);
        }
        assert_eq!(time(1_800_000_000_001), "2027-01-15T08:00:00.001Z");
    }
}
