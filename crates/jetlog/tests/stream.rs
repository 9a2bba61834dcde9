//! Tests of the log with real servers: with `nats-server` processes that are killed, stopped and filled up, and with
//! all kinds of wrongly configured streams.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "what fails here is the test")]

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use async_nats::jetstream::stream::{Config, DiscardPolicy, StorageType};
use commitlog::{
    Applied, Arrived, ClusterId, FileName, GroupId, Log as _, NodeId, Position, SharedFiles,
};
use jetlog::{JetLog, JetLogError, JetLogOptions};
use rustix::process::Signal;
use testkit::PATIENCE;
use testkit::nats::{NatsServers, nats};

const CLUSTER: ClusterId = ClusterId(0xc1);
const A: NodeId = NodeId(0xa);
const B: NodeId = NodeId(0xb);
const TIME_MS: u64 = 1_800_000_000_000;

/// Starts a server with a stream; returns it and the options to open it.
fn one_server() -> Option<(NatsServers, JetLogOptions)> {
    let servers = NatsServers::start(1, "")?;
    let options = JetLogOptions { replicas: 1, ..JetLogOptions::new(&servers.urls()) };
    JetLog::create(&options, CLUSTER, Position(0)).unwrap();
    Some((servers, options))
}

/// Starts three servers with a stream of three replicas; returns them and the options to open it.
fn three_servers() -> Option<(NatsServers, JetLogOptions)> {
    let servers = NatsServers::start(3, "")?;
    let options = JetLogOptions::new(&servers.urls());
    // The servers must first elect a leader.
    let start = std::time::Instant::now();
    while let Err(error) = JetLog::create(&options, CLUSTER, Position(0)) {
        assert!(start.elapsed() < PATIENCE, "{error}");
    }
    Some((servers, options))
}

fn open(options: &JetLogOptions, node: NodeId, after: u64) -> JetLog {
    JetLog::open(options, (CLUSTER, node), up_to(after)).unwrap()
}

fn up_to(position: u64) -> Applied {
    Applied { position: Position(position), counted: None }
}

/// Opens a log that may append.
fn begun(options: &JetLogOptions, node: NodeId, epoch: u64) -> JetLog {
    let mut log = open(options, node, 0);
    log.begin(epoch);
    log
}

#[track_caller]
fn next(log: &mut JetLog) -> Arrived {
    log.next(PATIENCE).unwrap().expect("a group arrives")
}

/// Takes groups until `count` of this log's own have come back.
#[track_caller]
fn take_own(log: &mut JetLog, count: usize) -> Counted {
    let (mut counted, mut own) = (Counted::default(), 0);
    while own < count {
        let group = next(log);
        own += usize::from(group.is_own);
        counted.add(&group);
    }
    counted
}

#[track_caller]
fn refused(options: &JetLogOptions, after: u64) -> JetLogError {
    match JetLog::open(options, (CLUSTER, A), up_to(after)) {
        Ok(_) => panic!("it opens"),
        Err(error) => error,
    }
}

/// Sends a request to the servers with the client library.
fn with_jetstream<T>(url: &str, act: impl AsyncFnOnce(async_nats::jetstream::Context) -> T) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let client = async_nats::connect(url.split(',').next().unwrap()).await.unwrap();
        act(async_nats::jetstream::new(client)).await
    })
}

/// Publishes a message as another program would.
fn publish(url: &str, message: Vec<u8>) {
    with_jetstream(url, async |jetstream| {
        jetstream.publish("roost.groups", message.into()).await.unwrap().await.unwrap();
    });
}

/// Changes the configuration of the stream.
fn change(url: &str, change: impl FnOnce(&mut Config)) {
    with_jetstream(url, async |jetstream| {
        let stream = jetstream.get_stream("roost").await.unwrap();
        let mut config = stream.cached_info().config.clone();
        change(&mut config);
        jetstream.update_stream(config).await.unwrap();
    });
}

/// Groups that count by the rule of the crate.
#[derive(Default)]
struct Counted {
    last: BTreeMap<NodeId, (u64, u64)>,
    groups: Vec<(u64, GroupId, Vec<u8>)>,
}

impl Counted {
    fn add(&mut self, group: &Arrived) {
        let GroupId { node, epoch, number } = group.id;
        let last = self.last.entry(node).or_default();
        if (epoch, number) == (last.0, last.1 + 1) || epoch > last.0 && number == 1 {
            *last = (epoch, number);
            self.groups.push((group.position.0, group.id, group.payload.to_vec()));
        }
    }
}

