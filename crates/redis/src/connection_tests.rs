//! Ends of connections, with a simulated clock that jumps from timer to timer.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "what fails here is the test")]

use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use budget::MemoryBudget;
use node::{Node, NodeOptions};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
use tokio::task::{JoinHandle, LocalSet};
use tokio::time::Instant;

use super::batch::Batches;
use super::client::{Client, Shared};
use super::connection::{PATIENCE, Stream, serve};
use super::memory::CONNECTION_BYTES;
use super::metrics::RedisMetrics;
use super::registry::Registry;
use edge::Access;
use edge::BlockingReads;

impl Stream for DuplexStream {
    fn poll_hang_up(&self, _: &mut Context<'_>) -> Poll<()> {
        Poll::Pending
    }

    fn has_hung_up(&self) -> bool {
        false
    }
}

/// Runs `test` on a thread that serves connections, with a clock that jumps from timer to timer. The argument of `test`
/// opens a connection; unread bytes are buffered up to the given size.
pub(super) fn run<F: Future<Output = ()>>(
    access: Access,
    test: impl FnOnce(Box<dyn Fn(usize) -> (DuplexStream, JoinHandle<()>)>) -> F,
) {
    run_within(&MemoryBudget::new(256 << 20), access, test);
}

/// Runs `test` like [`run`], within a budget.
fn run_within<F: Future<Output = ()>>(
    budget: &MemoryBudget,
    access: Access,
    test: impl FnOnce(Box<dyn Fn(usize) -> (DuplexStream, JoinHandle<()>)>) -> F,
) {
    let directory = tempfile::tempdir().unwrap();
    let node = Node::open(&NodeOptions::new(directory.path())).unwrap();
    let metrics = RedisMetrics::default();
    let reads = BlockingReads::new(1);
    let batches = Rc::new(Batches::new(node.clone(), reads.clone(), metrics.clone()));
    let shared = Arc::new(Shared {
        node,
        access,
        metrics,
        registry: Registry::new(),
        reads,
        connections: budget.clone(),
        budget: budget.clone(),
        connections_max: 1,
    });
    let open = move |room| {
        let (near, far) = tokio::io::duplex(room);
        let address = "127.0.0.1:1".parse().unwrap();
        let registered = shared.registry.enter(address, address, shared.access.is_open());
        let reserved = shared.budget.try_reserve(CONNECTION_BYTES).unwrap();
        let client = Client::new(Arc::clone(&shared), Rc::clone(&batches), registered, reserved);
        (far, tokio::task::spawn_local(serve(near, client)))
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap();
    LocalSet::new().block_on(&runtime, test(Box::new(open)));
}

#[test]
fn a_client_that_never_reads_its_replies_is_disconnected() {
    run(Access::Open, async |open| {
        let (mut client, connection) = open(1_024);
        let start = Instant::now();
        let question = format!("ECHO {}\r\n", "x".repeat(1_000));
        // Writes until the server stops reading.
        while client.write_all(question.as_bytes()).await.is_ok() {}
        connection.await.unwrap();
        assert!((PATIENCE..2 * PATIENCE).contains(&start.elapsed()));
    });
}

#[test]
fn a_client_that_sends_half_a_command_is_disconnected_and_an_idle_one_is_not() {
    run(Access::Open, async |open| {
        let (mut half, its_connection) = open(1_024);
        let (mut idle, other_connection) = open(1_024);
        idle.write_all(b"PING\r\n").await.unwrap();
        half.write_all(b"PING\r\n*2\r\n$3\r\nGET").await.unwrap();
        let start = Instant::now();
        its_connection.await.unwrap();
        assert!((PATIENCE..2 * PATIENCE).contains(&start.elapsed()));
        tokio::time::sleep(100 * PATIENCE).await;
        assert!(!other_connection.is_finished());
        drop(idle);
        other_connection.await.unwrap();
    });
}

#[test]
fn a_client_that_does_not_present_the_key_is_disconnected() {
    run(Access::with_keys(vec![]), async |open| {
        let (_client, connection) = open(1_024);
        let start = Instant::now();
        connection.await.unwrap();
        assert!((PATIENCE..2 * PATIENCE).contains(&start.elapsed()));
    });
}

#[test]
fn a_slow_client_that_reads_now_and_then_gets_all_replies() {
    run(Access::Open, async |open| {
        let (mut client, connection) = open(100);
        let (mut reading, mut writing) = tokio::io::split(client);
        let writer = tokio::task::spawn_local(async move {
            let question = format!("ECHO {}\r\n", "x".repeat(50));
            writing.write_all(question.repeat(20).as_bytes()).await.unwrap();
            writing
        });
        let mut read = 0;
        while read < 20 * 57 {
            tokio::time::sleep(PATIENCE * 2 / 3).await;
            let mut piece = [0; 90];
            read += reading.read(&mut piece).await.unwrap();
        }
        client = reading.unsplit(writer.await.unwrap());
        drop(client);
        connection.await.unwrap();
    });
}

#[test]
fn a_client_without_the_key_is_disconnected_though_it_keeps_talking() {
    run(Access::with_keys(vec![]), async |open| {
        let (mut client, connection) = open(1 << 20);
        let start = Instant::now();
        while client.write_all(b"AUTH wrong\r\n").await.is_ok() {
            tokio::time::sleep(PATIENCE / 10).await;
        }
        connection.await.unwrap();
        assert!((PATIENCE..2 * PATIENCE).contains(&start.elapsed()));
    });
}

#[test]
fn a_client_without_the_key_takes_no_memory_of_others() {
    let budget = MemoryBudget::new(1 << 20);
    run_within(&budget, Access::with_keys(vec![]), async |open| {
        let (mut unread, connection) = open(1_024);
        // Nothing is read while replies are unsent.
        let written = async {
            let mut written = 0;
            while unread.write_all(b"PING\r\n").await.is_ok() {
                written += 6;
                assert!(budget.used() <= CONNECTION_BYTES, "{written}");
            }
            written
        };
        assert!(written.await < 8 << 10);
        connection.await.unwrap();
        for request in [&b"*2\r\n$4\r\nAUTH\r\n$16384\r\n"[..], b"AUTH \"", b"*10"] {
            let (mut long, connection) = open(1 << 20);
            long.write_all(request).await.unwrap();
            long.write_all(&[b'1'; 6_000]).await.unwrap();
            let mut reply = Vec::new();
            long.read_to_end(&mut reply).await.unwrap();
            let reply = String::from_utf8(reply).unwrap();
            assert!(reply.contains("unauthenticated request too long"), "{reply}");
            connection.await.unwrap();
        }
    });
    assert_eq!(budget.used(), 0);
}

#[test]
fn clients_that_read_nothing_take_half_of_the_budget_and_leave_the_rest() {
    let budget = MemoryBudget::new(8 << 20);
    run_within(&budget, Access::Open, async |open| {
        let connections: Vec<_> = (0..8)
            .map(|_| {
                let (mut client, connection) = open(1_024);
                tokio::task::spawn_local(async move {
                    while client.write_all(&b"PING\r\n".repeat(100)).await.is_ok() {}
                });
                connection
            })
            .collect();
        // All connections time out at the same time. Until then, other connections are served.
        tokio::time::sleep(PATIENCE / 2).await;
        assert!((3 << 20..6 << 20).contains(&budget.used()), "{budget:?}");
        let (mut other, connection) = open(1 << 20);
        let text = vec![b'x'; 1 << 20];
        other.write_all(b"*2\r\n$4\r\nECHO\r\n$1048576\r\n").await.unwrap();
        other.write_all(&text).await.unwrap();
        other.write_all(b"\r\n").await.unwrap();
        let mut reply = vec![0; text.len() + 12];
        other.read_exact(&mut reply).await.unwrap();
        assert!(reply.starts_with(b"$1048576\r\nxxx"));
        drop(other);
        connection.await.unwrap();
        for connection in connections {
            connection.await.unwrap();
        }
    });
    assert_eq!(budget.used(), 0);
}

#[test]
fn a_transaction_that_holds_much_is_not_idle_for_ever() {
    let budget = MemoryBudget::new(8 << 20);
    run_within(&budget, Access::Open, async |open| {
        let (mut client, connection) = open(1 << 20);
        let start = Instant::now();
        let text = "x".repeat(60_000);
        let queued = format!("MULTI\r\nECHO {text}\r\nECHO {text}\r\n");
        client.write_all(queued.as_bytes()).await.unwrap();
        connection.await.unwrap();
        assert!((PATIENCE..2 * PATIENCE).contains(&start.elapsed()));
    });
    assert_eq!(budget.used(), 0);
}
