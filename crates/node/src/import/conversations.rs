//! What users did with conversations.

use feed::PostId;
use feed::conversation::ConversationMark;

use super::Wrong;
use super::ids::Ids;
use crate::export::user_lines;

/// The marks of a user.
pub(super) fn marks(
    ids: &mut Ids,
    lines: &[user_lines::ConversationMark],
) -> Result<Vec<ConversationMark>, Wrong> {
    let mut marks = Vec::new();
    for line in lines {
        let (first, read) = (ids.used(line.first)?, ids.used(line.read)?);
        let (first, read) = (PostId(first.0), PostId(read.0));
        ConversationMark { first, read, is_removed: line.removed }.add_to(&mut marks);
    }
    Ok(marks)
}
