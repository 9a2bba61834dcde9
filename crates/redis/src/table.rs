//! Table of all commands, and look-up by name.

use std::sync::LazyLock;

use super::command::Spec;
use super::{
    buckets, connection_commands, expiry, keys, scan, server, strings, transactions, values,
};

/// Size of the hash table: a power of 2, several times the number of commands.
const PLACES: usize = 512;

/// All commands, by family.
pub(crate) fn all() -> impl Iterator<Item = &'static Spec> {
    [
        strings::COMMANDS,
        values::COMMANDS,
        keys::COMMANDS,
        expiry::COMMANDS,
        scan::COMMANDS,
        connection_commands::COMMANDS,
        server::COMMANDS,
        transactions::COMMANDS,
        buckets::COMMANDS,
    ]
    .into_iter()
    .flatten()
}

/// Hash table with linear probing.
static TABLE: LazyLock<[Option<&'static Spec>; PLACES]> = LazyLock::new(|| {
    let mut table = [None; PLACES];
    for spec in all() {
        let free = from(place(spec.name.as_bytes())).find(|at| table.get(*at) == Some(&None));
        let Some(entry) = free.and_then(|free| table.get_mut(free)) else {
            unreachable!("there are more places than commands")
        };
        *entry = Some(spec);
    }
    table
});

/// Command with this name, ignoring case.
pub(crate) fn find(name: &[u8]) -> Option<&'static Spec> {
    for at in from(place(name)) {
        let spec = (*TABLE.get(at)?)?;
        if spec.name.as_bytes().eq_ignore_ascii_case(name) {
            return Some(spec);
        }
    }
    None
}

fn from(place: usize) -> impl Iterator<Item = usize> {
    (place..place + PLACES).map(|at| at % PLACES)
}

fn place(name: &[u8]) -> usize {
    let mix = |hash: usize, byte: &u8| hash.wrapping_mul(31) ^ usize::from(byte | 0x20);
    name.iter().take(16).fold(name.len(), mix) % PLACES
}

impl PartialEq for Spec {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::command::{Flag, Run};
    use super::*;

    #[test]
    fn every_command_is_found_by_its_name_in_any_case_and_nothing_else_is() {
        let mut names = BTreeSet::new();
        for spec in all() {
            assert!(names.insert(spec.name), "{} occurs twice", spec.name);
            for name in [spec.name.to_owned(), spec.name.to_uppercase()] {
                assert_eq!(find(name.as_bytes()), Some(spec));
            }
            for name in [format!("{}x", spec.name), spec.name[1..].to_owned()] {
                let known = names.contains(name.as_str()) || all().any(|spec| spec.name == name);
                assert_eq!(find(name.as_bytes()).is_some(), known, "{name}");
            }
        }
        assert!(names.len() * 4 <= PLACES);
        assert_eq!(find(b""), None);
        assert_eq!(find(&[b'x'; 10_000]), None);
    }

    #[test]
    fn flags_of_a_command_fit_how_it_is_executed() {
        for spec in all() {
            let name = spec.name;
            assert_eq!(name, name.to_lowercase());
            assert!(spec.summary.ends_with('.') && !spec.since.is_empty(), "{name}");
            let changes = matches!(spec.run, Run::Change(_));
            assert_eq!(spec.has(Flag::Write), changes || name == "bucket", "{name}");
            assert!(!(spec.has(Flag::Readonly) && spec.has(Flag::Write)), "{name}");
            let (first, last, step) = spec.keys;
            assert!(first >= 0 && (first == 0) == (last == 0) && (first == 0) == (step == 0));
        }
    }
}
