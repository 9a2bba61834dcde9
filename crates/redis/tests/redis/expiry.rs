//! When keys expire, with a clock that the test sets.

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
