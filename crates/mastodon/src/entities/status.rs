//! The entity `Status` and its parts.

use std::sync::Arc;

use feed::text::Language;
use feed::{Handle, Post, PostCounts, PostId, Posted, Reaction, UserId, Visibility};
use node::Subject;
use serde::Serialize;
use serde_json::{Value, json};

use super::json::{Json, append, field, push, start_field};
use super::kept::{Depends, KeptStatus};
use super::time::time;
use super::{Entities, html};
use crate::paging::PAGE_BYTES;

/// Most reactions to a status that are kept with it. For more, those of the reader are read.
const REACTIONS_KEPT: usize = 128;
/// The fields of a status that are about a reader who did nothing with it, as nearly all.
const NOTHING_OF_READER: &[u8] = b",\"favourited\":false,\"bookmarked\":false,\"pinned\":false,\"reblogged\":false,\"muted\":false,\"filtered\":[]";
/// Replies that are counted; for more, this number is shown.
const REPLIES_COUNTED: usize = 100;

/// The part of a status that is the same for all readers who see whom it names. The rest follows it.
#[derive(Serialize)]
struct SharedPart<'a> {
    id: String,
    uri: String,
    url: String,
    created_at: String,
    edited_at: Option<String>,
    content: String,
    visibility: &'a str,
    sensitive: bool,
    spoiler_text: &'a str,
    language: Option<&'a str>,
    media_attachments: Vec<Value>,
    mentions: Vec<MentionEntity<'a>>,
    tags: Vec<TagInStatus>,
    emojis: [(); 0],
    reblogs_count: u32,
    favourites_count: u32,
    quotes_count: u32,
    replies_count: usize,
    in_reply_to_id: Option<String>,
    in_reply_to_account_id: Option<String>,
    card: (),
    quote: (),
    application: (),
}

/// The entity `Status::Mention`.
#[derive(Serialize)]
struct MentionEntity<'a> {
    id: String,
    username: &'a str,
    acct: &'a str,
    url: String,
}

/// The entity `Status::Tag`.
#[derive(Serialize)]
struct TagInStatus {
    name: String,
    url: String,
}

/// What a status says about others, as the reader sees it.
#[derive(Default)]
struct Named {
    /// The users whom it mentions: ids and handles.
    mentions: Vec<(UserId, String)>,
    /// What it replies to, and the author of that.
    parent: Option<(PostId, UserId)>,
    /// Whether every reader sees the same who sees these users.
    is_shared: bool,
}

