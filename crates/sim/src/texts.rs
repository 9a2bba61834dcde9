//! Handles, names and post texts, generated from a seed and small word lists.
//!
//! Nothing is stored. The handle and name of a user depend on the seed and the user's number; a text depends on the
//! random generator that is passed in. Handles match `[a-z0-9_]{1,30}`. They are unique for a seed, because the user's
//! number is their only run of digits.

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, RngExt, SeedableRng};

use crate::workload::PostKind;

const ONSETS: &[&str] = &[
    "b", "d", "f", "g", "h", "j", "k", "l", "m", "n", "p", "r", "s", "t", "v", "w", "z", "br",
    "st", "tr",
];
const VOWELS: &[&str] = &["a", "e", "i", "o", "u", "ai", "ea", "io"];
const ENDINGS: &[&str] = &["", "", "n", "l", "r", "s", "ra", "lin", "na"];

const SUBJECTS: &[&str] = &[
    "the morning train",
    "our old kettle",
    "the library cat",
    "a neighbour of mine",
    "the new bakery",
    "this little garden",
    "my left boot",
    "the weather",
    "the whole street",
    "a very small dog",
    "the choir",
    "our night shift",
    "the ferry",
    "somebody's radio",
    "the river path",
];
const VERBS: &[&str] = &[
    "has found",
    "keeps losing",
    "quietly repaired",
    "is looking for",
    "just painted",
    "remembers",
    "will not share",
    "is dreaming of",
    "brought home",
    "has opinions about",
    "traded everything for",
    "waited all day for",
];
const OBJECTS: &[&str] = &[
    "a better umbrella",
    "fresh bread",
    "the second half of the story",
    "three yellow balloons",
    "a quiet corner",
    "last year's map",
    "warm soup",
    "an honest answer",
    "the good chairs",
    "a song about rain",
    "two tickets to the lake",
    "the missing key",
    "a longer summer",
];
const OPENINGS: &[&str] =
    &["Today ", "Once again, ", "No joke: ", "Small news: ", "Since Monday ", "Apparently ", ""];
const CLOSINGS: &[&str] =
    &[".", "!", ", finally.", ", and nobody minds.", " at last.", ". More later."];
const ANSWERS: &[&str] = &[
    "I heard that ",
    "you were right, ",
    "did you know? ",
    "thank you! ",
    "good luck, ",
    "well, ",
];
const ASIDES: &[&str] =
    &["Ask", "With thanks to", "As seen by", "Together with", "As foretold by", "Best regards to"];

/// The handle of a user: a pronounceable name and their number, at most 20 characters.
pub fn handle(seed: u64, number: u32) -> String {
    let mut handle = first_name(seed, number);
    handle.push_str(itoa::Buffer::new().format(number));
    handle
}

/// The display name of a user: the capitalized name at the beginning of their handle.
pub fn display_name(seed: u64, number: u32) -> String {
    let name = first_name(seed, number);
    let mut letters = name.chars();
    letters.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(letters).collect()
}

fn first_name(seed: u64, number: u32) -> String {
    let mut bits = scatter(seed ^ scatter(u64::from(number) + 1));
    let mut pick = |list: &[&'static str]| {
        let at = bits % list.len() as u64;
        bits /= list.len() as u64;
        list.get(at as usize).copied().unwrap_or_default()
    };
    [pick(ONSETS), pick(VOWELS), pick(ONSETS), pick(VOWELS), pick(ENDINGS)].concat()
}

/// Final mixing step of `SplitMix64`, which scatters adjacent numbers.
fn scatter(mut bits: u64) -> u64 {
    bits = bits.wrapping_add(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// Returns the text of a post: a sentence of less than 200 characters, with the handle at the place given by the kind.
/// It contains no character that JSON would escape.
pub fn post_text(rng: &mut impl Rng, kind: PostKind<&str>) -> String {
    let opening = word(rng, OPENINGS);
    let body = [word(rng, SUBJECTS), " ", word(rng, VERBS), " ", word(rng, OBJECTS)].concat();
    let closing = word(rng, CLOSINGS);
    match kind {
        PostKind::Plain => capitalized(&[opening, &body, closing].concat()),
        PostKind::MentionFirst(handle) => {
            ["@", handle, " ", word(rng, ANSWERS), &body, closing].concat()
        }
        PostKind::MentionWithin(handle) => {
            let sentence = capitalized(&[opening, &body].concat());
            let aside = word(rng, ASIDES);
            if rng.random() {
                [&sentence, ". ", aside, " @", handle, "."].concat()
            } else {
                [aside, " @", handle, ": ", opening, &body, closing].concat()
            }
        }
    }
}

/// Returns the text of a post for a seed: see [`post_text`].
pub(crate) fn seeded_post_text(seed: u64, kind: PostKind<&str>) -> String {
    post_text(&mut StdRng::seed_from_u64(seed), kind)
}

fn word(rng: &mut impl Rng, list: &[&'static str]) -> &'static str {
    list.choose(rng).copied().unwrap_or_default()
}

fn capitalized(sentence: &str) -> String {
    let mut letters = sentence.chars();
    letters.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(letters).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn handles_are_valid_and_unique_within_a_seed() {
        let handles: HashSet<String> = (0..50_000).map(|number| handle(7, number)).collect();
        assert_eq!(handles.len(), 50_000);
        let widest = handle(7, u32::MAX);
        for handle in handles.iter().chain([&widest]) {
            assert!((1..=30).contains(&handle.len()), "{handle}");
            assert!(
                handle.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit()),
                "{handle}"
            );
        }
    }

    #[test]
    fn names_depend_on_the_seed_and_the_number_alone() {
        assert_eq!((handle(1, 5), display_name(1, 5)), (handle(1, 5), display_name(1, 5)));
        assert_ne!(handle(1, 5), handle(2, 5));
        assert!(handle(1, 5).starts_with(&display_name(1, 5).to_lowercase()));
    }

    #[test]
    fn a_mention_is_at_the_position_of_its_kind() {
        for seed in 0..500 {
            let plain = seeded_post_text(seed, PostKind::Plain);
            let first = seeded_post_text(seed, PostKind::MentionFirst("ada"));
            let within = seeded_post_text(seed, PostKind::MentionWithin("ada"));
            assert!(!plain.contains('@'), "{plain}");
            assert!(first.starts_with("@ada ") && first.matches('@').count() == 1, "{first}");
            assert!(within.find("@ada").is_some_and(|at| at > 0), "{within}");
            for text in [plain, first, within] {
                assert!(text.len() < 200, "{text}");
                assert_eq!(serde_json::to_string(&text).unwrap(), format!("\"{text}\""));
            }
        }
    }
}
