//! For each family of commands, the smallest request with the largest effect, on a server with little memory. Each
//! request gets a reply or an error, other clients are served, and all memory is freed.

use edge::{Access, KeyHash, Scopes};
use redis::RedisOptions;

use testkit::redis::command;

use crate::client::{Client, KEY, TestServer};

/// Maximum memory of all Redis clients.
const MEMORY: usize = 24 << 20;
const BUSY: &str = "-BUSY the server has no memory for this now; try again in a second";

/// Server with little memory, and the metrics of its memory.
struct Small {
    server: TestServer,
    metrics: redis::RedisMetrics,
}

impl Small {
    fn open() -> Self {
        Self::start(Access::Open, |_| ())
    }

    fn start(access: Access, set: impl FnOnce(&mut RedisOptions)) -> Self {
        let metrics = redis::RedisMetrics::default();
        let server = TestServer::start(access, |_, options| {
            options.memory = MEMORY;
            options.connections_max = 64;
            options.metrics = metrics.clone();
            set(options);
        });
        Self { server, metrics }
    }

    fn client(&self) -> Client {
        self.server.client()
    }

    /// Waits until no memory is reserved.
    fn check_all_is_given_back(&self) {
        let used = std::iter::repeat_with(|| {
            std::thread::yield_now();
            self.metrics.memory_bytes().0
        });
        // A connection ends a moment after its client. Only a leak exceeds this bound.
        assert!(used.take(20_000_000).any(|used| used == 0), "{:?}", self.metrics.memory_bytes());
    }
}

/// Checks the beginning of the reply to a hostile request.
fn begins(client: &mut Client, words: &[&[u8]], expect: &str) {
    let reply = client.run(words);
    assert!(reply.starts_with(expect), "{}: {:.200}", words[0].escape_ascii(), reply);
}

#[test]
fn requests_with_the_largest_effect_are_answered_and_their_memory_is_given_back() {
    let small = Small::open();
    let mut client = small.client();
    let long = vec![b'x'; 8 << 20];
    assert_eq!(client.run(&[b"SET", b"long", &long]), "OK");
    assert_eq!(client.run(&[b"SET", b"short", b"1"]), "OK");
    let many: Vec<&[u8]> =
        [&b"MGET"[..]].into_iter().chain(std::iter::repeat_n(&b"long"[..], 9)).collect();
    let keys: Vec<&[u8]> =
        [&b"EXISTS"[..]].into_iter().chain(std::iter::repeat_n(&b"k"[..], 65_537)).collect();
    let docs: Vec<&[u8]> = [&b"COMMAND"[..], b"DOCS"]
        .into_iter()
        .chain(std::iter::repeat_n(&b"get"[..], 60_000))
        .collect();
    let name = vec![b'n'; 257];
    let pattern = vec![b'*'; 1_025];
    let hostile = [&b"a*".repeat(500)[..], b"b"].concat();
    let longest = vec![b'a'; 60_000];
    assert_eq!(client.run(&[b"SET", &longest, b"1"]), "OK");
    let table: &[(&[&[u8]], &str)] = &[
        // Limits of replies.
        (&many, "-ERR the reply would be longer than 64 MiB"),
        (&[b"MGET", b"long", b"long", b"long"], BUSY),
        (&docs, BUSY),
        (&[b"BUCKET", b"LIST", b"COUNT", b"100000"], "[]"),
        (&[b"BUCKET", b"LIST", b"COUNT", b"100000", b"AFTER", b"x"], "[]"),
        // Limits of names.
        (&[b"CLIENT", b"SETNAME", &name], "-ERR Client names cannot be longer than 256 bytes."),
        (&[b"CLIENT", b"SETINFO", b"lib-name", &name], "-ERR lib-name cannot be longer"),
        (&[b"CLIENT", b"SETINFO", b"lib-ver", &name], "-ERR lib-ver cannot be longer"),
        // Limits of work.
        (&keys, "-ERR a command reads at most 65536 keys"),
        (&[b"KEYS", &pattern], "-ERR a pattern has at most 1024 bytes"),
        (&[b"SCAN", b"0", b"MATCH", &pattern], "-ERR a pattern has at most 1024 bytes"),
        (&[b"CONFIG", b"GET", &pattern], "-ERR a pattern has at most 1024 bytes"),
        (&[b"KEYS", &hostile], "[]"),
        // SCAN stops after some bytes and can be continued.
        (&[b"SCAN", b"0", b"MATCH", &hostile, b"COUNT", b"9223372036854775807"], "[\""),
        (&[b"LCS", b"long", b"long"], "-ERR Insufficient memory, transient memory for LCS"),
        (&[b"LCS", b"long", b"short", b"LEN"], "-ERR Insufficient memory"),
        (&[b"LCS", b"long", b"none", b"IDX"], "-ERR Insufficient memory"),
        (&[b"RANDOMKEY"], "\""),
        (&[b"DUMP", b"long"], "\"\\x00\\x80"),
        (&[b"PING"], "PONG"),
    ];
    for (words, expect) in table {
        begins(&mut client, words, expect);
    }
    assert_eq!(small.client().line("GET short"), "\"1\"");
    drop(client);
    small.check_all_is_given_back();
}

