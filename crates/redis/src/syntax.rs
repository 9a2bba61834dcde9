//! Arguments of every command, as text and as in the reply to COMMAND DOCS.
//!
//! In a text, lower case names a value, upper case is a literal word, `[...]` is optional, `|` separates alternatives,
//! and `[x ...]` repeats the item before it.

use resp::Encoder;

/// Name of a command and its arguments, by name.
const SYNTAX: &[(&str, &str)] = &[
    ("append", "key value"),
    ("auth", "[username] password"),
    ("bucket", "CREATE name | USE name | DELETE name | LIST [AFTER name] [COUNT count]"),
    ("client", "subcommand [argument ...]"),
    (
        "command",
        "[COUNT | DOCS [name ...] | GETKEYS command [argument ...] | INFO [name ...] | LIST]",
    ),
    ("config", "GET pattern [pattern ...] | SET name value [name value ...]"),
    ("copy", "source_key destination_key [DB database] [REPLACE]"),
    ("dbsize", ""),
    ("decr", "key"),
    ("decrby", "key decrement"),
    ("del", "key [key ...]"),
    ("discard", ""),
    ("dump", "key"),
    ("echo", "message"),
    ("exec", ""),
    ("exists", "key [key ...]"),
    ("expire", "key seconds [NX | XX | GT | LT]"),
    ("expireat", "key unix_time_seconds [NX | XX | GT | LT]"),
    ("expiretime", "key"),
    ("flushall", "[ASYNC | SYNC]"),
    ("flushdb", "[ASYNC | SYNC]"),
    ("function", "FLUSH [ASYNC | SYNC]"),
    ("get", "key"),
    ("getbit", "key offset"),
    ("getdel", "key"),
    (
        "getex",
        "key [EX seconds | PX milliseconds | EXAT unix_time_seconds | PXAT unix_time_milliseconds | PERSIST]",
    ),
    ("getrange", "key start end"),
    ("getset", "key value"),
    ("hello", "[protocol_version] [AUTH username password] [SETNAME name]"),
    ("incr", "key"),
    ("incrby", "key increment"),
    ("incrbyfloat", "key float_increment"),
    ("info", "[section ...]"),
    ("keys", "pattern"),
    ("lcs", "key key [LEN] [IDX] [MINMATCHLEN count] [WITHMATCHLEN]"),
    ("memory", "USAGE key [SAMPLES count]"),
    ("mget", "key [key ...]"),
    ("move", "key database"),
    ("mset", "key value [key value ...]"),
    ("msetnx", "key value [key value ...]"),
    ("multi", ""),
    ("object", "ENCODING key | FREQ key | IDLETIME key | REFCOUNT key"),
    ("persist", "key"),
    ("pexpire", "key milliseconds [NX | XX | GT | LT]"),
    ("pexpireat", "key unix_time_milliseconds [NX | XX | GT | LT]"),
    ("pexpiretime", "key"),
    ("ping", "[message]"),
    ("psetex", "key milliseconds value"),
    ("pttl", "key"),
    ("quit", ""),
    ("randomkey", ""),
    ("rename", "key new_key"),
    ("renamenx", "key new_key"),
    ("reset", ""),
    (
        "restore",
        "key milliseconds serialized_value [REPLACE] [ABSTTL] [IDLETIME seconds] [FREQ count]",
    ),
    ("save", ""),
    ("scan", "cursor [MATCH pattern] [COUNT count] [TYPE type]"),
    ("select", "database"),
    (
        "set",
        "key value [NX | XX] [GET] [EX seconds | PX milliseconds | EXAT unix_time_seconds | PXAT \
         unix_time_milliseconds | KEEPTTL]",
    ),
    ("setbit", "key offset bit"),
    ("setex", "key seconds value"),
    ("setnx", "key value"),
    ("setrange", "key offset value"),
    ("shutdown", ""),
    ("strlen", "key"),
    ("substr", "key start end"),
    ("swapdb", "database database"),
    ("time", ""),
    ("touch", "key [key ...]"),
    ("ttl", "key"),
    ("type", "key"),
    ("unlink", "key [key ...]"),
    ("unwatch", ""),
    ("wait", "replica_count milliseconds"),
    ("watch", "key [key ...]"),
];

