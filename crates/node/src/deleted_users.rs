//! Removes the rows of deleted users: looks for rows of one user, and submits commands that remove them, until
//! none are left. Reads already hide these rows.
//!
//! It runs on the thread of the sweeper. After a restart it continues with the rows that the facts still have.

use feed::accounts::GrantId;
use feed::limits::ERASE_ROWS_MAX;
use feed::{Command, Facts, PostId, Remains, UserId};
use store::Store;

use crate::shared::{OwnReply, Shared};

/// Commands in a row before stories are swept again.
const COMMANDS_AT_ONCE: usize = 64;

/// Number of items of which rows are read before the writer removes them: as many as one command removes.
const READ_AHEAD: usize = ERASE_ROWS_MAX / 3;

/// Progress of the removal of a deleted user.
#[derive(Clone, Copy)]
pub(crate) struct Progress {
    user: UserId,
    remains: Remains,
    /// No earlier row of these is left: a read does not walk over those that are removed.
    from: u64,
}

impl Shared {
    /// Removes some of what is left of deleted users, and keeps in `progress` how far it is; returns whether
    /// there may be more. Blocks.
    pub(crate) fn erase_users(&self, progress: &mut Option<Progress>) -> bool {
        for _ in 0..COMMANDS_AT_ONCE {
            let Some(reply) = self.submit_erasure(progress) else { return false };
            if reply.blocking_recv().is_err() {
                // The node is closing.
                return false;
            }
        }
        true
    }

    /// Submits the next command; `None` if nothing is left, or the inbox does not accept it.
    pub(crate) fn submit_erasure(&self, progress: &mut Option<Progress>) -> Option<OwnReply> {
        *progress = next(Facts::new(&self.store), *progress);
        let Progress { user, remains, from } = (*progress)?;
        self.submit_own(Command::EraseUser { user, remains, from })
    }
}

/// The rows to remove next.
fn next(facts: Facts<'_, Store>, last: Option<Progress>) -> Option<Progress> {
    let user = *facts.erasing().first()?;
    let start = Progress { user, remains: Remains::Posts, from: 0 };
    let mut next = last.filter(|last| last.user == user).unwrap_or(start);
    while next.remains != Remains::Nothing {
        let rest = facts.remains(user, next.remains, next.from, READ_AHEAD);
        if let Some(first) = rest.first() {
            read_ahead(facts, next.remains, &rest);
            return Some(Progress { from: *first, ..next });
        }
        next = Progress { remains: next.remains.next(), from: 0, ..next };
    }
    Some(next)
}

/// Reads what the writer will read, so that it finds it in the cache of the store: all changes would wait
/// while it reads the disk.
fn read_ahead(facts: Facts<'_, Store>, remains: Remains, items: &[u64]) {
    for item in items {
        match remains {
            Remains::Posts => drop(facts.stored_post(PostId(*item))),
            Remains::Following
            | Remains::Followers
            | Remains::Friends
            | Remains::BlockedBy
            | Remains::MutedBy => {
                if let Ok(other) = u32::try_from(*item) {
                    let _ = facts.stored_counts(UserId(other));
                }
            }
            Remains::Grants => drop(facts.grant(GrantId(*item))),
            Remains::Stories
            | Remains::Mentions
            | Remains::Views
            | Remains::Blocks
            | Remains::Mutes
            | Remains::Nothing => {}
        }
    }
}
