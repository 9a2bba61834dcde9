//! Which scope of an application key a command needs.
//!
//! Commands that read or write keys carry the flag; the rest of the table is about the connection and the
//! server, where commands that affect other clients need `admin`.

use edge::Scope;

use super::command::{Flag, Spec, Words};
use super::numbers::is;

/// The scope; none if every client that has authenticated may run the command.
pub(crate) fn needed(spec: &Spec, words: &Words<'_>) -> Option<Scope> {
    let sub = |name| words.first().is_some_and(|word| is(word, name));
    match spec.name {
        // Deletes all keys of a bucket at once.
        "flushdb" | "flushall" => Some(Scope::Admin),
        "bucket" if sub("delete") => Some(Scope::Admin),
        "bucket" if sub("create") => Some(Scope::Write),
        "bucket" if sub("list") => Some(Scope::Read),
        "bucket" => None,
        // The addresses and the connections of others.
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
    use super::*;
    use crate::command::Run;
    use crate::table;

    #[test]
    fn no_command_reaches_keys_without_a_scope() {
        for spec in table::all() {
            let scope = needed(spec, &[]);
            match spec.run {
                Run::Change(_) => {
                    assert!(matches!(scope, Some(Scope::Write | Scope::Admin)), "{}", spec.name);
                }
                Run::Read(_) | Run::Walk(_) if spec.name != "wait" => {
                    assert_eq!(scope, Some(Scope::Read), "{}", spec.name);
                }
                _ => {}
            }
        }
    }

    #[test]
    fn subcommands_need_what_they_do() {
        for (line, expect) in [
            ("bucket delete b", Some(Scope::Admin)),
            ("BUCKET Delete b", Some(Scope::Admin)),
            ("bucket create b", Some(Scope::Write)),
            ("bucket list", Some(Scope::Read)),
            ("bucket use b", None),
            ("client kill x", Some(Scope::Admin)),
            ("client list", Some(Scope::Admin)),
            ("client setname x", None),
            ("config get *", None),
            ("config set save x", Some(Scope::Admin)),
            ("flushall", Some(Scope::Admin)),
            ("swapdb 0 1", Some(Scope::Write)),
            ("info", Some(Scope::Read)),
            ("multi", None),
            ("ping", None),
        ] {
            let mut words = line.split(' ').map(str::as_bytes);
            let spec = table::find(words.next().unwrap()).unwrap();
            assert_eq!(needed(spec, &words.collect::<Vec<_>>()), expect, "{line}");
        }
    }
}
