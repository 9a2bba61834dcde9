//! Tests of the window with a network that loses, repeats and delays messages.

use proptest::prelude::*;

use super::*;

const NODE: NodeId = NodeId(7);
const EPOCH: u64 = 3;
const SENT_MS: u64 = 4;

fn window(now: Instant, groups: u64) -> Window {
    let mut window = Window::new(NODE, now);
    window.begin(EPOCH);
    (1..=groups).for_each(|number| assert_eq!(window.push(&number.to_le_bytes(), SENT_MS), number));
    window
}

fn message(number: u64) -> Bytes {
    encode(id(number), SENT_MS, &number.to_le_bytes())
}

fn id(number: u64) -> GroupId {
    GroupId { node: NODE, epoch: EPOCH, number }
}

fn arrive(window: &mut Window, number: u64, now: Instant) -> Arrival {
    window.arrived((Position(number), id(number)), &message(number), now)
}

#[test]
fn groups_are_sent_in_order_without_waiting_for_answers() {
    let now = Instant::now();
    let mut window = window(now, 3);
    for number in 1..=3 {
        assert_eq!(window.next_to_send(now), Some(Send::Plain(message(number))));
    }
    assert_eq!(window.next_to_send(now), None);
    assert_eq!(arrive(&mut window, 1, now), Arrival::Own);
    assert_eq!(arrive(&mut window, 1, now), Arrival::Other, "a duplicate");
    assert_eq!((window.len(), window.push(b"x", SENT_MS)), (2, 4));
    assert!(matches!(window.next_to_send(now), Some(Send::Plain(_))));
}

#[test]
fn after_a_restart_the_oldest_is_sent_alone_until_it_is_stored() {
    let now = Instant::now();
    let mut window = window(now, 3);
    while window.next_to_send(now).is_some() {}
    window.restart(now);
    assert_eq!(window.next_to_send(now), Some(Send::Probe(message(1))));
    assert_eq!(window.next_to_send(now), None, "the broker has not answered");
    window.restart(now);
    assert_eq!(window.next_to_send(now), Some(Send::Probe(message(1))), "it failed");
    window.probe_stored(Position(5));
    assert_eq!(window.next_to_send(now), Some(Send::Plain(message(2))));
    assert_eq!(arrive(&mut window, 1, now), Arrival::Own);
    assert_eq!(window.next_to_send(now), Some(Send::Plain(message(3))));
    assert_eq!(window.next_to_send(now), None);
}

#[test]
fn a_group_that_overtakes_a_lost_one_causes_one_restart() {
    let now = Instant::now();
    let mut window = window(now, 4);
    while window.next_to_send(now).is_some() {}
    // Number 1 is lost. The others arrive and do not count; some of them arrive after number 1 was sent again.
    assert_eq!(arrive(&mut window, 2, now), Arrival::Other);
    assert_eq!(window.next_to_send(now), Some(Send::Probe(message(1))));
    for number in 3..=4 {
        assert_eq!(arrive(&mut window, number, now), Arrival::Other);
        assert_eq!(window.next_to_send(now), None);
    }
    assert_eq!(arrive(&mut window, 1, now), Arrival::Own);
    for number in 2..=4 {
        assert_eq!(window.next_to_send(now), Some(Send::Plain(message(number))));
        assert_eq!(arrive(&mut window, number, now), Arrival::Own);
    }
    assert_eq!((window.len(), window.stalls_at()), (0, None));
}

#[test]
fn a_window_is_stalled_if_nothing_comes_back_for_a_second() {
    let start = Instant::now();
    let mut window = window(start, 2);
    assert_eq!(window.stalls_at(), None, "nothing was sent");
    let sent = start + Duration::from_secs(60);
    while window.next_to_send(sent).is_some() {}
    assert_eq!(window.stalls_at(), Some(sent + STALLED_AFTER));
    let back = sent + Duration::from_millis(900);
    assert_eq!(arrive(&mut window, 1, back), Arrival::Own);
    assert_eq!(window.stalls_at(), Some(back + STALLED_AFTER));
    let before = back + STALLED_AFTER - Duration::from_millis(1);
    assert!(!window.restart_if_stalled(before) && window.next_to_send(before).is_none());
    assert!(window.restart_if_stalled(back + STALLED_AFTER));
    assert_eq!(window.next_to_send(back + STALLED_AFTER), Some(Send::Probe(message(2))));
    let back = back + STALLED_AFTER;
    assert_eq!(arrive(&mut window, 2, back), Arrival::Own);
    assert_eq!(window.stalls_at(), None);
}