/// Writes the arguments of a command as an array of maps.
pub(crate) fn write_arguments(command: &str, reply: &mut Encoder<'_>) {
    let text = SYNTAX.binary_search_by_key(&command, |(name, _)| name).ok();
    let text = text.and_then(|at| SYNTAX.get(at)).map_or("", |(_, text)| text);
    write_all(&arguments(text), reply);
}

/// Argument of a command.
#[derive(Debug, PartialEq, Eq)]
struct Argument<'t> {
    shape: Shape<'t>,
    optional: bool,
    repeats: bool,
}

#[derive(Debug, PartialEq, Eq)]
enum Shape<'t> {
    /// Value. If `token` is set, this literal word precedes it.
    Value { token: Option<&'t str>, name: &'t str },
    /// Literal word.
    Token(&'t str),
    /// One of several arguments.
    OneOf(Vec<Argument<'t>>),
    /// Several arguments in order.
    Block(Vec<Argument<'t>>),
}

/// Parses a text of the table.
fn arguments(text: &str) -> Vec<Argument<'_>> {
    let choices = parts(text, " | ");
    if choices.len() > 1 {
        return vec![required(Shape::OneOf(choices.into_iter().map(one).collect()))];
    }
    let mut all: Vec<Argument<'_>> = Vec::new();
    for part in parts(text, " ") {
        let Some(inner) = part.strip_prefix('[').and_then(|part| part.strip_suffix(']')) else {
            match (all.last_mut(), part.starts_with(|first: char| first.is_ascii_lowercase())) {
                (Some(Argument { shape, .. }), true) if matches!(shape, Shape::Token(_)) => {
                    let Shape::Token(token) = shape else { continue };
                    *shape = Shape::Value { token: Some(token), name: part };
                }
                (_, true) => all.push(required(Shape::Value { token: None, name: part })),
                (_, false) => all.push(required(Shape::Token(part))),
            }
            continue;
        };
        let Some(again) = inner.strip_suffix(" ...") else {
            all.push(Argument { optional: true, ..one(inner) });
            continue;
        };
        // `a [a ...]` means one or more, `[a ...]` alone zero or more.
        let names = parts(again, " ").len();
        let repeats = all.len() >= names && text.contains(&format!("{again} [{again} ...]"));
        let block = if repeats { all.split_off(all.len() - names) } else { vec![one(again)] };
        let first = match <[Argument<'_>; 1]>::try_from(block) {
            Ok([argument]) => argument,
            Err(block) => required(Shape::Block(block)),
        };
        all.push(Argument { repeats: true, optional: !repeats, ..first });
    }
    all
}

/// Parses one argument. If the text has several, they become a block.
fn one(text: &str) -> Argument<'_> {
    match <[Argument<'_>; 1]>::try_from(arguments(text)) {
        Ok([argument]) => argument,
        Err(block) => required(Shape::Block(block)),
    }
}

fn required(shape: Shape<'_>) -> Argument<'_> {
    Argument { shape, optional: false, repeats: false }
}

/// Splits a text at separators that are outside of brackets.
fn parts<'t>(text: &'t str, separator: &str) -> Vec<&'t str> {
    let (mut found, mut depth, mut start) = (Vec::new(), 0_usize, 0);
    for (at, character) in text.char_indices() {
        match character {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            _ if depth == 0 && text.get(at..).is_some_and(|rest| rest.starts_with(separator)) => {
                found.extend(text.get(start..at));
                start = at + separator.len();
            }
            _ => {}
        }
    }
    found.extend(text.get(start..).filter(|last| !last.is_empty()));
    found
}

