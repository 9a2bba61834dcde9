//! `roost serve`: binds, opens the node, serves, and shuts down in order.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use api::{ApiOptions, Origins};
use clap::{ArgMatches, Args};
use edge::{Access, BlockingReads, HANDSHAKES_MAX, KeyHash, Listener};
use jetlog::JetLogOptions;
use jiff::Timestamp;
use mastodon::{About, MastodonOptions};
use node::{Feeds, Node, NodeOptions};
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;
use redis::{RedisMetrics, RedisOptions};
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use web::Pages;

use crate::account::Parts;
use crate::address::is_https_only;
use crate::cluster_log::open_log;
use crate::exit::Exit;
use crate::key::ServerKeys;
use crate::memory::Memory;
use crate::output::{banner, out};
use crate::reload::Reload;
use crate::settings::{Settings, Sources};
use crate::tls::{Https, Source};
use crate::webhook::ServerWebhooks;
use crate::{
    account, available, descriptors, exit, key, logging, permissions, reload, service, starting,
    unencrypted,
};

/// Heading of options that are not settings.
const START: &str = "Start";

/// Maximum number of concurrent blocking reads, of all protocols together. 16 times as many may wait; further requests
/// get a temporary error.
const READS_MAX: usize = 64;

/// Minimum of `--erase-within`, in multiples of `--archive-interval`. Half of the time passes before an erasure begins,
/// and the log is cut only when the archive has the removed part.
const ERASE_INTERVALS: u32 = 4;

/// Run the server.
///
/// By default the server listens on http://127.0.0.1:8998 with the data in ./roost-data; with a certificate it serves
/// https. The first start creates an application key and prints the path of the file that contains it; `roost key`
/// creates and revokes keys. Every request needs `Authorization: Bearer KEY`. The server also accepts the key in the
/// environment variable ROOST_KEY, which has all scopes and is not stored.
///
/// A setting can be an option, an environment variable, or a key of the configuration file with the option's name (for
/// example `fsync-interval = "1s"`). An option overrides the variable, and the variable overrides the file. `--check`
/// prints the effective settings.
///
/// SIGTERM and SIGINT stop the server. SIGHUP reloads application keys, webhooks, the certificate, and `log-level` of
/// the configuration file. SIGUSR1 and SIGUSR2 have no effect.
#[derive(Args)]
pub(crate) struct Serve {
    /// Configuration file in TOML [default: none]
    #[arg(long, env = "ROOST_CONFIG", value_name = "FILE", help_heading = START)]
    config: Option<PathBuf>,
    /// Check the settings, print each with its source, and exit
    ///
    /// Starts nothing and creates no file. The exit code is 2 if a setting, or a file that a setting names, is wrong.
    /// The check does not open the data directory or the archive, and does not use the addresses or the NATS servers.
    #[arg(long, help_heading = START)]
    check: bool,
    /// Start even if the machine's clock differs by more than --clock-jump from the time when the server last ran
    #[arg(long, help_heading = START)]
    accept_clock: bool,
    #[command(flatten)]
    settings: Settings,
}

