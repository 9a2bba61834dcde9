//! Digest of the outcomes of a group, which the log stores with the next group. A start or a restore that applies
//! groups of another build thus detects if its own rules lead to outcomes that differ from the acknowledged ones.
//!
//! Rows are not included: hashing them would cost the writer time for each post, and no client has seen them.

use feed::Outcome;
use kv::KeyAnswer;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Maximum size of an outcome in bytes, as postcard writes it.
const OUTCOME_BYTES_MAX: usize = 64;
/// An odd number whose bits look random.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// Digest of the outcomes of a group so far.
#[derive(Clone, Copy, Default)]
pub(super) struct Outcomes(u64);

impl Outcomes {
    /// Returns the digest; never 0.
    pub(super) fn digest(self) -> u64 {
        self.0.max(1)
    }

    /// Adds the outcome of a command.
    pub(super) fn command(&mut self, outcome: &Outcome) {
        let mut buffer = [0; OUTCOME_BYTES_MAX];
        let Ok(bytes) = postcard::to_slice(outcome, &mut buffer) else {
            unreachable!("an outcome is a few numbers")
        };
        self.0 = xxh3_64_with_seed(bytes, self.0);
    }

    /// Adds the answers to operations on keys, without the rows among them, and without the number of keys that sweeps
    /// removed: no client received that number, and it depends on the secret order of keys.
    pub(super) fn operations(&mut self, answers: &[KeyAnswer]) {
        for answer in answers {
            let (kind, number) = match answer {
                KeyAnswer::Done => (0, 0),
                KeyAnswer::Written { version, created } => (1 + u64::from(*created), version.0),
                KeyAnswer::Number(number) => (3, number.cast_unsigned()),
                KeyAnswer::Row(_) => (4, 0),
                KeyAnswer::Nothing => (5, 0),
                KeyAnswer::Skipped => (6, 0),
                KeyAnswer::Swept { .. } => (7, 0),
                KeyAnswer::Refused(refusal) => (8, *refusal as u64),
            };
            let mixed = (self.0 ^ number).wrapping_mul(SPREAD) ^ kind;
            self.0 = mixed.rotate_left(29);
        }
    }
}

#[cfg(test)]
mod tests {
    use feed::{Done, PostId, Refusal, Stamp};
    use kv::KeyRefusal;

    use super::*;

    #[test]
    fn other_outcomes_and_another_order_have_another_digest() {
        let commands: [&[Outcome]; 6] = [
            &[],
            &[Ok(Done::Followed)],
            &[Ok(Done::Posted(PostId(1)))],
            &[Ok(Done::Posted(PostId(2)))],
            &[Ok(Done::Followed), Err(Refusal::Internal)],
            &[Err(Refusal::Internal), Ok(Done::Followed)],
        ];
        let written = |version, created| KeyAnswer::Written { version: Stamp(version), created };
        let operations: [&[KeyAnswer]; 8] = [
            &[KeyAnswer::Done],
            &[written(1, true)],
            &[written(1, false)],
            &[written(2, false)],
            &[KeyAnswer::Number(-1)],
            &[KeyAnswer::Number(1), KeyAnswer::Done],
            &[KeyAnswer::Done, KeyAnswer::Number(1)],
            &[KeyAnswer::Refused(KeyRefusal::Internal)],
        ];
        let mut digests = Vec::new();
        for (some, others) in commands.iter().flat_map(|some| operations.map(|other| (some, other)))
        {
            let mut outcomes = Outcomes::default();
            some.iter().for_each(|outcome| outcomes.command(outcome));
            outcomes.operations(others);
            digests.push(outcomes.digest());
        }
        let count = digests.len();
        digests.sort_unstable();
        digests.dedup();
        assert_eq!(digests.len(), count);
    }

    /// Logs contain these digests. If they changed, a new version would refuse outcomes that an earlier version has
    /// acknowledged.
    #[test]
    fn digests_of_logs_stay_as_they_are() {
        let mut outcomes = Outcomes::default();
        outcomes.command(&Ok(Done::Posted(PostId(300))));
        outcomes.command(&Err(Refusal::UserNotFound));
        assert_eq!(outcomes.digest(), 14_655_387_838_741_425_373);
        outcomes.operations(&[
            KeyAnswer::Done,
            KeyAnswer::Written { version: Stamp(7), created: true },
            KeyAnswer::Number(-2),
            KeyAnswer::Nothing,
            KeyAnswer::Skipped,
            KeyAnswer::Swept { rows: 5, more: true },
            KeyAnswer::Refused(KeyRefusal::BucketNotFound),
            KeyAnswer::Refused(KeyRefusal::Internal),
        ]);
        assert_eq!(outcomes.digest(), 17_580_966_135_956_673_026);
    }
}
