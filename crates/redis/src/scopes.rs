//! Scopes that commands need.
//!
//! Commands that read or write keys have a flag for this. The other commands concern the connection and the server;
//! those that affect other clients need `admin`.
//!
//! **Invariant:** a change whose reply contains stored values also needs `read`. The grant of a client is checked again
//! when a turn begins.

use edge::{Scope, Scopes};

use super::command::{Flag, Spec, Words};
use super::numbers::is;

/// Returns the scopes that a command needs; empty if every authenticated client may run it.
pub(crate) fn needed(spec: &Spec, words: &Words<'_>) -> Scopes {
    let also = answers_with_values(spec, words).then_some(Scope::Read);
    of_command(spec, words).into_iter().chain(also).collect()
}

/// Whether the reply to a change contains stored values.
fn answers_with_values(spec: &Spec, words: &Words<'_>) -> bool {
    let options = words.iter().skip(2);
    spec.has(Flag::Access) || spec.name == "set" && options.into_iter().any(|word| is(word, "get"))
}

fn of_command(spec: &Spec, words: &Words<'_>) -> Option<Scope> {
    let sub = |name| words.first().is_some_and(|word| is(word, name));
    match spec.name {
        // Deletes all keys of a bucket at once.
        "flushdb" | "flushall" => Some(Scope::Admin),
        "bucket" if sub("delete") => Some(Scope::Admin),
        "bucket" if sub("create") => Some(Scope::Write),
        "bucket" if sub("list") => Some(Scope::Read),
        "bucket" => None,
        // These commands show or close connections of other clients.
        "client" if sub("list") || sub("kill") => Some(Scope::Admin),
        "config" if !sub("get") && !sub("help") => Some(Scope::Admin),
        "save" | "shutdown" => Some(Scope::Admin),
        "info" | "watch" => Some(Scope::Read),
        _ if spec.has(Flag::Write) => Some(Scope::Write),
        _ if spec.has(Flag::Readonly) => Some(Scope::Read),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use kv::{BucketId, KeyOp};

    use super::*;
    use crate::command::{Plan, Run, Scope as Context};
    use crate::table;

    fn scopes<const N: usize>(all: [Scope; N]) -> Scopes {
        all.into_iter().collect()
    }

    #[test]
    fn no_command_reaches_keys_without_a_scope() {
        for spec in table::all() {
            let needed = needed(spec, &[]);
            match spec.run {
                Run::Change(_) => {
                    let changes = needed.contains(Scope::Write) || needed.contains(Scope::Admin);
                    assert!(changes, "{}", spec.name);
                }
                Run::Read(_) | Run::Walk(_) if spec.name != "wait" => {
                    assert_eq!(needed, scopes([Scope::Read]), "{}", spec.name);
                }
                _ => {}
            }
        }
    }

    #[test]
    fn subcommands_need_what_they_do() {
        use Scope::{Admin, Read, Write};
        for (line, expect) in [
            ("bucket delete b", scopes([Admin])),
            ("BUCKET Delete b", scopes([Admin])),
            ("bucket create b", scopes([Write])),
            ("bucket list", scopes([Read])),
            ("bucket use b", scopes([])),
            ("client kill x", scopes([Admin])),
            ("client list", scopes([Admin])),
            ("client setname x", scopes([])),
            ("config get *", scopes([])),
            ("config set save x", scopes([Admin])),
            ("flushall", scopes([Admin])),
            ("swapdb 0 1", scopes([Write])),
            ("set get get", scopes([Write])),
            ("set k v px 5 NX", scopes([Write])),
            ("set k v xx GET", scopes([Read, Write])),
            ("getex k", scopes([Read, Write])),
            ("info", scopes([Read])),
            ("multi", scopes([])),
            ("ping", scopes([])),
        ] {
            let mut words = line.split(' ').map(str::as_bytes);
            let spec = table::find(words.next().unwrap()).unwrap();
            assert_eq!(needed(spec, &words.collect::<Vec<_>>()), expect, "{line}");
        }
    }

    /// Whether the answer to an operation contains a stored value, a part of it, or its sum with a given number.
    fn reveals(op: &KeyOp<'_>) -> bool {
        match op {
            KeyOp::Put { old, .. } => *old,
            KeyOp::Expire { read, .. } => *read,
            KeyOp::Take { .. }
            | KeyOp::Add { .. }
            | KeyOp::AddFloat { .. }
            | KeyOp::SetBit { .. } => true,
            _ => false,
        }
    }

    #[test]
    fn a_change_whose_reply_has_stored_values_needs_both_scopes() {
        // Each command succeeds with these arguments.
        let lines = [
            ("set", "k v"),
            ("set", "k v get"),
            ("set", "k v ex 5 GET nx"),
            ("setex", "k 5 v"),
            ("psetex", "k 5 v"),
            ("getex", "k persist"),
            ("getex", "k ex 5"),
            ("incrby", "k 0"),
            ("decrby", "k 0"),
            ("incrbyfloat", "k 0"),
            ("setrange", "k 0 v"),
            ("setbit", "k 7 1"),
            ("expire", "k 5"),
            ("pexpire", "k 5"),
            ("expireat", "k 5"),
            ("pexpireat", "k 5"),
            ("move", "k 1"),
            ("swapdb", "0 1"),
        ];
        let others = table::all().filter(|spec| !lines.iter().any(|(name, _)| spec.name == *name));
        let others = others.map(|spec| {
            let words = usize::from(spec.arity.unsigned_abs()) - 1;
            (spec.name, vec!["k"; words].join(" "))
        });
        let lines = lines.map(|(name, words)| (name, words.to_owned()));
        let mut seen = 0;
        for (name, words) in lines.into_iter().chain(others) {
            let spec = table::find(name.as_bytes()).unwrap();
            let Run::Change(change) = spec.run else { continue };
            let words: Vec<&[u8]> = words.split_whitespace().map(str::as_bytes).collect();
            let context = Context { bucket: BucketId(0), now_ms: &|| 1_000 };
            let reveals = match change(&context, &words) {
                Ok(Plan::Change(op, _)) => reveals(&op),
                Ok(Plan::Read(_)) => true,
                Ok(Plan::Restore(..)) => false,
                Err(_) if name == "restore" => false,
                Err(failure) => panic!("{name}: {failure}"),
            };
            assert_eq!(needed(spec, &words).contains(Scope::Read), reveals, "{name} {words:?}");
            seen += 1;
        }
        assert!(seen >= 30, "{seen}");
    }
}
