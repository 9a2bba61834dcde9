//! Markers: up to where a user has read a timeline, so that all apps of the user agree.

use rows::Stamp;
use serde::{Deserialize, Serialize};

use crate::ids::UserRef;

/// A timeline that has a marker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum MarkedTimeline {
    /// The home timeline.
    Home,
    /// The notifications.
    Notifications,
}

impl MarkedTimeline {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Home, Self::Notifications];

    /// `home` or `notifications`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Home => "home",
            Self::Notifications => "notifications",
        }
    }
}

/// Up to where a user has read a timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Marker {
    /// The id of the last item that was read, as an app sent it.
    pub last_read: u64,
    /// Number of changes after the first.
    pub version: u32,
    /// When it was changed.
    pub updated: Stamp,
}

/// The markers of a user.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Markers {
    /// Of the home timeline.
    pub home: Option<Marker>,
    /// Of the notifications.
    pub notifications: Option<Marker>,
}

impl Markers {
    /// The marker of a timeline.
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
    /// The id of the last item that was read.
    pub last_read: u64,
    /// The version that it replaces; `None` if there is no marker. If the marker has another version by now, the
    /// change is refused.
    pub replaces: Option<u32>,
}

/// A change of the markers of a user: of all that are given, or of none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MarkersUpdate {
    /// The user.
    pub user: UserRef,
    /// Of the home timeline.
    pub home: Option<MarkerUpdate>,
    /// Of the notifications.
    pub notifications: Option<MarkerUpdate>,
}

impl MarkersUpdate {
    /// The change of a timeline's marker.
    #[must_use]
    pub fn of(&self, timeline: MarkedTimeline) -> Option<MarkerUpdate> {
        match timeline {
            MarkedTimeline::Home => self.home,
            MarkedTimeline::Notifications => self.notifications,
        }
    }
}
