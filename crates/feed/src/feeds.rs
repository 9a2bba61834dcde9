//! Definitions of ranked feeds that applications have stored. Their content is checked before a command is logged, and
//! read again when a feed is used, so a later release that reads it differently still applies the log.

use rows::{Cost, NameTable, Rows, Value, WORK_PER_ROW};
use serde::{Deserialize, Serialize};

use crate::done::{Done, Outcome};
use crate::facts::{Facts, Txn};
use crate::limits::{FEED_BYTES_MAX, FEED_NAME_CHARS_MAX, STORED_FEEDS_MAX};
use crate::refusal::Refusal;
use crate::text::as_str;

/// Name of a feed: 1 to 32 of `a-z 0-9 -`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct FeedName(Box<str>);

/// Definition of a feed in JSON, at most [`FEED_BYTES_MAX`] bytes. The content is not checked here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FeedDefinition(Box<str>);

as_str!(FeedName, FeedDefinition);

impl FeedName {
    /// Checks `text`.
    ///
    /// # Errors
    /// [`Refusal::BadFeedName`] if it is not 1 to 32 of `a-z 0-9 -`.
    pub fn parse(text: &str) -> Result<Self, Refusal> {
        let is_plain = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-');
        let right_length = (1..=FEED_NAME_CHARS_MAX).contains(&text.len());
        match right_length && text.bytes().all(is_plain) {
            true => Ok(Self(text.into())),
            false => Err(Refusal::BadFeedName),
        }
    }

    fn of_row(name: &[u8]) -> Option<Self> {
        Self::parse(str::from_utf8(name).ok()?).ok()
    }
}

impl FeedDefinition {
    /// Checks the length of `text`.
    ///
    /// # Errors
    /// [`Refusal::FeedTooLong`]
    pub fn parse(text: &str) -> Result<Self, Refusal> {
        if text.len() <= FEED_BYTES_MAX { Ok(Self(text.into())) } else { Err(Refusal::FeedTooLong) }
    }

    fn of_row(row: &[u8]) -> Option<Self> {
        Self::parse(str::from_utf8(row).ok()?).ok()
    }

    /// Content of the row.
    #[must_use]
    pub fn to_row(&self) -> Value {
        Value::from_slice(self.0.as_bytes())
    }
}

impl<R: Rows + ?Sized> Facts<'_, R> {
    /// Stored definition of a feed.
    #[must_use]
    pub fn stored_feed(&self, name: &FeedName) -> Option<FeedDefinition> {
        let row = self.rows.name(NameTable::Feed, name.as_str().as_bytes())?;
        FeedDefinition::of_row(&row)
    }

    /// Names of the stored feeds, in ascending order: at most [`STORED_FEEDS_MAX`].
    #[must_use]
    pub fn stored_feeds(&self) -> Vec<FeedName> {
        let names = self.rows.first_names(NameTable::Feed, &[], STORED_FEEDS_MAX);
        names.iter().filter_map(|name| FeedName::of_row(name)).collect()
    }
}

/// Whether name and value of a row form a stored feed.
pub(crate) fn is_record(name: &[u8], row: &[u8]) -> bool {
    FeedName::of_row(name).is_some() && FeedDefinition::of_row(row).is_some()
}

pub(crate) fn set(
    txn: &mut Txn<'_>,
    name: &FeedName,
    definition: Option<&FeedDefinition>,
) -> Outcome {
    let names = txn.facts().stored_feeds();
    let is_new = definition.is_some() && !names.contains(name);
    if is_new && names.len() >= STORED_FEEDS_MAX {
        return Err(Refusal::TooManyFeeds);
    }
    let row = definition.map(FeedDefinition::to_row);
    txn.rows.put_name(NameTable::Feed, name.as_str().as_bytes(), row);
    Ok(Done::FeedSet)
}

pub(crate) fn feed_cost(definition: Option<&FeedDefinition>) -> Cost {
    let bytes = definition.map_or(0, |definition| definition.as_str().len());
    let cost = Cost::of_rows(1, bytes + FEED_NAME_CHARS_MAX + 64);
    Cost { work: cost.work + STORED_FEEDS_MAX * WORK_PER_ROW, ..cost }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_short_and_plain_and_definitions_short() {
        let longest = "f".repeat(FEED_NAME_CHARS_MAX);
        for (text, valid) in [
            ("for-you", true),
            ("2", true),
            (longest.as_str(), true),
            (&format!("{longest}f"), false),
            ("", false),
            ("For", false),
            ("a_b", false),
            ("\u{e4}", false),
        ] {
            assert_eq!(FeedName::parse(text).is_ok(), valid, "{text:?}");
        }
        let definition = |bytes| FeedDefinition::parse(&"x".repeat(bytes)).is_ok();
        assert!(definition(FEED_BYTES_MAX) && !definition(FEED_BYTES_MAX + 1));
    }
}
