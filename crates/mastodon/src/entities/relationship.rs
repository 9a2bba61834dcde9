//! Entity `Relationship`.

use feed::{Note, UserId};
use serde_json::{Value, json};

use super::Entities;
use super::json::Json;
use super::time::time;

impl Entities<'_> {
    /// Relationship of the reader to a user; `None` if the reader does not know the user, or there is no reader.
    pub(crate) fn relationship(&self, other: UserId) -> Option<Value> {
        self.knows(other).then(|| self.relationship_after_undo(other)).flatten()
    }

    /// Whether the reader may undo a relation with a user: they know the user, or have a relation although they can no
    /// longer see the user.
    pub(crate) fn may_undo_with(&self, other: UserId) -> bool {
        let facts = self.facts();
        let is_related = |reader| {
            let has = |one, two| facts.follows(one, two) || facts.requests(one, two);
            has(reader, other)
                || has(other, reader)
                || facts.mute(reader, other).is_some()
                || facts.blocks(reader, other)
                || facts.has_note(reader, other)
        };
        self.knows(other) || facts.exists(other) && self.reader.is_some_and(is_related)
    }

    /// Relationship of the reader to a user whom the reader may no longer know.
    pub(crate) fn relationship_after_undo(&self, other: UserId) -> Option<Value> {
        let (reader, facts) = (self.reader?, self.facts());
        let following = facts.follows(reader, other);
        let mute = facts.mute(reader, other);
        let note = facts.note(reader, other);
        let options = facts.follow_options(reader, other);
        Some(json!({
            "id": other.0.to_string(),
            "following": following,
            "showing_reblogs": following && !options.hides_boosts,
            "notifying": following && options.notified_since.is_some(),
            "languages": null,
            "followed_by": facts.follows(other, reader),
            "blocking": facts.blocks(reader, other),
            // A blocked user cannot see the blocking user, so the field is always false.
            "blocked_by": false,
            "muting": mute.is_some(),
            "muting_notifications": mute.is_some_and(|mute| mute.mentions),
            "muting_expires_at": mute.and_then(|mute| mute.ends_ms).map(time),
            "requested": facts.requests(reader, other),
            "requested_by": facts.requests(other, reader),
            "domain_blocking": false,
            "endorsed": false,
            "note": note.as_ref().map_or("", Note::as_str),
        }))
    }

    /// Entity `MutedAccount`: an account, and the end of its mute.
    pub(crate) fn muted_account(&self, other: UserId) -> Option<Json> {
        let entity = self.account(other)?;
        let mute = self.reader.and_then(|reader| self.facts().mute(reader, other));
        let ends = mute.and_then(|mute| mute.ends_ms).map(time);
        Some(entity.with("mute_expires_at", &ends))
    }
}
