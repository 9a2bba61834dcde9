//! The command INFO: statistics of the server in the format of Redis. Every value is measured. Fields that do not apply
//! to roost are omitted.

use std::fmt::Write as _;

use kv::BucketId;
use kv::limits::NUMBERED_BUCKETS;

use super::client::Client;
use super::command::Words;
use super::failure::Failure;
use super::numbers::is;
use super::server::VERSION;
use edge::process;

type Section = fn(&Client) -> Vec<(&'static str, String)>;

const SECTIONS: [(&str, Section); 7] = [
    ("Server", server),
    ("Clients", clients),
    ("Memory", memory),
    ("Persistence", persistence),
    ("Stats", stats),
    ("Replication", replication),
    ("CPU", cpu),
];

pub(crate) fn info(client: &mut Client, words: &Words<'_>) -> Result<(), Failure> {
    client.shared.metrics.take(&mut client.turn);
    let every = |word: &&[u8]| ["default", "all", "everything"].iter().any(|all| is(word, all));
    let asked = |name: &str| {
        words.is_empty()
            || words.iter().any(|word| every(word) || is(word, &name.to_ascii_lowercase()))
    };
    let mut text = String::new();
    let mut section = |name: &str, lines: &[(&str, String)]| {
        if !text.is_empty() {
            text.push_str("\r\n");
        }
        text.push_str(&format!("# {name}\r\n"));
        for (name, value) in lines {
            let Ok(()) = write!(text, "{name}:{value}\r\n") else {
                unreachable!("a String takes every text")
            };
        }
    };
    for (name, lines) in SECTIONS.iter().filter(|(name, _)| asked(name)) {
        section(name, &lines(client));
    }
    if asked("Keyspace") {
        let lines = keyspace(client);
        let lines: Vec<(&str, String)> =
            lines.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
        section("Keyspace", &lines);
    }
    client.admit(text.len())?;
    client.reply().verbatim(*b"txt", text.as_bytes());
    Ok(())
}

fn server(client: &Client) -> Vec<(&'static str, String)> {
    let uptime_s = client.shared.registry.uptime_s();
    vec![
        ("redis_version", VERSION.to_owned()),
        ("roost_version", env!("CARGO_PKG_VERSION").to_owned()),
        ("redis_mode", "standalone".to_owned()),
        ("os", std::env::consts::OS.to_owned()),
        ("arch_bits", usize::BITS.to_string()),
        ("process_id", std::process::id().to_string()),
        ("tcp_port", client.registered.entry.local.port().to_string()),
        ("uptime_in_seconds", uptime_s.to_string()),
        ("uptime_in_days", (uptime_s / 86_400).to_string()),
    ]
}

fn clients(client: &Client) -> Vec<(&'static str, String)> {
    vec![
        ("connected_clients", client.shared.registry.len().to_string()),
        ("maxclients", client.shared.connections_max.to_string()),
        ("blocked_clients", "0".to_owned()),
    ]
}

fn memory(client: &Client) -> Vec<(&'static str, String)> {
    let resident = process::resident_bytes().to_string();
    vec![
        ("used_memory", resident.clone()),
        ("used_memory_rss", resident),
        ("maxmemory", "0".into()),
        ("mem_clients_normal", client.memory_of_all().to_string()),
    ]
}

fn persistence(_: &Client) -> Vec<(&'static str, String)> {
    vec![("loading", "0".to_owned()), ("aof_enabled", "1".to_owned())]
}

fn stats(client: &Client) -> Vec<(&'static str, String)> {
    let totals = client.shared.metrics.totals();
    vec![
        ("total_connections_received", totals.accepted.to_string()),
        ("total_commands_processed", totals.commands.to_string()),
        ("total_net_input_bytes", totals.bytes_in.to_string()),
        ("total_net_output_bytes", totals.bytes_out.to_string()),
        ("rejected_connections", totals.refused.to_string()),
        ("instantaneous_ops_per_sec", totals.rate.to_string()),
        ("keyspace_hits", totals.hits.to_string()),
        ("keyspace_misses", totals.misses.to_string()),
    ]
}

fn replication(_: &Client) -> Vec<(&'static str, String)> {
    vec![("role", "master".to_owned()), ("connected_slaves", "0".to_owned())]
}

fn cpu(_: &Client) -> Vec<(&'static str, String)> {
    vec![("used_cpu_total", format!("{:.6}", process::cpu_seconds()))]
}

fn keyspace(client: &Client) -> Vec<(String, String)> {
    let keys = client.shared.node.keys();
    let now_ms = keys.now_ms();
    (0..NUMBERED_BUCKETS)
        .filter_map(|number| Some((number, keys.bucket(BucketId(number.into()))?)))
        .filter(|(_, bucket)| bucket.keys > 0)
        .map(|(number, bucket)| {
            let (count, expires) = (bucket.keys, bucket.expiring);
            let avg_ttl = bucket.mean_ttl_ms(now_ms);
            (format!("db{number}"), format!("keys={count},expires={expires},avg_ttl={avg_ttl}"))
        })
        .collect()
}
