//! Users: their stored records and counts, profile fields, settings, defaults of their posts, and the input that
//! changes them.

pub(crate) mod facts;
pub(crate) mod mend;
pub(crate) mod rules;

use rows::{Stamp, Value};
use serde::{Deserialize, Serialize};

use crate::handle::Handle;
use crate::ids::UserRef;
use crate::limits;
use crate::media::MediaId;
use crate::parts::parts;
use crate::posts::Visibility;
use crate::quotes::QuotePolicy;
use crate::refusal::Refusal;
use crate::text::{Bio, Language, Name, fits};

parts! {
    /// A user.
    pub struct User {
        /// Unique handle; never changes.
        pub handle: Handle,
        /// Stamp of the registration.
        pub registered: Stamp,
    }
    parts {
        /// Display name.
        pub name: Name = 0,
        /// Text of the profile.
        pub bio: Bio = 1,
        /// Pairs of a name and a value on the profile.
        pub fields: ProfileFields = 2,
        /// Whether a program writes the user's posts.
        pub bot: bool = 3,
        /// Whether lists of suggested users leave this user out.
        pub undiscoverable: bool = 4,
        /// Whether searches may find the user's public posts.
        pub indexable: bool = 5,
        /// Defaults of new posts.
        pub defaults: PostDefaults = 6,
        /// Picture shown next to the user's posts.
        pub avatar: Option<MediaId> = 7,
        /// Header picture of the profile.
        pub header: Option<MediaId> = 8,
    }
}

/// Counts of a user's posts and relations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Number of posts that exist.
    pub posts: u32,
    /// Number of users who follow this user.
    pub followers: u32,
    /// Number of users that this user follows.
    pub following: u32,
    /// Number of friends.
    pub friends: u32,
    /// Number of users whom this user blocks.
    pub blocks: u32,
    /// Number of users whom this user mutes.
    pub mutes: u32,
    /// Number of users about whom this user has a note.
    pub notes: u32,
    /// Number of pending follow requests to this user.
    pub requests: u32,
    /// Number of pending follow requests by this user.
    pub requested: u32,
    /// Number of posts that are neither public nor unlisted.
    pub closed: u32,
    /// Number of authors in whom this user is not interested.
    pub not_interested: u32,
}

impl Counts {
    /// Number of public and unlisted posts, for the counts on a profile.
    #[must_use]
    pub const fn open_posts(self) -> u32 {
        self.posts.saturating_sub(self.closed)
    }

    /// Encodes the counts as little-endian words in the order of the fields: 16 bytes, 24 if the user blocks or mutes
    /// anyone, 36 with notes or requests, 40 with posts that are neither public nor unlisted, and 44 with authors in
    /// whom the user is not interested.
    #[must_use]
    pub fn encode(self) -> Value {
        let mut bytes = Value::new();
        let Self { posts, followers, following, friends, blocks, mutes, .. } = self;
        let Self { notes, requests, requested, closed, not_interested, .. } = self;
        let words = [
            posts,
            followers,
            following,
            friends,
            blocks,
            mutes,
            notes,
            requests,
            requested,
            closed,
            not_interested,
        ];
        let len = match (blocks | mutes, notes | requests | requested, closed, not_interested) {
            (0, 0, 0, 0) => 4,
            (_, 0, 0, 0) => 6,
            (_, _, 0, 0) => 9,
            (_, _, _, 0) => 10,
            _ => words.len(),
        };
        for word in words.into_iter().take(len) {
            bytes.extend_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// Reverses [`Counts::encode`].
    ///
    /// # Panics
    /// If the length is invalid. The store checks rows, so this is a broken invariant.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Self {
        match Self::try_decode(bytes) {
            Some(counts) => counts,
            None => rows::malformed("row of counts", &format_args!("{} bytes", bytes.len())),
        }
    }

    /// Decodes bytes that may be damaged; `None` if their length is invalid.
    #[must_use]
    pub fn try_decode(bytes: &[u8]) -> Option<Self> {
        let mut words = bytes.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word));
        let (posts, followers, following) = (words.next()?, words.next()?, words.next()?);
        let friends = words.next()?;
        let mut later = || words.next().unwrap_or(0);
        let (blocks, mutes) = (later(), later());
        let (notes, requests, requested, closed) = (later(), later(), later(), later());
        let not_interested = later();
        // The lengths that [`Counts::encode`] writes.
        let is_whole = matches!(bytes.len(), 16 | 24 | 36 | 40 | 44);
        is_whole.then_some(Self {
            posts,
            followers,
            following,
            friends,
            blocks,
            mutes,
            notes,
            requests,
            requested,
            closed,
            not_interested,
        })
    }
}

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
    /// Default of the users who may quote a post.
    pub quote_policy: QuotePolicy,
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
    /// New default quote policy.
    pub quote_policy: Option<QuotePolicy>,
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
            quote_policy: None,
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
