//! Writes records with their index rows, without reading any row, for commands and for imports.
//!
//! **Invariant:** an import writes a record by the same function as the command that makes it, so that it writes the
//! same rows.

use rows::{NameTable, PointTable, PutRows, SetTable, Value, encode};

use crate::accounts::{Account, Record as _};
use crate::due::Due;
use crate::handle::Handle;
use crate::ids::{PostId, SampleId, SampleSetId, ScheduledId, StoryId, UserId};
use crate::index;
use crate::lists::{List, ListId};
use crate::markers::Markers;
use crate::media::{Media, MediaId, MediaSpace};
use crate::polls::{PollChoices, PollCounts, PollId};
use crate::posts::Post;
use crate::reactions::{PostCounts, Reaction};
use crate::samples::{Sample, SampleSet};
use crate::schedule::ScheduledPost;
use crate::stories::Story;
use crate::text::{Label, PostText, SetName};
use crate::users::{Counts, User};

/// Writes the progress of due work, or with `None` removes its row.
pub fn due(rows: &mut (impl PutRows + ?Sized), due: Due, from: Option<u64>) {
    let row = from.map(|from| if from == 0 { Value::new() } else { encode(&from) });
    rows.put_name(NameTable::Due, &due.name(), row);
}

/// Writes that the rows of a deleted user are to be removed.
pub(crate) fn erasing(rows: &mut (impl PutRows + ?Sized), user: UserId, erasure: Due) {
    rows.put_member(SetTable::ErasingUsers, 0, user.0.into(), Some(erasure.at_ms));
    due(rows, erasure, Some(0));
}

/// Writes a user's profile, without the row of the handle.
pub fn user(rows: &mut (impl PutRows + ?Sized), id: UserId, user: &User) {
    rows.put_point(PointTable::User, id.0.into(), Some(encode(user)));
}

/// Assigns a handle to a user.
pub fn handle(rows: &mut (impl PutRows + ?Sized), handle: &Handle, id: UserId) {
    rows.put_name(NameTable::Handle, handle.as_str().as_bytes(), Some(encode(&id)));
}

/// Marks a user as deleted. The profile must be reduced to handle and time of registration.
pub fn deleted(rows: &mut (impl PutRows + ?Sized), id: UserId) {
    rows.put_member(SetTable::DeletedUsers, id.0.into(), 0, Some(0));
}

/// Writes the account of a user and the row of its e-mail address. Posts of a disabled account are removed from lists
/// later.
pub fn account(rows: &mut (impl PutRows + ?Sized), id: UserId, account: &Account) {
    rows.put_point(PointTable::Account, id.0.into(), Some(account.to_row()));
    index::of_account(id, account).for_each(|row| row.put(rows));
}

/// Writes a user's markers.
pub fn markers(rows: &mut (impl PutRows + ?Sized), id: UserId, markers: Markers) {
    rows.put_point(PointTable::Markers, id.0.into(), Some(encode(&markers)));
}

/// Writes a user's list without its members, or with `None` removes it.
pub fn list(rows: &mut (impl PutRows + ?Sized), user: UserId, id: ListId, list: Option<&List>) {
    rows.put_name(NameTable::List, &list_key(user, id), list.map(encode));
}

/// Adds `other` to a list of `user`, or removes them.
pub fn list_member(
    rows: &mut (impl PutRows + ?Sized),
    user: UserId,
    list: ListId,
    other: UserId,
    is_member: bool,
) {
    index::set(rows, index::of_list_member(user, list, other), is_member);
}

pub(crate) fn list_key(user: UserId, list: ListId) -> Value {
    let mut bytes = Value::from_slice(&user.0.to_be_bytes());
    bytes.extend_from_slice(&list.0.to_be_bytes());
    bytes
}

/// Locks a user, so that others must ask before they follow, or unlocks them.
pub fn locked(rows: &mut (impl PutRows + ?Sized), user: UserId, locked: bool) {
    rows.put_member(SetTable::LockedUsers, user.0.into(), 0, locked.then_some(0));
}

/// Writes a user's counts.
pub fn counts(rows: &mut (impl PutRows + ?Sized), id: UserId, counts: Counts) {
    rows.put_point(PointTable::Counts, id.0.into(), Some(counts.encode()));
}

/// Writes the rows of a reaction other than a boost, which is a [`post`]. Does not count it.
pub fn reaction(
    rows: &mut (impl PutRows + ?Sized),
    (user, post): (UserId, PostId),
    reaction: Reaction,
    stamp: u64,
) {
    let (of_post, of_user) = index::of_reaction((user, post), reaction, stamp);
    index::set(rows, of_user.into_iter().chain([of_post]), true);
}

