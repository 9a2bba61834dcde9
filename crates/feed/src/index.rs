//! Rows of indexes. This module alone decides which index rows a record has. Writing, replacing, removing and checking
//! the index rows of a record follow from it; `tables.rs` declares, for each table, the record that owns a row.
//!
//! **Invariant:** rows become visible one after the other, so the index rows that a record has both before and after a
//! change exist during the change.

use std::collections::{BTreeMap, BTreeSet};

use rows::{NameTable, PutRows, Rows, SetTable, Value, decode, encode};

use crate::accounts::{Account, AccountState, AppId, AppName, Grant, GrantId};
use crate::blocks::Mute;
use crate::due::{Due, DueWork};
use crate::ids::{PostId, SampleId, SampleSetId, ScheduledId, StoryId, UserId, digest};
use crate::limits::{ERASE_ROWS_MAX, POST_MEDIA_MAX, POST_MENTIONS_MAX, POST_TAGS_MAX};
use crate::lists::ListId;
use crate::media::{Media, MediaFile, MediaId};
use crate::notifications::added_at;
use crate::polls::PollId;
use crate::posts::{Post, Visibility};
use crate::reactions::Reaction;
use crate::schedule::ScheduledPost;
use crate::stories::Story;
use crate::tags::Tag;

/// Rows of a deleted post outside of indexes: its own, its earlier versions, the notices of its last edit, its counts,
/// two of its author's pin, and the sweep of its reactions.
pub(crate) const POST_OWN_ROWS: usize = 7;
/// Rows of a deleted post without mentions, pictures and a poll: those outside of indexes, one each of its author and
/// its parent, and those in lists. A boost has two rows of the boosted post, and fewer others.
pub(crate) const POST_ROWS_LEAST: usize = POST_OWN_ROWS + 2 + LISTED_ROWS;
/// Maximum number of rows of a post in lists of posts.
pub(crate) const LISTED_ROWS: usize = 5;
/// Maximum number of rows of a deleted post, with mentions and hashtags.
pub(crate) const POST_ROWS_MAX: usize = POST_ROWS_LEAST
    + POST_MENTIONS_MAX
    // Direct posts have no hashtag rows.
    + DIRECT_ROWS * (1 + POST_MENTIONS_MAX)
    + MEDIA_ROWS * POST_MEDIA_MAX
    + POLL_ROWS;
/// Rows of a direct post for its author and for each mentioned user.
pub(crate) const DIRECT_ROWS: usize = 2;
/// Rows of a hashtag of a post.
pub(crate) const TAG_ROWS: usize = 2;
/// Rows of a picture: its own, one of its owner, its removal, two files, and the space of its owner and of all.
pub(crate) const MEDIA_ROWS: usize = 7;
/// Rows of a list member.
pub(crate) const LIST_ROWS: usize = 2;
/// Rows of a vote: one of the poll, one of the user.
pub(crate) const VOTE_ROWS: usize = 2;
/// Rows of a view: one of the story, one of the viewer.
pub(crate) const VIEW_ROWS: usize = 2;
/// Maximum number of rows of a grant: its own, two secrets, its owner, the key that minted it, its expiry, the uses of
/// its app, and the mark of an unused app; and one lookup.
pub(crate) const GRANT_ROWS: usize = 9;
/// Rows of the poll of a deleted post: its counts, its end, and the sweep of its votes.
pub(crate) const POLL_ROWS: usize = 3;
/// Rows of a scheduled post: its own, and its due time.
pub(crate) const SCHEDULED_ROWS: usize = 2;

const _: () = assert!(POST_ROWS_MAX <= ERASE_ROWS_MAX);
const _: () = assert!(TAG_ROWS * POST_TAGS_MAX <= DIRECT_ROWS * POST_MENTIONS_MAX);

/// A row of an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum IndexRow {
    /// Table, owner, item and number.
    Member(SetTable, u64, u64, u64),
    /// Table, name and value. Due work has an empty value here; its stored row holds the progress.
    Name(NameTable, Value, Value),
}

