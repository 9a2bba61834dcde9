//! Shared state of live streams: their limits, and the newest changes of public posts.
//!
//! **Invariant:** a stream has no private queue. It reads from a position, or from the shared ring of
//! [`PUBLIC_EVENTS_MAX`] events; a stream slower than the ring misses events.
//! **Invariant:** streams of all users' posts cost one read per changed post, for any number of streams and posts.
//! **Invariant:** reads of streams have separate turns, and take none of the permits of requests.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use edge::{Share, Shares};
use feed::{Effect, PostChange, PostId, Tag, UserId, Visibility};
use node::{Lost, Node, Position};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, broadcast};

use crate::entities::{Entities, Renderer};
use crate::error::ApiError;
use crate::state::{Server, Shared};

/// Maximum number of streams, for any number of connections.
const STREAMS_MAX: u32 = 4_096;
/// Maximum number of streams of one user.
const USER_STREAMS_MAX: usize = 32;
/// Number of events of public posts in the ring.
const PUBLIC_EVENTS_MAX: usize = 32;
/// Maximum number of changes of public posts in one read. This is less than the ring holds, so that streams have time
/// until the next read.
const PUBLIC_READ_MAX: usize = PUBLIC_EVENTS_MAX / 2;
/// Maximum number of changes of public posts that wait to be read.
const PUBLIC_CHANGES_MAX: usize = 4_096;
/// Memory of a WebSocket with its buffers and its task, in bytes. Its unsent data counts as that of responses.
const STREAM_BYTES: usize = 4 << 10;
/// Maximum memory of the ring and of all streams, in bytes. An event of the ring has at most about 128 KiB, including a
/// quoted post, and 16 KiB of hashtags.
pub(crate) const MEMORY: usize =
    PUBLIC_EVENTS_MAX * (144 << 10) + STREAMS_MAX as usize * STREAM_BYTES;
/// Pause between two reads of changes of public posts. Changes that arrive meanwhile are read together.
const PUBLIC_PAUSE: Duration = Duration::from_millis(100);
/// Pause while more changes wait and all streams keep up.
const BURST_PAUSE: Duration = Duration::from_millis(25);
/// Interval at which the reading task checks whether there are listeners.
const LISTENERS_CHECK: Duration = Duration::from_secs(1);

/// Change of a public post that is not a boost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PublicChange {
    pub(crate) kind: PostChange,
    pub(crate) post: PostId,
    pub(crate) author: UserId,
    /// Whether the post replies to another user.
    pub(crate) is_reply: bool,
}

impl PublicChange {
    /// Change of a public post that an effect makes, if any.
    fn of(effect: &Effect) -> Option<Self> {
        let Effect::Post { post, author, listed, change: kind, .. } = *effect else { return None };
        let is_public = listed.visibility() == Visibility::Public && !listed.is_boost();
        let is_reply = listed.is_reply_to_other(author);
        is_public.then_some(Self { kind, post, author, is_reply })
    }
}

/// Change of a post that any user may see.
#[derive(Debug)]
pub(crate) struct Published {
    pub(crate) change: PublicChange,
    /// Whether the post has pictures.
    pub(crate) has_media: bool,
    /// Hashtags of the post.
    pub(crate) tags: Vec<Tag>,
    /// JSON of the `Status` without a reader; the id of a deleted post.
    pub(crate) payload: Arc<str>,
}

impl Published {
    /// Whether the post was deleted; its hashtags and pictures are then unknown.
    pub(crate) fn is_deletion(&self) -> bool {
        self.change.kind == PostChange::Deleted
    }

    /// Name of the event.
    pub(crate) fn event(&self) -> &'static str {
        match self.change.kind {
            PostChange::Published | PostChange::Shown => "update",
            PostChange::Edited => "status.update",
            PostChange::Deleted => "delete",
        }
    }
}

/// Limits of live streams, and the ring of public changes.
pub(crate) struct Streams {
    /// Number of streams of each user.
    of_users: Shares<UserId>,
    /// One permit per stream.
    open: Arc<Semaphore>,
    public: broadcast::Sender<Arc<Published>>,
    /// Whether a task reads changes of public posts.
    is_reading: AtomicBool,
}

/// Count of an open stream.
pub(crate) type Open = (Share<UserId>, OwnedSemaphorePermit);

impl Streams {
    /// Limits for a server with this many connections. Streams take at most three eighths of them, and a key of the
    /// server at most half, so that connections remain for requests.
    pub(crate) fn new(connections_max: u32) -> Self {
        let streams_max = (connections_max / 8 * 3).clamp(1, STREAMS_MAX);
        Self {
            of_users: Shares::default(),
            open: Arc::new(Semaphore::new(streams_max as usize)),
            public: broadcast::Sender::new(PUBLIC_EVENTS_MAX),
            is_reading: AtomicBool::new(false),
        }
    }

