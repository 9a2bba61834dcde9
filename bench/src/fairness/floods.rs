//! The floods. In each, a client repeats requests on one route.

use std::fmt::Write as _;

use clap::ValueEnum;
use sim::client::Requests;

use crate::rig::{KEY, text};

/// Number of users of a flooded server.
pub(super) const USERS: u32 = 200;
/// Number of keys that exist: `k0`, `k1` and so on.
pub(super) const KEYS: usize = 200_000;
/// Size of the values of these keys, in bytes.
pub(super) const VALUE_BYTES: usize = 32;
/// Number of keys in one read.
const READ_KEYS: usize = 65_536;
/// Number of keys that one change sets or removes: a few less than the maximum number of rows of a change.
const SET_KEYS: usize = 60_000;
const REMOVED_KEYS: usize = 80_000;
/// Size of a long value, in bytes.
const LONG_BYTES: usize = 900_000;
/// Number of short requests that are sent together.
const PIPELINED: usize = 256;

/// Route, and how it is flooded. A flood `...-cold` is for a server that does not have all keys in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "kebab-case")]
pub(crate) enum Flood {
    HttpHome,
    HttpPosts,
    HttpBatch,
    HttpKeyPut,
    HttpKeyPutLong,
    HttpKeyGet,
    HttpKeyList,
    HttpRecognise,
    HttpEvents,
    HttpStories,
    Get,
    Set,
    Mget,
    Exists,
    SetLong,
    Mset,
    Del,
    Scan,
    Keys,
    ExecSet,
    ExecMget,
    MgetCold,
    ExistsCold,
    MsetCold,
    DelCold,
    DelPipelinedCold,
}

impl Flood {
    /// Name on the command line.
    pub(super) fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// Whether the flood needs a server that does not have all keys in memory.
    pub(super) fn is_cold(self) -> bool {
        matches!(
            self,
            Self::MgetCold
                | Self::ExistsCold
                | Self::MsetCold
                | Self::DelCold
                | Self::DelPipelinedCold
        )
    }

    /// Whether the flood uses HTTP.
    pub(super) fn is_http(self) -> bool {
        self.name().starts_with("http")
    }

    /// Whether each request needs a new connection, which the flood closes when the response begins.
    pub(super) fn reconnects(self) -> bool {
        self == Self::HttpEvents
    }

    /// Bytes that a connection repeats to a server at this address.
    pub(super) fn bytes(self, host: &str) -> Vec<u8> {
        let requests = Http(Requests::new(host, Some(KEY)), host.to_owned());
        let of_user = |number: usize| number as u32 % USERS;
        match self {
            Self::HttpHome => {
                requests.gets(PIPELINED, |n| format!("/v1/users/{}/timeline", of_user(n)))
            }
            Self::HttpStories => {
                requests.gets(PIPELINED, |n| format!("/v1/users/{}/timeline/stories", of_user(n)))
            }
            Self::HttpKeyGet => requests.gets(PIPELINED, |n| format!("/v1/buckets/0/keys/k{n}")),
            Self::HttpKeyList => {
                requests.gets(1, |_| "/v1/buckets/0/keys?limit=100&prefix=zzz".into())
            }
            Self::HttpEvents => requests.gets(1, |_| "/v1/users/1/events".into()),
            Self::HttpPosts => {
                let body = |n: usize| format!("{{\"text\":\"{}\"}}", text(n as u64)).into_bytes();
                let path = |n| format!("/v1/users/{}/posts", of_user(n));
                requests.sends(PIPELINED, ("POST", "application/json"), path, body)
            }
            Self::HttpBatch => {
                let line = |n: usize| crate::rig::post_line(of_user(n), n as u64);
                let body = |_| (0..10_000).map(line).collect::<String>().into_bytes();
                requests.sends(1, ("POST", "application/x-ndjson"), |_| "/v1/batch".into(), body)
            }
            Self::HttpRecognise => {
                let body = |_| format!("{{\"sample\":\"{:x}\"}}", knn::Bits::ZERO).into_bytes();
                let path = |_| "/v1/recognitions".into();
                requests.sends(PIPELINED, ("POST", "application/json"), path, body)
            }
            Self::HttpKeyPut => requests.puts(PIPELINED, VALUE_BYTES),
            Self::HttpKeyPutLong => requests.puts(4, LONG_BYTES),
            _ => self.commands(),
        }
    }

