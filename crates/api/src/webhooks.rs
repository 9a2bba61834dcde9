//! Changes for webhooks: what `GET /v1/changes` returns, without a request.

use edge::{BlockingReads, STREAM_PACE};
use feed::limits;
use node::Node;
use node::changes::{Place, Records, Unavailable};
use tokio::time::sleep;
use webhooks::{Change, Page, ReadError, Source, Wanted};

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
        tokio::select! {
            biased;
            () = self.node.changes_after(after) => return,
            () = std::future::ready(()) => {}
        }
        self.node.changes_after(after).await;
        // Not at once, so that one read returns the changes of many groups.
        sleep(STREAM_PACE).await;
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
    let mut page = Page { changes: Vec::new(), next: next.to_string() };
    let mut bytes = 0;
    for item in items.iter().filter(|(_, _, record)| is_wanted(record.kind.name())) {
        if page.changes.len() >= wanted.changes_max || bytes >= wanted.bytes {
            page.next = page.changes.last().map_or(page.next, |last| last.position.clone());
            break;
        }
        let json = to_json(&ChangeView::new(node, item, !wanted.ids_only));
        bytes += json.len();
        page.changes.push(Change { position: item.0.to_string(), time_ms: item.1, json });
    }
    Ok(page)
}
