//! Definitions of ranked feeds: built-in ones, those of a file, and those that applications have stored.

use std::collections::BTreeSet;
use std::sync::Arc;

use feed::feeds::FeedName;
use feed::limits::STORED_FEEDS_MAX;
use parking_lot::Mutex;
use rank::{Feed, Feeds};

use super::Node;

const _: () =
    assert!(feed::limits::FEED_NAME_CHARS_MAX == rank::FEED_NAME_MAX, "one kind of names");

impl Node {
    /// Built-in feeds and those of a file.
    #[must_use]
    pub fn feeds(&self) -> &Feeds {
        &self.shared.feeds
    }

    /// Feed with this name: of the file, else a stored one that can be read, else a built-in one. May block.
    #[must_use]
    pub fn feed(&self, name: &str) -> Option<Arc<Feed>> {
        let stored = || self.stored_feed(&FeedName::parse(name).ok()?);
        let found = self.feeds().of_file(name).cloned().or_else(stored);
        found.or_else(|| self.feeds().named(name).cloned())
    }

    /// Stored definition of a feed. May block.
    ///
    /// A definition that an earlier or later release has stored, and that this release cannot read, is left out. The
    /// program's log gets one warning for each name.
    #[must_use]
    pub fn stored_feed(&self, name: &FeedName) -> Option<Arc<Feed>> {
        static WARNED: Mutex<BTreeSet<FeedName>> = Mutex::new(BTreeSet::new());
        let definition = self.facts().stored_feed(name)?;
        match Feed::parse_json(definition.as_str()) {
            Ok(feed) => Some(Arc::new(feed)),
            Err(error) => {
                let mut warned = WARNED.lock();
                if warned.len() < STORED_FEEDS_MAX && warned.insert(name.clone()) {
                    let name = name.as_str();
                    tracing::warn!(name, %error, "a stored feed cannot be read and is ignored");
                }
                None
            }
        }
    }
}
