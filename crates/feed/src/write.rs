//! Writes records as rows, without reading any row, for commands and for an import alike.
//!
//! **Invariant:** records with rows in more than one table are written only here, so that an import writes the same
//! rows as commands would.

mod polls;

use rows::{NameTable, PointTable, PutRows, SetTable, Value, encode};

use crate::accounts::{Account, AccountState, Record as _};
use crate::boost::PostCounts;
use crate::due::{Due, DueWork};
use crate::ids::{PostId, SampleId, SampleSetId, StoryId, UserId};
use crate::list::{List, ListId};
use crate::list_rows;
use crate::marker::Markers;
use crate::media::{Media, MediaFile, MediaId, MediaSpace, MediaUse};
use crate::reaction::Reaction;
use crate::records::{Counts, Post, Sample, SampleSet, Story, User};
use crate::tag::Tag;
use crate::text::{Handle, Label, PostText, SetName};
pub use polls::{poll_counts, scheduled, vote};
pub(crate) use polls::{remove_scheduled, scheduled_key};

/// How far something is that is due; or, without `from`, that nothing of it is left.
pub fn due(rows: &mut (impl PutRows + ?Sized), due: Due, from: Option<u64>) {
    let row = from.map(|from| if from == 0 { Value::new() } else { encode(&from) });
    rows.put_name(NameTable::Due, &due.name(), row);
}

/// A user's profile, without the handle's row.
pub fn user(rows: &mut (impl PutRows + ?Sized), id: UserId, user: &User) {
    rows.put_point(PointTable::User, id.0.into(), Some(user.encode()));
}

/// That a handle belongs to a user.
pub fn handle(rows: &mut (impl PutRows + ?Sized), handle: &Handle, id: UserId) {
    rows.put_name(NameTable::Handle, handle.as_str().as_bytes(), Some(encode(&id)));
}

/// That a user was deleted, whose profile has only the handle and the time.
pub fn deleted(rows: &mut (impl PutRows + ?Sized), id: UserId) {
    rows.put_member(SetTable::DeletedUsers, id.0.into(), 0, Some(0));
}

/// The item of `LockedUsers` of a user whose account is disabled.
pub(crate) const DISABLED: u64 = 1;

/// The account of a user, with the row of its e-mail address. Posts of one that is disabled are removed from lists later.
pub fn account(rows: &mut (impl PutRows + ?Sized), id: UserId, account: &Account) {
    rows.put_point(PointTable::Account, id.0.into(), Some(account.to_row()));
    if account.state == AccountState::Disabled {
        rows.put_member(SetTable::LockedUsers, id.0.into(), DISABLED, Some(0));
    }
    if let Some(email) = &account.email {
        rows.put_name(NameTable::Email, email.as_str().as_bytes(), Some(encode(&id)));
    }
}

/// Up to where a user has read timelines.
pub fn markers(rows: &mut (impl PutRows + ?Sized), id: UserId, markers: Markers) {
    rows.put_point(PointTable::Markers, id.0.into(), Some(encode(&markers)));
}

/// A list of a user without its members, or none.
pub fn list(rows: &mut (impl PutRows + ?Sized), user: UserId, id: ListId, list: Option<&List>) {
    rows.put_name(NameTable::List, &list_key(user, id), list.map(encode));
}

/// That `other` is a member of a list of `user`; or, without `is_member`, that it is not so.
pub fn list_member(
    rows: &mut (impl PutRows + ?Sized),
    user: UserId,
    list: ListId,
    other: UserId,
    is_member: bool,
) {
    let value = is_member.then(Value::new);
    rows.put_name(NameTable::ListMember, &list_member_key(user, list, other), value.clone());
    rows.put_name(NameTable::ListedUser, &listed_user_key(user, other, list), value);
}

pub(crate) fn list_key(user: UserId, list: ListId) -> Value {
    let mut bytes = Value::from_slice(&user.0.to_be_bytes());
    bytes.extend_from_slice(&list.0.to_be_bytes());
    bytes
}