fn write_all(arguments: &[Argument<'_>], reply: &mut Encoder<'_>) {
    reply.array(arguments.len());
    arguments.iter().for_each(|argument| argument.write(reply));
}

impl Argument<'_> {
    fn write(&self, reply: &mut Encoder<'_>) {
        let (name, kind, token) = match &self.shape {
            Shape::Value { token, name } => (name.to_string(), kind(name), *token),
            Shape::Token(token) => (token.to_ascii_lowercase(), "pure-token", Some(*token)),
            Shape::OneOf(_) => ("choice".to_owned(), "oneof", None),
            Shape::Block(_) => ("block".to_owned(), "block", None),
        };
        let flags = [(self.optional, "optional"), (self.repeats, "multiple")];
        let flags: Vec<&str> =
            flags.iter().filter(|(set, _)| *set).map(|(_, flag)| *flag).collect();
        let inner = match &self.shape {
            Shape::OneOf(inner) | Shape::Block(inner) => Some(inner),
            _ => None,
        };
        let fields = [token.is_some(), !flags.is_empty(), inner.is_some()];
        reply.map(2 + fields.iter().filter(|field| **field).count());
        for (field, text) in [("name", Some(name.as_str())), ("type", Some(kind)), ("token", token)]
        {
            let Some(text) = text else { continue };
            reply.bulk(field.as_bytes());
            reply.bulk(text.as_bytes());
        }
        if !flags.is_empty() {
            reply.bulk(b"flags");
            reply.array(flags.len());
            flags.iter().for_each(|flag| reply.simple(flag));
        }
        if let Some(inner) = inner {
            reply.bulk(b"arguments");
            write_all(inner, reply);
        }
    }
}

/// Type of a value, by Redis's names of types.
fn kind(name: &str) -> &'static str {
    match name {
        "key" | "source_key" | "destination_key" | "new_key" => "key",
        "pattern" => "pattern",
        "float_increment" => "double",
        "unix_time_seconds" | "unix_time_milliseconds" => "unix-time",
        "bit" | "count" | "cursor" | "database" | "decrement" | "end" | "increment"
        | "milliseconds" | "offset" | "protocol_version" | "replica_count" | "seconds"
        | "start" => "integer",
        _ => "string",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table;

    #[test]
    fn every_command_has_its_arguments_and_they_agree_with_its_arity() {
        let names: Vec<&str> = SYNTAX.iter().map(|(name, _)| *name).collect();
        let mut commands: Vec<&str> = table::all().map(|spec| spec.name).collect();
        commands.sort_unstable();
        assert_eq!(names, commands);
        for (name, text) in SYNTAX {
            let spec = table::find(name.as_bytes()).unwrap();
            let (least, unbounded) = words(&arguments(text));
            let arity = usize::from(spec.arity.unsigned_abs()) - 1;
            assert!(
                arity <= least,
                "{name} takes {least} words or more, its arity is {}",
                spec.arity
            );
            let fixed = spec.arity > 0;
            assert!(!fixed || (arity == least && !unbounded), "{name}: {text}");
        }
    }

    /// Minimum number of words of the arguments, and whether there may be more.
    fn words(arguments: &[Argument<'_>]) -> (usize, bool) {
        arguments.iter().fold((0, false), |(least, more), argument| {
            let (words, varies) = match &argument.shape {
                Shape::Value { token, .. } => (1 + usize::from(token.is_some()), false),
                Shape::Token(_) => (1, false),
                Shape::Block(inner) => words(inner),
                Shape::OneOf(inner) => {
                    let each = inner.iter().map(|one| words(std::slice::from_ref(one)).0);
                    (each.min().unwrap(), true)
                }
            };
            let varies = varies || argument.optional || argument.repeats;
            (least + if argument.optional { 0 } else { words }, more || varies)
        })
    }

    #[test]
    fn texts_are_read_as_they_are_meant() {
        let check = |text: &str, expect: &str| {
            let mut out = Vec::new();
            let mut reply = Encoder::new(&mut out, resp::Protocol::Resp2);
            write_all(&arguments(text), &mut reply);
            let text = String::from_utf8(out).unwrap();
            let plain = text.split("\r\n").filter(|part| !part.starts_with(['$', '*', '%']));
            assert_eq!(plain.collect::<Vec<_>>().join(" ").trim(), expect);
        };
        check("", "");
        check("key value", "name key type key name value type string");
        check("key [key ...]", "name key type key flags +multiple");
        check("[section ...]", "name section type string flags +optional +multiple");
        check(
            "key [NX | EX seconds]",
            "name key type key name choice type oneof flags +optional arguments name nx type pure-token \
             token NX name seconds type integer token EX",
        );
        check(
            "key value [key value ...]",
            "name block type block flags +multiple arguments name key type key name value type string",
        );
    }
}
