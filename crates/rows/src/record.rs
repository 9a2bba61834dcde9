//! Encoding of rows: postcard for records.

use serde::{Serialize, de::DeserializeOwned};
use smallvec::SmallVec;

use crate::rules::outside_rules;

/// Encoded row. Short rows (counts, ids) need no allocation.
pub type Value = SmallVec<[u8; 24]>;

/// Encodes a record.
///
/// # Panics
/// Never for records of this project, because they are serialized into memory.
#[must_use]
pub fn encode<T: Serialize>(record: &T) -> Value {
    match postcard::to_stdvec(record) {
        Ok(bytes) => Value::from_vec(bytes),
        Err(error) => panic!("a record must serialize into memory: {error}"),
    }
}

/// Reverses [`encode`].
///
/// # Panics
/// If the bytes are not a `T`. The store checks rows, so this is a broken invariant.
#[must_use]
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> T {
    match postcard::from_bytes(bytes) {
        Ok(record) => record,
        Err(error) => malformed(std::any::type_name::<T>(), &error),
    }
}

/// Panics because the bytes of a row are not a `name`. The panic is not one of the rules: the row is damaged, and
/// another node or copy may have the right row.
///
/// # Panics
/// Always.
pub fn malformed(name: &str, error: &dyn std::fmt::Display) -> ! {
    outside_rules(|| panic!("a stored {name} must be readable: {error}"))
}

/// Decodes bytes that may be damaged. `None` also if bytes follow the record.
#[must_use]
pub fn try_decode<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    let (record, rest) = postcard::take_from_bytes(bytes).ok()?;
    rest.is_empty().then_some(record)
}
