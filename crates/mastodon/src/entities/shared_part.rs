//! The part of a status that is the same for all readers who see whom it names.

use feed::text::{Language, Warning};
use feed::{Handle, Post, PostCounts, PostId, PostText, Reaction, UserId};
use node::{Entity, EntityKey, MadeOf, Subject};
use serde::Serialize;
use serde_json::Value;

use super::account::ProfileParts;
use super::json::append;
use super::status::visibility_name;
use super::time::time;
use super::{Entities, html};

/// Most reactions to a status that are kept with it. For more, those of the reader are read.
const REACTIONS_KEPT: usize = 128;
/// Replies that are counted; for more, this number is shown.
const REPLIES_COUNTED: usize = 100;

/// The part of an entity `Status` that is the same for all readers who see all of its `users`. What each reader needs to know
/// is in the bytes before the JSON, because another allocation costs a page of statuses microseconds; the post, which few
/// readers need, is apart.
pub(super) struct SharedStatus(Entity);

/// The content of a shared part.
pub(super) struct StatusParts<'s> {
    pub(super) author: UserId,
    /// Whether it is for everybody.
    is_open: bool,
    pub(super) has_poll: bool,
    /// Whether replies are counted.
    has_replies: bool,
    pub(super) boosted: Option<PostId>,
    /// Whom the status names beside its author: those whom it mentions, and the author of what it replies to. All exist.
    users: &'s [UserBytes],
    /// All reactions to the post, if they are few: kinds and users.
    reactions: Option<&'s [ReactionBytes]>,
    pub(super) post: &'s Post,
    /// An object that is not closed.
    pub(super) json: &'s [u8],
}

type UserBytes = [u8; 4];
type ReactionBytes = [u8; 5];

/// Bits of the third part of the head, which is the author, the boosted post, these bits, and the numbers of users and of
/// reactions. The users and the reactions follow.
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
            let Ok(count) = u16::try_from(count) else { unreachable!("both are few") };
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

    /// Whether nobody reacted to it.
    pub(super) fn has_no_reactions(&self) -> bool {
        self.reactions.is_some_and(<[_]>::is_empty)
    }

    /// Whether a user reacted to it; none if only the facts can say.
    pub(super) fn has_reaction(&self, reaction: Reaction, user: UserId) -> Option<bool> {
        Some(self.reactions?.contains(&reaction_bytes((reaction, user))))
    }
}

/// Bytes of a post in memory.
fn bytes_of(post: &Post) -> usize {
    let earlier = post.boost.as_ref().map_or(0, |boost| boost.earlier.capacity());
    let ids = post.mentions.capacity() + post.media.capacity() * 2 + earlier;
    let options = post.poll.iter().flat_map(|poll| poll.options.as_slice());
    let options: usize = options.map(|option| option.as_str().len() + size_of::<String>()).sum();
    let texts = post.text.as_str().len() + post.warning.as_str().len() + options;
    texts + ids * 4 + size_of::<Post>()
}

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
    pub(super) fn shared_part(&mut self, id: PostId) -> Option<SharedStatus> {
        let is_unconcerned = |kept: &Entity| self.is_unconcerned(id, &StatusParts::of(kept));
        if let Some(kept) = self.counted(EntityKey::Status(id), is_unconcerned).map(SharedStatus) {
            let parts = kept.parts();
            let is_own = self.reader == Some(parts.author) && parts.boosted.is_none();
            let is_for_all =
                is_own || parts.is_open && self.viewer.hides_nobody() && self.shows(parts.author);
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

    /// Whether no user who is being removed concerns a status.
    fn is_unconcerned(&self, id: PostId, kept: &Option<StatusParts<'_>>) -> bool {
        let (facts, Some(kept)) = (self.facts(), kept) else { return false };
        self.may_read()
            && !kept.has_replies
            && kept.users().chain([kept.author]).all(|user| facts.exists(user))
            && !facts.counts_erasing(id)
    }

    /// The part of a post that the reader has published a moment ago, if it names nobody and all of it is in memory.
    fn make_new_part(&mut self, id: PostId) -> Option<SharedStatus> {
        let (reader, node) = (self.reader?, &self.renderer.node);
        if self.new != Some(id) {
            return None;
        }
        let made_of = node.made_of(self.hidings, [Subject::Post(id.0)]);
        let post = node.try_new_post(id).filter(|post| post.author == reader)?;
        let names_nobody = post.mentions.is_empty() && post.in_reply_to.is_none();
        if !names_nobody || !post.media.is_empty() {
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
        let pictures = post.media.iter().map(|picture| Subject::Media(picture.0));
        let parent = post.in_reply_to.map(|parent| Subject::Content(parent.0));
        let made_of = made_of.with(&node.made_of(self.hidings, pictures.chain(parent)));
        let named = self.named(&post);
        let handle = self.handle(post.author)?;
        let PostCounts { favourites, boosts, .. } = self.facts().post_counts(id);
        let replies = self.facts().replies_count(id, REPLIES_COUNTED);
        let counts = Counted { favourites, boosts, replies };
        let reactions = self.facts().reactions_to(id, 0, REACTIONS_KEPT + 1);
        let are_few = reactions.len() <= REACTIONS_KEPT;
        let reactions = reactions.into_iter().map(|(_, reaction, user, _)| (reaction, user));
        let reactions: Option<Vec<_>> = are_few.then(|| reactions.collect());
        let json = unclosed(&self.shared_fields(id, (&post, &handle), &named, &counts));
        Some(self.keep_shared_part(
            id,
            (&made_of, post),
            (&named, replies),
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
