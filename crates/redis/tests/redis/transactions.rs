//! MULTI and WATCH.

use crate::client::TestServer;

#[test]
fn a_transaction_answers_each_command_at_its_place() {
    TestServer::open().client().check(&[
        ("MULTI", "OK"),
        ("GET n", "QUEUED"),
        ("SET n 5", "QUEUED"),
        ("GET n", "QUEUED"),
        ("INCR n", "QUEUED"),
        ("GET n", "QUEUED"),
        ("PING", "QUEUED"),
        ("SET x 1 PX", "QUEUED"),
        ("APPEND n x", "QUEUED"),
        ("INCR n", "QUEUED"),
        ("SELECT 1", "QUEUED"),
        ("SET n other", "QUEUED"),
        ("GET n", "QUEUED"),
        ("EXISTS n n", "QUEUED"),
        (
            "EXEC",
            "[nil, OK, \"5\", 6, \"6\", PONG, -ERR syntax error, 2, \
             -ERR value is not an integer or out of range, OK, OK, \"other\", 2]",
        ),
        ("GET n", "\"other\""),
        ("SELECT 0", "OK"),
        ("GET n", "\"6x\""),
        ("MULTI", "OK"),
        ("EXEC", "[]"),
    ]);
}

#[test]
fn a_command_that_cannot_be_queued_makes_exec_fail() {
    TestServer::open().client().check(&[
        ("EXEC", "-ERR EXEC without MULTI"),
        ("DISCARD", "-ERR DISCARD without MULTI"),
        ("MULTI", "OK"),
        ("MULTI", "-ERR MULTI calls can not be nested"),
        ("WATCH a", "-ERR WATCH inside MULTI is not allowed"),
        ("SET a 1", "QUEUED"),
        ("EXEC", "[OK]"),
        ("MULTI", "OK"),
        ("SET a 2", "QUEUED"),
        ("NOPE", "-ERR unknown command 'NOPE'..."),
        ("EXEC", "-EXECABORT Transaction discarded because of previous errors."),
        ("MULTI", "OK"),
        ("GET", "-ERR wrong number of arguments for 'get' command"),
        ("EXEC", "-EXECABORT..."),
        ("MULTI", "OK"),
        ("HELLO 3", "-ERR Command not allowed inside a transaction"),
        ("DISCARD", "OK"),
        ("GET a", "\"1\""),
    ]);
}

#[test]
fn a_transaction_with_a_watched_key_that_changed_is_not_executed() {
    let server = TestServer::open();
    let (mut one, mut other) = (server.client(), server.client());
    let mut check = |prepare: &str, change: &str, happens: bool| {
        one.line("FLUSHALL");
        one.line(prepare);
        assert_eq!(one.line("WATCH k l"), "OK");
        other.line(change);
        one.check(&[("MULTI", "OK"), ("SET done 1", "QUEUED")]);
        assert_eq!(one.line("EXEC"), if happens { "[OK]" } else { "nil" }, "{prepare}, {change}");
        assert_eq!(other.line("EXISTS done"), if happens { "1" } else { "0" });
    };
    check("SET k 1", "GET k", true);
    check("SET k 1", "SET k 1", false);
    check("SET k 1", "DEL k", false);
    check("SET k 1", "EXPIRE k 100", false);
    check("SET k 1", "RENAME k m", false);
    check("SET k 1", "FLUSHALL", false);
    check("SET k 1", "SWAPDB 0 1", false);
    check("SET m 1", "RENAME m l", false);
    check("SET m 1", "FLUSHDB", true);
    check("SET m 1", "SET n 1", true);
    check("SET m 1", "DEL k", true);
    one.check(&[
        ("SET k 1", "OK"),
        ("WATCH k", "OK"),
        ("SET k 2", "OK"),
        ("UNWATCH", "OK"),
        ("MULTI", "OK"),
        ("GET k", "QUEUED"),
        ("EXEC", "[\"2\"]"),
    ]);
}

#[test]
fn a_watched_key_that_expires_has_changed() {
    let server = TestServer::open();
    let mut client = server.client();
    client.check(&[("SET k 1 PX 100", "OK"), ("WATCH k", "OK")]);
    server.pass(100);
    client.check(&[("MULTI", "OK"), ("SET l 1", "QUEUED"), ("EXEC", "nil"), ("GET l", "nil")]);
}

#[test]
fn concurrent_increments_under_watch_are_not_lost() {
    let server = TestServer::open();
    const EACH: usize = 50;
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut client = server.client();
                let mut done = 0;
                while done < EACH {
                    client.line("WATCH n");
                    let now = client.line("GET n");
                    let now: usize = now.trim_matches('"').parse().unwrap_or(0);
                    client.line("MULTI");
                    client.line(&format!("SET n {}", now + 1));
                    done += usize::from(client.line("EXEC") == "[OK]");
                }
            });
        }
    });
    assert_eq!(server.client().line("GET n"), format!("\"{}\"", 4 * EACH));
}

#[test]
fn client_reply_inside_of_a_transaction_is_refused() {
    let server = TestServer::open();
    let mut client = server.client();
    for how in ["ON", "OFF", "SKIP"] {
        client.check(&[
            ("MULTI", "OK"),
            (&format!("CLIENT REPLY {how}"), "-ERR Command not allowed inside a transaction"),
            ("PING", "QUEUED"),
            ("EXEC", "-EXECABORT Transaction discarded because of previous errors."),
            ("PING", "PONG"),
        ]);
    }
    client.check(&[
        ("MULTI", "OK"),
        ("EXEC x", "-EXECABORT Transaction discarded because of: wrong number of arguments for 'exec' command"),
        ("EXEC", "-ERR EXEC without MULTI"),
    ]);
}

#[test]
fn a_transaction_larger_than_its_bounds_is_refused() {
    let server = TestServer::open();
    let mut client = server.client();
    client.line("MULTI");
    for _ in 0..4_095 {
        client.send(b"INCR n\r\n");
    }
    (0..4_095).for_each(|_| assert_eq!(client.receive().unwrap(), "QUEUED"));
    assert!(client.line("INCR n").starts_with("-ERR a transaction has at most 4095 changes"));
    assert!(client.line("EXEC").starts_with("-EXECABORT"));
    let value = vec![b'x'; 10 << 20];
    client.line("MULTI");
    for _ in 0..3 {
        assert_eq!(client.run(&[b"SET", b"k", &value]), "QUEUED");
    }
    assert!(client.run(&[b"SET", b"k", &value]).starts_with("-ERR a transaction has at most"));
    client.check(&[("EXEC", "-EXECABORT..."), ("DBSIZE", "0")]);
}
