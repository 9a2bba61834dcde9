//! Snapshots of the rows of a store, stores made of them, and checks that find damage.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a panic is how a test fails")]

use std::fs;
use std::path::{Path, PathBuf};

use rows::{PointTable, RowsMut as _, SetTable, Value};
use store::{Snapshot, Store, StoreOptions, StoreWriter, restore, verify};

const OPTIONS: StoreOptions = StoreOptions { cache_bytes: 1 << 20, bucket_bytes: 1 << 20 };

type Row = (Vec<u8>, Vec<u8>);
