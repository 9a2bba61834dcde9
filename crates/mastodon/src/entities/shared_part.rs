//! The part of a status that is the same for all readers who see whom it names.

use std::sync::Arc;

use feed::text::{Language, Warning};
use feed::{Handle, Post, PostCounts, PostId, PostText, Reaction, UserId};
use node::Subject;
use serde::Serialize;
use serde_json::Value;

use super::json::append;
use super::kept::{Depends, KeptStatus};
use super::status::visibility_name;
use super::time::time;
use super::{Entities, html};

/// Most reactions to a status that are kept with it. For more, those of the reader are read.
const REACTIONS_KEPT: usize = 128;
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

/// What others did with a status.
#[derive(Default)]
struct Counted {
    favourites: u32,
    boosts: u32,
    replies: usize,
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
    /// The part of a status that is the same for all readers, if the reader may see the status.
    pub(super) fn shared_part(&mut self, id: PostId) -> Option<Arc<KeptStatus>> {
        if let Some(kept) = self.renderer.kept.status(id, &self.renderer.node)
            && self.is_still_right(id, &kept)
        {
            let is_own = self.reader == Some(kept.author) && kept.boosted.is_none();
            let is_for_all =
                is_own || kept.is_open && self.viewer.hides_nobody() && self.shows(kept.author);
            if !(is_for_all || self.may_read() && self.sees(&kept.post)) {
                return None;
            }
            if kept.users.iter().all(|user| self.viewer.visible_user(*user)) {
                return Some(kept);
            }
        }
        if let Some(made) = self.make_new_part(id) {
            return Some(made);
        }
        if self.may_read() { self.make_shared_part(id) } else { None }
    }

    /// Whether no user who was deleted since a status was made concerns it.
    fn is_still_right(&self, id: PostId, kept: &KeptStatus) -> bool {
        if kept.depends.is_right_after(self.hidings) {
            return true;
        }
        let facts = self.facts();
        let is_right = self.may_read()
            && !kept.has_replies
            && kept.users.iter().chain([&kept.author]).all(|user| facts.exists(*user))
            && !facts.counts_erasing(id);
        if is_right {
            kept.depends.set_right_after(self.hidings);
        }
        is_right
    }

    /// The part of a post that the reader has published a moment ago, if it names nobody and all of it is in memory.
    fn make_new_part(&mut self, id: PostId) -> Option<Arc<KeptStatus>> {
        let (reader, node) = (self.reader?, &self.renderer.node);
        if self.new != Some(id) {
            return None;
        }
        let depends = Depends::on(Subject::Post(id.0), node, self.hidings);
        let post = node.try_new_post(id).filter(|post| post.author == reader)?;
        let names_nobody = post.mentions.is_empty() && post.in_reply_to.is_none();
        if !names_nobody || !post.media.is_empty() {
            return None;
        }
        let profile = self.renderer.kept.profile(reader, node)?;
        let named = Named { is_shared: true, ..Named::default() };
        let (handle, counts) = (profile.handle.as_str(), Counted::default());
        let json = unclosed(&self.shared_fields(id, (&post, handle), &named, &counts));
        Some(self.keep_shared_part(id, (depends, post), (&named, 0), Some(Vec::new()), json))
    }

    fn make_shared_part(&mut self, id: PostId) -> Option<Arc<KeptStatus>> {
        let node = &self.renderer.node;
        let depends = Depends::on(Subject::Post(id.0), node, self.hidings);
        let post = self.visible_post(id)?;
        let pictures = post.media.iter().map(|picture| Subject::Media(picture.0));
        let parent = post.in_reply_to.map(|parent| Subject::Content(parent.0));
        let depends = depends.and(pictures.chain(parent), node);
        let named = self.named(&post);
        let handle = self.handle(post.author)?;
        let PostCounts { favourites, boosts, .. } = self.facts().post_counts(id);
        let replies = self.facts().replies_count(id, REPLIES_COUNTED);
        let counts = Counted { favourites, boosts, replies };
        let reactions = self.facts().reactions_to(id, 0, REACTIONS_KEPT + 1);
        let are_few = reactions.len() <= REACTIONS_KEPT;
        let reactions = reactions.into_iter().map(|(_, reaction, user, _)| (reaction, user));
        let reactions = are_few.then(|| reactions.collect());
        let json = unclosed(&self.shared_fields(id, (&post, &handle), &named, &counts));
        Some(self.keep_shared_part(id, (depends, post), (&named, replies), reactions, json))
    }

    fn keep_shared_part(
        &self,
        id: PostId,
        (depends, post): (Depends, Post),
        (named, replies): (&Named, usize),
        reactions: Option<Vec<(Reaction, UserId)>>,
        json: Box<[u8]>,
    ) -> Arc<KeptStatus> {
        let mentioned = named.mentions.iter().map(|(user, _)| *user);
        let users = mentioned.chain(named.parent.map(|(_, author)| author)).collect();
        let made = Arc::new(KeptStatus {
            depends,
            author: post.author,
            is_open: post.visibility.is_open(),
            has_poll: post.poll.is_some(),
            has_replies: replies > 0,
            boosted: post.boost.as_ref().map(|boost| boost.post),
            post: Box::new(post),
            users,
            reactions: reactions.map(Into::into),
            json,
        });
        if named.is_shared {
            self.renderer.kept.keep_status(id, &made);
        }
        made
    }

    /// The shared part of a status, without its content and counts.
    pub(super) fn blank_part(&self, (id, post): (PostId, &Post)) -> Option<Box<[u8]>> {
        let handle = self.facts().user(post.author)?.handle;
        let blank = Post {
            text: PostText::none(),
            mentions: Vec::new(),
            edited: None,
            warning: Warning::default(),
            sensitive: false,
            language: None,
            media: Vec::new(),
            ..post.clone()
        };
        let (named, counts) = (Named::default(), Counted::default());
        Some(unclosed(&self.shared_fields(id, (&blank, handle.as_str()), &named, &counts)))
    }

    /// `handle` is that of the author.
    fn shared_fields<'p>(
        &self,
        id: PostId,
        (post, handle): (&'p Post, &str),
        named: &'p Named,
        counts: &Counted,
    ) -> SharedPart<'p> {
        let base = self.base();
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
        let tags = feed::token::tags(text);
        let tags = tags.iter().map(|tag| TagInStatus {
            name: tag.as_str().to_owned(),
            url: html::tag_url(base, tag.as_str()),
        });
        SharedPart {
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
            replies_count: counts.replies,
            in_reply_to_id: named.parent.map(|(id, _)| id.0.to_string()),
            in_reply_to_account_id: named.parent.map(|(_, author)| author.0.to_string()),
            card: (),
            quote: (),
            application: (),
        }
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
}

/// A part of an entity: an object that is not closed.
fn unclosed(part: &SharedPart<'_>) -> Box<[u8]> {
    let mut json = Vec::new();
    append(part, &mut json);
    json.pop();
    json.into()
}
