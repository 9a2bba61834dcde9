//! Checks that users of whom one blocks the other have no follow, follow request or friendship. Runs after the check of
//! the blocks themselves.

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
                // Both rows of the relation are removed here. The pass over the relation, which compares them, is
                // later.
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
