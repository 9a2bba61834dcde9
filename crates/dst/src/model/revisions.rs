//! Expected revisions. The model knows a revision that a client has read by what it was read with.

use feed::quotes::QuotePolicy;
use feed::{Condition, Conditional, Refusal};

use super::feed::{Feed, ModelSettings};

/// State of an item that decides its revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Revised {
    /// Post, its last edit and quote policy, and whether its quote is revoked.
    Post(u64, Option<u64>, QuotePolicy, bool),
    Story(u64),
    /// User, name, text of the profile, and the settings that everybody may read.
    User(u32, String, String, ModelSettings),
}

impl Feed {
    /// Present state of the item that a change is about, if it exists.
    pub(crate) fn revised(&self, change: &Conditional) -> Option<Revised> {
        let of_user = |user| {
            let id = self.resolve(user).ok()?;
            let user = &self.users[id as usize];
            let secret = ModelSettings::default();
            let shown = ModelSettings {
                visibility: secret.visibility,
                sensitive: secret.sensitive,
                quote_policy: secret.quote_policy,
                language: secret.language,
                ..user.settings.clone()
            };
            Some(Revised::User(id, user.name.clone(), user.bio.clone(), shown))
        };
        match change {
            Conditional::Edit { post, .. } | Conditional::DeletePost { post } => {
                let found = self.posts.get(&post.0)?;
                let is_revoked = found.quote.is_some_and(|quote| quote.is_revoked);
                Some(Revised::Post(post.0, found.edited, found.quote_policy, is_revoked))
            }
            Conditional::DeleteStory { story } => {
                self.stories.get(&story.0).map(|_| Revised::Story(story.0))
            }
            Conditional::EditUser(edit) => of_user(&edit.user),
            Conditional::DeleteUser { user } => of_user(user),
        }
    }

    /// Refuses a change by a user who is not the author, and one of what has changed since it was read.
    pub(super) fn check_condition(&self, stamp: u64, condition: &Condition) -> Result<(), Refusal> {
        let (author, hidden) = match &condition.change {
            Conditional::Edit { post, .. } | Conditional::DeletePost { post } => {
                (self.posts.get(&post.0).map(|post| post.author), Refusal::PostNotFound)
            }
            Conditional::DeleteStory { story } => {
                let live = self.live_story(stamp, *story).ok();
                (live.map(|story| story.author), Refusal::StoryNotFound)
            }
            Conditional::EditUser(edit) => (self.resolve(&edit.user).ok(), Refusal::UserNotFound),
            Conditional::DeleteUser { user } => (self.resolve(user).ok(), Refusal::UserNotFound),
        };
        if let Some(named) = &condition.author {
            let named = self.resolve(named)?;
            if author.is_some_and(|author| author != named) {
                return Err(hidden);
            }
        }
        let present = self.revised(&condition.change);
        let is_read = |number| self.revisions.get(number) == present.as_ref();
        match &condition.revisions {
            Some(accepted) if author.is_some() => {
                let holds = accepted.iter().any(|revision| is_read(&revision.0));
                holds.then_some(()).ok_or(Refusal::PreconditionFailed)
            }
            _ => Ok(()),
        }
    }
}
