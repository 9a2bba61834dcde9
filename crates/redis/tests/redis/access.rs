//! The application key, and how many may connect.

use edge::Access;

use crate::client::{KEY, TestServer};

#[test]
fn without_the_key_nothing_is_done() {
    let server = TestServer::with_key();
    let mut client = server.client();
    let refused = "-NOAUTH Authentication required.";
    let wrong = "-WRONGPASS invalid username-password pair or user is disabled.";
    client.check(&[
        ("GET a", refused),
        ("PING", refused),
        ("MULTI", refused),
        ("NOPE", "-ERR unknown command 'NOPE'..."),
        ("AUTH nonsense", wrong),
        (&format!("AUTH somebody {KEY}"), wrong),
        ("AUTH a b c", "-ERR syntax error"),
        ("HELLO 3", "-NOAUTH HELLO must be called with the client already authenticated..."),
        (&format!("AUTH {KEY}"), "OK"),
        ("SET a 1", "OK"),
        ("RESET", "RESET"),
        ("GET a", refused),
        (&format!("AUTH default {KEY}"), "OK"),
        ("GET a", "\"1\""),
    ]);
    let mut client = server.client();
    let hello = client.line(&format!("HELLO 3 AUTH default {KEY} SETNAME me"));
    assert!(hello.starts_with("{\"server\": \"redis\""), "{hello}");
    client.check(&[("GET a", "\"1\""), ("CLIENT GETNAME", "\"me\"")]);
}

#[test]
fn before_the_key_requests_are_small() {
    let server = TestServer::with_key();
    for request in ["*11\r\n", "*2\r\n$4\r\nAUTH\r\n$16385\r\n"] {
        let mut client = server.client();
        client.send(request.as_bytes());
        let told = client.receive().unwrap();
        assert!(told.starts_with("-ERR Protocol error: unauthenticated"), "{told}");
        assert_eq!(client.receive(), None);
    }
}

#[test]
fn in_open_mode_a_key_is_not_expected_and_does_no_harm() {
    TestServer::open().client().check(&[
        ("AUTH anything", "-ERR AUTH <password> called without any password configured..."),
        ("AUTH default anything", "OK"),
        ("PING", "PONG"),
    ]);
}

#[test]
fn connections_beyond_the_limit_are_told_so() {
    let server = TestServer::start(Access::Open, |_, options| options.connections_max = 2);
    let (mut one, mut two) = (server.client(), server.client());
    assert_eq!((one.line("PING"), two.line("PING")), ("PONG".into(), "PONG".into()));
    let mut three = server.client();
    assert_eq!(three.receive().unwrap(), "-ERR max number of clients reached");
    assert_eq!(three.receive(), None);
    two.line("QUIT");
    assert_eq!(two.receive(), None);
    // The place is free as soon as the connection is gone; that may be a moment later.
    let again = std::iter::repeat_with(|| {
        let mut client = server.client();
        client.send(b"PING\r\n");
        client.receive().unwrap()
    });
    assert!(again.take(10_000).any(|reply| reply == "PONG"));
    one.line("PING");
}
