//! Accept loop, and the life of a connection.
//!
//! **Invariant:** every open connection holds a permit, even after it has left HTTP. The permits belong to two
//! semaphores: one for regular connections, and one for those reserved for health checks. The semaphores limit the
//! connections; at the shutdown, they show when all have ended.

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::io;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use axum::Router;
use axum::http::header::{CONNECTION, STRICT_TRANSPORT_SECURITY};
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use bytes::Bytes;
use futures_util::future::{BoxFuture, FutureExt as _};
use hyper::body::{Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tower::Service as _;

use crate::accept::{Admission, ClientAddress};
use crate::deadline::PolledTimer;
use crate::head::HeadGuard;
use crate::held::MapFrames;
use crate::listener::Listener;
use crate::memory::RequestMemory;
use crate::proxies::TrustedProxies;
use crate::request_id::{RequestId, X_REQUEST_ID, all_within};
use crate::seats::{Seat, SeatGuard, Seats};
use crate::stream::Stream;

/// Time limit for a request's head, counted from the start of the connection or from the previous response. Idle
/// connections are therefore closed after this time.
pub const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// Interval at which connections are woken to check the deadline of the head.
const PULSE: Duration = Duration::from_secs(5);
/// Time for which the shutdown waits for requests in progress.
const GRACE: Duration = Duration::from_secs(10);
/// Interval at which a new connection without a permit tries to replace another connection.
const ROOM_PAUSE: Duration = Duration::from_secs(1);
/// Number of connections reserved for health checks, in addition to `--max-connections`. They are used while all others
/// are in use.
const RESERVED_CONNECTIONS: u32 = 16;
/// Maximum time for which a request on a reserved connection waits for a regular permit, unless it is a health check.
const RESERVED_WAIT: Duration = Duration::from_secs(2);
/// Time for which a connection may handle requests before it yields to other tasks of the thread. The HTTP library
/// itself does not yield while more requests have arrived.
const TURN: Duration = Duration::from_micros(50);
/// Maximum length of a request's head, in bytes. Bytes beyond 8 KiB are reserved as they arrive.
const BUFFER_BYTES_MAX: usize = 64 * 1_024;

/// Header that makes browsers use only https for a year. Other hosts of the domain are not affected.
const HTTPS_ONLY: HeaderValue = HeaderValue::from_static("max-age=31536000");

/// Options of [`serve`].
pub struct ServeOptions {
    /// Maximum number of open connections, at least 1. Connections reserved for health checks do not count.
    pub connections_max: u32,
    /// Whether responses have the header that makes browsers use only https.
    pub https_only: bool,
    /// Proxies that are trusted to report client addresses; `None` if no route needs client addresses.
    pub proxies: Option<Arc<TrustedProxies>>,
    /// Memory of all requests.
    pub memory: RequestMemory,
    /// Paths of health checks.
    pub health_paths: &'static [&'static str],
    /// Prefix of the paths that do not need the addresses of clients.
    pub without_address: &'static str,
    /// Response to a request on a reserved connection that got no regular permit.
    pub refused: fn(RequestId) -> Response,
}

/// Serves `router` on `listener` until `until` completes. Then stops accepting connections, sets `closing`, waits up to
/// 10 seconds for requests in progress, and returns.
///
/// # Errors
/// If the address of the listener cannot be read.
pub fn serve(
    listener: Listener,
    router: Router,
    options: ServeOptions,
    closing: watch::Sender<bool>,
    until: BoxFuture<'static, ()>,
) -> BoxFuture<'static, io::Result<()>> {
    // Box the future, so that the code that serves requests is compiled and optimized in this crate, not where the
    // future is awaited.
    serve_until(listener, router, options, closing, until).boxed()
}

