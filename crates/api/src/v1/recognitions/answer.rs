//! Responses of the recognizer, written as bytes.

use knn::{Bits, K, Neighbor, Samples};

use super::given::Asked;
use crate::page::push_number;

/// Initial capacity for the result of one sample, in bytes.
const ANSWER_BYTES: usize = 256;
/// Additional capacity for each neighbor, in bytes.
const NEIGHBOR_BYTES: usize = 64;
/// Ratio of the maximum size of a response to its initial capacity. Labels have up to 32 bytes, or 64 as JSON, and each
/// neighbor may have a different label.
const LONGEST: usize = 4;

/// Maximum size of the response, in bytes.
pub(super) fn bytes_max(asked: &Asked, k: K) -> usize {
    LONGEST * (ANSWER_BYTES + NEIGHBOR_BYTES * k.count()) * asked.all().len()
}

/// Writes the response: an object for one sample, `{"recognitions":[...]}` for a list.
pub(super) fn answer(samples: &Samples, asked: &Asked, k: K) -> Vec<u8> {
    let one = ANSWER_BYTES + NEIGHBOR_BYTES * k.count();
    let mut out = Vec::with_capacity(one * asked.all().len());
    match asked {
        Asked::One(sample) | Asked::Drawn(sample) => {
            let mut nearest = Vec::new();
            samples.nearest(sample, k, &mut nearest);
            let drawn = matches!(asked, Asked::Drawn(_)).then_some(sample);
            write_one(samples, &nearest, drawn, &mut out);
        }
        Asked::Many(queries) => write_all(samples, queries, k, &mut out),
    }
    out
}

fn write_all(samples: &Samples, queries: &[Bits], k: K, out: &mut Vec<u8>) {
    let mut found = Vec::new();
    samples.nearest_batch(queries, k, &mut found);
    out.extend_from_slice(b"{\"recognitions\":");
    write_list(&found, out, |nearest, out| write_one(samples, nearest, None, out));
    out.push(b'}');
}

/// Appends the result of one sample. `drawn` is the drawing that was found in an image; its bits are new to the client.
fn write_one(samples: &Samples, nearest: &[Neighbor], drawn: Option<&Bits>, out: &mut Vec<u8>) {
    let votes = samples.vote(nearest);
    let Some(winner) = votes.first() else {
        unreachable!("empty sets do not exist");
    };
    out.extend_from_slice(b"{\"label\":");
    push_text(samples.name(winner.label), out);
    out.extend_from_slice(b",\"confidence\":");
    push_share(winner.votes as usize, nearest.len(), out);
    out.extend_from_slice(b",\"votes\":");
    write_list(&votes, out, |tally, out| {
        out.extend_from_slice(b"{\"label\":");
        push_text(samples.name(tally.label), out);
        out.extend_from_slice(b",\"vote_count\":");
        push_number(tally.votes.into(), out);
        out.push(b'}');
    });
    out.extend_from_slice(b",\"neighbors\":");
    write_list(nearest, out, |neighbor, out| {
        out.extend_from_slice(b"{\"id\":\"");
        push_number(neighbor.id, out);
        out.extend_from_slice(b"\",\"label\":");
        push_text(samples.name(neighbor.label), out);
        out.extend_from_slice(b",\"distance\":");
        push_number(neighbor.distance.into(), out);
        out.push(b'}');
    });
    match drawn {
        Some(bits) => out.extend_from_slice(format!(",\"sample\":\"{bits:x}\"}}").as_bytes()),
        None => out.extend_from_slice(b",\"sample\":null}"),
    }
}

fn write_list<T>(items: &[T], out: &mut Vec<u8>, mut write: impl FnMut(&T, &mut Vec<u8>)) {
    out.push(b'[');
    for (place, item) in items.iter().enumerate() {
        if place > 0 {
            out.push(b',');
        }
        write(item, out);
    }
    out.push(b']');
}

/// Appends a label in quotes. Labels contain no control characters.
fn push_text(label: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    for byte in label.bytes() {
        if matches!(byte, b'"' | b'\\') {
            out.push(b'\\');
        }
        out.push(byte);
    }
    out.push(b'"');
}

/// Appends `part / whole` with four decimals.
fn push_share(part: usize, whole: usize, out: &mut Vec<u8>) {
    let share = (part * 10_000 + whole / 2) / whole;
    push_number((share / 10_000) as u64, out);
    let decimals = [1_000, 100, 10, 1].map(|unit| b'0' + (share / unit % 10) as u8);
    out.push(b'.');
    out.extend_from_slice(&decimals);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_have_four_decimals_rounded() {
        for (part, whole, expect) in
            [(15, 15, "1.0000"), (14, 15, "0.9333"), (2, 3, "0.6667"), (1, 100, "0.0100")]
        {
            let mut out = Vec::new();
            push_share(part, whole, &mut out);
            assert_eq!(out, expect.as_bytes(), "{part}/{whole}");
        }
    }

    #[test]
    fn a_response_is_json_for_any_label() {
        let mut samples = Samples::new();
        for (id, label) in (0..).zip(["\"", "\\", "\u{e9} \\\"", "\\u0041"]) {
            samples.push(id, label, &Bits::ZERO);
            let k = K::new(100).unwrap_or(K::DEFAULT);
            let all = answer(&samples, &Asked::Many(vec![Bits::ZERO; 2]), k);
            let one = answer(&samples, &Asked::One(Bits::ZERO), k);
            let [all, one]: [serde_json::Value; 2] =
                [all, one].map(|json| serde_json::from_slice(&json).unwrap());
            assert_eq!(all, serde_json::json!({"recognitions": [one, one]}));
            assert_eq!(one["neighbors"][id as usize]["label"], label);
        }
    }
}
