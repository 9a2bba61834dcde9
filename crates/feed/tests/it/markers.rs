//! Markers: read positions of users in timelines.

use crate::support::{World, handle, id};
use feed::{
    Command, Done, Marker, MarkerUpdate, Markers, MarkersUpdate, Outcome, Refusal, Stamp, UserId,
    UserRef,
};
use rows::{PointTable, Rows};

type Update = Option<(u64, Option<u32>)>;

fn set(user: UserRef, [home, notifications]: [Update; 2]) -> Command {
    let update =
        |update: Update| update.map(|(last_read, replaces)| MarkerUpdate { last_read, replaces });
    let (home, notifications) = (update(home), update(notifications));
    Command::SetMarkers(Box::new(MarkersUpdate { user, home, notifications }))
}

#[test]
fn a_marker_is_changed_by_whoever_knows_its_version_and_all_or_none_are() {
    let mut world = World::new();
    let stale: Outcome = Err(Refusal::StaleMarker);
    for (update, outcome, home, notifications) in [
        ([Some((7, Some(0))), None], stale, None, None),
        ([Some((7, None)), None], Ok(Done::MarkersSet), Some((7, 0)), None),
        ([Some((8, None)), None], stale, Some((7, 0)), None),
        ([Some((8, Some(0))), Some((1, Some(0)))], stale, Some((7, 0)), None),
        ([Some((8, Some(0))), Some((1, None))], Ok(Done::MarkersSet), Some((8, 1)), Some((1, 0))),
        // A marker may move back, and to its current position.
        ([Some((3, Some(1))), None], Ok(Done::MarkersSet), Some((3, 2)), Some((1, 0))),
        ([Some((3, Some(9))), Some((1, None))], Ok(Done::MarkersSet), Some((3, 2)), Some((1, 0))),
        (
            [None, Some((u64::MAX, Some(0)))],
            Ok(Done::MarkersSet),
            Some((3, 2)),
            Some((u64::MAX, 1)),
        ),
        ([None, None], Ok(Done::MarkersSet), Some((3, 2)), Some((u64::MAX, 1))),
    ] {
        let before = world.facts().markers(UserId(0));
        assert_eq!(world.run(set(handle("ada"), update)), outcome, "{update:?}");
        let Markers { home: h, notifications: n } = world.facts().markers(UserId(0));
        let seen = [h, n].map(|marker| marker.map(|marker| (marker.last_read, marker.version)));
        assert_eq!(seen, [home, notifications], "{update:?}");
        for (before, marker) in [(before.home, h), (before.notifications, n)] {
            let now = world.rows.totals().last_stamp;
            let moved = before != marker;
            assert!(!moved || marker.map(|marker| marker.updated) == now, "{update:?}");
        }
        assert_eq!(world.effects, []);
    }
    assert_eq!(world.facts().markers(UserId(1)), Markers::default(), "others have their own");
    let nobody = set(id(9), [Some((1, None)), None]);
    assert_eq!(world.run(nobody), Err(Refusal::UserNotFound));
}

#[test]
fn versions_end_at_the_largest() {
    let mut world = World::new();
    let last = Marker { last_read: 1, version: u32::MAX, updated: Stamp(1) };
    let row = rows::encode(&Markers { home: Some(last), notifications: None });
    rows::PutRows::put_point(&mut world.rows, PointTable::Markers, 0, Some(row));
    let update = [Some((2, Some(u32::MAX))), None];
    assert_eq!(world.run(set(id(0), update)), Ok(Done::MarkersSet));
    assert_eq!(world.facts().markers(UserId(0)).home.unwrap().version, u32::MAX);
}
