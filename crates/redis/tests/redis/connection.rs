//! Connections: protocols, pipelines, CLIENT, and their end.

use std::io::Write as _;

use edge::Access;

use crate::client::TestServer;

#[test]
fn replies_have_the_form_of_the_protocol_that_was_chosen() {
    TestServer::open().client().check(&[
        ("HELLO", "[\"server\", \"redis\", \"version\", \"7.0.15\", \"proto\", 2, \"id\"..."),
        ("CONFIG GET databases", "[\"databases\", \"16\"]"),
        ("HELLO 4", "-NOPROTO unsupported protocol version"),
        ("HELLO x", "-ERR Protocol version is not an integer or out of range"),
        ("HELLO 3 NONSENSE", "-ERR Syntax error in HELLO option 'NONSENSE'"),
        ("HELLO 3", "{\"server\": \"redis\", \"version\": \"7.0.15\", \"proto\": 3, \"id\"..."),
        ("CONFIG GET databases", "{\"databases\": \"16\"}"),
        ("GET none", "nil"),
        ("INFO replication", "txt\"# Replication\\r\\nrole:master\\r\\nconnected_slaves:0\\r\\n\""),
        (
            "COMMAND INFO get",
            "[[\"get\", 2, ~[readonly, fast], 1, 1, 1, ~[@read, @string, @fast...",
        ),
        ("COMMAND DOCS ttl", "{\"ttl\": {\"summary\": \"Returns the TTL of a key in sec..."),
        ("COMMAND INFO nothing", "[nil]"),
        ("COMMAND GETKEYS MSET a 1 b 2", "[\"a\", \"b\"]"),
        ("COMMAND LIST FILTERBY PATTERN mg*", "[\"mget\"]"),
        ("RESET", "RESET"),
        ("CONFIG GET databases", "[\"databases\", \"16\"]"),
        ("ECHO \"a b\"", "\"a b\""),
        ("PING hello", "\"hello\""),
    ]);
}

#[test]
fn info_counts_the_keys_that_reads_found_and_did_not_find() {
    let server = TestServer::open();
    let mut client = server.client();
    for line in ["SET a 1", "SET b 2", "GET a", "GET none", "MGET a b none", "EXISTS a none none"] {
        client.line(line);
    }
    let stats = client.line("INFO stats");
    assert!(stats.contains("keyspace_hits:4\\r\\nkeyspace_misses:4\\r\\n"), "{stats}");
    // INFO reports the rate of the previous second. Repeat until that second had commands.
    while client.line("INFO stats").contains("instantaneous_ops_per_sec:0\\r") {}
}

#[test]
fn a_hundred_thousand_commands_at_once_are_answered_in_order() {
    const COMMANDS: usize = 100_000;
    let server = TestServer::open();
    let mut client = server.client();
    let mut writing = client.0.stream().try_clone().unwrap();
    let writer = std::thread::spawn(move || {
        let commands: String =
            (0..COMMANDS / 2).map(|n| format!("INCR n\r\nECHO {n}\r\n")).collect();
        writing.write_all(commands.as_bytes()).unwrap();
    });
    for number in 0..COMMANDS / 2 {
        assert_eq!(client.receive().unwrap(), (number + 1).to_string());
        assert_eq!(client.receive().unwrap(), format!("\"{number}\""));
    }
    writer.join().unwrap();
}

#[test]
fn a_client_may_write_a_long_pipeline_before_it_reads() {
    const COMMANDS: usize = 200_000;
    let server = TestServer::open();
    let mut client = server.client();
    client.line(&format!("SET a {}", "x".repeat(100)));
    client.send("GET a\r\n".repeat(COMMANDS).as_bytes());
    for _ in 0..COMMANDS {
        assert_eq!(client.receive().unwrap().len(), 102);
    }
}

#[test]
fn writes_of_one_client_are_seen_by_its_own_reads() {
    let server = TestServer::open();
    let mut client = server.client();
    for round in 0..200 {
        client.send(
            format!("SET k {round}\r\nGET k\r\nAPPEND k x\r\nSTRLEN k\r\nDEL k\r\nEXISTS k\r\n")
                .as_bytes(),
        );
        let length = round.to_string().len() + 1;
        for expect in
            ["OK", &format!("\"{round}\""), &length.to_string(), &length.to_string(), "1", "0"]
        {
            assert_eq!(client.receive().unwrap(), expect);
        }
    }
}

