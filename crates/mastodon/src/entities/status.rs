//! Entity `Status` and its parts.

use feed::{Post, PostId, Reaction, UserId, Visibility};
use serde_json::{Value, json};

use super::Entities;
use super::json::{Json, field, push, start_field};
use super::shared_part::StatusParts;
use crate::paging::PAGE_BYTES;

/// Fields that depend on the reader, for a reader without any reaction, which is the usual case.
const NOTHING_OF_READER: &[u8] = b",\"favourited\":false,\"bookmarked\":false,\"pinned\":false,\"reblogged\":false,\"muted\":false,\"filtered\":[]";

impl Entities<'_> {
    /// A status; `None` if it does not exist or is not visible to the reader.
    pub(crate) fn status(&mut self, id: PostId) -> Option<Json> {
        Json::written(|out| self.append_status(id, out))
    }

    /// A status after the reader has undone a reaction: without its content if the reader may no longer see it. `None`
    /// if the status does not exist.
    pub(crate) fn status_after_undo(&mut self, id: PostId) -> Option<Json> {
        self.status(id).or_else(|| Json::written(|out| self.append_blank_status(id, out)))
    }

    /// Appends a status, or its boosted status, without its content.
    fn append_blank_status(&mut self, id: PostId, out: &mut Vec<u8>) -> Option<()> {
        let reader = self.reader?;
        let id = self.facts().post(id)?.boosted_or(id);
        let post = self.facts().post(id)?;
        out.extend_from_slice(&self.blank_part((id, &post))?);
        start_field("account", out);
        out.extend_from_slice(&self.blank_account(post.author)?);
        out.extend_from_slice(b",\"reblog\":null,\"poll\":null");
        let has = |reaction| self.facts().reaction(reader, id, reaction).is_some();
        field("favourited", &has(Reaction::Favourite), out);
        field("bookmarked", &has(Reaction::Bookmark), out);
        field("pinned", &false, out);
        field("reblogged", &has(Reaction::Boost), out);
        field("muted", &self.is_in_muted_thread((id, &post)), out);
        out.extend_from_slice(b",\"filtered\":[]");
        self.append_quotes(&Post { quote: None, ..post.clone() }, &post, false, out)?;
        out.push(b'}');
        Some(())
    }

    /// Appends a status. Returns `None`, possibly after appending a part of it, if it does not exist or is not visible
    /// to the reader.
    pub(crate) fn append_status(&mut self, id: PostId, out: &mut Vec<u8>) -> Option<()> {
        let status = self.shared_part(id)?;
        let status = status.parts();
        let boosted = match status.boosted {
            Some(post) => Some((post, self.shared_part(post)?)),
            None => None,
        };
        let boosted = boosted.as_ref().map(|(id, status)| (*id, status.parts()));
        let boosted = boosted.as_ref().map(|(id, status)| (*id, status));
        self.append_parts((id, &status), boosted, false, out)
    }

    /// A status after the reader has unmuted its thread. If the reader may no longer see the status, the first status
    /// of a thread is returned without content, and any other is `None`, because the reader may never have seen it.
    pub(crate) fn status_after_unmute(&mut self, id: PostId) -> Option<Json> {
        let is_first = self.facts().post(id).is_some_and(|post| post.thread_or(id) == id);
        if is_first { self.status_after_undo(id) } else { self.status(id) }
    }

    /// Appends the shared part of a status, and the fields that depend on the reader. `is_quoted` is true for a status
    /// that is shown inside another one, which quotes it.
    pub(super) fn append_parts(
        &mut self,
        (id, status): (PostId, &StatusParts<'_>),
        boosted: Option<(PostId, &StatusParts<'_>)>,
        is_quoted: bool,
        out: &mut Vec<u8>,
    ) -> Option<()> {
        out.extend_from_slice(status.json);
        start_field("account", out);
        out.extend_from_slice(self.shared_account(status.author)?.bytes());
        match boosted {
            Some(boosted) => {
                start_field("reblog", out);
                self.append_parts(boosted, None, is_quoted, out)?;
            }
            None => out.extend_from_slice(b",\"reblog\":null"),
        }
        match status.has_poll {
            true if self.may_read() => field("poll", &self.poll(id, status.post), out),
            true => return None,
            false => out.extend_from_slice(b",\"poll\":null"),
        }
        let reacted = boosted.unwrap_or((id, status));
        if let Some(reader) = self.reader {
            self.append_of_reader(reader, reacted, status.author, out);
        }
        self.append_quotes(status.post, reacted.1.post, is_quoted, out)?;
        out.push(b'}');
        Some(())
    }

    /// Appends the fields that depend on the reader. `reacted` is the status, or the status that it boosts.
    fn append_of_reader(
        &self,
        reader: UserId,
        (id, reacted): (PostId, &StatusParts<'_>),
        author: UserId,
        out: &mut Vec<u8>,
    ) {
        if reacted.has_no_reactions() && !self.has_marks() {
            out.extend_from_slice(NOTHING_OF_READER);
            return;
        }
        let has = |reaction| {
            reacted.has_reaction(reaction, reader).unwrap_or_else(|| {
                self.may_read() && self.facts().reaction(reader, id, reaction).is_some()
            })
        };
        for (name, value) in [
            ("favourited", has(Reaction::Favourite)),
            ("bookmarked", has(Reaction::Bookmark)),
            ("pinned", author == reader && has(Reaction::Pin)),
            ("reblogged", has(Reaction::Boost)),
            ("muted", self.is_in_muted_thread((id, reacted.post))),
        ] {
            start_field(name, out);
            out.extend_from_slice(if value { b"true" } else { b"false" });
        }
        match self.has_marks() {
            true => field("filtered", &self.filtered((id, reacted.post)), out),
            false => out.extend_from_slice(b",\"filtered\":[]"),
        }
    }

    /// A status of the reader's home timeline, unless a block or a mute hides its boosted status.
    pub(crate) fn home_status(&mut self, id: PostId) -> Option<Json> {
        Json::written(|out| self.append_home_status(id, out))
    }

    /// Appends a status of the reader's home timeline; `None` as for [`Entities::home_status`].
    pub(crate) fn append_home_status(&mut self, id: PostId, out: &mut Vec<u8>) -> Option<()> {
        // Most readers have no blocks and mutes. For them, the post is read only once.
        if !self.viewer().has_no_blocks_or_mutes() {
            let boost = self.facts().post(id)?.boost;
            let is_wanted = boost.is_none_or(|boost| self.viewer().wants_boosts_of(boost.author));
            is_wanted.then_some(())?;
        }
        self.append_status(id, out)
    }

    /// A post that is visible to the reader, or the post that it boosts.
    pub(crate) fn boosted(&self, id: PostId) -> Option<PostId> {
        Some(self.visible_post(id)?.boosted_or(id))
    }

    /// An existing post, if it is visible to the reader.
    pub(crate) fn visible_post(&self, id: PostId) -> Option<Post> {
        self.facts().post(id).filter(|post| self.sees(post))
    }

    /// Whether an existing post is visible to the reader.
    pub(crate) fn sees(&self, post: &Post) -> bool {
        let boosted = post.boost.as_ref().map(|boost| boost.author);
        let is_shown = || boosted.into_iter().chain([post.author]).all(|user| self.shows(user));
        self.may_see(post.visibility) && self.viewer().visible(post) && is_shown()
    }

    /// Whether the state of the author's account allows posts to be shown. This is checked here, because a
    /// [`feed::Viewer`] without a reader is the application, which sees everything.
    pub(super) fn shows(&self, author: UserId) -> bool {
        self.reader == Some(author) || !self.facts().is_disabled(author)
    }

    /// Whether there is a reader, or the post is public. This is checked here, because a [`feed::Viewer`] without a
    /// reader is the application, which sees everything.
    fn may_see(&self, visibility: Visibility) -> bool {
        self.reader.is_some() || visibility.is_open()
    }

    /// Appends statuses to `out` as JSON objects with commas between them, until they fill a response. Omits those that
    /// the reader may not see.
    pub(crate) fn statuses(&mut self, ids: &[PostId], out: &mut Vec<u8>) {
        for id in ids {
            if out.len() >= PAGE_BYTES {
                break;
            }
            push(out, |out| self.append_status(*id, out));
        }
    }

    /// Entity `StatusSource`.
    pub(crate) fn source(&self, id: PostId) -> Option<Value> {
        let post = self.visible_post(id)?;
        let (text, warning) = (post.content.text.as_str(), post.content.warning.as_str());
        Some(json!({"id": id.0.to_string(), "text": text, "spoiler_text": warning}))
    }
}

/// Visibilities with their names in Mastodon.
const VISIBILITIES: [(&str, Visibility); 4] = [
    ("public", Visibility::Public),
    ("unlisted", Visibility::Unlisted),
    ("private", Visibility::Followers),
    ("direct", Visibility::Direct),
];

/// Name of a visibility in Mastodon.
pub(crate) fn visibility_name(visibility: Visibility) -> &'static str {
    VISIBILITIES.iter().find(|(_, other)| *other == visibility).map_or("direct", |(name, _)| name)
}

/// Visibility with this name in Mastodon.
pub(crate) fn visibility(name: &str) -> Option<Visibility> {
    VISIBILITIES.iter().find(|(other, _)| *other == name).map(|(_, visibility)| *visibility)
}
