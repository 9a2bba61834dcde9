//! Checks relations with a text: the rows of both users follow from the texts.

use rows::{PointTable, RowsMut, Scan, SetTable};

use super::{From, Rows, STEP_ROWS};
use crate::ids::UserId;
use crate::relation::Relation;

impl<R: Scan + RowsMut> Rows<'_, R> {
    /// Adds the rows of texts, whose two users must exist.
    pub(crate) fn texts(
        &mut self,
        (relation, table): (&Relation, PointTable),
        from: u64,
    ) -> Option<From> {
        let (found, next) = self.rows.points_from(table, from, STEP_ROWS);
        for (key, _) in found {
            let [user, other] = [key >> 32, key & u64::from(u32::MAX)].map(|user| self.user(user));
            let is_left = |user: &UserId| !self.is_gone(*user);
            let users = user.filter(is_left).zip(other.filter(is_left));
            let Some((user, other)) = users else {
                self.derived(format!("{table:?} {key}: there is no such user"));
                self.put(table, key, None);
                continue;
            };
            let (user, other) = (user.0.into(), other.0.into());
            if self.set(relation.forward, user, other, Some(0))
                | self.set(relation.backward, other, user, Some(0))
            {
                self.derived(format!(
                    "{table:?} of user {user} about {other}: a list row is missing"
                ));
            }
        }
        next.map(|next| From { place: (next, 0), ..From::default() })
    }

    /// Removes rows without a text.
    pub(crate) fn with_text(
        &mut self,
        (relation, table): (&Relation, SetTable),
        from: (u64, u64),
    ) -> Option<From> {
        let (found, next) = self.rows.members_from(table, from, STEP_ROWS);
        for (owner, item, _) in found {
            let users = u32::try_from(owner).ok().zip(u32::try_from(item).ok());
            let has_text = users.zip(relation.text).is_some_and(|((owner, item), text)| {
                let (user, other) = relation.users(table, UserId(owner), UserId(item));
                self.rows.point(text, Relation::key(user, other)).is_some()
            });
            if !has_text {
                let what = format!("{table:?} {owner}, {item}: there is no such text");
                if table == relation.forward {
                    self.lost(what);
                } else {
                    self.derived(what);
                }
                self.rows.put_member(table, owner, item, None);
            }
        }
        next.map(|place| From { place, ..From::default() })
    }
}
