//! Hashtags: their characters and comparison. [`crate::token`] finds them in texts.
//!
//! **Invariant:** a hashtag contains no zero byte, so rows that add a zero and other bytes to a hashtag are in the
//! order of hashtags.

pub(crate) mod facts;
pub(crate) mod rules;
pub mod tagged;

use rows::Stamp;
use serde::{Deserialize, Serialize};
use unicode_segmentation::UnicodeSegmentation as _;

use crate::ids::{PostId, UserId};
use crate::limits::TAG_BYTES_MAX;
use crate::page::Item;
use crate::refusal::Refusal;

/// A hashtag without its `#`, in lower case: letters, digits and `_`, and between them also marks, middle dots and
/// joiners, at most [`TAG_BYTES_MAX`] bytes. It contains a letter, or a `_`, dot or joiner other than at its beginning
/// or end.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Tag(Box<str>);

impl Tag {
    /// Checks `text`, which has no `#`, and folds it to lower case.
    ///
    /// # Errors
    /// [`Refusal::BadTag`] if it is no hashtag.
    pub fn parse(text: &str) -> Result<Self, Refusal> {
        let is_whole = !text.is_empty() && word(text).len() == text.len();
        // Folding to lower case may add bytes, so the length is checked again below.
        let lower = match is_whole && text.len() <= TAG_BYTES_MAX {
            true => text.to_lowercase(),
            false => return Err(Refusal::BadTag),
        };
        let is_inner = |at: usize, c: char| at > 0 && at + c.len_utf8() < lower.len();
        let is_sign = |(at, c): (usize, char)| {
            c.is_alphabetic() || is_inner(at, c) && (c == '_' || is_joint(c))
        };
        let is_tag = lower.len() <= TAG_BYTES_MAX && lower.char_indices().any(is_sign);
        if is_tag { Ok(Self(lower.into())) } else { Err(Refusal::BadTag) }
    }

    /// Decodes the hashtag of a row.
    pub(crate) fn of_row(bytes: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(bytes).ok().filter(|text| !text.is_empty())?;
        Some(Self(text.into()))
    }

    /// The checked text, in lower case.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Whether the character may be only inside a hashtag: middle dots of Latin and Japanese, and joiners of Persian and
/// Indic scripts.
fn is_joint(c: char) -> bool {
    matches!(c, '\u{b7}' | '\u{30fb}' | '\u{200c}' | '\u{200d}')
}

/// Whether the character is a mark that combines with the one before it. Tests each character after a plain letter,
/// because some letters combine with any following character.
fn is_mark(c: char) -> bool {
    let mut bytes = [b'a'; 5];
    let (_, mark) = bytes.split_at_mut(1);
    let len = 1 + c.encode_utf8(mark).len();
    let text = bytes.get(..len).and_then(|bytes| std::str::from_utf8(bytes).ok());
    text.is_some_and(|text| text.graphemes(true).count() == 1)
}

/// Longest prefix of `text` with characters of a hashtag, cut after [`TAG_BYTES_MAX`].
fn start(text: &str) -> &str {
    let is_part = |at: usize, c: char| is_word(c) || at > 0 && (is_joint(c) || is_mark(c));
    let end = text.char_indices().find(|(at, c)| *at > TAG_BYTES_MAX || !is_part(*at, *c));
    text.get(..end.map_or(text.len(), |(at, _)| at)).unwrap_or_default()
}

/// Returns the text of the hashtag that `text` begins with, or an empty string if it is too long. Reads little more
/// than [`TAG_BYTES_MAX`] bytes.
pub(crate) fn word(text: &str) -> &str {
    let start = start(text);
    if start.len() > TAG_BYTES_MAX { "" } else { start.trim_end_matches(is_joint) }
}

/// Folds a prefix of hashtags to lower case, for a search; `None` if no hashtag can begin so.
#[must_use]
pub fn prefix(text: &str) -> Option<String> {
    let is_whole = !text.is_empty() && text.len() <= TAG_BYTES_MAX && start(text) == text;
    is_whole.then(|| text.to_lowercase())
}

/// A hashtag that a profile shows, or that a user follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserTag {
    /// The hashtag.
    pub tag: Tag,
    /// Stamp since when; also the id of the hashtag in the list.
    pub since: Stamp,
}

impl Item for UserTag {
    fn id(&self) -> u64 {
        self.since.0
    }
}

