//! Reads, changes and the check of markers.

use rows::{PointTable, RowsMut, Scan, Stamp, decode};

use crate::done::{Done, Outcome};
use crate::facts::{Facts, Txn};
use crate::ids::UserId;
use crate::markers::{MarkedTimeline, Marker, Markers, MarkersUpdate};
use crate::mend::{Mend, Rows};
use crate::refusal::Refusal;
use crate::users::rules::resolve;
use crate::write;

impl<R: rows::Rows + ?Sized> Facts<'_, R> {
    /// Read positions of a user in timelines.
    #[must_use]
    pub fn markers(&self, user: UserId) -> Markers {
        let row = self.rows.point(PointTable::Markers, user.0.into());
        row.map_or_else(Markers::default, |row| decode(&row))
    }
}

impl Txn<'_> {
    /// Sets the markers of a user.
    pub(crate) fn put_markers(&mut self, user: UserId, markers: Markers) {
        write::markers(self.rows, user, markers);
    }
}

/// Sets the markers of a user. A marker already at the wanted position is not changed, and its version is not compared.
pub(crate) fn set(txn: &mut Txn<'_>, stamp: Stamp, update: &MarkersUpdate) -> Outcome {
    let user = resolve(txn, &update.user)?;
    let before = txn.facts().markers(user);
    let mut markers = before;
    for timeline in MarkedTimeline::ALL {
        let Some(update) = update.of(timeline) else { continue };
        let marker = markers.of_mut(timeline);
        if marker.is_some_and(|marker| marker.last_read == update.last_read) {
            continue;
        }
        if marker.map(|marker| marker.version) != update.replaces {
            return Err(Refusal::StaleMarker);
        }
        let version = marker.map_or(0, |marker| marker.version.saturating_add(1));
        *marker = Some(Marker { last_read: update.last_read, version, updated: stamp });
    }
    if markers != before {
        txn.put_markers(user, markers);
    }
    Ok(Done::MarkersSet)
}

impl Mend {
    /// Checks the markers of a user, who must exist.
    pub(crate) fn markers<R: Scan + RowsMut>(
        &mut self,
        step: &mut Rows<'_, R>,
        key: u64,
        value: &[u8],
    ) {
        let markers: Markers = decode(value);
        let updated = [markers.home, markers.notifications].into_iter().flatten();
        let last = updated.map(|marker| marker.updated.0).max().unwrap_or(0);
        self.counted.last_stamp = self.counted.last_stamp.max(last);
        if step.user(key).is_none_or(|user| step.is_erased(user)) {
            step.derived(format!("Markers {key}: there is no such user"));
            step.put(PointTable::Markers, key, None);
        }
    }
}
