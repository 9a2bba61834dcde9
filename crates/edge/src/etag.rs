//! Entity tags in `If-Match` and `If-None-Match`, as defined in RFC 9110 (8.8.3, 13.1).

use http::header::IF_NONE_MATCH;
use http::{HeaderMap, HeaderName};

/// Entity tag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tag {
    /// Whether the tag is weak. A weak tag identifies all equivalent representations.
    pub weak: bool,
    /// Text between the quotes.
    pub opaque: Box<[u8]>,
}

/// Value of `If-Match` or `If-None-Match`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tags {
    /// `*`: any existing representation.
    Any,
    /// Any representation with one of these tags.
    List(Vec<Tag>),
}

/// Maximum number of tags in a header. It is limited because each tag takes memory, even an empty one.
pub const TAGS_MAX: usize = 64;

/// Error for a header that is neither `*` nor a list of at most [`TAGS_MAX`] entity tags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadTags;

/// Whether the client already has the representation with this tag. If the header is invalid, it has none.
#[must_use]
pub fn is_known(headers: &HeaderMap, tag: &str) -> bool {
    let known = Tags::of(headers, &IF_NONE_MATCH).ok().flatten();
    known.is_some_and(|tags| tags.matches_weak(tag.as_bytes()))
}

impl Tags {
    /// Parses all lines of a header; `None` if the request does not have it.
    ///
    /// # Errors
    /// [`BadTags`]
    pub fn of(headers: &HeaderMap, name: &HeaderName) -> Result<Option<Self>, BadTags> {
        let lines: Vec<_> = headers.get_all(name).iter().map(http::HeaderValue::as_bytes).collect();
        match lines.as_slice() {
            [] => Ok(None),
            [one] if one.trim_ascii() == b"*" => Ok(Some(Self::Any)),
            lines => {
                let mut tags = Vec::new();
                lines.iter().try_for_each(|line| list(line, &mut tags))?;
                Ok(Some(Self::List(tags)))
            }
        }
    }

    /// Whether a tag matches by strong comparison, for `If-Match`: weak tags never match.
    #[must_use]
    pub fn matches_strong(&self, opaque: &[u8]) -> bool {
        match self {
            Self::Any => true,
            Self::List(tags) => tags.iter().any(|tag| !tag.weak && *tag.opaque == *opaque),
        }
    }

    /// Whether a tag matches by weak comparison, for `If-None-Match`: only the text between the quotes counts.
    #[must_use]
    pub fn matches_weak(&self, opaque: &[u8]) -> bool {
        match self {
            Self::Any => true,
            Self::List(tags) => tags.iter().any(|tag| *tag.opaque == *opaque),
        }
    }
}

/// Appends the tags of a line. Empty elements are allowed, as in every HTTP list.
fn list(line: &[u8], tags: &mut Vec<Tag>) -> Result<(), BadTags> {
    let mut rest = line.trim_ascii_start();
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix(b",") {
            rest = after.trim_ascii_start();
            continue;
        }
        let (weak, quoted) = match rest.strip_prefix(b"W/") {
            Some(quoted) => (true, quoted),
            None => (false, rest),
        };
        let text = quoted.strip_prefix(b"\"").ok_or(BadTags)?;
        let end = text.iter().position(|byte| *byte == b'"').ok_or(BadTags)?;
        let (opaque, after) = text.split_at(end);
        if opaque.iter().any(|byte| *byte <= b' ' || *byte == 0x7f) {
            return Err(BadTags);
        }
        if tags.len() == TAGS_MAX {
            return Err(BadTags);
        }
        tags.push(Tag { weak, opaque: opaque.into() });
        rest = after.get(1..).unwrap_or_default().trim_ascii_start();
        if !rest.is_empty() && !rest.starts_with(b",") {
            return Err(BadTags);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use http::header::IF_MATCH;

    use super::*;

    fn tags(lines: &[&[u8]]) -> Result<Option<Tags>, BadTags> {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(IF_MATCH, http::HeaderValue::from_bytes(line).unwrap());
        }
        Tags::of(&headers, &IF_MATCH)
    }

    #[test]
    fn lists_are_read_by_tag_and_not_by_comma() {
        let tag = |weak, opaque: &[u8]| Tag { weak, opaque: opaque.into() };
        let list = |tags: &[Tag]| Ok(Some(Tags::List(tags.to_vec())));
        assert_eq!(tags(&[]), Ok(None));
        assert_eq!(tags(&[b" * "]), Ok(Some(Tags::Any)));
        assert_eq!(tags(&[b""]), list(&[]));
        assert_eq!(tags(&[b"\"a,b\""]), list(&[tag(false, b"a,b")]));
        let both = list(&[tag(false, b"a"), tag(true, b"b")]);
        assert_eq!(tags(&[b"\"a\",W/\"b\""]), both);
        assert_eq!(tags(&[b",\"a\"\t , ,W/\"b\" ,"]), both);
        assert_eq!(tags(&[b"\"a\"", b"W/\"b\""]), both);
        assert_eq!(tags(&[b"\"\""]), list(&[tag(false, b"")]));
        let many = |count: usize| "\"\",".repeat(count).into_bytes();
        assert_eq!(tags(&[&many(TAGS_MAX)]), list(&vec![tag(false, b""); TAGS_MAX]));
        assert_eq!(tags(&[&many(TAGS_MAX + 1)]), Err(BadTags));
        assert_eq!(tags(&[&many(TAGS_MAX), b"\"\""]), Err(BadTags));
        assert_eq!(tags(&[b"\"W/\\\xff\""]), list(&[tag(false, b"W/\\\xff")]));
        for bad in [
            &b"a"[..],
            b"\"a",
            b"a\"",
            b"\"a\"b",
            b"\"a\" \"b\"",
            b"w/\"a\"",
            b"\"a b\"",
            b"*, \"a\"",
            b"W/",
        ] {
            assert_eq!(tags(&[bad]), Err(BadTags), "{}", String::from_utf8_lossy(bad));
        }
        assert_eq!(tags(&[b"*", b"*"]), Err(BadTags));
    }

    #[test]
    fn if_match_compares_strongly_and_if_none_match_weakly() {
        let strong_and_weak = |lines: &[&[u8]]| {
            let tags = tags(lines).unwrap().unwrap();
            (tags.matches_strong(b"a"), tags.matches_weak(b"a"))
        };
        assert_eq!(strong_and_weak(&[b"*"]), (true, true));
        assert_eq!(strong_and_weak(&[b"\"b\", \"a\""]), (true, true));
        assert_eq!(strong_and_weak(&[b"W/\"a\""]), (false, true));
        assert_eq!(strong_and_weak(&[b"\"b\""]), (false, false));
    }
}