/// A post with a hashtag, and its author.
pub type Tagged = (PostId, UserId);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::POST_TAGS_MAX;
    use crate::token::tags;

    fn check_tags(text: &str, expect: &[&str]) {
        let found = tags(text);
        assert_eq!(found.iter().map(Tag::as_str).collect::<Vec<_>>(), expect, "{text:?}");
    }

    #[test]
    fn hashtags_are_found_where_a_reader_would_see_them() {
        check_tags("#a #b_1 #A", &["a", "b_1"]);
        check_tags("(#Rust), #2024goals! #2024 #_ #", &["rust", "2024goals"]);
        check_tags("x#a ##a &#38; /#a _#a a=#b \u{fc}#a", &[]);
        check_tags("#caf\u{e9}.#b", &["caf\u{e9}", "b"]);
        check_tags("#STRASSE #Stra\u{df}e #\u{130}x", &["strasse", "stra\u{df}e", "i\u{307}x"]);
        // Vowel signs in Hindi and the joiner in Persian are parts of words.
        let (hindi, persian) =
            ("\u{939}\u{93f}\u{928}\u{94d}\u{926}\u{940}", "\u{645}\u{6cc}\u{200c}\u{634}");
        check_tags(&format!("#{hindi} #{persian}"), &[hindi, persian]);
        check_tags("#\u{fe0f}\u{20e3} #\u{1f600} #a\u{1f600}", &["a"]);
        check_tags("\u{ff03}foo \u{ff03}#a #\u{ff03}a \u{2764}\u{fe0f}#b", &["foo", "b"]);
    }

    #[test]
    fn hashtags_are_those_of_mastodon() {
        let bocchi = "\u{307c}\u{3063}\u{3061}\u{30fb}\u{3056}\u{30fb}\u{308d}\u{3063}\u{304f}";
        check_tags(&format!("#{bocchi}\u{30fb} #one\u{b7}two"), &[bocchi, "one\u{b7}two"]);
        check_tags(
            "#2024_25 #1\u{b7}2 #__1 #___ #1_ #_1 #__ #1\u{b7}",
            &["2024_25", "1\u{b7}2", "__1", "___"],
        );
        check_tags("#\u{b7}a #\u{200d}a #\u{301}a #a\u{200c}", &["a"]);
    }

    #[test]
    fn a_letter_does_not_bring_what_comes_after_it_into_a_hashtag() {
        // Some Malayalam and Sharada letters form one grapheme cluster with any following character.
        for letter in ['\u{d4e}', '\u{111c2}'] {
            for sign in "\"\\ /#?%<>&'\n\0".chars() {
                let text = format!("{letter}{sign}a");
                assert_eq!(Tag::parse(&text), Err(Refusal::BadTag), "{text:?}");
                check_tags(&format!("#{text}"), &[&letter.to_string()]);
            }
        }
    }

    /// Hashtags can be used in paths, JSON and rows without escaping.
    #[test]
    fn hashtags_have_no_sign_space_or_control_character() {
        for c in '\0'..=char::MAX {
            for text in [format!("{c}"), format!("a{c}a"), format!("\u{d4e}{c}"), format!("a{c}")] {
                let Ok(tag) = Tag::parse(&text) else { continue };
                let is_safe = |c: char| match c.is_ascii() {
                    true => c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_',
                    false => !c.is_whitespace() && !c.is_control(),
                };
                assert!(tag.as_str().chars().all(is_safe), "{text:?}");
                assert_eq!(Tag::parse(tag.as_str()), Ok(tag.clone()), "{text:?}");
                assert_eq!(tags(&format!("#{text}")), [tag], "{text:?}");
            }
        }
    }

    #[test]
    fn urls_hide_hashtags_within_them() {
        check_tags("https://a.example/#a https://a.example/-#a #b", &["b"]);
        check_tags("http://#a", &[]);
        check_tags("xhttps://a.example/x,#a", &["a"]);
    }

    #[test]
    fn hashtags_are_bounded_in_length_and_number() {
        let longest = "a".repeat(TAG_BYTES_MAX);
        check_tags(&format!("#{longest}"), &[&longest]);
        check_tags(&format!("#{longest}a"), &[]);
        // This letter has one byte more in lower case.
        let grows = "\u{23a}".repeat(TAG_BYTES_MAX / 2);
        assert_eq!(Tag::parse(&grows), Err(Refusal::BadTag));
        let many: Vec<_> = (0..=POST_TAGS_MAX).map(|number| format!("t{number}")).collect();
        let text: String = many.iter().map(|tag| format!("#{tag} ")).collect();
        let expect: Vec<_> = many.iter().take(POST_TAGS_MAX).map(String::as_str).collect();
        check_tags(&text, &expect);
    }

    #[test]
    fn a_name_is_a_hashtag_only_as_a_whole() {
        for (text, expect) in [
            ("Rust", Some("rust")),
            ("1a", Some("1a")),
            ("", None),
            ("1", None),
            ("a b", None),
            ("#a", None),
            ("a\0", None),
        ] {
            assert_eq!(Tag::parse(text).ok().as_ref().map(Tag::as_str), expect, "{text:?}");
        }
        assert_eq!(prefix("20"), Some("20".to_owned()));
        assert_eq!(prefix("a-"), None);
    }

    #[test]
    fn a_hashtag_in_lower_case_is_the_same_hashtag() {
        for text in ["ABC", "\u{130}x", "\u{39f}\u{394}\u{39f}\u{3a3}", "\u{1e9e}"] {
            let tag = Tag::parse(text).unwrap();
            assert_eq!(Tag::parse(tag.as_str()), Ok(tag.clone()), "{text:?}");
        }
    }
}