pub(crate) fn list_member_key(user: UserId, list: ListId, other: UserId) -> Value {
    let mut bytes = list_key(user, list);
    bytes.extend_from_slice(&other.0.to_be_bytes());
    bytes
}

pub(crate) fn listed_user_key(user: UserId, other: UserId, list: ListId) -> Value {
    let mut bytes = Value::from_slice(&user.0.to_be_bytes());
    bytes.extend_from_slice(&other.0.to_be_bytes());
    bytes.extend_from_slice(&list.0.to_be_bytes());
    bytes
}

/// That others must ask a user before they follow; or, without `locked`, that it is not so.
pub fn locked(rows: &mut (impl PutRows + ?Sized), user: UserId, locked: bool) {
    rows.put_member(SetTable::LockedUsers, user.0.into(), 0, locked.then_some(0));
}

/// A user's counts.
pub fn counts(rows: &mut (impl PutRows + ?Sized), id: UserId, counts: Counts) {
    rows.put_point(PointTable::Counts, id.0.into(), Some(counts.encode()));
}

/// A reaction of a user to a post, which is no boost: that is a [`post`]. The post counts favourites.
pub fn reaction(
    rows: &mut (impl PutRows + ?Sized),
    (user, post): (UserId, PostId),
    reaction: Reaction,
    stamp: u64,
) {
    if let Some(table) = reaction.table() {
        rows.put_member(table, user.0.into(), stamp, Some(post.0));
    }
    rows.put_member(SetTable::Reactions, post.0, reaction.item(user), Some(stamp));
}

/// Counts of a post.
pub fn post_counts(rows: &mut (impl PutRows + ?Sized), id: PostId, counts: &PostCounts) {
    rows.put_point(PointTable::PostCounts, id.0, counts.encode());
}

/// A post in the post, author, reply and hashtag tables and in lists, a direct one also in the author's conversation, and a
/// boost among the reactions to the boosted post, which counts it. Mentions have separate rows: see [`mention`].
pub fn post(rows: &mut (impl PutRows + ?Sized), id: PostId, post: &Post) {
    let number = post.listed().number();
    rows.put_point(PointTable::Post, id.0, Some(post.encode()));
    rows.put_member(SetTable::AuthorPosts, post.author.0.into(), id.0, Some(number));
    if let Some(parent) = post.in_reply_to {
        rows.put_member(SetTable::Replies, parent.0, id.0, Some(post.visibility as u64));
    }
    if let Some(boost) = &post.boost {
        let item = Reaction::Boost.item(post.author);
        rows.put_member(SetTable::Reactions, boost.post.0, item, Some(id.0));
        rows.put_member(SetTable::Boosts, boost.post.0, id.0, Some(post.author.0.into()));
    }
    post.tags().iter().for_each(|found| tag(rows, found, (id, post.author), true));
    list_rows::replace(rows, id, &[], &list_rows::rows_of(post));
    direct(rows, post.author, (id, post), true);
}

/// Writes the rows of a direct post by or to `user`, or removes them without `is_shown`.
pub(crate) fn direct(
    rows: &mut (impl PutRows + ?Sized),
    user: UserId,
    (id, post): (PostId, &Post),
    is_shown: bool,
) {
    if let Some(first) = post.conversation_or(id) {
        direct_rows(rows, user, (id, first), is_shown);
    }
}

/// Writes or removes these rows for a post in the conversation that begins with `first`: see [`direct`].
pub(crate) fn direct_rows(
    rows: &mut (impl PutRows + ?Sized),
    user: UserId,
    (id, first): (PostId, PostId),
    is_shown: bool,
) {
    let number = is_shown.then_some(first.0);
    rows.put_member(SetTable::DirectPosts, user.0.into(), id.0, number);
    let key = conversation_post_key(user, first, id);
    rows.put_name(NameTable::ConversationPost, &key, is_shown.then(Value::new));
}

pub(crate) fn conversation_post_key(user: UserId, first: PostId, post: PostId) -> Value {
    let mut bytes = Value::from_slice(&user.0.to_be_bytes());
    bytes.extend_from_slice(&first.0.to_be_bytes());
    bytes.extend_from_slice(&(!post.0).to_be_bytes());
    bytes
}

