//! Search for names that differ by one mistake from a typed text: a missing, additional or wrong character, or two
//! swapped neighbors.
//!
//! The first character must match: it is rarely mistyped, and without it a search would read all parts of the table. A
//! name is similar if it begins with the corrected text. A mistake in the last character counts only at the end of the
//! name, because otherwise all names that begin with the text but for its last character would be similar.
//!
//! **Invariant:** the number of reads of a search is bounded for any set of names.

/// Length of the shortest text to correct: shorter ones are similar to too many names.
const CHARS_MIN: usize = 4;
/// Maximum number of reads of one name. Corrections start at the end of the text, where fewer names match.
const READS_MAX: usize = 500;

/// Finds at most `limit` names similar to `text` that do not begin with it. `first` returns the first name with a
/// prefix and remaining bytes not below `from`.
pub(crate) fn similar(
    text: &str,
    limit: usize,
    first: impl FnMut(&str, &[u8]) -> Option<String>,
) -> Vec<String> {
    let mut search = Search { text, limit, first, reads: READS_MAX, found: Vec::new() };
    if text.chars().count() >= CHARS_MIN {
        let places = text.char_indices().rev().filter(|(at, _)| *at > 0);
        places.for_each(|(at, typed)| search.mend(at, typed));
    }
    search.found
}

struct Search<'t, F> {
    text: &'t str,
    limit: usize,
    first: F,
    /// Number of reads left.
    reads: usize,
    found: Vec<String>,
}

impl<F: FnMut(&str, &[u8]) -> Option<String>> Search<'_, F> {
    /// Finds names with a correction at this byte offset, where the text has `typed`.
    fn mend(&mut self, at: usize, typed: char) {
        let (head, rest) = self.text.split_at(at);
        let mut after = rest.chars();
        after.next();
        let after = after.as_str();
        let is_last = after.is_empty();
        // The typed character is an additional one.
        if is_last {
            let name = self.first(head, &[]).filter(|name| name == head);
            name.into_iter().for_each(|name| self.add(name));
        } else {
            self.add_all(&[head, after].concat());
        }
        // The typed character is swapped with the next one.
        let mut beyond = after.chars();
        if let Some(next) = beyond.next() {
            self.add_all(&format!("{head}{next}{typed}{}", beyond.as_str()));
        }
        // The character is wrong, or one before it is missing: try the characters that names have here.
        let mut from = Vec::new();
        while let Some(name) = self.first(head, &from) {
            let tail = name.get(head.len()..).unwrap_or_default();
            let Some(other) = tail.chars().next() else {
                from = above(&[]);
                continue;
            };
            from = above_all(other);
            let begins = format!("{head}{other}");
            self.add_all(&[&begins, rest].concat());
            if other == typed {
                continue;
            }
            if !is_last {
                self.add_all(&[&begins, after].concat());
            } else if name == begins {
                self.add(name);
            }
        }
    }

    /// Returns the first name with this prefix and remaining bytes not below `from`, within the limits.
    fn first(&mut self, begins: &str, from: &[u8]) -> Option<String> {
        if self.found.len() >= self.limit {
            return None;
        }
        self.reads = self.reads.checked_sub(1)?;
        (self.first)(begins, from)
    }

    /// Adds all names with this prefix.
    fn add_all(&mut self, begins: &str) {
        let mut from = Vec::new();
        while let Some(name) = self.first(begins, &from) {
            from = above(name.as_bytes().get(begins.len()..).unwrap_or_default());
            self.add(name);
        }
    }

    fn add(&mut self, name: String) {
        if !name.starts_with(self.text) && !self.found.contains(&name) {
            self.found.push(name);
        }
    }
}

/// Lower bound above this remainder of a name, and below all longer ones: no name has the byte 1.
fn above(rest: &[u8]) -> Vec<u8> {
    [rest, &[1]].concat()
}

