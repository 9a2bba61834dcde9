//! Expected blocks, mutes, and authors in whom users are not interested.

use feed::{Command, Done, Outcome, Refusal};

use super::{Feed, ms_of};

impl Feed {
    /// Applies a command about users whom a user does not want to see.
    pub(super) fn hide(&mut self, stamp: u64, command: &Command) -> Outcome {
        match command {
            Command::Block { user, other } => {
                let (user, other) = self.two(user, other, Refusal::SelfBlock)?;
                for pair in [(user, other), (other, user)] {
                    self.follows.remove(&pair);
                    self.requests.remove(&pair);
                    self.friends.remove(&pair);
                }
                self.leave_lists();
                self.forget_options();
                self.blocks.insert((user, other));
                Ok(Done::Blocked)
            }
            Command::Unblock { user, other } => {
                let pair = self.two(user, other, Refusal::SelfBlock)?;
                self.blocks.remove(&pair);
                Ok(Done::Unblocked)
            }
            Command::Mute { user, other, mentions, time } => {
                let pair = self.two(user, other, Refusal::SelfMute)?;
                let ends_ms = time.map(|time| ms_of(stamp) + time.ms());
                self.mutes.insert(pair, (*mentions, ends_ms));
                Ok(Done::Muted)
            }
            Command::Unmute { user, other } => {
                let pair = self.two(user, other, Refusal::SelfMute)?;
                self.mutes.remove(&pair);
                Ok(Done::Unmuted)
            }
            Command::NotInterested { user, other, on } => {
                let pair = self.two(user, other, Refusal::SelfNotInterested)?;
                match on {
                    true => self.not_interested.insert(pair),
                    false => self.not_interested.remove(&pair),
                };
                Ok(Done::InterestSet)
            }
            _ => unreachable!("a command of another kind"),
        }
    }

    /// Refuses a relation if one of the users blocks the other. The blocked user gets "not found", and the blocking
    /// user an error that names the block.
    pub(super) fn refuse_blocked(&self, (user, other): (u32, u32)) -> Result<(), Refusal> {
        if self.blocks.contains(&(other, user)) {
            return Err(Refusal::OtherNotFound);
        }
        if self.blocks.contains(&(user, other)) { Err(Refusal::Blocked) } else { Ok(()) }
    }

    pub(crate) fn are_hidden(&self, user: u32, other: u32) -> bool {
        user != other && self.accounts.is_disabled(other)
            || self.blocks.contains(&(user, other))
            || self.blocks.contains(&(other, user))
    }

    /// Whether the timelines of a user exclude another user, because of a mute or because the other's account is
    /// disabled.
    pub(super) fn unwanted(&self, user: u32, other: u32) -> bool {
        self.mutes.contains_key(&(user, other)) || self.accounts.is_disabled(other)
    }
}
