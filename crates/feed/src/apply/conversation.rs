//! Reading and removing conversations.

use crate::command::{Done, Outcome};
use crate::conversation::ConversationUpdate;
use crate::facts::Txn;

/// A conversation that nobody sees can have a mark: which exist depends on many rows, and a mark harms nobody.
pub(super) fn update(txn: &mut Txn<'_>, update: &ConversationUpdate) -> Outcome {
    let user = super::resolve(txn, &update.user)?;
    let mut marks = txn.facts().conversation_marks(user);
    if update.mark.add_to(&mut marks) {
        txn.put_conversation_marks(user, &marks);
    }
    Ok(Done::ConversationUpdated)
}
