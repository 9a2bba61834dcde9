//! Records of which all that a user or a post has are one row.

use rows::{NameTable, PutRows, encode};

use crate::conversation::ConversationMark;
use crate::filter::Filter;
use crate::follow_options::OptionsOf;
use crate::ids::{PostId, UserId};
use crate::version::PostVersion;

/// All filters of a user.
pub fn filters(rows: &mut (impl PutRows + ?Sized), user: UserId, filters: &[Filter]) {
    let value = (!filters.is_empty()).then(|| encode(&filters));
    rows.put_name(NameTable::Filters, &user.0.to_be_bytes(), value);
}

/// All that is kept of what a post said before it was edited.
pub fn post_versions(rows: &mut (impl PutRows + ?Sized), post: PostId, versions: &[PostVersion]) {
    let value = (!versions.is_empty()).then(|| encode(&versions));
    rows.put_name(NameTable::PostVersions, &post.0.to_be_bytes(), value);
}

/// What a user did with conversations.
pub fn conversation_marks(
    rows: &mut (impl PutRows + ?Sized),
    user: UserId,
    marks: &[ConversationMark],
) {
    let value = (!marks.is_empty()).then(|| encode(&marks));
    rows.put_name(NameTable::Conversations, &user.0.to_be_bytes(), value);
}

/// The options of all follows of a user that are not the default.
pub fn follow_options(rows: &mut (impl PutRows + ?Sized), user: UserId, all: &[OptionsOf]) {
    let value = (!all.is_empty()).then(|| encode(&all));
    rows.put_name(NameTable::FollowOptions, &user.0.to_be_bytes(), value);
}

/// The threads that a user has muted.
pub fn muted_threads(rows: &mut (impl PutRows + ?Sized), user: UserId, threads: &[PostId]) {
    let value = (!threads.is_empty()).then(|| encode(&threads));
    rows.put_name(NameTable::MutedThreads, &user.0.to_be_bytes(), value);
}
