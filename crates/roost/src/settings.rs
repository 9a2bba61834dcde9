//! The settings of `roost serve`: a flag overrides an environment variable, which overrides the
//! configuration file, which overrides the default.

#[path = "settings/apps.rs"]
mod apps;
#[path = "settings/values.rs"]
mod values;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use api::Lifetime;
use bytesize::ByteSize;
use clap::Args;
use edge::TrustedProxies;
use node::{ArchiveOptions, Durability, NodeOptions};
use serde::Deserialize;
use web::Pages;

use crate::address::{in_file, public_url, public_url_in_file, resolve};
use crate::memory::{Given, Memory};

pub(crate) use values::{LogFormat, Policy, duration};

use values::{
    SignUp, duration_in_file, erase_within, erase_within_in_file, life, life_in_file, log_level,
    log_level_in_file, trusted_proxies_in_file,
};

/// All settings. The field names are the flags, the keys of the file and, in capitals after `ROOST_`, the
/// environment variables.
#[derive(Args, Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Settings {
    /// Data directory, created if it does not exist [default: ./roost-data]
    #[arg(long, env = "ROOST_DATA", value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// Address to serve HTTP on [default: 127.0.0.1:8998]
    #[arg(long, env = "ROOST_LISTEN", value_name = "HOST:PORT", value_parser = resolve)]
    #[serde(deserialize_with = "in_file")]
    pub(crate) listen: Option<SocketAddr>,
    /// Address to serve Redis clients on [default: none]
    #[arg(long, env = "ROOST_REDIS_LISTEN", value_name = "HOST:PORT", value_parser = resolve)]
    #[serde(deserialize_with = "in_file")]
    pub(crate) redis_listen: Option<SocketAddr>,
    /// Serve https instead of http with the certificates in this PEM file: that of the server first, then those of the
    /// authorities between. A running server notices when the file is replaced [default: none]
    #[arg(long, env = "ROOST_TLS_CERT", value_name = "FILE")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// Private key of --tls-cert, in a PEM file [default: none]
    #[arg(long, env = "ROOST_TLS_KEY", value_name = "FILE")]
    pub(crate) tls_key: Option<PathBuf>,
    /// Serve https with a certificate that the server makes itself for the host of --public-url, localhost and the
    /// address of --listen: tls-cert.pem in the data directory. Clients trust it only if they are set to [default: false]
    #[arg(
        long,
        env = "ROOST_TLS_SELF_SIGNED",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true",
        value_name = "true|false"
    )]
    pub(crate) tls_self_signed: Option<bool>,
    /// Number of threads that serve Redis clients [default: half of the processors]
    #[arg(long, env = "ROOST_REDIS_THREADS", value_name = "COUNT")]
    pub(crate) redis_threads: Option<usize>,
    /// Require no application key. For local use: only loopback addresses are allowed, and requests from
    /// pages of other sites are refused [default: false]
    #[arg(
        long,
        env = "ROOST_OPEN",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true",
        value_name = "true|false"
    )]
    pub(crate) open: Option<bool>,
    /// Addresses of the NATS servers with the log of the cluster that the data directory belongs to: nats://HOST:PORT or
    /// tls://HOST:PORT, several with commas between. See docs/cluster.md [default: none, a log in the data directory]
    #[arg(long, env = "ROOST_LOG_SERVERS", value_name = "URL,...")]
    pub(crate) log: Option<String>,
    /// File of NATS credentials [default: none]
    #[arg(long, env = "ROOST_NATS_CREDS", value_name = "FILE")]
    pub(crate) nats_creds: Option<PathBuf>,
    /// Trusted certificate authorities of the NATS servers, in a PEM file [default: those of the system]
    #[arg(long, env = "ROOST_NATS_TLS_CA", value_name = "FILE")]
    pub(crate) nats_tls_ca: Option<PathBuf>,
    /// Longest time for which a node of a cluster may lack changes of others: after that `/readyz` returns 503
    /// [default: 10s]
    #[arg(long, env = "ROOST_MAX_LAG", value_name = "TIME", value_parser = duration)]
    #[serde(deserialize_with = "duration_in_file")]
    pub(crate) max_lag: Option<Duration>,
    /// When a change is synced to disk: before it is acknowledged (always), at most --fsync-interval
    /// later (interval), or whenever the operating system writes it (never). A crash of the process
    /// loses nothing under any policy; a power loss may, except under always [default: always]
    #[arg(long, env = "ROOST_DURABILITY", value_name = "POLICY")]
    pub(crate) durability: Option<Policy>,
    /// Longest time between syncs under --durability interval [default: 1s]
    #[arg(long, env = "ROOST_FSYNC_INTERVAL", value_name = "TIME", value_parser = duration)]
    #[serde(deserialize_with = "duration_in_file")]
    pub(crate) fsync_interval: Option<Duration>,
    /// Memory of the server, divided among the parts below; the rest is divided among those that are not set
    /// [default: 2832MiB, or three quarters of what the machine or container has if that is less]
    #[arg(long, env = "ROOST_MEMORY", value_name = "SIZE")]
    pub(crate) memory: Option<ByteSize>,
    /// Memory for home timelines of active users; those least recently read are evicted and gathered
    /// again when they are read [default: 512MiB]
    #[arg(long, env = "ROOST_TIMELINE_MEMORY", value_name = "SIZE")]
    pub(crate) timeline_memory: Option<ByteSize>,
    /// Memory for rendered posts (half), the newest posts of all users (a quarter), names (an eighth) and stories
    /// (an eighth) [default: 384MiB]
    #[arg(long, env = "ROOST_POST_MEMORY", value_name = "SIZE")]
    pub(crate) post_memory: Option<ByteSize>,
    /// Memory for statuses and accounts that the Mastodon API keeps as JSON; those least recently read are evicted and made
    /// again when they are read [default: 128MiB]
    #[arg(long, env = "ROOST_ENTITY_MEMORY", value_name = "SIZE")]
    pub(crate) entity_memory: Option<ByteSize>,
    /// Memory for keys of buckets; those least recently read are evicted and read from disk again
    /// [default: 256MiB]
    #[arg(long, env = "ROOST_BUCKET_MEMORY", value_name = "SIZE")]
    pub(crate) bucket_memory: Option<ByteSize>,
    /// Memory for samples of the recognizer, at least 15MiB: three times 176 bytes for each sample. The server
    /// does not start if the data directory has more samples [default: 128MiB]
    #[arg(long, env = "ROOST_SAMPLE_MEMORY", value_name = "SIZE")]
    pub(crate) sample_memory: Option<ByteSize>,
    /// Memory for the store's cache [default: 64MiB]
    #[arg(long, env = "ROOST_STORE_CACHE", value_name = "SIZE")]
    pub(crate) store_cache: Option<ByteSize>,
    /// Memory for changes that no checkpoint has written to the store yet; up to four times as much
    /// under sustained writes [default: 64MiB]
    #[arg(long, env = "ROOST_OVERLAY_MEMORY", value_name = "SIZE")]
    pub(crate) overlay_memory: Option<ByteSize>,
    /// Memory for HTTP requests and responses, in addition to that of connections. An image of 4,096 x
    /// 4,096 pixels takes 145MiB while it is recognized, with 16 bits per channel 209MiB, of three quarters of this
    /// memory: 16 bits need 320MiB [default: 256MiB]
    #[arg(long, env = "ROOST_REQUEST_MEMORY", value_name = "SIZE")]
    pub(crate) request_memory: Option<ByteSize>,
    /// Memory for commands and replies of Redis clients [default: 256MiB]
    #[arg(long, env = "ROOST_REDIS_MEMORY", value_name = "SIZE")]
    pub(crate) redis_memory: Option<ByteSize>,
    /// Largest number of pending changes; beyond it requests are answered with 503 [default: 16384]
    #[arg(long, env = "ROOST_QUEUE", value_name = "COMMANDS")]
    pub(crate) queue: Option<usize>,
    /// Largest number of connections, for HTTP and for Redis clients each. When all are in use, a new
    /// connection replaces one that has presented no key, or an idle one. 256 open files are reserved for
    /// the log and the store [default: 4096]
    #[arg(long, env = "ROOST_MAX_CONNECTIONS", value_name = "COUNT")]
    pub(crate) max_connections: Option<u32>,
    /// TTL of a story in seconds if its author sets none, 1 to 604800 [default: 86400]
    #[arg(long, env = "ROOST_STORY_LIFE", value_name = "SECS", value_parser = life)]
    #[serde(deserialize_with = "life_in_file")]
    pub(crate) story_life: Option<Lifetime>,
    /// Time within which the texts and views of expired and deleted stories are erased from every file
    /// of the data directory; at least 10s, and with an archive four times --archive-interval. Expired stories are in no
    /// response, even before that
    /// [default: 1h]
    #[arg(long, env = "ROOST_ERASE_WITHIN", value_name = "TIME", value_parser = erase_within)]
    #[serde(deserialize_with = "erase_within_in_file")]
    pub(crate) erase_within: Option<Duration>,
    /// Disk space to keep free. While less is free, only deletions are accepted [default: 512MiB]
    #[arg(long, env = "ROOST_DISK_RESERVE", value_name = "SIZE")]
    pub(crate) disk_reserve: Option<ByteSize>,
    /// Largest total size of the files of pictures. Beyond it uploads are refused; 0 for no pictures, which saves 129
    /// MiB of memory [default: 10GiB]
    #[arg(long, env = "ROOST_MEDIA_MAX", value_name = "SIZE")]
    pub(crate) media_max: Option<ByteSize>,
    /// Archive of the log for `roost restore`: a directory for this data directory alone [default: none]
    #[arg(long, env = "ROOST_ARCHIVE", value_name = "DIR")]
    pub(crate) archive: Option<PathBuf>,
    /// Longest time until a change is in the archive, if the archive can be written [default: 1m]
    #[arg(long, env = "ROOST_ARCHIVE_INTERVAL", value_name = "TIME", value_parser = duration)]
    #[serde(deserialize_with = "duration_in_file")]
    pub(crate) archive_interval: Option<Duration>,
    /// Size up to which the log is kept while the archive cannot be written. Beyond it, or when the disk is
    /// almost full, the log is cut and the archive has a gap [default: 8GiB]
    #[arg(long, env = "ROOST_ARCHIVE_BACKLOG", value_name = "SIZE")]
    pub(crate) archive_backlog: Option<ByteSize>,
    /// Largest number of bytes per second to read when all files are compared with their checksums, in the
    /// background, once per week; 0 to disable [default: 1MiB]
    #[arg(long, env = "ROOST_SCRUB_RATE", value_name = "SIZE")]
    pub(crate) scrub_rate: Option<ByteSize>,
    /// Longest accepted jump of the machine's clock. A running server does not follow a longer forward jump; a server
    /// does not start if the clock differs by more from the time when it last ran [default: 168h]
    #[arg(long, env = "ROOST_CLOCK_JUMP", value_name = "TIME", value_parser = duration)]
    #[serde(deserialize_with = "duration_in_file")]
    pub(crate) clock_jump: Option<Duration>,
    /// Serve the pages at / beside the API [default: true]
    #[arg(
        long,
        env = "ROOST_WEB",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true",
        value_name = "true|false"
    )]
    pub(crate) web: Option<bool>,
    /// Directory to read the pages from at every request, for development [default: those in the
    /// binary]
    #[arg(long, env = "ROOST_WEB_ASSETS", value_name = "DIR")]
    pub(crate) web_assets: Option<PathBuf>,
    /// URL of the server as its users see it, without a path: https://HOST with TLS or a proxy [default: http:// or
    /// https:// and the address of --listen]
    #[arg(long, env = "ROOST_PUBLIC_URL", value_name = "URL", value_parser = public_url)]
    #[serde(deserialize_with = "public_url_in_file")]
    pub(crate) public_url: Option<String>,
    /// Networks and addresses of proxies that are believed about the addresses of clients (X-Forwarded-For), with commas
    /// between: 10.0.0.0/8,192.0.2.1, or none. A list replaces the default [default: 127.0.0.0/8,::1]
    #[arg(long, env = "ROOST_TRUSTED_PROXIES", value_name = "CIDR,...")]
    #[serde(deserialize_with = "trusted_proxies_in_file")]
    pub(crate) trusted_proxies: Option<TrustedProxies>,
    /// Who may sign up: nobody (closed), whoever has an invite (invite), everybody with approval by an operator
    /// (approval), or everybody (open). See docs/accounts.md [default: closed]
    #[arg(long, env = "ROOST_REGISTRATIONS", value_name = "WHO")]
    pub(crate) registrations: Option<SignUp>,
    /// File in which the operator describes the server to users and apps: title, rules, contact and more. See
    /// docs/accounts.md [default: none]
    #[arg(long, env = "ROOST_ABOUT", value_name = "FILE")]
    pub(crate) about: Option<PathBuf>,
    /// Let apps ask for passwords themselves (OAuth's grant type password). Old command-line apps need it
    /// [default: false]
    #[arg(
        long,
        env = "ROOST_PASSWORD_GRANT",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true",
        value_name = "true|false"
    )]
    pub(crate) password_grant: Option<bool>,
    /// Let everybody read what is public through the API for apps: without it, only users do [default: false]
    #[arg(
        long,
        env = "ROOST_ANONYMOUS_READS",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true",
        value_name = "true|false"
    )]
    pub(crate) anonymous_reads: Option<bool>,
    /// Format of the log on standard error: text, json, or auto, which is text on a terminal and json
    /// otherwise [default: auto]
    #[arg(long, env = "ROOST_LOG_FORMAT", value_name = "FORMAT")]
    pub(crate) log_format: Option<LogFormat>,
    /// Level of the log: error, warn, info, debug, trace or off, also for parts of the program, as in info,node=debug.
    /// SIGHUP applies a change in the configuration file [default: info]
    #[arg(long, env = "ROOST_LOG", value_name = "LEVEL", value_parser = log_level)]
    #[serde(deserialize_with = "log_level_in_file")]
    pub(crate) log_level: Option<String>,
}