#[test]
fn changes_that_answer_with_long_rows_are_refused_before_they_happen_if_the_reply_has_no_room() {
    let small = Small::open();
    let mut client = small.client();
    let long = vec![b'x'; 4 << 20];
    for number in 0..8_u8 {
        assert_eq!(client.run(&[b"SET", &[number], &long]), "OK");
    }
    // The rows of all commands of this pipeline are never in memory at the same time.
    let getex = command(&[b"GETEX", &[0], b"EX", b"100"]).repeat(40);
    client.send(&getex);
    let mut answered = 0;
    for _ in 0..40 {
        let bytes = client.0.receive().bytes();
        answered += usize::from(bytes == long);
        assert!(small.metrics.memory_bytes().0 <= MEMORY);
    }
    assert_eq!(answered, 40);
    // A transaction is not executed if its rows do not fit.
    client.line("MULTI");
    for number in 0..8_u8 {
        assert_eq!(client.run(&[b"GETDEL", &[number]]), "QUEUED");
    }
    assert_eq!(client.line("EXEC"), BUSY);
    assert_eq!(client.line("DBSIZE"), "8");
    // A transaction is not executed if its rows exceed the maximum reply.
    client.line("MULTI");
    for _ in 0..17 {
        assert_eq!(client.run(&[b"GETEX", &[0], b"PERSIST"]), "QUEUED");
    }
    let refused = client.line("EXEC");
    assert!(refused.starts_with("-EXECABORT Transaction discarded because of: the reply"));
    drop(client);
    small.check_all_is_given_back();
}

#[test]
fn what_transactions_keep_is_within_the_budget() {
    let small = Small::open();
    let (mut one, mut other) = (small.client(), small.client());
    let value = vec![b'x'; 3 << 20];
    assert_eq!(one.line("MULTI"), "OK");
    let queued = (0..10).take_while(|_| one.run(&[b"SET", b"k", &value]) == "QUEUED").count();
    assert!((3..8).contains(&queued), "{queued}");
    assert!(one.line("EXEC").starts_with("-EXECABORT"));
    let keys: Vec<Vec<u8>> = (0..60_u8).map(|n| [&[n][..], &[b'k'; 60_000]].concat()).collect();
    let watch: Vec<&[u8]> =
        [&b"WATCH"[..]].into_iter().chain(keys.iter().map(Vec::as_slice)).collect();
    assert_eq!((one.run(&watch), other.run(&watch)), ("OK".into(), "OK".into()));
    assert!(one.run(&watch).len() < 100);
    assert_eq!(one.line("UNWATCH"), "OK");
    // The number of keys that a transaction reads is limited, because the writer looks them up.
    assert_eq!(one.line("MULTI"), "OK");
    let exists: Vec<&[u8]> =
        [&b"EXISTS"[..]].into_iter().chain(std::iter::repeat_n(&b"k"[..], 3_000)).collect();
    assert_eq!(one.run(&exists), "QUEUED");
    begins(&mut one, &exists, "-ERR a transaction reads at most 4096 keys");
    assert!(one.line("EXEC").starts_with("-EXECABORT"));
    drop((one, other));
    small.check_all_is_given_back();
}