    /// Counts a stream of a user.
    ///
    /// # Errors
    /// If there are too many.
    pub(crate) fn begin(&self, user: UserId) -> Result<Open, ApiError> {
        let of_user = self.of_users.take(user, 1, USER_STREAMS_MAX);
        let of_user = of_user.ok_or_else(ApiError::too_many_streams)?;
        let open = Arc::clone(&self.open).try_acquire_owned();
        Ok((of_user, open.map_err(|_| ApiError::too_many_streams())?))
    }
}

impl Server {
    /// Runs a read for a stream, in turn.
    pub(crate) async fn read_for_stream<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Renderer) -> T + Send + 'static,
    ) -> Option<T> {
        let renderer = self.renderer.clone();
        let read = self.options.reads.streams().run(move || read(&renderer)).await;
        // The conversion logs errors that are not logged yet.
        read.map_err(ApiError::from).ok()
    }
}

/// Subscribes to changes of the posts of all users.
pub(crate) fn public(state: &Shared) -> broadcast::Receiver<Arc<Published>> {
    let receiver = state.streams.public.subscribe();
    if !state.streams.is_reading.swap(true, Ordering::SeqCst) {
        tokio::spawn(read_changes(Arc::clone(state), state.node.effects_end()));
    }
    receiver
}

/// Reads changed posts for all streams together, while there are listeners.
async fn read_changes(state: Shared, mut cursor: Position) {
    let (streams, mut changes) = (&state.streams, VecDeque::new());
    loop {
        if changes.is_empty() {
            let effects = state.node.effects_after(cursor);
            // The wait also ends without effects, to check for listeners.
            drop(tokio::time::timeout(LISTENERS_CHECK, effects).await);
        }
        if streams.public.receiver_count() == 0 {
            streams.is_reading.store(false, Ordering::SeqCst);
            // A new listener either saw that this task runs, or starts another one.
            let is_wanted = streams.public.receiver_count() > 0;
            if !is_wanted || streams.is_reading.swap(true, Ordering::SeqCst) {
                return;
            }
        }
        follow(&state.node, &mut cursor, &mut changes);
        let next: Vec<_> = changes.drain(..changes.len().min(PUBLIC_READ_MAX)).collect();
        // Most groups change no public posts.
        if !next.is_empty() {
            let read = move |renderer: &Renderer| published(renderer, &next);
            for published in state.read_for_stream(read).await.unwrap_or_default() {
                // An error means that there are no listeners left.
                drop(streams.public.send(Arc::new(published)));
            }
        }
        let is_burst = !changes.is_empty();
        let keep_up = streams.public.len() + PUBLIC_READ_MAX <= PUBLIC_EVENTS_MAX;
        tokio::time::sleep(if is_burst && keep_up { BURST_PAUSE } else { PUBLIC_PAUSE }).await;
    }
}

/// Appends the changes after `cursor`. The oldest are missed if their effects are no longer kept, or too many changes
/// wait.
fn follow(node: &Node, cursor: &mut Position, changes: &mut VecDeque<PublicChange>) {
    loop {
        match node.next_effects(cursor) {
            Ok(None) => return,
            Ok(Some(effects)) => changes.extend(effects.iter().filter_map(PublicChange::of)),
            Err(Lost) => {}
        }
        let missed = changes.len().saturating_sub(PUBLIC_CHANGES_MAX);
        changes.drain(..missed);
    }
}

/// Events for the changes. Omits posts that were deleted since, and replies to other users unless they have hashtags.
fn published(renderer: &Renderer, changes: &[PublicChange]) -> Vec<Published> {
    let mut entities = Entities::new(renderer, None);
    let mut published = |change: &PublicChange| {
        let change = *change;
        if change.kind == PostChange::Deleted {
            let payload = Arc::from(change.post.0.to_string());
            return Some(Published { change, has_media: false, tags: Vec::new(), payload });
        }
        let post = entities.facts().post(change.post)?;
        let (tags, has_media) = (post.tags(), !post.content.media.is_empty());
        if change.is_reply && tags.is_empty() {
            return None;
        }
        let payload = Arc::from(entities.status(change.post)?.into_text());
        Some(Published { change, has_media, tags, payload })
    };
    changes.iter().filter_map(&mut published).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_that_is_refused_is_not_counted() {
        for (connections, streams_max) in
            [(1, 1), (100, 36), (4_096, 1_536), (u32::MAX, STREAMS_MAX)]
        {
            let streams = Streams::new(connections);
            let open: Vec<_> =
                (0..streams_max).map(|user| streams.begin(UserId(user)).unwrap()).collect();
            assert!(streams.begin(UserId(streams_max)).is_err());
            assert_eq!(streams.of_users.clients(), streams_max as usize);
            drop(open);
            assert!(streams.begin(UserId(streams_max)).is_ok());
        }
    }
}
