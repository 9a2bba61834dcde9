//! Application keys, and the limit of connections.

use std::sync::Arc;

use edge::{Access, KeyHash, KeySet, Scope, Scopes};

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
        (&format!("AUTH nouser {KEY}"), wrong),
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

fn key_with(name: &str, scopes: &[Scope]) -> KeyHash {
    KeyHash::new(name.as_bytes(), scopes.iter().copied().collect())
}

#[test]
fn a_key_runs_the_commands_of_its_scopes() {
    let keys = vec![
        key_with("reader", &[Scope::Read]),
        key_with("writer", &[Scope::Write]),
        key_with("both", &[Scope::Read, Scope::Write]),
        key_with("operator", &[Scope::Admin]),
    ];
    let server = TestServer::start(Access::with_keys(keys), |_, _| ());
    let refused = |command: &str| {
        format!("-NOPERM this user has no permissions to run the '{command}' command")
    };
    server.client().check(&[
        ("AUTH reader", "OK"),
        ("GET a", "nil"),
        ("SET a 1", &refused("set")),
        ("GETEX a", &refused("getex")),
        ("GETDEL a", &refused("getdel")),
        ("SELECT 3", "OK"),
        ("BUCKET CREATE b", &refused("bucket")),
        ("FLUSHALL", &refused("flushall")),
        ("CLIENT LIST", &refused("client")),
        ("CONFIG SET save x", &refused("config")),
        // Commands of a transaction need the same scopes as others.
        ("MULTI", "OK"),
        ("GET a", "QUEUED"),
        ("SET a 1", &refused("set")),
        ("EXEC", "-EXECABORT Transaction discarded because of previous errors."),
        // A queued AUTH takes effect at EXEC. Commands queued after it are checked with the earlier key.
        ("MULTI", "OK"),
        ("AUTH both", "QUEUED"),
        ("SET a 1", &refused("set")),
        ("DISCARD", "OK"),
        ("GET a", "nil"),
    ]);
    server.client().check(&[
        ("AUTH writer", "OK"),
        ("SET a 1", "OK"),
        ("GET a", &refused("get")),
        ("KEYS *", &refused("keys")),
        ("WATCH a", &refused("watch")),
        ("FLUSHDB", &refused("flushdb")),
        // The replies to these changes contain stored values.
        ("SET a 1 GET", &refused("set")),
        ("SET a 1 EX 5 get NX", &refused("set")),
        ("GETSET a 1", &refused("getset")),
        ("GETDEL a", &refused("getdel")),
        ("GETEX a", &refused("getex")),
        ("GETEX a PERSIST", &refused("getex")),
        ("INCR a", &refused("incr")),
        ("DECR a", &refused("decr")),
        ("INCRBY a 0", &refused("incrby")),
        ("DECRBY a 0", &refused("decrby")),
        ("INCRBYFLOAT a 0", &refused("incrbyfloat")),
        ("SETBIT a 0 1", &refused("setbit")),
        ("MULTI", "OK"),
        ("GETDEL a", &refused("getdel")),
        ("DISCARD", "OK"),
        // The replies to these changes contain no stored values.
        ("SET get get", "OK"),
        ("APPEND a 2", "2"),
        ("SETRANGE a 0 3", "2"),
        ("EXPIRE a 100", "1"),
        ("COPY a b", "1"),
        ("DEL get b", "2"),
    ]);
    server.client().check(&[
        ("HELLO 2 AUTH default operator", "..."),
        ("GET a", &refused("get")),
        ("FLUSHALL", "OK"),
        ("AUTH both", "OK"),
        ("GET a", "nil"),
        ("AUTH wrong", "-WRONGPASS invalid username-password pair or user is disabled."),
        // The connection keeps its earlier permissions.
        ("SET a 2", "OK"),
    ]);
}

#[test]
fn a_connection_whose_key_is_revoked_does_nothing_more() {
    let keys = KeySet::new(vec![key_with("a", &Scope::ALL), key_with("b", &Scope::ALL)]);
    let server = TestServer::start(Access::Keys(Arc::clone(&keys)), |_, _| ());
    let (mut one, mut two) = (server.client(), server.client());
    one.check(&[("AUTH a", "OK"), ("MULTI", "OK"), ("SET k 1", "QUEUED")]);
    two.check(&[("AUTH b", "OK"), ("MULTI", "OK"), ("SET k 2", "QUEUED")]);
    // One key is revoked. The other key may now only read.
    keys.replace(&[key_with("b", &[Scope::Read])]);
    one.check(&[("EXEC", "-EXECABORT ..."), ("GET k", "-NOAUTH Authentication required.")]);
    two.check(&[("EXEC", "-EXECABORT ..."), ("GET k", "nil"), ("SET k 3", "-NOPERM ...")]);
    keys.replace(&[KeyHash::new(b"b", Scopes::ALL)]);
    two.check(&[("SET k 3", "OK")]);
}

#[test]
fn before_the_key_requests_are_small() {
    let server = TestServer::with_key();
    for request in ["*11\r\n", "*2\r\n$4\r\nAUTH\r\n$16385\r\n"] {
        let mut client = server.client();
        client.send(request.as_bytes());
        let reply = client.receive().unwrap();
        assert!(reply.starts_with("-ERR Protocol error: unauthenticated"), "{reply}");
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
fn connections_beyond_the_limit_get_an_error() {
    let server = TestServer::start(Access::Open, |_, options| options.connections_max = 2);
    let (mut one, mut two) = (server.client(), server.client());
    assert_eq!((one.line("PING"), two.line("PING")), ("PONG".into(), "PONG".into()));
    let mut three = server.client();
    assert_eq!(three.receive().unwrap(), "-ERR max number of clients reached");
    assert_eq!(three.receive(), None);
    two.line("QUIT");
    assert_eq!(two.receive(), None);
    // The server may need a moment to close the connection.
    let again = std::iter::repeat_with(|| {
        let mut client = server.client();
        client.send(b"PING\r\n");
        client.receive().unwrap()
    });
    assert!(again.take(10_000).any(|reply| reply == "PONG"));
    one.line("PING");
}