#[test]
fn keys_that_are_watched_already_and_failed_watches_count_nothing() {
    let small = Small::open();
    let mut client = small.client();
    let keys: Vec<Vec<u8>> = (0..60_u8).map(|n| [&[n][..], &[b'k'; 60_000]].concat()).collect();
    let watch: Vec<&[u8]> =
        [&b"WATCH"[..]].into_iter().chain(keys.iter().map(Vec::as_slice)).collect();
    let many: Vec<&[u8]> =
        [&b"WATCH"[..]].into_iter().chain(std::iter::repeat_n(&b"k"[..], 70_000)).collect();
    for _ in 0..4 {
        begins(&mut client, &many, "-ERR a command reads at most 65536 keys");
        assert_eq!(client.run(&watch), "OK");
    }
    // A key that a command names repeatedly counts once.
    let twice: Vec<&[u8]> = [&b"WATCH"[..]].into_iter().chain([&keys[0][1..]; 100]).collect();
    assert_eq!(client.run(&twice), "OK");
    drop(client);
    small.check_all_is_given_back();
}

#[test]
fn a_small_payload_that_unpacks_to_much_is_counted_before_it_is_unpacked() {
    let small = Small::open();
    let mut client = small.client();
    // The value is 8 MiB of one letter. Packed, it is a literal and repetitions of 264 bytes.
    let unpacked = 1 + 264 * 31_775;
    let mut packed = b"\0a".to_vec();
    packed.extend(b"\xe0\xff\0".repeat(31_775));
    let mut payload = b"\0\xc3\x80".to_vec();
    payload.extend(u32::try_from(packed.len()).unwrap().to_be_bytes());
    payload.push(0x80);
    payload.extend(u32::try_from(unpacked).unwrap().to_be_bytes());
    payload.extend(&packed);
    payload.extend(10_u16.to_le_bytes());
    payload.extend(crc64(&payload).to_le_bytes());
    assert_eq!(client.run(&[b"RESTORE", b"k", b"0", &payload]), "OK");
    assert_eq!(client.line("STRLEN k"), unpacked.to_string());
    assert_eq!(client.line("DEL k"), "1");
    // In a transaction, the first value leaves no room for the second.
    assert_eq!(client.line("MULTI"), "OK");
    for key in [b"a", b"b"] {
        assert_eq!(client.run(&[b"RESTORE", key, b"0", &payload]), "QUEUED");
    }
    assert_eq!(client.line("EXEC"), BUSY);
    assert_eq!(client.line("DBSIZE"), "0");
    drop(client);
    small.check_all_is_given_back();
}

/// Computes the CRC-64 of Redis bit by bit.
fn crc64(bytes: &[u8]) -> u64 {
    let mut crc = 0_u64;
    for byte in bytes {
        crc ^= u64::from(*byte);
        for _ in 0..8 {
            let odd = crc & 1 == 1;
            crc >>= 1;
            if odd {
                crc ^= 0xad93_d235_94c9_35a9_u64.reverse_bits();
            }
        }
    }
    crc
}

