//! Describes keys of rows on disk to operators: what the row says, and the ids and names in the key.

use rows::{NameTable, PointTable, SetTable, Table};

use crate::layout::{self, PackedRow};

/// The row of a key.
pub(crate) fn describe(key: &[u8]) -> String {
    let (tag, rest) = key.split_first().unwrap_or((&0, &[]));
    if let Some((space, _, key)) = layout::read_key(key).filter(|_| *tag == layout::KEYS_PREFIX[0])
    {
        return format!("the key \"{}\" in space {}", key.escape_ascii(), space.0);
    }
    if let Some(bucket) = layout::read_bucket(key).filter(|_| *tag == layout::BUCKETS_PREFIX[0]) {
        return format!("bucket {}", bucket.0);
    }
    match Table::of_tag(*tag) {
        Some(Table::Point(table)) => format!("{} {}", of_point(table), numbers(rest).0),
        Some(Table::Set(table)) => of_set_row(table, key, rest),
        Some(Table::Name(table)) => of_name(table, rest),
        None if key == layout::HEAD => "the row that describes the store".to_owned(),
        None if layout::is_owners(key) => "the index of packed lists".to_owned(),
        None => format!("\"{}\"", key.escape_ascii()),
    }
}

fn of_set_row(table: SetTable, key: &[u8], rest: &[u8]) -> String {
    let (what, item) = of_set(table);
    match layout::read_packed(key).filter(|_| table.is_packed()) {
        Some((owner, PackedRow::Chunk(0))) => format!("{what} {owner}"),
        Some((owner, PackedRow::Chunk(low))) => format!("{what} {owner}, from {item} {low} on"),
        Some((owner, PackedRow::Delta(_))) => format!("newest {what} {owner}"),
        None => match numbers(rest) {
            (owner, Some(number)) => format!("{what} {owner}: {item} {number}"),
            (owner, None) => format!("{what} {owner}"),
        },
    }
}

fn of_point(table: PointTable) -> &'static str {
    match table {
        PointTable::User => "user",
        PointTable::Counts => "counts of user",
        PointTable::Post => "post",
        PointTable::Story => "story",
        PointTable::StoryText => "text of story",
        PointTable::Sample => "sample",
        PointTable::BucketOfSpace => "bucket of space",
        PointTable::Account => "account of user",
        PointTable::App => "app",
        PointTable::Grant => "grant",
        PointTable::AppUses => "uses of app",
        PointTable::PostCounts => "counts of post",
        PointTable::PollCounts => "counts of poll",
        PointTable::Inbox => "notifications of user",
        PointTable::Markers => "markers of user",
        PointTable::Note => "note",
    }
}

/// The list, up to the number of its owner; and what its items are.
fn of_set(table: SetTable) -> (&'static str, &'static str) {
    match table {
        SetTable::StoryViews => ("views of story", "user"),
        SetTable::Seen => ("stories seen by user", "story"),
        SetTable::Samples => ("samples of set", "sample"),
        SetTable::OrphanedSpaces => ("spaces to be emptied", "space"),
        SetTable::FreeSpaces => ("free spaces", "space"),
        SetTable::Replies => ("replies to post", "post"),
        SetTable::Boosts => ("boosts of post", "post"),
        SetTable::ErasingUsers => ("users to be erased", "user"),
        SetTable::Following => ("follows of user", "user"),
        SetTable::Followers => ("followers of user", "user"),
        SetTable::AuthorPosts => ("posts of user", "post"),
        SetTable::Mentions => ("mentions of user", "post"),
        SetTable::Friends => ("friends of user", "user"),
        SetTable::AuthorStories => ("stories of user", "story"),
        SetTable::DeletedUsers => ("deletion of user", "item"),
        SetTable::Blocks => ("blocks of user", "user"),
        SetTable::BlockedBy => ("users who block user", "user"),
        SetTable::Mutes => ("mutes of user", "user"),
        SetTable::MutedBy => ("users who mute user", "user"),
        SetTable::Reactions => ("reactions to post", "item"),
        SetTable::Notes => ("notes of user", "user"),
        SetTable::NotedBy => ("notes about user", "user"),
        SetTable::FollowRequests => ("requests to follow user", "user"),
        SetTable::PollVotes => ("votes of poll", "user"),
        SetTable::Votes => ("votes of user", "poll"),
        SetTable::PostLists => ("list of posts", "post"),
        SetTable::OpenReplies => ("post", "reply"),
        SetTable::DirectPosts => ("direct posts of user", "post"),
        SetTable::Requested => ("requests of user", "user"),
        SetTable::LockedUsers => ("lock of user", "item"),
        SetTable::Favourites => ("favourites of user", "stamp"),
        SetTable::Bookmarks => ("bookmarks of user", "stamp"),
        SetTable::Pins => ("pins of user", "stamp"),
        SetTable::Notifications => ("notifications of user", "stamp"),
    }
}