impl Settings {
    /// These settings, completed by those of `file`.
    ///
    /// # Errors
    /// If the file cannot be read or is not a valid configuration.
    pub(crate) fn completed_by(self, file: &Path) -> anyhow::Result<Self> {
        let text = std::fs::read_to_string(file)
            .with_context(|| format!("cannot read the configuration file {}", file.display()))?;
        let file: Self = toml::from_str(&text)
            .with_context(|| format!("the configuration file {} is wrong", file.display()))?;
        Ok(Self {
            data: self.data.or(file.data),
            listen: self.listen.or(file.listen),
            redis_listen: self.redis_listen.or(file.redis_listen),
            tls_cert: self.tls_cert.or(file.tls_cert),
            tls_key: self.tls_key.or(file.tls_key),
            tls_self_signed: self.tls_self_signed.or(file.tls_self_signed),
            redis_threads: self.redis_threads.or(file.redis_threads),
            open: self.open.or(file.open),
            log: self.log.or(file.log),
            nats_creds: self.nats_creds.or(file.nats_creds),
            nats_tls_ca: self.nats_tls_ca.or(file.nats_tls_ca),
            max_lag: self.max_lag.or(file.max_lag),
            durability: self.durability.or(file.durability),
            fsync_interval: self.fsync_interval.or(file.fsync_interval),
            memory: self.memory.or(file.memory),
            timeline_memory: self.timeline_memory.or(file.timeline_memory),
            post_memory: self.post_memory.or(file.post_memory),
            entity_memory: self.entity_memory.or(file.entity_memory),
            bucket_memory: self.bucket_memory.or(file.bucket_memory),
            sample_memory: self.sample_memory.or(file.sample_memory),
            store_cache: self.store_cache.or(file.store_cache),
            overlay_memory: self.overlay_memory.or(file.overlay_memory),
            request_memory: self.request_memory.or(file.request_memory),
            redis_memory: self.redis_memory.or(file.redis_memory),
            queue: self.queue.or(file.queue),
            max_connections: self.max_connections.or(file.max_connections),
            story_life: self.story_life.or(file.story_life),
            erase_within: self.erase_within.or(file.erase_within),
            disk_reserve: self.disk_reserve.or(file.disk_reserve),
            media_max: self.media_max.or(file.media_max),
            archive: self.archive.or(file.archive),
            archive_interval: self.archive_interval.or(file.archive_interval),
            archive_backlog: self.archive_backlog.or(file.archive_backlog),
            scrub_rate: self.scrub_rate.or(file.scrub_rate),
            clock_jump: self.clock_jump.or(file.clock_jump),
            web: self.web.or(file.web),
            web_assets: self.web_assets.or(file.web_assets),
            public_url: self.public_url.or(file.public_url),
            trusted_proxies: self.trusted_proxies.or(file.trusted_proxies),
            registrations: self.registrations.or(file.registrations),
            about: self.about.or(file.about),
            password_grant: self.password_grant.or(file.password_grant),
            anonymous_reads: self.anonymous_reads.or(file.anonymous_reads),
            log_format: self.log_format.or(file.log_format),
            log_level: self.log_level.or(file.log_level),
        })
    }

    /// The data directory.
    pub(crate) fn data(&self) -> PathBuf {
        self.data.clone().unwrap_or_else(|| PathBuf::from("roost-data"))
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
            max_connections: self.max_connections,
            archive: self.archive.is_some(),
            tls: self.is_https(),
            pictures: self.media_max.is_none_or(|size| size.as_u64() > 0),
            cluster: self.log.is_some(),
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
        options.queue_commands_max = self.queue.unwrap_or(options.queue_commands_max);
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

/// This program, by a name under which it can be started also after another version was installed in its place.
fn converter() -> Option<PathBuf> {
    let program = PathBuf::from("/proc/self/exe");
    if program.exists() { Some(program) } else { std::env::current_exe().ok() }
}

#[cfg(test)]
#[path = "settings/tests.rs"]
mod tests;
