//! Expected markers.

use feed::{Done, MarkedTimeline, MarkersUpdate, Outcome, Refusal};

use super::feed::Feed;

impl Feed {
    pub(super) fn set_markers(&mut self, stamp: u64, update: &MarkersUpdate) -> Outcome {
        let user = self.resolve(&update.user)?;
        let mut changed = Vec::new();
        for timeline in MarkedTimeline::ALL {
            let Some(update) = update.of(timeline) else { continue };
            let key = (user, timeline);
            let before = self.markers.get(&key);
            if before.is_some_and(|(last_read, ..)| *last_read == update.last_read) {
                continue;
            }
            if before.map(|(_, version, _)| *version) != update.replaces {
                return Err(Refusal::StaleMarker);
            }
            let version = before.map_or(0, |(_, version, _)| version + 1);
            changed.push((key, (update.last_read, version, stamp)));
        }
        self.markers.extend(changed);
        Ok(Done::MarkersSet)
    }
}
