//! The settings of `roost serve`.

#[path = "settings/apps.rs"]
mod apps;
#[path = "settings/sources.rs"]
mod sources;
#[path = "settings/values.rs"]
mod values;

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use api::{Lifetime, Origins};
use bytesize::ByteSize;
use clap::Args;
use edge::TrustedProxies;
use node::{ArchiveOptions, Durability, NodeOptions};
use web::Pages;

use crate::address::{public_url, resolve};
use crate::memory::{Given, Memory};

pub(crate) use sources::Sources;
pub(crate) use values::{LogFormat, Policy, check_level, duration, life, whole_seconds};

use values::{SignUp, count, erase_within, log_level};

/// Headings of `--help` and of `--check`.
const LISTENING: &str = "Listening and TLS";
const DATA: &str = "Data and durability";
const CLUSTER: &str = "Cluster";
const MEMORY: &str = "Limits and memory";
const ACCOUNTS: &str = "Accounts and pages";
const LOGGING: &str = "Logging";

/// The data directory if none is named.
pub(crate) const DATA_DIRECTORY: &str = "./roost-data";

/// All settings. Each is declared once: its name is the option, the key of the file and, in capitals after `ROOST_`, the
/// environment variable (of the level of the log: `ROOST_LOG`). A value is parsed in the same way wherever it is from.
#[derive(Args, Clone, Debug, Default, PartialEq)]
pub(crate) struct Settings {
    /// Address to serve HTTP on [default: 127.0.0.1:8998]
    ///
    /// On other addresses than those of loopback, keys and passwords need TLS: set --tls-cert, or --public-url
    /// https://HOST if a proxy terminates TLS.
    #[arg(
        long,
        env = "ROOST_LISTEN",
        value_name = "HOST:PORT",
        value_parser = resolve,
        help_heading = LISTENING
    )]
    pub(crate) listen: Option<SocketAddr>,
    /// Address to serve Redis clients on [default: none]
    ///
    /// Redis clients have no TLS: use loopback, a private network or a TLS tunnel.
    #[arg(
        long,
        env = "ROOST_REDIS_LISTEN",
        value_name = "HOST:PORT",
        value_parser = resolve,
        help_heading = LISTENING
    )]
    pub(crate) redis_listen: Option<SocketAddr>,
    /// URL of the server as its users see it [default: http:// or https:// and the address of --listen]
    ///
    /// Without a path: https://HOST with TLS or a proxy.
    #[arg(
        long,
        env = "ROOST_PUBLIC_URL",
        value_name = "URL",
        value_parser = public_url,
        help_heading = LISTENING
    )]
    pub(crate) public_url: Option<String>,
    /// Serve https with the certificates in this PEM file [default: none]
    ///
    /// Server certificate first, then intermediate certificates. A running server notices when the file is replaced.
    #[arg(long, env = "ROOST_TLS_CERT", value_name = "FILE", help_heading = LISTENING)]
    pub(crate) tls_cert: Option<PathBuf>,
    /// Private key of --tls-cert, in a PEM file [default: none]
    #[arg(long, env = "ROOST_TLS_KEY", value_name = "FILE", help_heading = LISTENING)]
    pub(crate) tls_key: Option<PathBuf>,
    /// Serve https with a certificate that the server makes itself [default: false]
    ///
    /// For the host of --public-url, localhost and the address of --listen: tls-cert.pem in the data directory. Clients
    /// trust it only if they are set to.
    #[arg(
        long,
        env = "ROOST_TLS_SELF_SIGNED",
        value_name = "true|false",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true",
        hide_possible_values = true,
        help_heading = LISTENING
    )]
    pub(crate) tls_self_signed: Option<bool>,
    /// Proxies whose X-Forwarded-For is trusted [default: 127.0.0.0/8,::1]
    ///
    /// Networks and addresses with commas between: 10.0.0.0/8,192.0.2.1, or none. A list replaces the default.
    #[arg(long, env = "ROOST_TRUSTED_PROXIES", value_name = "CIDR,...", help_heading = LISTENING)]
    pub(crate) trusted_proxies: Option<TrustedProxies>,
    /// Origins whose pages may call /v1 with a token of a user [default: none]
    ///
    /// Origins with commas between: https://app.example,http://localhost:5173.
    #[arg(long, env = "ROOST_ALLOW_ORIGIN", value_name = "ORIGIN,...", help_heading = LISTENING)]
    pub(crate) allow_origin: Option<Origins>,
    /// Data directory, created if it does not exist [default: ./roost-data]
    #[arg(long, env = "ROOST_DATA", value_name = "DIR", help_heading = DATA)]
    pub(crate) data: Option<PathBuf>,
    /// When a change is synced to disk [default: always]
    ///
    /// Before it is acknowledged (always), at most --fsync-interval later (interval), or whenever the operating system
    /// writes it (never). A crash of the process loses nothing under any policy; a power loss may, except under always.
    #[arg(long, env = "ROOST_DURABILITY", value_name = "POLICY", help_heading = DATA)]
    pub(crate) durability: Option<Policy>,
    /// Longest time between syncs under --durability interval [default: 1s]
    #[arg(
        long,
        env = "ROOST_FSYNC_INTERVAL",
        value_name = "TIME",
        value_parser = duration,
        help_heading = DATA
    )]
    pub(crate) fsync_interval: Option<Duration>,
    /// Archive of the log for `roost restore` [default: none]
    ///
    /// A directory for this data directory alone.
    #[arg(long, env = "ROOST_ARCHIVE", value_name = "DIR", help_heading = DATA)]
    pub(crate) archive: Option<PathBuf>,
    /// Longest time until a change is in the archive [default: 1m]
    ///
    /// If the archive can be written.
    #[arg(
        long,
        env = "ROOST_ARCHIVE_INTERVAL",
        value_name = "TIME",
        value_parser = duration,
        help_heading = DATA
    )]
    pub(crate) archive_interval: Option<Duration>,
    /// Size up to which the log is kept while the archive cannot be written [default: 8GiB]
    ///
    /// Beyond it, or when the disk is almost full, the log is cut and the archive has a gap.
    #[arg(long, env = "ROOST_ARCHIVE_BACKLOG", value_name = "SIZE", help_heading = DATA)]
    pub(crate) archive_backlog: Option<ByteSize>,
    /// Disk space to keep free [default: 512MiB]
    ///
    /// While less is free, only deletions are accepted.
    #[arg(long, env = "ROOST_DISK_RESERVE", value_name = "SIZE", help_heading = DATA)]
    pub(crate) disk_reserve: Option<ByteSize>,
    /// Time within which expired and deleted stories are erased from all files [default: 1h]
    ///
    /// Their texts and views; at least 10s, and with an archive four times --archive-interval. Expired stories are in
    /// no response, even before that.
    #[arg(
        long,
        env = "ROOST_ERASE_WITHIN",
        value_name = "TIME",
        value_parser = erase_within,
        help_heading = DATA
    )]
    pub(crate) erase_within: Option<Duration>,
    /// Bytes per second to read for the weekly check of all files [default: 1MiB]
    ///
    /// The files are compared with their checksums in the background; 0 to disable.
    #[arg(long, env = "ROOST_SCRUB_RATE", value_name = "SIZE", help_heading = DATA)]
    pub(crate) scrub_rate: Option<ByteSize>,
    /// Longest accepted jump of the machine's clock [default: 7d]
    ///
    /// A running server does not follow a longer forward jump; a server does not start if the clock differs by more
    /// from the time when it last ran.
    #[arg(
        long,
        env = "ROOST_CLOCK_JUMP",
        value_name = "TIME",
        value_parser = duration,
        help_heading = DATA
    )]
    pub(crate) clock_jump: Option<Duration>,
    #[command(flatten)]
    pub(crate) nats: Nats,
    /// Longest time for which a node may lack changes of others [default: 10s]
    ///
    /// After that `/readyz` returns 503.
    #[arg(
        long,
        env = "ROOST_MAX_LAG",
        value_name = "TIME",
        value_parser = duration,
        help_heading = CLUSTER
    )]
    pub(crate) max_lag: Option<Duration>,
    /// Memory of the server [default: 2840MiB, or three quarters of what the machine or container has if that is less]
    ///
    /// Divided among the parts below; the rest is divided among those that are not set.
    #[arg(long, env = "ROOST_MEMORY", value_name = "SIZE", help_heading = MEMORY)]
    pub(crate) memory: Option<ByteSize>,
    /// Memory for home timelines of active users [default: 512MiB]
    ///
    /// Those least recently read are evicted and gathered again when they are read.
    #[arg(long, env = "ROOST_TIMELINE_MEMORY", value_name = "SIZE", help_heading = MEMORY)]
    pub(crate) timeline_memory: Option<ByteSize>,
    /// Memory for posts, names and stories [default: 384MiB]
    ///
    /// Rendered posts and names (five eighths), the newest posts of all users (a quarter) and stories (an eighth).
    #[arg(long, env = "ROOST_POST_MEMORY", value_name = "SIZE", help_heading = MEMORY)]
    pub(crate) post_memory: Option<ByteSize>,
    /// Memory for statuses and accounts of the Mastodon API [default: 128MiB]
    ///
    /// They are kept as JSON, in one cache with rendered posts and names; those least recently read are evicted and made again
    /// when they are read.
    #[arg(long, env = "ROOST_ENTITY_MEMORY", value_name = "SIZE", help_heading = MEMORY)]
    pub(crate) entity_memory: Option<ByteSize>,
    /// Memory for keys of buckets [default: 256MiB]
    ///
    /// Those least recently read are evicted and read from disk again.
    #[arg(long, env = "ROOST_BUCKET_MEMORY", value_name = "SIZE", help_heading = MEMORY)]
    pub(crate) bucket_memory: Option<ByteSize>,
    /// Memory for samples of the recognizer, at least 15MiB [default: 128MiB]
    ///
    /// Three times 176 bytes for each sample. The server does not start if the data directory has more samples.
    #[arg(long, env = "ROOST_SAMPLE_MEMORY", value_name = "SIZE", help_heading = MEMORY)]
    pub(crate) sample_memory: Option<ByteSize>,
    /// Memory for the cache of the store [default: 64MiB]
    #[arg(long, env = "ROOST_STORE_CACHE", value_name = "SIZE", help_heading = MEMORY)]
    pub(crate) store_cache: Option<ByteSize>,
    /// Memory for changes that no checkpoint has written to the store yet [default: 64MiB]
    ///
    /// Up to four times as much under sustained writes.
    #[arg(long, env = "ROOST_OVERLAY_MEMORY", value_name = "SIZE", help_heading = MEMORY)]
    pub(crate) overlay_memory: Option<ByteSize>,
    /// Memory for HTTP requests and responses [default: 256MiB]
    ///
    /// In addition to that of connections. An image of 4,096 x 4,096 pixels takes 145MiB while it is recognized, with
    /// 16 bits per channel 209MiB, of three quarters of this memory: 16 bits need 320MiB.
    #[arg(long, env = "ROOST_REQUEST_MEMORY", value_name = "SIZE", help_heading = MEMORY)]
    pub(crate) request_memory: Option<ByteSize>,
    /// Memory for commands and replies of Redis clients [default: 256MiB]
    #[arg(long, env = "ROOST_REDIS_MEMORY", value_name = "SIZE", help_heading = MEMORY)]
    pub(crate) redis_memory: Option<ByteSize>,
    /// Number of threads that serve Redis clients [default: half of the processors]
    #[arg(
        long,
        env = "ROOST_REDIS_THREADS",
        value_name = "COUNT",
        value_parser = count,
        help_heading = MEMORY
    )]
    pub(crate) redis_threads: Option<NonZeroU32>,
    /// Largest number of pending changes [default: 16384]
    ///
    /// Beyond it requests are answered with 503.
    #[arg(
        long,
        env = "ROOST_QUEUE",
        value_name = "COMMANDS",
        value_parser = count,
        help_heading = MEMORY
    )]
    pub(crate) queue: Option<NonZeroU32>,
    /// Largest number of connections, for HTTP and for Redis clients each [default: 4096]
    ///
    /// When all are in use, a new connection replaces one that has presented no key, or an idle one. 256 open files are
    /// reserved for the log and the store.
    #[arg(
        long,
        env = "ROOST_MAX_CONNECTIONS",
        value_name = "COUNT",
        value_parser = count,
        help_heading = MEMORY
    )]
    pub(crate) max_connections: Option<NonZeroU32>,
    /// Largest total size of the files of pictures [default: 10GiB]
    ///
    /// Beyond it uploads are refused; 0 for no pictures, which saves 129MiB of memory.
    #[arg(long, env = "ROOST_MEDIA_MAX", value_name = "SIZE", help_heading = MEMORY)]
    pub(crate) media_max: Option<ByteSize>,
    /// Require no application key [default: false]
    ///
    /// For local use: only loopback addresses are allowed, and requests from pages of other sites are refused.
    #[arg(
        long,
        env = "ROOST_OPEN",
        value_name = "true|false",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true",
        hide_possible_values = true,
        help_heading = ACCOUNTS
    )]
    pub(crate) open: Option<bool>,
    /// Sign-up policy [default: closed]
    ///
    /// Nobody (closed), whoever has an invite (invite), everybody with approval by an operator (approval), or everybody
    /// (open). See docs/accounts.md.
    #[arg(long, env = "ROOST_REGISTRATIONS", value_name = "WHO", help_heading = ACCOUNTS)]
    pub(crate) registrations: Option<SignUp>,
    /// File in which the operator describes the server to users and apps [default: none]
    ///
    /// Title, rules, contact and more. See docs/accounts.md.
    #[arg(long, env = "ROOST_ABOUT", value_name = "FILE", help_heading = ACCOUNTS)]
    pub(crate) about: Option<PathBuf>,
    /// Let everybody read what is public through the API for apps [default: false]
    ///
    /// Without it, only users do.
    #[arg(
        long,
        env = "ROOST_ANONYMOUS_READS",
        value_name = "true|false",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true",
        hide_possible_values = true,
        help_heading = ACCOUNTS
    )]
    pub(crate) anonymous_reads: Option<bool>,
    /// Let apps ask for passwords themselves [default: false]
    ///
    /// OAuth's grant type password. Old command-line apps need it.
    #[arg(
        long,
        env = "ROOST_PASSWORD_GRANT",
        value_name = "true|false",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true",
        hide_possible_values = true,
        help_heading = ACCOUNTS
    )]
    pub(crate) password_grant: Option<bool>,
    /// TTL of a story if its author sets none [default: 1d]
    ///
    /// From 1s to 7d.
    #[arg(
        long,
        env = "ROOST_STORY_LIFE",
        value_name = "TIME",
        value_parser = life,
        help_heading = ACCOUNTS
    )]
    pub(crate) story_life: Option<Lifetime>,
    /// Serve the pages at / in addition to the API [default: true]
    #[arg(
        long,
        env = "ROOST_WEB",
        value_name = "true|false",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true",
        hide_possible_values = true,
        help_heading = ACCOUNTS
    )]
    pub(crate) web: Option<bool>,
    /// Directory to read the pages from at every request [default: those in the binary]
    ///
    /// For development.
    #[arg(long, env = "ROOST_WEB_ASSETS", value_name = "DIR", help_heading = ACCOUNTS)]
    pub(crate) web_assets: Option<PathBuf>,
    /// Format of the log on standard error [default: auto]
    ///
    /// Text, json, or auto, which is text on a terminal and json otherwise.
    #[arg(long, env = "ROOST_LOG_FORMAT", value_name = "FORMAT", help_heading = LOGGING)]
    pub(crate) log_format: Option<LogFormat>,
    /// Level of the log [default: info]
    ///
    /// error, warn, info, debug, trace or off, also for parts of the program, as in info,node=debug. SIGHUP applies a
    /// change in the configuration file.
    #[arg(
        long,
        env = "ROOST_LOG",
        value_name = "LEVEL",
        value_parser = log_level,
        help_heading = LOGGING
    )]
    pub(crate) log_level: Option<String>,
}

