//! What live streams share: how many there may be, the permits of their reads, and the newest posts of all users.
//!
//! **Invariant:** a stream has no queue of its own. It reads from a position, or from the shared ring of
//! [`PUBLIC_EVENTS_MAX`] events; one that is slower than the ring misses events of it.
//! **Invariant:** reads of streams take none of the permits of requests.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use feed::{PostId, Tag, UserId, Visibility};
use tokio::sync::{Semaphore, broadcast};

use crate::entities::{Entities, Renderer};
use crate::error::ApiError;
use crate::state::{Server, Shared};

/// Most streams, however many connections there may be.
const STREAMS_MAX: u32 = 4_096;
/// Most streams of one user.
const USER_STREAMS_MAX: u32 = 32;
/// Reads of streams that run at a time.
const READS_MAX: usize = 4;
/// Newest posts that are kept for streams of all users' posts.
const PUBLIC_EVENTS_MAX: usize = 64;
/// Newest posts that one look sends, fewer than are kept: so streams have time for them until the next look.
const PUBLIC_LOOK_MAX: usize = PUBLIC_EVENTS_MAX / 4;
/// Memory of a WebSocket with its buffers and its task, in bytes. What it sends is counted as responses are.
const STREAM_BYTES: usize = 4 << 10;
/// Most memory of the newest posts, of at most about 64 KiB each and 16 KiB of hashtags, and of all streams, in bytes.
pub(crate) const MEMORY: usize =
    PUBLIC_EVENTS_MAX * (80 << 10) + STREAMS_MAX as usize * STREAM_BYTES;
/// Pause between two looks for new posts of all users.
const PUBLIC_PAUSE: Duration = Duration::from_millis(100);
/// Posts that one look reads. If there are more, older ones are left out.
const PUBLIC_ROWS_MAX: usize = 400;
/// Posts that are read at a time.
const ROWS_AT_ONCE: usize = 80;

/// A post that any user may see.
#[derive(Debug)]
pub(crate) struct Published {
    pub(crate) post: PostId,
    /// Whether it is a reply to another user.
    pub(crate) is_reply: bool,
    /// Its hashtags.
    pub(crate) tags: Vec<Tag>,
    /// The entity `Status`, for no reader in particular.
    pub(crate) status: Arc<str>,
}

/// See the module.
pub(crate) struct Streams {
    /// Number of streams of each user, and of all.
    open: Mutex<(HashMap<UserId, u32>, u32)>,
    /// Most streams.
    streams_max: u32,
    turns: Arc<Semaphore>,
    public: broadcast::Sender<Arc<Published>>,
    /// Whether a task looks for new posts.
    is_looking: AtomicBool,
}

/// One of the open streams.
pub(crate) struct Open {
    state: Shared,
    user: UserId,
}

impl Streams {
    /// Of a server with so many connections at most: streams take half of them, so that others remain for requests.
    pub(crate) fn new(connections_max: u32) -> Self {
        Self {
            open: Mutex::default(),
            streams_max: (connections_max / 2).clamp(1, STREAMS_MAX),
            turns: Arc::new(Semaphore::new(READS_MAX)),
            public: broadcast::Sender::new(PUBLIC_EVENTS_MAX),
            is_looking: AtomicBool::new(false),
        }
    }

    fn count(&self, user: UserId) -> Option<()> {
        let mut open = self.open.lock().ok()?;
        let (of_user, all) = &mut *open;
        let count = of_user.get(&user).copied().unwrap_or(0);
        (count < USER_STREAMS_MAX && *all < self.streams_max).then(|| {
            of_user.insert(user, count + 1);
            *all += 1;
        })
    }
}

impl Open {
    /// Counts a stream.
    ///
    /// # Errors
    /// If there are too many.
    pub(crate) fn new(state: &Shared, user: UserId) -> Result<Self, ApiError> {
        state.streams.count(user).ok_or_else(ApiError::too_many_streams)?;
        Ok(Self { state: Arc::clone(state), user })
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        if let Ok(mut open) = self.state.streams.open.lock() {
            let (of_user, all) = &mut *open;
            *all -= 1;
            if let Some(count) = of_user.get_mut(&self.user) {
                *count -= 1;
                if *count == 0 {
                    of_user.remove(&self.user);
                }
            }
        }
    }
}

