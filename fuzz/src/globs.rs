//! Fuzz target of patterns of KEYS and SCAN, compared with the simplest possible matcher.

use crate::glob::{PATTERN_BYTES_MAX, Pattern};

/// Input: a pattern, a zero byte, and a text.
pub fn globs(data: &[u8]) {
    let mut parts = data.splitn(2, |byte| *byte == 0);
    let (pattern, text) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let Ok(compiled) = Pattern::new(pattern) else {
        assert!(pattern.len() > PATTERN_BYTES_MAX);
        return;
    };
    let found = compiled.matches(text);
    if !pattern.iter().any(|byte| matches!(byte, b'[' | b'\\')) {
        assert_eq!(found, matches(pattern, text));
    }
    let escaped: Vec<u8> = text.iter().flat_map(|byte| [b'\\', *byte]).collect();
    if let Ok(literal) = Pattern::new(&escaped) {
        assert!(literal.matches(text), "an escaped text matches itself");
    }
    if let Ok(wider) = Pattern::new(&[b"*", pattern].concat()) {
        assert!(!found || wider.matches(text), "a star matches nothing as well");
    }
}

/// Matches stars and question marks by their definition: computes the lengths of the text that each part of the pattern
/// can match.
fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let mut ends = vec![false; text.len() + 1];
    ends[0] = true;
    for element in pattern {
        let mut next = vec![false; text.len() + 1];
        for (at, _) in ends.iter().enumerate().filter(|(_, end)| **end) {
            match element {
                b'*' => next[at..].fill(true),
                b'?' if at < text.len() => next[at + 1] = true,
                byte if text.get(at) == Some(byte) => next[at + 1] = true,
                _ => {}
            }
        }
        ends = next;
    }
    ends[text.len()]
}