/// Reverses [`conversation_post_key`].
pub(crate) fn read_conversation_post(key: &[u8]) -> Option<(UserId, PostId, PostId)> {
    let (user, rest) = key.split_first_chunk()?;
    let (first, post) = rest.split_first_chunk()?;
    let post = u64::from_be_bytes(post.try_into().ok()?);
    let first = PostId(u64::from_be_bytes(*first));
    Some((UserId(u32::from_be_bytes(*user)), first, PostId(!post)))
}

/// That a post by `author` has a hashtag; or, without `has`, that it has not. Only public posts have such rows.
pub fn tag(
    rows: &mut (impl PutRows + ?Sized),
    tag: &Tag,
    (post, author): (PostId, UserId),
    has: bool,
) {
    let value = has.then(Value::new);
    rows.put_name(NameTable::TagPost, &tag_post_key(tag, post, author), value.clone());
    rows.put_name(NameTable::AuthorTag, &author_tag_key(author, tag, post), value);
}

/// That the profile of a user shows a hashtag since a stamp; or, without one, that it does not.
pub fn featured_tag(
    rows: &mut (impl PutRows + ?Sized),
    user: UserId,
    tag: &Tag,
    since: Option<u64>,
) {
    let key = user_tag_key(user, tag);
    rows.put_name(NameTable::FeaturedTag, &key, since.map(|since| encode(&since)));
}

/// That a user follows a hashtag since a stamp; or, without one, that they do not.
pub fn followed_tag(
    rows: &mut (impl PutRows + ?Sized),
    user: UserId,
    tag: &Tag,
    since: Option<u64>,
) {
    let key = user_tag_key(user, tag);
    rows.put_name(NameTable::FollowedTag, &key, since.map(|since| encode(&since)));
}

pub(crate) fn user_tag_key(user: UserId, tag: &Tag) -> Value {
    let mut key = Value::from_slice(&user.0.to_be_bytes());
    key.extend_from_slice(tag.as_str().as_bytes());
    key
}

pub(crate) fn tag_post_key(tag: &Tag, post: PostId, author: UserId) -> Value {
    let mut bytes = Value::from_slice(tag.as_str().as_bytes());
    bytes.push(0);
    bytes.extend_from_slice(&(!post.0).to_be_bytes());
    bytes.extend_from_slice(&author.0.to_be_bytes());
    bytes
}

pub(crate) fn author_tag_key(author: UserId, tag: &Tag, post: PostId) -> Value {
    let mut bytes = Value::from_slice(&author.0.to_be_bytes());
    bytes.extend_from_slice(tag.as_str().as_bytes());
    bytes.push(0);
    bytes.extend_from_slice(&(!post.0).to_be_bytes());
    bytes
}

/// That a post mentions a user who is not deleted.
pub fn mention(rows: &mut (impl PutRows + ?Sized), user: UserId, (id, post): (PostId, &Post)) {
    rows.put_member(SetTable::Mentions, user.0.into(), id.0, Some(post.mention_number()));
    direct(rows, user, (id, post), true);
}

/// A story in the story, text, author and expiry tables.
pub fn story(rows: &mut (impl PutRows + ?Sized), id: StoryId, story: &Story, text: &PostText) {
    let (author, expires_ms) = (story.author.0.into(), story.expires_ms);
    rows.put_point(PointTable::Story, id.0, Some(encode(story)));
    rows.put_point(PointTable::StoryText, id.0, Some(encode(text)));
    rows.put_member(SetTable::AuthorStories, author, id.0, Some(expires_ms));
    due(rows, DueWork::RemoveStory { story: id }.at(expires_ms), Some(0));
}

/// The first view of a story by `viewer`, in milliseconds since 1970. The story counts it.
pub fn view(rows: &mut (impl PutRows + ?Sized), id: StoryId, viewer: UserId, at_ms: u64) {
    rows.put_member(SetTable::StoryViews, id.0, viewer.0.into(), Some(at_ms));
    rows.put_member(SetTable::Seen, viewer.0.into(), id.0, Some(0));
}

