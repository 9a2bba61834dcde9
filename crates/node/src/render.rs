//! A post as JSON, the one form in which it leaves the node.

use std::io::Write as _;

use feed::{Facts, Post, PostId, Rows, UserId};
use jiff::Timestamp;

/// Appends `post` as a JSON object. Of constant length for posts of equal text by one author:
/// ids have 18 or 19 digits for decades, times always three decimals.
pub(crate) fn post<R: Rows + ?Sized>(
    facts: Facts<'_, R>,
    id: PostId,
    post: &Post,
    out: &mut Vec<u8>,
) {
    out.extend_from_slice(b"{\"id\":\"");
    number(id.0, out);
    out.extend_from_slice(b"\",\"author\":");
    person(facts, post.author, true, out);
    out.extend_from_slice(b",\"text\":");
    string(post.text.as_str(), out);
    out.extend_from_slice(b",\"created_at\":\"");
    time(id.unix_ms(), out);
    out.extend_from_slice(b"\",\"reply_to\":");
    match post.reply_to {
        Some(user) => person(facts, user, false, out),
        None => out.extend_from_slice(b"null"),
    }
    out.extend_from_slice(b",\"mentions\":[");
    for (index, user) in post.mentions.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        person(facts, *user, false, out);
    }
    out.extend_from_slice(b"]}");
}

/// Names change and handles do not, so only the author, by whose revision a rendering is judged,
/// is shown with the name.
fn person<R: Rows + ?Sized>(facts: Facts<'_, R>, id: UserId, named: bool, out: &mut Vec<u8>) {
    let Some(user) = facts.user(id) else {
        unreachable!("whoever is in a post is registered");
    };
    out.extend_from_slice(b"{\"id\":\"");
    number(id.0.into(), out);
    out.extend_from_slice(b"\",\"handle\":");
    string(user.handle.as_str(), out);
    if named {
        out.extend_from_slice(b",\"name\":");
        string(user.name.as_str(), out);
    }
    out.push(b'}');
}

fn number(number: u64, out: &mut Vec<u8>) {
    let Ok(()) = write!(out, "{number}") else { unreachable!("memory takes bytes") };
}

fn string(text: &str, out: &mut Vec<u8>) {
    let Ok(()) = serde_json::to_writer(out, text) else { unreachable!("memory takes bytes") };
}

/// RFC 3339 with milliseconds, from milliseconds since 1970.
fn time(unix_ms: u64, out: &mut Vec<u8>) {
    let time = i64::try_from(unix_ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
    let Some(time) = time else { unreachable!("41 bits of milliseconds are a time") };
    let Ok(()) = write!(out, "{time:.3}") else { unreachable!("memory takes bytes") };
}
