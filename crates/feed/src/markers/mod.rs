//! Markers: the read positions of a user in timelines, shared by all apps of the user.

pub(crate) mod rules;

use rows::Stamp;
use serde::{Deserialize, Serialize};

use crate::ids::UserRef;
use crate::names::names;

/// Timeline with a read position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum MarkedTimeline {
    /// The home timeline.
    Home,
    /// The notifications.
    Notifications,
}

names!(MarkedTimeline {
    Home = "home",
    Notifications = "notifications",
});

/// Read position of a user in a timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Marker {
    /// Id of the last item that was read, as sent by an app.
    pub last_read: u64,
    /// Number of changes since the first.
    pub version: u32,
    /// Stamp of the last change.
    pub updated: Stamp,
}

/// The markers of a user.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Markers {
    /// Marker of the home timeline.
    pub home: Option<Marker>,
    /// Marker of the notifications.
    pub notifications: Option<Marker>,
}

impl Markers {
    /// Marker of a timeline.
    #[must_use]
    pub fn of(&self, timeline: MarkedTimeline) -> Option<Marker> {
        match timeline {
            MarkedTimeline::Home => self.home,
            MarkedTimeline::Notifications => self.notifications,
        }
    }

    pub(crate) fn of_mut(&mut self, timeline: MarkedTimeline) -> &mut Option<Marker> {
        match timeline {
            MarkedTimeline::Home => &mut self.home,
            MarkedTimeline::Notifications => &mut self.notifications,
        }
    }
}

/// A change of one marker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MarkerUpdate {
    /// Id of the last item that was read.
    pub last_read: u64,
    /// Version that the change replaces; `None` if no marker exists. The change is refused if the marker has another
    /// version by now.
    pub replaces: Option<u32>,
}

/// A change of a user's markers, all or nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MarkersUpdate {
    /// The user.
    pub user: UserRef,
    /// Change of the home timeline's marker.
    pub home: Option<MarkerUpdate>,
    /// Change of the notifications' marker.
    pub notifications: Option<MarkerUpdate>,
}

impl MarkersUpdate {
    /// Change of a timeline's marker.
    #[must_use]
    pub fn of(&self, timeline: MarkedTimeline) -> Option<MarkerUpdate> {
        match timeline {
            MarkedTimeline::Home => self.home,
            MarkedTimeline::Notifications => self.notifications,
        }
    }
}
