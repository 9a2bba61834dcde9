//! Entity `Notification`.

use feed::{Notice, NoticeKind, Notification};
use serde_json::json;

use super::Entities;
use super::json::Json;
use super::time::time;

/// Types of notifications with their names in Mastodon.
pub(crate) const KINDS: [(&str, NoticeKind); 10] = [
    ("mention", NoticeKind::Mention),
    ("status", NoticeKind::Post),
    ("reblog", NoticeKind::Boost),
    ("follow", NoticeKind::Follow),
    ("follow_request", NoticeKind::FollowRequest),
    ("favourite", NoticeKind::Favourite),
    ("poll", NoticeKind::Poll),
    ("update", NoticeKind::Edit),
    ("quote", NoticeKind::Quote),
    ("quoted_update", NoticeKind::QuotedUpdate),
];

/// Type of a notification in Mastodon.
fn type_of(notice: Notice) -> &'static str {
    KINDS.iter().find(|(_, kind)| *kind == notice.kind()).map_or("", |(name, _)| name)
}

impl Entities<'_> {
    /// Entity of a notification of the reader; `None` if its status is not visible.
    pub(crate) fn notification(&mut self, found: Notification) -> Option<Json> {
        let Notification { id, actor, notice } = found;
        let (kind, post) = (type_of(notice), notice.post());
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
