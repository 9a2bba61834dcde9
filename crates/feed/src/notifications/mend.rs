//! Checks notifications and their counts.

use rows::{PointTable, RowsMut, Scan, SetTable, Span, encode};

use crate::mend::{Mend, Rows, at};
use crate::notifications::{BESIDE, NoticeState, Stored};

impl Mend {
    /// Checks the row of a notification, but not its cause.
    pub(crate) fn notification<R: Scan + RowsMut>(
        &mut self,
        step: &mut Rows<'_, R>,
        (owner, id, number): (u64, u64, u64),
    ) {
        let stamp = id & !BESIDE;
        self.counted.last_stamp = self.counted.last_stamp.max(stamp);
        let user = step.user(owner).filter(|user| !step.is_erased(*user));
        let stored = Stored::of_number(number);
        let is_beside = stored.map(Stored::is_beside);
        if user.is_none() || is_beside != Some(id != stamp) {
            step.derived(format!("notification {} of user {owner} is malformed", at(stamp)));
            step.rows.put_member(SetTable::Notifications, owner, id, None);
        } else if id == stamp && step.rows.point(PointTable::NoticeState, owner).is_none() {
            let state = step.recounted(owner, NoticeState::default());
            step.derived(format!("NoticeState {owner}: the row is missing"));
            step.rows.put_point(PointTable::NoticeState, owner, Some(encode(&state)));
        }
    }
}

impl<R: Scan + RowsMut> Rows<'_, R> {
    /// Checks the counts of a user's stored notifications.
    pub(crate) fn notice_state(&mut self, owner: u64, value: &[u8]) {
        let state: NoticeState = rows::decode(value);
        if self.user(owner).is_none_or(|user| self.is_erased(user)) {
            self.derived(format!("NoticeState {owner}: there is no such user"));
            self.rows.put_point(PointTable::NoticeState, owner, None);
            return;
        }
        let wanted = self.recounted(owner, state);
        if wanted != state {
            self.derived(format!(
                "NoticeState {owner}: {} notifications are stored",
                wanted.stored
            ));
            self.rows.put_point(PointTable::NoticeState, owner, Some(encode(&wanted)));
        }
    }

    fn recounted(&self, owner: u64, state: NoticeState) -> NoticeState {
        let span = Span { high: BESIDE - 1, ..Span::ALL };
        let rows = self.rows.members(SetTable::Notifications, owner, span);
        let first = rows.first().map_or(u64::MAX, |(id, _)| *id);
        NoticeState { stored: rows.len() as u32, from: state.from.min(first), ..state }
    }
}
