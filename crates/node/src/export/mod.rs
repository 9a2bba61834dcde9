//! Export of the data of a stopped node: all facts as lines of JSON, for [`import`](crate::import()) and other
//! programs.
//!
//! **Invariant:** expired and deleted data, which readers cannot see, is not exported. The same facts give the same
//! bytes, except for the first line.

pub(crate) mod bytes;
pub(crate) mod counts;
pub(crate) mod filter_lines;
pub(crate) mod lines;
pub(crate) mod list_lines;
pub(crate) mod media_lines;
mod output;
pub(crate) mod poll_lines;
mod polls;
pub(crate) mod post_lines;
mod relations;
#[cfg(test)]
mod tests;
pub(crate) mod user_lines;

use std::borrow::Cow;
use std::io::{self, Write};

use feed::{Post, PostId, Reaction, Stamp, Story, StoryId, UserId};
use kv::{BucketId, BucketName, WalkLimit};
use rows::{Rows as _, SetTable, Span};
use store::{SortedRow, Sorter, Store, StoreError, unless_unreadable};

use crate::clock::Time as NodeTime;
use crate::directory::lock::DataLock;
use crate::directory::mirror::Mirror;
use crate::directory::open_error::OpenError;
use crate::node::recover_once;
use crate::options::NodeOptions;
use counts::TransferCounts;
use lines::{Id, Line, Time};
use media_lines::Picture;
use output::Output;
use user_lines::{Note, User};

/// Memory for sorting keys, in bytes.
const SORT_BYTES: usize = 64 << 20;
/// Number of items that are read at a time.
const STRIDE: usize = 4_096;

/// Reason why there is no export.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The directory cannot be used.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The export cannot be written or sorted.
    #[error("the export cannot be written")]
    Write(#[from] io::Error),
}

/// Writes all facts in the directory of `options`, whose server is stopped, to `out`. `roost` is the version of the
/// program. Blocks.
///
/// # Errors
/// [`ExportError`]; the written data is then incomplete.
pub fn export(
    options: &NodeOptions,
    roost: &str,
    out: impl Write,
) -> Result<TransferCounts, ExportError> {
    if !options.log_dir().is_dir() && !options.store_dir().is_dir() {
        let what = "it has neither a log nor a store";
        let error = io::Error::new(io::ErrorKind::NotFound, what);
        return Err(OpenError::Directory(options.data.clone(), error).into());
    }
    let mut lock = DataLock::take_to_read(&options.data)?;
    let mirror = lock.is_read_only().then(|| Mirror::of(options)).transpose()?;
    if mirror.is_none() {
        lock.mark_used(&options.data)?;
    }
    let options = mirror.as_ref().map_or(options, Mirror::options);
    let store = recover_once(options)?;
    let last_stamp = store.totals().last_stamp;
    let last_ms = last_stamp.map_or(0, Stamp::unix_ms);
    let now_ms = NodeTime::new(options.clock.clone(), last_ms, options.clock_jump_max).now_ms();
    let header = lines::Header {
        format: lines::FORMAT_VERSION,
        roost: Some(roost.into()),
        time: Some(Time(now_ms)),
        last_id: last_stamp.map(|stamp| Id(stamp.0)),
    };
    let out = Output::begin(out, header)?;
    let sorter = Sorter::new(&options.data, SORT_BYTES);
    let mut export = Export { store: &store, now_ms, out, counts: TransferCounts::default() };
    let written = unless_unreadable(|| export.write(sorter));
    written.ok_or_else(|| OpenError::unreadable(options))??;
    let counts = export.counts;
    export.out.end(counts)?;
    drop(store);
    if mirror.is_none() {
        lock.close().map_err(|error| OpenError::Directory(options.data.clone(), error))?;
    }
    Ok(counts)
}

struct Export<'a, W: Write> {
    store: &'a Store,
    now_ms: u64,
    out: Output<W>,
    counts: TransferCounts,
}

