//! Reading and removing conversations, and marking them as unread.

use crate::command::{Done, Outcome};
use crate::conversation::{ConversationMark, ConversationUpdate};
use crate::facts::Txn;
use crate::facts::whole::CONVERSATION_MARKS;
use crate::ids::{PostId, UserRef};

/// A conversation that nobody sees can have a mark: which exist depends on many rows, and a mark harms nobody.
pub(super) fn update(txn: &mut Txn<'_>, update: &ConversationUpdate) -> Outcome {
    let user = super::resolve(txn, &update.user)?;
    let mut marks = txn.facts().conversation_marks(user);
    if update.mark.add_to(&mut marks) {
        txn.put_whole(&CONVERSATION_MARKS, user, &marks);
    }
    Ok(Done::ConversationUpdated)
}

/// The conversation need not exist, as for other marks.
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
