//! The Redis protocol without I/O: replies are written and read back.
//!
//! The caller owns the buffers and the socket. [`Encoder`] appends replies to a `Vec<u8>`, and [`Decoder`] reads replies for tests,
//! clients and benchmarks. Where Redis's behaviour matters, it is that of Redis 7.0, whose error
//! texts are kept because clients match on them.
//!
//! **Invariants:** nothing here reads, writes, waits or tells the time. Memory follows the bytes that
//! have arrived, never a length that was announced.

mod number;
mod reply;

pub use reply::decoder::{DecodeError, Decoder, ReplyLimits};
pub use reply::encoder::{Encoder, Protocol};
pub use reply::value::Value;
