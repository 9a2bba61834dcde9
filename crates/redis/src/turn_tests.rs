//! Fairness among the clients of one thread. The tests compare only the order: the number of answers to a second client
//! before a busy client is answered.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "what fails here is the test")]

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::connection_tests::run;
use edge::Access;

/// Returns the number of replies to another client's PING until a client has sent `input` and received `reply_bytes`.
fn answered_meanwhile(input: &[u8], reply_bytes: usize) -> usize {
    let mut answered = 0;
    run(Access::Open, async |open| {
        let (client, _connection) = open(4 << 20);
        let (mut stranger, _other) = open(1_024);
        let (mut reading, mut writing) = tokio::io::split(client);
        writing.write_all(input).await.unwrap();
        let busy = tokio::task::spawn_local(async move {
            let mut replies = vec![0; reply_bytes];
            reading.read_exact(&mut replies).await.unwrap();
        });
        while !busy.is_finished() {
            stranger.write_all(b"PING\r\n").await.unwrap();
            let mut reply = [0; 7];
            stranger.read_exact(&mut reply).await.unwrap();
            answered += 1;
        }
        busy.await.unwrap();
    });
    answered
}

#[test]
fn strangers_are_answered_while_a_long_pipeline_is_carried_out() {
    let answered = answered_meanwhile(&b"GET a\r\n".repeat(10_000), 5 * 10_000);
    assert!(answered >= 80, "{answered} times");
}

#[test]
fn strangers_are_answered_while_a_command_of_many_words_is_read() {
    let mut input = b"*60001\r\n$4\r\nECHO\r\n".to_vec();
    input.extend(b"$10\r\n0123456789\r\n".repeat(60_000));
    let error = b"-ERR wrong number of arguments for 'echo' command\r\n".len();
    let answered = answered_meanwhile(&input, error);
    assert!(answered >= 40, "{answered} times");
}
