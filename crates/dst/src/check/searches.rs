//! Comparison of user searches with the model.

use feed::{Handle, UserId};

use crate::run::Run;

impl Run {
    /// Checks searches among all users and among followed users. Checks only the first results, whose handles begin
    /// with the text; similar handles follow.
    pub(super) fn check_search(&mut self, user: u32) {
        let (number, length) = (self.random.below(40), 1 + self.random.index(3));
        let start: String = format!("u{number}").chars().take(length).collect();
        let Ok(handle) = Handle::parse(&start) else { unreachable!("a valid handle") };
        let (facts, model) = (self.node().node().facts(), &self.model.feed);
        let begins = |found: &UserId| model.users[found.0 as usize].handle.starts_with(&start);
        let follows = |found: &u32| model.follows.contains(&(user, *found));
        let mut wanted: Vec<u32> =
            (0..).zip(&model.users).filter(|(_, user)| !user.deleted).map(|(id, _)| id).collect();
        wanted.retain(|id| begins(&UserId(*id)));
        wanted.sort_by_key(|id| &model.users[*id as usize].handle);
        let all = facts.search_users(&handle).take_while(begins).map(|user| user.0);
        assert_eq!(all.collect::<Vec<_>>(), wanted, "users {start}");
        wanted.retain(follows);
        let followed = facts.search_followed(&handle, UserId(user)).take_while(begins);
        let followed: Vec<_> = followed.map(|user| user.0).collect();
        assert_eq!(followed, wanted, "users {start} whom {user} follows");
    }
}
