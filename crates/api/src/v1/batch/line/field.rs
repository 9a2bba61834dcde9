//! Fields of a line in their JSON forms.

use std::borrow::Cow;
use std::fmt;

use feed::UserRef;
use serde::Deserialize;
use serde::de::{Deserializer, Error, Visitor};

use crate::error::ApiError;
use crate::input::{decimal, user, user_number};

/// Text, borrowed from the line unless it holds escapes.
#[derive(Default, PartialEq)]
pub(super) struct Text<'a>(pub(super) Cow<'a, str>);

/// A user, a post or a story: `12`, `"12"`, `"@handle"`.
#[derive(PartialEq)]
pub(super) enum Number<'a> {
    Plain(u64),
    Text(Cow<'a, str>),
}

impl Number<'_> {
    pub(super) fn number(&self) -> Option<u64> {
        match self {
            Self::Plain(number) => Some(*number),
            Self::Text(text) => decimal(text),
        }
    }

    pub(super) fn user(&self) -> Result<UserRef, ApiError> {
        match self {
            Self::Plain(number) => user_number(Some(*number)),
            Self::Text(text) => user(text),
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OfText;
        impl<'de> Visitor<'de> for OfText {
            type Value = Text<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Borrowed(text)))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(OfText)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Number<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OfNumber;
        impl<'de> Visitor<'de> for OfNumber {
            type Value = Number<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an id or @handle")
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<Number<'de>, E> {
                Ok(Number::Plain(number))
            }

            fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Number<'de>, E> {
                Ok(Number::Text(Cow::Borrowed(text)))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Number<'de>, E> {
                Ok(Number::Text(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_any(OfNumber)
    }
}
