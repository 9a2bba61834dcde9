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
//! Read `command`, `apply/mod.rs`, `facts`, then `visible` and `timeline`. Other modules cover one noun each; `mend`
//! checks and repairs all rows. `docs/visibility.md` specifies which data a user can see.
//!
//! **Invariant:** no dependency on a store or tokio, and no knowledge of buckets and their keys.
//! **Invariant:** a refused command changes nothing except the last stamp.

pub mod accounts;
pub mod apply;
mod boost;
pub mod command;
pub mod conversation;
mod cost;
mod direct;
mod done;
pub mod draft;
mod due;
mod effect;
pub mod facts;
pub mod filter;
pub mod follow_options;
mod handle;
mod home_authors;
pub mod ids;
mod inbox;
mod index;
pub mod lifetime;
pub mod limits;
mod list;
mod list_timeline;
mod marker;
pub mod media;
mod mend;
mod mute;
mod notification;
mod page;
mod parts;
pub mod poll;
mod post;
pub mod post_lists;
pub mod profile;
mod reaction;
pub mod records;
mod refusal;
mod remains;
mod row_counts;
mod scan;
pub mod schedule;
mod settings;
pub mod stories;
pub mod tag;
pub mod tagged;
pub mod text;
pub mod thread;
pub mod timeline;
pub mod token;
mod version;
pub mod visible;
pub mod write;

pub use apply::apply;
pub use apply::post::mentioned;
pub use boost::{Boost, PostCounts};
pub use command::{Command, Done, Idempotency, Outcome, Reply, Request, StampedCommand};
pub use draft::{Draft, Patch};
pub use due::{Due, DueWork};
pub use effect::{Effect, Input, PostChange, StoryChange, UserChange};
pub use facts::{Facts, Txn, relation, whole};
pub use home_authors::HomeAuthors;
pub use ids::{PostId, SampleId, SampleSetId, ScheduledId, StoryId, UserId, UserRef};
pub use inbox::NotificationFilter;
pub use lifetime::{Lifetime, MuteTime};
pub use list::{List, ListChange, ListCommand, ListId, ListReplies, ListTitle};
pub use list_timeline::{ListTimeline, is_in_list};
pub use marker::{MarkedTimeline, Marker, MarkerUpdate, Markers, MarkersUpdate};
pub use mend::Mend;
pub use mute::Mute;
pub use notification::{Inbox, Notice, NoticeKind, Notification, NotificationId};
pub use page::{Cursor, Item, Page, PageEnds, PageOf};
pub use poll::{Poll, PollChoices, PollCounts, PollId};
pub use post::{HomeUsers, Listed, ListedBoost, Loaded, Posted, Visibility};
pub use reaction::Reaction;
pub use records::{Counts, Post, Sample, SampleBits, SampleSet, Story, User};
pub use refusal::Refusal;
pub use remains::Remains;
pub use rows::{Order, RefusalClass, Rows, SetTable, Span, Stamp};
pub use scan::{Batch, Shown, merged, of_all, scan};
pub use settings::{PostDefaults, ProfileField, ProfileFields, UserEdit};
pub use tag::Tag;
pub use text::{Bio, Handle, Label, Language, Name, Note, PostText, SetName, Warning};
pub use version::PostVersion;
pub use visible::Viewer;
