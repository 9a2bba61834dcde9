//! Tests of many keys and buckets: they are cheap to create, but costly to remove, to walk or to expire.

use std::collections::VecDeque;
use std::time::SystemTime;

use super::Small;
use crate::support::redis::{Redis, Reply, command, line};

/// Creates this many keys in bucket 0.
fn fill(redis: &mut Redis, keys: usize) {
    let numbers: Vec<String> = (0..keys).map(|number| format!("k{number}")).collect();
    for numbers in numbers.chunks(10_000) {
        let words = numbers.iter().flat_map(|key| [key.as_bytes(), b"v"]);
        let words: Vec<&[u8]> = [&b"MSET"[..]].into_iter().chain(words).collect();
        assert_eq!(redis.run(&words), Reply::ok());
    }
}

/// Waits until there are no keys.
fn wait_until_empty(redis: &mut Redis) {
    let mut sizes = std::iter::repeat_with(|| redis.line("DBSIZE").integer());
    // Unless a key is never removed, the number reaches 0.
    assert!(sizes.by_ref().take(1_000_000).any(|size| size == 0), "{:?}", sizes.next());
}

#[test]
fn a_bucket_of_many_keys_is_emptied() {
    let small = Small::start();
    let mut redis = small.redis();
    fill(&mut redis, 30_000);
    assert_eq!(redis.line("DBSIZE").integer(), 30_000);
    assert_eq!(redis.line("FLUSHDB"), Reply::ok());
    assert_eq!(redis.line("SET after 1"), Reply::ok());
    small.check(400, |redis| {
        assert_eq!(redis.line("DBSIZE").integer(), 1);
        assert_eq!(redis.line("EXISTS k1 after").integer(), 1);
    });
}

#[test]
fn flushall_beside_thousands_of_buckets() {
    let small = Small::start();
    let mut client = small.client();
    for number in 0..2_000 {
        client.put(&format!("/v1/buckets/bucket-{number}")).expect(204);
    }
    client.send("PUT", "/v1/buckets/bucket-7/keys/k", &[], b"kept").unwrap().expect(204);
    let mut redis = small.redis();
    fill(&mut redis, 1_000);
    for reply in redis.pipeline((0..300).map(|_| "FLUSHALL".to_owned())) {
        assert!(reply == Reply::ok() || reply.is_busy(), "{reply:?}");
    }
    small.check(400, |redis| {
        assert_eq!(redis.line("DBSIZE").integer(), 0);
        assert_eq!(redis.line("BUCKET USE bucket-7"), Reply::ok());
        assert_eq!(redis.line("GET k"), Reply::Bulk(Some(b"kept".to_vec())));
    });
}

#[test]
fn keys_that_expire_in_the_same_millisecond() {
    let mut small = Small::start();
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_millis();
    let at = now + 4_000;
    let set = |number| format!("SET k{number} v PXAT {at}");
    for reply in small.redis().pipeline((0..30_000).map(set)) {
        assert_eq!(reply, Reply::ok());
    }
    assert_eq!(small.redis().line("SET kept 1"), Reply::ok());
    assert_eq!(small.redis().line("MOVE kept 3").integer(), 1);
    small.kill_and_start();
    small.check_strangers();
    wait_until_empty(&mut small.redis());
    small.check(400, |redis| {
        assert_eq!(redis.line("DBSIZE").integer(), 0);
        assert_eq!(redis.line("SELECT 3"), Reply::ok());
        assert_eq!(redis.line("GET kept"), Reply::Bulk(Some(b"1".to_vec())));
    });
}

#[test]
fn buckets_that_are_created_and_deleted_again_and_again() {
    let small = Small::start();
    let mut client = small.client();
    for number in 0..3_000 {
        let path = format!("/v1/buckets/bucket-{number}");
        client.put(&path).expect(204);
        client.send("DELETE", &path, &[], b"").unwrap().expect(204);
    }
    client.put("/v1/buckets/one-more").expect(204);
    small.check(400, |redis| assert_eq!(redis.line("BUCKET USE one-more"), Reply::ok()));
}

#[test]
fn one_command_of_very_many_keys() {
    let small = Small::start();
    let mut redis = small.redis();
    fill(&mut redis, 1_000);
    let keys: Vec<String> = (0..100_000).map(|number| format!("k{number}")).collect();
    let set = keys.iter().flat_map(|key| [key.as_bytes(), b"changed"]);
    let set: Vec<&[u8]> = [&b"MSET"[..]].into_iter().chain(set).collect();
    let del: Vec<&[u8]> =
        [&b"DEL"[..]].into_iter().chain(keys.iter().map(String::as_bytes)).collect();
    for words in [&set, &del] {
        let refused = redis.run(words);
        assert!(refused.error().starts_with("ERR the change is too large"), "{refused:?}");
    }
    // Changes of the maximum size are accepted, even many of them.
    for _ in 0..10 {
        assert_eq!(redis.run(&set[..2 * 30_000 + 1]), Reply::ok());
    }
    assert_eq!(redis.run(&del[..20_000 + 1]).integer(), 20_000);
    small.check(500, |redis| {
        assert_eq!(redis.line("DBSIZE").integer(), 10_000);
        assert_eq!(redis.line("GET k20000"), Reply::Bulk(Some(b"changed".to_vec())));
    });
}

#[test]
fn hostile_patterns_of_clients_that_hang_up() {
    let small = Small::start();
    let mut redis = small.redis();
    for number in 0..300 {
        let key = format!("{number}{}", "a".repeat(60_000));
        assert_eq!(redis.line(&format!("SET {key} 1")), Reply::ok());
    }
    let hostile = format!("{}b", "*a".repeat(500));
    // When other clients connect, two of these are still connected.
    let mut connected = VecDeque::new();
    for _ in 0..64 {
        let mut client = small.redis();
        client.push(&line(&format!("KEYS {hostile}")));
        client.push(&line(&format!("SCAN 0 MATCH {hostile} COUNT 100000")));
        connected.push_back(client);
        connected.drain(..connected.len().saturating_sub(2));
    }
    let long = "*".repeat(32_000);
    for text in [format!("KEYS {long}"), format!("SCAN 0 MATCH {long}")] {
        assert_eq!(redis.line(&text).error(), "ERR a pattern has at most 1024 bytes");
    }
    small.check(500, |redis| {
        assert_eq!(redis.line("DBSIZE").integer(), 300);
        // A walk of another client works.
        assert_eq!(redis.line("KEYS none"), Reply::Array(Vec::new()));
    });
}

#[test]
fn long_names_of_clients() {
    let small = Small::start();
    let name = vec![b'n'; 15 << 20];
    for words in [
        &[&b"CLIENT"[..], b"SETNAME", &name][..],
        &[b"CLIENT", b"SETINFO", b"LIB-NAME", &name],
        &[b"CLIENT", b"SETINFO", b"LIB-VER", &name],
        &[b"HELLO", b"2", b"SETNAME", &name],
    ] {
        let request = command(words);
        let mut clients: Vec<Redis> = (0..4).map(|_| small.redis()).collect();
        for client in &mut clients {
            client.send(&request);
            let reply = client.receive();
            assert!(reply.error().contains("longer than 256"), "{:.200}", reply.error());
        }
    }
    small.check(500, |redis| {
        assert_eq!(redis.line("CLIENT SETNAME short"), Reply::ok());
    });
}
