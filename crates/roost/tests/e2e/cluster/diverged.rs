//! Test that a node whose rows differ from those of most other nodes stops, and does not serve again.

use commitlog::{Applied, Arrived, NodeId};
use jetlog::{JetLog, JetLogOptions};
use testkit::process::{Process, Server, run};

use super::{World, text};

/// First bytes of a status in a group.
const STATUS: [u8; 2] = [0, 125];

/// Parses the status at the end of a group: checkpoint, position, digest, and the versions of commands and of rules.
fn status(payload: &[u8]) -> Option<Vec<u64>> {
    let begins = payload.windows(STATUS.len()).enumerate().filter(|(_, bytes)| *bytes == STATUS);
    begins.filter_map(|(at, _)| numbers(&payload[at + STATUS.len()..])).next_back()
}

/// Parses the numbers of a status; `None` if other bytes follow.
fn numbers(bytes: &[u8]) -> Option<Vec<u64>> {
    let mut numbers = vec![0];
    let mut shift = 0;
    for byte in bytes {
        *numbers.last_mut()? |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte & 0x80 == 0 {
            numbers.push(0);
            shift = 0;
        }
    }
    numbers.pop();
    Some(numbers).filter(|numbers| numbers.len() == 5)
}

fn group(numbers: &[u64]) -> Vec<u8> {
    let mut bytes = STATUS.to_vec();
    for number in numbers {
        let mut left = *number;
        while left >= 0x80 {
            bytes.push(left as u8 | 0x80);
            left >>= 7;
        }
        bytes.push(left as u8);
    }
    bytes
}

#[test]
fn a_node_that_differs_does_not_start_again() {
    let Some(mut world) = World::start(1) else { return };
    world.client(0).register("anna");
    let options = JetLogOptions::new(&world.servers.urls());
    let cluster = JetLog::cluster(&options).unwrap();
    let mut log = JetLog::open(&options, (cluster, NodeId(7)), Applied::default()).unwrap();
    log.begin(1);
    let mut redis = world.redis(0);
    let (mut statuses, mut said) = (0, false);
    // Each change is a group of its own. After the node's second status, send it a different digest. It must report
    // this with its third status.
    let ended = loop {
        if redis.try_send(&testkit::redis::command(&[b"INCR", b"sum"])).is_err()
            || redis.try_receive().is_err()
        {
            break world.nodes[0].take().unwrap().process.ended();
        }
        while let Some(Arrived { payload, id, .. }) = log.next(std::time::Duration::ZERO).unwrap() {
            let Some(mut numbers) = status(&payload).filter(|_| id.node != NodeId(7)) else {
                continue;
            };
            statuses += 1;
            if statuses == 2 {
                numbers[2] ^= 1;
                log.append(&group(&numbers), 0).unwrap();
                said = true;
            }
        }
        assert!(statuses < 5, "it notices");
    };
    assert!(said && !ended.status.success());
    let expected = "the rows of this node differ from those of most other nodes";
    assert!(ended.err.contains(expected), "{}", ended.err);
    // Restart as systemd does.
    for _ in 0..2 {
        let again = Process::start(&mut world.command(0)).ended();
        assert_eq!(again.status.code(), Some(1), "{again:#?}");
        assert!(!again.out.contains("roost serves"), "{again:#?}");
        assert!(again.err.contains("join the cluster again with roost cluster join"), "{again:#?}");
    }
    let data = world.data(0);
    let leave = ["cluster", "leave", "--data", text(&data)];
    let refused = run(leave);
    assert!(
        refused.status.code() == Some(1) && refused.err.contains("--accept-loss"),
        "{refused:#?}"
    );
    let gone = run(leave.into_iter().chain(["--accept-loss"]));
    assert!(gone.status.success(), "{gone:#?}");
    drop(log);
    let alone = Server::open(&data, &[]);
    assert_eq!(alone.client().get("/v1/users/@anna").expect(200).json()["handle"], "anna");
}
