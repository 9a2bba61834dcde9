//! Polls of posts: options, votes and counts.
//!
//! A poll ends at a time stored in its post. The stamp of a vote decides whether it is in time, so all nodes agree.
//! After the end, commands sent by the node notify the author and the voters, a bounded number of users each.
//!
//! **Invariant:** votes belong to a [`PollId`], and a poll with changed options gets a new id. So no vote counts for an
//! option that the voter did not choose. The old votes are removed later.

pub(crate) mod cost;
pub(crate) mod facts;
pub(crate) mod mend;
pub(crate) mod rules;

use serde::{Deserialize, Serialize};

use crate::limits;
use crate::refusal::Refusal;
use crate::text::fits;

/// Id of a poll: the [`Stamp`](rows::Stamp) of the command that gave the post these options. Apps use the id of the
/// post.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PollId(pub u64);

/// Text of a poll option: 1 to 50 user-perceived characters on one line, trimmed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PollOption(Box<str>);

impl PollOption {
    /// Trims and checks `text`.
    ///
    /// # Errors
    /// [`Refusal::BadPollOption`] if nothing is left, it is too long, or it holds control characters.
    pub fn parse(text: &str) -> Result<Self, Refusal> {
        let text = text.trim();
        let plain = !text.is_empty() && !text.chars().any(char::is_control);
        let fits = fits(text, limits::POLL_OPTION_CHARS_MAX, limits::POLL_OPTION_BYTES_MAX);
        if plain && fits { Ok(Self(text.into())) } else { Err(Refusal::BadPollOption) }
    }

    /// The checked text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Options of a poll: 2 to 4 distinct texts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PollOptions(Vec<PollOption>);

impl PollOptions {
    /// Checks `options`.
    ///
    /// # Errors
    /// [`Refusal::BadPollOptions`] if there are too few or too many, or two are the same; see also
    /// [`PollOption::parse`].
    pub fn parse<'a>(options: impl IntoIterator<Item = &'a str>) -> Result<Self, Refusal> {
        let mut found: Vec<PollOption> = Vec::new();
        for option in options {
            let option = PollOption::parse(option)?;
            if found.len() >= limits::POLL_OPTIONS_MAX || found.contains(&option) {
                return Err(Refusal::BadPollOptions);
            }
            found.push(option);
        }
        match found.len() < limits::POLL_OPTIONS_MIN {
            true => Err(Refusal::BadPollOptions),
            false => Ok(Self(found)),
        }
    }

    /// Options in their order.
    #[must_use]
    pub fn as_slice(&self) -> &[PollOption] {
        &self.0
    }
}

/// Duration of a poll: 5 minutes to a month.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PollTime(u64);

impl PollTime {
    /// Checks a number of seconds.
    ///
    /// # Errors
    /// [`Refusal::BadPollTime`] if it is not 300 to 2,629,746.
    pub fn from_secs(secs: u64) -> Result<Self, Refusal> {
        match (limits::POLL_SECS_MIN..=limits::POLL_SECS_MAX).contains(&secs) {
            true => Ok(Self(secs)),
            false => Err(Refusal::BadPollTime),
        }
    }

    /// Duration in seconds.
    #[must_use]
    pub const fn secs(self) -> u64 {
        self.0
    }

    /// Duration in milliseconds.
    #[must_use]
    pub const fn ms(self) -> u64 {
        self.0 * 1_000
    }
}

/// Poll of a new or edited post.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewPoll {
    /// Options of the poll.
    pub options: PollOptions,
    /// Whether a user may choose several options.
    pub multiple: bool,
    /// Whether the counts of the options are hidden until the end.
    pub hide_totals: bool,
    /// Duration of the poll.
    pub time: PollTime,
}

/// Poll of a post.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Poll {
    /// Id of the poll, to which its votes belong.
    pub id: PollId,
    /// Options of the poll.
    pub options: PollOptions,
    /// Whether a user may choose several options.
    pub multiple: bool,
    /// Whether the counts of the options are hidden until the end.
    pub hide_totals: bool,
    /// End of the poll, in milliseconds since 1970.
    pub ends_ms: u64,
}

impl Poll {
    /// Creates the poll of a post at `now_ms`, in milliseconds since 1970, in place of `old`. If the options are the
    /// same, the votes stay, and a poll that has ended does not begin again, so that each voter is notified once.
    #[must_use]
    pub fn new(id: PollId, new: &NewPoll, now_ms: u64, old: Option<&Self>) -> Self {
        let NewPoll { options, multiple, hide_totals, time } = new.clone();
        let next = Self { id, options, multiple, hide_totals, ends_ms: now_ms + time.ms() };
        let is_same = |old: &&Self| (&old.options, old.multiple) == (&next.options, next.multiple);
        match old.filter(is_same) {
            Some(old) if old.is_over(now_ms) => Self { id: old.id, ends_ms: old.ends_ms, ..next },
            Some(old) => Self { id: old.id, ..next },
            None => next,
        }
    }

    /// Whether the poll has ended at `now_ms`, in milliseconds since 1970.
    #[must_use]
    pub fn is_over(&self, now_ms: u64) -> bool {
        now_ms >= self.ends_ms + 1_000 * u64::from(rows::has_bug("vote-after-end"))
    }
}

/// Chosen options of a user, at least one: bits in the order of the options.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PollChoices(u8);

