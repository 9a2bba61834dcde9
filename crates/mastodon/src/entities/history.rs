//! The entities `StatusEdit`: what a status says, and what it said before it was edited.

use feed::text::Handle;
use feed::{PostId, PostVersion};
use serde_json::json;

use super::json::{Json, append, push, start_field};
use super::time::time;
use super::{Entities, html};
use crate::paging::PAGE_BYTES;

/// When a history has so many bytes, older versions are left out.
const HISTORY_BYTES: usize = PAGE_BYTES / 2;

impl Entities<'_> {
    /// The history of a status, or of what it boosts, the oldest version first. If it is too long for one response, it has
    /// the newest versions and the first one.
    pub(crate) fn history(&mut self, id: PostId) -> Option<Json> {
        let id = self.boosted(id)?;
        let post = self.visible_post(id)?;
        let account = self.shared_account(post.author)?;
        let mut versions = match post.edited {
            Some(_) => self.facts().post_versions(id),
            None => Vec::new(),
        };
        versions.push(PostVersion::of(id, &post));
        let (mut entities, mut bytes) = (Vec::new(), 0);
        for (number, version) in versions.iter().enumerate().rev() {
            if number == 0 || bytes < HISTORY_BYTES {
                let entity = self.version(version, &account.json);
                bytes += entity.len();
                entities.push(entity);
            }
        }
        Json::written(|out| {
            out.push(b'[');
            for entity in entities.iter().rev() {
                push(out, |out| {
                    out.extend_from_slice(entity);
                    Some(())
                });
            }
            out.push(b']');
            Some(())
        })
    }

    /// One version. Pictures that were deleted since are not in it.
    fn version(&self, version: &PostVersion, account: &[u8]) -> Vec<u8> {
        let base = self.base();
        let profile = |handle: &Handle| {
            let user =
                self.facts().by_handle(handle).filter(|user| self.viewer.visible_user(*user));
            user.map(|_| format!("{base}/@{}", handle.as_str()))
        };
        let mut out = Vec::new();
        append(
            &json!({
                "content": html::content(version.text.as_str(), base, profile),
                "spoiler_text": version.warning.as_str(),
                "sensitive": version.sensitive,
                "created_at": time(version.since.unix_ms()),
                "media_attachments": self.attachments(&version.media),
                "poll": version.poll.as_ref().map(super::poll::of_version),
                "emojis": [],
            }),
            &mut out,
        );
        out.pop();
        start_field("account", &mut out);
        out.extend_from_slice(account);
        out.push(b'}');
        out
    }
}