/// A server-wide list of public posts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PublicList {
    /// Posts of the public timeline: public posts other than boosts and replies to other users.
    Posts,
    /// Posts of the public timeline with pictures.
    Pictures,
}

impl PublicList {
    /// All public lists.
    pub(crate) const ALL: [Self; 2] = [Self::Posts, Self::Pictures];

    /// Owner of the rows of this list.
    pub(crate) const fn owner(self) -> u64 {
        match self {
            Self::Posts => 0,
            Self::Pictures => 1,
        }
    }
}

/// Owner of the list of an author's posts with pictures.
pub(crate) fn pictures_of(author: UserId) -> u64 {
    1 << 32 | u64::from(author.0)
}

/// Item of `LockedUsers` for a user whose account is disabled.
pub(crate) const DISABLED: u64 = 1;

/// Calls `each` with every index row of a post. An iterator of these rows has a state of kilobytes, and moving that
/// took a fifth of the time of applying a post.
pub(crate) fn each_of_post(id: PostId, post: &Post, mut each: impl FnMut(IndexRow)) {
    let author = u64::from(post.author.0);
    let member = |table, owner, number| IndexRow::Member(table, owner, id.0, number);
    each(of_author(id, post));
    if let Some(parent) = post.in_reply_to {
        each(member(SetTable::Replies, parent.0, post.visibility as u64));
    }
    if let Some(boost) = &post.boost {
        let (of, item) = (boost.post.0, Reaction::Boost.item(post.author));
        each(IndexRow::Member(SetTable::Reactions, of, item, id.0));
        each(member(SetTable::Boosts, of, author));
    }
    shared_of_post(id, post).for_each(&mut each);
    if post.boost.is_none() && !post.content.media.is_empty() {
        each(member(SetTable::PostLists, pictures_of(post.author), post.listed().number()));
    }
    for user in post.mentioned_others() {
        each(of_mention(user, id, post.mention_number()));
    }
    if let Some(first) = post.conversation_or(id) {
        for user in std::iter::once(post.author).chain(post.mentioned_others()) {
            of_direct(user, (id, first)).into_iter().for_each(&mut each);
        }
    }
    if let Some(poll) = &post.poll {
        each(IndexRow::due(poll.end_of(id)));
    }
    for tag in post.tags() {
        of_tag(&tag, (id, post.author)).into_iter().for_each(&mut each);
    }
}

/// Row of a post in the list of its author.
pub(crate) fn of_author(id: PostId, post: &Post) -> IndexRow {
    IndexRow::Member(SetTable::AuthorPosts, post.author.0.into(), id.0, post.listed().number())
}

/// Row of a mention by a post.
pub(crate) fn of_mention(user: UserId, post: PostId, number: u64) -> IndexRow {
    IndexRow::Member(SetTable::Mentions, user.0.into(), post.0, number)
}

/// Index rows of a post.
pub(crate) fn of_post(id: PostId, post: &Post) -> Vec<IndexRow> {
    let mut rows = Vec::new();
    each_of_post(id, post, |row| rows.push(row));
    rows
}

/// Rows of a post in lists shared by many authors. A post of a disabled account has none of them, so it neither delays
/// a page nor displaces another post. Its hashtag rows stay.
pub(crate) fn shared_of_post(id: PostId, post: &Post) -> impl Iterator<Item = IndexRow> {
    let row = move |table, owner| IndexRow::Member(table, owner, id.0, post.author.0.into());
    let is_post = post.boost.is_none();
    let is_open = is_post && post.visibility.is_open();
    let is_public = is_post && post.visibility == Visibility::Public;
    let is_public = is_public && !post.listed().is_reply_to_other(post.author);
    let has_pictures = is_public && !post.content.media.is_empty();
    let list =
        move |is_in: bool, list: PublicList| is_in.then(|| row(SetTable::PostLists, list.owner()));
    let reply = post.in_reply_to.filter(|_| is_open);
    let reply = reply.map(|parent| row(SetTable::OpenReplies, parent.0)).into_iter();
    let quote = post.listed_quote().map(|quoted| row(SetTable::Quotes, quoted.0));
    let lists = list(is_public, PublicList::Posts).into_iter();
    reply.chain(quote).chain(lists).chain(list(has_pictures, PublicList::Pictures))
}