impl Serve {
    /// Runs the server until it is stopped. `line` contains the options and their sources.
    ///
    /// # Errors
    /// If a setting is wrong, or the server cannot be started.
    pub(crate) async fn run(self, line: &ArgMatches) -> anyhow::Result<()> {
        let config = self.config.clone().filter(|_| self.settings.log_level.is_none());
        let sources = Sources::read(line, self.config.as_deref()).map_err(Exit::setting)?;
        let settings = sources.settings().map_err(Exit::setting)?;
        let hang_up = start_logging(&settings)?;
        let available = available::memory();
        let checked = Checked::of(&settings, available).map_err(Exit::setting)?;
        unencrypted::of_server(&settings).iter().for_each(|why| tracing::warn!("{why}"));
        if self.check {
            print_settings(&settings, &sources, &checked);
            return Ok(());
        }
        let Checked { open, log, memory, connections_max, https, about, feeds, key } = checked;
        memory.log(available);
        permissions::keep_new_files_private();
        let mut stop = Box::pin(stop_signal()?);
        let (listener, redis) = listeners(settings.listen(), settings.redis_listen).await?;
        let mut listener = Listener::new(listener, https.as_ref().map(Https::tls));
        let mut options = settings.node_options(&memory);
        options.accept_clock = self.accept_clock;
        options.feeds = feeds.into();
        let node = tokio::select! {
            node = open_node(options.clone(), log) => node?,
            never = starting::answer(&mut listener, redis.as_ref(), &options.progress) => match never {},
            () = &mut stop => end_start(),
        };
        permissions::warn_of_readable_files(&options.data);
        let keys = if open { None } else { Some(Arc::new(ServerKeys::open(&options.data, key)?)) };
        let access = keys.as_ref().map_or(Access::Open, |keys| Access::Keys(keys.set()));
        let (mut api, redis_options) = server_options(&settings, &memory, access, connections_max);
        let webhooks = webhooks_of(&node, &options, &mut api).await?;
        let reload = Arc::new(Reload { keys, webhooks, certificate: Arc::default(), config });
        let (stopping, mut stopped) = watch::channel(false);
        let mut mastodon = settings.mastodon(about, listener.local_addr()?, &api.reads);
        mastodon.connections_max = connections_max;
        mastodon.closing = Some(stopped.clone());
        register(&mut api.registry, &mastodon.metrics, https.as_ref());
        add_mastodon(&mut api, &node, mastodon);
        if let Some(mut https) = https {
            https.store()?;
            tokio::spawn(https.follow(Arc::clone(&reload.certificate)));
        }
        // Nothing after this line can fail, so a failed start creates no key.
        reload.keys.as_ref().map_or(Ok(()), follow_keys)?;
        reload.webhooks.load_or_log().await;
        let accounts = serve_accounts(&options.data, &node, &reload);
        tokio::spawn(Arc::clone(&reload).follow(hang_up));
        announce(&listener, redis.as_ref())?;
        let redis = redis.map(|redis| {
            let node = node.clone();
            tokio::spawn(async move {
                let stop = async { drop(stopped.wait_for(|stop| *stop).await) };
                redis::serve(redis, node, &redis_options, stop).await
            })
        });
        let stop = async move {
            stop.await;
            service::stopping();
            stopping.send_replace(true);
        };
        api::serve(listener, node.clone(), api, stop).await?;
        if let Some(redis) = redis {
            redis.await??;
        }
        end(accounts).await;
        reload.webhooks.stop().await;
        tracing::info!("taking a last checkpoint");
        tokio::task::spawn_blocking(move || node.close()).await?;
        tracing::info!("stopped");
        // Dropping the store would wait for a running compaction. That is not needed, because everything is already
        // durable.
        std::process::exit(0)
    }
}

/// Starts logging. Handles the signals that must not stop the server, and returns SIGHUP.
fn start_logging(settings: &Settings) -> anyhow::Result<Signal> {
    let level = settings.log_level.as_deref().unwrap_or(logging::LEVEL);
    logging::start(settings.log_format.unwrap_or_default(), level).map_err(Exit::setting)?;
    Ok(reload::take_signals()?)
}

/// Prints the path of the first key if it was created now, and then follows changes of the stored keys.
fn follow_keys(keys: &Arc<ServerKeys>) -> anyhow::Result<()> {
    if let Some(path) = keys.make_first()? {
        let path = path.display();
        banner!("the application key is in {path}; copy it and delete the file");
    }
    tokio::spawn(Arc::clone(keys).follow());
    Ok(())
}

/// Results of the checks that are possible before the node opens.
struct Checked {
    /// Whether no key is required.
    open: bool,
    /// Log of the cluster, if any.
    log: Option<JetLogOptions>,
    memory: Memory,
    connections_max: u32,
    https: Option<Https>,
    about: About,
    feeds: Feeds,
    /// Key of the environment, if any.
    key: Option<KeyHash>,
}

