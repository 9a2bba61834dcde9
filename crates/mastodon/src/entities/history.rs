//! Entities `StatusEdit`: the current and earlier versions of a status.

use std::cell::RefCell;
use std::collections::HashMap;

use feed::media::MediaUse;
use feed::text::Handle;
use feed::{Content, PostId, PostVersion};
use serde_json::json;

use super::json::{Json, append, push, start_field};
use super::time::time;
use super::{Entities, html};
use crate::paging::PAGE_BYTES;

impl Entities<'_> {
    /// History of a status or of its boosted status, oldest version first. A history that is too long for one response
    /// has only the first version and as many of the newest as fit.
    pub(crate) fn history(&mut self, id: PostId) -> Option<Json> {
        let id = self.boosted(id)?;
        let post = self.visible_post(id)?;
        let account = self.shared_account(post.author)?;
        let versions = self.facts().post_history(id, &post);
        let known = RefCell::new(HashMap::new());
        let (mut entities, mut bytes) = (Vec::new(), 0);
        for (number, version) in versions.iter().enumerate().rev() {
            if number == 0 || bytes < PAGE_BYTES {
                let entity = self.version((id, version), account.bytes(), &known);
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

    /// One version, without pictures that the status no longer has. `known` decides which handles become links.
    fn version(
        &self,
        (id, version): (PostId, &PostVersion),
        account: &[u8],
        known: &RefCell<HashMap<Handle, bool>>,
    ) -> Vec<u8> {
        let (base, facts) = (self.base(), self.facts());
        let is_known = |handle: &Handle| {
            let user = facts.by_handle(handle);
            user.is_some_and(|user| self.viewer.visible_user(user))
        };
        let profile = |handle: &Handle| {
            let mut known = known.borrow_mut();
            let known = known.entry(handle.clone()).or_insert_with(|| is_known(handle));
            known.then(|| format!("{base}/@{}", handle.as_str()))
        };
        // The entity of Mastodon has no language.
        let Content { text, warning, sensitive, language: _, media } = &version.content;
        let pictures = media.iter().copied().filter(|media| {
            facts.media(*media).is_some_and(|media| media.used == MediaUse::Post(id))
        });
        let mut out = Vec::new();
        append(
            &json!({
                "content": html::content(text.as_str(), base, profile),
                "spoiler_text": warning.as_str(),
                "sensitive": sensitive,
                "created_at": time(version.since.unix_ms()),
                "media_attachments": self.attachments(&pictures.collect::<Vec<_>>()),
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
