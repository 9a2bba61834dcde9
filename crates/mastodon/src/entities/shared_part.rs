//! Part of a status that is the same for all readers who see the users it names.

use feed::text::Language;
use feed::{Content, Handle, Post, PostCounts, PostId, Reaction, SetTable, UserId};
use node::{Entity, EntityKey, MadeOf, Subject};
use serde::Serialize;
use serde_json::Value;

use super::account::ProfileParts;
use super::json::append;
use super::status::visibility_name;
use super::time::time;
use super::{Entities, html};

/// Maximum number of cached reactions per status. If a status has more, the reader's reactions are read from rows.
const REACTIONS_KEPT: usize = 128;
/// Maximum number of counted replies, and of counted quotes. A status with more shows this number.
const REPLIES_COUNTED: usize = 100;

/// Part of an entity `Status` that is the same for all readers who see all of its `users`. The facts needed per reader
/// are in the bytes before the JSON, because another allocation costs a page of statuses microseconds. The post, which
/// few readers need, is separate.
pub(super) struct SharedStatus(Entity);

/// Content of a shared part.
pub(super) struct StatusParts<'s> {
    pub(super) author: UserId,
    /// Whether the status is public or unlisted.
    is_open: bool,
    pub(super) has_poll: bool,
    /// Whether the status has counted replies or quotes.
    has_replies: bool,
    pub(super) boosted: Option<PostId>,
    /// Existing users whom the status names in addition to its author: mentioned users, and the author of the parent.
    users: &'s [UserBytes],
    /// All reactions to the post, if they are few: kind and user of each.
    reactions: Option<&'s [ReactionBytes]>,
    pub(super) post: &'s Post,
    /// Unclosed JSON object.
    pub(super) json: &'s [u8],
}

type UserBytes = [u8; 4];
type ReactionBytes = [u8; 5];

/// Bits of the third part of the head. The head has the author, the boosted post, these bits, and the numbers of users
/// and reactions. Users and reactions follow it.
const IS_OPEN: u8 = 1;
const HAS_POLL: u8 = 2;
const HAS_REPLIES: u8 = 4;
const HAS_ALL_REACTIONS: u8 = 8;

fn reaction_bytes((reaction, UserId(user)): (Reaction, UserId)) -> ReactionBytes {
    let [a, b, c, d] = user.to_le_bytes();
    [reaction as u8, a, b, c, d]
}

impl SharedStatus {
    fn new(
        made_of: &MadeOf,
        post: Post,
        (users, has_replies): (&[UserId], bool),
        reactions: Option<&[(Reaction, UserId)]>,
        json: &[u8],
    ) -> Self {
        let bits = [
            (IS_OPEN, post.visibility.is_open()),
            (HAS_POLL, post.poll.is_some()),
            (HAS_REPLIES, has_replies),
            (HAS_ALL_REACTIONS, reactions.is_some()),
        ];
        let bits =
            bits.into_iter().filter(|(_, is_set)| *is_set).fold(0, |all, (bit, _)| all | bit);
        let reactions = reactions.unwrap_or_default();
        let boosted = post.boost.as_ref().map_or(0, |boost| boost.post.0);
        let mut bytes = Vec::with_capacity(json.len() + 64);
        bytes.extend_from_slice(&post.author.0.to_le_bytes());
        bytes.extend_from_slice(&boosted.to_le_bytes());
        bytes.push(bits);
        for count in [users.len(), reactions.len()] {
            let Ok(count) = u16::try_from(count) else { unreachable!("both have few items") };
            bytes.extend_from_slice(&count.to_le_bytes());
        }
        bytes.extend(users.iter().flat_map(|user| user.0.to_le_bytes()));
        bytes.extend(reactions.iter().flat_map(|reaction| reaction_bytes(*reaction)));
        bytes.extend_from_slice(json);
        let post_bytes = bytes_of(&post);
        Self(Entity::with_parts(made_of, &bytes, (post, post_bytes)))
    }

    pub(super) fn parts(&self) -> StatusParts<'_> {
        let Some(parts) = StatusParts::of(&self.0) else {
            unreachable!("a status is kept with its parts")
        };
        parts
    }
}

impl<'s> StatusParts<'s> {
    fn of(status: &'s Entity) -> Option<Self> {
        let (author, rest) = status.bytes().split_first_chunk()?;
        let (boosted, rest) = rest.split_first_chunk()?;
        let ([bits, a, b, c, d], rest) = rest.split_first_chunk()?;
        let count = |bytes| usize::from(u16::from_le_bytes(bytes));
        let (users, rest) = rest.split_at_checked(count([*a, *b]) * size_of::<UserBytes>())?;
        let (reactions, json) =
            rest.split_at_checked(count([*c, *d]) * size_of::<ReactionBytes>())?;
        let has = |bit: u8| bits & bit > 0;
        Some(Self {
            author: UserId(u32::from_le_bytes(*author)),
            is_open: has(IS_OPEN),
            has_poll: has(HAS_POLL),
            has_replies: has(HAS_REPLIES),
            boosted: Some(PostId(u64::from_le_bytes(*boosted))).filter(|post| post.0 > 0),
            users: users.as_chunks().0,
            reactions: has(HAS_ALL_REACTIONS).then_some(reactions.as_chunks().0),
            post: status.parts()?,
            json,
        })
    }

