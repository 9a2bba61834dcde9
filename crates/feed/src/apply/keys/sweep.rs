//! Removing rows that nobody can see any more, a bounded piece a command: keys that expired, then
//! keys of spaces that no bucket has.

use super::Keys;
use crate::ids::Space;
use crate::keys::{KeyAnswer, key_hash};
use crate::limits::{SWEEP_ROWS_MAX, SWEEP_SECONDS_MAX};
use crate::rows::Span;

impl Keys<'_, '_> {
    pub(super) fn sweep(&mut self) -> KeyAnswer {
        let mut room = SWEEP_ROWS_MAX;
        let more_expired = self.sweep_expired(&mut room);
        let more_left = self.sweep_left(&mut room);
        KeyAnswer::Swept { rows: SWEEP_ROWS_MAX - room, more: more_expired || more_left }
    }

    /// Walks the seconds of expiry up to the one of this stamp, in which keys may still live.
    fn sweep_expired(&mut self, room: &mut u32) -> bool {
        let now = self.stamp.unix_second();
        let totals = self.txn.facts().totals();
        let mut second = totals.keys_sweep_second;
        let end = now.min(second.saturating_add(SWEEP_SECONDS_MAX));
        while second < end && self.txn.facts().totals().keys_expiring > 0 {
            let limit = *room as usize + 1;
            let dead = self.txn.facts().expiring_keys(second, Span { limit, ..Span::ALL });
            let all = dead.len() < limit;
            for (hash, space) in dead.into_iter().take(*room as usize) {
                self.remove_expired(second, hash, space);
                *room -= 1;
            }
            if !all {
                break;
            }
            second += 1;
        }
        if self.txn.facts().totals().keys_expiring == 0 {
            // Nothing waits anywhere: the seconds until now need no walk.
            second = now;
        }
        self.txn.total(|totals| totals.keys_sweep_second = second);
        second < now
    }

    fn remove_expired(&mut self, second: u64, hash: u64, space: Space) {
        let rows = self.txn.facts().rows_of_keys(space, hash, 1);
        let dead = rows
            .iter()
            .filter(|row| key_hash(space, row.key()) == hash && !row.is_live(self.now_ms));
        let id = self.txn.facts().bucket_of(space);
        for row in dead {
            if let Some((id, bucket)) = id.and_then(|id| Some((id, self.txn.facts().bucket(id)?))) {
                self.txn.remove_key(id, bucket, row, self.stamp);
            }
        }
        // Gone already, unless the row is of a space that was left: that one is swept as a whole.
        self.txn.put_expiring_key(second, hash, space, false);
    }

    /// Removes rows of spaces that no bucket has.
    fn sweep_left(&mut self, room: &mut u32) -> bool {
        while let Some((space, from)) = self.txn.facts().first_left_space() {
            if *room == 0 {
                return true;
            }
            let rows = self.txn.facts().rows_of_keys(space, from, *room as usize);
            for row in &rows {
                self.txn.remove_left_key(row, self.stamp);
            }
            let all = rows.len() < *room as usize;
            *room -= (rows.len() as u32).min(*room);
            let next = rows.last().and_then(|row| key_hash(space, row.key()).checked_add(1));
            self.txn.put_left_space(space, next.filter(|_| !all));
        }
        false
    }
}
