//! Checks blocks: no follow, request or friendship crosses one. Runs after both directions of blocks agree.

use rows::{RowsMut, Scan};

use crate::mend::Rows;
use crate::relation::RELATIONS;

impl<R: Scan + RowsMut> Rows<'_, R> {
    /// Ends the relations between a user and a blocked user.
    pub(crate) fn block(&mut self, owner: u64, item: u64) {
        let Some((user, other)) = self.user(owner).zip(self.user(item)) else { return };
        for relation in RELATIONS.into_iter().filter(|relation| !relation.is_across_blocks) {
            for (user, other) in [(user, other), (other, user)] {
                let (one, two) = (user.0.into(), other.0.into());
                // Both directions are written, because they are compared later.
                if self.set(relation.forward, one, two, None)
                    | self.set(relation.backward, two, one, None)
                {
                    let table = relation.forward;
                    self.derived(format!(
                        "{table:?} {one}, {two}: one of the two blocks the other"
                    ));
                }
            }
        }
    }
}
