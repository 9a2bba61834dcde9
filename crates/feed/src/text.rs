//! Checked texts. Values of these types are valid by construction, so the log and the rules never receive unchecked
//! input.

use serde::{Deserialize, Serialize};
use unicode_segmentation::UnicodeSegmentation;

pub use crate::handle::Handle;
use crate::handle::is_handle_byte;
use crate::limits;
use crate::refusal::Refusal;
use crate::token;

/// A display name, trimmed, possibly empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Name(Box<str>);

/// The text of a profile, trimmed, possibly empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bio(Box<str>);

/// The text of a post or story: 1 to 500 characters as [`token::length`] counts them, trimmed. The default is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PostText(Box<str>);

impl Name {
    /// Trims and checks `text`.
    ///
    /// # Errors
    /// [`Refusal::BadName`] if it is too long or holds control characters.
    pub fn parse(text: &str) -> Result<Self, Refusal> {
        let text = text.trim();
        let plain = !text.chars().any(char::is_control);
        let fits = fits(text, limits::NAME_CHARS_MAX, limits::NAME_BYTES_MAX);
        if plain && fits { Ok(Self(text.into())) } else { Err(Refusal::BadName) }
    }
}

impl Bio {
    /// Trims and checks `text`.
    ///
    /// # Errors
    /// [`Refusal::BadBio`] if it is too long or holds control characters other than line breaks
    /// and tabs.
    pub fn parse(text: &str) -> Result<Self, Refusal> {
        let text = text.trim();
        let fits = fits(text, limits::BIO_CHARS_MAX, limits::BIO_BYTES_MAX);
        if fits && is_prose(text) { Ok(Self(text.into())) } else { Err(Refusal::BadBio) }
    }
}

impl PostText {
    /// Creates the empty text of a boost.
    #[must_use]
    pub fn none() -> Self {
        Self(Box::default())
    }

    /// Trims and checks a text written by a user of the server with this domain. Removes the domain from mentions of
    /// local users, so that the text mentions the same users on each node, after a change of the domain, and in a
    /// replay of the log.
    ///
    /// # Errors
    /// The errors of [`PostText::parse`].
    pub fn written(text: &str, domain: &str) -> Result<Self, Refusal> {
        if text.len() > limits::POST_BYTES_MAX {
            // The text is too long even without domains.
            return Err(Refusal::BadText);
        }
        Self::parse(&token::without_domain(text, domain))
    }

    /// Trims and checks `text`, with the length of [`token::length`].
    ///
    /// # Errors
    /// [`Refusal::BadText`] if nothing is left, it is too long, or it holds control characters
    /// other than line breaks and tabs.
    pub fn parse(text: &str) -> Result<Self, Refusal> {
        let text = text.trim();
        // The cheaper check comes first, as in `fits`.
        let fits =
            text.len() <= limits::POST_BYTES_MAX && token::length(text) <= limits::POST_CHARS_MAX;
        if !text.is_empty() && fits && is_prose(text) {
            Ok(Self(text.into()))
        } else {
            Err(Refusal::BadText)
        }
    }
}

/// The content warning of a post: at most 500 user-perceived characters, trimmed, possibly empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Warning(Box<str>);

impl Warning {
    /// Trims and checks `text`.
    ///
    /// # Errors
    /// [`Refusal::BadWarning`] if it is too long or holds control characters other than line breaks and tabs.
    pub fn parse(text: &str) -> Result<Self, Refusal> {
        let text = text.trim();
        let fits = fits(text, limits::POST_CHARS_MAX, limits::POST_BYTES_MAX);
        if fits && is_prose(text) { Ok(Self(text.into())) } else { Err(Refusal::BadWarning) }
    }
}

/// A user's private note about another user: at most 2,000 user-perceived characters, trimmed. An empty note does not
/// exist.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note(Box<str>);

impl Note {
    /// Trims and checks `text`.
    ///
    /// # Errors
    /// [`Refusal::BadNote`] if it is too long or holds control characters other than line breaks and tabs.
    pub fn parse(text: &str) -> Result<Self, Refusal> {
        let text = text.trim();
        let fits = fits(text, limits::NOTE_CHARS_MAX, limits::NOTE_BYTES_MAX);
        if fits && is_prose(text) { Ok(Self(text.into())) } else { Err(Refusal::BadNote) }
    }
}

/// The language of a post: an ISO 639 code of 2 or 3 lowercase letters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Language(Box<str>);

impl Language {
    /// Checks `text`, folds it to lower case, and cuts subtags as in `en-GB`.
    ///
    /// # Errors
    /// [`Refusal::BadLanguage`] if it does not begin with 2 or 3 letters.
    pub fn parse(text: &str) -> Result<Self, Refusal> {
        let code = text.split(['-', '_']).next().unwrap_or_default();
        let is_code =
            (2..=3).contains(&code.len()) && code.bytes().all(|b| b.is_ascii_alphabetic());
        let fits = text.len() <= limits::LANGUAGE_BYTES_MAX;
        if is_code && fits {
            Ok(Self(code.to_ascii_lowercase().into()))
        } else {
            Err(Refusal::BadLanguage)
        }
    }
}

/// The label of a sample: 1 to 32 bytes without control characters, exactly as given.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Label(Box<str>);

/// The name of a set of samples: 1 to 64 of `a-z A-Z 0-9 _ -`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SetName(Box<str>);

impl Label {
    /// Checks `text`.
    ///
    /// # Errors
    /// [`Refusal::BadLabel`] if it is empty, too long, or holds control characters.
    pub fn parse(text: &str) -> Result<Self, Refusal> {
        let right_length = (1..=limits::LABEL_BYTES_MAX).contains(&text.len());
        let plain = !text.chars().any(char::is_control);
        if right_length && plain { Ok(Self(text.into())) } else { Err(Refusal::BadLabel) }
    }
}