/// Where the log of a cluster is.
#[derive(Args, Clone, Debug, Default, PartialEq)]
pub(crate) struct Nats {
    /// NATS servers with the log of the cluster: nats://HOST:PORT or tls://HOST:PORT, several with commas between
    /// [default: none, a log in the data directory]
    ///
    /// A user and a password before the first host (nats://USER:PASSWORD@HOST:PORT) are refused on the command line,
    /// which every user of the machine can read: set ROOST_NATS, or use --nats-creds. See docs/cluster.md.
    #[arg(
        long = "nats",
        env = "ROOST_NATS",
        hide_env_values = true,
        value_name = "URL,...",
        help_heading = CLUSTER
    )]
    pub(crate) servers: Option<String>,
    /// File of NATS credentials [default: none]
    #[arg(long = "nats-creds", env = "ROOST_NATS_CREDS", value_name = "FILE", help_heading = CLUSTER)]
    pub(crate) creds: Option<PathBuf>,
    /// Trusted certificate authorities of the NATS servers, in a PEM file [default: those of the system]
    #[arg(long = "nats-tls-ca", env = "ROOST_NATS_TLS_CA", value_name = "FILE", help_heading = CLUSTER)]
    pub(crate) tls_ca: Option<PathBuf>,
}

impl Settings {
    /// The data directory.
    pub(crate) fn data(&self) -> PathBuf {
        self.data.clone().unwrap_or_else(|| PathBuf::from(DATA_DIRECTORY))
    }