    fn users(&self) -> impl Iterator<Item = UserId> {
        self.users.iter().map(|user| UserId(u32::from_le_bytes(*user)))
    }

    /// Whether the status has no reactions.
    pub(super) fn has_no_reactions(&self) -> bool {
        self.reactions.is_some_and(<[_]>::is_empty)
    }

    /// True if a user reacted to the status; `None` if the cached reactions are not complete.
    pub(super) fn has_reaction(&self, reaction: Reaction, user: UserId) -> Option<bool> {
        Some(self.reactions?.contains(&reaction_bytes((reaction, user))))
    }
}

/// Memory of a post, in bytes.
fn bytes_of(post: &Post) -> usize {
    let earlier = post.boost.as_ref().map_or(0, |boost| boost.earlier.capacity());
    let Content { text, warning, media, sensitive: _, language: _ } = &post.content;
    let ids = post.mentions.capacity() + media.capacity() * 2 + earlier;
    let options = post.poll.iter().flat_map(|poll| poll.options.as_slice());
    let options: usize = options.map(|option| option.as_str().len() + size_of::<String>()).sum();
    let texts = text.as_str().len() + warning.as_str().len() + options;
    texts + ids * 4 + size_of::<Post>()
}

/// Shared part of a status, before the fields that depend on the reader.
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
    quotes_count: usize,
    replies_count: usize,
    in_reply_to_id: Option<String>,
    in_reply_to_account_id: Option<String>,
    card: (),
    application: (),
}

/// Entity `Status::Mention`.
#[derive(Serialize)]
struct MentionEntity<'a> {
    id: String,
    username: &'a str,
    acct: &'a str,
    url: String,
}

/// Entity `Status::Tag`.
#[derive(Serialize)]
struct TagInStatus {
    name: String,
    url: String,
}

/// Counts of reactions and replies.
#[derive(Default)]
struct Counted {
    favourites: u32,
    boosts: u32,
    replies: usize,
    quotes: usize,
}

/// Users and posts that a status names, as the reader sees them.
#[derive(Default)]
struct Named {
    /// Mentioned users: ids and handles.
    mentions: Vec<(UserId, String)>,
    /// Parent of the status, and its author.
    parent: Option<(PostId, UserId)>,
    /// Whether the status is the same for every reader who sees these users.
    is_shared: bool,
}

