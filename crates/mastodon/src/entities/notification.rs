//! The entity `Notification`.

use feed::{Notice, Notification};
use serde_json::json;

use super::Entities;
use super::json::Json;
use super::time::time;

/// All types of notifications.
pub(crate) const KINDS: [&str; 8] =
    ["mention", "status", "reblog", "follow", "follow_request", "favourite", "poll", "update"];

/// The type of a notification, one of [`KINDS`].
pub(crate) fn kind(notice: Notice) -> &'static str {
    match notice {
        Notice::Mention(_) => "mention",
        Notice::Post(_) => "status",
        Notice::Boost(_) => "reblog",
        Notice::Follow => "follow",
        Notice::FollowRequest => "follow_request",
        Notice::Favourite(_) => "favourite",
        Notice::Poll(_) => "poll",
        Notice::Edit(_) => "update",
    }
}

impl Entities<'_> {
    /// A notification of the reader; none if its status is not visible.
    pub(crate) fn notification(&mut self, found: Notification) -> Option<Json> {
        let Notification { id, actor, notice } = found;
        let (kind, post) = (kind(notice), notice.post());
        let status = match post {
            Some(post) => Some(self.status(post)?),
            None => None,
        };
        let entity = Json::from(json!({
            "id": id.0.to_string(),
            "type": kind,
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
