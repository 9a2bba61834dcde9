//! Facts about idempotency keys: the results of their commands.

use rows::{NameTable, Rows, Stamp, Value, decode, encode};

use crate::command::Idempotency;
use crate::done::Outcome;
use crate::facts::{Facts, Txn};
use crate::limits;

impl<R: Rows + ?Sized> Facts<'_, R> {
    /// Content digest and result of the command with this key, if it was applied within the days that keys are kept.
    #[must_use]
    pub fn remembered(
        &self,
        idempotency: &Idempotency,
        stamp: Stamp,
    ) -> Option<([u8; 8], Outcome)> {
        let today = stamp.unix_day();
        let today = today + u32::from(rows::has_bug("forget-yesterday"));
        (today.saturating_sub(limits::IDEMPOTENCY_DAYS)..=today).rev().find_map(|day| {
            let key = idempotency_key(day, &idempotency.key);
            self.rows.name(NameTable::Idempotency, &key).map(|row| decode(&row))
        })
    }
}

impl Txn<'_> {
    /// Stores the result of a command with a key, and removes up to two outdated keys, which bounds the table without a
    /// pause or a clock.
    pub fn remember(&mut self, idempotency: &Idempotency, stamp: Stamp, outcome: Outcome) {
        let key = idempotency_key(stamp.unix_day(), &idempotency.key);
        let row = encode(&(idempotency.content, outcome));
        self.rows.put_name(NameTable::Idempotency, &key, Some(row));
        let keep_from = stamp.unix_day().saturating_sub(limits::IDEMPOTENCY_DAYS);
        for _ in 0..2 {
            if self.rows.totals().idempotency_day >= keep_from {
                return;
            }
            let first = self.rows.first_name(NameTable::Idempotency, &[]);
            match first.filter(|key| key.as_slice() < keep_from.to_be_bytes().as_slice()) {
                Some(key) => self.rows.put_name(NameTable::Idempotency, &key, None),
                None => self.total(|totals| totals.idempotency_day = keep_from),
            }
        }
    }
}

fn idempotency_key(day: u32, key: &[u8; 16]) -> Value {
    let mut bytes = Value::from_slice(&day.to_be_bytes());
    bytes.extend_from_slice(key);
    bytes
}
