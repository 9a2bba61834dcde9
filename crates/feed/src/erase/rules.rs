//! Deleting a user, and removing the rows of deleted users, a bounded number of rows per command.
//!
//! The node searches for the next rows to remove, and the command names their kind and where they begin. So the writer
//! does not scan removed rows, and no outcome depends on ephemeral rows.

use std::cmp::Reverse;

use rows::Table;

use crate::done::{Done, Outcome};
use crate::effect::{Effect, UserChange};
use crate::erase::ErasurePhase;
use crate::erase::items::Erase;
use crate::facts::Txn;
use crate::ids::{UserId, UserRef};
use crate::limits::ERASING_USERS_MAX;
use crate::refusal::Refusal;
use crate::relation::Relation;
use crate::tables::eraser;
use crate::users::rules::resolve;

pub(crate) fn delete(txn: &mut Txn<'_>, user: &UserRef, effects: &mut Vec<Effect>) -> Outcome {
    let id = resolve(txn, user)?;
    let user = txn.facts().user(id).ok_or(Refusal::UserNotFound)?;
    if txn.facts().totals().users_erasing >= ERASING_USERS_MAX {
        return Err(Refusal::TooManyDeletions);
    }
    txn.delete_user(id, user);
    effects.push(Effect::User { user: id, change: UserChange::Deleted });
    Ok(Done::UserDeleted)
}

pub(crate) fn erase(
    txn: &mut Txn<'_>,
    user: UserId,
    (phase, from): (ErasurePhase, u64),
    effects: &mut Vec<Effect>,
) -> Done {
    let due = txn.facts().erasure_of(user).filter(|_| phase.is_known());
    let Some(due) = due else { return Done::NotDue };
    if txn.facts().erasure(due).is_some_and(|stored| is_before((phase, from), stored)) {
        // The node that sent this command had not yet applied the commands that removed these rows.
        return Done::NotDue;
    }
    txn.put_erasure(due, (phase, from));
    match phase.table() {
        None => txn.finish_erasing(user, due),
        Some(table) => txn.erase_in(table, (user, from), effects),
    }
    Done::DueDone
}

fn is_before(one: (ErasurePhase, u64), other: (ErasurePhase, u64)) -> bool {
    let place = |(phase, from): (ErasurePhase, u64)| (Reverse(phase.phases_left()), from);
    place(one) < place(other)
}

impl Txn<'_> {
    /// Removes as many items of a deleted user from a table as one command may, starting at an item.
    pub(crate) fn erase_in(
        &mut self,
        table: Table,
        (user, from): (UserId, u64),
        effects: &mut Vec<Effect>,
    ) {
        Erase { txn: self, effects, user, table, from }.run();
    }
}

impl Erase<'_, '_> {
    fn run(&mut self) {
        if let Table::Set(table) = self.table
            && let Some(relation) = Relation::of_table(table)
        {
            self.related(relation, table);
        } else if let Some(erase) = eraser(self.table) {
            erase(self);
        }
    }
}
