//! Commands as lines of `/v1/batch`, each appended to a buffer. Texts must not need JSON escapes.

use itoa::Buffer;

use crate::texts;

/// Appends the command that registers a user.
pub(crate) fn register(seed: u64, number: u32, lines: &mut Vec<u8>) {
    let (handle, name) = (texts::handle(seed, number), texts::display_name(seed, number));
    append(&[r#"{"op":"register","handle":""#, &handle, r#"","name":""#, &name, "\"}\n"], lines);
}

/// Appends the command by which `user` follows all of `others`.
pub(crate) fn follow(user: u32, others: &[u32], lines: &mut Vec<u8>) {
    let mut number = Buffer::new();
    append(&[r#"{"op":"follow","user":"#, number.format(user), r#","others":["#], lines);
    for (place, other) in others.iter().enumerate() {
        append(&[if place == 0 { "" } else { "," }, number.format(*other)], lines);
    }
    lines.extend_from_slice(b"]}\n");
}

/// Appends the command that makes two users friends.
pub(crate) fn befriend(user: u32, other: u32, lines: &mut Vec<u8>) {
    let (mut first, mut second) = (Buffer::new(), Buffer::new());
    let (user, other) = (first.format(user), second.format(other));
    append(&[r#"{"op":"befriend","user":"#, user, r#","other":"#, other, "}\n"], lines);
}

/// Appends the command that posts a story.
pub(crate) fn post_story(user: u32, text: &str, life_s: u64, lines: &mut Vec<u8>) {
    let (mut number, mut life) = (Buffer::new(), Buffer::new());
    let (user, life) = (number.format(user), life.format(life_s));
    let head = r#"{"op":"post_story","user":"#;
    append(&[head, user, r#","text":""#, text, r#"","ttl_s":"#, life, "}\n"], lines);
}

fn append(parts: &[&str], lines: &mut Vec<u8>) {
    for part in parts {
        lines.extend_from_slice(part.as_bytes());
    }
}