#[test]
fn all_nodes_get_the_groups_of_all_in_one_order() {
    let Some((_servers, options)) = one_server() else { return };
    let (mut a, mut b) = (begun(&options, A, 1), begun(&options, B, 1));
    for round in 0..50_u32 {
        a.append(&round.to_le_bytes(), TIME_MS).unwrap();
        b.append(&vec![7; 1 + 1_000 * round as usize], TIME_MS).unwrap();
    }
    let mut times = Vec::new();
    for position in 1..=100 {
        let (of_a, of_b) = (next(&mut a), next(&mut b));
        assert_eq!(of_a.position, Position(position));
        assert_eq!(of_a.is_own, of_a.id.node == A);
        assert_eq!(of_b.is_own, of_a.id.node == B);
        assert_eq!(of_a, Arrived { is_own: of_a.is_own, ..of_b });
        times.push(of_a.time_ms);
    }
    // The log's time is later than the day on which this test was written.
    assert!(times[0] > 1_790_000_000_000 && times.is_sorted(), "{times:?}");
    assert_eq!((a.under_way(), b.under_way(), a.trouble()), (0, 0, None));
    assert_eq!(a.next(Duration::ZERO).unwrap(), None);
}

#[test]
fn a_log_that_is_opened_again_goes_on_after_a_position() {
    let Some((_servers, options)) = one_server() else { return };
    let mut log = begun(&options, A, 1);
    (1..=5_u8).for_each(|byte| _ = log.append(&[byte], TIME_MS).unwrap());
    take_own(&mut log, 5);
    drop(log);
    let mut log = open(&options, A, 3);
    assert_eq!(log.last_at_open(), Position(5));
    let group = next(&mut log);
    assert_eq!((group.position, &*group.payload, group.is_own), (Position(4), &[4][..], false));
    log.begin(2);
    log.append(&[6], TIME_MS).unwrap();
    assert!(!next(&mut log).is_own);
    let group = next(&mut log);
    let id = GroupId { node: A, epoch: 2, number: 1 };
    assert_eq!((group.position, group.id, group.is_own), (Position(6), id, true));
}

#[test]
fn a_stream_may_begin_after_the_position_of_a_local_log() {
    let Some(servers) = NatsServers::start(1, "") else { return };
    let options = JetLogOptions { replicas: 1, ..JetLogOptions::new(&servers.urls()) };
    JetLog::create(&options, CLUSTER, Position(1_000)).unwrap();
    let mut log = open(&options, A, 1_000);
    log.begin(1);
    log.append(b"x", TIME_MS).unwrap();
    assert_eq!(next(&mut log).position, Position(1_001));
    let error = refused(&options, 999).to_string();
    assert!(error.contains("begins at group 1001, but this node needs those after 999"), "{error}");
}

/// Every group counts once, in the order of each node, and the same on both nodes, while servers are killed.
#[test]
fn groups_count_once_and_in_order_while_servers_are_killed() {
    let Some((mut servers, options)) = three_servers() else { return };
    let mut nodes = [A, B].map(|node| (begun(&options, node, 1), Counted::default()));
    let (groups, mut appended) = (3_000_u32, [0, 0]);
    let mut killed = 0;
    loop {
        for ((log, counted), appended) in nodes.iter_mut().zip(&mut appended) {
            // Append only a few at a time, so that some are pending at every kill.
            for _ in 0..20 {
                if *appended < groups && log.append(&appended.to_le_bytes(), TIME_MS).is_ok() {
                    *appended += 1;
                }
            }
            while let Some(group) = log.next(Duration::from_millis(1)).unwrap() {
                counted.add(&group);
            }
        }
        let done = nodes[0].1.groups.len();
        if killed < 3 && done > 600 * (killed + 1) {
            servers.kill(killed);
            if killed > 0 {
                servers.restart(killed);
            }
            killed += 1;
        }
        if nodes.iter().all(|(_, counted)| counted.groups.len() == 2 * groups as usize) {
            break;
        }
    }
    assert_eq!(killed, 3);
    let [(a, of_a), (_, of_b)] = nodes;
    assert_eq!(a.under_way(), 0);
    assert_eq!(of_a.groups, of_b.groups);
    for node in [A, B] {
        let payloads = of_a.groups.iter().filter(|(_, id, _)| id.node == node);
        let expected = (0..groups).map(|number| number.to_le_bytes().to_vec());
        assert!(payloads.map(|(.., payload)| payload.clone()).eq(expected), "{node}");
    }
}

#[test]
fn a_server_that_hangs_is_left_for_another() {
    let Some((servers, options)) = three_servers() else { return };
    // At first the log knows one address, so it is connected to the server that will hang.
    let first = JetLogOptions { servers: servers.url(0), ..options };
    let mut log = begun(&first, A, 1);
    log.append(b"before", TIME_MS).unwrap();
    assert!(next(&mut log).is_own);
    servers.signal(0, Signal::STOP);
    log.append(b"after", TIME_MS).unwrap();
    take_own(&mut log, 1);
    servers.signal(0, Signal::CONT);
}

