//! Commands about the server: TIME, INFO, CONFIG, COMMAND and similar ones.

use super::client::Client;
use super::command::{Flag, Group, Local, Run, Spec, Words};
use super::failure::Failure;
use super::keys::help;
use super::numbers::is;
use super::{about_commands, config, info};

/// Version of Redis whose behavior the edge imitates. Clients adapt to it.
pub(crate) const VERSION: &str = "7.0.15";

const fn row_of(
    name: &'static str,
    arity: i16,
    flags: &'static [Flag],
    local: Local,
    (since, summary): (&'static str, &'static str),
) -> Spec {
    let run = Run::Local(local);
    Spec { name, arity, flags, keys: (0, 0, 0), group: Group::Server, summary, since, run }
}

use Flag::{Admin, Fast, Loading, NoMulti};

pub(crate) const COMMANDS: &[Spec] = &[
    row_of("time", 1, &[Fast, Loading], time, ("2.6.0", "Returns the server's time.")),
    row_of("info", -1, &[Loading], info::info, ("1.0.0", "Returns figures of the server.")),
    row_of("config", -2, &[Admin, Loading], config::config, ("2.0.0", "Reads and sets settings.")),
    row_of("command", -1, &[Loading], about_commands::command, ("2.8.13", "Describes commands.")),
    row_of("function", -2, &[], function, ("7.0.0", "Deletes all functions; the server has none.")),
    row_of(
        "save",
        1,
        &[Admin, NoMulti],
        save,
        ("1.0.0", "Does nothing: acknowledged changes are in the log."),
    ),
    row_of(
        "shutdown",
        -1,
        &[Admin, NoMulti, Loading],
        shutdown,
        ("1.0.0", "Refused: stop the server with a signal."),
    ),
];

fn time(client: &mut Client, _: &Words<'_>) -> Result<(), Failure> {
    let now_ms = client.shared.node.keys().now_ms();
    let mut reply = client.reply();
    reply.array(2);
    reply.bulk((now_ms / 1_000).to_string().as_bytes());
    reply.bulk((now_ms % 1_000 * 1_000).to_string().as_bytes());
    Ok(())
}

/// Handles FUNCTION FLUSH, which tools send to empty a server.
fn function(client: &mut Client, words: &Words<'_>) -> Result<(), Failure> {
    match words {
        [sub] if is(sub, "help") => {
            help(&mut client.reply(), &["FUNCTION FLUSH", "    Deletes all functions."]);
        }
        [sub] if is(sub, "flush") => client.reply().simple("OK"),
        [sub, how] if is(sub, "flush") && (is(how, "sync") || is(how, "async")) => {
            client.reply().simple("OK");
        }
        [sub, ..] => return Err(Failure::subcommand("function", sub, &["help"])),
        [] => return Err(Failure::arity("function")),
    }
    Ok(())
}

fn save(client: &mut Client, _: &Words<'_>) -> Result<(), Failure> {
    client.reply().simple("OK");
    Ok(())
}

fn shutdown(_: &mut Client, _: &Words<'_>) -> Result<(), Failure> {
    Err(Failure::said("ERR roost is stopped with a signal, not with a command"))
}