impl Checked {
    /// Checks the settings and the files that they name. Creates nothing.
    fn of(settings: &Settings, available: Option<u64>) -> anyhow::Result<Self> {
        let memory = settings.memory(available)?;
        check_erasure(&settings.node_options(&memory))?;
        if let Some(Pages::Folder(folder)) = settings.pages() {
            anyhow::ensure!(
                folder.is_dir(),
                "--web-assets {} is not a directory",
                folder.display()
            );
        }
        Ok(Self {
            open: is_open(settings)?,
            log: settings.cluster_log()?,
            connections_max: connections_max(settings, &memory)?,
            memory,
            https: https(settings)?,
            about: settings.about()?,
            feeds: settings.ranked_feeds()?,
            key: std::env::var_os("ROOST_KEY").map(|key| key::given(&key)).transpose()?,
        })
    }
}

/// Prints every setting with its source.
fn print_settings(settings: &Settings, sources: &Sources, checked: &Checked) {
    let is_divided = settings.memory.is_some();
    let source = if is_divided { "share of memory" } else { "default" };
    let memory = checked.memory.settings().map(|(name, size)| (name, size, source));
    let mut computed = memory.to_vec();
    computed.push(("max-connections", checked.connections_max.to_string(), source));
    computed.push(("public-url", settings.url(settings.listen()), "default"));
    out!("{}", sources.table(&computed).trim_end());
    if checked.key.is_some() {
        out!("\nROOST_KEY is set, and is accepted in addition to the stored application keys.");
    }
}

/// Registers the metrics of the program, of accounts and of the certificate.
fn register(registry: &mut Registry, accounts: &mastodon::Metrics, https: Option<&Https>) {
    let version = vec![("version", env!("ROOST_VERSION"))];
    registry.register("roost_build", "Version of the program", Info::new(version));
    registry.register_collector(Box::new(accounts.clone()));
    registry.register(
        "roost_tls_certificate_expiry_timestamp_seconds",
        "Time at which the certificate expires; 0 without TLS",
        https.map(Https::expiry).unwrap_or_default(),
    );
}

/// Creates the sender of webhooks, without webhooks, and registers its metrics.
async fn webhooks_of(
    node: &Node,
    options: &NodeOptions,
    api: &mut ApiOptions,
) -> anyhow::Result<Arc<ServerWebhooks>> {
    let (reads, has_feed) = (api.reads.clone(), options.changes_max > 0);
    let webhooks = ServerWebhooks::new(&options.data, node.clone(), reads, has_feed).await?;
    api.registry.register_collector(Box::new(webhooks.metrics()));
    Ok(Arc::new(webhooks))
}

/// Accepts requests of `roost account` in a background task.
fn serve_accounts(data: &Path, node: &Node, reload: &Reload) -> Option<JoinHandle<()>> {
    let (keys, webhooks) = (reload.keys.clone(), Arc::clone(&reload.webhooks));
    let parts = Parts { node: node.clone(), keys, webhooks };
    match account::Socket::bind(data) {
        Ok(socket) => Some(tokio::spawn(socket.serve(parts))),
        Err(error) => {
            tracing::warn!(%error, "roost account works only while this server is stopped");
            None
        }
    }
}

/// Aborts a task and waits until everything that it owns is dropped.
async fn end(task: Option<JoinHandle<()>>) {
    if let Some(task) = task {
        task.abort();
        drop(task.await);
    }
}

/// Whether no key is required, which is allowed on loopback addresses only.
fn is_open(settings: &Settings) -> anyhow::Result<bool> {
    let open = settings.open.unwrap_or(false);
    for listen in [Some(settings.listen()), settings.redis_listen].into_iter().flatten() {
        anyhow::ensure!(
            !open || listen.ip().is_loopback(),
            "--open requires no key, so the server listens on loopback addresses only, not on {listen}; \
             listen on 127.0.0.1 or remove --open"
        );
    }
    anyhow::ensure!(
        !open || settings.allow_origin.as_ref().is_none_or(Origins::is_empty),
        "--allow-origin is for pages that send tokens of users; with --open there are none, and pages of other origins \
         may not call"
    );
    Ok(open)
}

