//! The follows of users, with their options, requests to follow, and friendships.

use std::io::{self, Write};

use feed::follow_options::OptionsOf;
use feed::{SetTable, Span, UserId};

use super::Export;
use super::lines::{self, Id, Line};

impl<W: Write> Export<'_, W> {
    /// The options of the follows of each user.
    pub(super) fn follow_options(&mut self) -> io::Result<()> {
        let facts = feed::Facts::new(self.store);
        for user in (0..facts.totals().users).map(UserId).filter(|user| facts.exists(*user)) {
            for OptionsOf { other, options } in facts.all_follow_options(user) {
                // One who is deleted is followed until their rows are removed.
                if facts.exists(other) {
                    self.counts.follow_options += 1;
                    let line = lines::FollowOptions {
                        user: user.into(),
                        follows: other.into(),
                        without_boosts: options.hides_boosts,
                        notified_since: options.notified_since.map(|since| Id(since.0)),
                    };
                    self.out.line(&Line::FollowOptions(line))?;
                }
            }
        }
        Ok(())
    }

    /// The follows of each user, requests, and then friends; each friendship once, at the user with the smaller id.
    pub(super) fn relations(&mut self) -> io::Result<()> {
        let facts = feed::Facts::new(self.store);
        let users = || (0..facts.totals().users).map(UserId).filter(|user| facts.exists(*user));
        for user in users() {
            let follows: Vec<_> = facts.following_all(user).into_iter().map(Into::into).collect();
            self.counts.follows += follows.len() as u64;
            if !follows.is_empty() {
                self.out.line(&Line::Follow(lines::Follow { user: user.into(), follows }))?;
            }
        }
        for user in users() {
            let requests = facts.users_in(SetTable::Requested, user, Span::ALL);
            self.counts.requests += requests.len() as u64;
            if !requests.is_empty() {
                let requests = requests.into_iter().map(Into::into).collect();
                self.out.line(&Line::Request(lines::Request { user: user.into(), requests }))?;
            }
        }
        for user in users() {
            let friends = facts.friends_all(user).into_iter().filter(|other| *other > user);
            let friends: Vec<_> = friends.map(Into::into).collect();
            self.counts.friendships += friends.len() as u64;
            if !friends.is_empty() {
                self.out.line(&Line::Friends(lines::Friends { user: user.into(), friends }))?;
            }
        }
        Ok(())
    }
}
