//! Expiry of keys, with a clock that the test sets.

use crate::client::{START_MS, TestServer};

#[test]
fn keys_expire_to_the_millisecond() {
    let server = TestServer::open();
    let mut client = server.client();
    client.check(&[
        ("SET a 1 PX 1000", "OK"),
        ("SETEX b 1 2", "OK"),
        ("PSETEX c 1001 3", "OK"),
        ("PTTL a", "1000"),
        ("TTL a", "1"),
        ("TTL none", "-2"),
    ]);
    server.pass(999);
    client.check(&[("MGET a b c", "[\"1\", \"2\", \"3\"]"), ("PTTL a", "1")]);
    server.pass(1);
    client.check(&[
        ("MGET a b c", "[nil, nil, \"3\"]"),
        ("EXISTS a b c", "1"),
        ("KEYS *", "[\"c\"]"),
        ("SETNX a 9", "1"),
        ("TTL a", "-1"),
        ("DEL b", "0"),
    ]);
    server.pass(1);
    client.check(&[("GET c", "nil"), ("INCR c", "1"), ("TTL c", "-1")]);
}

#[test]
fn expiries_are_set_changed_and_removed() {
    let server = TestServer::open();
    let mut client = server.client();
    let second = START_MS / 1_000 + 50;
    client.check(&[
        ("SET a 1", "OK"),
        ("EXPIRE a 100", "1"),
        ("EXPIRE none 100", "0"),
        ("EXPIRE a 200 NX", "0"),
        ("EXPIRE a 200 XX", "1"),
        ("EXPIRE a 100 GT", "0"),
        ("EXPIRE a 300 GT", "1"),
        ("EXPIRE a 400 LT", "0"),
        ("TTL a", "300"),
        ("PERSIST a", "1"),
        ("PERSIST a", "0"),
        ("EXPIRE a 10 GT", "0"),
        (&format!("EXPIREAT a {second}"), "1"),
        ("EXPIRETIME a", &second.to_string()),
        ("PEXPIRETIME a", &format!("{second}000")),
        ("PTTL a", "50000"),
        ("SET a 2 KEEPTTL", "OK"),
        ("TTL a", "50"),
        ("GETEX a PERSIST", "\"2\""),
        ("GETEX a", "\"2\""),
        ("TTL a", "-1"),
        ("GETEX a EX 7", "\"2\""),
        ("TTL a", "7"),
        ("GETEX a EX 8 EX 9", "\"2\""),
        ("TTL a", "9"),
        ("GETEX a EX 8 PX 9", "-ERR syntax error"),
        ("GETEX a PERSIST EX 9", "-ERR syntax error"),
        ("GETEX a EX", "-ERR syntax error"),
        ("SET a 3", "OK"),
        ("TTL a", "-1"),
        ("EXPIRE a 5 XX NX", "-ERR NX and XX, GT or LT options..."),
        ("EXPIRE a 9223372036854776", "-ERR invalid expire time in 'expire' command"),
        ("PEXPIREAT a 9223372036854770000", "1"),
        ("EXPIRE a -1", "1"),
        ("GET a", "nil"),
        ("GETEX a EX 0", "-ERR invalid expire time in 'getex' command"),
        ("TIME", &format!("[\"{}\", \"0\"]", START_MS / 1_000)),
    ]);
}

#[test]
fn info_reports_how_many_keys_of_a_database_expire_and_when_on_average() {
    let server = TestServer::open();
    let mut client = server.client();
    let keyspace = |client: &mut crate::client::Client, lines: &[&str]| {
        let lines: String = lines.iter().map(|line| format!("{line}\\r\\n")).collect();
        assert_eq!(client.line("INFO keyspace"), format!("txt\"# Keyspace\\r\\n{lines}\""));
    };
    client.line("HELLO 3");
    keyspace(&mut client, &[]);
    client.check(&[("SET a 1", "OK"), ("SET b 1 PX 100000", "OK"), ("SET c 1 PX 300000", "OK")]);
    keyspace(&mut client, &["db0:keys=3,expires=2,avg_ttl=200000"]);
    server.pass(500);
    keyspace(&mut client, &["db0:keys=3,expires=2,avg_ttl=199500"]);
    // Change an expiry, remove one, and add one.
    client.check(&[("SET b longer PX 100000", "OK"), ("SET c 2", "OK"), ("PEXPIRE a 50000", "1")]);
    keyspace(&mut client, &["db0:keys=3,expires=2,avg_ttl=75000"]);
    client.check(&[("PERSIST b", "1"), ("COPY a other DB 2", "1"), ("SWAPDB 0 2", "OK")]);
    keyspace(
        &mut client,
        &["db0:keys=1,expires=1,avg_ttl=50000", "db2:keys=3,expires=1,avg_ttl=50000"],
    );
    client.check(&[("FLUSHDB", "OK"), ("SET new 1", "OK")]);
    keyspace(
        &mut client,
        &["db0:keys=1,expires=0,avg_ttl=0", "db2:keys=3,expires=1,avg_ttl=50000"],
    );
    server.pass(50_000);
    // An expired key is counted until the sweeper removes it.
    while client.line("INFO keyspace").contains("expires=1,avg_ttl=0") {}
    keyspace(&mut client, &["db0:keys=1,expires=0,avg_ttl=0", "db2:keys=2,expires=0,avg_ttl=0"]);
}
