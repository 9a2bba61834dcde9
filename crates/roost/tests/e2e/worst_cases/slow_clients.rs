//! Tests of thousands of clients that send much and read nothing, all at their limits at the same time. Memory stays
//! below the sum of the budgets, and other clients are served.

use std::io::{BufReader, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::Command;

use rustix::process::{Resource, getrlimit, setrlimit};

use super::Small;
use crate::support::http::{Client, connect};
use crate::support::process::{Server, roost};
use crate::support::redis::{Redis, Reply, command, line};

const KEY: &str = "a-key-for-these-tests";

/// Sends as many of these bytes as the server accepts immediately, and reads nothing.
fn push(address: SocketAddr, bytes: &[u8]) -> BufReader<TcpStream> {
    let mut stream = connect(address).unwrap();
    stream.get_mut().set_nonblocking(true).unwrap();
    let mut rest = bytes;
    while let Ok(sent @ 1..) = stream.get_mut().write(rest) {
        rest = &rest[sent..];
    }
    stream
}

fn raise_limit_of_files(needed: u64) {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).unwrap();
    let most = limit.current.unwrap_or(u64::MAX);
    assert!(
        most >= needed,
        "this test needs {needed} open files, and {most} may be: see ulimit -Hn"
    );
}

#[test]
fn memory_stays_below_the_sum_of_the_budgets_with_thousands_of_slow_clients() {
    raise_limit_of_files(3_500);
    let small = Small::with(&[
        "--memory",
        "940MiB",
        "--media-max",
        "0",
        "--max-connections",
        "2200",
        "--durability",
        "never",
    ]);
    // First fill the caches, the overlay and the store.
    let mut redis = small.redis();
    let value: Vec<u8> =
        (0..1_u32 << 18).flat_map(|n| n.wrapping_mul(2_654_435_761).to_be_bytes()).collect();
    for number in 0..200 {
        let reply = redis.run(&[b"SET", format!("k{number}").as_bytes(), &value]);
        assert_eq!(reply, Reply::ok());
    }
    let half = [&b"*2\r\n$3\r\nGET\r\n$16777216\r\n"[..], &value].concat();
    let values: Vec<u8> = (0..200).flat_map(|number| line(&format!("GET k{number}"))).collect();
    let pings = line("PING").repeat(20_000);
    let multi = [line("MULTI"), command(&[b"SET", b"queued", &value])].concat();
    let slow: Vec<_> = (0..2_000)
        .map(|number| {
            let bytes = [&half, &values, &pings, &multi][number % 4];
            push(small.redis, bytes)
        })
        .collect();
    let put = format!(
        "PUT /v1/buckets/0/keys/never HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n",
        16 << 20
    );
    let put = [put.as_bytes(), &value].concat();
    let get = "GET /v1/buckets/0/keys/k1 HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(10);
    let head = format!("GET /v1/users HTTP/1.1\r\nX-Long: {}", "x".repeat(7_000));
    let address = small.server().address;
    let others: Vec<_> = (0..1_000)
        .map(|number| push(address, [&put, get.as_bytes(), head.as_bytes()][number % 3]))
        .collect();
    for _ in 0..20 {
        small.client().get("/healthz").expect(200);
        assert_eq!(small.redis().line("SET small 1"), Reply::ok());
    }
    small.check_memory(940);
    assert_eq!((slow.len(), others.len()), (2_000, 1_000));
    drop((slow, others));
    small.check(800, |redis| {
        for number in [0, 100, 199] {
            // A connection ends shortly after its client, and uses memory until then.
            let length = redis.until_not_busy(&format!("STRLEN k{number}"));
            assert_eq!(length, Reply::Integer(1 << 20));
        }
        assert_eq!(redis.line("EXISTS never queued").integer(), 0);
    });
}

