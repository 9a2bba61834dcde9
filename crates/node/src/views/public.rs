//! Changes of public posts, for live streams of the posts of all users.
//!
//! The writer appends each change to a ring and waits for nobody: a reader that is slower than the ring misses the
//! oldest changes in it.

use feed::{Effect, Listed, PostId, UserId, Visibility};
use tokio::sync::broadcast;

/// Changes that are kept for readers, about 64 bytes each.
const KEPT_MAX: usize = 4_096;

/// A change of a public post that is not a boost. The facts show it already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublicChange {
    /// Kind of the change.
    pub kind: PublicChangeKind,
    /// The post.
    pub post: PostId,
    /// Its author.
    pub author: UserId,
    /// Whether it replies to another user.
    pub is_reply: bool,
}

/// Kinds of changes of a post.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PublicChangeKind {
    /// It was published.
    Posted,
    /// It was edited.
    Edited,
    /// It was deleted.
    Deleted,
}

impl PublicChange {
    /// The change that an effect makes, if it changes a public post.
    fn of(effect: &Effect) -> Option<Self> {
        let (kind, post, author, listed): (_, _, _, Listed) = match *effect {
            Effect::Posted { post, author, listed, .. } => {
                (PublicChangeKind::Posted, post, author, listed)
            }
            Effect::PostEdited { post, author, listed } => {
                (PublicChangeKind::Edited, post, author, listed)
            }
            Effect::PostDeleted { post, author, listed } => {
                (PublicChangeKind::Deleted, post, author, listed)
            }
            _ => return None,
        };
        let is_public = listed.visibility() == Visibility::Public && !listed.is_boost();
        let is_reply = listed.reply_to().is_some_and(|to| to != author);
        is_public.then_some(Self { kind, post, author, is_reply })
    }
}

/// The ring.
pub(super) struct PublicChanges(broadcast::Sender<PublicChange>);

impl PublicChanges {
    pub(super) fn new() -> Self {
        Self(broadcast::Sender::new(KEPT_MAX))
    }

    /// Appends the changes that these effects make. Writer only; the facts show them already.
    pub(super) fn publish(&self, effects: &[Effect]) {
        if self.0.receiver_count() == 0 {
            return;
        }
        for change in effects.iter().filter_map(PublicChange::of) {
            // An error means that the last reader has gone meanwhile.
            drop(self.0.send(change));
        }
    }

    /// Changes from now on.
    pub(super) fn subscribe(&self) -> broadcast::Receiver<PublicChange> {
        self.0.subscribe()
    }
}
