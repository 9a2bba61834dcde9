//! The files of a data directory beside its log, its store and its pictures: who uses it, whose it is, and when it was last
//! used; and why it cannot be opened.
//!
//! Read `lock` and `open_error`, then `identity`, `last_run` and `mirror`. Only directories of nodes of a cluster have
//! the files of `membership` and `divergence`.

pub(crate) mod divergence;
pub(crate) mod identity;
pub(crate) mod last_run;
pub(crate) mod lock;
pub(crate) mod membership;
pub(crate) mod mirror;
pub(crate) mod open_error;
