//! Rendering of posts and stories as JSON. The API writes all other JSON. Posts and stories are rendered here, because
//! a view caches their bytes and invalidates them when a name or a post changes.

use std::io::Write as _;

use feed::media::{Media, MediaId};
use feed::quotes::QuoteState;
use feed::stories::StoryRef;
use feed::{Content, Post, PostId, PostText, UserId};
use jiff::Timestamp;

use super::UserNames;
use crate::pictures::picture_path;

/// Fields from `time` to `language` of a public post without edit, reply, mentions, warning and quote, which is the
/// most frequent case. The cache leaves these bytes out.
pub(crate) const USUAL: &[u8] =
    b",\"edited_at\":null,\"in_reply_to_id\":null,\"reply_to\":null,\"mentions\":[],\
    \"visibility\":\"public\",\"warning\":\"\",\"sensitive\":false,\"quote\":null,\"quote_policy\":\"public\"";

/// Appends `post` as a JSON object; for a boost, the object up to its last field, which is the boosted post. `parent`
/// is the replied-to post if it still exists, and `quote` the state of the post's quote. Returns `None`, with an
/// unfinished object in `out`, if `names` lacks a user of the post. Posts of equal text by one author that are no
/// replies have equal length: ids have 18 or 19 digits for decades, and times have three decimals.
pub(crate) fn post(
    id: PostId,
    post: &Post,
    (parent, quote): (Option<PostId>, QuoteState),
    pictures: &[(MediaId, Media)],
    names: impl Fn(UserId) -> Option<UserNames>,
    out: &mut Vec<u8>,
) -> Option<()> {
    // Names change, handles do not. A rendering is current only while its author's revision is unchanged, so it shows
    // the author's name, but only handles of other users.
    let author = names(post.author)?;
    let Content { text, warning, sensitive, language, media: _ } = &post.content;
    out.extend_from_slice(b"{\"id\":\"");
    number(id.0, out);
    out.extend_from_slice(b"\",\"author\":");
    self::author(post.author, &author, out);
    out.extend_from_slice(b",\"text\":");
    string(text.as_str(), out);
    out.extend_from_slice(b",\"created_at\":\"");
    time(id.unix_ms(), out);
    out.extend_from_slice(b"\",\"edited_at\":");
    match post.edited {
        Some(edited) => {
            out.push(b'"');
            time(edited.unix_ms(), out);
            out.push(b'"');
        }
        None => out.extend_from_slice(b"null"),
    }
    out.extend_from_slice(b",\"in_reply_to_id\":");
    match parent {
        Some(parent) => {
            out.push(b'"');
            number(parent.0, out);
            out.push(b'"');
        }
        None => out.extend_from_slice(b"null"),
    }
    out.extend_from_slice(b",\"reply_to\":");
    match post.reply_to {
        Some(user) => mentioned(user, &names(user)?, out),
        None => out.extend_from_slice(b"null"),
    }
    out.extend_from_slice(b",\"mentions\":[");
    for (index, user) in post.mentions.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        mentioned(*user, &names(*user)?, out);
    }
    out.extend_from_slice(b"],\"visibility\":\"");
    out.extend_from_slice(post.visibility.name().as_bytes());
    out.extend_from_slice(b"\",\"warning\":");
    string(warning.as_str(), out);
    let sensitive: &[u8] = if *sensitive { b"true" } else { b"false" };
    out.extend_from_slice(b",\"sensitive\":");
    out.extend_from_slice(sensitive);
    quotes(post, quote, out);
    out.extend_from_slice(b",\"language\":");
    match language {
        Some(language) => string(language.as_str(), out),
        None => out.extend_from_slice(b"null"),
    }
    out.extend_from_slice(b",\"media\":[");
    for (index, (id, media)) in pictures.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        picture(*id, media, out);
    }
    out.extend_from_slice(match post.boost {
        Some(_) => b"],\"boost_of\":",
        None => b"],\"boost_of\":null}",
    });
    Some(())
}