/// Index rows of a stored post, except those of users for whom `has_none` is true, and the end of a poll that is over
/// at `now_ms`.
pub(crate) fn left_of_post(
    id: PostId,
    post: &Post,
    now_ms: u64,
    has_none: impl Fn(UserId) -> bool,
) -> impl Iterator<Item = IndexRow> {
    let is_over = post.poll.as_ref().is_some_and(|poll| poll.is_over(now_ms));
    of_post(id, post).into_iter().filter(move |row| {
        row.user().is_none_or(|user| !has_none(user))
            && !(is_over && matches!(row, IndexRow::Name(NameTable::Due, ..)))
    })
}

/// Rows of a direct post for its author or a mentioned user, in the conversation that begins with `first`.
pub(crate) fn of_direct(user: UserId, (id, first): (PostId, PostId)) -> [IndexRow; DIRECT_ROWS] {
    let key = [&user.0.to_be_bytes()[..], &first.0.to_be_bytes(), &(!id.0).to_be_bytes()].concat();
    [
        IndexRow::Member(SetTable::DirectPosts, user.0.into(), id.0, first.0),
        IndexRow::Name(NameTable::ConversationPost, key.into(), Value::new()),
    ]
}

/// Rows of a hashtag of a post: one by hashtag, one by author.
pub(crate) fn of_tag(tag: &Tag, (post, author): (PostId, UserId)) -> [IndexRow; TAG_ROWS] {
    let (tag, post) = (tag.as_str().as_bytes(), (!post.0).to_be_bytes());
    let author = author.0.to_be_bytes();
    let name =
        |table, parts: [&[u8]; 4]| IndexRow::Name(table, parts.concat().into(), Value::new());
    [
        name(NameTable::TagPost, [tag, &[0], &post, &author]),
        name(NameTable::AuthorTag, [&author, tag, &[0], &post]),
    ]
}

/// Rows of a story; empty if the story is deleted and only its removal is pending.
pub(crate) fn of_story(id: StoryId, story: &Story) -> Vec<IndexRow> {
    let (author, expires_ms) = (story.author.0.into(), story.expires_ms);
    if expires_ms == 0 {
        return Vec::new();
    }
    let by_author = IndexRow::Member(SetTable::AuthorStories, author, id.0, expires_ms);
    vec![by_author, IndexRow::due(DueWork::RemoveStory { story: id }.at(expires_ms))]
}

/// Rows of a picture: one of the owner, one of each file, and the removal of an unattached picture.
pub(crate) fn of_media(id: MediaId, media: &Media) -> Vec<IndexRow> {
    let name = |table, start: &[u8]| {
        IndexRow::Name(table, [start, &id.0.to_be_bytes()].concat().into(), Value::new())
    };
    let same = |file: &&MediaFile| file.hash == media.original.hash;
    // The preview of a small picture is the same file.
    let preview = media.preview.as_ref().filter(|preview| !same(preview));
    let files = std::iter::once(&media.original).chain(preview);
    let files = files.map(|file| name(NameTable::MediaFile, &file.hash.0));
    let removal = media.used.expires_ms().map(|at| DueWork::RemoveMedia { media: id }.at(at));
    let of_owner = name(NameTable::MediaOf, &media.owner.0.to_be_bytes());
    files.chain([of_owner]).chain(removal.map(IndexRow::due)).collect()
}

/// The row of a sample of a set.
pub(crate) fn of_sample(id: SampleId, set: SampleSetId) -> IndexRow {
    IndexRow::Member(SetTable::Samples, set.0, id.0, 0)
}

