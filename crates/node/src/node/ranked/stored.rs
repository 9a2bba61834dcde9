//! Definitions of ranked feeds that applications have stored.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use feed::feeds::FeedName;
use rank::Feed;

use super::Node;

const _: () =
    assert!(feed::limits::FEED_NAME_CHARS_MAX == rank::FEED_NAME_MAX, "one kind of names");

impl Node {
    /// Stored definition of a feed. May block.
    ///
    /// A definition that an earlier or later release has stored, and that this release cannot read, is left out. The
    /// log gets a warning of the first one.
    #[must_use]
    pub fn stored_feed(&self, name: &FeedName) -> Option<Arc<Feed>> {
        static WARNED: AtomicBool = AtomicBool::new(false);
        let definition = self.facts().stored_feed(name)?;
        match Feed::parse_json(definition.as_str()) {
            Ok(feed) => Some(Arc::new(feed)),
            Err(error) => {
                if !WARNED.swap(true, Ordering::Relaxed) {
                    let name = name.as_str();
                    tracing::warn!(name, %error, "a stored feed cannot be read and is ignored");
                }
                None
            }
        }
    }
}
