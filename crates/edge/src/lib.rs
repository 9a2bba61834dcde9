//! Code shared by the servers of all protocols: authorization, acceptance of connections, TLS, memory of requests and
//! responses, bounded blocking reads, timing of live streams, static files, browser sessions, and rate-limited log lines.
//!
//! **Invariant:** no code of this crate depends on the rules or on the node.
//!
//! Read `access`, `accept`, `listener`, `handshakes`, `stream`, `serve`, `seats`, `reads`, then `memory`, `body`,
//! `held` and `revocable`.

mod accept;
mod access;
mod body;
mod deadline;
pub mod etag;
mod file;
mod handler;
mod handshakes;
mod head;
mod held;
mod line_gate;
mod listener;
mod memory;
pub mod process;
mod proxies;
mod pulse;
mod reads;
pub mod request_id;
mod revocable;
mod seats;
mod serve;
mod session;
mod shares;
mod stall;
mod stream;
mod tls;

pub use accept::{Admission, ClientAddress, accept};
pub use access::{Access, Grant, KeyHash, KeySet, Repeated, Scope, Scopes, bearer, only};
pub use body::{BodyError, BodyLimits, BodySink, HeldBody, read_into};
pub use file::{FileSource, Lookup, MISSING_PAGE, StaticFile};
pub use handler::ErasedHandler;
pub use handshakes::HANDSHAKES_MAX;
pub use held::{ANSWER_BYTES_FREE, held_bytes, held_until_sent};
pub use line_gate::LineGate;
pub use listener::{HANDSHAKE_MEMORY, Listener};
pub use memory::{BodyMemory, CONNECTION_BYTES, NoMemory, RequestMemory, SMALL_BYTES_MAX};
pub use proxies::{NetworkError, TrustedProxies};
pub use pulse::{Beat, Pulse, STREAM_PACE, random_within};
pub use reads::{
    Abandoned, BlockingReads, Length, ReadError, STREAM_READS_MAX, Turn, Turns, blocking,
};
pub use revocable::{
    Ended, KeyPermission, Pending, Permission, Watched, revocable_request, revocable_response,
    why_ended,
};
pub use serve::{HEAD_TIMEOUT, ServeOptions, serve};
pub use session::{Held, SESSION_HEADER, Session, SessionError, SessionUse, Sessions};
pub use shares::{Share, Shares};
pub use stream::{Stream, TLS_BYTES};
pub use tls::{Certificate, CertificateError, Tls};
