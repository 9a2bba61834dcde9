//! The rules of roost: what a command does to the facts, and what the homes of posts and stories are.
//!
//! Everything here is a plain sequential function of its arguments. There is no clock, no
//! randomness, no I/O and no lock: time and new ids arrive in a [`Stamp`], rows are reached through
//! the [`Rows`] trait. The same commands with the same stamps make the same facts, always.
//!
//! A command's way: an edge parses input into checked text types ([`text`]), builds a [`Command`],
//! the writer stamps it and puts it into the log, and [`apply()`] changes the rows and tells what
//! happened as an [`Outcome`] and a list of [`Effect`]s for the views.

pub mod apply;
pub mod command;
pub mod cost;
mod effect;
pub mod facts;
mod gather;
pub mod ids;
pub mod keys;
pub mod lifetime;
pub mod limits;
pub mod memory;
pub mod records;
pub mod rows;
pub mod stories;
pub mod text;
pub mod thread;
pub mod timeline;

pub use apply::{apply, apply_keys};
pub use command::{
    Command, Done, Effect, Entry, Idempotency, Outcome, Refusal, Reply, Request, UserRef,
};
pub use cost::{Cost, Lengths};
pub use facts::{Facts, Txn};
pub use ids::{BucketId, PostId, SampleId, SampleSetId, Space, Stamp, StampClock, StoryId, UserId};
pub use lifetime::Lifetime;
pub use records::{Counts, Post, Sample, SampleBits, SampleSet, Story, Totals, User};
pub use rows::{NameTable, Order, PointTable, Rows, RowsMut, SetTable, Span, Value, WalkLimit};
pub use text::{Bio, BucketName, Handle, Label, Name, PostText, SetName};
pub use timeline::{Cursor, Page, PageOf};
