//! Commands about the connection: HELLO, AUTH, SELECT, PING, CLIENT and similar ones.

use std::collections::HashSet;

use kv::BucketId;
use resp::Protocol;

use super::client::{Client, Replies};
use super::command::{Flag, Group, Local, Run, Spec, Words};
use super::failure::{Failure, shown};
use super::keys::{database, help};
use super::numbers::{integer, is};
use super::registry::ConnectionInfo;
use super::server::VERSION;

const fn row_of(
    name: &'static str,
    arity: i16,
    flags: &'static [Flag],
    local: Local,
    (since, summary): (&'static str, &'static str),
) -> Spec {
    let run = Run::Local(local);
    Spec { name, arity, flags, keys: (0, 0, 0), group: Group::Connection, summary, since, run }
}

use Flag::{Fast, Loading, NoAuth, NoMulti, Unqueued};

pub(crate) const COMMANDS: &[Spec] = &[
    row_of("ping", -1, &[Fast], ping, ("1.0.0", "Replies with PONG or its argument.")),
    row_of("echo", 2, &[Fast, Loading], echo, ("1.0.0", "Replies with its argument.")),
    row_of("select", 2, &[Fast, Loading], select, ("1.0.0", "Selects a database by its number.")),
    row_of("auth", -2, &[Fast, NoAuth, Loading], auth, ("1.0.0", "Authenticates with a key.")),
    row_of(
        "hello",
        -1,
        &[Fast, NoAuth, NoMulti, Loading],
        hello,
        ("6.0.0", "Selects the protocol version; may authenticate."),
    ),
    row_of("client", -2, &[Loading], about, ("2.4.0", "Lists and closes connections.")),
    row_of(
        "reset",
        1,
        &[Fast, NoAuth, Unqueued, Loading],
        reset,
        ("6.2.0", "Resets the state of the connection."),
    ),
    row_of(
        "quit",
        -1,
        &[Fast, NoAuth, Unqueued, Loading],
        quit,
        ("1.0.0", "Closes the connection."),
    ),
];

/// Maximum length of the names of a client, of its library and of the library's version, in bytes. The names are in the
/// memory of the connection, and in lines of CLIENT LIST.
const TEXT_BYTES_MAX: usize = 256;

const SUBCOMMANDS: &[&str] = &[
    "help", "id", "getname", "setname", "setinfo", "info", "list", "kill", "reply", "no-evict",
    "no-touch",
];

const CLIENT_HELP: &[&str] = &[
    "CLIENT ID | GETNAME | INFO",
    "CLIENT SETNAME name",
    "CLIENT SETINFO LIB-NAME | LIB-VER value",
    "CLIENT LIST [ID id ...] [TYPE NORMAL]",
    "CLIENT KILL address | [ID id] [ADDR address] [LADDR address] [SKIPME yes|no]",
    "CLIENT REPLY ON|OFF|SKIP",
    "CLIENT NO-EVICT | NO-TOUCH ON|OFF",
];

fn ping(client: &mut Client, words: &Words<'_>) -> Result<(), Failure> {
    match words {
        [] => client.reply().simple("PONG"),
        [text] => {
            client.admit(text.len())?;
            client.reply().bulk(text);
        }
        _ => return Err(Failure::arity("ping")),
    }
    Ok(())
}

fn echo(client: &mut Client, words: &Words<'_>) -> Result<(), Failure> {
    let [text] = words else { return Err(Failure::arity("echo")) };
    client.admit(text.len())?;
    client.reply().bulk(text);
    Ok(())
}

fn select(client: &mut Client, words: &Words<'_>) -> Result<(), Failure> {
    let [index] = words else { return Err(Failure::arity("select")) };
    client.bucket = database(index)?;
    client.reply().simple("OK");
    Ok(())
}

