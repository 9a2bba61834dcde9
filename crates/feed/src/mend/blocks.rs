//! Blocks and mutes: no follow, request or friendship is across a block, and each mute that ends by itself has a row for its
//! end. Both directions of each agree before these are checked.

use rows::{NameTable, RowsMut, Scan, SetTable, Value};

use super::{Mend, Rows};
use crate::ids::UserId;
use crate::mute::Mute;
use crate::write;

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
        let (Some((user, other)), Some(ends_ms)) =
            (step.user(owner).zip(step.user(item)), Mute::of_number(number).ends_ms)
        else {
            return;
        };
        let key = write::mute_end_key(ends_ms, user, other);
        if step.rows.name(NameTable::MuteEnd, &key).is_none() {
            step.derived(format!("Mutes {owner}, {item}: the row of its end is missing"));
            step.rows.put_name(NameTable::MuteEnd, &key, Some(Value::new()));
        }
    }
}

impl<R: Scan + RowsMut> Rows<'_, R> {
    /// The end of a mute, which must exist and end then.
    pub(super) fn mute_end(&mut self, name: &[u8]) {
        let end = write::read_mute_end(name);
        let is_right = end.is_some_and(|(ends_ms, user, other): (u64, UserId, UserId)| {
            self.facts().mute(user, other).is_some_and(|mute| mute.ends_ms == Some(ends_ms))
        });
        if !is_right {
            self.derived(format!("MuteEnd {}: no mute ends then", name.escape_ascii()));
            self.rows.put_name(NameTable::MuteEnd, name, None);
        }
    }
}