impl SetName {
    /// Name of the set with the built-in samples.
    #[must_use]
    pub fn digits() -> Self {
        Self("digits".into())
    }

    /// Checks `text`.
    ///
    /// # Errors
    /// [`Refusal::BadSet`] if it is not 1 to 64 of `a-z A-Z 0-9 _ -`.
    pub fn parse(text: &str) -> Result<Self, Refusal> {
        let known = |byte: u8| is_handle_byte(byte) || byte == b'-';
        let right_length = (1..=limits::SET_NAME_CHARS_MAX).contains(&text.len());
        if right_length && text.bytes().all(known) {
            Ok(Self(text.into()))
        } else {
            Err(Refusal::BadSet)
        }
    }
}

macro_rules! as_str {
    ($($type:ty),*) => {$(
        impl $type {
            /// The checked text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }
    )*};
}
as_str!(Name, Bio, PostText, Warning, Note, Language, Label, SetName);
pub(crate) use as_str;

pub(crate) fn is_prose(text: &str) -> bool {
    !text.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\r' | '\t'))
}

/// Whether `text` is within both limits. Checks bytes first: counting the grapheme clusters of a huge text is
/// expensive.
pub(crate) fn fits(text: &str, chars_max: usize, bytes_max: usize) -> bool {
    text.len() <= bytes_max
        && (text.len() <= chars_max || text.graphemes(true).count() <= chars_max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn posts_count_perceived_characters_after_trimming() {
        let family = "\u{1F468}\u{200D}\u{1F469}\u{200D}\u{1F467}";
        for (text, valid) in [
            ("hello".to_owned(), true),
            ("  hello \n".to_owned(), true),
            (" \n\t ".to_owned(), false),
            ("a".repeat(500), true),
            ("a".repeat(501), false),
            ("e\u{301}".repeat(500), true),
            ("e\u{301}".repeat(501), false),
            (family.repeat(400), true),
            (family.repeat(500), false), // within 500 characters, beyond 8,000 bytes
            ("a\u{0}b".to_owned(), false),
            ("two\nlines\tand a tab".to_owned(), true),
        ] {
            assert_eq!(PostText::parse(&text).is_ok(), valid, "{} bytes", text.len());
        }
        assert_eq!(PostText::parse("  hello \n").unwrap().as_str(), "hello");
    }

    #[test]
    fn names_hold_no_line_breaks_and_bios_may() {
        assert!(Name::parse("Ada L.").is_ok() && Name::parse("").is_ok());
        assert!(Name::parse("a\nb").is_err() && Name::parse(&"a".repeat(51)).is_err());
        assert!(Bio::parse("a\nb").is_ok() && Bio::parse(&"a".repeat(501)).is_err());
    }

    #[test]
    fn labels_and_sets_are_short_and_printable() {
        let (long, longer) = ("x".repeat(32), "x".repeat(64));
        for (text, label, set) in [
            ("7", true, true),
            ("Ab_c-9", true, true),
            ("", false, false),
            ("two words", true, false),
            (" ", true, false),
            ("caf\u{e9}", true, false),
            ("a\nb", false, false),
            ("a\u{7f}", false, false),
            (long.as_str(), true, true),
            (&format!("{long}x"), false, true),
            (longer.as_str(), false, true),
            (&format!("{longer}x"), false, false),
            (&"\u{e9}".repeat(17), false, false),
        ] {
            assert_eq!(Label::parse(text).is_ok(), label, "{text:?}");
            assert_eq!(SetName::parse(text).is_ok(), set, "{text:?}");
        }
    }

    #[test]
    fn languages_are_codes_of_two_or_three_letters_without_subtags() {
        for (text, expect) in [
            ("en", Some("en")),
            ("EN", Some("en")),
            ("gsw", Some("gsw")),
            ("en-GB", Some("en")),
            ("zh_Hant_TW", Some("zh")),
            ("", None),
            ("e", None),
            ("engl", None),
            ("-en", None),
            ("e1", None),
            ("\u{e4}", None),
            (&format!("en-{}", "x".repeat(limits::LANGUAGE_BYTES_MAX)), None),
        ] {
            let found = Language::parse(text).ok();
            assert_eq!(found.as_ref().map(Language::as_str), expect, "{text:?}");
        }
    }

    #[test]
    fn notes_may_be_empty_and_are_longer_than_posts() {
        assert_eq!(Note::parse("  a\nfriend ").unwrap().as_str(), "a\nfriend");
        assert_eq!(Note::parse("\n").unwrap(), Note::default());
        assert!(Note::parse(&"\u{4e00}".repeat(2_000)).is_ok());
        for wrong in ["a".repeat(2_001), "e\u{301}\u{301}".repeat(2_000), "\u{0}".to_owned()] {
            assert_eq!(Note::parse(&wrong), Err(Refusal::BadNote), "{} bytes", wrong.len());
        }
    }

    #[test]
    fn warnings_may_be_empty_and_are_as_long_as_posts_at_most() {
        assert_eq!(Warning::parse("  food \n").unwrap().as_str(), "food");
        assert_eq!(Warning::parse(" ").unwrap(), Warning::default());
        assert!(Warning::parse(&"a".repeat(500)).is_ok());
        assert_eq!(Warning::parse(&"a".repeat(501)), Err(Refusal::BadWarning));
        assert_eq!(Warning::parse("a\u{0}b"), Err(Refusal::BadWarning));
    }
}