/// Rows of a scheduled post.
pub(crate) fn of_scheduled(
    user: UserId,
    id: ScheduledId,
    post: &ScheduledPost,
) -> [IndexRow; SCHEDULED_ROWS - 1] {
    [IndexRow::due(DueWork::Publish { user, id }.at(post.due_ms))]
}

/// Row of the end of a mute, in addition to the rows of the relation.
pub(crate) fn of_mute(user: UserId, other: UserId, mute: Mute) -> Option<IndexRow> {
    mute.end_of(user, other).map(IndexRow::due)
}

/// Rows of the account of a user.
pub(crate) fn of_account(user: UserId, account: &Account) -> impl Iterator<Item = IndexRow> {
    let is_disabled = account.state == AccountState::Disabled;
    let disabled = is_disabled.then(|| of_disabled(user));
    disabled.into_iter().chain(of_email(user, account))
}

/// The row of the e-mail address of an account.
pub(crate) fn of_email(user: UserId, account: &Account) -> Option<IndexRow> {
    let email = account.email.as_ref()?.as_str().as_bytes();
    Some(IndexRow::Name(NameTable::Email, email.into(), encode(&user)))
}

/// The row of a user whose account is disabled.
pub(crate) fn of_disabled(user: UserId) -> IndexRow {
    IndexRow::Member(SetTable::LockedUsers, user.0.into(), DISABLED, 0)
}

/// Rows of a grant.
pub(crate) fn of_grant(id: GrantId, grant: &Grant) -> impl Iterator<Item = IndexRow> {
    let secrets = grant.secrets().into_iter().flatten().map(move |secret| {
        IndexRow::Name(NameTable::GrantSecret, Value::from_slice(&secret.0), encode(&id.0))
    });
    let expiry = grant.expires_ms().map(|at| DueWork::ExpireGrant { grant: id }.at(at));
    let owner = match (grant.user, grant.app) {
        (Some(user), _) => owner_prefix(OF_USER, user.0.into()),
        (None, app) => owner_prefix(OF_APP, app.map_or(0, |app| app.0)),
    };
    let key = grant.key.as_ref().map(|key| owner_prefix(OF_KEY, key_digest(key)));
    let lists = [Some(owner), key].into_iter().flatten().map(move |list| {
        let name = [list.as_slice(), &id.0.to_be_bytes()].concat();
        IndexRow::Name(NameTable::GrantOf, name.into(), Value::new())
    });
    secrets.chain(expiry.map(IndexRow::due)).chain(lists)
}

/// First byte of keys of `GrantOf`: the list is of a user, of an app, or of the application key that minted the tokens.
pub(crate) const OF_USER: u8 = 0;
pub(crate) const OF_APP: u8 = 1;
pub(crate) const OF_KEY: u8 = 2;

/// Digest of the name of an application key. Keys with equal digests share a list.
pub(crate) fn key_digest(key: &AppName) -> u64 {
    digest([key.as_str().as_bytes()])
}

pub(crate) fn owner_prefix(kind: u8, owner: u64) -> Vec<u8> {
    [&[kind][..], &owner.to_be_bytes()].concat()
}

/// Row of an app in the list of unused apps, if it has no uses.
pub(crate) fn of_app(id: AppId, uses: u32) -> Option<IndexRow> {
    let key = Value::from_slice(&id.0.to_be_bytes());
    (uses == 0).then(|| IndexRow::Name(NameTable::UnusedApp, key, Value::new()))
}

/// Rows of a reaction other than a boost: one of the post, one of the user. A boost has the rows of a post.
pub(crate) fn of_reaction(
    (user, post): (UserId, PostId),
    reaction: Reaction,
    stamp: u64,
) -> (IndexRow, Option<IndexRow>) {
    let of_user = reaction.table();
    let of_user = of_user.map(|table| IndexRow::Member(table, user.0.into(), stamp, post.0));
    (IndexRow::Member(SetTable::Reactions, post.0, reaction.item(user), stamp), of_user)
}

