//! Checks blocks and requests: no follow, request or friendship crosses a block, and no request coexists with the follow.
//! Runs after both directions of each relation agree.

use rows::{RowsMut, Scan};

use crate::mend::Rows;
use crate::relation::{RELATIONS, Relation};

impl<R: Scan + RowsMut> Rows<'_, R> {
    /// Ends the relations between a user and a blocked user.
    pub(crate) fn block(&mut self, owner: u64, item: u64) {
        let Some((user, other)) = self.user(owner).zip(self.user(item)) else { return };
        for relation in RELATIONS.into_iter().filter(|relation| !relation.is_across_blocks) {
            for (user, other) in [(user, other), (other, user)] {
                let (one, two) = (user.0.into(), other.0.into());
                // Both directions, because they are compared later.
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

    /// Ends a relation that has become another one.
    pub(crate) fn become_other(&mut self, relation: &Relation, owner: u64, item: u64) {
        let next = relation.becomes.and_then(|next| self.rows.member(next.forward, owner, item));
        if next.is_some() {
            self.derived(format!("{:?} {owner}, {item}: the relation has ended", relation.forward));
            self.set(relation.forward, owner, item, None);
            self.set(relation.backward, item, owner, None);
        }
    }
}