#[test]
fn without_servers_groups_wait_within_bounds_and_then_count() {
    let Some((mut servers, options)) = one_server() else { return };
    let mut log = begun(&options, A, 1);
    log.append(b"first", TIME_MS).unwrap();
    assert!(next(&mut log).is_own);
    servers.kill(0);
    let long = vec![1; 100_000];
    let refusal = loop {
        if let Err(error) = log.append(&long, TIME_MS) {
            break error;
        }
    };
    assert!(matches!(refusal, JetLogError::Busy), "{refusal}");
    let under_way = log.under_way();
    assert!((80..=84).contains(&under_way), "{under_way} of 100,000 bytes");
    assert_eq!(log.next(Duration::from_millis(1)).unwrap(), None);
    servers.restart(0);
    let numbers: Vec<u64> = std::iter::repeat_with(|| next(&mut log))
        .filter(|group| group.is_own)
        .map(|group| group.id.number)
        .take(under_way)
        .collect();
    assert_eq!(numbers, (2..2 + under_way as u64).collect::<Vec<_>>());
    log.append(b"room", TIME_MS).unwrap();
}

#[test]
fn a_group_has_at_least_a_byte_and_no_more_than_servers_accept() {
    let Some((_servers, options)) = one_server() else { return };
    let mut log = begun(&options, A, 1);
    let max = log.payload_bytes_max();
    assert_eq!(max, (1 << 20) - 52);
    for bytes in [0, max + 1] {
        let error = log.append(&vec![1; bytes], TIME_MS).unwrap_err();
        assert!(matches!(error, JetLogError::Length { .. }), "{error}");
    }
    log.append(&vec![1; max], TIME_MS).unwrap();
    assert_eq!(next(&mut log).payload.len(), max);
}

#[test]
fn a_full_stream_is_reported_and_groups_wait_until_it_has_room() {
    let Some((servers, options)) = one_server() else { return };
    change(&servers.urls(), |config| config.max_bytes = 5_000);
    let mut log = begun(&options, A, 1);
    (0..10).for_each(|_| _ = log.append(&[1; 1_000], TIME_MS).unwrap());
    let mut counted = Counted::default();
    let full = loop {
        if let Some(group) = log.next(Duration::from_millis(10)).unwrap() {
            counted.add(&group);
        }
        if let Some(trouble) = log.trouble().filter(|trouble| trouble.contains("maximum bytes")) {
            break trouble;
        }
    };
    assert!(full.starts_with("cannot store a group"), "{full}");
    assert!((1..5).contains(&counted.groups.len()));
    change(&servers.urls(), |config| config.max_bytes = -1);
    while counted.groups.len() < 10 {
        counted.add(&next(&mut log));
    }
    assert_eq!((log.under_way(), log.trouble()), (0, None));
}

#[test]
fn a_damaged_message_stops_the_log_with_its_position() {
    let Some((servers, options)) = one_server() else { return };
    let mut log = begun(&options, A, 1);
    log.append(b"payload", TIME_MS).unwrap();
    next(&mut log);
    let group = with_jetstream(&servers.urls(), async |jetstream| {
        let stream = jetstream.get_stream("roost").await.unwrap();
        stream.get_raw_message(1).await.unwrap().payload.to_vec()
    });
    let mut changed = group.clone();
    *changed.last_mut().unwrap() ^= 1;
    publish(&servers.urls(), changed);
    let error = log.next(PATIENCE).unwrap_err().to_string();
    assert_eq!(error, "group 2 of the stream is damaged: it does not match its checksum");
    for stopped in [log.next(Duration::ZERO).err(), log.append(b"x", TIME_MS).err()] {
        assert!(matches!(stopped, Some(JetLogError::Stopped)), "{stopped:?}");
    }
    // Every other node that opens the log fails too.
    let mut other = open(&options, B, 0);
    assert_eq!(next(&mut other).position, Position(1));
    assert!(matches!(other.next(PATIENCE), Err(JetLogError::Damaged { .. })));
}

#[test]
fn a_message_of_a_newer_version_stops_the_log() {
    let Some((servers, options)) = one_server() else { return };
    publish(&servers.urls(), [b"RGRP".as_slice(), &9_u32.to_le_bytes(), &[0; 40]].concat());
    let error = open(&options, A, 0).next(PATIENCE).unwrap_err().to_string();
    let expected = "group 1 of the stream has format 9, and this program reads format 1";
    assert!(error.starts_with(expected), "{error}");
}

