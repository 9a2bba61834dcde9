//! Changes on conditions: the author of the changed thing, and its revision. A condition is checked while the change is
//! applied, so no other change comes between.

use rows::{PointTable, Rows, Stamp};

use crate::command::{Command, Condition, Revision};
use crate::facts::{Facts, Txn};
use crate::ids::{PostId, StoryId, UserId, digest};
use crate::refusal::Refusal;
use crate::users::rules::resolve;

impl<R: Rows + ?Sized> Facts<'_, R> {
    /// The revision of a stored post.
    #[must_use]
    pub fn post_revision(&self, post: PostId) -> Option<Revision> {
        let row = self.rows.point(PointTable::Post, post.0)?;
        Some(Revision(digest([row.as_slice()])))
    }

    /// The revision of a story. Stories do not change.
    #[must_use]
    pub fn story_revision(&self, story: StoryId) -> Option<Revision> {
        self.story(story).map(|_| Revision(story.0))
    }

    /// The revision of a profile with its settings.
    #[must_use]
    pub fn user_revision(&self, user: UserId) -> Option<Revision> {
        let row = self.rows.point(PointTable::User, user.0.into())?;
        Some(Revision(digest([row.as_slice(), &[u8::from(self.is_locked(user))]])))
    }
}

/// Refuses a change whose conditions do not hold. The change itself refuses what does not exist.
pub(crate) fn check(txn: &Txn<'_>, stamp: Stamp, condition: &Condition) -> Result<(), Refusal> {
    let facts = txn.facts();
    let user = |user| facts.resolve(user).and_then(|user| facts.user_revision(user));
    let (author, hidden, revision) = match &condition.command {
        Command::Edit { post, .. } | Command::DeletePost { post } => {
            let author = facts.post(*post).map(|post| post.author);
            let revision = author.and_then(|_| facts.post_revision(*post));
            (author, Refusal::PostNotFound, revision)
        }
        Command::DeleteStory { story } => {
            // A story that has expired may still be stored.
            let live = facts.story(*story).filter(|story| story.is_live(stamp.unix_ms()));
            let revision = live.and_then(|_| facts.story_revision(*story));
            (live.map(|story| story.author), Refusal::StoryNotFound, revision)
        }
        Command::EditUser(edit) => (None, Refusal::UserNotFound, user(&edit.user)),
        Command::DeleteUser { user: deleted } => (None, Refusal::UserNotFound, user(deleted)),
        _ => return Ok(()),
    };
    if let Some(named) = &condition.author {
        let named = resolve(txn, named)?;
        if author.is_some_and(|author| author != named) {
            return Err(hidden);
        }
    }
    match (&condition.revisions, revision) {
        (Some(accepted), Some(revision)) if !accepted.contains(&revision) => {
            Err(Refusal::PreconditionFailed)
        }
        _ => Ok(()),
    }
}
