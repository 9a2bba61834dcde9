//! The entity `Notification`.

use feed::PostId;
use serde_json::{Value, json};

use super::Entities;
use super::time::time;

impl Entities<'_> {
    /// The notification of a post that mentions the reader; none if they are not notified of it. Its id is that of the
    /// post.
    pub(crate) fn mention(&mut self, id: PostId) -> Option<Value> {
        let reader = self.reader?;
        let post = self.facts().post(id).filter(|post| post.mentions.contains(&reader))?;
        if !self.viewer().notified(id) {
            return None;
        }
        let (account, status) = (self.account(post.author)?, self.status(id)?);
        Some(json!({
            "id": id.0.to_string(),
            "type": "mention",
            "created_at": time(id.unix_ms()),
            "group_key": format!("ungrouped-{}", id.0),
            "account": account,
            "status": status,
        }))
    }
}