#[test]
fn client_reply_turns_replies_off_and_on() {
    let server = TestServer::open();
    let mut client = server.client();
    client.send(
        b"CLIENT REPLY SKIP\r\nSET a 1\r\nINCR a\r\nCLIENT REPLY OFF\r\nINCR a\r\nGET a\r\nNOPE\r\n\
          CLIENT REPLY SKIP\r\nPING\r\nCLIENT REPLY ON\r\nGET a\r\n",
    );
    for expect in ["2", "OK", "\"3\""] {
        assert_eq!(client.receive().unwrap(), expect);
    }
    client.check(&[("CLIENT REPLY MAYBE", "-ERR syntax error")]);
}

#[test]
fn clients_are_listed_and_killed() {
    let server = TestServer::open();
    let (mut one, mut two) = (server.client(), server.client());
    two.check(&[
        ("CLIENT SETNAME two", "OK"),
        ("CLIENT SETNAME \"a b\"", "-ERR Client names cannot contain spaces..."),
        ("CLIENT SETINFO lib-name tests", "OK"),
        ("CLIENT GETNAME", "\"two\""),
        ("SELECT 3", "OK"),
    ]);
    let id = two.line("CLIENT ID");
    let listed = one.line("CLIENT LIST");
    let line = listed.split("\\n").find(|line| line.contains(&format!("id={id} "))).unwrap();
    for part in ["name=two", "db=3", "lib-name=tests", "cmd=client", "resp=2"] {
        assert!(line.contains(part), "{part}: {line}");
    }
    one.check(&[
        ("CLIENT KILL ID 1000", "0"),
        ("CLIENT KILL ID x", "-ERR client-id should be greater than 0"),
        ("CLIENT KILL 1.2.3.4:5", "-ERR No such client"),
        (&format!("CLIENT KILL ID {id}"), "1"),
        ("CLIENT NO-EVICT on", "OK"),
        ("CLIENT FLY", "-ERR unknown subcommand 'FLY'. Try CLIENT HELP."),
        ("CLIENT SETNAME", "-ERR wrong number of arguments for 'client|setname' command"),
        ("client Kill", "-ERR wrong number of arguments for 'client|kill' command"),
        ("COMMAND GETKEYS", "-ERR wrong number of arguments for 'command|getkeys' command"),
        ("CONFIG GET", "-ERR wrong number of arguments for 'config|get' command"),
        ("CONFIG RESETSTAT", "-ERR roost does not reset its counters"),
    ]);
    assert_eq!(two.receive(), None);
    assert_eq!(one.line("CLIENT KILL SKIPME no"), "1");
    assert_eq!(one.receive(), None);
}

#[test]
fn after_quit_nothing_is_done() {
    let server = TestServer::open();
    let mut client = server.client();
    client.send(b"SET a 1\r\nQUIT\r\nSET a 2\r\n");
    assert_eq!((client.receive(), client.receive()), (Some("OK".into()), Some("OK".into())));
    assert_eq!(client.receive(), None);
    assert_eq!(server.client().line("GET a"), "\"1\"");
}

#[test]
fn commands_that_arrived_are_done_though_the_client_sends_no_more() {
    let server = TestServer::open();
    let mut client = server.client();
    client.send(b"SET a 1\r\nGET a\r\nGET");
    client.0.stream().shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(client.receive().unwrap(), "OK");
    assert_eq!(client.receive().unwrap(), "\"1\"");
    assert_eq!(client.receive(), None);
}

#[test]
fn at_shutdown_connections_end() {
    let mut server = TestServer::start(Access::Open, |_, options| options.threads = Some(1));
    let (mut idle, mut half) = (server.client(), server.client());
    assert_eq!(idle.line("PING"), "PONG");
    half.send(b"*2\r\n$3\r\nGET");
    server.stop();
    assert_eq!((idle.receive(), half.receive()), (None, None));
}