#[test]
fn messages_of_other_programs_are_given_as_none() {
    let Some((servers, options)) = one_server() else { return };
    publish(&servers.urls(), b"{\"order\": 1}".to_vec());
    publish(&servers.urls(), Vec::new());
    let mut log = begun(&options, A, 1);
    log.append(b"x", TIME_MS).unwrap();
    for position in 1..=2 {
        let none = next(&mut log);
        assert_eq!((none.position.0, none.id, none.is_own), (position, GroupId::NONE, false));
        assert!(none.payload.is_empty());
    }
    assert!(next(&mut log).is_own);
}

/// The stream assigns positions that a node has applied to other groups, as after the restore of a snapshot.
#[test]
fn a_stream_that_lost_its_end_and_was_continued_is_refused() {
    let Some((servers, options)) = one_server() else { return };
    let mut log = begun(&options, A, 1);
    (0..5).for_each(|_| _ = log.append(b"x", TIME_MS).unwrap());
    let last = std::iter::repeat_with(|| next(&mut log)).take(5).last().unwrap();
    let counted = Some((last.position, last.id));
    let applied = Applied { position: last.position, counted };
    drop(JetLog::open(&options, (CLUSTER, A), applied).unwrap());
    with_jetstream(&servers.urls(), async |jetstream| {
        jetstream.delete_stream("roost").await.unwrap();
    });
    JetLog::create(&options, CLUSTER, Position(0)).unwrap();
    let mut other = begun(&options, B, 1);
    (0..9).for_each(|_| _ = other.append(b"y", TIME_MS).unwrap());
    take_own(&mut other, 9);
    let at_open = JetLog::open(&options, (CLUSTER, A), applied).err().expect("it is refused");
    // The open log also notices this at its next read, unless the stream is then still too short.
    for error in [at_open, log.next(PATIENCE).unwrap_err()] {
        let (text, advice) = (error.to_string(), "join the cluster again with a new directory");
        let expected = "group 5 of the stream is not the one that this node has applied there";
        assert!(text.contains(advice), "{text}");
        assert!(
            text.starts_with(expected) || matches!(error, JetLogError::Shorter { .. }),
            "{text}"
        );
    }
    // The stream no longer has the position, so it cannot be compared.
    with_jetstream(&servers.urls(), async |jetstream| {
        let stream = jetstream.get_stream("roost").await.unwrap();
        stream.purge().sequence(6).await.unwrap();
    });
    drop(JetLog::open(&options, (CLUSTER, A), applied).unwrap());
}

#[test]
fn a_changed_configuration_refuses_changes_until_it_is_changed_back() {
    let Some((servers, options)) = one_server() else { return };
    let mut log = begun(&options, A, 1);
    change(&servers.urls(), |config| config.max_messages = 7);
    wait_until(&mut log, true);
    let trouble = log.trouble().unwrap();
    assert!(trouble.contains("nats stream edit roost --force --max-msgs=-1"), "{trouble}");
    // Groups that are in the stream are still read.
    log.append(b"x", TIME_MS).unwrap();
    assert!(next(&mut log).is_own);
    change(&servers.urls(), |config| config.max_messages = -1);
    wait_until(&mut log, false);
    assert_eq!(log.trouble(), None);
}

/// Waits until the log refuses changes, or accepts them again.
fn wait_until(log: &mut JetLog, refuses: bool) {
    let start = std::time::Instant::now();
    while log.refuses_changes() != refuses {
        assert!(start.elapsed() < PATIENCE, "it happens in time");
        assert_eq!(log.next(Duration::from_millis(10)).unwrap(), None);
    }
}

#[test]
fn a_stream_that_lacks_groups_is_refused() {
    let Some((servers, options)) = one_server() else { return };
    let mut log = begun(&options, A, 1);
    (0..5).for_each(|_| _ = log.append(b"x", TIME_MS).unwrap());
    take_own(&mut log, 5);
    let error = refused(&options, 6).to_string();
    assert!(error.contains("ends at group 5, but this node has applied group 6"), "{error}");
    with_jetstream(&servers.urls(), async |jetstream| {
        let stream = jetstream.get_stream("roost").await.unwrap();
        stream.purge().sequence(4).await.unwrap();
    });
    let error = refused(&options, 2).to_string();
    assert!(error.contains("begins at group 4, but this node needs those after 2"), "{error}");
    let mut log = open(&options, A, 3);
    assert_eq!(next(&mut log).position, Position(4));
}

#[test]
fn a_trimmed_stream_begins_later() {
    let Some((_servers, options)) = one_server() else { return };
    let mut log = begun(&options, A, 1);
    (0..5).for_each(|_| _ = log.append(b"x", TIME_MS).unwrap());
    take_own(&mut log, 5);
    log.trim(Position(3));
    let start = std::time::Instant::now();
    let error = loop {
        match JetLog::open(&options, (CLUSTER, B), up_to(2)) {
            Ok(_) => assert!(start.elapsed() < PATIENCE, "it is trimmed in time"),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, JetLogError::StartsAfter { first: Position(4), .. }), "{error}");
    assert_eq!(next(&mut open(&options, B, 3)).position, Position(4));
    log.append(b"y", TIME_MS).unwrap();
    take_own(&mut log, 1);
}

