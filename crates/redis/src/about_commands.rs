//! The command COMMAND: descriptions of commands, from the table of commands.

use resp::Encoder;

use super::client::Client;
use super::command::{Flag, Spec, Words};
use super::failure::Failure;
use super::glob::Pattern;
use super::keys::help;
use super::numbers::is;
use super::{syntax, table};

const HELP: &[&str] = &[
    "COMMAND [INFO name ...]",
    "COMMAND COUNT",
    "COMMAND DOCS [name ...]",
    "COMMAND GETKEYS command [argument ...]",
    "COMMAND LIST [FILTERBY PATTERN pattern | ACLCAT category | MODULE name]",
];

const SUBCOMMANDS: &[&str] = &["help", "count", "info", "docs", "list", "getkeys"];

/// Maximum size of the description of one command, in bytes.
const ABOUT_BYTES_MAX: usize = 2_048;

pub(crate) fn command(client: &mut Client, words: &Words<'_>) -> Result<(), Failure> {
    // Each argument names a command to describe; without arguments, all commands are described.
    let bytes: usize = words.iter().map(|word| word.len()).sum();
    client.admit(bytes + (words.len() + table::all().count()) * ABOUT_BYTES_MAX)?;
    client.work += words.len();
    let mut reply = client.reply();
    let [sub, rest @ ..] = words else {
        reply.array(table::all().count());
        table::all().for_each(|spec| describe(spec, &mut reply));
        return Ok(());
    };
    match (sub.to_ascii_lowercase().as_slice(), rest) {
        (b"help", []) => help(&mut reply, HELP),
        (b"count", []) => reply.integer(table::all().count() as i64),
        (b"info", []) => return command(client, &[]),
        (b"info", names) => {
            reply.array(names.len());
            for name in names {
                match table::find(name) {
                    Some(spec) => describe(spec, &mut reply),
                    None => reply.null_array(),
                }
            }
        }
        (b"docs", names) => docs(names, &mut reply),
        (b"list", filter) => list(filter, &mut reply)?,
        (b"getkeys", [name, arguments @ ..]) => keys(name, arguments, &mut reply)?,
        _ => return Err(Failure::subcommand("command", sub, SUBCOMMANDS)),
    }
    Ok(())
}

/// Describes a command with ten fields, in the format of Redis 7.
fn describe(spec: &Spec, reply: &mut Encoder<'_>) {
    reply.array(10);
    reply.bulk(spec.name.as_bytes());
    reply.integer(spec.arity.into());
    let flags: Vec<&str> = spec.flags.iter().filter_map(|flag| flag.name()).collect();
    reply.set(flags.len());
    flags.iter().for_each(|flag| reply.simple(flag));
    for place in [spec.keys.0, spec.keys.1, spec.keys.2] {
        reply.integer(place.into());
    }
    let categories = categories(spec);
    reply.set(categories.len());
    categories.iter().for_each(|category| reply.simple(&format!("@{category}")));
    // Tips, key specifications and subcommands are empty.
    (0..3).for_each(|_| reply.array(0));
}

fn categories(spec: &Spec) -> Vec<&'static str> {
    let mut categories = Vec::new();
    if spec.has(Flag::Write) {
        categories.push("write");
    }
    if spec.has(Flag::Readonly) {
        categories.push("read");
    }
    categories.push(match spec.group.name() {
        "generic" => "keyspace",
        "transactions" => "transaction",
        name => name,
    });
    categories.push(if spec.has(Flag::Fast) { "fast" } else { "slow" });
    if spec.has(Flag::Admin) {
        categories.push("admin");
    }
    categories
}

fn docs(names: &Words<'_>, reply: &mut Encoder<'_>) {
    let specs: Vec<&Spec> = match names {
        [] => table::all().collect(),
        names => names.iter().filter_map(|name| table::find(name)).collect(),
    };
    reply.map(specs.len());
    for spec in specs {
        reply.bulk(spec.name.as_bytes());
        reply.map(4);
        for (name, text) in
            [("summary", spec.summary), ("since", spec.since), ("group", spec.group.name())]
        {
            reply.bulk(name.as_bytes());
            reply.bulk(text.as_bytes());
        }
        reply.bulk(b"arguments");
        syntax::write_arguments(spec.name, reply);
    }
}

fn list(filter: &Words<'_>, reply: &mut Encoder<'_>) -> Result<(), Failure> {
    let specs: Vec<&Spec> = match filter {
        [] => table::all().collect(),
        [by, what, given] if is(by, "filterby") && is(what, "pattern") => {
            let pattern = Pattern::new(&given.to_ascii_lowercase())?;
            table::all().filter(|spec| pattern.matches(spec.name.as_bytes())).collect()
        }
        [by, what, given] if is(by, "filterby") && is(what, "aclcat") => table::all()
            .filter(|spec| categories(spec).iter().any(|category| is(given, category)))
            .collect(),
        [by, what, _] if is(by, "filterby") && is(what, "module") => Vec::new(),
        _ => return Err(Failure::SYNTAX),
    };
    reply.array(specs.len());
    specs.iter().for_each(|spec| reply.bulk(spec.name.as_bytes()));
    Ok(())
}

fn keys(name: &[u8], arguments: &Words<'_>, reply: &mut Encoder<'_>) -> Result<(), Failure> {
    let spec = table::find(name).ok_or(Failure::said("ERR Invalid command specified"))?;
    if spec.check_arity(arguments.len()).is_err() {
        return Err(Failure::said("ERR Invalid number of arguments specified for command"));
    }
    let keys = spec.keys_of(arguments);
    if keys.len() == 0 {
        return Err(Failure::said("ERR The command has no key arguments"));
    }
    reply.array(keys.len());
    keys.for_each(|key| reply.bulk(key));
    Ok(())
}
