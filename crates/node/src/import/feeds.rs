//! Import of stored ranked feeds.

use std::collections::BTreeSet;

use feed::Refusal;
use feed::feeds::{FeedDefinition, FeedName};
use feed::limits::STORED_FEEDS_MAX;
use rank::Feed;
use rows::{NameTable, PutRows as _};
use store::Loader;

use super::Wrong;
use crate::export::lines::Feed as FeedLine;

/// Names of the stored feeds so far.
#[derive(Default)]
pub(super) struct Feeds(BTreeSet<FeedName>);

impl Feeds {
    pub(super) fn add(&mut self, loader: &mut Loader, line: &FeedLine<'_>) -> Result<(), Wrong> {
        let name = FeedName::parse(&line.name)?;
        let feed = Feed::parse_json(line.definition.get()).map_err(|error| error.to_string())?;
        let definition = FeedDefinition::parse(&feed.to_json())?;
        if self.0.len() >= STORED_FEEDS_MAX {
            return Err(Refusal::TooManyFeeds.into());
        }
        loader.put_name(NameTable::Feed, name.as_str().as_bytes(), Some(definition.to_row()));
        match self.0.insert(name) {
            true => Ok(()),
            false => Err("this feed exists already".into()),
        }
    }
}
