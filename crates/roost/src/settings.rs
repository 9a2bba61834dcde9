//! Settings of `roost serve`.

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

pub(crate) use apps::feeds_of;
pub(crate) use sources::Sources;
pub(crate) use values::{LogFormat, Policy, check_level, duration, life, whole_seconds};

use values::{SignUp, changes_max, count, erase_within, log_level};

/// Headings of `--help` and of `--check`.
const LISTENING: &str = "Listening and TLS";
const DATA: &str = "Data and durability";
const CLUSTER: &str = "Cluster";
const MEMORY: &str = "Limits and memory";
const ACCOUNTS: &str = "Accounts and pages";
const LOGGING: &str = "Logging";

/// Default data directory.
pub(crate) const DATA_DIRECTORY: &str = "./roost-data";

/// All settings. The name of a field is the name of the option, the key in the configuration file and, in capitals
/// after `ROOST_`, the environment variable (except `ROOST_LOG` for the log level).
#[derive(Args, Clone, Debug, Default, PartialEq)]
pub(crate) struct Settings {
    /// Address to serve HTTP on [default: 127.0.0.1:8998]
    ///
    /// Beyond loopback addresses, keys and passwords need TLS: set --tls-cert, or --public-url https://HOST if a proxy
    /// terminates TLS.
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
    /// Scheme and host without a path. Must be https://HOST if the server or a proxy uses TLS.
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
    /// The server's certificate first, then the intermediate certificates. The server reloads the file when it is
    /// replaced.
    #[arg(long, env = "ROOST_TLS_CERT", value_name = "FILE", help_heading = LISTENING)]
    pub(crate) tls_cert: Option<PathBuf>,
    /// Private key of --tls-cert, in a PEM file [default: none]
    #[arg(long, env = "ROOST_TLS_KEY", value_name = "FILE", help_heading = LISTENING)]
    pub(crate) tls_key: Option<PathBuf>,
    /// Serve https with a self-signed certificate that the server generates [default: false]
    ///
    /// The certificate is valid for the host of --public-url, localhost and the address of --listen. The server stores
    /// it as tls-cert.pem in the data directory. Clients must be configured to trust it.
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
    /// Proxies whose header X-Forwarded-For is trusted [default: 127.0.0.0/8,::1]
    ///
    /// Networks and addresses separated by commas, for example 10.0.0.0/8,192.0.2.1; or `none`. The value replaces the
    /// default.
    #[arg(long, env = "ROOST_TRUSTED_PROXIES", value_name = "CIDR,...", help_heading = LISTENING)]
    pub(crate) trusted_proxies: Option<TrustedProxies>,
    /// Web origins whose pages may call /v1 with a user's token [default: none]
    ///
    /// Origins separated by commas, for example `https://app.example,http://localhost:5173`.
    #[arg(long, env = "ROOST_ALLOW_ORIGIN", value_name = "ORIGIN,...", help_heading = LISTENING)]
    pub(crate) allow_origin: Option<Origins>,
    /// Data directory, created if it does not exist [default: ./roost-data]
    #[arg(long, env = "ROOST_DATA", value_name = "DIR", help_heading = DATA)]
    pub(crate) data: Option<PathBuf>,
    /// Time at which a change is synced to disk [default: always]
    ///
    /// always: before the change is acknowledged. interval: at most --fsync-interval later. never: when the operating
    /// system writes it. If the process crashes, no acknowledged change is lost; after a power loss, changes that were
    /// not synced are lost.
    #[arg(long, env = "ROOST_DURABILITY", value_name = "POLICY", help_heading = DATA)]
    pub(crate) durability: Option<Policy>,
    /// Longest time between syncs with --durability interval [default: 1s]
    #[arg(
        long,
        env = "ROOST_FSYNC_INTERVAL",
        value_name = "TIME",
        value_parser = duration,
        help_heading = DATA
    )]
    pub(crate) fsync_interval: Option<Duration>,
    /// Archive of the log, for `roost restore` [default: none]
    ///
    /// A directory, used by this server only.
    #[arg(long, env = "ROOST_ARCHIVE", value_name = "DIR", help_heading = DATA)]
    pub(crate) archive: Option<PathBuf>,
    /// Longest time until a change is in the archive, while the archive can be written [default: 1m]
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
    /// If the log grows larger, or the disk is almost full, the server deletes the oldest part, and the archive has a
    /// gap.
    #[arg(long, env = "ROOST_ARCHIVE_BACKLOG", value_name = "SIZE", help_heading = DATA)]
    pub(crate) archive_backlog: Option<ByteSize>,
    /// Largest size of the change feed's files, 8MiB to 16GiB [default: 0, no change feed]
    ///
    /// `GET /v1/changes` and webhooks read the feed. It adds 16MiB of memory. See docs/changes.md.
    #[arg(
        long,
        env = "ROOST_CHANGES_MAX",
        value_name = "SIZE",
        value_parser = changes_max,
        help_heading = DATA
    )]
    pub(crate) changes_max: Option<ByteSize>,
    /// Disk space to keep free [default: 512MiB]
    ///
    /// When less is free, the server accepts only deletions.
    #[arg(long, env = "ROOST_DISK_RESERVE", value_name = "SIZE", help_heading = DATA)]
    pub(crate) disk_reserve: Option<ByteSize>,
    /// Time within which expired and deleted stories are erased from all files [default: 1h]
    ///
    /// Their texts and views are erased. At least 10s; with --archive, at least four times --archive-interval. Expired
    /// stories are never returned, even before they are erased.
    #[arg(
        long,
        env = "ROOST_ERASE_WITHIN",
        value_name = "TIME",
        value_parser = erase_within,
        help_heading = DATA
    )]
    pub(crate) erase_within: Option<Duration>,
    /// Number of bytes per second that the weekly check of all files reads [default: 1MiB]
    ///
    /// The check compares the files with their checksums in the background. 0 disables the check.
    #[arg(long, env = "ROOST_SCRUB_RATE", value_name = "SIZE", help_heading = DATA)]
    pub(crate) scrub_rate: Option<ByteSize>,
    /// Longest accepted jump of the machine's clock [default: 7d]
    ///
    /// While it runs, the server ignores a forward jump that is longer. At the start, it refuses to run if the clock
    /// differs by more than this from the time at which the server last ran.
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
    /// Longest time that a node may lag behind the cluster [default: 10s]
    ///
    /// When a node lags longer, its `/readyz` returns 503.
    #[arg(
        long,
        env = "ROOST_MAX_LAG",
        value_name = "TIME",
        value_parser = duration,
        help_heading = CLUSTER
    )]
    pub(crate) max_lag: Option<Duration>,
    /// Memory of the server [default: 2840MiB, or less on a small machine or container: three quarters of its memory]
    ///
    /// The server divides it among the parts below: parts without a setting share the memory that the others leave.
    #[arg(long, env = "ROOST_MEMORY", value_name = "SIZE", help_heading = MEMORY)]
    pub(crate) memory: Option<ByteSize>,
    /// Memory for home timelines of active users [default: 512MiB]
    ///
    /// The least recently read timelines are evicted, and rebuilt on the next read.
    #[arg(long, env = "ROOST_TIMELINE_MEMORY", value_name = "SIZE", help_heading = MEMORY)]
    pub(crate) timeline_memory: Option<ByteSize>,
    /// Memory for posts, names and stories [default: 384MiB]
    ///
    /// Five eighths for rendered posts and names, a quarter for the newest posts of all users, an eighth for stories.
    #[arg(long, env = "ROOST_POST_MEMORY", value_name = "SIZE", help_heading = MEMORY)]
    pub(crate) post_memory: Option<ByteSize>,
    /// Memory for statuses and accounts of the Mastodon API [default: 128MiB]
    ///
    /// The least recently read ones are evicted, and rendered again on the next read.
    #[arg(long, env = "ROOST_ENTITY_MEMORY", value_name = "SIZE", help_heading = MEMORY)]
    pub(crate) entity_memory: Option<ByteSize>,
    /// Memory for keys of buckets [default: 256MiB]
    ///
    /// The least recently read keys are evicted, and read from disk on the next access.
    #[arg(long, env = "ROOST_BUCKET_MEMORY", value_name = "SIZE", help_heading = MEMORY)]
    pub(crate) bucket_memory: Option<ByteSize>,
    /// Memory for samples of the recognizer, at least 15MiB [default: 128MiB]
    ///
    /// A sample takes 528 bytes. The server does not start if the samples of the data directory need more.
    #[arg(long, env = "ROOST_SAMPLE_MEMORY", value_name = "SIZE", help_heading = MEMORY)]
    pub(crate) sample_memory: Option<ByteSize>,
    /// Memory for the cache of the store [default: 64MiB]
    #[arg(long, env = "ROOST_STORE_CACHE", value_name = "SIZE", help_heading = MEMORY)]
    pub(crate) store_cache: Option<ByteSize>,
    /// Memory for changes that no checkpoint has written to the store yet [default: 64MiB]
    ///
    /// Under sustained writes, these changes use up to four times as much.
    #[arg(long, env = "ROOST_OVERLAY_MEMORY", value_name = "SIZE", help_heading = MEMORY)]
    pub(crate) overlay_memory: Option<ByteSize>,
    /// Memory for HTTP requests and responses [default: 256MiB]
    ///
    /// Memory of connections is extra. Recognitions use at most three quarters of this setting: an image of 4,096 x
    /// 4,096 pixels takes 145MiB; with 16 bits per channel it takes 209MiB, which requires a setting of 320MiB.
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
    /// Maximum number of pending changes [default: 16384]
    ///
    /// When there are more, requests get the response 503.
    #[arg(
        long,
        env = "ROOST_QUEUE",
        value_name = "COMMANDS",
        value_parser = count,
        help_heading = MEMORY
    )]
    pub(crate) queue: Option<NonZeroU32>,
    /// Maximum number of connections, counted separately for HTTP and Redis clients [default: 4096]
    ///
    /// When all are in use, a new connection replaces an idle one or one that has presented no key. The server reserves
    /// 256 of the process's open files for the log and the store.
    #[arg(
        long,
        env = "ROOST_MAX_CONNECTIONS",
        value_name = "COUNT",
        value_parser = count,
        help_heading = MEMORY
    )]
    pub(crate) max_connections: Option<NonZeroU32>,
    /// Maximum total size of picture files [default: 10GiB]
    ///
    /// Larger uploads are refused. 0 disables pictures and saves 129MiB of memory.
    #[arg(long, env = "ROOST_MEDIA_MAX", value_name = "SIZE", help_heading = MEMORY)]
    pub(crate) media_max: Option<ByteSize>,
    /// Accept requests without an application key [default: false]
    ///
    /// For local use only: the server must listen on loopback addresses, and refuses requests from pages of other
    /// sites.
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
    /// Users who may sign up [default: closed]
    ///
    /// See docs/accounts.md.
    #[arg(long, env = "ROOST_REGISTRATIONS", value_name = "WHO", help_heading = ACCOUNTS)]
    pub(crate) registrations: Option<SignUp>,
    /// File with the operator's description of the server for users and apps [default: none]
    ///
    /// It contains the title, rules, contact and more: see docs/accounts.md.
    #[arg(long, env = "ROOST_ABOUT", value_name = "FILE", help_heading = ACCOUNTS)]
    pub(crate) about: Option<PathBuf>,
    /// File with definitions of ranked feeds, in addition to the built-in ones [default: none]
    ///
    /// See docs/feeds.md.
    #[arg(long, env = "ROOST_FEEDS", value_name = "FILE", help_heading = ACCOUNTS)]
    pub(crate) feeds: Option<PathBuf>,
    /// Let everybody read public data through the Mastodon API [default: false]
    ///
    /// By default, only users with an account can read it.
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
    /// Let apps ask users for their passwords [default: false]
    ///
    /// Enables OAuth's password grant, which old command-line apps need.
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
    /// A time from 1s to 7d.
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
    /// Directory from which the pages are read at every request [default: those in the binary]
    ///
    /// For development.
    #[arg(long, env = "ROOST_WEB_ASSETS", value_name = "DIR", help_heading = ACCOUNTS)]
    pub(crate) web_assets: Option<PathBuf>,
    /// Format of the log on standard error [default: auto]
    ///
    /// auto is text on a terminal and json otherwise.
    #[arg(long, env = "ROOST_LOG_FORMAT", value_name = "FORMAT", help_heading = LOGGING)]
    pub(crate) log_format: Option<LogFormat>,
    /// Level of the log [default: info]
    ///
    /// One of error, warn, info, debug, trace and off. Modules can have their own levels, for example info,node=debug.
    /// SIGHUP reloads this setting from the configuration file.
    #[arg(
        long,
        env = "ROOST_LOG",
        value_name = "LEVEL",
        value_parser = log_level,
        help_heading = LOGGING
    )]
    pub(crate) log_level: Option<String>,
}