/// Writes the counts of a post.
pub fn post_counts(rows: &mut (impl PutRows + ?Sized), id: PostId, counts: &PostCounts) {
    rows.put_point(PointTable::PostCounts, id.0, counts.encode());
}

/// Writes a post and its index rows, except the rows of users for whom `has_none` is true, and the end of a poll that
/// is over at `now_ms`. Does not count a boost.
pub fn post(
    rows: &mut (impl PutRows + ?Sized),
    id: PostId,
    post: &Post,
    now_ms: u64,
    has_none: impl Fn(UserId) -> bool,
) {
    rows.put_point(PointTable::Post, id.0, Some(encode(post)));
    index::left_of_post(id, post, now_ms, has_none).for_each(|row| row.put(rows));
}

/// Writes a story, its text and its index rows.
pub fn story(rows: &mut (impl PutRows + ?Sized), id: StoryId, story: &Story, text: &PostText) {
    rows.put_point(PointTable::Story, id.0, Some(encode(story)));
    rows.put_point(PointTable::StoryText, id.0, Some(encode(text)));
    index::of_story(id, story).iter().for_each(|row| row.put(rows));
}

/// Writes the first view of a story by `viewer`, at a time in milliseconds since 1970. Does not count it.
pub fn view(rows: &mut (impl PutRows + ?Sized), id: StoryId, viewer: UserId, at_ms: u64) {
    index::set(rows, index::of_view(id, viewer, at_ms), true);
}

/// Writes a sample of a set. Does not count it.
pub fn sample(rows: &mut (impl PutRows + ?Sized), id: SampleId, sample: &Sample, set: SampleSetId) {
    rows.put_point(PointTable::Sample, id.0, Some(encode(sample)));
    index::of_sample(id, set).put(rows);
}

/// Writes a set of samples, or removes it if it has no samples.
pub fn sample_set(rows: &mut (impl PutRows + ?Sized), name: &SetName, set: SampleSet) {
    let row = (set.samples > 0).then(|| encode(&set));
    rows.put_name(NameTable::SampleSet, name.as_str().as_bytes(), row);
}

/// Writes the number of samples of a set that have this label.
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

/// Writes a picture and its index rows. Does not count its space.
pub fn media(rows: &mut (impl PutRows + ?Sized), id: MediaId, media: &Media) {
    rows.put_name(NameTable::Media, &id.0.to_be_bytes(), Some(encode(media)));
    index::of_media(id, media).iter().for_each(|row| row.put(rows));
}

/// Writes the space used by the pictures of a user, or with `None` of all users.
pub fn media_space(rows: &mut (impl PutRows + ?Sized), user: Option<UserId>, space: &MediaSpace) {
    let key = user.map_or(ALL_MEDIA_KEY, |user| user.0.to_be_bytes());
    // A user without pictures has no row.
    let row = (*space != MediaSpace::default()).then(|| encode(space));
    rows.put_name(NameTable::MediaSpace, &key, row);
}

/// Key of the row of the space used by all pictures: no user has this id.
pub(crate) const ALL_MEDIA_KEY: [u8; 4] = u32::MAX.to_be_bytes();

/// Writes the vote of a user in a poll, or with `None` removes it. Does not count it.
pub fn vote(
    rows: &mut (impl PutRows + ?Sized),
    poll: PollId,
    user: UserId,
    choices: Option<PollChoices>,
) {
    let number = choices.map_or(0, PollChoices::number);
    index::set(rows, index::of_vote(poll, user.0.into(), number), choices.is_some());
}

/// Writes the counts of a poll.
pub fn poll_counts(rows: &mut (impl PutRows + ?Sized), poll: PollId, counts: &PollCounts) {
    let row = (counts.voters > 0).then(|| encode(counts));
    rows.put_point(PointTable::PollCounts, poll.0, row);
}

/// Writes a scheduled post and its due row. Does not reserve its pictures.
pub fn scheduled(
    rows: &mut (impl PutRows + ?Sized),
    user: UserId,
    id: ScheduledId,
    post: &ScheduledPost,
) {
    rows.put_name(NameTable::Scheduled, &scheduled_key(user, id), Some(encode(post)));
    index::of_scheduled(user, id, post).iter().for_each(|row| row.put(rows));
}

pub(crate) fn scheduled_key(user: UserId, id: ScheduledId) -> Value {
    let mut bytes = Value::from_slice(&user.0.to_be_bytes());
    bytes.extend_from_slice(&id.0.to_be_bytes());
    bytes
}