/// Appends the quote of a post, with this state, and the post's quote policy.
fn quotes(post: &Post, state: QuoteState, out: &mut Vec<u8>) {
    out.extend_from_slice(b",\"quote\":");
    match &post.quote {
        None => out.extend_from_slice(b"null"),
        Some(quote) => {
            out.extend_from_slice(b"{\"id\":");
            if state == QuoteState::Accepted {
                out.push(b'"');
                number(quote.post.0, out);
                out.push(b'"');
            } else {
                out.extend_from_slice(b"null");
            }
            out.extend_from_slice(b",\"state\":\"");
            out.extend_from_slice(state.name().as_bytes());
            out.extend_from_slice(b"\"}");
        }
    }
    out.extend_from_slice(b",\"quote_policy\":\"");
    out.extend_from_slice(post.quote_policy.name().as_bytes());
    out.push(b'"');
}

fn picture(id: MediaId, media: &Media, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"url\":");
    string(&picture_path(id, media, false), out);
    out.extend_from_slice(b",\"preview_url\":");
    string(&picture_path(id, media, true), out);
    out.extend_from_slice(b",\"width\":");
    number(media.original.width.into(), out);
    out.extend_from_slice(b",\"height\":");
    number(media.original.height.into(), out);
    out.extend_from_slice(b",\"description\":");
    string(media.description.as_str(), out);
    out.extend_from_slice(b",\"blurhash\":");
    string(media.blurhash.as_str(), out);
    out.push(b'}');
}

/// Appends a story as a JSON object without the field `seen` and the closing brace.
pub(crate) fn story(story: StoryRef, author: &UserNames, text: &PostText, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"id\":\"");
    number(story.story.0, out);
    out.extend_from_slice(b"\",\"author\":");
    self::author(story.author, author, out);
    out.extend_from_slice(b",\"text\":");
    string(text.as_str(), out);
    out.extend_from_slice(b",\"created_at\":\"");
    time(story.story.unix_ms(), out);
    out.extend_from_slice(b"\",\"expires_at\":\"");
    time(story.expires_ms, out);
    out.push(b'"');
}

/// Appends the end of a story; `seen` says whether the reader has seen it, `None` without a reader.
pub(crate) fn story_end(seen: Option<bool>, out: &mut Vec<u8>) {
    out.extend_from_slice(match seen {
        None => b",\"seen\":null}",
        Some(true) => b",\"seen\":true}",
        Some(false) => b",\"seen\":false}",
    });
}

fn author(id: UserId, names: &UserNames, out: &mut Vec<u8>) {
    open_user(id, names, out);
    out.extend_from_slice(b",\"name\":");
    string(names.name(), out);
    out.push(b'}');
}

fn mentioned(id: UserId, names: &UserNames, out: &mut Vec<u8>) {
    open_user(id, names, out);
    out.push(b'}');
}

fn open_user(id: UserId, names: &UserNames, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"id\":\"");
    number(id.0.into(), out);
    out.extend_from_slice(b"\",\"handle\":");
    string(names.handle(), out);
}

/// Appends a number.
fn number(number: u64, out: &mut Vec<u8>) {
    let Ok(()) = write!(out, "{number}") else { unreachable!("memory takes bytes") };
}

/// Appends a text as a JSON string.
fn string(text: &str, out: &mut Vec<u8>) {
    let Ok(()) = serde_json::to_writer(out, text) else { unreachable!("memory takes bytes") };
}

/// Appends a time, given in milliseconds since 1970, as RFC 3339 with milliseconds.
fn time(unix_ms: u64, out: &mut Vec<u8>) {
    let time = i64::try_from(unix_ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
    let Some(time) = time else { unreachable!("41 bits of milliseconds are a time") };
    let Ok(()) = write!(out, "{time:.3}") else { unreachable!("memory takes bytes") };
}
