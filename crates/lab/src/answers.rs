//! Checksum of the answers to clients. Designs with equal answers have equal checksums.

use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Running checksum of the answers to one client, in order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Answers(u64);

impl Answers {
    /// Adds an answer.
    pub(crate) fn add(&mut self, answer: &[u8]) {
        self.0 = xxh3_64_with_seed(answer, self.0.wrapping_add(1));
    }

    /// Combines the answers of all clients, in the order of the clients' numbers, independently of time.
    pub(crate) fn checksum(clients: impl IntoIterator<Item = Self>) -> u64 {
        let mut all = Self::default();
        clients.into_iter().for_each(|client| all.add(&client.0.to_le_bytes()));
        all.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(answers: &[&str]) -> Answers {
        let mut all = Answers::default();
        answers.iter().for_each(|answer| all.add(answer.as_bytes()));
        all
    }

    #[test]
    fn other_answers_have_another_checksum() {
        let same = of(&["a", "b"]);
        assert_eq!(same, of(&["a", "b"]));
        for other in [&["b", "a"][..], &["a"], &["a", "b", ""], &["ab"], &["a", "c"]] {
            assert_ne!(same, of(other), "{other:?}");
            assert_ne!(Answers::checksum([same]), Answers::checksum([of(other)]), "{other:?}");
        }
        assert_ne!(Answers::checksum([same, of(&[])]), Answers::checksum([of(&[]), same]));
    }
}
