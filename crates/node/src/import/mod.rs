//! Import: creates a data directory from lines of JSON, which come from an [`export`](crate::export()) or another
//! source.
//!
//! **Invariant:** every line is validated like a command, and writes the rows that commands would have written.
//! **Invariant:** until everything is durable, the directory is marked as unfinished, and no node opens it.

mod conversations;
mod feeds;
mod filters;
mod follow_options;
mod ids;
mod input;
mod keys;
mod lists;
mod media;
mod mutes;
mod polls;
mod posts;
mod samples;
mod users;
mod versions;

use std::io::{self, Read};

use rows::Totals;
use store::{Loader, StoreError};

use crate::clock::Time as NodeTime;
use crate::directory::last_run::LastRun;
use crate::directory::lock::DataLock;
use crate::directory::open_error::OpenError;
use crate::export::counts::TransferCounts;
use crate::export::lines::Line;
use crate::options::NodeOptions;
use crate::recovery::restore;
use ids::Ids;
use input::Input;

/// Error of a line.
type Wrong = Box<dyn std::error::Error + Send + Sync>;

/// Reason why there is no new data directory.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// A line is wrong.
    #[error("line {line}: {what}")]
    Line {
        /// Number of the line, from 1.
        line: u64,
        /// Description of the error.
        what: String,
    },
    /// A user exceeds a limit, by several lines together.
    #[error("{0}")]
    Limit(String),
    /// The last line is missing. The value is the number of lines.
    #[error("the file is incomplete: it ends after line {0}, without the last line of an export")]
    Incomplete(u64),
    /// A later version of this program wrote the export.
    #[error("the export has format {found}, but this program reads formats up to {known}")]
    NewerFormat {
        /// Format of the export.
        found: u64,
        /// Newest format that this program reads.
        known: u32,
    },
    /// The export cannot be read.
    #[error("the file cannot be read")]
    Read(#[source] io::Error),
    /// The directory cannot be used.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The store cannot be created.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Creates the directory of `options`, which must be empty or missing, from the lines of an export. Blocks.
///
/// # Errors
/// [`ImportError`]. Unless the directory was refused, it is left marked as unfinished.
pub fn import(options: &NodeOptions, stream: impl Read) -> Result<TransferCounts, ImportError> {
    let mut lock = DataLock::take_to_restore(&options.data)?;
    let time = NodeTime::new(options.clock.clone(), 0, options.clock_jump_max);
    let jump_ms = u64::try_from(options.clock_jump_max.as_millis()).unwrap_or(u64::MAX);
    let mut import = Import {
        loader: Loader::create(&options.store_dir())?,
        ids: Ids::new(time.now_ms(), jump_ms),
        counts: TransferCounts::default(),
        users: users::Users::default(),
        posts: posts::Posts::default(),
        scheduled: polls::ScheduledPosts::default(),
        pictures: media::Pictures::default(),
        stories: posts::Stories::default(),
        samples: samples::Samples::default(),
        buckets: keys::Buckets::new(),
        feeds: feeds::Feeds::default(),
    };
    let counts = import.read(&mut Input::new(stream))?;
    import.finish()?;
    // The times in the store may be long ago. The next start compares the clock with the time that is recorded here.
    LastRun::open(&options.data)?.note(&time);
    restore::complete(options, &mut lock)?;
    Ok(counts)
}

struct Import {
    loader: Loader,
    ids: Ids,
    counts: TransferCounts,
    users: users::Users,
    posts: posts::Posts,
    scheduled: polls::ScheduledPosts,
    pictures: media::Pictures,
    stories: posts::Stories,
    samples: samples::Samples,
    buckets: keys::Buckets,
    feeds: feeds::Feeds,
}

impl Import {
    /// Reads all lines.
    fn read<R: Read>(&mut self, input: &mut Input<R>) -> Result<TransferCounts, ImportError> {
        let last_id = input.header()?.last_id;
        if let Some(last_id) = last_id {
            self.ids.used(last_id).map_err(|what| input.wrong(&what))?;
        }
        loop {
            let number = input.number() + 1;
            self.loader.begin_line(number);
            let done = match input.line()? {
                Line::End(end) => {
                    let end = input::owned(end);
                    input.finish(self.counts, end)?;
                    return Ok(self.counts);
                }
                line => self.line(line),
            };
            done.map_err(|what| input.wrong(&what))?;
            self.loader.check()?;
        }
    }

    fn line(&mut self, line: Line<'_>) -> Result<(), Wrong> {
        let Self { loader, ids, counts, users, posts, pictures, .. } = self;
        let (scheduled, stories) = (&mut self.scheduled, &mut self.stories);
        let (samples, buckets) = (&mut self.samples, &mut self.buckets);
        let (count, more) = match line {
            Line::Export(_) | Line::End(_) => {
                return Err("this line is only valid at the start or the end of the file".into());
            }
            Line::User(line) => {
                (&mut counts.users, users.add(loader, (ids, pictures), &line).map(|()| 1))
            }
            Line::Relation(line) => {
                let count = counts.of_relations(&line.kind).ok_or("there is no such relation")?;
                (count, users.relate(loader, &line))
            }
            Line::Mute(line) => (&mut counts.mutes, users.mute(loader, &line).map(|()| 1)),
            Line::Note(line) => (&mut counts.notes, users.note(loader, &line).map(|()| 1)),
            Line::List(line) => (&mut counts.lists, users.list(loader, ids, &line).map(|()| 1)),
            Line::FollowOptions(line) => {
                (&mut counts.follow_options, users.follow_options(ids, &line).map(|()| 1))
            }
            Line::Post(line) => {
                (&mut counts.posts, posts.add(loader, (users, ids, pictures), &line).map(|()| 1))
            }
            Line::Reaction(line) => {
                let done = posts.reaction(loader, (users, ids), &line);
                (&mut counts.reactions, done.map(|()| 1))
            }
            Line::Vote(line) => (&mut counts.votes, posts.vote(loader, users, &line).map(|()| 1)),
            Line::Scheduled(line) => {
                let done = scheduled.add(loader, (users, ids, pictures), &line);
                (&mut counts.scheduled, done.map(|()| 1))
            }
            Line::Story(line) => {
                (&mut counts.stories, stories.add(loader, (users, ids), &line).map(|()| 1))
            }
            Line::View(line) => {
                (&mut counts.views, stories.view(loader, (users, ids), &line).map(|()| 1))
            }
            Line::Sample(line) => {
                (&mut counts.samples, samples.add(loader, ids, &line).map(|()| 1))
            }
            Line::Feed(line) => (&mut counts.feeds, self.feeds.add(loader, &line).map(|()| 1)),
            Line::Bucket(line) => (&mut counts.buckets, buckets.add(loader, &line).map(|()| 1)),
            Line::Key(line) => (&mut counts.keys, buckets.add_key(loader, ids, line).map(|()| 1)),
        };
        *count += more?;
        counts.pictures = pictures.count();
        Ok(())
    }

    /// Writes the store.
    fn finish(self) -> Result<(), ImportError> {
        let Self { mut loader, ids, counts, mut users, mut posts, pictures, .. } = self;
        let (stories, samples, buckets) = (self.stories, self.samples, self.buckets);
        posts.flush(&mut loader);
        pictures.finish(&mut loader);
        let mut totals = Totals {
            posts: counts.posts + posts.boosts(),
            last_stamp: ids.last(),
            ..Totals::default()
        };
        (totals.blocks, totals.mutes) = (counts.blocks, counts.mutes);
        stories.finish(&mut loader, &mut totals, counts.stories);
        samples.finish(&mut loader);
        buckets.finish(&mut loader, &mut totals);
        loader.write(&mut |table, user, items| users.count_set(&mut totals, table, user, items))?;
        let limits = users.finish(&mut loader, &mut totals);
        limits.map_err(|what| ImportError::Limit(what.to_string()))?;
        Ok(loader.finish(totals)?)
    }
}
