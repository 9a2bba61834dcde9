//! Commands on the directory of a stopped node: creating one from a backup, checking and repairing one, and moving one
//! into a cluster or out of it. The start after a crash is in `node/replay.rs`.
//!
//! Read `restore`, `verify`, `repair`, then `cluster_dir`.

pub(crate) mod cluster_dir;
pub(crate) mod repair;
pub(crate) mod restore;
pub(crate) mod verify;