async fn serve_until(
    mut listener: Listener,
    router: Router,
    options: ServeOptions,
    closing: watch::Sender<bool>,
    until: BoxFuture<'static, ()>,
) -> io::Result<()> {
    let address = listener.local_addr()?;
    let connections_max = options.connections_max.max(1);
    let server = Server {
        router,
        options: Arc::new(options),
        closed: closing.subscribe(),
        seats: Arc::default(),
        permits: Arc::new(Semaphore::new(connections_max as usize)),
        reserved: Arc::new(Semaphore::new(RESERVED_CONNECTIONS as usize)),
    };
    tracing::info!(%address, tls = listener.is_secure(), "serving");
    let pulses = async {
        let mut pulse = tokio::time::interval(PULSE);
        loop {
            pulse.tick().await;
            closing.send_modify(|_| ());
        }
    };
    tokio::select! {
        () = until => {}
        never = server.accept(&mut listener) => match never {},
        () = pulses => unreachable!("a pulse follows every pulse"),
    }
    drop(listener);
    closing.send_replace(true);
    tracing::info!("shutting down");
    // Once all connections have ended, all permits are free. Connections that have left HTTP end by themselves.
    let ended = async {
        drop(server.permits.acquire_many(connections_max).await);
        drop(server.reserved.acquire_many(RESERVED_CONNECTIONS).await);
    };
    drop(tokio::time::timeout(GRACE, ended).await);
    Ok(())
}

/// State shared by all connections.
struct Server {
    router: Router,
    options: Arc<ServeOptions>,
    /// Whether the server shuts down. The value is also sent at every pulse, to wake the connections.
    closed: watch::Receiver<bool>,
    seats: Arc<Seats>,
    permits: Arc<Semaphore>,
    /// Permits of connections reserved for health checks.
    reserved: Arc<Semaphore>,
}

impl Server {
    /// Accepts connections and serves each in its own task.
    async fn accept(&self, listener: &mut Listener) -> Infallible {
        loop {
            let (stream, peer) = listener.accept().await;
            let (permit, is_reserved) = self.permit().await;
            let connection = Connection {
                peer: peer.ip(),
                taken: self.seats.take(permit, is_reserved),
                permits: Arc::clone(&self.permits),
                router: self.router.clone(),
                options: Arc::clone(&self.options),
                closed: self.closed.clone(),
            };
            tokio::spawn(connection.serve(stream));
        }
    }

    /// Permit for an accepted connection, and whether the connection is a reserved one. If no permit is free, closes
    /// another connection.
    async fn permit(&self) -> (OwnedSemaphorePermit, bool) {
        loop {
            if let Ok(permit) = Arc::clone(&self.permits).try_acquire_owned() {
                return (permit, false);
            }
            let (permits, is_reserved) = match self.seats.make_room() {
                true => (&self.permits, false),
                false => (&self.reserved, true),
            };
            if is_reserved && permits.available_permits() == 0 {
                self.seats.make_reserved_room();
            }
            let free = Arc::clone(permits).acquire_owned();
            if let Ok(Ok(permit)) = tokio::time::timeout(ROOM_PAUSE, free).await {
                return (permit, is_reserved);
            }
        }
    }
}

/// Connection being served.
struct Connection {
    /// Peer that sends the requests: a client or a proxy.
    peer: IpAddr,
    taken: SeatGuard,
    /// Permits of regular connections.
    permits: Arc<Semaphore>,
    router: Router,
    options: Arc<ServeOptions>,
    closed: watch::Receiver<bool>,
}