impl Entities<'_> {
    /// The shared part of a status, if the reader may see the status.
    pub(super) fn shared_part(&mut self, id: PostId) -> Option<SharedStatus> {
        let is_unconcerned = |kept: &Entity| self.is_unconcerned(id, &StatusParts::of(kept));
        if let Some(kept) = self.counted(EntityKey::Status(id), is_unconcerned).map(SharedStatus) {
            let parts = kept.parts();
            let is_own = self.reader == Some(parts.author) && parts.boosted.is_none();
            let is_for_all = is_own
                || parts.is_open
                    && self.viewer.has_no_blocks_or_mutes()
                    && self.shows(parts.author);
            if !(is_for_all || self.may_read() && self.sees(parts.post)) {
                return None;
            }
            if parts.users().all(|user| self.viewer.visible_user(user)) {
                return Some(kept);
            }
        }
        if let Some(made) = self.make_new_part(id) {
            return Some(made);
        }
        if self.may_read() { self.make_shared_part(id) } else { None }
    }

    /// Whether a status depends on no user who is being erased.
    fn is_unconcerned(&self, id: PostId, kept: &Option<StatusParts<'_>>) -> bool {
        let (facts, Some(kept)) = (self.facts(), kept) else { return false };
        self.may_read()
            && !kept.has_replies
            && kept.users().chain([kept.author]).all(|user| facts.exists(user))
            && !facts.counts_erasing(id)
    }

    /// Makes the shared part of a post that the reader has just published. `None` if the post names users, or needs
    /// data that is not in memory.
    fn make_new_part(&mut self, id: PostId) -> Option<SharedStatus> {
        let (reader, node) = (self.reader?, &self.renderer.node);
        if self.new != Some(id) {
            return None;
        }
        let made_of = node.made_of(self.hidings, [Subject::Post(id.0)]);
        let post = node.try_new_post(id).filter(|post| post.author == reader)?;
        let names_nobody = post.mentions.is_empty() && post.in_reply_to.is_none();
        if !names_nobody || !post.content.media.is_empty() {
            return None;
        }
        let profile = self.renderer.kept(EntityKey::Profile(reader))?;
        let named = Named { is_shared: true, ..Named::default() };
        let handle = profile.parts::<ProfileParts>()?.handle.as_str();
        let json = unclosed(&self.shared_fields(id, (&post, handle), &named, &Counted::default()));
        Some(self.keep_shared_part(id, (&made_of, post), (&named, 0), Some(&[]), &json))
    }

    fn make_shared_part(&mut self, id: PostId) -> Option<SharedStatus> {
        let node = &self.renderer.node;
        let made_of = node.made_of(self.hidings, [Subject::Post(id.0)]);
        let post = self.visible_post(id)?;
        let pictures = post.content.media.iter().map(|picture| Subject::Media(picture.0));
        let parent = post.in_reply_to.map(|parent| Subject::Content(parent.0));
        let made_of = made_of.with(&node.made_of(self.hidings, pictures.chain(parent)));
        let named = self.named(&post);
        let handle = self.handle(post.author)?;
        let PostCounts { favourites, boosts, .. } = self.facts().post_counts(id);
        let count = |table| self.facts().open_count(table, id, REPLIES_COUNTED);
        let [replies, quotes] = [SetTable::OpenReplies, SetTable::Quotes].map(count);
        let counts = Counted { favourites, boosts, replies, quotes };
        let reactions = self.facts().reactions_to(id, 0, REACTIONS_KEPT + 1);
        let are_few = reactions.len() <= REACTIONS_KEPT;
        let reactions = reactions.into_iter().map(|(_, reaction, user, _)| (reaction, user));
        let reactions: Option<Vec<_>> = are_few.then(|| reactions.collect());
        let json = unclosed(&self.shared_fields(id, (&post, &handle), &named, &counts));
        Some(self.keep_shared_part(
            id,
            (&made_of, post),
            (&named, replies + quotes),
            reactions.as_deref(),
            &json,
        ))
    }

    fn keep_shared_part(
        &self,
        id: PostId,
        (made_of, post): (&MadeOf, Post),
        (named, replies): (&Named, usize),
        reactions: Option<&[(Reaction, UserId)]>,
        json: &[u8],
    ) -> SharedStatus {
        let mentioned = named.mentions.iter().map(|(user, _)| *user);
        let users: Vec<_> = mentioned.chain(named.parent.map(|(_, author)| author)).collect();
        let users = (users.as_slice(), replies > 0);
        let made = SharedStatus::new(made_of, post, users, reactions, json);
        if named.is_shared {
            self.renderer.keep(EntityKey::Status(id), &made.0);
        }
        made
    }

    /// Shared part of a status without its content and counts.
    pub(super) fn blank_part(&self, (id, post): (PostId, &Post)) -> Option<Box<[u8]>> {
        let handle = self.facts().user(post.author)?.handle;
        let content = Content::default();
        let blank = Post { content, mentions: Vec::new(), edited: None, ..post.clone() };
        let (named, counts) = (Named::default(), Counted::default());
        Some(unclosed(&self.shared_fields(id, (&blank, handle.as_str()), &named, &counts)))
    }

    /// Fields of the shared part. `handle` is the handle of the author.
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
        let Content { text, warning, sensitive, language, media } = &post.content;
        let text = text.as_str();
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
            sensitive: *sensitive,
            spoiler_text: warning.as_str(),
            language: language.as_ref().map(Language::as_str),
            media_attachments: self.attachments(media),
            mentions: mentions.collect(),
            tags: tags.collect(),
            emojis: [],
            reblogs_count: counts.boosts,
            favourites_count: counts.favourites,
            quotes_count: counts.quotes,
            replies_count: counts.replies,
            in_reply_to_id: named.parent.map(|(id, _)| id.0.to_string()),
            in_reply_to_account_id: named.parent.map(|(_, author)| author.0.to_string()),
            card: (),
            application: (),
        }
    }

    /// Users and posts that a post names, as the reader sees them.
    fn named(&mut self, post: &Post) -> Named {
        let mut named = Named { is_shared: true, ..Named::default() };
        for user in &post.mentions {
            // Deleted users are not named.
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
            // Other readers may not see a parent that is a boost or not public.
            named.is_shared &= is_visible && parent.visibility.is_open() && parent.boost.is_none();
        }
        named
    }
}

/// Serializes a part of an entity as an unclosed object.
fn unclosed(part: &SharedPart<'_>) -> Box<[u8]> {
    let mut json = Vec::new();
    append(part, &mut json);
    json.pop();
    json.into()
}