/// The stream forbids the removal of messages in the middle. To make a gap, the reader is paused while the groups that
/// it lacks are removed.
#[test]
fn a_gap_stops_the_log_with_its_position() {
    let Some((servers, options)) = one_server() else { return };
    let (mut log, mut slow) = (begun(&options, A, 1), open(&options, B, 0));
    for _ in 0..60 {
        log.append(&[1; 1_000_000], TIME_MS).unwrap();
        assert!(next(&mut log).is_own);
    }
    with_jetstream(&servers.urls(), async |jetstream| {
        let stream = jetstream.get_stream("roost").await.unwrap();
        stream.purge().await.unwrap();
    });
    log.append(b"after", TIME_MS).unwrap();
    let mut last = 0;
    let error = loop {
        match slow.next(PATIENCE) {
            Ok(group) => {
                let position = group.expect("there is more").position.0;
                assert_eq!(position, last + 1);
                last = position;
            }
            Err(error) => break error,
        }
    };
    assert!((10..60).contains(&last), "{last}");
    match error {
        JetLogError::Missing { position } => assert_eq!(position.0, last + 1),
        JetLogError::StartsAfter { first, from } => assert_eq!((first.0, from.0), (61, last)),
        error => panic!("{error}"),
    }
}

#[test]
fn a_stream_that_is_made_again_while_it_is_read_stops_the_log() {
    let Some((servers, options)) = one_server() else { return };
    let mut log = begun(&options, A, 1);
    (0..5).for_each(|_| _ = log.append(b"x", TIME_MS).unwrap());
    take_own(&mut log, 5);
    with_jetstream(&servers.urls(), async |jetstream| {
        jetstream.delete_stream("roost").await.unwrap();
    });
    JetLog::create(&options, CLUSTER, Position(0)).unwrap();
    let error = log.next(PATIENCE).unwrap_err();
    assert!(matches!(error, JetLogError::Shorter { .. }), "{error}");
}

#[test]
fn two_processes_as_one_node_do_not_both_go_on() {
    let Some((_servers, options)) = one_server() else { return };
    let (mut old, mut new) = (begun(&options, A, 1), begun(&options, A, 2));
    old.append(b"old", TIME_MS).unwrap();
    assert!(next(&mut old).is_own);
    new.append(b"new", TIME_MS).unwrap();
    assert!(!next(&mut new).is_own);
    assert!(next(&mut new).is_own);
    let error = old.next(PATIENCE).unwrap_err().to_string();
    assert!(error.starts_with("another process writes as this node (group 2)"), "{error}");
}

#[test]
fn a_stream_that_could_lose_changes_is_refused_and_the_command_mends_it() {
    type Change = fn(&mut Config);
    let wrong: [(&str, Change); 4] = [
        ("old instead of discard new", |config| config.discard = DiscardPolicy::Old),
        ("no limit of age", |config| config.max_age = Duration::from_secs(3_600)),
        ("no limit of messages", |config| config.max_messages = 7),
        ("orders instead of subjects", |config| config.subjects = vec!["orders".into()]),
    ];
    let Some((servers, options)) = one_server() else { return };
    for (expected, wrong) in wrong {
        change(&servers.urls(), wrong);
        let error = refused(&options, 0);
        assert!(error.to_string().contains(expected), "{error}");
        let JetLogError::Config { advice, .. } = error else { panic!("{error}") };
        mend(&servers, &advice, &options);
        with_jetstream(&servers.urls(), async |jetstream| {
            jetstream.delete_stream("roost").await.unwrap();
        });
        JetLog::create(&options, CLUSTER, Position(0)).unwrap();
    }
}

#[test]
fn a_stream_in_memory_or_with_one_replica_is_refused() {
    let Some((servers, options)) = three_servers() else { return };
    change(&servers.urls(), |config| config.num_replicas = 1);
    let error = refused(&options, 0);
    assert!(error.to_string().contains("1 instead of 3 replicas or more"), "{error}");
    let JetLogError::Config { advice, .. } = error else { panic!("{error}") };
    mend(&servers, &advice, &options);
    with_jetstream(&servers.urls(), async |jetstream| {
        let stream = jetstream.get_stream("roost").await.unwrap();
        let mut config = stream.cached_info().config.clone();
        config.storage = StorageType::Memory;
        jetstream.delete_stream("roost").await.unwrap();
        jetstream.create_stream(config).await.unwrap();
    });
    let error = refused(&options, 0);
    assert!(error.to_string().contains("memory instead of storage file"), "{error}");
    assert!(error.to_string().contains("that cannot be changed"), "{error}");
    assert!(!error.to_string().contains("stream rm"), "{error}");
}

