//! Crowds: so many users do the same with one post that one removal or notification cannot handle them all.

use feed::{Command, PollChoices, PostId, Reaction, UserId, UserRef, Visibility};
use node::Request;

use super::Generator;
use crate::model::Model;

/// Minimum number of users in runs with crowds. Such a run deletes no users: the number of their remaining rows would
/// change how many others a command notifies.
pub(super) const CROWD: u64 = 90;

impl Generator {
    pub(crate) fn makes_crowd(&mut self) -> bool {
        self.users >= CROWD && self.random.once_in(15)
    }

    /// Makes commands of all users for one submission. First they register; later they all react to a post or vote in
    /// its poll. Then the post may be edited or deleted.
    pub(crate) fn crowd(&mut self, model: &Model) -> Vec<Request> {
        let registers = (model.feed.users.len() as u64) < self.users;
        let newest = model.feed.posts.iter().rev().find(|(_, post)| {
            post.poll.is_some() && post.visibility == Visibility::Public && post.parent.is_none()
        });
        let votes = self.random.once_in(2);
        let Some(post) =
            (if votes { newest.map(|(id, _)| PostId(*id)) } else { Some(self.asked()) })
        else {
            return vec![Request::from(self.new_poll_post(None))];
        };
        let reaction = *self.random.pick(&Reaction::ALL);
        let command = |generator: &mut Self, number| {
            let user = UserRef::Id(UserId(number as u32));
            if registers {
                generator.register_as(number)
            } else if votes {
                let Ok(choices) = PollChoices::new(vec![generator.random.index(2)]) else {
                    unreachable!("a choice")
                };
                Command::Vote { user, post, choices }
            } else {
                Command::React { user, post, reaction, on: true }
            }
        };
        let mut commands: Vec<Command> = (0..self.users).map(|at| command(self, at)).collect();
        match self.random.below(6) {
            _ if registers => {}
            0 => commands.push(Command::DeletePost { post }),
            1 => {
                commands.push(Command::edit(post, self.patch()));
            }
            _ => {}
        }
        commands.into_iter().map(Request::from).collect()
    }
}
