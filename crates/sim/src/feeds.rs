//! Evaluation of ranked feeds: is a feed better than the order of time, for users whose taste is known?
//!
//! A [`World`] has users with planted interests, and two days of their posts, favourites and boosts. It is imported
//! into a server with its times, so that posts have ages and accounts are not new. When the server has found interest
//! groups, it gets the last quarter of the reactions. Then some users (the readers) read each feed, and [`Figures`]
//! compare the first posts with what the reader would like. [`Evaluation`] has the means over several worlds, with
//! intervals. [`continue_history`] lets the users go on, for a demo.
//!
//! Read `history`, `world`, `figures`, `evaluation`, `reading`, then `continuation`.

mod continuation;
mod evaluation;
mod figures;
mod history;
mod reading;
mod world;

#[cfg(test)]
mod tests;

pub use continuation::continue_history;
pub(crate) use evaluation::cell;
pub use evaluation::{Evaluation, FeedFigures, Measure, Measured, SEEDS};
pub use figures::Figures;
pub use reading::{react, read, warm};
pub use world::{USERS, World};

/// Number of places of a ranking that count: a page.
pub const PLACES: usize = 20;
/// Names of the rankings that the simulator makes of all candidates: in random order, and by the probability that the
/// reader likes the post.
pub const RANDOM: &str = "(random)";
/// See [`RANDOM`].
pub const BEST: &str = "(best)";
/// Name of a feed with a post at most. Each reader reads it twice before another feed, because a server shows posts
/// later that are in the last two rankings of the user.
pub const PAUSE: &str = "simulation-pause";
/// Definition of [`PAUSE`], which must be added to the feeds of the server.
pub const PAUSE_TOML: &str =
    "\n[feeds.simulation-pause]\nsources = { new-authors = 1 }\nscore = \"0\"\n";