    /// The address to bind to.
    pub(crate) fn listen(&self) -> SocketAddr {
        self.listen.unwrap_or(SocketAddr::from(([127, 0, 0, 1], 8998)))
    }

    /// Whether https is served.
    pub(crate) fn is_https(&self) -> bool {
        self.tls_cert.is_some() || self.tls_key.is_some() || self.tls_self_signed == Some(true)
    }

    /// The source of the pages.
    pub(crate) fn pages(&self) -> Option<Pages> {
        match &self.web_assets {
            _ if self.web == Some(false) => None,
            Some(folder) => Some(Pages::Folder(folder.clone())),
            None => Some(Pages::Embedded),
        }
    }

    /// How the memory is divided if the process can have only `available` bytes.
    ///
    /// # Errors
    /// If there is too little.
    pub(crate) fn memory(&self, available: Option<u64>) -> anyhow::Result<Memory> {
        let given = Given {
            timeline: self.timeline_memory,
            post: self.post_memory,
            entity: self.entity_memory,
            bucket: self.bucket_memory,
            sample: self.sample_memory,
            store_cache: self.store_cache,
            overlay: self.overlay_memory,
            request: self.request_memory,
            redis: self.redis_memory,
            max_connections: self.max_connections.map(NonZeroU32::get),
            archive: self.archive.is_some(),
            tls: self.is_https(),
            pictures: self.media_max.is_none_or(|size| size.as_u64() > 0),
            cluster: self.nats.servers.is_some(),
        };
        Memory::divide(self.memory, &given, available)
    }

