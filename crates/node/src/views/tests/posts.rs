//! Commands of test steps: relations of users, and posts of every visibility.

use feed::accounts::{AccountCommand, AccountState};
use feed::follow_options::FollowWith;
use feed::{Command, Draft, PostText, UserId, UserRef, Visibility};

use super::Step;

/// Returns a post that replies to user `to` or only mentions them, of each visibility in turn; without `to` a public
/// post.
pub(in crate::views) fn new_post(author: UserRef, to: Option<u32>, turn: u64) -> Draft {
    let text = match (to, turn % 3) {
        (Some(to), 0) => format!("@u{to} hello"),
        (Some(to), _) => format!("hello @u{to}"),
        (None, _) => "plain".into(),
    };
    let Ok(text) = PostText::parse(&text) else { panic!("a text") };
    let visibility = to.map_or(Visibility::Public, |_| Visibility::ALL[(turn % 4) as usize]);
    Draft { visibility, ..Draft::new(author, text) }
}

/// Returns the command of a step that changes relations of users.
pub(super) fn relation(step: &Step) -> Option<Command> {
    let id = |user| UserRef::Id(UserId(user));
    Some(match *step {
        Step::DeleteUser(user) => Command::DeleteUser { user: id(user) },
        Step::Follow(user, other, on) => {
            let (user, other) = (id(user), id(other));
            match on {
                true => Command::Follow { user, other },
                false => Command::Unfollow { user, other },
            }
        }
        Step::FollowWith(user, other, boosts) => {
            let (user, other) = (id(user), id(other));
            let with = FollowWith { user, other, boosts: Some(boosts), notify: None };
            Command::FollowWith(Box::new(with))
        }
        Step::Block(user, other, on) => {
            let (user, other) = (id(user), id(other));
            match on {
                true => Command::Block { user, other },
                false => Command::Unblock { user, other },
            }
        }
        Step::Mute(user, other, on) => {
            let (user, other) = (id(user), id(other));
            match on {
                true => Command::Mute { user, other, mentions: true, time: None },
                false => Command::Unmute { user, other },
            }
        }
        Step::Disable(user, on) => {
            let state = if on { AccountState::Disabled } else { AccountState::Active };
            Command::Account(AccountCommand::SetState { user: id(user), state })
        }
        _ => return None,
    })
}
