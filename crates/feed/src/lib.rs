//! Rules of roost: the effect of a command on the facts, and the content of home timelines and pages of stories.
//!
//! Everything here is a plain sequential function of its arguments, without clock, randomness, I/O or lock. Time and
//! new ids arrive in a [`rows::Stamp`], and rows are accessed through the [`rows::Rows`] trait. The same commands with
//! the same stamps always produce the same facts.
//!
//! Processing of a command: the HTTP API parses input into checked text types ([`text`]) and builds a [`Command`]. The
//! writer appends it to the log and stamps it with the time of its group. [`apply()`] changes the rows and returns an
//! [`Outcome`] and a list of [`Effect`]s for the views.
//!
//! A feature is a folder: `mod.rs` has its stored data, `facts.rs` the reads and changes of its rows, `rules.rs` the
//! effects of commands, `cost.rs` their highest costs, and `mend.rs` the check and repair of its rows. A short feature
//! has fewer files. The files beside the folders are shared by all features: `command`, `apply` and `cost` list the
//! commands, `relation`, `whole`, `index` and `tables` declare the stored data, `facts` and `write` access it, `scan`
//! reads pages by the rules of `visible`, and `mend` checks all rows. `docs/visibility.md` specifies which data a user
//! can see.
//!
//! **Invariant:** no dependency on a store or tokio, and no knowledge of buckets and their keys.
//! **Invariant:** a refused command changes nothing except the last stamp.

pub mod accounts;
pub mod apply;
mod blocks;
pub mod command;
mod conditions;
pub mod conversations;
mod cost;
mod done;
mod due;
mod effect;
mod erase;
pub mod facts;
pub mod feeds;
pub mod filters;
mod follows;
mod handle;
pub mod ids;
mod index;
mod interest;
pub mod limits;
mod lists;
mod markers;
pub mod media;
mod mend;
mod names;
mod notes;
mod notifications;
mod page;
mod parts;
pub mod polls;
mod posts;
pub mod quotes;
mod reactions;
mod refusal;
pub mod relation;
mod samples;
mod scan;
pub mod schedule;
mod similar;
pub mod stories;
mod tables;
pub mod tags;
pub mod text;
pub mod timeline;
pub mod token;
mod users;
pub mod visible;
pub mod whole;
pub mod write;

pub use apply::apply;
pub use blocks::{Mute, MuteTime};
pub use command::{
    Command, Condition, Conditional, Idempotency, Request, Revision, StampedCommand,
};
pub use done::{Done, Outcome, Reply};
pub use due::{Due, DueWork};
pub use effect::{Act, Effect, Input, PostChange, StoryChange, Tie, UserChange};
pub use erase::ErasurePhase;
pub use facts::{Facts, Txn};
pub use follows::{HomeAuthors, follow_options};
pub use handle::Handle;
pub use ids::{PostId, SampleId, SampleSetId, ScheduledId, StoryId, UserId, UserRef};
pub use lists::timeline::{ListTimeline, is_in_list};
pub use lists::{List, ListChange, ListCommand, ListId, ListReplies, ListTitle};
pub use markers::{MarkedTimeline, Marker, MarkerUpdate, Markers, MarkersUpdate};
pub use mend::Mend;
pub use notifications::shown::NotificationFilter;
pub use notifications::{Notice, NoticeKind, NoticeState, Notification, NotificationId};
pub use page::{Cursor, Item, Page, PageEnds, PageOf};
pub use polls::{Poll, PollChoices, PollCounts, PollId};
pub use posts::content::{Content, Patch};
pub use posts::draft::Draft;
pub use posts::rules::mentioned;
pub use posts::version::PostVersion;
pub use posts::{
    HomeUsers, Listed, ListedBoost, Loaded, Post, Posted, Visibility, post_lists, profile, thread,
};
pub use reactions::{Boost, PostCounts, Reaction};
pub use refusal::Refusal;
pub use rows::{Order, RefusalClass, Rows, SetTable, Span, Stamp};
pub use samples::{Sample, SampleBits, SampleSet};
pub use scan::{Batch, Shown, merged, of_all, scan, scan_within};
pub use stories::{Lifetime, Story};
pub use tables::index_tables;
pub use tags::facts::{FEATURED_TAGS, FOLLOWED_TAGS, UserTags};
pub use tags::{Tag, tagged};
pub use text::{Bio, Label, Language, Name, Note, PostText, SetName, Warning};
pub use users::{Counts, PostDefaults, ProfileField, ProfileFields, User, UserEdit};
pub use visible::Viewer;