fn auth(client: &mut Client, words: &Words<'_>) -> Result<(), Failure> {
    let (user, key) = match words {
        [key] => (&b"default"[..], key),
        [user, key] => (*user, key),
        _ => return Err(Failure::SYNTAX),
    };
    if client.shared.access.is_open() && words.len() == 1 {
        return Err(Failure::said(
            "ERR AUTH <password> called without any password configured for the default user. \
             Are you sure your configuration is correct?",
        ));
    }
    authenticate(client, user, key)?;
    client.reply().simple("OK");
    Ok(())
}

/// Authenticates a client.
///
/// # Errors
/// If the key is invalid, or the user is not `default`.
fn authenticate(client: &mut Client, user: &[u8], key: &[u8]) -> Result<(), Failure> {
    let grant = client.shared.access.admit(key).filter(|_| user == b"default");
    let grant = grant.ok_or(Failure::WRONG_PASS)?;
    let (connection_id, key) = (client.registered.entry.id, client.shared.access.key_name(&grant));
    tracing::debug!(connection_id, key = key.as_deref(), "a Redis client has authenticated");
    client.grant = Some(grant);
    Ok(())
}

/// HELLO `[2 | 3 [AUTH user key] [SETNAME name]]`
fn hello(client: &mut Client, words: &Words<'_>) -> Result<(), Failure> {
    let (protocol, options) = match words {
        [] => (client.protocol, words),
        [version, options @ ..] => (protocol(version)?, options),
    };
    let mut options = options.iter();
    while let Some(option) = options.next() {
        let given = options.as_slice();
        if is(option, "auth")
            && let [user, key, ..] = given
        {
            authenticate(client, user, key)?;
            options.by_ref().take(2).for_each(drop);
        } else if is(option, "setname")
            && let [name, ..] = given
        {
            set_name(client, name)?;
            options.next();
        } else {
            let option = shown(option, TEXT_BYTES_MAX);
            return Err(Failure::of(format!("ERR Syntax error in HELLO option '{option}'")));
        }
    }
    if !client.authenticated() {
        return Err(Failure::said(
            "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO \
             AUTH <user> <pass> option can be used to authenticate the client and select the RESP \
             protocol version at the same time",
        ));
    }
    client.protocol = protocol;
    let id = client.registered.entry.id as i64;
    let mut reply = client.reply();
    reply.map(7);
    for (name, text) in [("server", "redis"), ("version", VERSION)] {
        reply.bulk(name.as_bytes());
        reply.bulk(text.as_bytes());
    }
    for (name, number) in [("proto", if protocol == Protocol::Resp2 { 2 } else { 3 }), ("id", id)] {
        reply.bulk(name.as_bytes());
        reply.integer(number);
    }
    for (name, text) in [("mode", "standalone"), ("role", "master")] {
        reply.bulk(name.as_bytes());
        reply.bulk(text.as_bytes());
    }
    reply.bulk(b"modules");
    reply.array(0);
    Ok(())
}

fn protocol(version: &[u8]) -> Result<Protocol, Failure> {
    match integer(version) {
        Ok(2) => Ok(Protocol::Resp2),
        Ok(3) => Ok(Protocol::Resp3),
        Ok(_) => Err(Failure::said("NOPROTO unsupported protocol version")),
        Err(_) => Err(Failure::said("ERR Protocol version is not an integer or out of range")),
    }
}

fn reset(client: &mut Client, _: &Words<'_>) -> Result<(), Failure> {
    client.end_transaction();
    client.bucket = BucketId(0);
    client.protocol = Protocol::Resp2;
    client.replies = Replies::On;
    client.grant = client.shared.access.without_key();
    client.registered.entry.about.lock().name.clear();
    client.reply().simple("RESET");
    Ok(())
}

fn quit(client: &mut Client, _: &Words<'_>) -> Result<(), Failure> {
    client.reply().simple("OK");
    client.closing = true;
    Ok(())
}

