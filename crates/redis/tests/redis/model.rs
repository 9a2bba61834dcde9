//! Random commands, compared with a simple model: an ordered map of values with expiries, and a clock.

use std::collections::BTreeMap;

use proptest::prelude::*;

use crate::client::{START_MS, TestServer};

#[derive(Clone, Debug)]
enum Step {
    Set(u8, u16, Option<u16>, Only),
    Get(u8),
    Delete(u8, u8),
    Increment(u8, i16),
    Append(u8, u8),
    SetRange(u8, u8, u8),
    Expire(u8, i16, &'static str),
    Persist(u8),
    Ttl(u8),
    Rename(u8, u8),
    Copy(u8, u8, bool),
    GetDel(u8),
    GetMany(u8, u8),
    SetManyNew(u8, u8),
    Pass(u16),
}

#[derive(Clone, Copy, Debug)]
enum Only {
    Always,
    New,
    Old,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    use Step::*;
    let key = || 0..5_u8;
    let only = prop_oneof![Just(Only::Always), Just(Only::New), Just(Only::Old)];
    let how = prop_oneof![Just(""), Just("NX"), Just("XX"), Just("GT"), Just("LT"), Just("XX GT")];
    let step = prop_oneof![
        (key(), any::<u16>(), proptest::option::of(1..500_u16), only)
            .prop_map(|(key, value, life, only)| Set(key, value, life, only)),
        key().prop_map(Get),
        (key(), key()).prop_map(|(a, b)| Delete(a, b)),
        (key(), any::<i16>()).prop_map(|(key, by)| Increment(key, by)),
        (key(), 0..10_u8).prop_map(|(key, digit)| Append(key, digit)),
        (key(), 0..8_u8, 0..10_u8).prop_map(|(key, at, digit)| SetRange(key, at, digit)),
        (key(), -5..500_i16, how).prop_map(|(key, ms, how)| Expire(key, ms, how)),
        key().prop_map(Persist),
        key().prop_map(Ttl),
        (key(), key()).prop_map(|(a, b)| Rename(a, b)),
        (key(), key(), any::<bool>()).prop_map(|(a, b, replace)| Copy(a, b, replace)),
        key().prop_map(GetDel),
        (key(), key()).prop_map(|(a, b)| GetMany(a, b)),
        (key(), key()).prop_map(|(a, b)| SetManyNew(a, b)),
        (0..300_u16).prop_map(Pass),
    ];
    proptest::collection::vec(step, 1..80)
}

/// Expected state: value and expiry of each key.
#[derive(Default)]
struct Model {
    now_ms: u64,
    keys: BTreeMap<u8, (Vec<u8>, Option<u64>)>,
}

impl Model {
    fn sweep(&mut self) {
        let now_ms = self.now_ms;
        self.keys.retain(|_, (_, until)| until.is_none_or(|until| until > now_ms));
    }

    fn shown(&self, key: u8) -> String {
        let shown = |(value, _): &(Vec<u8>, Option<u64>)| format!("\"{}\"", value.escape_ascii());
        self.keys.get(&key).map_or("nil".into(), shown)
    }

    fn put(&mut self, key: u8, value: Vec<u8>, until: Option<u64>) {
        self.keys.insert(key, (value, until));
    }

    /// Command as typed, and its expected reply.
    fn run(&mut self, step: &Step) -> (String, String) {
        match step {
            Step::Set(key, value, life, only) => {
                let exists = self.keys.contains_key(key);
                let (may, word) = match only {
                    Only::Always => (true, ""),
                    Only::New => (!exists, " NX"),
                    Only::Old => (exists, " XX"),
                };
                if may {
                    let until = life.map(|life| self.now_ms + u64::from(life));
                    self.put(*key, value.to_string().into_bytes(), until);
                }
                let life = life.map_or(String::new(), |life| format!(" PX {life}"));
                let reply = if may { "OK" } else { "nil" };
                (format!("SET {key} {value}{word}{life}"), reply.into())
            }
            Step::Get(key) => (format!("GET {key}"), self.shown(*key)),
            Step::GetMany(a, b) => {
                let reply = format!("[{}, {}]", self.shown(*a), self.shown(*b));
                (format!("MGET {a} {b}"), reply)
            }
            Step::GetDel(key) => {
                let reply = self.shown(*key);
                self.keys.remove(key);
                (format!("GETDEL {key}"), reply)
            }
            Step::Delete(a, b) => {
                let count = [a, b].iter().filter(|key| self.keys.remove(key).is_some()).count();
                (format!("DEL {a} {b}"), count.to_string())
            }
            Step::SetManyNew(a, b) => {
                let may = !self.keys.contains_key(a) && !self.keys.contains_key(b);
                if may {
                    self.put(*a, b"1".into(), None);
                    self.put(*b, b"2".into(), None);
                }
                (format!("MSETNX {a} 1 {b} 2"), u8::from(may).to_string())
            }
            Step::Pass(_) => unreachable!("passing time is no command"),
            changing => self.change(changing),
        }
    }

