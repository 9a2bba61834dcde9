//! Changes for webhooks: what `GET /v1/changes` returns, without a request.

use edge::BlockingReads;
use feed::limits;
use node::Node;
use node::changes::{self, Place, Records, Unavailable};
use webhooks::{Change, Gap, Page, ReadError, Source, Wanted};

use crate::page::to_json;
use crate::v1::change_feed::{ChangeView, Start};

pub use crate::v1::change_feed::kind_names;

/// Reader of the change feed.
#[derive(Clone)]
pub struct ChangeReader {
    node: Node,
    reads: BlockingReads,
}

/// Whether a text is a position in the change feed.
#[must_use]
pub fn is_position(text: &str) -> bool {
    place(text).is_some()
}

fn place(text: &str) -> Option<Place> {
    match Start::parse(text)? {
        Start::After(place) => Some(place),
        Start::Oldest | Start::End => None,
    }
}

impl ChangeReader {
    /// Creates a reader of the change feed of a node. `reads` runs the reads.
    #[must_use]
    pub fn new(node: Node, reads: BlockingReads) -> Self {
        Self { node, reads }
    }
}

impl Source for ChangeReader {
    async fn read(&self, after: Option<&str>, wanted: &Wanted) -> Result<Page, ReadError> {
        let failed = |why: &str| ReadError::Unavailable(why.to_owned());
        let after = match after {
            Some(text) => Some(place(text).ok_or_else(|| failed("the position is not valid"))?),
            None => None,
        };
        let (node, wanted) = (self.node.clone(), wanted.clone());
        let read = self.reads.feed().run(move || read(&node, after, &wanted)).await;
        read.unwrap_or_else(|_| Err(failed("reading the change feed has panicked")))
    }

    async fn wait(&self, after: &str) {
        let Some(after) = place(after) else { return };
        self.node.changes_after(after).await;
    }

    fn end(&self) -> String {
        self.node.changes_end().to_string()
    }

    fn before(&self, position: &str) -> String {
        let before =
            place(position).map_or(Place::after(0), |Place { group, index }| match index {
                Some(index) if index > 0 => Place { group, index: Some(index - 1) },
                _ => Place::after(group.saturating_sub(1)),
            });
        before.to_string()
    }

    fn is_after(&self, position: &str, other: &str) -> bool {
        // A place after a whole group is after each change of the group.
        let order = |Place { group, index }| (group, index.map_or(u64::MAX, u64::from));
        place(position).map(order) > place(other).map(order)
    }

    async fn gap(&self, after: Option<&str>) -> Result<Gap, ReadError> {
        let (node, after) = (self.node.clone(), after.and_then(place));
        let found = self.reads.feed().run(move || node.changes_gap(after)).await;
        let unavailable = |why: String| ReadError::Unavailable(why);
        let found =
            found.map_err(|_| unavailable("reading the change feed has panicked".into()))?;
        Ok(match found.map_err(|error| unavailable(error.to_string()))? {
            changes::Gap::Foreign => Gap::Foreign,
            changes::Gap::Removed(to) => Gap::Removed(to.to_string()),
            changes::Gap::Damaged(to) => Gap::Damaged(to.to_string()),
        })
    }
}

/// Reads and renders changes. May block.
fn read(node: &Node, after: Option<Place>, wanted: &Wanted) -> Result<Page, ReadError> {
    // Many records may be of other kinds.
    let read = node.changes(after, limits::PAGE_MAX);
    let Records { items, next } = read.map_err(|error| match error {
        Unavailable::Gone => ReadError::Gone,
        error => ReadError::Unavailable(error.to_string()),
    })?;
    let is_wanted = |kind: &str| wanted.kinds.is_empty() || wanted.kinds.iter().any(|k| k == kind);
    let read_of = |(place, time_ms, _): &(Place, u64, _)| (place.to_string(), *time_ms);
    let last_read = items.last().map(read_of);
    let has_more = items.len() >= limits::PAGE_MAX;
    let mut page = Page { changes: Vec::new(), next: next.to_string(), last_read, has_more };
    let mut bytes = 0;
    for item in items.iter().filter(|(_, _, record)| is_wanted(record.kind.name())) {
        if page.changes.len() >= wanted.changes_max || bytes >= wanted.bytes {
            if let Some(last) = page.changes.last() {
                page.next = last.position.clone();
                page.last_read = Some((last.position.clone(), last.time_ms));
            }
            page.has_more = true;
            break;
        }
        let json = to_json(&ChangeView::new(node, item, !wanted.ids_only));
        bytes += json.len();
        page.changes.push(Change { position: item.0.to_string(), time_ms: item.1, json });
    }
    Ok(page)
}