fn about(client: &mut Client, words: &Words<'_>) -> Result<(), Failure> {
    let [sub, rest @ ..] = words else { return Err(Failure::arity("client")) };
    match (sub.to_ascii_lowercase().as_slice(), rest) {
        (b"help", []) => help(&mut client.reply(), CLIENT_HELP),
        (b"id", []) => {
            let id = client.registered.entry.id;
            client.reply().integer(id as i64);
        }
        (b"getname", []) => {
            let name = client.registered.entry.about.lock().name.clone();
            match name.as_str() {
                "" => client.reply().null(),
                name => client.reply().bulk(name.as_bytes()),
            }
        }
        (b"setname", [name]) => {
            set_name(client, name)?;
            client.reply().simple("OK");
        }
        (b"setinfo", [what, text]) => set_info(client, what, text)?,
        (b"info", []) => {
            client.end_turn();
            let line = client.registered.entry.line(client.shared.registry.uptime_s());
            client.reply().verbatim(*b"txt", format!("{line}\n").as_bytes());
        }
        (b"list", options) => list(client, options)?,
        (b"kill", options @ [_, ..]) => kill(client, options)?,
        (b"reply", [how]) => replies(client, how)?,
        (b"no-evict" | b"no-touch", [how]) if is(how, "on") || is(how, "off") => {
            client.reply().simple("OK");
        }
        (b"no-evict" | b"no-touch", [_]) => return Err(Failure::SYNTAX),
        _ => return Err(Failure::subcommand("client", sub, SUBCOMMANDS)),
    }
    Ok(())
}

/// Checks that text cannot break a line of CLIENT LIST.
fn plain<'t>(text: &'t [u8], what: &str) -> Result<&'t str, Failure> {
    let fits = text.iter().all(|byte| (b'!'..=b'~').contains(byte));
    if text.len() > TEXT_BYTES_MAX {
        return Err(Failure::of(format!(
            "ERR {what} cannot be longer than {TEXT_BYTES_MAX} bytes."
        )));
    }
    let text = std::str::from_utf8(text).ok().filter(|_| fits);
    let wrong = || format!("ERR {what} cannot contain spaces, newlines or special characters.");
    text.ok_or_else(|| Failure::of(wrong()))
}

fn set_name(client: &Client, name: &[u8]) -> Result<(), Failure> {
    let name = plain(name, "Client names")?;
    client.registered.entry.about.lock().name = name.to_owned();
    Ok(())
}

fn set_info(client: &mut Client, what: &[u8], text: &[u8]) -> Result<(), Failure> {
    let mut about = client.registered.entry.about.lock();
    if is(what, "lib-name") {
        about.library = plain(text, "lib-name")?.to_owned();
    } else if is(what, "lib-ver") {
        about.library_version = plain(text, "lib-ver")?.to_owned();
    } else {
        let what = shown(what, TEXT_BYTES_MAX);
        return Err(Failure::of(format!("ERR Unrecognized option '{what}'")));
    }
    drop(about);
    client.reply().simple("OK");
    Ok(())
}

fn list(client: &mut Client, options: &Words<'_>) -> Result<(), Failure> {
    client.end_turn();
    let entries = match options {
        [] => client.shared.registry.list(|_| true),
        [option, kind] if is(option, "type") => {
            let normal = is_normal(kind)?;
            client.shared.registry.list(|_| normal)
        }
        [option, ids @ ..] if is(option, "id") && !ids.is_empty() => {
            let wrong = |_| Failure::said("ERR Invalid client ID");
            let ids = ids.iter().map(|id| integer(id).map_err(wrong));
            let ids = ids.collect::<Result<HashSet<i64>, Failure>>()?;
            client.shared.registry.list(|entry| ids.contains(&(entry.id as i64)))
        }
        _ => return Err(Failure::SYNTAX),
    };
    let now = client.shared.registry.uptime_s();
    let mut lines = String::new();
    for entry in &entries {
        lines.push_str(&entry.line(now));
        lines.push('\n');
        // Reserve memory for the text, whose buffer doubles when it grows, and for the reply.
        client.admit(3 * lines.len())?;
    }
    client.work += entries.len();
    client.reply().verbatim(*b"txt", lines.as_bytes());
    Ok(())
}