    /// The options of the node.
    pub(crate) fn node_options(&self, memory: &Memory) -> NodeOptions {
        let mut options = NodeOptions::new(self.data());
        let interval = self.fsync_interval.unwrap_or(Duration::from_secs(1));
        options.durability = match self.durability.unwrap_or(Policy::Always) {
            Policy::Always => Durability::Always,
            Policy::Interval => Durability::Interval(interval),
            Policy::Never => Durability::Never,
        };
        memory.set_node(&mut options);
        options.queue_commands_max =
            self.queue.map_or(options.queue_commands_max, |count| count.get() as usize);
        options.erase_within = self.erase_within.unwrap_or(options.erase_within);
        options.disk_reserve = self.disk_reserve.map_or(options.disk_reserve, |size| size.as_u64());
        options.converter = converter();
        options.media_max = self.media_max.map_or(options.media_max, |size| size.as_u64());
        options.archive = self.archive.clone().map(ArchiveOptions::new).map(|mut archive| {
            archive.interval = self.archive_interval.unwrap_or(archive.interval);
            archive.backlog_max = self.archive_backlog.map_or(archive.backlog_max, |b| b.as_u64());
            archive
        });
        options.scrub_rate = self.scrub_rate.map_or(options.scrub_rate, |size| size.as_u64());
        options.clock_jump_max = self.clock_jump.unwrap_or(options.clock_jump_max);
        options
    }
}

/// The addresses of NATS servers as they may be shown.
pub(crate) fn without_password(servers: &str) -> String {
    let shown = |server: &str| match server.rsplit_once('@') {
        Some((before, host)) => {
            let scheme = before.split_once("://").map_or("nats", |(scheme, _)| scheme);
            format!("{scheme}://USER:PASSWORD@{host}")
        }
        None => server.to_owned(),
    };
    servers.split(',').map(|server| shown(server.trim())).collect::<Vec<_>>().join(",")
}

/// This program, by a name under which it can be started also after another version was installed in its place.
fn converter() -> Option<PathBuf> {
    let program = PathBuf::from("/proc/self/exe");
    if program.exists() { Some(program) } else { std::env::current_exe().ok() }
}

#[cfg(test)]
#[path = "settings/tests.rs"]
mod tests;
