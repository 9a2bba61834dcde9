//! Reads and changes of markers.

use rows::{PointTable, Rows, Stamp, decode};

use crate::done::{Done, Outcome};
use crate::facts::{Facts, Txn};
use crate::ids::UserId;
use crate::markers::{MarkedTimeline, Marker, Markers, MarkersUpdate};
use crate::refusal::Refusal;
use crate::users::rules::resolve;
use crate::write;

impl<R: Rows + ?Sized> Facts<'_, R> {
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
