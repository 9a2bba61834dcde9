//! Commands as lines of `/v1/batch`, each appended to a buffer. No text here may need escapes.

use itoa::Buffer;

use crate::texts;

/// Somebody registers.
pub(crate) fn register(seed: u64, number: u32, lines: &mut Vec<u8>) {
    let (handle, name) = (texts::handle(seed, number), texts::display_name(seed, number));
    append(&[r#"{"op":"register","handle":""#, &handle, r#"","name":""#, &name, "\"}\n"], lines);
}

/// A command `op` of two people: `follow`, `befriend`.
pub(crate) fn join(op: &str, person: u32, other: u32, lines: &mut Vec<u8>) {
    let (mut user, mut second) = (Buffer::new(), Buffer::new());
    let (user, other) = (user.format(person), second.format(other));
    append(&[r#"{"op":""#, op, r#"","user":"#, user, r#","other":"#, other, "}\n"], lines);
}

/// Posts a story.
pub(crate) fn post_story(person: u32, text: &str, life_s: u64, lines: &mut Vec<u8>) {
    let (mut user, mut life) = (Buffer::new(), Buffer::new());
    let (user, life) = (user.format(person), life.format(life_s));
    let head = r#"{"op":"post_story","user":"#;
    append(&[head, user, r#","text":""#, text, r#"","ttl_s":"#, life, "}\n"], lines);
}

fn append(parts: &[&str], lines: &mut Vec<u8>) {
    for part in parts {
        lines.extend_from_slice(part.as_bytes());
    }
}