impl Entities<'_> {
    /// A status; none if it does not exist, or is not visible to the reader.
    pub(crate) fn status(&mut self, id: PostId) -> Option<Json> {
        Json::written(|out| self.append_status(id, out))
    }

    /// Appends a status; none, perhaps after a part of it, if there is none, or if it is not visible to the reader.
    pub(crate) fn append_status(&mut self, id: PostId, out: &mut Vec<u8>) -> Option<()> {
        let status = self.shared_part(id)?;
        let boosted = match status.boosted {
            Some(post) => Some((post, self.shared_part(post)?)),
            None => None,
        };
        let boosted = boosted.as_ref().map(|(id, status)| (*id, status.as_ref()));
        self.append_parts((id, &status), boosted, out)
    }

    /// Appends the shared part of a status, and the rest of it.
    fn append_parts(
        &mut self,
        (id, status): (PostId, &KeptStatus),
        boosted: Option<(PostId, &KeptStatus)>,
        out: &mut Vec<u8>,
    ) -> Option<()> {
        out.extend_from_slice(&status.json);
        start_field("account", out);
        out.extend_from_slice(&self.shared_account(status.author)?.json);
        match boosted {
            Some(boosted) => {
                start_field("reblog", out);
                self.append_parts(boosted, None, out)?;
            }
            None => out.extend_from_slice(b",\"reblog\":null"),
        }
        match status.has_poll {
            true if self.may_read() => field("poll", &self.poll(id, &status.post), out),
            true => return None,
            false => out.extend_from_slice(b",\"poll\":null"),
        }
        if let Some(reader) = self.reader {
            let reacted = boosted.unwrap_or((id, status));
            self.append_of_reader(reader, reacted, status.author, out);
        }
        out.push(b'}');
        Some(())
    }

    /// Appends the fields of a status that are about the reader. `reacted` is the status, or what it boosts.
    fn append_of_reader(
        &self,
        reader: UserId,
        (id, reacted): (PostId, &KeptStatus),
        author: UserId,
        out: &mut Vec<u8>,
    ) {
        if reacted.reactions.as_ref().is_some_and(|all| all.is_empty()) && !self.has_filters() {
            out.extend_from_slice(NOTHING_OF_READER);
            return;
        }
        let has = |reaction| match &reacted.reactions {
            Some(all) => all.binary_search(&(reaction, reader)).is_ok(),
            None => self.may_read() && self.facts().reaction(reader, id, reaction).is_some(),
        };
        for (name, value) in [
            ("favourited", has(Reaction::Favourite)),
            ("bookmarked", has(Reaction::Bookmark)),
            ("pinned", author == reader && has(Reaction::Pin)),
            ("reblogged", has(Reaction::Boost)),
            ("muted", false),
        ] {
            start_field(name, out);
            out.extend_from_slice(if value { b"true" } else { b"false" });
        }
        match self.has_filters() {
            true => field("filtered", &self.filtered((id, &reacted.post)), out),
            false => out.extend_from_slice(b",\"filtered\":[]"),
        }
    }

    /// The part of a status that is the same for all readers, if the reader may see the status.
    fn shared_part(&mut self, id: PostId) -> Option<Arc<KeptStatus>> {
        if self.keeps
            && let Some(kept) = self.renderer.kept.status(id, &self.renderer.node)
        {
            let is_for_all = kept.is_open && self.viewer.hides_nobody();
            if !(is_for_all || self.may_read() && self.sees(&kept.post)) {
                return None;
            }
            let is_named =
                |user: &UserId| self.viewer.visible_user(*user) && !self.facts().is_deleted(*user);
            if kept.users.iter().all(is_named) {
                return Some(kept);
            }
        }
        if self.may_read() { self.make_shared_part(id) } else { None }
    }

    fn make_shared_part(&mut self, id: PostId) -> Option<Arc<KeptStatus>> {
        let node = &self.renderer.node;
        let depends = Depends::on(Subject::Post(id.0), node);
        let post = self.visible_post(id)?;
        let pictures = post.media.iter().map(|picture| Subject::Media(picture.0));
        let parent = post.in_reply_to.map(|parent| Subject::Post(parent.0));
        let depends = depends.and(pictures.chain(parent), node);
        let named = self.named(&post);
        let counts = self.facts().post_counts(id);
        let mut json = Vec::new();
        append(&self.shared_fields(id, &post, &named, &counts)?, &mut json);
        json.pop();
        let mentioned = named.mentions.iter().map(|(user, _)| *user);
        let users = mentioned.chain(named.parent.map(|(_, author)| author)).collect();
        let reactions = self.facts().reactions_to(id, 0, REACTIONS_KEPT + 1);
        let are_few = reactions.len() <= REACTIONS_KEPT;
        let reactions = reactions.into_iter().map(|(_, reaction, user, _)| (reaction, user));
        let made = Arc::new(KeptStatus {
            depends,
            author: post.author,
            is_open: post.visibility.is_open(),
            has_poll: post.poll.is_some(),
            boosted: post.boost.as_ref().map(|boost| boost.post),
            post: Box::new(post),
            users,
            reactions: are_few.then(|| reactions.collect()),
            json: json.into(),
        });
        if self.keeps && named.is_shared {
            self.renderer.kept.keep_status(id, &made);
        }
        Some(made)
    }

    fn shared_fields<'p>(
        &mut self,
        id: PostId,
        post: &'p Post,
        named: &'p Named,
        counts: &PostCounts,
    ) -> Option<SharedPart<'p>> {
        let base = self.base();
        let handle = self.handle(post.author)?;
        let profile = |handle: &Handle| {
            let is_known = named.mentions.iter().any(|(_, name)| name == handle.as_str());
            is_known.then(|| format!("{base}/@{}", handle.as_str()))
        };
        let text = post.text.as_str();
        let mentions = named.mentions.iter().map(|(user, handle)| MentionEntity {
            id: user.0.to_string(),
            username: handle,
            acct: handle,
            url: format!("{base}/@{handle}"),
        });
        let tags = feed::tag::tags(text);
        let tags = tags.iter().map(|tag| TagInStatus {
            name: tag.as_str().to_owned(),
            url: html::tag_url(base, tag.as_str()),
        });
        Some(SharedPart {
            id: id.0.to_string(),
            uri: format!("{base}/users/{handle}/statuses/{}", id.0),
            url: format!("{base}/@{handle}/{}", id.0),
            created_at: time(id.unix_ms()),
            edited_at: post.edited.map(|edited| time(edited.unix_ms())),
            content: html::content(text, base, profile),
            visibility: visibility_name(post.visibility),
            sensitive: post.sensitive,
            spoiler_text: post.warning.as_str(),
            language: post.language.as_ref().map(Language::as_str),
            media_attachments: self.attachments(&post.media),
            mentions: mentions.collect(),
            tags: tags.collect(),
            emojis: [],
            reblogs_count: counts.boosts,
            favourites_count: counts.favourites,
            quotes_count: 0,
            replies_count: self.facts().replies_count(id, REPLIES_COUNTED),
            in_reply_to_id: named.parent.map(|(id, _)| id.0.to_string()),
            in_reply_to_account_id: named.parent.map(|(_, author)| author.0.to_string()),
            card: (),
            quote: (),
            application: (),
        })
    }

    /// What a post says about others, as the reader sees it.
    fn named(&mut self, post: &Post) -> Named {
        let mut named = Named { is_shared: true, ..Named::default() };
        for user in &post.mentions {
            // Whoever was deleted is named to nobody.
            if let Some(handle) = self.handle(*user) {
                match self.viewer.visible_user(*user) {
                    true => named.mentions.push((*user, handle)),
                    false => named.is_shared = false,
                }
            }
        }
        if let Some(id) = post.in_reply_to
            && let Some(parent) = self.facts().post(id)
        {
            let is_visible = self.sees(&parent);
            named.parent = is_visible.then_some((id, parent.author));
            // What others boost, and what is not for everybody, other readers may not see.
            named.is_shared &= is_visible && parent.visibility.is_open() && parent.boost.is_none();
        }
        named
    }

    /// A status at home of the reader, unless a block or a mute hides what it boosts.
    pub(crate) fn home_status(&mut self, id: PostId) -> Option<Json> {
        Json::written(|out| self.append_home_status(id, out))
    }

    /// As [`Entities::append_status`], of [`Entities::home_status`].
    pub(crate) fn append_home_status(&mut self, id: PostId, out: &mut Vec<u8>) -> Option<()> {
        // Most readers hide nobody, and the post is read once.
        if !self.viewer().hides_nobody() {
            let boost = self.facts().post(id)?.boost;
            let is_wanted = boost.is_none_or(|boost| self.viewer().wants_boosts_of(boost.author));
            is_wanted.then_some(())?;
        }
        self.append_status(id, out)
    }

    /// A post that is visible to the reader, or what it boosts.
    pub(crate) fn boosted(&self, id: PostId) -> Option<PostId> {
        Some(self.visible_post(id)?.boosted_or(id))
    }

    /// A post that exists and is visible to the reader.
    pub(crate) fn visible_post(&self, id: PostId) -> Option<Post> {
        self.facts().post(id).filter(|post| self.sees(post))
    }

    /// Whether a post that exists is visible to the reader.
    fn sees(&self, post: &Post) -> bool {
        self.may_see(post.visibility) && self.viewer().visible(post)
    }

    /// As [`Entities::visible_post`], of a post in a list.
    pub(crate) fn visible_posted(&self, author: UserId, posted: Posted) -> bool {
        self.may_see(posted.1.visibility()) && self.viewer().visible_posted(author, posted)
    }

    /// Whether there is a reader, or the post is for everybody: for the viewer, nobody is the application itself.
    fn may_see(&self, visibility: Visibility) -> bool {
        self.reader.is_some() || visibility.is_open()
    }

    /// Appends statuses to `out` as JSON objects with commas between, until they are too long for one response. What the
    /// reader may not see is left out.
    pub(crate) fn statuses(&mut self, ids: &[PostId], out: &mut Vec<u8>) {
        for id in ids {
            if out.len() >= PAGE_BYTES {
                break;
            }
            push(out, |out| self.append_status(*id, out));
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
        let mut status = self.status(id)?.into_value();
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
