//! Import of users' settings of conversations and threads.

use feed::PostId;
use feed::conversations::ConversationMark;
use feed::limits::MUTED_THREADS_MAX;

use super::Wrong;
use super::ids::Ids;
use crate::export::lines::Id;
use crate::export::user_lines;

/// Checks the positions up to which a user has read conversations.
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

/// Checks the muted threads of a user.
pub(super) fn muted_threads(ids: &mut Ids, lines: &[Id]) -> Result<Vec<PostId>, Wrong> {
    let mut threads = Vec::new();
    for first in lines {
        let first = PostId(ids.used(*first)?.0);
        if threads.contains(&first) || threads.len() >= MUTED_THREADS_MAX {
            let what = format!("muted_threads must be at most {MUTED_THREADS_MAX} different posts");
            return Err(what.into());
        }
        threads.push(first);
    }
    Ok(threads)
}
