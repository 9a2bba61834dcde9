//! One owner's items out of up to three layers, a page at a time.
//!
//! A layer above hides the same item below it, whether it says removed or present. Memory layers are
//! copied in runs under a short lock, the disk is read row by row, and nothing beyond the limit is
//! looked at except the rest of a run.

use feed::{Order, SetTable, Span};

use crate::overlay::Overlay;

/// Items copied out of an overlay under one lock.
const RUN: usize = 256;

/// An item and what a layer knows of it: `None` is removed.
type Row = (u64, Option<u64>);

/// The items of one owner in one overlay, copied run by run.
pub(crate) struct OverlayItems<'a> {
    overlay: &'a Overlay,
    table: SetTable,
    owner: u64,
    /// What was not copied yet; `None` behind the last run.
    rest: Option<Span>,
    run: std::vec::IntoIter<Row>,
}

impl<'a> OverlayItems<'a> {
    pub(crate) fn new(overlay: &'a Overlay, table: SetTable, owner: u64, span: Span) -> Self {
        let rest = Some(Span { limit: span.limit.min(RUN), ..span });
        Self { overlay, table, owner, rest, run: Vec::new().into_iter() }
    }

    fn refill(&mut self) {
        let Some(span) = self.rest.take() else { return };
        let mut run = Vec::new();
        self.overlay.members(self.table, self.owner, span, &mut run);
        if let (Some((last, _)), true) = (run.last(), run.len() == span.limit) {
            self.rest = match span.order {
                Order::Ascending => last.checked_add(1).map(|low| Span { low, ..span }),
                Order::Descending => last.checked_sub(1).map(|high| Span { high, ..span }),
            }
            .filter(|span| span.low <= span.high);
        }
        self.run = run.into_iter();
    }
}

impl Iterator for OverlayItems<'_> {
    type Item = Row;

    fn next(&mut self) -> Option<Row> {
        if self.run.as_slice().is_empty() {
            self.refill();
        }
        self.run.next()
    }
}

/// A layer with its next row at hand.
struct Head<'a> {
    rows: &'a mut dyn Iterator<Item = Row>,
    next: Option<Row>,
}

/// Merges `layers`, uppermost first, all in the order of `span`, into its members.
pub(crate) fn members(layers: &mut [&mut dyn Iterator<Item = Row>], span: Span) -> Vec<(u64, u64)> {
    let heads = layers.iter_mut().map(|rows| {
        let next = rows.next();
        Head { rows: *rows, next }
    });
    let mut heads: Vec<Head<'_>> = heads.filter(|head| head.next.is_some()).collect();
    let mut found = Vec::new();
    while found.len() < span.limit {
        let items = heads.iter().filter_map(|head| head.next.map(|row| row.0));
        let first = match span.order {
            Order::Ascending => items.min(),
            Order::Descending => items.max(),
        };
        let Some(item) = first else { break };
        let mut state = None;
        for head in &mut heads {
            if let Some((_, known)) = head.next.filter(|row| row.0 == item) {
                state.get_or_insert(known);
                head.next = head.rows.next();
            }
        }
        found.extend(state.flatten().map(|number| (item, number)));
    }
    found
}

/// Tells a layer's first key not below the one given, and whether it stands or was removed there.
pub(crate) type FirstName<'a> = dyn Fn(&[u8]) -> Option<(Vec<u8>, bool)> + 'a;

/// The first name from `from` on that stands, out of `layers`, uppermost first.
pub(crate) fn first_name(layers: &[&FirstName<'_>], from: &[u8]) -> Option<Vec<u8>> {
    let mut heads: Vec<_> = layers.iter().map(|layer| (layer, layer(from))).collect();
    loop {
        let keys = heads.iter().filter_map(|(_, head)| head.as_ref());
        // Of equal keys `min_by` returns the first, which is the uppermost.
        let (key, stands) = keys.min_by(|a, b| a.0.cmp(&b.0)).cloned()?;
        if stands {
            return Some(key);
        }
        let mut behind = key;
        behind.push(0);
        for (layer, head) in &mut heads {
            if head.as_ref().is_some_and(|(key, _)| *key < behind) {
                *head = layer(&behind);
            }
        }
    }
}
