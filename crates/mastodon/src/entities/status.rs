//! The entity `Status` and its parts.

use feed::text::Language;

use feed::{Handle, Post, PostId, Posted, Reaction, Tag, UserId, Visibility};
use serde_json::{Value, json};

use super::time::time;
use super::{Entities, html};
use crate::paging::PAGE_BYTES;

/// Replies that are counted; for more, this number is shown.
const REPLIES_COUNTED: usize = 100;

impl Entities<'_> {
    /// A status; none if it does not exist, or is not visible to the reader.
    pub(crate) fn status(&mut self, id: PostId) -> Option<Value> {
        let post = self.visible_post(id)?;
        let reblog = match &post.boost {
            Some(boost) => Some(self.status(boost.post)?),
            None => None,
        };
        let account = self.account(post.author)?;
        let handle = self.handle(post.author)?;
        let base = self.base;
        let mentions = self.mentioned(&post);
        let profile = |handle: &Handle| {
            let is_known = mentions.iter().any(|(_, name)| name == handle.as_str());
            is_known.then(|| format!("{base}/@{}", handle.as_str()))
        };
        let text = post.text.as_str();
        let content = html::content(text, base, profile);
        let mentions = mentions.iter().map(|(user, handle)| {
            let url = format!("{base}/@{handle}");
            json!({"id": user, "username": handle, "acct": handle, "url": url})
        });
        let tags = feed::tag::tags(text);
        let tags = tags.iter().map(Tag::as_str);
        let tags = tags.map(|tag| json!({"name": tag, "url": html::tag_url(base, tag)}));
        let counts = self.facts().post_counts(id);
        let parent = post.in_reply_to.and_then(|id| Some((id, self.visible_post(id)?.author)));
        let pictures = self.attachments(&post.media);
        let filtered = self.filtered((id, &post), &pictures, reblog.as_ref());
        let mut status = json!({
            "id": id.0.to_string(),
            "uri": format!("{base}/users/{handle}/statuses/{}", id.0),
            "url": format!("{base}/@{handle}/{}", id.0),
            "created_at": time(id.unix_ms()),
            "edited_at": post.edited.map(|edited| time(edited.unix_ms())),
            "account": account,
            "content": content,
            "visibility": visibility_name(post.visibility),
            "sensitive": post.sensitive,
            "spoiler_text": post.warning.as_str(),
            "language": post.language.as_ref().map(Language::as_str),
            "media_attachments": pictures,
            "mentions": mentions.collect::<Vec<_>>(),
            "tags": tags.collect::<Vec<_>>(),
            "emojis": [],
            "reblogs_count": counts.boosts,
            "favourites_count": counts.favourites,
            "quotes_count": 0,
            "replies_count": self.facts().replies_count(id, REPLIES_COUNTED),
            "in_reply_to_id": parent.map(|(id, _)| id.0.to_string()),
            "in_reply_to_account_id": parent.map(|(_, author)| author.0.to_string()),
            "reblog": reblog,
            "poll": self.poll(id, &post),
            "card": null,
            "quote": null,
            "application": null,
        });
        if let Some((fields, reader)) = status.as_object_mut().zip(self.reader) {
            let reacted = post.boosted_or(id);
            let has = |reaction| self.facts().reaction(reader, reacted, reaction).is_some();
            for (name, value) in [
                ("favourited", has(Reaction::Favourite)),
                ("bookmarked", has(Reaction::Bookmark)),
                ("pinned", post.author == reader && has(Reaction::Pin)),
                ("reblogged", has(Reaction::Boost)),
                ("muted", false),
            ] {
                fields.insert(name.to_owned(), value.into());
            }
            fields.insert("filtered".to_owned(), filtered);
        }
        Some(status)
    }

    /// A status at home of the reader, unless a block or a mute hides what it boosts.
    pub(crate) fn home_status(&mut self, id: PostId) -> Option<Value> {
        // Most readers hide nobody, and the post is read once.
        if self.viewer().hides_nobody() {
            return self.status(id);
        }
        let boost = self.facts().post(id)?.boost;
        let is_wanted = boost.is_none_or(|boost| self.viewer().wants_boosts_of(boost.author));
        is_wanted.then(|| self.status(id)).flatten()
    }

    /// A post that is visible to the reader, or what it boosts.
    pub(crate) fn boosted(&self, id: PostId) -> Option<PostId> {
        Some(self.visible_post(id)?.boosted_or(id))
    }

    /// A post that exists and is visible to the reader.
    pub(crate) fn visible_post(&self, id: PostId) -> Option<Post> {
        let post = self.facts().post(id)?;
        (self.may_see(post.visibility) && self.viewer().visible(&post)).then_some(post)
    }

    /// As [`Entities::visible_post`], of a post in a list.
    pub(crate) fn visible_posted(&self, author: UserId, posted: Posted) -> bool {
        self.may_see(posted.1.visibility()) && self.viewer().visible_posted(author, posted)
    }

    /// Whether there is a reader, or the post is for everybody: for the viewer, nobody is the application itself.
    fn may_see(&self, visibility: Visibility) -> bool {
        self.reader.is_some() || visibility.is_open()
    }

    /// The users whom a post mentions and the reader may see: ids and handles.
    fn mentioned(&mut self, post: &Post) -> Vec<(String, String)> {
        let mut found = Vec::new();
        for user in &post.mentions {
            if self.viewer().visible_user(*user)
                && let Some(handle) = self.handle(*user)
            {
                found.push((user.0.to_string(), handle));
            }
        }
        found
    }

    /// Appends statuses to `out` as JSON objects with commas between, until they are too long for one response. What the
    /// reader may not see is left out.
    pub(crate) fn statuses(&mut self, ids: &[PostId], out: &mut Vec<u8>) {
        for id in ids {
            if out.len() >= PAGE_BYTES {
                break;
            }
            self.status(*id).iter().for_each(|status| push(status, out));
        }
    }

    /// The entity `StatusSource`.
    pub(crate) fn source(&self, id: PostId) -> Option<Value> {
        let post = self.visible_post(id)?;
        let (text, warning) = (post.text.as_str(), post.warning.as_str());
        Some(json!({"id": id.0.to_string(), "text": text, "spoiler_text": warning}))
    }

    /// The entities `StatusEdit` of a status. Texts of the past are not kept: there is only the current one.
    pub(crate) fn history(&mut self, id: PostId) -> Option<Value> {
        let mut status = self.status(id)?;
        let poll = self.visible_post(id)?.poll;
        let fields = status.as_object_mut()?;
        let created = fields.get("edited_at").filter(|edited| !edited.is_null());
        let created = created.or_else(|| fields.get("created_at")).cloned();
        let mut part = |name: &str| fields.remove(name).unwrap_or_default();
        Some(json!([{
            "account": part("account"),
            "content": part("content"),
            "spoiler_text": part("spoiler_text"),
            "sensitive": part("sensitive"),
            "media_attachments": part("media_attachments"),
            "emojis": part("emojis"),
            "poll": poll.as_ref().map(super::poll::edited),
            "created_at": created,
        }]))
    }
}

/// The visibilities, by their names in Mastodon.
const VISIBILITIES: [(&str, Visibility); 4] = [
    ("public", Visibility::Public),
    ("unlisted", Visibility::Unlisted),
    ("private", Visibility::Followers),
    ("direct", Visibility::Direct),
];

/// The name of a visibility.
pub(crate) fn visibility_name(visibility: Visibility) -> &'static str {
    VISIBILITIES.iter().find(|(_, other)| *other == visibility).map_or("direct", |(name, _)| name)
}

/// The visibility of this name.
pub(crate) fn visibility(name: &str) -> Option<Visibility> {
    VISIBILITIES.iter().find(|(other, _)| *other == name).map(|(_, visibility)| *visibility)
}

/// Appends an entity to a list of them.
pub(crate) fn push(entity: &Value, out: &mut Vec<u8>) {
    if out.last().is_some_and(|byte| *byte != b'[') {
        out.push(b',');
    }
    if serde_json::to_writer(&mut *out, entity).is_err() {
        unreachable!("JSON is written to memory");
    }
}
