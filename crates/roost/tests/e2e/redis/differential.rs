//! Test that sends random commands to roost and to redis-server: the replies are the same, except for the differences
//! listed in `docs/redis.md`.

use std::mem::replace;
use std::process::Command;

use rand::SeedableRng as _;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;

use crate::support::process::Process;
use crate::support::redis::{Redis, Reply};
use crate::support::skipped;

const COMMANDS: usize = 10_000;
/// Number of commands after which both servers start again without keys. Otherwise, one intended difference would make
/// all later replies differ.
const ROUND: usize = 50;
/// Maximum difference of times to live and of times of expiry, in milliseconds.
const LATE_MS: i64 = 5_000;

/// Beginning of the error of a transaction that may change too much.
const TOO_LARGE: &str = "ERR the change is too large";

/// Forms of commands. `k` is a key, `v` a value, `n` a number or an invalid one, `t` a time in seconds, `m` a time in
/// milliseconds, `f` a number that Redis adds without rounding, `d` a reply of DUMP. `;` separates the commands of a
/// sequence. No reply depends on small differences between the clocks: keys that expire live for at least 100 seconds,
/// and only times of the key `timed` are compared.
const FORMS: &str = "SET k v|SET k v NX|SET k v XX|SET k v GET|SET k v EX t|SET k v PX m|SET k v KEEPTTL|SET k v NX GET|\
    SET k v EXAT t|SET k v EX t NX|SET k v XX GET KEEPTTL|SET k v NX XX|SET k v EX t PX m|SET k|SET k v FOO|GET k|GET|\
    GETSET k v|GETDEL k|GETEX k|GETEX k PERSIST|SETNX k v|SETEX k t v|PSETEX k m v|MGET k k k|MSET k v k v|MSET k v k|\
    MSETNX k v k v|APPEND k v|STRLEN k|STRLEN|GETRANGE k n n|GETRANGE k n|SUBSTR k n n|SETRANGE k n v|INCR k|DECR k|\
    INCRBY k n|DECRBY k n|GETBIT k n|SETBIT k n n|SETBIT k n v|DEL k k|UNLINK k|EXISTS k k k|TOUCH k k|TYPE k|\
    RENAME k k|RENAMENX k k|COPY k k|COPY k k REPLACE|COPY k k DB n|MOVE k n|EXPIRE k t|EXPIRE k t NX|EXPIRE k t XX|\
    SET timed v EX 100;EXPIRE timed 200 GT;EXPIRE timed 50 GT;TTL timed|\
    SET timed v EX 100;EXPIRE timed 200 LT;EXPIRE timed 50 LT;TTL timed|\
    SET timed v;EXPIRE timed 100 GT;EXPIRE timed 50 LT;TTL timed|EXPIRE k t FOO|EXPIRE k|PEXPIRE k m|\
    EXPIREAT k t|PEXPIREAT k t|PERSIST k|EXPIRETIME k|TTL k|PTTL k|\
    SELECT n|FLUSHDB|SWAPDB n n|LCS k k|LCS k k LEN|LCS k k IDX|ECHO v|PING|PING v|PING v v|MULTI|EXEC|EXEC|DISCARD|\
    UNWATCH|FOO k|CLIENT GETNAME|RESET|CONFIG GET databases|SET k v EX t EX t|SET k v PX m EX t|GETEX k EX 100 EX 1000|\
    GETEX k PX 100000 EX 100|GETEX k PERSIST PERSIST|GETEX k PERSIST EX 100|SET float f;INCRBYFLOAT float f;GET float|\
    INCRBYFLOAT absent f;DEL absent|INCRBYFLOAT float|SET plain v;OBJECT ENCODING plain|\
    OBJECT ENCODING absent|OBJECT REFCOUNT absent|OBJECT FREQ absent|RESTORE k 0 d|RESTORE k 0 d REPLACE|\
    RESTORE k 100000 d REPLACE|RESTORE k 0 d FOO|DUMP absent|WATCH k;SET k v;UNWATCH|WATCH w;SET w v;MULTI;GET w;EXEC|\
    WATCH w;MULTI;SET w v;GET w;EXEC|WATCH w k;DEL w;MULTI;GET w;EXEC|WATCH w;EXPIRE w 100;MULTI;TTL w;PTTL w;EXEC|\
    WATCH w;SET w v;UNWATCH;MULTI;GET w;EXEC|WATCH w;SET w v;MULTI;DISCARD;MULTI;GET w;EXEC|WATCH|EXEC v|DISCARD v";
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
const FLOATS: [&str; 12] =
    ["1", "-5", "3.25", "1e3", "-0.5", "007", "+2", "x", "", " 1", "nan", "1e-1x"];
/// Commands whose replies are times.
const TIMED: [&str; 4] = ["TTL", "PTTL", "EXPIRETIME", "PEXPIRETIME"];
const TIMES: [&str; 7] = ["100", "1000", "0", "-1", "x", "9223372036854775807", "99999999999"];
const MILLISECONDS: [&str; 7] =
    ["100000", "1000000", "0", "-1", "x", "9223372036854775807", "99999999999"];