/// Settings of a cluster's log on NATS.
#[derive(Args, Clone, Debug, Default, PartialEq)]
pub(crate) struct Nats {
    /// NATS servers with the log of the cluster: nats://HOST:PORT or tls://HOST:PORT, separated by commas [default:
    /// none, a log in the data directory]
    ///
    /// A user and a password may precede the first host: nats://USER:PASSWORD@HOST:PORT. Every user of the machine can
    /// read the command line, so pass them in ROOST_NATS, or use --nats-creds. See docs/cluster.md.
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
    pub(crate) fn data(&self) -> PathBuf {
        self.data.clone().unwrap_or_else(|| PathBuf::from(DATA_DIRECTORY))
    }

    pub(crate) fn listen(&self) -> SocketAddr {
        self.listen.unwrap_or(SocketAddr::from(([127, 0, 0, 1], 8998)))
    }

    /// Whether https is served.
    pub(crate) fn is_https(&self) -> bool {
        self.tls_cert.is_some() || self.tls_key.is_some() || self.tls_self_signed == Some(true)
    }

    /// Source of the pages.
    pub(crate) fn pages(&self) -> Option<Pages> {
        match &self.web_assets {
            _ if self.web == Some(false) => None,
            Some(folder) => Some(Pages::Folder(folder.clone())),
            None => Some(Pages::Embedded),
        }
    }

    /// Divides the memory. `available` is the number of bytes available to the process.
    ///
    /// # Errors
    /// If the memory is too small.
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
            changes: self.changes_max.is_some_and(|size| size.as_u64() > 0),
        };
        Memory::divide(self.memory, &given, available)
    }

    /// Options of the node.
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
        options.changes_max = self.changes_max.map_or(options.changes_max, |size| size.as_u64());
        options.scrub_rate = self.scrub_rate.map_or(options.scrub_rate, |size| size.as_u64());
        options.clock_jump_max = self.clock_jump.unwrap_or(options.clock_jump_max);
        options
    }
}

/// Removes the passwords from addresses of NATS servers.
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

/// Path of this program, which stays valid when another version is installed in its place.
fn converter() -> Option<PathBuf> {
    let program = PathBuf::from("/proc/self/exe");
    if program.exists() { Some(program) } else { std::env::current_exe().ok() }
}

#[cfg(test)]
#[path = "settings/tests.rs"]
mod tests;
