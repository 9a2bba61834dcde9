//! The patterns of KEYS and SCAN: `*`, `?`, `[abc]`, `[^abc]`, `[a-z]`, and `\` before a character
//! that means itself.

/// Whether all of `text` matches `pattern`.
///
/// Only the last `*` is ever taken back, so it takes at most as many steps as the product of the two
/// lengths: a pattern cannot be made that keeps a thread busy for ever.
pub(crate) fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut pattern, mut text) = (pattern, text);
    // Where to go on if what follows the last star does not match here.
    let mut retry: Option<(&[u8], &[u8])> = None;
    loop {
        if let [b'*', behind @ ..] = pattern {
            pattern = behind;
            retry = Some((behind, text));
            continue;
        }
        let step = match (pattern, text) {
            ([], []) => return true,
            ([], _) | (_, []) => None,
            (_, [first, rest @ ..]) => one(pattern, *first).map(|behind| (behind, rest)),
        };
        if let Some((behind, rest)) = step {
            (pattern, text) = (behind, rest);
            continue;
        }
        let Some((behind, [_, later @ ..])) = retry else { return false };
        (pattern, text) = (behind, later);
        retry = Some((behind, later));
    }
}

/// What follows the first element of `pattern`, which is no star, if it matches `byte`.
fn one(pattern: &[u8], byte: u8) -> Option<&[u8]> {
    match pattern {
        [b'?', behind @ ..] => Some(behind),
        [b'[', behind @ ..] => class(behind, byte),
        [b'\\', literal, behind @ ..] | [literal, behind @ ..] => {
            (*literal == byte).then_some(behind)
        }
        [] => None,
    }
}

/// As [`one`] for a class, whose `[` has been read. One that is not closed ends with the pattern.
fn class(pattern: &[u8], byte: u8) -> Option<&[u8]> {
    let (negated, mut rest) = match pattern {
        [b'^', rest @ ..] => (true, rest),
        _ => (false, pattern),
    };
    let mut found = false;
    loop {
        rest = match rest {
            [] => break,
            [b']', behind @ ..] => {
                rest = behind;
                break;
            }
            [b'\\', literal, behind @ ..] => {
                found |= *literal == byte;
                behind
            }
            [low, b'-', high, behind @ ..] => {
                found |= (*low.min(high)..=*low.max(high)).contains(&byte);
                behind
            }
            [literal, behind @ ..] => {
                found |= *literal == byte;
                behind
            }
        };
    }
    (found != negated).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_those_of_redis() {
        for (pattern, yes, no) in [
            ("", &[""][..], &["a"][..]),
            ("*", &["", "a", "a/b"], &[]),
            ("h?llo", &["hello", "h\0llo"], &["hllo", "heello"]),
            ("h*llo", &["hllo", "heeeello", "hllollo"], &["hllox"]),
            ("h[ae]llo", &["hello", "hallo"], &["hillo", "hllo"]),
            ("h[^e]llo", &["hallo", "h^llo"], &["hello", "hllo"]),
            ("h[a-c]llo", &["hallo", "hcllo"], &["hdllo", "h-llo"]),
            ("h[c-a]llo", &["hbllo"], &["hdllo"]),
            ("[\\]]x", &["]x"], &["\\]x"]),
            ("[abc", &["a", "c"], &["d", "ab"]),
            ("a\\*b", &["a*b"], &["axb"]),
            ("a\\", &["a\\"], &["a"]),
            ("*a*b*", &["ab", "xaxbx", "aab"], &["ba", "a"]),
            ("key:1??", &["key:100", "key:1ab"], &["key:10", "key:1000"]),
        ] {
            for text in yes {
                assert!(matches(pattern.as_bytes(), text.as_bytes()), "{pattern} {text}");
            }
            for text in no {
                assert!(!matches(pattern.as_bytes(), text.as_bytes()), "{pattern} {text}");
            }
        }
    }

    #[test]
    fn many_stars_take_no_longer_than_the_product_of_the_lengths() {
        let pattern = b"a*".repeat(500);
        let text = [b'a'; 5_000];
        assert!(matches(&pattern, &text));
        assert!(!matches(&[&pattern[..], b"b"].concat(), &text));
    }
}
