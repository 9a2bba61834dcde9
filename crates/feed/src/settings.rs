//! Profile fields and settings of users, defaults of their posts, and the input that changes them.

use serde::{Deserialize, Serialize};

use crate::ids::UserRef;
use crate::limits;
use crate::post::Visibility;
use crate::refusal::Refusal;
use crate::text::{Bio, Language, Name, fits};

/// Field of a profile: name and value on one line each, trimmed. The value may be empty.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProfileField {
    name: Box<str>,
    value: Box<str>,
}

impl ProfileField {
    /// The checked name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The checked value.
    #[must_use]
    pub fn value(&self) -> &str {
        &self.value
    }
}

/// Fields of a profile, at most [`limits::PROFILE_FIELDS_MAX`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProfileFields(Box<[ProfileField]>);

impl ProfileFields {
    /// Trims and checks names and values. Fields with an empty name and an empty value are left out.
    ///
    /// # Errors
    /// [`Refusal::BadField`] if a name is empty, or a text is too long or holds control characters;
    /// [`Refusal::TooManyFields`].
    pub fn parse<'t>(pairs: impl IntoIterator<Item = (&'t str, &'t str)>) -> Result<Self, Refusal> {
        let mut fields = Vec::new();
        let pairs = pairs.into_iter().map(|(name, value)| (name.trim(), value.trim()));
        for (name, value) in pairs.filter(|(name, value)| !name.is_empty() || !value.is_empty()) {
            if fields.len() >= limits::PROFILE_FIELDS_MAX {
                return Err(Refusal::TooManyFields);
            }
            let is_text = |text: &str| {
                fits(text, limits::FIELD_CHARS_MAX, limits::FIELD_BYTES_MAX)
                    && !text.chars().any(char::is_control)
            };
            if name.is_empty() || !is_text(name) || !is_text(value) {
                return Err(Refusal::BadField);
            }
            fields.push(ProfileField { name: name.into(), value: value.into() });
        }
        Ok(Self(fields.into()))
    }

    /// Fields in their order.
    #[must_use]
    pub fn as_slice(&self) -> &[ProfileField] {
        &self.0
    }
}

/// Defaults of a user's new posts, for apps to read. Commands contain all values.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PostDefaults {
    /// Default audience.
    pub visibility: Visibility,
    /// Whether pictures are hidden by default until the reader asks for them.
    pub sensitive: bool,
    /// Default language.
    pub language: Option<Language>,
}

/// A change of a profile and settings. `None` leaves a field unchanged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserEdit {
    /// User to change.
    pub user: UserRef,
    /// New display name.
    pub name: Option<Name>,
    /// New text of the profile.
    pub bio: Option<Bio>,
    /// New fields, which replace all fields.
    pub fields: Option<ProfileFields>,
    /// Whether a program writes the user's posts.
    pub bot: Option<bool>,
    /// Whether lists of suggested users show this user.
    pub discoverable: Option<bool>,
    /// Whether searches may find the user's public posts.
    pub indexable: Option<bool>,
    /// New default audience.
    pub visibility: Option<Visibility>,
    /// New default for hiding pictures.
    pub sensitive: Option<bool>,
    /// New default language; `Some(None)` removes it.
    pub language: Option<Option<Language>>,
    /// Whether others must ask before they follow. Pending requests stay when the user is unlocked.
    pub locked: Option<bool>,
}

impl UserEdit {
    /// Creates an edit that changes nothing.
    #[must_use]
    pub fn new(user: UserRef) -> Self {
        Self {
            user,
            name: None,
            bio: None,
            fields: None,
            bot: None,
            discoverable: None,
            indexable: None,
            visibility: None,
            sensitive: None,
            language: None,
            locked: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_short_lines_with_names_and_empty_ones_are_left_out() {
        let long = "x".repeat(limits::FIELD_CHARS_MAX);
        let longer = format!("{long}x");
        let wide = "\u{4e00}".repeat(limits::FIELD_CHARS_MAX);
        let marks = format!("a{}", "\u{301}".repeat(limits::FIELD_BYTES_MAX / 2));
        for (pairs, expect) in [
            (&[][..], Ok(0)),
            (&[("", ""), (" ", "\n")], Ok(0)),
            (&[("Web", "https://a.example")], Ok(1)),
            (&[("", ""), ("a", ""), ("", ""), ("b", "c")], Ok(2)),
            (&[("", "a value alone")], Err(Refusal::BadField)),
            (&[("a", "b"); 4], Ok(4)),
            (&[("a", "b"), ("", ""), ("a", "b"), ("a", "b"), ("a", "b")], Ok(4)),
            (&[("a", "b"); 5], Err(Refusal::TooManyFields)),
            (&[(long.as_str(), long.as_str())], Ok(1)),
            (&[(wide.as_str(), wide.as_str())], Ok(1)),
            (&[(longer.as_str(), "")], Err(Refusal::BadField)),
            (&[("a", longer.as_str())], Err(Refusal::BadField)),
            (&[("a", marks.as_str())], Err(Refusal::BadField)),
            (&[("a\nb", "")], Err(Refusal::BadField)),
            (&[("a", "b\u{7f}c")], Err(Refusal::BadField)),
        ] {
            let found = ProfileFields::parse(pairs.iter().copied());
            assert_eq!(found.map(|fields| fields.as_slice().len()), expect, "{pairs:?}");
        }
        let fields = ProfileFields::parse([(" a ", " b ")]).unwrap();
        let [field] = fields.as_slice() else { panic!("{fields:?}") };
        assert_eq!((field.name(), field.value()), ("a", "b"));
    }
}
