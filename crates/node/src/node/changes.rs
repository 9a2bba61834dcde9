//! Reads of the change feed.

use super::Node;
use crate::changes::{Gap, Kept, Place, Records, Unavailable};

impl Node {
    /// Returns records of the change feed after a place, or from the oldest kept one on, at most `limit`. If there are
    /// none and `next` is at [`Node::changes_end`], the reader has read everything. May block.
    ///
    /// # Errors
    /// [`Unavailable`]
    pub fn changes(&self, after: Option<Place>, limit: usize) -> Result<Records, Unavailable> {
        let kept = self.shared.changes.as_ref().ok_or(Unavailable::Off)?;
        let up_to = self.effects_end();
        match after.filter(|after| after.group > up_to.0) {
            // Another node of the cluster may be ahead of this one.
            Some(next) if self.shared.cluster.is_some() => Ok(Records { items: Vec::new(), next }),
            Some(_) => Err(Unavailable::Gone),
            None => kept.read(after, up_to, limit),
        }
    }

    /// Returns where to continue if the records after a place are [`Unavailable::Gone`]. May block.
    ///
    /// # Errors
    /// [`Unavailable`]
    pub fn changes_gap(&self, after: Option<Place>) -> Result<Gap, Unavailable> {
        let kept = self.shared.changes.as_ref().ok_or(Unavailable::Off)?;
        kept.gap(after, self.effects_end())
    }

    /// Waits until there may be visible records after a place, or reading them is an error.
    pub async fn changes_after(&self, place: Place) {
        let Some(kept) = &self.shared.changes else { return };
        let mut seen = place.before();
        while !kept.has_after(place.before()) {
            self.effects_after(seen).await;
            seen = self.effects_end();
        }
    }

    /// Returns the size of the change feed's files in bytes, and whether it has failed.
    pub(super) fn changes_state(&self) -> (u64, bool) {
        let kept = self.shared.changes.as_deref();
        kept.map_or((0, false), |kept| (Kept::bytes(kept), Kept::has_failed(kept)))
    }

    /// Returns the place after all visible changes.
    #[must_use]
    pub fn changes_end(&self) -> Place {
        Place::after(self.effects_end().0)
    }
}
