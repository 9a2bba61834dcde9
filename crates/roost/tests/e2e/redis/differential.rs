//! Random commands, given to roost and to redis-server: the replies are the same, but for the differences that
//! `docs/redis.md` lists.

use std::process::Command;

use rand::SeedableRng as _;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;

use crate::support::process::Process;
use crate::support::redis::{Redis, Reply};
use crate::support::skipped;

const COMMANDS: usize = 10_000;
/// Commands before both begin with no keys again: what differs by design would make everything after it differ.
const ROUND: usize = 50;
/// Tolerance of times to live, in milliseconds, and so of other numbers.
const LATE_MS: i64 = 5_000;

/// `k` is a key, `v` a value, `n` a number or what might be one, `t` a time.
const FORMS: &str = "SET k v|SET k v NX|SET k v XX|SET k v GET|SET k v EX t|SET k v PX t|SET k v KEEPTTL|SET k v NX GET|\
    SET k v EXAT t|SET k v EX t NX|SET k v XX GET KEEPTTL|SET k v NX XX|SET k v EX t PX t|SET k|SET k v FOO|GET k|GET|\
    GETSET k v|GETDEL k|GETEX k|GETEX k PERSIST|SETNX k v|SETEX k t v|PSETEX k t v|MGET k k k|MSET k v k v|MSET k v k|\
    MSETNX k v k v|APPEND k v|STRLEN k|STRLEN|GETRANGE k n n|GETRANGE k n|SUBSTR k n n|SETRANGE k n v|INCR k|DECR k|\
    INCRBY k n|DECRBY k n|GETBIT k n|SETBIT k n n|SETBIT k n v|DEL k k|UNLINK k|EXISTS k k k|TOUCH k k|TYPE k|\
    RENAME k k|RENAMENX k k|COPY k k|COPY k k REPLACE|COPY k k DB n|MOVE k n|EXPIRE k t|EXPIRE k t NX|EXPIRE k t XX|\
    EXPIRE k t GT|EXPIRE k t LT|EXPIRE k|PEXPIRE k t|EXPIREAT k t|PEXPIREAT k t|PERSIST k|EXPIRETIME k|TTL k|PTTL k|\
    SELECT n|FLUSHDB|SWAPDB n n|LCS k k|LCS k k LEN|LCS k k IDX|ECHO v|PING|PING v|PING v v|MULTI|EXEC|EXEC|DISCARD|\
    UNWATCH|FOO k|CLIENT GETNAME|RESET|CONFIG GET databases";
const KEYS: [&str; 6] = ["a", "b", "c", "num", "a key with \r\n", "another"];
const VALUES: [&str; 17] = [
    "1",
    "-5",
    "10",
    "3.25",
    "1e3",
    "hello",
    "",
    "9223372036854775807",
    "-9223372036854775808",
    "9223372036854775808",
    " 1",
    "1.0",
    "nan",
    "-0",
    "007",
    "\u{e9}",
    "a longer value, so that it is not short",
];
const NUMBERS: [&str; 14] = [
    "0",
    "1",
    "-1",
    "2",
    "5",
    "100",
    "-100",
    "3.5",
    "x",
    "",
    "9223372036854775807",
    "4294967296",
    "1 ",
    "+1",
];
const TIMES: [&str; 7] = ["100", "1000", "0", "-1", "x", "9223372036854775807", "99999999999"];

/// A redis-server and a client of it; `None` if it is not installed.
fn other(folder: &std::path::Path) -> Option<(Process, Redis)> {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let port = free.port().to_string();
    let mut command = Command::new("redis-server");
    command.args(["--port", &port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]);
    let process = Process::try_start(command.current_dir(folder)).ok()?;
    loop {
        match Redis::try_new(free) {
            Ok(connection) => return Some((process, connection)),
            Err(_) => std::thread::yield_now(),
        }
    }
}

fn words(random: &mut StdRng, forms: &[&str]) -> Vec<String> {
    let form = forms.choose(random).unwrap();
    let mut any = |of: &[&str]| (*of.choose(random).unwrap()).to_owned();
    let word = |word| match word {
        "k" => any(&KEYS),
        "v" => any(&VALUES),
        "n" => any(&NUMBERS),
        "t" => any(&TIMES),
        word => word.to_owned(),
    };
    form.split_whitespace().map(word).collect()
}

/// Whether a difference is none, because time passes.
fn alike(ours: &Reply, theirs: &Reply) -> bool {
    match (ours, theirs) {
        (Reply::Array(ours), Reply::Array(theirs)) => {
            let mut pairs = ours.iter().zip(theirs);
            ours.len() == theirs.len() && pairs.all(|(ours, theirs)| alike(ours, theirs))
        }
        (Reply::Integer(ours), Reply::Integer(theirs)) => {
            ours == theirs || *ours > 1 && *theirs > 1 && (ours - theirs).abs() <= LATE_MS
        }
        (ours, theirs) => ours == theirs,
    }
}

#[test]
fn random_commands_get_the_replies_of_redis_server() {
    let data = tempfile::tempdir().unwrap();
    let Some((_other, mut theirs)) = other(data.path()) else {
        return skipped("redis-server is not installed (apt-get install redis-server)");
    };
    let (server, port) = super::serve(&data.path().join("roost"));
    let mut ours = Redis::new(([127, 0, 0, 1], port).into());
    let seed = crate::crash::seed();
    let (mut random, forms) = (StdRng::seed_from_u64(seed), FORMS.split('|').collect::<Vec<_>>());
    let mut before = Vec::new();
    for number in 0..COMMANDS {
        if number % ROUND == 0 {
            before.clear();
            for connection in [&mut ours, &mut theirs] {
                connection.line("RESET");
                connection.line("FLUSHALL");
            }
        }
        let words = words(&mut random, &forms);
        let bytes: Vec<&[u8]> = words.iter().map(String::as_bytes).collect();
        let (our, their) = (ours.run(&bytes), theirs.run(&bytes));
        before.push(words);
        let last = before.last().unwrap();
        assert!(
            alike(&our, &their),
            "seed {seed}: {last:?} got {our:?} from roost and {their:?} from redis-server; before it: {before:?}"
        );
    }
    server.stop();
}
