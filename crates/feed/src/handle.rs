//! Handles of users.

use serde::{Deserialize, Serialize};

use crate::limits;
use crate::refusal::Refusal;

/// Handle of a user: 1 to 30 of `a-z 0-9 _`, kept in lower case.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Handle(Box<str>);

impl Handle {
    /// Checks `text` and folds it to lower case.
    ///
    /// # Errors
    /// [`Refusal::BadHandle`] if it is not 1 to 30 of `a-z A-Z 0-9 _`.
    pub fn parse(text: &str) -> Result<Self, Refusal> {
        let right_length = (1..=limits::HANDLE_CHARS_MAX).contains(&text.len());
        if right_length && text.bytes().all(is_handle_byte) {
            Ok(Self(text.to_ascii_lowercase().into()))
        } else {
            Err(Refusal::BadHandle)
        }
    }

    /// The checked text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

pub(crate) fn is_handle_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_are_1_to_30_of_the_allowed_characters_in_any_case() {
        let thirty = "a".repeat(30);
        for (text, expect) in [
            ("ada", Some("ada")),
            ("Ada_99", Some("ada_99")),
            (thirty.as_str(), Some(thirty.as_str())),
            ("", None),
            (&"a".repeat(31), None),
            ("a b", None),
            ("a-b", None),
            ("\u{e4}da", None),
            (" ada", None),
        ] {
            assert_eq!(Handle::parse(text).ok().as_ref().map(Handle::as_str), expect, "{text:?}");
        }
    }
}
