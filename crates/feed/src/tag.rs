//! Hashtags and URLs in texts: where they begin and end, and how hashtags are compared.
//!
//! **Invariant:** no byte of a hashtag is zero, so a row that has other bytes after a hashtag and a zero is in the order of
//! hashtags.

use serde::{Deserialize, Serialize};
use unicode_segmentation::UnicodeSegmentation as _;

use crate::limits::{POST_TAGS_MAX, TAG_BYTES_MAX};
use crate::refusal::Refusal;

/// A hashtag without its `#`, in lower case: letters, digits and `_`, with at least one letter, and at most
/// [`TAG_BYTES_MAX`] bytes. Marks that belong to a letter are part of it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Tag(Box<str>);

/// What a text has beside plain characters and mentions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found<'t> {
    /// A URL with the scheme `http` or `https`.
    Url(&'t str),
    /// A hashtag as it is written, without its `#`.
    Tag(&'t str),
}

impl Tag {
    /// Checks `text`, which has no `#`, and folds it to lower case.
    ///
    /// # Errors
    /// [`Refusal::BadTag`] if it is no hashtag.
    pub fn parse(text: &str) -> Result<Self, Refusal> {
        let is_whole = !text.is_empty() && word(text).len() == text.len();
        // A letter may have more bytes in lower case, so it is checked afterwards.
        let lower = match is_whole && text.len() <= TAG_BYTES_MAX {
            true => text.to_lowercase(),
            false => return Err(Refusal::BadTag),
        };
        let is_word = lower.chars().any(char::is_alphabetic) && lower.len() <= TAG_BYTES_MAX;
        if is_word { Ok(Self(lower.into())) } else { Err(Refusal::BadTag) }
    }

    /// Of a row.
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

/// The letters, digits and `_` with which a text begins.
fn word(text: &str) -> &str {
    let is_part = |cluster: &str| {
        cluster.chars().next().is_some_and(|first| first.is_alphanumeric() || first == '_')
    };
    let end = text.grapheme_indices(true).find(|(_, cluster)| !is_part(cluster));
    text.get(..end.map_or(text.len(), |(at, _)| at)).unwrap_or_default()
}

/// The beginning of hashtags, for a search: letters, digits and `_` in lower case.
#[must_use]
pub fn prefix(text: &str) -> Option<String> {
    let is_whole = !text.is_empty() && text.len() <= TAG_BYTES_MAX && word(text) == text;
    is_whole.then(|| text.to_lowercase())
}

/// The URL or the hashtag with which `rest` begins, after the character `before`.
#[must_use]
pub fn found(rest: &str, before: Option<char>) -> Option<Found<'_>> {
    match rest.as_bytes().first() {
        Some(b'h' | b'H') => url(rest, before).map(Found::Url),
        Some(b'#') => hashtag(rest, before).map(Found::Tag),
        _ => None,
    }
}

/// The different hashtags of a text in their order: the first [`POST_TAGS_MAX`].
#[must_use]
pub fn tags(text: &str) -> Vec<Tag> {
    let mut tags = Vec::new();
    if !text.contains('#') {
        return tags;
    }
    let (mut rest, mut before) = (text, None);
    while let Some(first) = rest.chars().next().filter(|_| tags.len() < POST_TAGS_MAX) {
        let part = match found(rest, before) {
            Some(Found::Url(url)) => url.len(),
            Some(Found::Tag(tag)) => {
                tags.extend(Tag::parse(tag).ok().filter(|tag| !tags.contains(tag)));
                1 + tag.len()
            }
            None => first.len_utf8(),
        };
        let Some((passed, next)) = rest.split_at_checked(part) else { break };
        before = passed.chars().next_back();
        rest = next;
    }
    tags
}

/// A sign at the end of a URL belongs to the sentence around it.
fn url(rest: &str, before: Option<char>) -> Option<&str> {
    if before.is_some_and(|before| before.is_alphanumeric() || before == '_') {
        return None;
    }
    let scheme = ["https://", "http://"].into_iter().find(|scheme| {
        rest.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme))
    })?;
    let ends = |c: char| c.is_whitespace() || c.is_control() || "<>\"`{}|\\^".contains(c);
    let url = rest.get(..rest.find(ends).unwrap_or(rest.len()))?;
    let is_sign = |c| ".,;:!?'*_~".contains(c);
    let mut url = url.trim_end_matches(is_sign);
    // Brackets that are opened within it are part of it. Counted once: a text may have 500 of them.
    let excess = |open, close| {
        url.matches::<char>(close).count().saturating_sub(url.matches::<char>(open).count())
    };
    let (mut round, mut square) = (excess('(', ')'), excess('[', ']'));
    while let Some(inner) = url.strip_suffix([')', ']']) {
        let excess = if url.ends_with(')') { &mut round } else { &mut square };
        if *excess == 0 {
            break;
        }
        *excess -= 1;
        url = inner.trim_end_matches(is_sign);
    }
    let host = url.get(scheme.len()..)?;
    host.starts_with(|c: char| c.is_alphanumeric() || c == '[').then_some(url)
}

fn hashtag(rest: &str, before: Option<char>) -> Option<&str> {
    if before.is_some_and(|before| before.is_alphanumeric() || "_#/&=".contains(before)) {
        return None;
    }
    let written = word(rest.get(1..)?);
    Tag::parse(written).is_ok().then_some(written)
}

#[cfg(test)]
mod tests {
    use super::*;

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
        // Vowel signs and the joiner are part of words in Hindi and Persian.
        let (hindi, persian) =
            ("\u{939}\u{93f}\u{928}\u{94d}\u{926}\u{940}", "\u{645}\u{6cc}\u{200c}\u{634}");
        check_tags(&format!("#{hindi} #{persian}"), &[hindi, persian]);
        check_tags("#\u{fe0f}\u{20e3} #\u{1f600} #a\u{1f600}", &["a"]);
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
        // Each of these letters has one byte more in lower case.
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