    /// Commands that a Redis client repeats.
    fn commands(self) -> Vec<u8> {
        let mut out = Vec::new();
        let value = vec![b'v'; VALUE_BYTES];
        let named = |prefix: &str, count: usize| -> Vec<String> {
            (0..count).map(|n| format!("{prefix}{n}")).collect()
        };
        match self {
            Self::Get => each(&mut out, b"GET", &named("k", PIPELINED), None),
            Self::Set => each(&mut out, b"SET", &named("s", PIPELINED), Some(&value)),
            Self::Mget => of_all(&mut out, b"MGET", &named("k", READ_KEYS), None),
            Self::Exists => of_all(&mut out, b"EXISTS", &named("k", READ_KEYS), None),
            Self::MgetCold => of_all(&mut out, b"MGET", &named("a", READ_KEYS), None),
            Self::ExistsCold => of_all(&mut out, b"EXISTS", &named("a", READ_KEYS), None),
            Self::Mset | Self::MsetCold => {
                of_all(&mut out, b"MSET", &named("m", SET_KEYS), Some(&value));
            }
            Self::Del | Self::DelCold => {
                of_all(&mut out, b"DEL", &named("a", REMOVED_KEYS), None);
            }
            Self::DelPipelinedCold => {
                each(&mut out, b"DEL", &named("a", REMOVED_KEYS), None);
            }
            Self::SetLong => {
                let long = vec![b'v'; LONG_BYTES];
                each(&mut out, b"SET", &named("l", 8), Some(&long));
            }
            Self::Scan => command(&mut out, &[b"SCAN", b"0", b"COUNT", b"10000"]),
            Self::Keys => command(&mut out, &[b"KEYS", b"*"]),
            Self::ExecSet => {
                command(&mut out, &[b"MULTI"]);
                each(&mut out, b"SET", &named("e", 4_000), Some(&value));
                command(&mut out, &[b"EXEC"]);
            }
            Self::ExecMget => {
                command(&mut out, &[b"MULTI"]);
                command(&mut out, &[b"SET", b"e", b"1"]);
                of_all(&mut out, b"MGET", &named("k", 4_000), None);
                command(&mut out, &[b"EXEC"]);
            }
            _ => {}
        }
        out
    }
}

/// Writer of HTTP requests, and the host to which they are sent.
struct Http(Requests, String);

impl Http {
    fn gets(&self, count: usize, path: impl Fn(usize) -> String) -> Vec<u8> {
        let mut one = Vec::new();
        let write = |n| {
            self.0.get(&path(n), &mut one);
            one.clone()
        };
        (0..count).flat_map(write).collect()
    }

    fn puts(&self, count: usize, value: usize) -> Vec<u8> {
        let path = |n| format!("/v1/buckets/0/keys/p{n}");
        self.sends(count, ("PUT", "application/octet-stream"), path, |_| vec![b'v'; value])
    }

    fn sends(
        &self,
        count: usize,
        (method, media): (&str, &str),
        path: impl Fn(usize) -> String,
        body: impl Fn(usize) -> Vec<u8>,
    ) -> Vec<u8> {
        let mut out = Vec::new();
        for n in 0..count {
            let body = body(n);
            let mut head = String::new();
            // Ignore the result: writing to a string does not fail.
            let _ = write!(
                head,
                "{method} {} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {KEY}\r\n\
                 Content-Type: {media}\r\nContent-Length: {}\r\n\r\n",
                path(n),
                self.1,
                body.len()
            );
            out.extend_from_slice(head.as_bytes());
            out.extend_from_slice(&body);
        }
        out
    }
}

/// Appends a command of the Redis protocol.
pub(super) fn command(out: &mut Vec<u8>, words: &[&[u8]]) {
    out.extend_from_slice(format!("*{}\r\n", words.len()).as_bytes());
    for word in words {
        out.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        out.extend_from_slice(word);
        out.extend_from_slice(b"\r\n");
    }
}

/// Appends one command for each key. Each contains the value, if there is one.
fn each(out: &mut Vec<u8>, name: &[u8], keys: &[String], value: Option<&[u8]>) {
    for key in keys {
        of_all(out, name, std::slice::from_ref(key), value);
    }
}

/// Appends a single command with all keys. The value, if there is one, follows each key.
pub(super) fn of_all(out: &mut Vec<u8>, name: &[u8], keys: &[String], value: Option<&[u8]>) {
    let of_key = |key| std::iter::once(String::as_bytes(key)).chain(value);
    let words: Vec<&[u8]> = std::iter::once(name).chain(keys.iter().flat_map(of_key)).collect();
    command(out, &words);
}