/// Runs the command that an error advises. After that, the stream can be opened and written.
#[track_caller]
fn mend(servers: &NatsServers, advice: &str, options: &JetLogOptions) {
    let command = advice.strip_prefix("change it back with: nats ");
    let words = command.expect("it is a command of nats").split(' ');
    if nats(&servers.url(0), words).is_none() {
        return;
    }
    let mut log = begun(options, A, 1);
    log.append(b"x", TIME_MS).unwrap();
    assert!(next(&mut log).is_own);
}

#[test]
fn streams_of_other_clusters_and_products_are_refused() {
    let Some((servers, options)) = one_server() else { return };
    let other = JetLog::open(&options, (ClusterId(7), A), up_to(0)).err().unwrap().to_string();
    assert!(other.contains("belongs to cluster 000000000000000000000000000000c1"), "{other}");
    let exists = JetLog::create(&options, ClusterId(7), Position(0)).unwrap_err().to_string();
    assert!(exists.contains("already in use"), "{exists}");
    let missing = JetLogOptions { stream: "feed".into(), ..options.clone() };
    let error = refused(&missing, 0);
    assert!(error.to_string().contains("no stream `feed`"), "{error}");
    assert!(matches!(JetLog::cluster(&missing), Err(JetLogError::NoStream { .. })));
    JetLog::create(&missing, CLUSTER, Position(0)).unwrap();
    assert_eq!(JetLog::cluster(&missing).unwrap(), CLUSTER);
    drop(open(&missing, A, 0));
    with_jetstream(&servers.urls(), async |jetstream| {
        let subjects = vec!["orders".into()];
        let config = Config { name: "ORDERS".into(), subjects, ..Config::default() };
        jetstream.create_stream(config).await.unwrap();
    });
    let orders = JetLogOptions { stream: "ORDERS".into(), ..options };
    let error = refused(&orders, 0).to_string();
    assert_eq!(error, "the stream `ORDERS` was not made for roost: use another name");
}

#[test]
fn servers_that_cannot_be_reached_are_named() {
    let Some((mut servers, options)) = one_server() else { return };
    servers.kill(0);
    let address = servers.url(0).replace("nats://", "");
    let error = refused(&options, 0).to_string();
    assert!(error.starts_with(&format!("no NATS server can be reached at {address} (")), "{error}");
    let misspelt = JetLogOptions::new("nats://roost-log.invalid:4222");
    let error = refused(&misspelt, 0).to_string();
    assert!(error.contains("can be reached at roost-log.invalid:4222"), "{error}");
}

#[test]
fn wrong_credentials_are_refused() {
    let users = "authorization { user: roost, password: secret }\n";
    let Some(servers) = NatsServers::start(1, users) else { return };
    let with = |user: &str| {
        let servers = servers.urls().replace("nats://", &format!("nats://{user}"));
        JetLogOptions { replicas: 1, ..JetLogOptions::new(&servers) }
    };
    JetLog::create(&with("roost:secret@"), CLUSTER, Position(0)).unwrap();
    drop(open(&with("roost:secret@"), A, 0));
    for user in ["", "roost:wrong@", "other:secret@"] {
        let error = refused(&with(user), 0).to_string();
        assert!(error.contains("refuse the credentials, or require some"), "{error}");
        assert!(!error.contains("wrong") && !error.contains("secret"), "{error}");
    }
    let file = JetLogOptions { credentials: Some("/nowhere/roost.creds".into()), ..with("") };
    let error = refused(&file, 0).to_string();
    assert_eq!(error, "cannot read /nowhere/roost.creds");
}

#[test]
fn servers_without_jetstream_are_refused() {
    let Some(servers) = NatsServers::start_with(1, "") else { return };
    let options = JetLogOptions { replicas: 1, ..JetLogOptions::new(&servers.urls()) };
    for error in [refused(&options, 0), JetLog::create(&options, CLUSTER, Position(0)).unwrap_err()]
    {
        assert!(matches!(error, JetLogError::NoJetStream), "{error}");
    }
}