/// A sample of a set. The set counts it.
pub fn sample(rows: &mut (impl PutRows + ?Sized), id: SampleId, sample: &Sample, set: SampleSetId) {
    rows.put_point(PointTable::Sample, id.0, Some(encode(sample)));
    rows.put_member(SetTable::Samples, set.0, id.0, Some(0));
}

/// A set of samples; none is left of one without samples.
pub fn sample_set(rows: &mut (impl PutRows + ?Sized), name: &SetName, set: SampleSet) {
    let row = (set.samples > 0).then(|| encode(&set));
    rows.put_name(NameTable::SampleSet, name.as_str().as_bytes(), row);
}

/// Number of samples of a set that have this label.
pub fn sample_label(
    rows: &mut (impl PutRows + ?Sized),
    set: SampleSetId,
    label: &Label,
    samples: u32,
) {
    let row = (samples > 0).then(|| encode(&samples));
    rows.put_name(NameTable::SampleLabel, &label_key(set, label), row);
}

pub(crate) fn label_key(set: SampleSetId, label: &Label) -> Value {
    let mut bytes = Value::from_slice(&set.0.to_be_bytes());
    bytes.extend_from_slice(label.as_str().as_bytes());
    bytes
}

/// A picture, with the rows of its files, of its owner, and whether it is attached. What pictures take is counted.
pub fn media(rows: &mut (impl PutRows + ?Sized), id: MediaId, media: &Media) {
    for (table, name, value) in media_rows(id, media) {
        rows.put_name(table, &name, Some(value));
    }
}

/// What the pictures of a user take; of all users without one.
pub fn media_space(rows: &mut (impl PutRows + ?Sized), user: Option<UserId>, space: &MediaSpace) {
    let key = user.map_or(ALL_MEDIA_KEY, |user| user.0.to_be_bytes());
    // There is no row of nothing.
    let row = (*space != MediaSpace::default()).then(|| encode(space));
    rows.put_name(NameTable::MediaSpace, &key, row);
}

/// The key of the row of what the pictures of all users take: no user has this id.
pub(crate) const ALL_MEDIA_KEY: [u8; 4] = u32::MAX.to_be_bytes();

/// Removes the rows of a picture.
pub(crate) fn remove_media(rows: &mut (impl PutRows + ?Sized), id: MediaId, media: &Media) {
    for (table, name, _) in media_rows(id, media) {
        rows.put_name(table, &name, None);
    }
}

/// The rows of a picture.
pub(crate) fn media_rows(id: MediaId, media: &Media) -> Vec<(NameTable, Value, Value)> {
    let key = Value::from_slice(&id.0.to_be_bytes());
    let mut rows = vec![
        (NameTable::Media, key.clone(), encode(media)),
        (NameTable::MediaOf, media_of_key(media.owner, id), Value::new()),
    ];
    if let Some(due) = expiry_of(id, media.used) {
        rows.push((NameTable::Due, due.name(), Value::new()));
    }
    let same = |file: &MediaFile| file.hash == media.original.hash;
    // The preview of a small picture is the same file.
    let preview = media.preview.as_ref().filter(|preview| !same(preview));
    for file in std::iter::once(&media.original).chain(preview) {
        let mut name = Value::from_slice(&file.hash.0);
        name.extend_from_slice(&key);
        rows.push((NameTable::MediaFile, name, Value::new()));
    }
    rows
}

/// A picture with this use is not unattached any more, or since another time.
pub(crate) fn attached(rows: &mut (impl PutRows + ?Sized), id: MediaId, used: MediaUse) {
    if let Some(expiry) = expiry_of(id, used) {
        due(rows, expiry, None);
    }
}

/// The removal of an unattached picture.
fn expiry_of(media: MediaId, used: MediaUse) -> Option<Due> {
    used.expires_ms().map(|at_ms| DueWork::RemoveMedia { media }.at(at_ms))
}

pub(crate) fn media_of_key(owner: UserId, id: MediaId) -> Value {
    let mut bytes = Value::from_slice(&owner.0.to_be_bytes());
    bytes.extend_from_slice(&id.0.to_be_bytes());
    bytes
}
