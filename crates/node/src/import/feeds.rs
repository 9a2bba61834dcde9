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
        let definition = FeedDefinition::parse(line.definition.get())?;
        if !definition.as_str().starts_with('{') {
            return Err("the definition of a feed is a JSON object".into());
        }
        // As in a data directory, it may be of a release that has other features.
        if let Err(error) = Feed::parse_json(definition.as_str()) {
            let name = name.as_str();
            tracing::warn!(name, %error, "an imported feed cannot be read and will be ignored");
        }
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
