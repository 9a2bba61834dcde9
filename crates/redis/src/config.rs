//! The command CONFIG: settings that tools read when they connect. roost is configured on its command line, so settings
//! cannot be changed with CONFIG. Setting one to its current value succeeds.

use kv::limits::{NUMBERED_BUCKETS, VALUE_BYTES_MAX};

use super::client::Client;
use super::command::Words;
use super::failure::{Failure, shown};
use super::glob::Pattern;
use super::keys::help;
use super::numbers::is;

const HELP: &[&str] = &[
    "CONFIG GET pattern [pattern ...]",
    "CONFIG SET name value [name value ...]",
    "    Succeeds only if the settings have these values already.",
];

const SUBCOMMANDS: &[&str] = &["help", "get", "set", "resetstat", "rewrite"];

/// All settings with their names in Redis.
fn settings(client: &Client) -> Vec<(&'static str, String)> {
    let fixed = [
        ("save", ""),
        ("appendonly", "yes"),
        ("maxmemory", "0"),
        ("maxmemory-policy", "noeviction"),
        ("timeout", "0"),
        ("tcp-keepalive", "0"),
        ("cluster-enabled", "no"),
        ("notify-keyspace-events", ""),
        ("requirepass", ""),
    ];
    let mut settings: Vec<(&'static str, String)> =
        fixed.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
    settings.push(("databases", NUMBERED_BUCKETS.to_string()));
    settings.push(("proto-max-bulk-len", VALUE_BYTES_MAX.to_string()));
    settings.push(("maxclients", client.shared.connections_max.to_string()));
    settings.push(("port", client.registered.entry.local.port().to_string()));
    settings.push(("bind", client.registered.entry.local.ip().to_string()));
    settings
}

pub(crate) fn config(client: &mut Client, words: &Words<'_>) -> Result<(), Failure> {
    let [sub, rest @ ..] = words else { return Err(Failure::arity("config")) };
    match sub.to_ascii_lowercase().as_slice() {
        b"help" if rest.is_empty() => help(&mut client.reply(), HELP),
        b"get" if !rest.is_empty() => {
            let settings = settings(client);
            let mut fits = vec![false; settings.len()];
            for pattern in rest {
                let pattern = Pattern::new(&pattern.to_ascii_lowercase())?;
                for (fits, (name, _)) in fits.iter_mut().zip(&settings) {
                    *fits |= pattern.matches(name.as_bytes());
                }
            }
            let found = settings.iter().zip(fits).filter(|(_, fits)| *fits);
            let found: Vec<_> = found.map(|(setting, _)| setting).collect();
            let mut reply = client.reply();
            reply.map(found.len());
            for (name, value) in found {
                reply.bulk(name.as_bytes());
                reply.bulk(value.as_bytes());
            }
        }
        b"set" => set(client, rest)?,
        b"resetstat" if rest.is_empty() => {
            return Err(Failure::said("ERR roost does not reset its counters"));
        }
        b"rewrite" if rest.is_empty() => {
            return Err(Failure::said("ERR The server is running without a config file"));
        }
        _ => return Err(Failure::subcommand("config", sub, SUBCOMMANDS)),
    }
    Ok(())
}

fn set(client: &mut Client, words: &Words<'_>) -> Result<(), Failure> {
    let (pairs, []) = words.as_chunks() else { return Err(Failure::arity("config|set")) };
    if pairs.is_empty() {
        return Err(Failure::arity("config|set"));
    }
    let settings = settings(client);
    for [name, value] in pairs {
        let Some((known, now)) = settings.iter().find(|(known, _)| is(name, known)) else {
            let name = shown(name, 128);
            return Err(Failure::of(format!(
                "ERR Unknown option or number of arguments for CONFIG SET - '{name}'"
            )));
        };
        if now.as_bytes() != *value {
            return Err(Failure::of(format!(
                "ERR CONFIG SET failed (possibly related to argument '{known}') - can't set \
                 immutable config: roost has it from its own settings"
            )));
        }
    }
    client.reply().simple("OK");
    Ok(())
}
