//! Invalid input: it is answered or refused as in Redis, and has no other effect.

use kv::limits::KEY_BYTES_MAX;

use crate::client::TestServer;

#[test]
fn requests_that_break_the_protocol_end_the_connection_with_a_reason() {
    let server = TestServer::open();
    for (request, expect) in [
        (&b"*3000000000\r\n"[..], "-ERR Protocol error: invalid multibulk length"),
        (b"*1048577\r\n", "-ERR Protocol error: invalid multibulk length"),
        (b"*x\r\n", "-ERR Protocol error: invalid multibulk length"),
        (b"*1\r\n$-5\r\n", "-ERR Protocol error: invalid bulk length"),
        (b"*1\r\n$2000000000\r\n", "-ERR Protocol error: invalid bulk length"),
        (b"*1\r\nfoo\r\n", "-ERR Protocol error: expected '$', got 'f'"),
        (b"*2\r\n*1\r\n$4\r\nPING\r\n", "-ERR Protocol error: expected '$', got '*'"),
        (b"SET \"a b\r\n", "-ERR Protocol error: unbalanced quotes in request"),
        (&[b'x'; 70_000], "-ERR Protocol error: too big inline request"),
        (&[b"*", &[b'1'; 70_000][..]].concat(), "-ERR Protocol error: too big mbulk count string"),
    ] {
        let mut client = server.client();
        client.send(b"PING\r\n");
        client.send(request);
        assert_eq!(client.receive().unwrap(), "PONG");
        assert_eq!(client.receive().unwrap(), expect, "{}", request.escape_ascii());
        assert_eq!(client.receive(), None);
    }
    assert_eq!(server.client().line("PING"), "PONG");
}

#[test]
fn a_command_that_is_too_long_as_a_whole_is_refused_before_it_arrives() {
    let server = TestServer::open();
    let mut client = server.client();
    client.send(b"*4\r\n$4\r\nMSET\r\n$1\r\na\r\n$16777216\r\n");
    client.send(&vec![b'v'; 16 << 20]);
    client.send(b"\r\n$16777216\r\n");
    assert_eq!(client.receive().unwrap(), "-ERR Protocol error: too big request");
    assert_eq!(client.receive(), None);
}

#[test]
fn empty_commands_are_passed_over() {
    let server = TestServer::open();
    let mut client = server.client();
    client.send(b"\r\n*0\r\n*-1\r\n   \r\nPING\r\n");
    assert_eq!(client.receive().unwrap(), "PONG");
}

#[test]
fn a_request_of_http_ends_the_connection_at_once() {
    let server = TestServer::open();
    for request in [
        "POST / HTTP/1.1\r\nHost: localhost\r\n\r\nSET a 1\r\n",
        "GET / HTTP/1.1\r\nHost: localhost\r\n\r\nSET a 1\r\n",
    ] {
        let mut client = server.client();
        client.send(request.as_bytes());
        while let Some(reply) = client.receive() {
            assert!(reply.starts_with("-ERR wrong number of arguments for 'get'"), "{reply}");
        }
    }
    assert_eq!(server.client().line("EXISTS a"), "0");
}

#[test]
fn commands_that_do_not_exist_get_an_error_and_the_connection_stays_open() {
    TestServer::open().client().check(&[
        ("FOO a b", "-ERR unknown command 'FOO', with args beginning with: 'a' 'b' "),
        ("LPUSH l v", "-ERR unknown command 'LPUSH', with args beginning with: 'l' 'v' (roost..."),
        ("HSET h f v", "-ERR unknown command 'HSET'..."),
        ("SUBSCRIBE c", "-ERR unknown command 'SUBSCRIBE'..."),
        ("EVAL x 0", "-ERR unknown command 'EVAL'..."),
        ("GET", "-ERR wrong number of arguments for 'get' command"),
        ("GET a b", "-ERR wrong number of arguments for 'get' command"),
        ("CONFIG SET maxmemory 1mb", "-ERR CONFIG SET failed (possibly related to argument..."),
        ("CONFIG SET nonsense 1", "-ERR Unknown option or number of arguments for CONFIG SET..."),
        ("CLIENT KILL", "-ERR wrong number of arguments for 'client|kill' command"),
        ("SHUTDOWN", "-ERR roost is stopped..."),
        ("PING", "PONG"),
    ]);
}

#[test]
fn any_bytes_can_be_a_key_and_keys_have_a_longest() {
    let server = TestServer::open();
    let mut client = server.client();
    let every: Vec<u8> = (0..=255).collect();
    assert_eq!(client.run(&[b"SET", &every, &every]), "OK");
    assert_eq!(client.run(&[b"STRLEN", &every]), "256");
    let longest = vec![b'k'; KEY_BYTES_MAX];
    assert_eq!(client.run(&[b"SET", &longest, b"1"]), "OK");
    assert_eq!(client.run(&[b"GET", &longest]), "\"1\"");
    let longer = vec![b'k'; KEY_BYTES_MAX + 1];
    let refused = format!("-ERR a key has at most {KEY_BYTES_MAX} bytes");
    assert_eq!(client.run(&[b"SET", &longer, b"1"]), refused);
    for reading in ["GET", "TTL", "DUMP"] {
        let reply = client.run(&[reading.as_bytes(), &longer]);
        assert!(["nil", "-2"].contains(&reply.as_str()), "{reading}: {reply}");
    }
    // These commands change invalid keys.
    for words in [
        &[&b"INCR"[..], &longer][..],
        &[b"APPEND", &longer, b"x"],
        &[b"SETRANGE", &longer, b"1", b"x"],
        &[b"SETBIT", &longer, b"1", b"1"],
        &[b"MSET", b"a", b"1", &longer, b"x"],
        &[b"RENAME", &every, &longer],
        &[b"COPY", &every, &longer],
        &[b"GETDEL", &longer],
        &[b"GETEX", &longer, b"PERSIST"],
    ] {
        assert_eq!(client.run(words), refused, "{}", words[0].escape_ascii());
    }
    for words in [
        &[&b"DEL"[..], &longer, b""][..],
        &[b"EXPIRE", &longer, b"1"],
        &[b"EXPIRE", b"", b"1"],
        &[b"PERSIST", &longer],
        &[b"MOVE", &longer, b"1"],
        &[b"COPY", b"", b"a"],
        &[b"EXISTS", &longer, b""],
    ] {
        assert_eq!(client.run(words), "0", "{}", words[0].escape_ascii());
    }
    for words in [&[&b"RENAME"[..], &longer, b"a"][..], &[b"RENAME", b"", b"a"]] {
        assert_eq!(client.run(words), "-ERR no such key");
    }
    client.check(&[("WATCH \"\"", "OK"), ("MULTI", "OK"), ("PING", "QUEUED"), ("EXEC", "[PONG]")]);
}
