//! Numbers in protocol lines: counts, lengths and integers.

/// Reads a number in the one form that Redis accepts: no sign but `-`, no leading zero, no blank.
pub(crate) fn canonical(text: &[u8]) -> Option<i64> {
    let number = std::str::from_utf8(text).ok()?.parse().ok()?;
    (itoa::Buffer::new().format::<i64>(number).as_bytes() == text).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expect: Option<i64>) {
        assert_eq!(canonical(text.as_bytes()), expect, "{text:?}");
    }

    #[test]
    fn a_number_has_one_form_only() {
        check("0", Some(0));
        check("7", Some(7));
        check("10", Some(10));
        check("999", Some(999));
        check("1000", Some(1_000));
        check("9223372036854775807", Some(i64::MAX));
        check("9223372036854775808", None);
        check("-1", Some(-1));
        check("12", Some(12));
        for wrong in ["", "-0", "00", "01", "012", "+1", " 1", "1 ", "1x"] {
            check(wrong, None);
        }
    }
}
