//! Merges the rows of up to three layers: points, the items of one owner, and names. Items and names are merged in
//! pieces.
//! An item in a higher layer, removed or present, hides the same item in lower layers. From layers in memory, runs of
//! rows are copied under a short lock; from the disk, rows are read one by one. Nothing after the limit is read, except
//! the rest of a run.

use rows::{NameTable, Order, SetTable, Span, Value};

use crate::overlay::Overlay;

/// Number of items that are copied from an overlay under one lock.
const RUN: usize = 256;

/// Item and its number in a layer; `None` means that it is removed.
type Row = (u64, Option<u64>);

/// Items of one owner in one overlay. They are copied in runs.
pub(crate) struct OverlayItems<'a> {
    overlay: &'a Overlay,
    table: SetTable,
    owner: u64,
    /// Range that is still to be copied; `None` after the last run.
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

/// A layer and its next row.
struct Head<'a> {
    rows: &'a mut dyn Iterator<Item = Row>,
    next: Option<Row>,
}

/// Merges `layers`, uppermost first, and returns the present members. All layers are in the order of `span`.
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
            if let Some((_, row)) = head.next.filter(|row| row.0 == item) {
                state.get_or_insert(row);
                head.next = head.rows.next();
            }
        }
        found.extend(state.flatten().map(|number| (item, number)));
    }
    found
}

/// Calls `each` with every point, in the order of keys. `disk` has the points on disk, in this order. `changed` has the
/// keys (ascending) of points that a layer in memory has changed; for these, `look` returns the point.
pub(crate) fn each_point(
    changed: Vec<u64>,
    disk: &mut dyn Iterator<Item = (u64, fjall::Slice)>,
    look: impl Fn(u64) -> Option<Value>,
    each: &mut dyn FnMut(u64, &[u8]),
) {
    let mut changed = changed.into_iter().peekable();
    let in_memory = |key, each: &mut dyn FnMut(u64, &[u8])| {
        if let Some(value) = look(key) {
            each(key, &value);
        }
    };
    for (key, row) in disk {
        while let Some(before) = changed.next_if(|other| *other < key) {
            in_memory(before, each);
        }
        match changed.next_if_eq(&key) {
            Some(key) => in_memory(key, each),
            None => each(key, &row),
        }
    }
    changed.for_each(|key| in_memory(key, each));
}

/// Calls `each` with the `limit` points that have the greatest keys, greatest first. `disk` has the points on disk, in
/// this order. `changed` has the keys (ascending) of points that a layer in memory has changed; for these, `look`
/// returns the point.
pub(crate) fn points_down(
    mut changed: Vec<u64>,
    disk: &mut dyn Iterator<Item = (u64, fjall::Slice)>,
    look: impl Fn(u64) -> Option<Value>,
    mut limit: usize,
    each: &mut dyn FnMut(u64, &[u8]),
) {
    let mut on_disk = None;
    while limit > 0 {
        on_disk = on_disk.or_else(|| disk.next());
        let key = changed.last().copied().max(on_disk.as_ref().map(|row| row.0));
        let Some(key) = key else { return };
        let row = on_disk.take_if(|row| row.0 == key).map(|(_, row)| row);
        if changed.pop_if(|last| *last == key).is_none() {
            row.iter().for_each(|row| each(key, row));
        } else if let Some(row) = look(key) {
            each(key, &row);
        } else {
            continue;
        }
        limit -= 1;
    }
}

/// Name in a layer, and whether it exists or was removed.
type Name = (Vec<u8>, bool);

/// Names of one table in one overlay that begin with a prefix. They are copied in runs.
pub(crate) struct OverlayNames<'a> {
    overlay: &'a Overlay,
    table: NameTable,
    prefix: &'a [u8],
    /// Start of the next run; `None` after the last run.
    from: Option<Vec<u8>>,
    run: std::vec::IntoIter<Name>,
    run_len: usize,
}

impl<'a> OverlayNames<'a> {
    pub(crate) fn new(
        overlay: &'a Overlay,
        table: NameTable,
        prefix: &'a [u8],
        from: &[u8],
    ) -> Self {
        let (from, run) = (Some([prefix, from].concat()), Vec::new().into_iter());
        // Make the first run short, because most callers want one name.
        Self { overlay, table, prefix, from, run, run_len: 4 }
    }
}

impl Iterator for OverlayNames<'_> {
    type Item = Name;

    fn next(&mut self) -> Option<Name> {
        if self.run.as_slice().is_empty() {
            let run =
                self.overlay.names_under(self.table, self.prefix, &self.from.take()?, self.run_len);
            if run.len() == self.run_len {
                let after = |(last, _): &Name| [last.as_slice(), &[0]].concat();
                self.from = run.last().map(after);
            }
            self.run_len = RUN;
            self.run = run.into_iter();
        }
        self.run.next()
    }
}

/// A layer and its next name.
struct NameHead<'a> {
    names: &'a mut dyn Iterator<Item = Name>,
    next: Option<Name>,
}

/// Merges `layers`, uppermost first, and returns the first existing names, at most `limit`.
pub(crate) fn names(layers: &mut [&mut dyn Iterator<Item = Name>], limit: usize) -> Vec<Vec<u8>> {
    let heads = layers.iter_mut().map(|names| {
        let next = names.next();
        NameHead { names: *names, next }
    });
    let mut heads: Vec<NameHead<'_>> = heads.collect();
    let mut found = Vec::new();
    while found.len() < limit {
        let names = heads.iter().filter_map(|head| head.next.as_ref());
        // `min_by` returns the first of equal names, which is from the uppermost layer.
        let Some((name, exists)) = names.min_by(|a, b| a.0.cmp(&b.0)).cloned() else { break };
        for head in &mut heads {
            if head.next.as_ref().is_some_and(|(next, _)| *next == name) {
                head.next = head.names.next();
            }
        }
        if exists {
            found.push(name);
        }
    }
    found
}