/// Checks that `--erase-within` is long enough for the interval of the archive: the log keeps a change until the
/// archive has it.
///
/// # Errors
/// If it is too short.
fn check_erasure(options: &NodeOptions) -> anyhow::Result<()> {
    let interval = options.archive.as_ref().map_or(Duration::ZERO, |archive| archive.interval);
    anyhow::ensure!(
        options.erase_within >= interval * ERASE_INTERVALS,
        "--erase-within {:?} cannot be kept with an archive that gets changes every {interval:?}: set at least \
         {ERASE_INTERVALS} times --archive-interval",
        options.erase_within
    );
    Ok(())
}

/// Certificate, if https is served.
fn https(settings: &Settings) -> anyhow::Result<Option<Https>> {
    let source = Source::of(settings)?;
    if source.is_some()
        && let Some(url) = settings.public_url.as_ref().filter(|url| url.starts_with("http://"))
    {
        tracing::warn!(
            "--public-url is {url} although the server speaks https; users need https://"
        );
    }
    source.map(|source| Https::open(source, Timestamp::now())).transpose()
}

/// Maximum number of connections: the setting, or what memory and descriptors allow.
fn connections_max(settings: &Settings, memory: &Memory) -> anyhow::Result<u32> {
    let limit = descriptors::raise_limit();
    let listeners = if settings.redis_listen.is_some() { 2 } else { 1 };
    let handshakes = if settings.is_https() { HANDSHAKES_MAX as u64 } else { 0 };
    descriptors::connections(
        limit,
        (listeners, handshakes),
        settings.max_connections.map(NonZeroU32::get),
        memory.connections(),
    )
}

/// Options of both servers, for HTTP and Redis clients, which share one pool of reads.
fn server_options(
    settings: &Settings,
    memory: &Memory,
    access: Access,
    connections_max: u32,
) -> (ApiOptions, RedisOptions) {
    let redis = RedisOptions {
        access: access.clone(),
        connections_max,
        reads: BlockingReads::new(READS_MAX),
        threads: settings.redis_threads.map(|count| count.get() as usize),
        memory: memory.redis(),
        metrics: RedisMetrics::default(),
    };
    let mut api = ApiOptions {
        connections_max,
        reads: redis.reads.clone(),
        request_memory: memory.request(),
        pages: settings.pages().map(|pages| Arc::new(pages) as _),
        registry: Registry::default(),
        ..ApiOptions::new(access)
    };
    api.keys_file = Some(key::path(&settings.data()));
    api.https_only = settings.public_url.as_deref().is_some_and(is_https_only);
    api.origins = settings.allow_origin.clone().unwrap_or_default();
    api.trusted_proxies = settings.trusted_proxies.clone().unwrap_or_default();
    api.max_lag = settings.max_lag.unwrap_or(api.max_lag);
    api.story_life = settings.story_life.unwrap_or(api.story_life);
    api.registry.register_collector(Box::new(redis.metrics.clone()));
    (api, redis)
}

/// Adds the Mastodon API to roost's own API, and gives its domain and sessions to the latter.
fn add_mastodon(api: &mut ApiOptions, node: &Node, mastodon: MastodonOptions) {
    mastodon.domain().clone_into(&mut api.domain);
    let (beside, sessions) = mastodon::router(node.clone(), mastodon);
    (api.beside, api.sessions) = (Some(beside), Some(sessions));
}