#[test]
fn tls_needs_the_authority_of_the_servers() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    if !make_certificates(folder.path()) {
        testkit::skipped("TLS: openssl is missing");
        return;
    }
    let tls = format!(
        "jetstream {{ store_dir: \"DIR\", sync_interval: always }}\n\
         tls {{ cert_file: {0:?}, key_file: {1:?}, ca_file: {2:?}, verify: true }}\n",
        file("server.pem"),
        file("server.key"),
        file("ca.pem"),
    );
    let Some(servers) = NatsServers::start_with(1, &tls) else { return };
    let urls = servers.urls().replace("nats://", "tls://");
    let right = JetLogOptions {
        replicas: 1,
        tls_ca: Some(file("ca.pem")),
        tls_identity: Some((file("client.pem"), file("client.key"))),
        ..JetLogOptions::new(&urls)
    };
    JetLog::create(&right, CLUSTER, Position(0)).unwrap();
    let mut log = begun(&right, A, 1);
    log.append(b"x", TIME_MS).unwrap();
    assert!(next(&mut log).is_own);
    let without_authority = JetLogOptions { tls_ca: None, ..right.clone() };
    let without_identity = JetLogOptions { tls_identity: None, ..right.clone() };
    for options in [without_authority, without_identity] {
        let error = refused(&options, 0);
        assert!(matches!(error, JetLogError::Tls { .. }), "{error}");
    }
    let without_file = JetLogOptions { tls_ca: Some(file("none.pem")), ..right };
    assert!(refused(&without_file, 0).to_string().ends_with("none.pem"));
}

/// Creates an authority, and certificates for a server on this machine and for a client. Returns false without openssl.
fn make_certificates(folder: &Path) -> bool {
    std::fs::write(folder.join("san"), "subjectAltName=IP:127.0.0.1\n").unwrap();
    let key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
    let mut commands = vec![format!("req -x509 {key} -keyout ca.key -out ca.pem -subj /CN=ca")];
    for name in ["server", "client"] {
        commands.push(format!("req {key} -keyout {name}.key -out {name}.csr -subj /CN={name}"));
        commands.push(format!(
            "x509 -req -in {name}.csr -CA ca.pem -CAkey ca.key -CAcreateserial -extfile san -out {name}.pem"
        ));
    }
    commands.iter().all(|words| {
        let mut openssl = Command::new("openssl");
        let output = openssl.args(words.split(' ')).current_dir(folder).output();
        output.is_ok_and(|output| {
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            true
        })
    })
}

fn file(length: usize) -> (FileName, Vec<u8>) {
    let bytes: Vec<u8> = (0..length).map(|at| (at * 31 + at / 97) as u8).collect();
    // The name need not match the bytes, because this test does not compare them.
    let mut name = [7; 32];
    name[..8].copy_from_slice(&(length as u64).to_be_bytes());
    (name, bytes)
}

/// Returns the subject of a part of a file.
fn part(name: &FileName, at: usize) -> String {
    let digits: String = name.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("roost.files.{digits}.{at}")
}

/// Stores a file until it is acknowledged.
#[track_caller]
fn insist(files: &dyn SharedFiles, name: &FileName, bytes: &[u8]) {
    let start = std::time::Instant::now();
    while let Err(error) = files.put(name, bytes) {
        assert!(start.elapsed() < PATIENCE, "{error}");
    }
}

/// Reads a file until the servers answer and have it.
#[track_caller]
fn get(files: &dyn SharedFiles, name: &FileName) -> Vec<u8> {
    let start = std::time::Instant::now();
    loop {
        let found = files.get(name, 1 << 24);
        if let Ok(Some(bytes)) = found {
            return bytes;
        }
        assert!(start.elapsed() < PATIENCE, "{found:?}");
    }
}

#[test]
fn a_file_that_one_node_stores_is_there_for_all() {
    let Some((servers, options)) = one_server() else { return };
    let (a, b) = (open(&options, A, 0).files().unwrap(), open(&options, B, 0).files().unwrap());
    for length in [0, 1, 60 << 10, (60 << 10) + 1, 1_000_000] {
        let (name, bytes) = file(length);
        assert_eq!(b.get(&name, 1 << 24).unwrap(), None);
        a.put(&name, &bytes).unwrap();
        assert!(b.get(&name, length).unwrap() == Some(bytes.clone()), "{length}");
        assert_eq!(b.get(&name, length.saturating_sub(1)).unwrap().is_some(), length == 0);
        // Store the file again, from both nodes at the same time.
        std::thread::scope(|scope| {
            for files in [&a, &b] {
                scope.spawn(|| files.put(&name, &bytes).unwrap());
            }
        });
        assert!(a.get(&name, length).unwrap() == Some(bytes), "{length}");
    }
    let messages = with_jetstream(&servers.urls(), async |jetstream| {
        jetstream.get_stream("roost-files").await.unwrap().cached_info().state.messages
    });
    assert_eq!(messages, 1 + 1 + 1 + 2 + 17, "each part is there once");
    // The damage is: missing parts, parts of another length, and messages that are not parts.
    let (name, bytes) = file(130_000);
    let damage = |at: usize, message: Option<Vec<u8>>| {
        a.put(&name, &bytes).unwrap();
        with_jetstream(&servers.urls(), async |jetstream| match message {
            Some(message) => {
                jetstream.publish(part(&name, at), message.into()).await.unwrap().await.unwrap();
            }
            None => {
                let stream = jetstream.get_stream("roost-files").await.unwrap();
                stream.purge().filter(part(&name, at)).await.unwrap();
            }
        });
        b.get(&name, 1 << 24).unwrap()
    };
    for at in [0, 2] {
        assert_eq!(damage(at, None), None);
        assert_eq!(damage(at, Some(vec![9; 40])), None);
        assert_eq!(damage(at, Some(Vec::new())), None);
        assert_eq!(damage(at, Some([&[1, 0xff, 0xff, 0xff, 0xff][..], &[0; 9]].concat())), None);
    }
    let other = damage(1, Some([&[1][..], &130_000_u32.to_le_bytes(), &[0; 60 << 10]].concat()));
    assert!(other.is_some_and(|other| other != bytes && other.len() == bytes.len()));
}

