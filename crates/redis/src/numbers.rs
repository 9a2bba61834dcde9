//! Numbers and times in commands, parsed as strictly as by Redis.

use kv::Expiry;

use super::failure::Failure;

/// Parses an integer as strictly as Redis: no sign except `-`, no leading zero, no blank.
pub(crate) fn integer(text: &[u8]) -> Result<i64, Failure> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    let canonical = match digits {
        [b'0'] => text.len() == 1,
        [b'1'..=b'9', ..] => digits.len() <= 19,
        _ => false,
    };
    let number = std::str::from_utf8(text).ok().filter(|_| canonical);
    number.and_then(|text| text.parse().ok()).ok_or(Failure::NOT_AN_INTEGER)
}

/// Checks a number.
///
/// # Errors
/// If it is not a number. Infinity is a number; computations with it are refused later.
pub(crate) fn check_float(text: &[u8]) -> Result<(), Failure> {
    if kv::is_float(text) { Ok(()) } else { Err(Failure::NOT_A_FLOAT) }
}

/// Whether a word equals `lower`, ignoring case.
pub(crate) fn is(word: &[u8], lower: &str) -> bool {
    word.eq_ignore_ascii_case(lower.as_bytes())
}

/// Unit of a time, and whether the time is absolute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unit {
    seconds: bool,
    from_now: bool,
}

impl Unit {
    pub(crate) const EX: Self = Self { seconds: true, from_now: true };
    pub(crate) const PX: Self = Self { seconds: false, from_now: true };
    pub(crate) const EXAT: Self = Self { seconds: true, from_now: false };
    pub(crate) const PXAT: Self = Self { seconds: false, from_now: false };

    /// Unit of an option of SET or GETEX.
    pub(crate) fn of_option(word: &[u8]) -> Option<Self> {
        let units =
            [("ex", Self::EX), ("px", Self::PX), ("exat", Self::EXAT), ("pxat", Self::PXAT)];
        units.iter().find(|(name, _)| is(word, name)).map(|(_, unit)| *unit)
    }

    /// Returns the expiry of a key with this TTL or at this time. Times in the past are valid; all times before 1970
    /// give the same result.
    ///
    /// # Errors
    /// If the text is not a number, or the time does not fit 63 bits of milliseconds.
    pub(crate) fn expiry(
        self,
        time: &[u8],
        command: &str,
        now_ms: impl FnOnce() -> u64,
    ) -> Result<Expiry, Failure> {
        let time = integer(time)?;
        let ms = if self.seconds { time.checked_mul(1_000) } else { Some(time) };
        let ms = ms.ok_or_else(|| Failure::expiry(command))?;
        let Ok(positive) = u64::try_from(ms) else { return Ok(Expiry::At(0)) };
        if !self.from_now {
            return Ok(Expiry::At(positive));
        }
        let fits = positive.checked_add(now_ms()).is_some_and(|at| i64::try_from(at).is_ok());
        if fits { Ok(Expiry::In(positive)) } else { Err(Failure::expiry(command)) }
    }

    /// Returns the expiry of a key, for commands that accept only times above 0.
    pub(crate) fn life(
        self,
        time: &[u8],
        command: &str,
        now_ms: impl FnOnce() -> u64,
    ) -> Result<Expiry, Failure> {
        if integer(time)? <= 0 {
            return Err(Failure::expiry(command));
        }
        self.expiry(time, command, now_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_have_one_form() {
        for (text, number) in [
            ("0", 0),
            ("-1", -1),
            ("10", 10),
            ("9223372036854775807", i64::MAX),
            ("-9223372036854775808", i64::MIN),
        ] {
            assert_eq!(integer(text.as_bytes()), Ok(number));
        }
        for text in [
            "",
            "-",
            "+1",
            "01",
            "-0",
            " 1",
            "1 ",
            "1.0",
            "0x1",
            "9223372036854775808",
            "1\0",
            "é",
            "-9223372036854775809",
            "00",
            "99999999999999999999999",
        ] {
            assert_eq!(integer(text.as_bytes()), Err(Failure::NOT_AN_INTEGER), "{text}");
        }
    }

    #[test]
    fn numbers_are_those_of_c_but_no_nan() {
        for text in ["1.5", "-0", "5e3", "+inf", "0x10", "-0X1.8p-3"] {
            assert_eq!(check_float(text.as_bytes()), Ok(()));
        }
        for text in ["", " 1", "1 ", "nan", "1,5", "1\x002", "x", "0x", "0x1p", "0x-1", "0xg"] {
            assert_eq!(check_float(text.as_bytes()), Err(Failure::NOT_A_FLOAT), "{text:?}");
        }
    }

    #[test]
    fn times_that_do_not_fit_are_refused_and_those_in_the_past_are_not() {
        let now = || 1_700_000_000_000;
        let expiry = |unit: Unit, text: &str| unit.expiry(text.as_bytes(), "expire", now);
        assert_eq!(expiry(Unit::EX, "10"), Ok(Expiry::In(10_000)));
        assert_eq!(expiry(Unit::PX, "0"), Ok(Expiry::In(0)));
        assert_eq!(expiry(Unit::PX, "-10"), Ok(Expiry::At(0)));
        assert_eq!(expiry(Unit::EXAT, "5"), Ok(Expiry::At(5_000)));
        assert_eq!(
            expiry(Unit::PXAT, "9223372036854770000"),
            Ok(Expiry::At(9_223_372_036_854_770_000))
        );
        assert_eq!(expiry(Unit::PXAT, "-9223372036854770000"), Ok(Expiry::At(0)));
        for (unit, text) in [
            (Unit::EX, "9223372036854776"),
            (Unit::EX, "-9223372036854776"),
            (Unit::EX, "9223370399119966"),
            (Unit::PX, "9223372036854770000"),
        ] {
            let error = expiry(unit, text).unwrap_err().to_string();
            assert_eq!(error, "ERR invalid expire time in 'expire' command");
        }
        assert!(Unit::EX.life(b"0", "set", now).is_err());
        assert!(Unit::PXAT.life(b"-1", "set", now).is_err());
        assert_eq!(Unit::PXAT.life(b"1", "set", now), Ok(Expiry::At(1)));
    }
}
