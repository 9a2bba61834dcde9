//! Ranked feeds: their definitions, the expressions that score a post, and the selection of the posts of a feed.
//!
//! A product writes a definition in TOML: the sources of candidates with a quota each, a score, and rules of diversity.
//! [`Feeds`] has the built-in definitions and those of a file; [`Pool`] collects candidates within the quotas; and
//! [`rank`] orders them. Everything here is a pure function: the same candidates give the same order on all machines.
//!
//! Read `expression`, then `feeds`, `pool`, `select`.
//!
//! **Invariant:** every expression has a finite value for all features: see [`Expression`].
//! **Invariant:** the work of a ranking is bounded by [`CANDIDATES_MAX`] and [`OPS_MAX`].

mod expression;
mod feeds;
mod pool;
mod select;

pub use expression::{
    DEPTH_MAX, Expression, ExpressionError, FEATURES, Feature, Features, OPS_MAX, TEXT_BYTES_MAX,
};
pub use feeds::{
    CANDIDATES_MAX, FEED_NAME_MAX, FEEDS_MAX, Feed, Feeds, FeedsError, QUOTA_MAX, SOURCES, Source,
};
pub use pool::{Candidate, Pool, Sources};
pub use select::{RANKED_MAX, Ranked, rank};