impl Server {
    /// A read of a stream, which waits for its turn.
    pub(crate) async fn read_for_stream<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Renderer) -> T + Send + 'static,
    ) -> Option<T> {
        let turn = Arc::clone(&self.streams.turns).acquire_owned().await.ok()?;
        let renderer = self.renderer.clone();
        let read = tokio::task::spawn_blocking(move || {
            // Held by the read itself, which continues when the stream ends.
            let _turn = turn;
            read(&renderer)
        });
        read.await.inspect_err(|error| tracing::error!(%error, "a read of a stream panicked")).ok()
    }
}

/// The posts of all users from now on.
pub(crate) fn public(state: &Shared) -> broadcast::Receiver<Arc<Published>> {
    let receiver = state.streams.public.subscribe();
    if !state.streams.is_looking.swap(true, Ordering::SeqCst) {
        tokio::spawn(look(Arc::clone(state)));
    }
    receiver
}

/// Looks for new posts until nobody listens.
async fn look(state: Shared) {
    let (node, streams) = (&state.node, &state.streams);
    let mut seen = node.visible_up_to().0;
    loop {
        tokio::time::sleep(PUBLIC_PAUSE).await;
        if streams.public.receiver_count() == 0 {
            streams.is_looking.store(false, Ordering::SeqCst);
            // Whoever has come meanwhile either saw that this task was there, or begins another one.
            let is_wanted = streams.public.receiver_count() > 0;
            if !is_wanted || streams.is_looking.swap(true, Ordering::SeqCst) {
                return;
            }
        }
        let visible = node.visible_up_to().0;
        if visible == seen {
            continue;
        }
        let read = move |renderer: &Renderer| published(renderer, seen, visible);
        let found = state.read_for_stream(read).await.unwrap_or_default();
        seen = visible;
        for published in found {
            // An error means that nobody listens any more.
            drop(streams.public.send(Arc::new(published)));
        }
    }
}

/// The public posts with ids above `after` up to `until`, oldest first. Replies to other users are among them if they
/// have hashtags.
fn published(renderer: &Renderer, after: u64, until: u64) -> Vec<Published> {
    let mut entities = Entities::new(renderer, None);
    let (mut found, mut read) = (Vec::new(), 0);
    let mut before = Some(PostId(until + 1));
    let is_enough = |found: &Vec<_>| found.len() >= PUBLIC_LOOK_MAX;
    while let Some(from) = before.filter(|_| read < PUBLIC_ROWS_MAX && !is_enough(&found)) {
        let (rows, rest) = entities.facts().posts_before(from, ROWS_AT_ONCE);
        read += ROWS_AT_ONCE;
        before = rest.filter(|rest| rest.0 > after);
        for row in rows.into_iter().take_while(|row| row.posted.0.0 > after) {
            let (post, listed) = row.posted;
            let is_reply = listed.reply_to().is_some_and(|to| to != row.author);
            if listed.visibility() == Visibility::Public && !listed.is_boost() && !is_enough(&found)
            {
                let tags = entities.facts().post(post).map(|post| post.tags()).unwrap_or_default();
                if !is_reply || !tags.is_empty() {
                    found.push((post, is_reply, tags));
                }
            }
        }
    }
    let newest = found.into_iter().rev();
    let status = |(post, is_reply, tags)| {
        let status = Arc::from(entities.status(post)?.into_text());
        Some(Published { post, is_reply, tags, status })
    };
    newest.filter_map(status).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_that_is_refused_is_not_counted() {
        for (connections, streams_max) in
            [(1, 1), (100, 50), (4_096, 2_048), (u32::MAX, STREAMS_MAX)]
        {
            let streams = Streams::new(connections);
            for user in 0..streams_max {
                assert!(streams.count(UserId(user)).is_some());
            }
            assert!(streams.count(UserId(streams_max)).is_none());
            assert_eq!(streams.open.lock().unwrap().0.len(), streams_max as usize);
        }
    }
}
