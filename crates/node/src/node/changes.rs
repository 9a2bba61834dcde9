//! Reads of the change feed.

use super::Node;
use crate::changes::{Place, Records, Unavailable, read};

impl Node {
    /// Returns records of the change feed after a place, or from the oldest kept one on, at most `limit`. If there are
    /// none and `next` is at [`Node::changes_end`], the reader has read everything. May block.
    ///
    /// # Errors
    /// [`Unavailable`]
    pub fn changes(&self, after: Option<Place>, limit: usize) -> Result<Records, Unavailable> {
        let dir = self.shared.changes_dir.as_ref().ok_or(Unavailable::Off)?;
        let up_to = self.effects_end();
        match after.filter(|after| after.group > up_to.0) {
            // Another node of the cluster may be ahead of this one.
            Some(next) if self.shared.cluster.is_some() => Ok(Records { items: Vec::new(), next }),
            Some(_) => Err(Unavailable::Gone),
            None => read(dir, after, up_to, limit),
        }
    }

    /// Returns the place after all visible changes.
    #[must_use]
    pub fn changes_end(&self) -> Place {
        Place::after(self.effects_end().0)
    }
}