/// Rows of a vote: one of the poll, one of the user.
pub(crate) fn of_vote(poll: PollId, user: u64, number: u64) -> [IndexRow; VOTE_ROWS] {
    [
        IndexRow::Member(SetTable::PollVotes, poll.0, user, number),
        IndexRow::Member(SetTable::Votes, user, poll.0, number),
    ]
}

/// Rows of a view: one of the story, one of the viewer.
pub(crate) fn of_view(story: StoryId, viewer: UserId, at_ms: u64) -> [IndexRow; VIEW_ROWS] {
    let viewer = viewer.0.into();
    [
        IndexRow::Member(SetTable::StoryViews, story.0, viewer, at_ms),
        IndexRow::Member(SetTable::Seen, viewer, story.0, 0),
    ]
}

/// Rows of a list member: one of the list, one of the pair of owner and member.
pub(crate) fn of_list_member(user: UserId, list: ListId, other: UserId) -> [IndexRow; LIST_ROWS] {
    let (user, list, other) = (user.0.to_be_bytes(), list.0.to_be_bytes(), other.0.to_be_bytes());
    let name =
        |table, parts: [&[u8]; 3]| IndexRow::Name(table, parts.concat().into(), Value::new());
    [
        name(NameTable::ListMember, [&user, &list, &other]),
        name(NameTable::ListedUser, [&user, &other, &list]),
    ]
}

/// Record that owns index rows.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Source {
    Account(UserId),
    App(AppId),
    /// A deleted user some of whose rows are left.
    Erasing(UserId),
    Grant(GrantId),
    Media(MediaId),
    Mute(UserId, UserId),
    Post(PostId),
    Sample(SampleId),
    Scheduled(UserId, ScheduledId),
    Story(StoryId),
}

impl DueWork {
    /// Record that determines the due time; `None` if only the due row stores it.
    pub(crate) const fn source(self) -> Option<Source> {
        Some(match self {
            Self::RemoveStory { story } => Source::Story(story),
            Self::EndMute { user, other } => Source::Mute(user, other),
            Self::EndPoll { post } => Source::Post(post),
            Self::Publish { user, id } => Source::Scheduled(user, id),
            Self::RemoveMedia { media } => Source::Media(media),
            Self::Erase { user } => Source::Erasing(user),
            Self::ExpireGrant { grant } => Source::Grant(grant),
            Self::NotifyOfEdit { .. }
            | Self::SweepReactions { .. }
            | Self::SweepVotes { .. }
            | Self::Relist { .. } => return None,
        })
    }
}

impl IndexRow {
    /// Row of due work.
    pub(crate) fn due(due: Due) -> Self {
        Self::Name(NameTable::Due, due.name(), Value::new())
    }

    /// Name of the table, for operators.
    pub(crate) fn table_name(&self) -> String {
        match self {
            Self::Member(table, ..) => format!("{table:?}"),
            Self::Name(table, ..) => format!("{table:?}"),
        }
    }

    fn place(&self) -> (u8, u64, u64, &[u8]) {
        match self {
            Self::Member(table, owner, item, _) => (table.tag(), *owner, *item, &[]),
            Self::Name(table, name, _) => (table.tag(), 0, 0, name),
        }
    }

    /// Whether the stored row may differ from this one: a mention row may have the stamp of the edit that added it.
    pub(crate) fn allows(&self, stored: &Self) -> bool {
        let is_added = |number| added_at(number).is_some();
        match stored {
            Self::Member(SetTable::Mentions, .., number) if is_added(*number) => {
                self.place() == stored.place()
            }
            _ => self == stored,
        }
    }

    /// Whether exactly this row is stored.
    pub(crate) fn is_in<R: Rows + ?Sized>(&self, rows: &R) -> bool {
        match self {
            Self::Member(table, owner, item, number) => {
                rows.member(*table, *owner, *item) == Some(*number)
            }
            Self::Name(table, name, value) => rows
                .name(*table, name)
                .is_some_and(|stored| stored == *value || *table == NameTable::Due),
        }
    }