#[test]
fn reads_in_a_transaction_see_its_changes_and_walks_come_after_it() {
    let server = TestServer::open();
    let mut client = server.client();
    let (a, b) = (b"ab".repeat(900), b"ba".repeat(900));
    client.run(&[b"SET", b"a", &a]);
    client.run(&[b"SET", b"b", &b]);
    let long = vec![b'x'; 100_000];
    client.run(&[b"SET", b"long", &long]);
    client.check(&[
        ("MULTI", "OK"),
        ("DBSIZE", "QUEUED"),
        // LCS takes more steps than are allowed on a thread of connections, and DUMP computes a checksum of many bytes.
        ("LCS a b LEN", "QUEUED"),
        ("DUMP long", "QUEUED"),
        ("MGET none n none", "QUEUED"),
        ("SET n 7", "QUEUED"),
        ("MGET n none n", "QUEUED"),
        ("OBJECT ENCODING n", "QUEUED"),
        ("OBJECT HELP", "QUEUED"),
        ("MEMORY USAGE n SAMPLES 5", "QUEUED"),
        ("TTL n", "QUEUED"),
        ("GETEX n", "QUEUED"),
        ("EXISTS n \"\" n", "QUEUED"),
        ("KEYS n*", "QUEUED"),
        ("SCAN 0 MATCH n COUNT 100", "QUEUED"),
        ("RANDOMKEY", "QUEUED"),
        ("SELECT 1", "QUEUED"),
        ("DBSIZE", "QUEUED"),
        ("KEYS *", "QUEUED"),
        ("DEL n", "QUEUED"),
    ]);
    let reply = client.line("EXEC");
    assert!(reply.starts_with("[3, 1799, \"\\x00\\x80"), "{reply:.100}");
    let after = &reply[reply.find("[nil, nil, nil]").unwrap()..];
    assert!(after.starts_with("[nil, nil, nil], OK, [\"7\", nil, \"7\"], \"int\", ["), "{after}");
    assert!(after.contains(", -1, \"7\", 2, [\"n\"], [\"0\", [\"n\"]], \""), "{after}");
    assert!(after.ends_with("OK, 0, [], 0]"), "{after}");
}

#[test]
fn a_new_connection_takes_the_place_of_one_that_never_authenticated() {
    let key = Access::with_keys(vec![KeyHash::new(KEY.as_bytes(), Scopes::ALL)]);
    let small = Small::start(key, |options| options.connections_max = 3);
    let mut known = small.client();
    assert_eq!(known.line(&format!("AUTH {KEY}")), "OK");
    let mut first = small.client();
    assert!(first.line("PING").starts_with("-NOAUTH"));
    let mut second = small.client();
    assert!(second.line("PING").starts_with("-NOAUTH"));
    let mut third = small.client();
    assert_eq!(third.line(&format!("AUTH {KEY}")), "OK");
    assert_eq!(first.receive(), None);
    let mut fourth = small.client();
    assert_eq!(fourth.line(&format!("AUTH {KEY}")), "OK");
    assert_eq!(second.receive(), None);
    // Every connection has authenticated now, so none is replaced.
    assert_eq!(small.client().receive().unwrap(), "-ERR max number of clients reached");
    assert_eq!((known.line("PING"), third.line("PING")), ("PONG".into(), "PONG".into()));
    drop((known, third, fourth));
    small.check_all_is_given_back();
}

#[test]
fn a_transaction_that_makes_too_much_is_refused_as_a_whole() {
    let small = Small::open();
    let mut client = small.client();
    assert_eq!(client.line("SET a 1"), "OK");
    assert_eq!(client.line("MULTI"), "OK");
    for number in 0..5 {
        assert_eq!(client.line(&format!("SETRANGE k{number} 16777214 x")), "QUEUED");
    }
    assert_eq!(client.line("GET a"), "QUEUED");
    let reply = client.line("EXEC");
    assert!(reply.starts_with("-ERR the change is too large"), "{reply}");
    assert_eq!(client.line("DBSIZE"), "1");
    let many: Vec<String> = (0..100_000).map(|number| number.to_string()).collect();
    let words: Vec<&[u8]> =
        [&b"DEL"[..]].into_iter().chain(many.iter().map(String::as_bytes)).collect();
    let reply = client.run(&words);
    assert!(reply.starts_with("-ERR the change is too large"), "{reply}");
    assert_eq!(client.line("GET a"), "\"1\"");
}