impl Connection {
    async fn serve(self, stream: Stream) {
        let Self { peer, taken, permits, router, options, closed: mut closing } = self;
        let seat = Arc::clone(&taken.seat);
        let turn = Turn::new();
        let service = service_fn(|request| {
            let seat = Arc::clone(&seat);
            let answer = answer(router.clone(), (seat, peer), (&permits, &options), request);
            let options = &options;
            let turn = &turn;
            async move {
                turn.wait().await;
                let mut answer = answer.await;
                if let (true, Ok(response)) = (options.https_only, &mut answer) {
                    response.headers_mut().insert(STRICT_TRANSPORT_SECURITY, HTTPS_ONLY);
                }
                answer
            }
        });
        let stream = HeadGuard::new(stream, taken, options.memory.clone());
        let connection = http1::Builder::new()
            .timer(PolledTimer)
            .header_read_timeout(HEAD_TIMEOUT)
            .max_buf_size(BUFFER_BYTES_MAX)
            .serve_connection(TokioIo::new(stream), service)
            .with_upgrades();
        let mut connection = pin!(connection);
        let mut ends = false;
        let ended = loop {
            let served = poll_fn(|cx| {
                turn.begin();
                connection.as_mut().poll(cx)
            });
            tokio::select! {
                ended = served => break ended,
                // The value false only wakes the connection, so that the loop polls it again.
                Ok(()) = closing.changed() => ends |= *closing.borrow(),
                () = seat.closing() => {
                    if !seat.is_admitted() {
                        return;
                    }
                    ends = true;
                }
            }
            if ends {
                connection.as_mut().graceful_shutdown();
                break tokio::time::timeout(GRACE, connection).await.unwrap_or(Ok(()));
            }
        };
        if let Err(error) = ended {
            tracing::debug!(%error, "a connection failed");
        }
    }
}

/// Turn of a connection, since it was last polled.
struct Turn {
    opened: Instant,
    /// Beginning of the turn, in nanoseconds since `opened`.
    began: AtomicU64,
}

impl Turn {
    fn new() -> Self {
        Self { opened: Instant::now(), began: AtomicU64::new(0) }
    }

    fn begin(&self) {
        // Relaxed: only the task of the connection uses the value.
        self.began.store(self.age().as_nanos() as u64, Ordering::Relaxed);
    }

    /// Yields to other tasks if the turn of this connection is over.
    async fn wait(&self) {
        if self.age() >= Duration::from_nanos(self.began.load(Ordering::Relaxed)) + TURN {
            tokio::task::yield_now().await;
        }
    }

    fn age(&self) -> Duration {
        self.opened.elapsed()
    }
}

/// Whether a connection may request `path`. A reserved connection may request a health check; for other paths, it waits
/// for a regular permit.
async fn may_ask(
    seat: &Seat,
    (permits, options): (&Arc<Semaphore>, &ServeOptions),
    path: &str,
) -> bool {
    if !seat.is_reserved() || options.health_paths.contains(&path) {
        return true;
    }
    let free = Arc::clone(permits).acquire_owned();
    match tokio::time::timeout(RESERVED_WAIT, free).await {
        Ok(Ok(permit)) => {
            seat.promote(permit);
            true
        }
        _ => false,
    }
}

/// Handles a request, which is in progress until its response is sent.
async fn answer(
    mut router: Router,
    (seat, peer): (Arc<Seat>, IpAddr),
    (permits, options): (&Arc<Semaphore>, &ServeOptions),
    mut request: hyper::Request<Incoming>,
) -> Result<
    hyper::Response<impl hyper::body::Body<Data = Bytes, Error = axum::Error> + use<>>,
    Infallible,
> {
    let busy = seat.begin();
    let path = request.uri().path();
    let proxies = options.proxies.as_ref().filter(|_| !path.starts_with(options.without_address));
    if let Some(proxies) = proxies {
        let client = proxies.client(peer, request.headers());
        request.extensions_mut().insert(ClientAddress(client));
    }
    if !seat.is_admitted() {
        let seat = Arc::clone(&seat);
        request.extensions_mut().insert(Admission::new(move || seat.admit()));
    }
    let id = RequestId::next();
    let mut response = match may_ask(&seat, (permits, options), request.uri().path()).await {
        true => all_within(id, async { router.call(request).await }).await?,
        false => (options.refused)(id),
    };
    response.headers_mut().entry(X_REQUEST_ID).or_insert_with(|| id.to_header());
    if seat.is_reserved() {
        // Close the connection, so that the next health check can use its place.
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    if response.status() == StatusCode::SWITCHING_PROTOCOLS {
        seat.leave_http();
    }
    // The request stays in progress until the HTTP library has taken the whole body.
    let keep_busy = move |frame: Frame<Bytes>| {
        let _busy = &busy;
        frame
    };
    Ok(response.map(|body| MapFrames { body, map: keep_busy }))
}
