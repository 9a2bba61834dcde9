//! Table of the names of labels, and the number of samples of each label.
//!
//! **Invariant:** a name exists as long as a sample has it. A new name takes the place of a removed one.

use std::collections::BTreeMap;

use crate::meter::{Counted, Meter};

/// A label: an index into the table of names of its [`Samples`](crate::Samples).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Label(u32);

/// Maximum size of a label with a name of at most 32 bytes, in addition to [`LABEL_PLACE_BYTES`]: the name twice, and
/// its entry in a tree whose nodes are half full.
pub const LABEL_BYTES: usize = 160;
/// Maximum size of an entry of the table, whether used or free.
pub const LABEL_PLACE_BYTES: usize = 56;

/// The table of names.
#[derive(Clone, Debug)]
pub(crate) struct Labels {
    names: Vec<Named>,
    by_name: BTreeMap<Box<str>, Label>,
    /// Entries of `names` without samples.
    free: Vec<Label>,
    counted: Counted,
}

#[derive(Clone, Debug)]
struct Named {
    name: Box<str>,
    count: usize,
}

impl Labels {
    pub(crate) fn new(meter: &Meter) -> Self {
        let (names, free) = (Vec::new(), Vec::new());
        Self { names, by_name: BTreeMap::new(), free, counted: Counted::new(meter) }
    }

    /// Name of a label; `None` if the label was never assigned.
    pub(crate) fn name(&self, label: Label) -> Option<&str> {
        self.names.get(label.0 as usize).map(|named| &*named.name)
    }

    /// Names in use with the number of their samples, in ascending order.
    pub(crate) fn counts(&self) -> impl Iterator<Item = (&str, usize)> {
        let named = self.by_name.values().filter_map(|label| self.names.get(label.0 as usize));
        named.map(|named| (&*named.name, named.count))
    }

    /// Returns the label with this name, and counts another sample of it.
    pub(crate) fn add(&mut self, name: &str) -> Label {
        let label = match self.by_name.get(name) {
            Some(label) => *label,
            None => self.insert(name),
        };
        self.named(label).count += 1;
        label
    }

    /// Counts one sample less of the label.
    pub(crate) fn release(&mut self, label: Label) {
        let named = self.named(label);
        named.count -= 1;
        if named.count == 0 {
            let name = std::mem::take(&mut named.name);
            self.by_name.remove(&name);
            self.free.push(label);
            self.count();
        }
    }

    fn insert(&mut self, name: &str) -> Label {
        let named = Named { name: name.into(), count: 0 };
        let label = match self.free.pop() {
            Some(label) => {
                *self.named(label) = named;
                label
            }
            None => {
                let Ok(place) = u32::try_from(self.names.len()) else {
                    unreachable!("as many names do not fit into memory")
                };
                self.names.push(named);
                Label(place)
            }
        };
        self.by_name.insert(name.into(), label);
        self.count();
        label
    }

    fn named(&mut self, label: Label) -> &mut Named {
        let Some(named) = self.names.get_mut(label.0 as usize) else {
            unreachable!("a label has a place")
        };
        named
    }

    fn count(&mut self) {
        let bytes = self.by_name.len() * LABEL_BYTES + self.names.len() * LABEL_PLACE_BYTES;
        self.counted.set(bytes);
    }
}
