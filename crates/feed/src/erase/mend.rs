//! Checks deleted users.

use rows::{RowsMut, Scan, SetTable};

use crate::due::DueWork;
use crate::ids::UserId;
use crate::index::IndexRow;
use crate::limits;
use crate::mend::{Mend, Rows};
use crate::write;

impl<R: Scan + RowsMut> Rows<'_, R> {
    pub(crate) fn is_deleted(&self, user: UserId) -> bool {
        self.rows.member(SetTable::DeletedUsers, user.0.into(), 0).is_some()
    }
}

impl Mend {
    pub(crate) fn deleted_user<R: Scan + RowsMut>(
        &mut self,
        step: &mut Rows<'_, R>,
        owner: u64,
        item: u64,
    ) {
        if item == 0 && u32::try_from(owner).is_ok_and(|id| id < limits::USERS_MAX) {
            self.counted.deleted += 1;
        } else {
            step.derived(format!("DeletedUsers {owner}, {item}: there is no such user"));
            step.set(SetTable::DeletedUsers, owner, item, None);
        }
    }

    pub(crate) fn erasing_user<R: Scan + RowsMut>(
        &mut self,
        step: &mut Rows<'_, R>,
        (owner, item): (u64, u64),
    ) {
        let id = u32::try_from(item).ok().filter(|id| owner == 0 && *id < limits::USERS_MAX);
        let Some(id) = id.map(UserId) else {
            step.derived(format!("ErasingUsers {owner}, {item}: there is no such user"));
            step.set(SetTable::ErasingUsers, owner, item, None);
            return;
        };
        self.counted.erasing += 1;
        let erasure = step.facts().erasure_of(id).map(IndexRow::due);
        step.put_index(|| format!("deleted user {item}"), erasure);
        if !step.is_deleted(id) {
            step.derived(format!("user {item}: the row of the deletion is missing"));
            step.set(SetTable::DeletedUsers, item, 0, Some(0));
            self.counted.deleted += 1;
        }
    }

    /// Restarts the removal of a deleted user of whom a row is left.
    pub(crate) fn erase_again<R: Scan + RowsMut>(&mut self, step: &mut Rows<'_, R>, user: UserId) {
        step.derived(format!("user {}: deleted, but not all rows are removed", user.0));
        let erasure = step.facts().since_now(DueWork::Erase { user });
        write::erasing(step.rows, user, erasure);
        self.counted.erasing += 1;
        let mut totals = step.rows.totals();
        totals.users_erasing += 1;
        step.rows.put_totals(totals);
    }
}
