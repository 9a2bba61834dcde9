//! Notes: the lists of authors, and of users whom notes are about, follow from the texts.

use rows::{PointTable, RowsMut, Scan, SetTable};

use super::Rows;
use crate::ids::UserId;

impl<R: Scan + RowsMut> Rows<'_, R> {
    /// The text of a note, whose two users must exist.
    pub(super) fn note(&mut self, key: u64) {
        let (author, about) = (key >> 32, key & u64::from(u32::MAX));
        let has_rows = |user: UserId| !self.is_gone(user);
        let [author_exists, about_exists] =
            [author, about].map(|user| self.user(user).is_some_and(has_rows));
        if !author_exists || !about_exists {
            self.derived(format!("note of user {author} about {about}: there is no such user"));
            self.put(PointTable::Note, key, None);
            return;
        }
        if self.set(SetTable::Notes, author, about, Some(0))
            | self.set(SetTable::NotedBy, about, author, Some(0))
        {
            self.derived(format!("note of user {author} about {about}: a list lacks it"));
        }
    }

    /// A row of a list, whose note must have a text.
    pub(super) fn noted(&mut self, table: SetTable, owner: u64, item: u64) {
        let (author, about) = match table {
            SetTable::Notes => (owner, item),
            _ => (item, owner),
        };
        let is_id = author.max(about) <= u64::from(u32::MAX);
        let key = author << 32 | about;
        if !is_id || self.rows.point(PointTable::Note, key).is_none() {
            match table {
                SetTable::Notes => self.lost(format!("note of user {owner} about {item}")),
                _ => self.derived(format!("{table:?} {owner}, {item}: there is no such note")),
            }
            self.rows.put_member(table, owner, item, None);
        }
    }
}
