//! Redis client of the crash test. It sends pipelines of commands on a few keys that no other client uses.
//!
//! Commands of one client are applied in order. So after a restart, the keys have the values after some number of the
//! sent commands, and this number includes all answered ones. A transaction counts as one command.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use super::Round;
use crate::support::redis::{Redis, Reply, line};

const KEYS: u32 = 12;
/// Maximum number of commands that are sent before the first reply is read.
const COMMANDS_MAX: u32 = 24;

type Values = BTreeMap<String, String>;

pub(super) struct Pipeline {
    prefix: String,
    rng: StdRng,
    serial: u32,
    /// Values after all answered commands.
    values: Values,
    /// Commands that were sent and have no reply yet.
    waiting: Vec<Step>,
}

#[derive(Clone, Debug)]
enum Step {
    Set(String, String),
    Increment(String),
    Delete(String),
    Transaction(Vec<Step>),
}

impl Pipeline {
    pub(super) fn new(number: u32, seed: u64) -> Self {
        let (prefix, rng) = (format!("p{number}-"), StdRng::seed_from_u64(seed));
        Self { prefix, rng, serial: 0, values: Values::new(), waiting: Vec::new() }
    }

    pub(super) fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Sends pipelines until the round has ended or the server has ended.
    pub(super) fn work(&mut self, address: SocketAddr, round: &Round) {
        let Ok(mut redis) = Redis::try_new(address) else { return };
        loop {
            let count = self.rng.random_range(1..=COMMANDS_MAX);
            let steps: Vec<Step> = (0..count).map(|_| self.step()).collect();
            self.waiting = steps.clone();
            if redis.try_send(&steps.iter().flat_map(Step::bytes).collect::<Vec<_>>()).is_err() {
                return;
            }
            let mut over = false;
            for step in steps {
                let mut after = self.values.clone();
                let expected = step.apply(&mut after);
                let Ok(reply) = step.reply(&mut redis) else { return };
                assert_eq!(reply, expected, "{step:?}");
                self.values = after;
                self.waiting.remove(0);
                over |= round.acknowledged();
            }
            if over {
                return;
            }
        }
    }

    fn step(&mut self) -> Step {
        match self.rng.random_range(0..10) {
            0..5 => self.single(),
            5..9 => Step::Increment(format!("{}n{}", self.prefix, self.rng.random_range(0..KEYS))),
            _ => {
                let count = self.rng.random_range(1..8);
                Step::Transaction((0..count).map(|_| self.single()).collect())
            }
        }
    }

    fn single(&mut self) -> Step {
        let key = format!("{}s{}", self.prefix, self.rng.random_range(0..KEYS));
        if self.rng.random_bool(0.3) {
            return Step::Delete(key);
        }
        self.serial += 1;
        let mut value = self.serial.to_string();
        // Long values, so that the log fills segments and is cut.
        value.push_str(&"-".repeat(match self.rng.random_range(0..100) {
            0..10 => 10_000,
            10..13 => 300_000,
            _ => 0,
        }));
        Step::Set(key, value)
    }

    /// Determines after a restart how many of the commands without a reply were applied, and checks the values.
    pub(super) fn resolve(&mut self, address: SocketAddr) {
        let found = self.read(address);
        let mut steps = std::mem::take(&mut self.waiting).into_iter();
        while found != self.values {
            let Some(step) = steps.next() else {
                panic!("{}: {found:?} is not as after any command", self.prefix)
            };
            step.apply(&mut self.values);
        }
    }

    pub(super) fn check(&self, address: SocketAddr) {
        assert_eq!(self.read(address), self.values);
    }

    fn read(&self, address: SocketAddr) -> Values {
        let keys = |kind| (0..KEYS).map(move |n| format!("{}{kind}{n}", self.prefix));
        let keys: Vec<String> = keys('s').chain(keys('n')).collect();
        let reply = Redis::new(address).line(&format!("MGET {}", keys.join(" ")));
        let Reply::Array(values) = reply else { panic!("{reply:?}") };
        let values = keys.into_iter().zip(values).filter_map(|(key, value)| match value {
            Reply::Bulk(value) => Some((key, String::from_utf8(value?).unwrap())),
            other => panic!("{key}: {other:?}"),
        });
        values.collect()
    }
}

impl Step {
    /// Applies the command to the values. Returns the reply that the server must send.
    fn apply(&self, values: &mut Values) -> Reply {
        match self {
            Self::Set(key, value) => {
                values.insert(key.clone(), value.clone());
                Reply::ok()
            }
            Self::Increment(key) => {
                let now = values.get(key).map_or(0, |value| value.parse::<i64>().unwrap()) + 1;
                values.insert(key.clone(), now.to_string());
                Reply::Integer(now)
            }
            Self::Delete(key) => Reply::Integer(i64::from(values.remove(key).is_some())),
            Self::Transaction(steps) => {
                Reply::Array(steps.iter().map(|step| step.apply(values)).collect())
            }
        }
    }

    fn bytes(&self) -> Vec<u8> {
        match self {
            Self::Set(key, value) => line(&format!("SET {key} {value}")),
            Self::Increment(key) => line(&format!("INCR {key}")),
            Self::Delete(key) => line(&format!("DEL {key}")),
            Self::Transaction(steps) => {
                let steps = steps.iter().map(Self::bytes).collect::<Vec<_>>().concat();
                [line("MULTI"), steps, line("EXEC")].concat()
            }
        }
    }

    fn reply(&self, redis: &mut Redis) -> io::Result<Reply> {
        if let Self::Transaction(steps) = self {
            assert_eq!(redis.try_receive()?, Reply::ok());
            for _ in steps {
                assert_eq!(redis.try_receive()?, Reply::Simple("QUEUED".into()));
            }
        }
        redis.try_receive()
    }
}