    /// Whether a row is stored at this place, with any value.
    pub(crate) fn is_at<R: Rows + ?Sized>(&self, rows: &R) -> bool {
        match self {
            Self::Member(table, owner, item, _) => rows.member(*table, *owner, *item).is_some(),
            Self::Name(table, name, _) => rows.name(*table, name).is_some(),
        }
    }

    pub(crate) fn put(&self, rows: &mut (impl PutRows + ?Sized)) {
        match self {
            Self::Member(table, owner, item, number) => {
                rows.put_member(*table, *owner, *item, Some(*number));
            }
            Self::Name(table, name, value) => rows.put_name(*table, name, Some(value.clone())),
        }
    }

    pub(crate) fn remove(&self, rows: &mut (impl PutRows + ?Sized)) {
        match self {
            Self::Member(table, owner, item, _) => rows.put_member(*table, *owner, *item, None),
            Self::Name(table, name, _) => rows.put_name(*table, name, None),
        }
    }

    /// Owner of the row if it is removed with the user while the record stays.
    pub(crate) fn user(&self) -> Option<UserId> {
        match self {
            Self::Member(SetTable::Mentions | SetTable::DirectPosts, user, ..) => user_id(*user),
            Self::Name(NameTable::ConversationPost, name, _) => {
                name.first_chunk().map(|user| UserId(u32::from_be_bytes(*user)))
            }
            _ => None,
        }
    }

    /// Author of the post if this is a row in a list shared by many authors: see [`shared_of_post`].
    pub(crate) fn shared_by(&self) -> Option<UserId> {
        let Self::Member(table, owner, _, number) = self else { return None };
        let is_shared = match table {
            SetTable::OpenReplies | SetTable::Quotes => true,
            SetTable::PostLists => PublicList::ALL.iter().any(|list| list.owner() == *owner),
            _ => false,
        };
        user_id(*number).filter(|_| is_shared)
    }

    /// Item of a set row.
    pub(crate) fn item(&self) -> Option<u64> {
        match self {
            Self::Member(_, _, item, _) => Some(*item),
            Self::Name(..) => None,
        }
    }

    /// Id in a name, before the last `bytes` bytes.
    pub(crate) fn id_before(&self, bytes: usize) -> Option<u64> {
        let Self::Name(_, name, _) = self else { return None };
        let end = name.len().checked_sub(bytes)?;
        name.get(..end)?.last_chunk().map(|id| u64::from_be_bytes(*id))
    }

    /// Decoded value of a name row.
    pub(crate) fn value<T: serde::de::DeserializeOwned>(&self) -> Option<T> {
        match self {
            Self::Member(..) => None,
            Self::Name(_, _, value) => Some(decode(value)),
        }
    }
}

/// Writes the rows, or removes them.
pub(crate) fn set(
    rows: &mut (impl PutRows + ?Sized),
    all: impl IntoIterator<Item = IndexRow>,
    are_there: bool,
) {
    for row in all {
        if are_there { row.put(rows) } else { row.remove(rows) }
    }
}

/// Writes the rows of a new record, and removes the rows that only the old record had.
pub(crate) fn replace(rows: &mut (impl PutRows + ?Sized), old: &[IndexRow], new: &[IndexRow]) {
    let before: BTreeMap<_, _> = old.iter().map(|row| (row.place(), row)).collect();
    for row in new.iter().filter(|row| before.get(&row.place()) != Some(row)) {
        row.put(rows);
    }
    let kept: BTreeSet<_> = new.iter().map(IndexRow::place).collect();
    for row in old.iter().filter(|row| !kept.contains(&row.place())) {
        row.remove(rows);
    }
}

fn user_id(number: u64) -> Option<UserId> {
    u32::try_from(number).ok().map(UserId)
}
