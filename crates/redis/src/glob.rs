//! Patterns of KEYS and SCAN: `*`, `?`, `[abc]`, `[^abc]`, `[a-z]`, and `\` before a literal character.
//!
//! A pattern is compiled once, into a nondeterministic automaton with one bit per state. Matching takes at most
//! [`WORDS_MAX`] operations per byte of text.

use super::failure::Failure;

/// Maximum length of a pattern, in bytes. The compiled pattern takes 36 KiB.
pub(crate) const PATTERN_BYTES_MAX: usize = 1_024;
/// Maximum number of words of 64 states.
const WORDS_MAX: usize = PATTERN_BYTES_MAX / 64 + 1;
const TOO_LONG: Failure = Failure::said("ERR a pattern has at most 1024 bytes");

/// Compiled pattern. Each element matches one byte. State `n` means that `n` elements have matched.
pub(crate) struct Pattern {
    /// Number of elements.
    elements: usize,
    /// Number of words for the states.
    words: usize,
    /// For each byte, the states from which the byte leads to the next state.
    steps: Vec<u64>,
    /// States at a star, in which every byte leads to the same state.
    stars: [u64; WORDS_MAX],
}

impl Pattern {
    /// Compiles a pattern.
    ///
    /// # Errors
    /// If the pattern is too long.
    pub(crate) fn new(pattern: &[u8]) -> Result<Self, Failure> {
        if pattern.len() > PATTERN_BYTES_MAX {
            return Err(TOO_LONG);
        }
        let words = pattern.len() / 64 + 1;
        let (steps, stars) = (vec![0; 256 * words], [0; WORDS_MAX]);
        let mut compiled = Self { elements: 0, words, steps, stars };
        let mut rest = pattern;
        while let [first, after @ ..] = rest {
            let (word, bit) = (compiled.elements / 64, 1 << (compiled.elements % 64));
            if *first == b'*' {
                if let Some(stars) = compiled.stars.get_mut(word) {
                    *stars |= bit;
                }
                rest = after;
                continue;
            }
            let (element, after) = element(rest);
            for (byte, steps) in (0..=u8::MAX).zip(compiled.steps.chunks_exact_mut(words)) {
                if let Some(steps) = steps.get_mut(word).filter(|_| element.matches(byte)) {
                    *steps |= bit;
                }
            }
            compiled.elements += 1;
            rest = after;
        }
        Ok(compiled)
    }

    /// Maximum number of operations for a text of this length.
    pub(crate) fn operations(&self, bytes: usize) -> u64 {
        self.words as u64 * bytes as u64
    }

    /// Whether the whole `text` matches.
    pub(crate) fn matches(&self, text: &[u8]) -> bool {
        let mut states = [0_u64; WORDS_MAX];
        let [first, ..] = &mut states;
        *first = 1;
        for byte in text {
            let from = usize::from(*byte) * self.words;
            let steps = self.steps.get(from..from + self.words).unwrap_or_default();
            let (mut carry, mut alive) = (0, 0);
            for ((state, step), star) in states.iter_mut().zip(steps).zip(&self.stars) {
                let led = *state & step;
                *state = led << 1 | carry | *state & star;
                carry = led >> 63;
                alive |= *state;
            }
            if alive == 0 {
                return false;
            }
        }
        let last = states.get(self.elements / 64).copied().unwrap_or_default();
        last >> (self.elements % 64) & 1 == 1
    }
}

/// Set of bytes that an element matches.
enum Element<'p> {
    Any,
    Literal(u8),
    Class { negated: bool, members: &'p [u8] },
}

impl Element<'_> {
    fn matches(&self, byte: u8) -> bool {
        match self {
            Self::Any => true,
            Self::Literal(literal) => *literal == byte,
            Self::Class { negated, members } => is_member(members, byte) != *negated,
        }
    }
}