#[test]
fn nodes_hear_what_others_ask_for() {
    let Some((servers, options)) = one_server() else { return };
    let (a, b) = (open(&options, A, 0), open(&options, B, 0));
    let (heard, hears) = std::sync::mpsc::channel();
    for (node, log) in [&a, &b].into_iter().enumerate() {
        let heard = heard.clone();
        log.files().unwrap().listen(Box::new(move |name| heard.send((node, name)).unwrap()));
    }
    with_jetstream(&servers.urls(), async |jetstream| {
        // An invalid name is ignored.
        jetstream.client().publish("roost.requests", vec![1; 31].into()).await.unwrap();
        jetstream.client().flush().await.unwrap();
    });
    a.files().unwrap().ask(&[5; 32]);
    let mut found = [hears.recv_timeout(PATIENCE).unwrap(), hears.recv_timeout(PATIENCE).unwrap()];
    found.sort_unstable();
    assert_eq!(found, [(0, [5; 32]), (1, [5; 32])]);
}

#[test]
fn files_are_stored_and_read_while_a_server_is_down() {
    let Some((mut servers, options)) = three_servers() else { return };
    let (a, b) = (open(&options, A, 0).files().unwrap(), open(&options, B, 0).files().unwrap());
    let (name, bytes) = file(500_000);
    insist(&*a, &name, &bytes);
    for at in 0..3 {
        servers.kill(at);
        assert!(get(&*b, &name) == bytes);
        let (name, bytes) = file(600_000 + at);
        insist(&*a, &name, &bytes);
        assert!(get(&*b, &name) == bytes);
        servers.restart(at);
    }
    // If two of three servers are down, nothing is acknowledged.
    servers.kill(0);
    servers.kill(1);
    let (name, bytes) = file(70_000);
    assert!(a.put(&name, &bytes).is_err());
    servers.restart(0);
    insist(&*a, &name, &bytes);
    assert!(get(&*b, &name) == bytes);
}

/// The first node creates the stream of files. The stream accepts no files while its configuration could lose them.
#[test]
fn a_stream_that_could_lose_files_is_refused_and_the_command_mends_it() {
    type Change<'a> = &'a dyn Fn(&mut Config) -> bool;
    let Some((servers, options)) = one_server() else { return };
    let files = open(&options, A, 0).files().unwrap();
    let (name, bytes) = file(100);
    files.put(&name, &bytes).unwrap();
    let run = |act: Change<'_>| {
        with_jetstream(&servers.urls(), async |jetstream| {
            let stream = jetstream.get_stream("roost-files").await.unwrap();
            let mut config = stream.cached_info().config.clone();
            let keeps = act(&mut config);
            if keeps {
                jetstream.update_stream(config).await.unwrap();
            } else {
                jetstream.delete_stream("roost-files").await.unwrap();
            }
        });
    };
    let changes: [(Change<'_>, &str); 2] = [
        (
            &|config| {
                config.max_age = Duration::from_secs(600);
                config.max_messages_per_subject = -1;
                config.allow_direct = false;
                true
            },
            "change it back with: ",
        ),
        (&|_| false, "start a node again, which creates it, or run: "),
    ];
    for (change, advice) in changes {
        run(change);
        let start = std::time::Instant::now();
        let command = loop {
            let refused = files.put(&name, &bytes).err().map(|error| error.to_string());
            if let Some((_, command)) = refused.as_deref().and_then(|text| text.split_once(advice))
            {
                break command.to_owned();
            }
            assert!(start.elapsed() < PATIENCE, "{refused:?}");
        };
        let words = command.strip_prefix("nats ").unwrap().split(' ');
        let words: Vec<String> = words.map(|word| word.replace('\'', "")).collect();
        if nats(&servers.url(0), words).is_none() {
            return;
        }
        insist(&*files, &name, &bytes);
        assert!(get(&*files, &name) == bytes);
    }
    // A node that starts later also creates the stream.
    run(&|_| false);
    open(&options, B, 0).files().unwrap().put(&name, &bytes).unwrap();
}
