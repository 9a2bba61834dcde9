//! The bytes of a row: postcard for records.

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use smallvec::SmallVec;

/// The bytes of one row; short ones (counts, ids) need no allocation.
pub type Value = SmallVec<[u8; 24]>;

/// The bytes of a record.
///
/// # Panics
/// Never for our records: they are serialized into memory.
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
/// If the bytes are not a `T`: rows are checked by the store, so this is a broken invariant.
#[must_use]
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> T {
    match postcard::from_bytes(bytes) {
        Ok(record) => record,
        Err(error) => panic!("a stored {} must be readable: {error}", std::any::type_name::<T>()),
    }
}

/// As [`decode`], of a record that the bytes only begin with. It may borrow from them.
///
/// # Panics
/// As [`decode`].
#[must_use]
pub fn decode_start<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> T {
    match postcard::take_from_bytes(bytes) {
        Ok((record, _)) => record,
        Err(error) => panic!("a stored {} must be readable: {error}", std::any::type_name::<T>()),
    }
}

/// As [`decode`], for bytes that may be damaged.
#[must_use]
pub fn try_decode<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    postcard::from_bytes(bytes).ok()
}
