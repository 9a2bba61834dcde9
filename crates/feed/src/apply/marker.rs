//! Moving markers.

use rows::Stamp;

use crate::command::{Done, Outcome};
use crate::facts::Txn;
use crate::marker::{MarkedTimeline, Marker, MarkersUpdate};
use crate::refusal::Refusal;

/// Sets the markers of a user. A marker already at the wanted position is not changed, and its version is not compared.
pub(super) fn set(txn: &mut Txn<'_>, stamp: Stamp, update: &MarkersUpdate) -> Outcome {
    let user = super::resolve(txn, &update.user)?;
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
