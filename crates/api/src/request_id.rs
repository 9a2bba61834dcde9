//! An id for every request: in the header `X-Request-Id`, in errors, and in the log line of a server error.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::http::{HeaderName, HeaderValue};
use bytes::Bytes;

pub(crate) const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// 16 hexadecimal digits, unique within a process and unlikely to be those of another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RequestId([u8; 16]);

impl RequestId {
    pub(crate) fn next() -> Self {
        static NEXT: LazyLock<AtomicU64> =
            LazyLock::new(|| AtomicU64::new(getrandom::u64().unwrap_or_default()));
        // Nothing depends on the order.
        let mut number = NEXT.fetch_add(1, Ordering::Relaxed);
        let mut digits = [0; 16];
        for digit in digits.iter_mut().rev() {
            let value = (number & 15) as u8;
            *digit = if value < 10 { b'0' + value } else { b'a' + value - 10 };
            number >>= 4;
        }
        Self(digits)
    }

    pub(crate) fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default()
    }

    pub(crate) fn to_header(self) -> HeaderValue {
        let value = HeaderValue::from_maybe_shared(Bytes::copy_from_slice(&self.0));
        let Ok(value) = value else { unreachable!("hexadecimal digits are a header value") };
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_differ_and_are_hexadecimal() {
        let (one, other) = (RequestId::next(), RequestId::next());
        assert_ne!(one, other);
        let number = |id: RequestId| u64::from_str_radix(id.as_str(), 16).unwrap();
        assert!(number(other).wrapping_sub(number(one)) < 1_000, "they count up");
        assert_eq!(one.to_header().to_str().unwrap(), one.as_str());
    }
}
