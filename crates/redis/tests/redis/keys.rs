//! Commands on keys of any type, and databases.

use std::collections::BTreeSet;

use crate::client::{Client, TestServer};

#[test]
fn keys_are_deleted_renamed_copied_and_moved() {
    TestServer::open().client().check(&[
        ("MSET a 1 b 2 c 3", "OK"),
        ("DEL a a none", "1"),
        ("UNLINK b c", "2"),
        ("DBSIZE", "0"),
        ("SET a 1", "OK"),
        ("TYPE a", "string"),
        ("TYPE none", "none"),
        ("TOUCH a none", "1"),
        ("RENAME none a", "-ERR no such key"),
        ("RENAME a b", "OK"),
        ("RENAMENX b b", "0"),
        ("SET a 2", "OK"),
        ("RENAMENX a b", "0"),
        ("COPY a b", "0"),
        ("COPY a b REPLACE", "1"),
        ("GET b", "\"2\""),
        ("COPY a a", "-ERR source and destination objects are the same"),
        ("COPY a a DB 1", "1"),
        ("COPY a a DB 16", "-ERR DB index is out of range"),
        ("COPY a a DB x", "-ERR value is not an integer or out of range"),
        ("MOVE a 1", "0"),
        ("MOVE b 1", "1"),
        ("MOVE a 0", "-ERR source and destination objects are the same"),
        ("SELECT 1", "OK"),
        ("MGET a b", "[\"2\", \"2\"]"),
        ("SWAPDB 0 1", "OK"),
        ("DBSIZE", "1"),
        ("SWAPDB 0 x", "-ERR invalid second DB index"),
        ("SELECT 16", "-ERR DB index is out of range"),
        ("SELECT 0", "OK"),
        ("FLUSHDB ASYNC", "OK"),
        ("DBSIZE", "0"),
        ("FLUSHALL now", "-ERR syntax error"),
        ("FLUSHALL", "OK"),
        ("SELECT 1", "OK"),
        ("DBSIZE", "0"),
        ("RANDOMKEY", "nil"),
        ("SET only 1", "OK"),
        ("RANDOMKEY", "\"only\""),
        ("WAIT 0 100", "0"),
    ]);
}

#[test]
fn a_value_that_was_dumped_is_restored() {
    let server = TestServer::open();
    let mut client = server.client();
    client.line("SET a hello");
    client.send(b"DUMP a\r\n");
    let payload = client.0.receive().bytes();
    assert_eq!(client.run(&[b"RESTORE", b"b", b"0", &payload]), "OK");
    assert_eq!(client.line("GET b"), "\"hello\"");
    let busy = "-BUSYKEY Target key name already exists.";
    assert_eq!(client.run(&[b"RESTORE", b"b", b"0", &payload]), busy);
    assert_eq!(client.run(&[b"RESTORE", b"b", b"5000", &payload, b"REPLACE"]), "OK");
    assert_eq!(client.line("PTTL b"), "5000");
    let wrong = "-ERR DUMP payload version or checksum are wrong";
    assert_eq!(client.run(&[b"RESTORE", b"c", b"0", &payload[2..]]), wrong);
    assert_eq!(
        client.run(&[b"RESTORE", b"c", b"-1", &payload]),
        "-ERR Invalid TTL value, must be >= 0"
    );
    let idle = "-ERR Invalid IDLETIME value, must be >= 0";
    let frequency = "-ERR Invalid FREQ value, must be >= 0 and <= 255";
    let (syntax, number) = ("-ERR syntax error", "-ERR value is not an integer or out of range");
    for (options, expect) in [
        ("FREQ 300", frequency),
        ("freq 256", frequency),
        ("FREQ -1", frequency),
        ("FREQ x", number),
        ("FREQ", syntax),
        ("IDLETIME -1", idle),
        ("IDLETIME", syntax),
        ("IDLETIME 5 FREQ 5", syntax),
        ("FREQ 5 IDLETIME 5", syntax),
        ("FREQ 0 REPLACE", "OK"),
        ("FREQ 255 ABSTTL REPLACE", "OK"),
        ("IDLETIME 100000 REPLACE", "OK"),
    ] {
        let restore = [&b"RESTORE"[..], b"options", b"0", &payload];
        let words = restore.into_iter().chain(options.split(' ').map(str::as_bytes));
        assert_eq!(client.run(&words.collect::<Vec<_>>()), expect, "{options}");
    }
    client.check(&[
        ("OBJECT ENCODING a", "\"embstr\""),
        ("OBJECT REFCOUNT a", "1"),
        ("OBJECT ENCODING none", "nil"),
        ("OBJECT FREQ none", "nil"),
        ("OBJECT FREQ a", "-ERR An LFU maxmemory policy..."),
        ("OBJECT ENCODING", "-ERR wrong number of arguments for 'object|encoding' command"),
        ("MEMORY USAGE", "-ERR wrong number of arguments for 'memory|usage' command"),
        ("RESTORE a 0 garbage", busy),
        ("RESTORE a 0 garbage REPLACE", wrong),
        ("OBJECT WHAT a", "-ERR unknown subcommand 'WHAT'. Try OBJECT HELP."),
        ("MEMORY USAGE none", "nil"),
    ]);
    assert!(client.line("MEMORY USAGE a").parse::<u32>().unwrap() >= 32);
}

