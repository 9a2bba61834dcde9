//! Entity `Conversation`.

use feed::conversations::Conversation;
use feed::{PostId, Visibility};
use serde_json::json;

use super::Entities;
use super::json::{Json, push_made};

/// Maximum number of accounts of a conversation, and their size in bytes from which no more are added: a post can
/// mention hundreds of users with long profiles.
const ACCOUNTS_MAX: usize = 40;
const ACCOUNTS_BYTES: usize = 64 << 10;

impl Entities<'_> {
    /// Entity of a conversation of the reader.
    pub(crate) fn conversation(&mut self, found: Conversation) -> Option<Json> {
        let reader = self.reader?;
        let post = self.visible_post(found.last)?;
        let status = self.status(found.last)?;
        let others = std::iter::once(post.author).chain(post.mentions);
        let others = others.filter(|user| *user != reader && self.is_visible(*user));
        let mut others: Vec<_> = others.take(ACCOUNTS_MAX).collect();
        // As in Mastodon, a conversation without other users shows the reader, because apps show its participants.
        if others.is_empty() {
            others.push(reader);
        }
        let entity = Json::from(json!({
            "id": found.first.0.to_string(),
            "unread": found.is_unread,
        }));
        let accounts = Json::written(|out| {
            out.push(b'[');
            for user in others {
                if out.len() >= ACCOUNTS_BYTES {
                    break;
                }
                push_made(self.account(user), out);
            }
            out.push(b']');
            Some(())
        });
        Some(entity.with_entity("accounts", &accounts?).with_entity("last_status", &status))
    }

    /// The reader's conversation with a direct post that has just arrived.
    pub(crate) fn conversation_of(&mut self, id: PostId) -> Option<Json> {
        let post = self.visible_post(id)?;
        if post.visibility != Visibility::Direct {
            return None;
        }
        let is_unread = self.reader.is_some_and(|reader| reader != post.author);
        let first = post.conversation.unwrap_or(id);
        self.conversation(Conversation { first, last: id, is_unread })
    }
}