/// Opens the node. `log` is the log of its cluster, if any.
async fn open_node(options: NodeOptions, log: Option<JetLogOptions>) -> anyhow::Result<Node> {
    let data = options.data.display().to_string();
    let is_member = log.is_some();
    let open = move || match log {
        None => Node::open(&options),
        Some(log) => Node::open_shared(&options, |cluster, node, applied| {
            open_log(&log, cluster, node, applied)
        }),
    };
    let opened = tokio::task::spawn_blocking(open).await?;
    opened.map_err(|error| match error.is_damage() {
        true if is_member => anyhow::anyhow!(
            "{}; the other nodes have the same data: roost cluster join --server http://NODE:8998 --data DIR copies it to \
             another directory",
            exit::message(&error.into())
        ),
        true => anyhow::anyhow!(
            "{}; roost verify --data {data} lists the damage, roost repair --data {data} --out DIR copies the readable data to \
             another directory, roost restore BACKUP --data DIR restores a backup",
            exit::message(&error.into())
        ),
        false if error.is_setting() => Exit::setting(error),
        false => error.into(),
    })
}

/// Ends the process when a stop signal arrives during a start. The next start recovers the log and the store as after a
/// crash.
fn end_start() -> ! {
    tracing::info!("stopped during the start");
    std::process::exit(0)
}

/// Binds the listeners for HTTP and for Redis clients.
async fn listeners(
    http: SocketAddr,
    redis: Option<SocketAddr>,
) -> anyhow::Result<(TcpListener, Option<TcpListener>)> {
    let http = bind(http, "--listen").await?;
    let redis = match redis {
        Some(redis) => Some(bind(redis, "--redis-listen").await?),
        None => None,
    };
    let redis_address = redis.as_ref().map(TcpListener::local_addr).transpose()?;
    let redis_address = redis_address.map(tracing::field::display);
    tracing::info!(http = %http.local_addr()?, redis = redis_address, "starting");
    Ok((http, redis))
}

/// Prints the addresses, and notifies the service manager.
fn announce(http: &Listener, redis: Option<&TcpListener>) -> anyhow::Result<()> {
    if let Some(redis) = redis {
        banner!("roost serves redis://{}", redis.local_addr()?);
    }
    let scheme = if http.is_secure() { "https" } else { "http" };
    banner!("roost serves {scheme}://{}", http.local_addr()?);
    service::ready();
    Ok(())
}

async fn bind(listen: SocketAddr, flag: &str) -> anyhow::Result<TcpListener> {
    let listener = TcpListener::bind(listen).await;
    let may_not = matches!(&listener, Err(error) if error.kind() == ErrorKind::PermissionDenied);
    let listener =
        listener.with_context(|| format!("cannot listen on {listen}; choose another {flag}"));
    if may_not { listener.map_err(Exit::setting) } else { listener }
}

/// Returns a channel that changes with each SIGTERM, SIGINT and SIGHUP. From now on these signals do not end the
/// process, so it can end its children first.
pub(crate) fn stop_signals() -> anyhow::Result<watch::Receiver<bool>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut hang_up = signal(SignalKind::hangup())?;
    let (stop, stopped) = watch::channel(false);
    tokio::spawn(async move {
        loop {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
                _ = hang_up.recv() => {}
            }
            stop.send_replace(true);
        }
    });
    Ok(stopped)
}

/// Completes at the first SIGTERM or SIGINT. A second SIGINT ends the process at once.
pub(crate) fn stop_signal() -> anyhow::Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        tokio::spawn(async move {
            interrupt.recv().await;
            std::process::exit(130);
        });
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        settings: Settings,
    }

    #[test]
    fn a_time_to_erase_that_an_archive_prevents_is_refused() {
        for (arguments, right) in [
            (&["--erase-within", "10s"][..], true),
            (&["--archive", "a"], true),
            (&["--archive", "a", "--erase-within", "4m"], true),
            (&["--archive", "a", "--erase-within", "3m"], false),
            (&["--archive", "a", "--archive-interval", "15m"], true),
            (&["--archive", "a", "--archive-interval", "16m"], false),
        ] {
            let settings = Line::parse_from([&["roost"], arguments].concat()).settings;
            let options = settings.node_options(&settings.memory(None).unwrap());
            assert_eq!(check_erasure(&options).is_ok(), right, "{arguments:?}");
        }
    }
}
