//! Changes on conditions: the author of the changed thing, and its revision. A condition is checked while the change is
//! applied, so no other change comes between.

use rows::{Rows, Stamp, encode};

use crate::command::{Condition, Conditional, Revision};
use crate::facts::{Facts, Txn};
use crate::ids::{PostId, StoryId, UserId, digest};
use crate::posts::Post;
use crate::refusal::Refusal;
use crate::users::User;
use crate::users::rules::resolve;

impl<R: Rows + ?Sized> Facts<'_, R> {
    /// The revision of a post.
    #[must_use]
    pub fn post_revision(&self, id: PostId) -> Option<Revision> {
        self.post(id).map(|post| post.revision(id))
    }

    /// The revision of a story. Stories do not change.
    #[must_use]
    pub fn story_revision(&self, story: StoryId) -> Option<Revision> {
        self.story(story).map(|_| Revision(story.0))
    }

    /// The revision of a profile: a digest of what everybody may read. Private settings of the user are not in it.
    #[must_use]
    pub fn user_revision(&self, id: UserId) -> Option<Revision> {
        let User { handle, name, bio, fields, bot, undiscoverable, indexable, .. } =
            self.user(id)?;
        let shown = (handle, name, bio, fields, (bot, undiscoverable, indexable));
        Some(Revision(digest([&*encode(&(shown, self.is_locked(id)))])))
    }
}

impl Post {
    /// Stamp of the last edit, or else of the post.
    #[must_use]
    pub fn last_edit(&self, id: PostId) -> Stamp {
        self.edited.unwrap_or(Stamp(id.0))
    }

    /// The revision of a post: a digest of the last edit, and of what changes without one.
    #[must_use]
    pub fn revision(&self, id: PostId) -> Revision {
        let is_revoked = self.quote.is_some_and(|quote| quote.is_revoked);
        let is_kept = rows::has_bug("keep-revisions");
        let edit = if is_kept { Stamp(id.0) } else { self.last_edit(id) };
        Revision(digest([&*encode(&(edit, self.quote_policy, is_revoked))]))
    }
}

/// Refuses a change whose conditions do not hold. The change itself checks whether the post, story or user exists.
pub(crate) fn check(txn: &Txn<'_>, stamp: Stamp, condition: &Condition) -> Result<(), Refusal> {
    let facts = txn.facts();
    let user = |user| facts.resolve(user).and_then(|user| facts.user_revision(user));
    let (author, hidden, revision) = match &condition.change {
        Conditional::Edit { post, .. } | Conditional::DeletePost { post } => {
            let author = facts.post(*post).map(|post| post.author);
            (author, Refusal::PostNotFound, facts.post_revision(*post))
        }
        Conditional::DeleteStory { story } => {
            // A story that has expired may still be stored.
            let live = facts.story(*story).filter(|story| story.is_live(stamp.unix_ms()));
            let revision = live.and_then(|_| facts.story_revision(*story));
            (live.map(|story| story.author), Refusal::StoryNotFound, revision)
        }
        Conditional::EditUser(edit) => (None, Refusal::UserNotFound, user(&edit.user)),
        Conditional::DeleteUser { user: deleted } => (None, Refusal::UserNotFound, user(deleted)),
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
