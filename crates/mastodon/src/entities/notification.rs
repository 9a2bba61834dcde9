//! Entity `Notification`.

use feed::Notification;
use serde_json::json;

use super::Entities;
use super::json::Json;
use super::time::time;

impl Entities<'_> {
    /// Entity of a notification of the reader; `None` if its status is not visible.
    pub(crate) fn notification(&mut self, found: Notification) -> Option<Json> {
        let Notification { id, actor, notice } = found;
        let status = match notice.post() {
            Some(post) => Some(self.status(post)?),
            None => None,
        };
        let entity = Json::from(json!({
            "id": id.0.to_string(),
            "type": notice.kind().mastodon_name(),
            "created_at": time(id.unix_ms()),
            "group_key": format!("ungrouped-{}", id.0),
        }));
        let entity = entity.with_entity("account", &self.account(actor)?);
        Some(match status {
            Some(status) => entity.with_entity("status", &status),
            None => entity,
        })
    }
}