impl PollChoices {
    /// Creates a choice of these options, counted from 0.
    ///
    /// # Errors
    /// [`Refusal::BadChoice`] if there are no options, or if an index is too high for any poll.
    pub fn new(options: impl IntoIterator<Item = usize>) -> Result<Self, Refusal> {
        let mut bits = 0;
        for option in options {
            if option >= limits::POLL_OPTIONS_MAX {
                return Err(Refusal::BadChoice);
            }
            bits |= 1 << option;
        }
        if bits == 0 { Err(Refusal::BadChoice) } else { Ok(Self(bits)) }
    }

    /// Checks that the choice fits `poll`.
    ///
    /// # Errors
    /// [`Refusal::BadChoice`] if the poll lacks a chosen option, [`Refusal::OneChoice`] if the poll allows only one
    /// choice.
    pub fn check(self, poll: &Poll) -> Result<(), Refusal> {
        if u32::from(self.0) >> poll.options.as_slice().len() != 0 {
            return Err(Refusal::BadChoice);
        }
        match poll.multiple || self.0.count_ones() == 1 {
            true => Ok(()),
            false => Err(Refusal::OneChoice),
        }
    }

    /// Whether the two choices share an option.
    #[must_use]
    pub const fn has_any_of(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Union of the two choices.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether the option with this index is chosen.
    #[must_use]
    pub fn has(self, option: usize) -> bool {
        option < limits::POLL_OPTIONS_MAX && self.0 & 1 << option != 0
    }

    /// Indexes of the chosen options.
    pub fn iter(self) -> impl Iterator<Item = usize> {
        (0..limits::POLL_OPTIONS_MAX).filter(move |option| self.has(*option))
    }

    /// Number of the vote's rows.
    #[must_use]
    pub const fn number(self) -> u64 {
        self.0 as u64
    }

    /// Reverses [`PollChoices::number`]; `None` if the number is invalid.
    #[must_use]
    pub fn of_number(number: u64) -> Option<Self> {
        let bits = u8::try_from(number).ok()?;
        (bits != 0 && bits >> limits::POLL_OPTIONS_MAX == 0).then_some(Self(bits))
    }
}

/// Counts of the votes of a poll.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PollCounts {
    /// Number of users who voted.
    pub voters: u32,
    /// Number of voters who chose each option.
    pub votes: [u32; limits::POLL_OPTIONS_MAX],
}

impl PollCounts {
    /// Counts a vote; `is_first` if it is the user's first in this poll.
    pub(crate) fn add(&mut self, choices: PollChoices, is_first: bool) {
        // An overflow panics, also in release builds.
        self.voters += u32::from(is_first);
        self.chosen(choices).for_each(|votes| *votes += 1);
    }

    /// Uncounts all votes of a user.
    ///
    /// # Panics
    /// If the votes were not counted.
    pub(crate) fn remove(&mut self, choices: PollChoices) {
        self.voters -= 1;
        self.chosen(choices).for_each(|votes| *votes -= 1);
    }

    fn chosen(&mut self, choices: PollChoices) -> impl Iterator<Item = &mut u32> {
        let votes = self.votes.iter_mut().enumerate();
        votes.filter(move |(option, _)| choices.has(*option)).map(|(_, votes)| votes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_poll_has_two_to_four_different_options_of_fifty_characters() {
        let long = "\u{1f600}".repeat(50);
        for (options, good) in [
            (vec!["a", "b"], true),
            (vec![" a ", "b", "c", &*long], true),
            (vec!["a"], false),
            (vec![], false),
            (vec!["a", "a "], false),
            (vec!["a", "b", "c", "d", "e"], false),
            (vec!["a", " "], false),
            (vec!["a", "b\nc"], false),
            (vec!["a", &*"x".repeat(51)], false),
            (vec!["a", &*"e\u{301}\u{301}\u{301}\u{301}".repeat(50)], false),
        ] {
            assert_eq!(PollOptions::parse(options.clone()).is_ok(), good, "{options:?}");
        }
        for (secs, good) in [(299, false), (300, true), (2_629_746, true), (2_629_747, false)] {
            assert_eq!(PollTime::from_secs(secs).is_ok(), good, "{secs}");
        }
        assert!(PollTime::from_secs(u64::MAX).is_err());
    }

    #[test]
    fn choices_are_options_of_the_poll_and_one_unless_it_allows_more() {
        let poll = |options: &[&str], multiple| {
            let options = PollOptions::parse(options.iter().copied()).unwrap();
            Poll { id: PollId(1), options, multiple, hide_totals: false, ends_ms: 0 }
        };
        for (choices, multiple, fits) in [
            (vec![0], false, true),
            (vec![2], false, true),
            (vec![2, 2], false, true),
            (vec![0, 1], false, false),
            (vec![0, 1, 2], true, true),
            (vec![3], true, false),
        ] {
            let choices = PollChoices::new(choices).unwrap();
            let checked = choices.check(&poll(&["a", "b", "c"], multiple));
            assert_eq!(checked.is_ok(), fits, "{choices:?}");
            assert_eq!(PollChoices::of_number(choices.number()), Some(choices));
        }
        assert!(PollChoices::new([]).is_err() && PollChoices::new([4]).is_err());
        assert!(PollChoices::new([usize::MAX]).is_err());
        assert!([0, 16, 256].into_iter().all(|number| PollChoices::of_number(number).is_none()));
    }
}