/// Whether the type is `normal`. All clients have this type; other types of Redis have no clients.
fn is_normal(kind: &[u8]) -> Result<bool, Failure> {
    match kind.to_ascii_lowercase().as_slice() {
        b"normal" => Ok(true),
        b"master" | b"replica" | b"slave" | b"pubsub" => Ok(false),
        _ => {
            let kind = shown(kind, TEXT_BYTES_MAX);
            Err(Failure::of(format!("ERR Unknown client type '{kind}'")))
        }
    }
}

fn kill(client: &mut Client, options: &Words<'_>) -> Result<(), Failure> {
    if let [address] = options {
        let fits = |entry: &ConnectionInfo| entry.peer.to_string().as_bytes() == *address;
        return match end(client, fits) {
            0 => Err(Failure::said("ERR No such client")),
            _ => {
                client.reply().simple("OK");
                Ok(())
            }
        };
    }
    let (mut id, mut address, mut local, mut normal, mut skip) = (None, None, None, true, true);
    let (options, []) = options.as_chunks() else { return Err(Failure::SYNTAX) };
    for [option, given] in options {
        match option.to_ascii_lowercase().as_slice() {
            b"id" => {
                let wrong = Failure::said("ERR client-id should be greater than 0");
                id = Some(integer(given).ok().filter(|id| *id > 0).ok_or(wrong)?);
            }
            b"addr" => address = Some(*given),
            b"laddr" => local = Some(*given),
            b"type" => normal = is_normal(given)?,
            b"user" if *given == b"default" => {}
            b"user" => {
                let user = shown(given, TEXT_BYTES_MAX);
                return Err(Failure::of(format!("ERR No such user '{user}'")));
            }
            b"skipme" if is(given, "yes") => skip = true,
            b"skipme" if is(given, "no") => skip = false,
            _ => return Err(Failure::SYNTAX),
        }
    }
    let own = client.registered.entry.id;
    let is_at = |given: Option<&[u8]>, at: std::net::SocketAddr| {
        given.is_none_or(|given| given == at.to_string().as_bytes())
    };
    let killed = end(client, |entry| {
        normal
            && id.is_none_or(|id| entry.id as i64 == id)
            && is_at(address, entry.peer)
            && is_at(local, entry.local)
            && !(skip && entry.id == own)
    });
    client.reply().integer(killed as i64);
    Ok(())
}

/// Closes the connections for which `fits` is true. The client's own connection closes after the reply.
fn end(client: &mut Client, fits: impl Fn(&ConnectionInfo) -> bool) -> usize {
    client.work += client.shared.registry.len();
    let entries = client.shared.registry.list(fits);
    for entry in &entries {
        if entry.id == client.registered.entry.id {
            client.closing = true;
        } else {
            entry.kill();
        }
    }
    entries.len()
}

/// Whether the command is CLIENT REPLY. In MULTI, it would remove replies that EXEC has announced.
pub(crate) fn is_about_replies(spec: &Spec, words: &Words<'_>) -> bool {
    spec.name == "client" && words.first().is_some_and(|sub| is(sub, "reply"))
}

fn replies(client: &mut Client, how: &[u8]) -> Result<(), Failure> {
    if is(how, "on") {
        client.replies = Replies::On;
        client.reply().simple("OK");
    } else if is(how, "off") {
        client.replies = Replies::Off;
    } else if is(how, "skip") {
        if client.replies == Replies::On {
            client.replies = Replies::SkipNext;
        }
    } else {
        return Err(Failure::SYNTAX);
    }
    Ok(())
}