#[test]
fn pipelines_of_clients_that_read_nothing_with_and_without_the_key() {
    let data = tempfile::tempdir().unwrap();
    let start = || {
        let mut command = roost(["serve", "--listen", "127.0.0.1:0", "--data"]);
        command.arg(data.path()).args([
            "--memory",
            "900MiB",
            "--media-max",
            "0",
            "--durability",
            "never",
        ]);
        command.args(["--redis-listen", "127.0.0.1:0"]).env("ROOST_KEY", KEY);
        let mut server = Server::start(&mut command);
        server.key = Some(KEY.into());
        let redis = server.process.said("roost serves redis://").unwrap();
        (server, redis.parse::<SocketAddr>().unwrap())
    };
    let (server, redis) = start();
    let known = || {
        let mut known = Redis::new(redis);
        assert_eq!(known.line(&format!("AUTH {KEY}")), Reply::ok());
        known
    };
    let pings = line("PING").repeat(200_000);
    let keyless: Vec<_> = (0..200).map(|_| push(redis, &pings)).collect();
    let base = server.process.peak_memory();
    // A client without a key needs no more memory than any connection.
    assert!(base < 150 << 20, "{base}");
    let mut slow: Vec<Redis> = (0..200).map(|_| known()).collect();
    for client in &mut slow {
        client.push(&pings);
    }
    let mut stranger = known();
    assert_eq!(stranger.line("SET k v"), Reply::ok());
    assert_eq!(stranger.line("GET k"), Reply::Bulk(Some(b"v".to_vec())));
    server.client().register("ada");
    assert!(server.process.peak_memory() < 300 << 20, "{}", server.process.peak_memory());
    drop((keyless, slow));
    server.kill();
    let (server, redis) = start();
    let mut stranger = Redis::new(redis);
    assert_eq!(stranger.line(&format!("AUTH {KEY}")), Reply::ok());
    assert_eq!(stranger.line("GET k"), Reply::Bulk(Some(b"v".to_vec())));
    server.client().get("/v1/users/@ada").expect(200);
}

#[test]
fn idle_connections_without_a_key_under_a_low_limit_of_files() {
    let data = tempfile::tempdir().unwrap();
    let start = || {
        let mut command = Command::new("sh");
        command.args(["-c", "ulimit -n 300; exec \"$@\"", "sh", env!("CARGO_BIN_EXE_roost")]);
        command.args(["serve", "--listen", "127.0.0.1:0", "--redis-listen", "127.0.0.1:0"]);
        command
            .args(["--memory", "900MiB", "--media-max", "0", "--durability", "never", "--data"])
            .arg(data.path());
        let server = Server::start(command.env("ROOST_KEY", KEY));
        let redis = server.process.said("roost serves redis://").unwrap();
        (server, redis.parse::<SocketAddr>().unwrap())
    };
    let (server, redis) = start();
    let mut client = Client::new(server.address, Some(KEY.into()));
    client.register("ada");
    let value = vec![7; 10 << 20];
    let mut idle = Vec::new();
    for round in 0..5 {
        for _ in 0..50 {
            idle.push(TcpStream::connect(server.address).unwrap());
            idle.push(TcpStream::connect(redis).unwrap());
        }
        let mut known = Redis::new(redis);
        assert_eq!(known.line(&format!("AUTH {KEY}")), Reply::ok());
        // Meanwhile, segments of the log are filled and checkpoints are taken.
        assert_eq!(known.run(&[b"SET", format!("k{round}").as_bytes(), &value]), Reply::ok());
        Client::new(server.address, Some(KEY.into())).publish(0, "still here");
    }
    drop(idle);
    let ended = server.kill();
    assert!(!ended.err.contains("Too many open files"), "{ended:#?}");
    let (server, redis) = start();
    let mut known = Redis::new(redis);
    assert_eq!(known.line(&format!("AUTH {KEY}")), Reply::ok());
    assert_eq!(known.line("DBSIZE").integer(), 5);
    let mut client = Client::new(server.address, Some(KEY.into()));
    assert_eq!(client.all("/v1/users/@ada/posts").len(), 5);
}
