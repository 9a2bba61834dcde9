//! All rows of a store in memory, for comparisons by the simulator.

use rows::Span;

use crate::keyspace::Keyspace;
use crate::layout;
use crate::memory::{MemoryDisk, MemoryKeyspace};
use crate::owners::State;
use crate::sets::Set;

/// Key and value.
pub type MemoryRow = (Vec<u8>, Vec<u8>);

impl MemoryDisk {
    /// Returns all rows, of the facts and the ephemeral ones. Omits those that depend on the times of checkpoints: the
    /// head row, the states of owners, and the fence. Each item of a packed set is one row.
    #[must_use]
    pub fn rows(&self) -> [Vec<MemoryRow>; 2] {
        [&self.facts, &self.ephemeral].map(MemoryKeyspace::rows_of_tables)
    }
}

impl MemoryKeyspace {
    fn rows_of_tables(&self) -> Vec<MemoryRow> {
        let mut found = Vec::new();
        let keyspace = Keyspace::Memory(self.clone());
        let mut last = None;
        let rows = self.rows.read();
        let tables = rows.range(vec![layout::TABLES_MIN]..);
        for (key, value) in tables.filter(|(key, _)| **key != layout::FENCE) {
            let Some(table) = layout::set_table(key).filter(|table| table.is_packed()) else {
                found.push((key.clone(), value.to_vec()));
                continue;
            };
            let owner = layout::read_packed(key).map(|(owner, _)| (table, owner));
            if let Some((table, owner)) = owner.filter(|_| owner != last) {
                let set = Set { keyspace: &keyspace, table, owner, state: State::MOST };
                let items = set.items(Span::ALL).filter_map(|(item, number)| Some((item, number?)));
                found.extend(items.map(|(item, number)| {
                    (layout::set(table, owner, item).to_vec(), number.to_be_bytes().to_vec())
                }));
            }
            last = owner;
        }
        found
    }
}