    fn change(&mut self, step: &Step) -> (String, String) {
        let now_ms = self.now_ms;
        match *step {
            Step::Increment(key, by) => {
                let command = format!("INCRBY {key} {by}");
                let (value, until) = self.keys.get(&key).cloned().unwrap_or((b"0".into(), None));
                // A value is not a number if it has leading zeros, or zero bytes from a SETRANGE beyond its end.
                let text = String::from_utf8(value).unwrap();
                let number = text.parse::<i64>().ok().filter(|number| number.to_string() == text);
                match number.map(|number| number.checked_add(by.into())) {
                    Some(Some(sum)) => {
                        self.put(key, sum.to_string().into_bytes(), until);
                        (command, sum.to_string())
                    }
                    Some(None) => (command, "-ERR increment or decrement would overflow".into()),
                    None => (command, "-ERR value is not an integer or out of range".into()),
                }
            }
            Step::Append(key, digit) => {
                let (value, _) = self.keys.entry(key).or_default();
                value.extend(digit.to_string().bytes());
                (format!("APPEND {key} {digit}"), value.len().to_string())
            }
            Step::SetRange(key, at, digit) => {
                let (value, _) = self.keys.entry(key).or_default();
                value.resize(value.len().max(usize::from(at) + 1), 0);
                value[usize::from(at)] = b'0' + digit;
                (format!("SETRANGE {key} {at} {digit}"), value.len().to_string())
            }
            Step::Expire(key, ms, how) => {
                let until = now_ms.saturating_add_signed(ms.into());
                let old = self.keys.get(&key).map(|(_, old)| *old);
                let may = old.is_some_and(|old| match how {
                    "NX" => old.is_none(),
                    "XX" => old.is_some(),
                    "GT" | "XX GT" => old.is_some_and(|old| until > old),
                    "LT" => old.is_none_or(|old| until < old),
                    _ => true,
                });
                if may && let Some((_, old)) = self.keys.get_mut(&key) {
                    *old = Some(until);
                }
                self.sweep();
                (format!("PEXPIRE {key} {ms} {how}"), u8::from(may).to_string())
            }
            Step::Persist(key) => {
                let until = self.keys.get_mut(&key).and_then(|(_, until)| until.take());
                (format!("PERSIST {key}"), u8::from(until.is_some()).to_string())
            }
            Step::Ttl(key) => {
                let left = match self.keys.get(&key) {
                    None => "-2".into(),
                    Some((_, None)) => "-1".into(),
                    Some((_, Some(until))) => (until - now_ms).to_string(),
                };
                (format!("PTTL {key}"), left)
            }
            ref naming => self.name(naming),
        }
    }

    fn name(&mut self, step: &Step) -> (String, String) {
        match *step {
            Step::Rename(from, to) => {
                let reply = match self.keys.remove(&from) {
                    Some(row) => {
                        self.keys.insert(to, row);
                        "OK"
                    }
                    None => "-ERR no such key",
                };
                (format!("RENAME {from} {to}"), reply.into())
            }
            Step::Copy(from, to, replace) => {
                let command = format!("COPY {from} {to}{}", if replace { " REPLACE" } else { "" });
                if from == to {
                    let reply = "-ERR source and destination objects are the same";
                    return (command, reply.into());
                }
                let row = self.keys.get(&from).cloned();
                let row = row.filter(|_| replace || !self.keys.contains_key(&to));
                let reply = u8::from(row.is_some()).to_string();
                row.map(|row| self.keys.insert(to, row));
                (command, reply)
            }
            _ => unreachable!("handled elsewhere"),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn commands_answer_as_plain_maps_would(
        steps in steps(),
        in_transactions in any::<bool>(),
    ) {
        // Use a new server for each case: a failure report would not show the state that earlier cases left.
        let server = TestServer::open();
        let mut client = server.client();
        let mut model = Model { now_ms: START_MS, ..Model::default() };
        for piece in steps.split_inclusive(|step| matches!(step, Step::Pass(_))) {
            let mut expected = Vec::new();
            if in_transactions {
                client.line("MULTI");
            }
            for step in piece.iter().filter(|step| !matches!(step, Step::Pass(_))) {
                let (command, expect) = model.run(step);
                let reply = client.line(&command);
                if in_transactions {
                    prop_assert_eq!(reply, "QUEUED");
                    expected.push(expect);
                } else {
                    prop_assert_eq!(reply, expect, "{}", command);
                }
            }
            if in_transactions {
                prop_assert_eq!(client.line("EXEC"), format!("[{}]", expected.join(", ")));
            }
            if let Some(Step::Pass(ms)) = piece.last() {
                server.pass((*ms).into());
                model.now_ms += u64::from(*ms);
                model.sweep();
            }
        }
        let listed = client.line("KEYS *");
        prop_assert_eq!(listed.matches('"').count() / 2, model.keys.len(), "{}", listed);
    }
}