/// Returns the first element of `pattern` and the rest. `pattern` does not begin with a star.
fn element(pattern: &[u8]) -> (Element<'_>, &[u8]) {
    match pattern {
        [b'?', after @ ..] => (Element::Any, after),
        [b'[', b'^', after @ ..] => class(true, after),
        [b'[', after @ ..] => class(false, after),
        [b'\\', literal, after @ ..] | [literal, after @ ..] => (Element::Literal(*literal), after),
        [] => (Element::Any, pattern),
    }
}

/// Parses a class after its beginning. An unclosed class ends with the pattern.
fn class(negated: bool, pattern: &[u8]) -> (Element<'_>, &[u8]) {
    let mut rest = pattern;
    let (end, after) = loop {
        rest = match rest {
            [] => break (pattern.len(), rest),
            [b']', after @ ..] => break (pattern.len() - rest.len(), after),
            rest => member(rest).1,
        };
    };
    (Element::Class { negated, members: pattern.get(..end).unwrap_or_default() }, after)
}

/// Returns the first and last byte of the first member of a class, and the rest.
fn member(rest: &[u8]) -> ((u8, u8), &[u8]) {
    match rest {
        [b'\\', literal, after @ ..] => ((*literal, *literal), after),
        [low, b'-', high, after @ ..] => ((*low.min(high), *low.max(high)), after),
        [literal, after @ ..] => ((*literal, *literal), after),
        [] => ((1, 0), rest),
    }
}

fn is_member(members: &[u8], byte: u8) -> bool {
    let mut rest = members;
    while !rest.is_empty() {
        let ((low, high), after) = member(rest);
        if (low..=high).contains(&byte) {
            return true;
        }
        rest = after;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &[u8], text: &[u8]) -> bool {
        Pattern::new(pattern).unwrap().matches(text)
    }

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
    fn long_patterns_take_few_operations_for_each_byte() {
        let pattern = b"a*".repeat(PATTERN_BYTES_MAX / 2);
        let text = [b'a'; 5_000];
        assert!(matches(&pattern, &text));
        assert!(!matches(&[&pattern[2..], b"b"].concat(), &text));
        let compiled = Pattern::new(&pattern).unwrap();
        assert!(compiled.operations(text.len()) <= (WORDS_MAX * text.len()) as u64);
        assert!(Pattern::new(&[b'*'; PATTERN_BYTES_MAX + 1]).is_err());
        for length in [63, 64, 65, 127, 128, PATTERN_BYTES_MAX] {
            let text = vec![b'x'; length];
            assert!(matches(&text, &text) && !matches(&text, &text[1..]), "{length}");
            assert!(!matches(&text, &[&text[..], b"x"].concat()), "{length}");
        }
    }

    #[test]
    fn every_short_pattern_matches_what_the_reference_matcher_does() {
        /// Reference implementation, which takes exponential time.
        fn plain(pattern: &[u8], text: &[u8]) -> bool {
            match (pattern, text) {
                ([], []) => true,
                ([b'*', after @ ..], _) => {
                    (0..=text.len()).any(|skipped| plain(after, &text[skipped..]))
                }
                ([], _) | (_, []) => false,
                (_, [first, rest @ ..]) => {
                    let (element, after) = element(pattern);
                    element.matches(*first) && plain(after, rest)
                }
            }
        }
        let texts = [&b""[..], b"a", b"b", b"ab", b"ba", b"-a", b"aab", b"abab", b"*?", b"]a"];
        let alphabet = b"ab*?[]^-\\";
        let mut patterns: Vec<Vec<u8>> = vec![Vec::new()];
        for _ in 0..5 {
            for pattern in &patterns {
                for text in texts {
                    let expect = plain(pattern, text);
                    assert_eq!(matches(pattern, text), expect, "{pattern:?} {text:?}");
                }
            }
            let longer =
                |pattern: &Vec<u8>| alphabet.map(|byte| [pattern.as_slice(), &[byte]].concat());
            patterns = patterns.iter().flat_map(longer).collect();
        }
    }
}