impl<W: Write> Export<'_, W> {
    fn write(&mut self, sorter: Sorter<SortedRow>) -> io::Result<()> {
        self.users()?;
        self.relations(|relation| relation.is_across_blocks)?;
        self.mutes()?;
        self.notes()?;
        self.lists()?;
        self.follow_options()?;
        self.relations(|relation| !relation.is_across_blocks)?;
        self.posts()?;
        self.scheduled()?;
        self.stories()?;
        self.samples()?;
        self.feeds()?;
        self.buckets(sorter)
    }

    fn facts(&self) -> feed::Facts<'_, Store> {
        feed::Facts::new(self.store)
    }

    fn users(&mut self) -> io::Result<()> {
        let facts = feed::Facts::new(self.store);
        let mut done = Ok(());
        facts.each_stored_user(|id, user| {
            if done.is_err() {
                return;
            }
            self.counts.users += 1;
            let account = facts.account(id);
            let line = User::new(facts, (id, &user), account.as_ref());
            self.counts.pictures += line.avatar.iter().chain(&line.header).count() as u64;
            done = self.out.line(&Line::User(Box::new(line)));
        });
        done
    }

    /// Writes the notes of each user.
    fn notes(&mut self) -> io::Result<()> {
        let facts = feed::Facts::new(self.store);
        for user in existing(facts) {
            for other in facts.users_in(SetTable::Notes, user, Span::ALL) {
                if let Some(note) = facts.note(user, other) {
                    self.counts.notes += 1;
                    let (about, text) = (other.into(), note.as_str().into());
                    self.out.line(&Line::Note(Note { user: user.into(), about, text }))?;
                }
            }
        }
        Ok(())
    }

    /// Writes the mutes of each user.
    fn mutes(&mut self) -> io::Result<()> {
        let facts = feed::Facts::new(self.store);
        for user in existing(facts) {
            for other in facts.users_in(SetTable::Mutes, user, Span::ALL) {
                let mute = facts.mute(user, other);
                let live = |mute: &feed::Mute| mute.ends_ms.is_none_or(|ms| self.now_ms < ms);
                if let Some(feed::Mute { mentions, ends_ms }) = mute.filter(live) {
                    self.counts.mutes += 1;
                    let (mutes, ends) = (other.into(), ends_ms.map(Time));
                    let line = lines::Mute { user: user.into(), mutes, mentions, ends };
                    self.out.line(&Line::Mute(line))?;
                }
            }
        }
        Ok(())
    }

    fn posts(&mut self) -> io::Result<()> {
        let facts = feed::Facts::new(self.store);
        let mut done = Ok(());
        facts.each_stored_post(|id, post| {
            // A boost is exported as a reaction to the boosted post.
            if done.is_ok() && post.boost.is_none() && !facts.is_being_erased(post.author) {
                done = self.post(id, &post);
            }
        });
        done
    }

    fn post(&mut self, id: PostId, post: &Post) -> io::Result<()> {
        self.counts.posts += 1;
        let media = post.content.media.iter().filter_map(|media| Picture::of(self.facts(), *media));
        let media: Vec<_> = media.collect();
        self.counts.pictures += media.len() as u64;
        let versions = match post.edited {
            Some(_) => self.facts().post_versions(id),
            None => Vec::new(),
        };
        self.out.line(&Line::Post(Box::new(post_lines::Post {
            id: Some(Id(id.0)),
            time: Some(Time(id.unix_ms())),
            author: post.author.into(),
            content: (&post.content).into(),
            in_reply_to: post.in_reply_to.map(|parent| Id(parent.0)),
            reply_to: post.reply_to.map(Into::into),
            mentions: Some(post.mentions.iter().map(|user| (*user).into()).collect()),
            edited: post.edited.map(|edited| Time(edited.unix_ms())),
            visibility: post.visibility,
            media,
            poll: post.poll.as_ref().map(Into::into),
            quote: post.quote.map(Into::into),
            quote_policy: post.quote_policy,
            conversation: post.conversation.map(|first| Id(first.0)),
            thread: post.thread.map(|first| Id(first.0)),
            versions: versions.iter().map(Into::into).collect(),
        })))?;
        self.reactions(id)?;
        post.poll.iter().try_for_each(|poll| self.votes(poll.id))
    }

    fn reactions(&mut self, post: PostId) -> io::Result<()> {
        let mut from = Some(0);
        while let Some(first) = from {
            let rows = self.facts().reactions_to(post, first, STRIDE);
            let last = rows.last().filter(|_| rows.len() >= STRIDE);
            from = last.and_then(|(item, ..)| item.checked_add(1));
            for (_, reaction, user, stamp) in rows {
                if !self.facts().is_being_erased(user) {
                    self.counts.reactions += 1;
                    let boost = match reaction {
                        Reaction::Boost => {
                            self.facts().post(PostId(stamp)).and_then(|post| post.boost)
                        }
                        _ => None,
                    };
                    let earlier = boost.into_iter().flat_map(|boost| boost.earlier);
                    let line = post_lines::Reaction {
                        user: user.into(),
                        kind: reaction.name().into(),
                        id: Id(stamp),
                        earlier: earlier.map(Into::into).collect(),
                    };
                    self.out.line(&Line::Reaction(line))?;
                }
            }
        }
        Ok(())
    }

    fn stories(&mut self) -> io::Result<()> {
        let facts = feed::Facts::new(self.store);
        let mut done = Ok(());
        facts.each_stored_story(|id, story| {
            if done.is_ok() && story.is_live(self.now_ms) && !facts.is_being_erased(story.author) {
                done = self.story(id, &story);
            }
        });
        done
    }

    /// Writes a story and its views.
    fn story(&mut self, id: StoryId, story: &Story) -> io::Result<()> {
        // A story without a text is not live.
        let Some(text) = self.facts().story_text(id) else { return Ok(()) };
        self.counts.stories += 1;
        self.out.line(&Line::Story(post_lines::Story {
            id: Some(Id(id.0)),
            time: Some(Time(id.unix_ms())),
            author: story.author.into(),
            text: text.as_str().into(),
            expires: Some(Time(story.expires_ms)),
        }))?;
        let mut rest = Some(Span { limit: STRIDE, ..Span::ALL });
        while let Some(span) = rest {
            let views = self.facts().story_views(id, span);
            let last = views.last().filter(|_| views.len() == STRIDE).map(|(user, _)| user.0);
            for (user, at_ms) in views {
                if self.facts().exists(user) {
                    self.counts.views += 1;
                    let time = Some(Time(at_ms));
                    self.out.line(&Line::View(post_lines::View { user: user.into(), time }))?;
                }
            }
            rest = last.and_then(|last| span.beyond(last.into(), STRIDE));
        }
        Ok(())
    }

    fn samples(&mut self) -> io::Result<()> {
        let mut done = Ok(());
        feed::Facts::new(self.store).each_sample(|id, sample| {
            if done.is_err() {
                return;
            }
            self.counts.samples += 1;
            let bits: [u8; 128] = sample.bits.into();
            done = self.out.line(&Line::Sample(lines::Sample {
                id: Some(Id(id.0)),
                time: Some(Time(Stamp(id.0).unix_ms())),
                set: sample.set.as_str().into(),
                label: sample.label.as_str().into(),
                sample: bytes::to_hex(&bits).into(),
            }));
        });
        done
    }

    /// Writes the stored ranked feeds.
    fn feeds(&mut self) -> io::Result<()> {
        let facts = feed::Facts::new(self.store);
        for name in facts.stored_feeds() {
            let Some(definition) = facts.stored_feed(&name) else { continue };
            // The text is JSON: requests and imports check it.
            let Ok(definition) = serde_json::from_str(definition.as_str()) else { continue };
            self.counts.feeds += 1;
            self.out.line(&Line::Feed(lines::Feed { name: name.as_str().into(), definition }))?;
        }
        Ok(())
    }

    /// Writes the named buckets, then all keys sorted by bucket and key. The order of keys in the store is secret.
    fn buckets(&mut self, mut sorter: Sorter<SortedRow>) -> io::Result<()> {
        let facts = kv::Facts::new(self.store);
        for number in 0..kv::limits::NUMBERED_BUCKETS {
            self.keys(&number.to_string(), BucketId(number.into()), &mut sorter)?;
        }
        let mut next = facts.first_bucket_from(&[]);
        while let Some((name, id)) = next {
            self.counts.buckets += 1;
            self.out.line(&Line::Bucket(lines::Bucket { name: name.as_str().into() }))?;
            self.keys(name.as_str(), id, &mut sorter)?;
            next = facts.first_bucket_from(&after(&name));
        }
        for row in sorter.sorted()? {
            self.out.raw_line(&row?.value)?;
        }
        Ok(())
    }

    /// Adds the lines of the keys of a bucket.
    fn keys(&mut self, name: &str, id: BucketId, sorter: &mut Sorter<SortedRow>) -> io::Result<()> {
        let facts = kv::Facts::new(self.store);
        let Some(bucket) = facts.bucket(id) else { return Ok(()) };
        let mut cursor = Some(0);
        while let Some(from) = cursor {
            let (rows, next) = facts.rows_of_keys(bucket.space, from, WalkLimit::rows(STRIDE));
            cursor = next;
            for row in rows.iter().filter(|row| row.is_live(self.now_ms)) {
                self.counts.keys += 1;
                let mut line = lines::Key {
                    bucket: Cow::Borrowed(name),
                    expires: row.expires_ms().map(Time),
                    version: Some(Id(row.version().0)),
                    ..lines::Key::default()
                };
                (line.key, line.key_base64) = bytes::to_text(row.key());
                (line.value, line.value_base64) = bytes::to_text(row.value());
                let value = serde_json::to_vec(&Line::Key(line))?;
                // Names of buckets contain no zero byte.
                let key = [name.as_bytes(), &[0], row.key()].concat();
                sorter.push(SortedRow { key: key.into(), line: 0, value: value.into() })?;
            }
        }
        Ok(())
    }
}

/// Users who are not deleted.
fn existing(facts: feed::Facts<'_, Store>) -> impl Iterator<Item = UserId> {
    (0..facts.totals().users).map(UserId).filter(move |user| facts.exists(*user))
}

/// Returns the smallest greater name.
fn after(name: &BucketName) -> Vec<u8> {
    [name.as_str().as_bytes(), &[0]].concat()
}

impl From<StoreError> for ExportError {
    fn from(error: StoreError) -> Self {
        Self::Open(error.into())
    }
}