fn of_name(table: NameTable, name: &[u8]) -> String {
    let shown = name.escape_ascii();
    match table {
        NameTable::Handle => format!("the handle \"{shown}\""),
        NameTable::Bucket => format!("the bucket named \"{shown}\""),
        NameTable::SampleSet => format!("the set of samples \"{shown}\""),
        NameTable::SampleLabel => format!("a label of samples, \"{shown}\""),
        NameTable::Idempotency => "the result of a request with an idempotency key".to_owned(),
        NameTable::KeyExpiry => "the expiry of a key".to_owned(),
        NameTable::Sender => format!("the sender \"{shown}\""),
        NameTable::Email => format!("the e-mail address \"{shown}\""),
        NameTable::Invite => "an invite".to_owned(),
        NameTable::GrantSecret => "the hash of a code, token or session".to_owned(),
        NameTable::GrantOf => "a grant of a user or of an app".to_owned(),
        NameTable::UnusedApp => "an app that nobody uses".to_owned(),
        NameTable::Due => "something that is due".to_owned(),
        NameTable::TagPost => format!("a post with the hashtag \"{shown}\""),
        NameTable::AuthorTag => "a hashtag of a post".to_owned(),
        NameTable::FeaturedTag => "a hashtag on a profile".to_owned(),
        NameTable::PostVersions => "what a post said before".to_owned(),
        NameTable::Conversations => "what a user has read of conversations".to_owned(),
        NameTable::FollowOptions => "what a user chose of their follows".to_owned(),
        NameTable::MutedThreads => "the threads that a user has muted".to_owned(),
        NameTable::ConversationPost => "a post of a conversation".to_owned(),
        #[cfg(feature = "next-format")]
        NameTable::Next => "a row of the next format".to_owned(),
        NameTable::Filters => "the filters of a user".to_owned(),
        NameTable::Scheduled => "a scheduled post".to_owned(),
        NameTable::FollowedTag => "a hashtag that a user follows".to_owned(),
        NameTable::List => "a list of a user".to_owned(),
        NameTable::ListMember | NameTable::ListedUser => "a member of a list".to_owned(),
        NameTable::Media => "a picture".to_owned(),
        NameTable::MediaFile => "a file of a picture".to_owned(),
        NameTable::MediaOf => "a picture of a user".to_owned(),
        NameTable::MediaSpace => "what the pictures of a user take".to_owned(),
    }
}

/// The first number of a key, as text, and the second one if there is one.
fn numbers(bytes: &[u8]) -> (String, Option<u64>) {
    let mut numbers = bytes.as_chunks::<8>().0.iter().map(|number| u64::from_be_bytes(*number));
    let first = numbers.next().map_or_else(String::new, |number| number.to_string());
    (first, numbers.next())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_rows_are_described_in_words_of_users() {
        let cases = [
            (layout::point(PointTable::Post, 77).to_vec(), "post 77"),
            (layout::point(PointTable::Counts, 5).to_vec(), "counts of user 5"),
            (layout::chunk(SetTable::Followers, 6, 0).to_vec(), "followers of user 6"),
            (
                layout::chunk(SetTable::Following, 6, 9).to_vec(),
                "follows of user 6, from user 9 on",
            ),
            (layout::delta(SetTable::AuthorPosts, 6, 1).to_vec(), "newest posts of user 6"),
            (layout::set(SetTable::Replies, 8, 9).to_vec(), "replies to post 8: post 9"),
            (layout::name(NameTable::Handle, b"ann").to_vec(), "the handle \"ann\""),
            (layout::HEAD.to_vec(), "the row that describes the store"),
        ];
        for (key, text) in cases {
            assert_eq!(describe(&key), text);
        }
    }
}
