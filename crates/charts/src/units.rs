//! Formatted numbers with their units, joined by a no-break space.

/// Formats a whole number with commas.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats a number with three significant digits, without an exponent: 0.123, 12.3, 1,234.
pub fn number(value: f64) -> String {
    let size = value.abs();
    if size == 0.0 {
        return "0".to_owned();
    }
    if size < 0.01 {
        return format!("{value:.4}");
    }
    let decimals = match size {
        ..0.999_5 => 3,
        ..9.995 => 2,
        ..99.95 => 1,
        _ => return count(value.round() as u64),
    };
    format!("{value:.decimals$}")
}

/// Formats a time in milliseconds, with a suitable unit.
pub fn ms(ms: f64) -> String {
    match ms {
        ..0.000_5 => "0\u{a0}ms".to_owned(),
        ..0.999_5 => format!("{}\u{a0}µs", number(ms * 1_000.0)),
        ..999.5 => format!("{}\u{a0}ms", number(ms)),
        _ => format!("{}\u{a0}s", number(ms / 1_000.0)),
    }
}

/// Formats a time in seconds.
pub fn seconds(seconds: f64) -> String {
    let tenths = |value: f64| plain((value * 10.0).round() / 10.0);
    match seconds {
        ..119.5 => format!("{}\u{a0}s", tenths(seconds)),
        ..7_170.0 => format!("{}\u{a0}min", tenths(seconds / 60.0)),
        _ => format!("{}\u{a0}h", tenths(seconds / 3_600.0)),
    }
}

/// Formats a number of bytes, in powers of a thousand.
pub fn bytes(bytes: f64) -> String {
    match bytes {
        ..999.5 => format!("{}\u{a0}B", number(bytes)),
        ..999_500.0 => format!("{}\u{a0}kB", number(bytes / 1e3)),
        ..999_500_000.0 => format!("{}\u{a0}MB", number(bytes / 1e6)),
        _ => format!("{}\u{a0}GB", number(bytes / 1e9)),
    }
}

/// Formats a share of a whole in percent. A share above zero is never shown as zero.
pub fn percent(part: u64, whole: u64) -> String {
    let percent = part as f64 * 100.0 / whole.max(1) as f64;
    if part > 0 && percent < 0.001 {
        "less than 0.001 %".to_owned()
    } else {
        format!("{}\u{a0}%", number(percent))
    }
}

/// Formats a round number at a tick: 0, 0.5, 1k, 2.5M.
pub fn tick(value: f64) -> String {
    let (value, unit) = match value {
        ..1e3 => (value, ""),
        ..1e6 => (value / 1e3, "k"),
        _ => (value / 1e6, "M"),
    };
    format!("{}{unit}", plain(value))
}

/// Formats a time in milliseconds at a tick: 200 µs, 5 ms, 10 s.
pub fn tick_ms(ms: f64) -> String {
    match ms {
        ..0.999 => format!("{} µs", plain(ms * 1_000.0)),
        ..999.0 => format!("{} ms", plain(ms)),
        _ => format!("{} s", plain(ms / 1_000.0)),
    }
}

/// Formats a rate at a tick: 500/s, 2k/s.
pub fn tick_rate(per_s: f64) -> String {
    format!("{}/s", tick(per_s))
}

/// Formats a rate: 1,234/s.
pub fn rate(per_s: f64) -> String {
    format!("{}/s", number(per_s))
}

/// Formats of a value: a short one for ticks and an exact one for texts.
#[derive(Debug, Clone, Copy)]
pub struct Format {
    /// Format for ticks, where values are round.
    pub tick: fn(f64) -> String,
    /// Format for texts.
    pub text: fn(f64) -> String,
}

impl Format {
    /// Plain numbers.
    pub const NUMBER: Format = Format { tick, text: number };
    /// Times in milliseconds.
    pub const MS: Format = Format { tick: tick_ms, text: ms };
    /// Rates per second.
    pub const RATE: Format = Format { tick: tick_rate, text: rate };
    /// Numbers of bytes.
    pub const BYTES: Format = Format { tick: bytes, text: bytes };
}

/// Formats a number with at most six decimals, and no zeros at the end.
pub fn plain(value: f64) -> String {
    let text = format!("{value:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Formats a number with its noun: `1 page`, `2 pages`.
pub fn several(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(number), if number == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits_that_say_something() {
        for (value, expect) in [
            (0.0, "0"),
            (0.000_4, "0.0004"),
            (0.123_4, "0.123"),
            (0.999_6, "1.00"),
            (9.994, "9.99"),
            (9.996, "10.0"),
            (99.96, "100"),
            (1_234.5, "1,235"),
            (1_234_567.0, "1,234,567"),
        ] {
            assert_eq!(number(value), expect, "{value}");
        }
    }

    #[test]
    fn values_use_a_suitable_unit() {
        for (text, expect) in [
            (ms(0.0), "0 ms"),
            (ms(0.042), "42.0 µs"),
            (ms(1.0), "1.00 ms"),
            (ms(999.6), "1.00 s"),
            (ms(10_000.0), "10.0 s"),
            (seconds(60.0), "60 s"),
            (seconds(12.34), "12.3 s"),
            (seconds(600.0), "10 min"),
            (seconds(9_000.0), "2.5 h"),
            (bytes(512.0), "512 B"),
            (bytes(293_400_000.0), "293 MB"),
            (bytes(1.5e9), "1.50 GB"),
            (percent(0, 0), "0 %"),
            (percent(1, 3), "33.3 %"),
            (percent(1, 1_000_000), "less than 0.001 %"),
            (several(1, "page", "pages"), "1 page"),
            (several(1_200, "page", "pages"), "1,200 pages"),
        ] {
            assert_eq!(text.replace('\u{a0}', " "), expect);
        }
    }
}
