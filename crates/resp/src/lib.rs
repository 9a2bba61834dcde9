//! Redis protocol without I/O: a parser of requests and a writer of replies.
//!
//! The caller owns the buffers and the socket. [`Parser`] finds commands in a buffer that grows while bytes arrive, and
//! [`Encoder`] appends replies to a `Vec<u8>`. Both behave like Redis 7.0, and use its error texts, because clients
//! match on them.
//!
//! ```
//! let mut parser = resp::Parser::new(resp::Limits::REDIS);
//! let mut rest: &[u8] = b"*2\r\n$3\r\nGET\r\n$5\r\ndraft\r\nSET draft \"dear ";
//! let command = parser.next(&mut rest)?.ok_or("one command is whole")?;
//! assert_eq!(command.name(), b"GET");
//! assert_eq!(command.arguments().collect::<Vec<_>>(), [b"draft"]);
//! assert!(parser.next(&mut rest)?.is_none());
//! assert_eq!(rest, b"SET draft \"dear ", "an unfinished command stays in the buffer");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! **Invariants:** the crate does no I/O, does not wait, starts no thread, does not read the clock, and uses no other
//! crate of this repository. Its memory is proportional to the bytes that have arrived, never to an announced length.

mod encoder;
mod number;
mod request;

pub use encoder::{Encoder, Protocol};
pub use request::ahead::Ahead;
pub use request::command::{Arguments, Command};
pub use request::error::ProtocolError;
pub use request::limits::Limits;
pub use request::parser::Parser;
