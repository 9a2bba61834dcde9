//! The entity `Notification`.

use feed::{Notice, Notification};
use serde_json::json;

use super::Entities;
use super::json::Json;
use super::time::time;

impl Entities<'_> {
    /// A notification of the reader; none if its status is not visible.
    pub(crate) fn notification(&mut self, found: Notification) -> Option<Json> {
        let Notification { id, actor, notice } = found;
        let (kind, post) = match notice {
            Notice::Mention(post) => ("mention", Some(post)),
            Notice::Favourite(post) => ("favourite", Some(post)),
            Notice::Boost(post) => ("reblog", Some(post)),
            Notice::Poll(post) => ("poll", Some(post)),
            Notice::Follow => ("follow", None),
            Notice::FollowRequest => ("follow_request", None),
        };
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