/// Starts a redis-server and connects a client; `None` if redis-server is not installed.
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

/// Replies of both servers to DUMP for some values. RESTORE accepts all of them.
fn payloads(servers: [&mut Redis; 2]) -> Vec<Vec<u8>> {
    let mut payloads = Vec::new();
    for server in servers {
        for value in VALUES {
            assert_eq!(server.run(&[b"SET", b"a", value.as_bytes()]), Reply::ok());
            payloads.push(server.run(&[b"DUMP", b"a"]).bytes());
        }
    }
    payloads
}

/// Random commands of a random form.
fn commands(random: &mut StdRng, forms: &[&str], payloads: &[Vec<u8>]) -> Vec<Vec<Vec<u8>>> {
    let form = forms.choose(random).unwrap();
    let mut word = |word: &str| {
        let mut any = |of: &[&str]| of.choose(random).unwrap().as_bytes().to_vec();
        match word {
            "k" => any(&KEYS),
            "v" => any(&VALUES),
            "n" => any(&NUMBERS),
            "t" => any(&TIMES),
            "m" => any(&MILLISECONDS),
            "f" => any(&FLOATS),
            "d" => payloads.choose(random).unwrap().clone(),
            word => word.as_bytes().to_vec(),
        }
    };
    form.split(';').map(|line| line.split_whitespace().map(&mut word).collect()).collect()
}

/// Whether the replies to a command are equal, apart from the passage of time. The reply to EXEC contains the replies
/// to the `queued` commands.
fn alike(name: &str, queued: &[String], ours: &Reply, theirs: &Reply) -> bool {
    match (ours, theirs) {
        (Reply::Array(ours), Reply::Array(theirs)) if name == "EXEC" => {
            let replies = ours.iter().zip(theirs);
            let mut replies = queued.iter().zip(replies);
            ours.len() == queued.len()
                && theirs.len() == queued.len()
                && replies.all(|(name, (ours, theirs))| alike(name, &[], ours, theirs))
        }
        (Reply::Integer(ours), Reply::Integer(theirs)) if TIMED.contains(&name) => {
            let late = if name.starts_with('P') { LATE_MS } else { LATE_MS / 1_000 };
            ours == theirs || *ours > 1 && *theirs > 1 && (ours - theirs).abs() <= late
        }
        (ours, theirs) => ours == theirs,
    }
}

#[test]
fn only_times_may_differ_and_only_a_little() {
    let check = |name: &str, ours: i64, theirs: i64| {
        let (ours, theirs) = (Reply::Integer(ours), Reply::Integer(theirs));
        let alone = alike(name, &[], &ours, &theirs);
        let (ours, theirs) = (Reply::Array(vec![ours]), Reply::Array(vec![theirs]));
        assert_eq!(alike("EXEC", &[name.to_owned()], &ours, &theirs), alone, "{name} in MULTI");
        alone
    };
    assert!(check("INCR", 7, 7) && !check("INCR", 7, 8) && !check("STRLEN", 100, 99));
    assert!(check("PTTL", 10_000, 5_000) && !check("PTTL", 10_001, 5_000));
    assert!(check("TTL", 100, 95) && !check("TTL", 100, 94) && !check("TTL", -1, 2));
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
    let payloads = payloads([&mut ours, &mut theirs]);
    let (mut before, mut queued, mut differ) = (Vec::new(), Vec::new(), false);
    for number in 0..COMMANDS {
        if number % ROUND == 0 || replace(&mut differ, false) {
            before.clear();
            queued.clear();
            for connection in [&mut ours, &mut theirs] {
                connection.line("RESET");
                connection.line("FLUSHALL");
            }
        }
        for words in commands(&mut random, &forms, &payloads) {
            let bytes: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
            let (our, their) = (ours.run(&bytes), theirs.run(&bytes));
            let name = String::from_utf8_lossy(&words[0]).into_owned();
            let line = words.iter().map(|word| word.escape_ascii().to_string());
            before.push(line.collect::<Vec<_>>());
            let last = before.last().unwrap();
            // After SWAPDB, each value of the transaction counts as the longest possible one (docs/limits.md).
            differ |= name == "EXEC"
                && queued.iter().any(|name| name == "SWAPDB")
                && matches!(&our, Reply::Error(error) if error.starts_with(TOO_LARGE));
            assert!(
                differ || alike(&name, &queued, &our, &their),
                "seed {seed}: {last:?} got {our:?} from roost and {their:?} from redis-server; before it: {before:?}"
            );
            if our == Reply::Simple("QUEUED".to_owned()) {
                queued.push(name);
            } else if ["MULTI", "EXEC", "DISCARD", "RESET"].contains(&name.as_str())
                && !matches!(&our, Reply::Error(error) if error.starts_with("ERR"))
            {
                queued.clear();
            }
        }
    }
    server.stop();
}
