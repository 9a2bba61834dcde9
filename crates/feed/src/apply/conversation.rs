//! Marking conversations as read or unread, and removing them.

use crate::command::{Done, Outcome};
use crate::conversation::{ConversationMark, ConversationUpdate};
use crate::facts::Txn;
use crate::facts::whole::CONVERSATION_MARKS;
use crate::ids::{PostId, UserRef};

/// Sets a mark, even of a conversation that the user cannot see: checking that would read many rows, and the mark is
/// harmless.
pub(super) fn update(txn: &mut Txn<'_>, update: &ConversationUpdate) -> Outcome {
    let user = super::resolve(txn, &update.user)?;
    let mut marks = txn.facts().conversation_marks(user);
    if update.mark.add_to(&mut marks) {
        txn.put_whole(&CONVERSATION_MARKS, user, &marks);
    }
    Ok(Done::ConversationUpdated)
}

/// Marks a conversation as unread, whether or not it exists.
pub(super) fn mark_unread(
    txn: &mut Txn<'_>,
    user: &UserRef,
    first: PostId,
    last: PostId,
) -> Outcome {
    let user = super::resolve(txn, user)?;
    let mut marks = txn.facts().conversation_marks(user);
    if ConversationMark::mark_unread(&mut marks, first, last) {
        txn.put_whole(&CONVERSATION_MARKS, user, &marks);
    }
    Ok(Done::ConversationUpdated)
}
