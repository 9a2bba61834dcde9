//! Marking conversations as read or unread, and removing them.

use crate::conversations::{ConversationMark, ConversationUpdate};
use crate::done::{Done, Outcome};
use crate::facts::Txn;
use crate::ids::{PostId, UserRef};
use crate::users::rules::resolve;
use crate::whole::CONVERSATION_MARKS;

/// Sets a mark of a conversation. Does not check that the user can see the conversation: the check would read many
/// rows, and such a mark is harmless.
pub(crate) fn update(txn: &mut Txn<'_>, update: &ConversationUpdate) -> Outcome {
    let user = resolve(txn, &update.user)?;
    let mut marks = txn.facts().conversation_marks(user);
    if update.mark.add_to(&mut marks) {
        txn.put_whole(&CONVERSATION_MARKS, user, &marks);
    }
    Ok(Done::ConversationUpdated)
}

/// Marks a conversation as unread, whether or not it exists.
pub(crate) fn mark_unread(
    txn: &mut Txn<'_>,
    user: &UserRef,
    first: PostId,
    last: PostId,
) -> Outcome {
    let user = resolve(txn, user)?;
    let mut marks = txn.facts().conversation_marks(user);
    if ConversationMark::mark_unread(&mut marks, first, last) {
        txn.put_whole(&CONVERSATION_MARKS, user, &marks);
    }
    Ok(Done::ConversationUpdated)
}