#[test]
fn a_random_key_is_found_between_the_keys_of_a_full_bucket() {
    let server = TestServer::open();
    let mut client = server.client();
    for part in 0..20 {
        let names: Vec<String> = (0..2_000).map(|number| format!("{part}:{number}")).collect();
        let pairs = names.iter().flat_map(|name| [name.as_bytes(), b"v"]);
        let words: Vec<&[u8]> = [&b"MSET"[..]].into_iter().chain(pairs).collect();
        assert_eq!(client.run(&words), "OK");
    }
    client.check(&[("SELECT 1", "OK"), ("RANDOMKEY", "nil"), ("SET only 1", "OK")]);
    for _ in 0..50 {
        assert_eq!(client.line("RANDOMKEY"), "\"only\"");
    }
    client.check(&[("SET only 1 PX 1", "OK")]);
    server.pass(1);
    client.check(&[("RANDOMKEY", "nil")]);
}

/// Returns everything that SCAN lists, and the number of calls.
fn scan(client: &mut Client, options: &str) -> (BTreeSet<String>, usize) {
    let (mut found, mut cursor, mut calls) = (BTreeSet::new(), "0".to_owned(), 0);
    loop {
        let reply = client.line(&format!("SCAN {cursor} {options}"));
        calls += 1;
        let words: Vec<&str> = reply.split('"').skip(1).step_by(2).collect();
        found.extend(words[1..].iter().map(|&word| word.to_owned()));
        cursor = words[0].to_owned();
        assert!(cursor.parse::<u64>().unwrap() < 1 << 53, "the cursor fits in a double: {cursor}");
        if cursor == "0" {
            return (found, calls);
        }
    }
}

#[test]
fn a_scan_returns_every_key() {
    let server = TestServer::open();
    let mut client = server.client();
    let names: BTreeSet<String> = (0..1_000).map(|number| format!("key:{number}")).collect();
    for name in &names {
        client.send(format!("SET {name} v\r\n").as_bytes());
    }
    names.iter().for_each(|_| assert_eq!(client.receive().unwrap(), "OK"));
    let (found, calls) = scan(&mut client, "");
    assert_eq!(found, names);
    assert!((100..=101).contains(&calls), "10 keys a call, and {calls} calls");
    assert_eq!(scan(&mut client, "COUNT 500 TYPE string").0, names);
    assert_eq!(scan(&mut client, "MATCH key:1??").0.len(), 100);
    assert_eq!(scan(&mut client, "TYPE list COUNT 2000").0, BTreeSet::new());
    assert_eq!(client.line("KEYS key:99?").matches("key:").count(), 10);
    client.check(&[
        ("SCAN x", "-ERR invalid cursor"),
        ("SCAN 9007199254740992", "-ERR invalid cursor"),
        ("SCAN 0 COUNT 0", "-ERR syntax error"),
        ("SCAN 0 MATCH", "-ERR syntax error"),
        ("KEYS nothing*", "[]"),
    ]);
}
