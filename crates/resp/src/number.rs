//! Numbers in protocol lines: counts, lengths and integers.

/// Parses a number below 1,000 that is followed by a CR and one more byte. Returns the number and how many digits it
/// has.
///
/// Almost every header has such a number. `None` only means that the line needs the full parser: it may be incomplete,
/// negative, longer, or wrong.
#[inline(always)]
pub(crate) fn plain(line: &[u8]) -> Option<(usize, usize)> {
    let value = |digit: &u8| usize::from(*digit - b'0');
    match line {
        [one @ b'0'..=b'9', b'\r', _, ..] => Some((value(one), 1)),
        [ten @ b'1'..=b'9', one @ b'0'..=b'9', b'\r', _, ..] => {
            Some((value(ten) * 10 + value(one), 2))
        }
        [hundred @ b'1'..=b'9', ten @ b'0'..=b'9', one @ b'0'..=b'9', b'\r', _, ..] => {
            Some((value(hundred) * 100 + value(ten) * 10 + value(one), 3))
        }
        _ => None,
    }
}

/// Parses a number in the only form that Redis accepts: no sign except `-`, no leading zero, no space.
pub(crate) fn canonical(text: &[u8]) -> Option<i64> {
    let number = std::str::from_utf8(text).ok()?.parse().ok()?;
    (itoa::Buffer::new().format::<i64>(number).as_bytes() == text).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, expect_plain: Option<(usize, usize)>, expect_canonical: Option<i64>) {
        assert_eq!(plain(line.as_bytes()), expect_plain, "{line:?}");
        let text = line.split('\r').next().unwrap();
        assert_eq!(canonical(text.as_bytes()), expect_canonical, "{line:?}");
    }

    #[test]
    fn a_number_has_one_form_only() {
        check("0\r\n", Some((0, 1)), Some(0));
        check("7\r\nmore", Some((7, 1)), Some(7));
        check("10\r\n", Some((10, 2)), Some(10));
        check("999\r\n", Some((999, 3)), Some(999));
        check("1000\r\n", None, Some(1_000));
        check("9223372036854775807\r\n", None, Some(i64::MAX));
        check("9223372036854775808\r\n", None, None);
        check("-1\r\n", None, Some(-1));
        check("12\r", None, Some(12)); // the LF has not arrived yet
        for wrong in [
            "\r\n", "-0\r\n", "00\r\n", "01\r\n", "012\r\n", "+1\r\n", " 1\r\n", "1 \r\n", "1x\r\n",
        ] {
            check(wrong, None, None);
        }
    }
}
