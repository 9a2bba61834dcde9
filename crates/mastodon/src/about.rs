//! Description of the server by its operator, for users and apps.

use axum::body::Bytes;
use feed::{Handle, Language};

/// Maximum length of a title, in characters.
const TITLE_CHARS_MAX: usize = 100;
/// Maximum length of a description and of a rule, in characters.
const LINE_CHARS_MAX: usize = 1_000;
/// Maximum length of the long text, in characters.
const ABOUT_CHARS_MAX: usize = 20_000;
/// Maximum number of rules.
const RULES_MAX: usize = 50;
/// Maximum size of a picture, in bytes.
pub const PICTURE_BYTES_MAX: usize = 2 << 20;

/// Description of the server by its operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct About {
    /// Name of the server.
    pub title: String,
    /// Description of the server, in a sentence or two.
    pub description: String,
    /// Long description: plain paragraphs.
    pub text: String,
    /// Time at which the long text was written, in milliseconds since 1970.
    pub text_ms: u64,
    /// Rules that users accept when they sign up.
    pub rules: Vec<String>,
    /// E-mail address of the operator; empty if there is none.
    pub contact_email: String,
    /// User of the operator.
    pub contact: Option<Handle>,
    /// Languages of the server, the main one first.
    pub languages: Vec<Language>,
    /// Picture of the server.
    pub picture: Option<Picture>,
}

impl Default for About {
    fn default() -> Self {
        Self {
            title: "roost".to_owned(),
            description: "A server for social feeds".to_owned(),
            text: String::new(),
            text_ms: 0,
            rules: Vec::new(),
            contact_email: String::new(),
            contact: None,
            languages: Language::parse("en").into_iter().collect(),
            picture: None,
        }
    }
}

impl About {
    /// Checks the lengths of all texts.
    ///
    /// # Errors
    /// The problem, as a sentence.
    pub fn check(&self) -> Result<(), String> {
        let fits = |name: &str, text: &str, chars_max: usize| match text.chars().count() {
            chars if chars <= chars_max => Ok(()),
            chars => Err(format!("{name} has {chars} characters, more than {chars_max}")),
        };
        fits("the title", &self.title, TITLE_CHARS_MAX)?;
        fits("the description", &self.description, LINE_CHARS_MAX)?;
        fits("the text", &self.text, ABOUT_CHARS_MAX)?;
        for rule in &self.rules {
            fits("a rule", rule, LINE_CHARS_MAX)?;
        }
        if self.rules.len() > RULES_MAX {
            return Err(format!("there are more than {RULES_MAX} rules"));
        }
        Ok(())
    }
}

/// Picture of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    /// Media type.
    pub(crate) kind: &'static str,
    pub(crate) bytes: Bytes,
}

impl Picture {
    /// Accepts a PNG, JPEG, WebP or GIF picture, recognized by its first bytes.
    ///
    /// # Errors
    /// If the format is another one, or the picture is too large.
    pub fn new(bytes: Vec<u8>) -> Result<Self, String> {
        if bytes.len() > PICTURE_BYTES_MAX {
            return Err(format!("a picture has at most {} MiB", PICTURE_BYTES_MAX >> 20));
        }
        let kind = match bytes.as_slice() {
            [0x89, b'P', b'N', b'G', ..] => "image/png",
            [0xff, 0xd8, 0xff, ..] => "image/jpeg",
            [b'G', b'I', b'F', b'8', ..] => "image/gif",
            [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => "image/webp",
            _ => return Err("a picture must be PNG, JPEG, WebP or GIF".to_owned()),
        };
        Ok(Self { kind, bytes: bytes.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_have_limits() {
        let text = |chars: usize| "\u{e9}".repeat(chars);
        let about = |change: fn(&mut About, String), chars| {
            let mut about = About::default();
            change(&mut about, text(chars));
            about.check().is_ok()
        };
        for (change, chars_max) in [
            ((|about, text| about.title = text) as fn(&mut About, String), TITLE_CHARS_MAX),
            (|about, text| about.description = text, LINE_CHARS_MAX),
            (|about, text| about.text = text, ABOUT_CHARS_MAX),
            (|about, text| about.rules.push(text), LINE_CHARS_MAX),
        ] {
            assert!(about(change, chars_max) && !about(change, chars_max + 1));
        }
        let rules = |count: usize| About { rules: vec![text(1); count], ..About::default() };
        assert!(rules(RULES_MAX).check().is_ok() && rules(RULES_MAX + 1).check().is_err());
    }

    #[test]
    fn pictures_are_known_by_their_first_bytes() {
        let kind = |bytes: &[u8]| Picture::new(bytes.to_vec()).ok().map(|picture| picture.kind);
        assert_eq!(kind(b"\x89PNG\r\n\x1a\n"), Some("image/png"));
        assert_eq!(kind(b"\xff\xd8\xff\xe0"), Some("image/jpeg"));
        assert_eq!(kind(b"GIF89a"), Some("image/gif"));
        assert_eq!(kind(b"RIFF\0\0\0\0WEBPVP8 "), Some("image/webp"));
        assert_eq!(kind(b"<svg>"), None);
        assert_eq!(kind(&[b"GIF8".as_slice(), &[0; PICTURE_BYTES_MAX]].concat()), None);
    }
}