/// Lower bound above all remainders that begin with this character.
fn above_all(first: char) -> Vec<u8> {
    let mut bytes = [0; 4];
    [first.encode_utf8(&mut bytes).as_bytes(), &[u8::MAX]].concat()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn search(names: &BTreeSet<String>, text: &str, limit: usize) -> (Vec<String>, usize) {
        let mut reads = 0;
        let found = similar(text, limit, |begins, from| {
            reads += 1;
            let low = [begins.as_bytes(), from].concat();
            let first = names.iter().find(|name| name.as_bytes() >= low.as_slice())?;
            first.starts_with(begins).then(|| first.clone())
        });
        (found, reads)
    }

    fn set(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn one_mistake_is_forgiven_but_in_the_first_character() {
        let names = set(&["ada_lovelace", "adam", "gargron", "grace", "größe", "x"]);
        let check = |text: &str, expect: &[&str]| {
            let (mut found, _) = search(&names, text, 10);
            found.sort_unstable();
            assert_eq!(found, expect, "{text}");
        };
        check("ada_lvelace", &["ada_lovelace"]);
        check("ada_loovelace", &["ada_lovelace"]);
        check("ada_lovalace", &["ada_lovelace"]);
        check("ada_loevlace", &["ada_lovelace"]);
        check("ada-lo", &["ada_lovelace"]);
        check("gargrom", &["gargron"]);
        check("gargronn", &["gargron"]);
        check("garrgon", &["gargron"]);
        check("adem", &["adam"]);
        check("adax", &["adam"]);
        check("grösse", &[]);
        check("gröse", &["größe"]);
        check("grace", &[]);
        check("argron", &[]);
        check("ada", &[]);
        check("", &[]);
    }

    /// All corrections of `text`, each with whether a name must end with it.
    fn mended(text: &[char], letters: &[char]) -> Vec<(String, bool)> {
        let mut all = Vec::new();
        let mut add = |chars: Vec<char>, ends| all.push((chars.into_iter().collect(), ends));
        for at in 1..text.len() {
            let is_last = at + 1 == text.len();
            let edit = |from, with: &[char]| [&text[..at], with, &text[from..]].concat();
            add(edit(at + 1, &[]), is_last);
            if !is_last {
                add(edit(at + 2, &[text[at + 1], text[at]]), false);
            }
            for letter in letters {
                add(edit(at, &[*letter]), false);
                add(edit(at + 1, &[*letter]), is_last);
            }
        }
        all
    }

    proptest! {
        #[test]
        fn all_names_with_one_mistake_are_found_and_no_others(
            names in proptest::collection::btree_set("[abü]{1,7}", 0..40),
            text in "[abü]{4,6}",
        ) {
            let chars: Vec<char> = text.chars().collect();
            let mended = mended(&chars, &['a', 'b', 'ü']);
            let is_similar = |name: &&String| {
                !name.starts_with(&text)
                    && mended.iter().any(|(mended, ends)| match ends {
                        true => name == &mended,
                        false => name.starts_with(mended),
                    })
            };
            let expect: BTreeSet<String> = names.iter().filter(is_similar).cloned().collect();
            let (found, _) = search(&names, &text, 100);
            prop_assert_eq!(found.len(), expect.len());
            prop_assert_eq!(found.into_iter().collect::<BTreeSet<_>>(), expect);
        }
    }

    #[test]
    fn reads_and_names_are_bounded() {
        let letters: Vec<char> = ('a'..='z').collect();
        let names = |begins: &str| {
            let two = letters.iter().flat_map(|a| letters.iter().map(move |b| (a, b)));
            two.map(|(a, b)| format!("{begins}{a}{b}rest")).collect::<BTreeSet<_>>()
        };
        let (found, reads) = search(&names("names"), "namesvery", 10);
        assert_eq!(found.len(), 0);
        assert!(reads <= READS_MAX, "{reads}");
        let (found, reads) = search(&names("nam"), "naem", 10);
        assert_eq!(found.len(), 10);
        assert!(reads < 100, "{reads}");
        let many: BTreeSet<String> = ('a'..='\u{800}').map(|c| format!("n{c}")).collect();
        assert_eq!(search(&many, "names", 10).1, READS_MAX);
    }
}
