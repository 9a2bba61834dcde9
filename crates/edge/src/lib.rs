//! Code that the servers of all protocols share: authorization, accepting connections, TLS, bounded reads that may
//! block, static files, sessions of browsers, and rate-limited log lines.
//!
//! **Invariant:** nothing here depends on a protocol or on the node.
//!
//! Read `access`, `accept`, `listener`, `handshakes`, `stream`, then `reads`.

mod accept;
mod access;
pub mod etag;
mod file;
mod handler;
mod handshakes;
mod line_gate;
mod listener;
pub mod process;
mod proxies;
mod reads;
mod session;
mod stall;
mod stream;
mod tls;

pub use accept::{ClientAddress, Guest, GuestConnection, accept};
pub use access::{Access, Grant, KeyHash, KeySet, Scope, Scopes};
pub use file::{FileSource, Lookup, MISSING_PAGE, StaticFile};
pub use handler::ErasedHandler;
pub use handshakes::HANDSHAKES_MAX;
pub use line_gate::LineGate;
pub use listener::{HANDSHAKE_MEMORY, Listener};
pub use proxies::{NetworkError, TrustedProxies};
pub use reads::{Abandoned, BlockingReads, Length, ReadError, blocking};
pub use session::{Held, Pending, SESSION_HEADER, Session, SessionError, SessionUse, Sessions};
pub use stream::{Stream, TLS_BYTES};
pub use tls::{Certificate, CertificateError, Tls};
