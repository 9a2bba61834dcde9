//! Commands about lists.

use feed::limits::{LIST_TITLE_CHARS_MAX, LISTS_MAX};
use feed::{
    Command, List, ListChange, ListCommand, ListId, ListReplies, ListTitle, UserId, UserRef,
};

use super::Generator;

impl Generator {
    /// Makes a command about lists. Few users have lists, so that commands find the list that they name.
    pub(super) fn list_command(&mut self) -> Command {
        let user = UserRef::Id(UserId(self.random.below(self.users.min(2)) as u32));
        let list = match self.lists.len() {
            0 => ListId(7),
            len => ListId(self.lists[self.random.index(len)]),
        };
        let change = match self.random.below(12) {
            0 => {
                let replies = *self.random.pick(&ListReplies::ALL);
                ListChange::Create(List { title: self.list_title(), replies })
            }
            1 => {
                let title = self.random.once_in(2).then(|| self.list_title());
                let replies = self.random.once_in(2).then(|| *self.random.pick(&ListReplies::ALL));
                ListChange::Edit { list, title, replies }
            }
            2 if self.lists.len() < LISTS_MAX / 2 && !self.random.once_in(4) => {
                ListChange::Create(List { title: self.list_title(), replies: ListReplies::List })
            }
            2 => ListChange::Delete { list },
            3..6 => ListChange::Remove { list, users: self.members() },
            _ => ListChange::Add { list, users: self.members() },
        };
        Command::List(Box::new(ListCommand { user, change }))
    }

    fn list_title(&mut self) -> ListTitle {
        let text = match self.is_extreme() {
            true => "\u{4e00}".repeat(LIST_TITLE_CHARS_MAX),
            false => format!("l{}", self.nonce()),
        };
        let Ok(title) = ListTitle::parse(&text) else { unreachable!("a valid title") };
        title
    }

    /// Returns users for a list. Usually returns only one, because the owner must follow all of them.
    fn members(&mut self) -> Vec<UserId> {
        let count = if self.random.once_in(4) { self.random.below(4) } else { 1 };
        (0..count).map(|_| UserId(self.random.below(self.users) as u32)).collect()
    }
}