/// The reader may need a long time until it reaches a group, because its node cannot apply earlier groups.
#[test]
fn a_group_that_the_broker_has_is_not_sent_again() {
    let start = Instant::now();
    let mut window = window(start, 2);
    while window.next_to_send(start).is_some() {}
    let mut now = start + STALLED_AFTER;
    assert!(window.restart_if_stalled(now));
    assert_eq!(window.next_to_send(now), Some(Send::Probe(message(1))));
    window.probe_stored(Position(100));
    assert_eq!(window.next_to_send(now), Some(Send::Plain(message(2))));
    for _ in 0..100 {
        now += STALLED_AFTER;
        assert_eq!((window.stalls_at(), window.restart_if_stalled(now)), (None, false));
        assert_eq!(window.next_to_send(now), None);
    }
    // When the connection is lost, messages that were sent may be lost too.
    window.restart(now);
    assert_eq!(window.next_to_send(now), Some(Send::Plain(message(2))));
    assert_eq!(window.next_to_send(now), None);
    let other = GroupId { node: NodeId(8), ..id(1) };
    let arrived = window.arrived((Position(99), other), &message(1), now);
    assert_eq!((arrived, window.next_to_send(now)), (Arrival::Other, None));
    assert_eq!(window.arrived((Position(100), id(1)), &message(1), now), Arrival::Own);
    assert!(window.restart_if_stalled(now + STALLED_AFTER), "of the next group nothing is known");
    assert_eq!(window.next_to_send(now), Some(Send::Probe(message(2))));
    // The reader passes the position, at which there was another message.
    window.probe_stored(Position(101));
    assert_eq!(window.next_to_send(now), None);
    assert_eq!(window.arrived((Position(101), other), &message(1), now), Arrival::Other);
    assert_eq!(window.next_to_send(now), Some(Send::Probe(message(2))));
}

#[test]
fn what_is_under_way_is_bounded_and_one_long_group_may_be_alone() {
    let now = Instant::now();
    let mut window = window(now, 0);
    assert!(window.has_room(BYTES_MAX + 1));
    window.push(&[1; 4 << 20], SENT_MS);
    assert!(window.has_room((4 << 20) - 2 * HEADER_BYTES));
    assert!(!window.has_room((4 << 20) - 2 * HEADER_BYTES + 1));
    for _ in 1..GROUPS_MAX {
        assert!(window.has_room(1));
        window.push(b"x", SENT_MS);
    }
    assert!(!window.has_room(1));
}

#[test]
fn another_process_in_the_name_of_this_node_is_noticed() {
    let now = Instant::now();
    // The columns are: node, epoch, number, whether the bytes differ, and the expected result.
    for (node, epoch, number, is_changed, expected) in [
        (7, 3, 1, false, Arrival::Own),
        (7, 3, 1, true, Arrival::Superseded),
        (7, 4, 1, false, Arrival::Superseded),
        (7, 3, 3, false, Arrival::Superseded),
        (7, 2, 1, false, Arrival::Other),
        (8, 4, 1, false, Arrival::Other),
    ] {
        let mut window = window(now, 2);
        while window.next_to_send(now).is_some() {}
        let id = GroupId { node: NodeId(node), epoch, number };
        let payload = if is_changed { *b"changed." } else { number.to_le_bytes() };
        let found = window.arrived((Position(9), id), &encode(id, SENT_MS, &payload), now);
        assert_eq!(found, expected, "{id:?} {is_changed}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// For all losses, repetitions and delays, each group counts once and in order by the rule of the crate, and the
    /// window reports the same groups as returned.
    #[test]
    fn each_group_counts_once_and_in_order(faults in proptest::collection::vec(0..10_u8, 1..300)) {
        let mut now = Instant::now();
        let mut window = window(now, 0);
        let (mut counted, mut pushed) = (0, 0);
        let mut held: Vec<u64> = Vec::new();
        let mut faults = faults.into_iter();
        while counted < 40 {
            if pushed < 40 && window.has_room(8) {
                pushed += 1;
                window.push(&u64::to_le_bytes(pushed), SENT_MS);
            }
            let Some(send) = window.next_to_send(now) else {
                now += STALLED_AFTER;
                // Do what the publisher does after a failed probe and for a stalled window.
                window.restart(now);
                continue;
            };
            let (Send::Plain(sent) | Send::Probe(sent)) = &send;
            let id = crate::message::decode(sent).unwrap().unwrap().id;
            let mut arriving = match faults.next() {
                Some(0..=2) => vec![],
                Some(3) => vec![id.number, id.number],
                Some(4) => { held.push(id.number); vec![] }
                Some(5) => [vec![id.number], std::mem::take(&mut held)].concat(),
                _ => vec![id.number],
            };
            if matches!(send, Send::Probe(_)) && !arriving.is_empty() {
                window.probe_stored(Position(id.number));
            }
            for number in arriving.drain(..) {
                let counts = number == counted + 1;
                counted += u64::from(counts);
                let arrival = arrive(&mut window, number, now);
                prop_assert_eq!(arrival == Arrival::Own, counts, "{} after {}", number, counted);
            }
        }
        prop_assert_eq!(window.len(), 0);
    }
}
