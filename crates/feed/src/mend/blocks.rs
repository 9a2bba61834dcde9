//! Blocks and mutes: no follow, request or friendship is across a block, and each mute that ends by itself has a row for its
//! end. Both directions of each agree before these are checked.

use rows::{RowsMut, Scan, SetTable};

use super::{Mend, Rows};
use crate::mute::Mute;

impl Mend {
    /// Ends the relations of a user with one whom they block.
    pub(super) fn block<R: Scan + RowsMut>(
        &mut self,
        step: &mut Rows<'_, R>,
        owner: u64,
        item: u64,
    ) {
        self.counted.blocks += 1;
        for (table, opposite, user, other) in [
            (SetTable::Following, SetTable::Followers, owner, item),
            (SetTable::Following, SetTable::Followers, item, owner),
            (SetTable::Requested, SetTable::FollowRequests, owner, item),
            (SetTable::Requested, SetTable::FollowRequests, item, owner),
            (SetTable::Friends, SetTable::Friends, owner, item),
        ] {
            // Both, since they are compared later.
            if step.set(table, user, other, None) | step.set(opposite, other, user, None) {
                step.derived(format!("{table:?} {user}, {other}: one of the two blocks the other"));
            }
        }
    }

    /// Adds the end of a mute.
    pub(super) fn mute<R: Scan + RowsMut>(
        &mut self,
        step: &mut Rows<'_, R>,
        owner: u64,
        item: u64,
        number: u64,
    ) {
        self.counted.mutes += 1;
        let users = step.user(owner).zip(step.user(item));
        let end = users.and_then(|(user, other)| Mute::of_number(number).end_of(user, other));
        if end.is_some_and(|end| step.put_due(end)) {
            step.derived(format!("Mutes {owner}, {item}: the row of its end is missing"));
        }
    }
}
