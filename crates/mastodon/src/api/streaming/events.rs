//! The events of a client's channels, whichever way they are sent.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use feed::accounts::AccessScope;
use feed::{Cursor, Page, PostId, UserId};
use node::{Node, Watch};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::Instant;

use super::Event;
use super::channel::Channel;
use super::news::{News, Question};
use crate::state::Shared;
use crate::streams::{self, Open, Published};
use crate::tokens::Access;

/// Interval at which a sign of life is sent.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// Time between two reads: events that arrive meanwhile are read together.
const PACE: Duration = Duration::from_millis(50);
/// Posts of all users that are sent together.
const PUBLIC_AT_ONCE: usize = 16;

/// The events of a client.
pub(super) struct Events {
    state: Shared,
    access: Access,
    user: UserId,
    own: Option<Own>,
    public: Option<Receiver<Arc<Published>>>,
    /// Posts of all users that were received and not sent. They survive a call of [`Events::next`] that is dropped.
    received: Vec<Arc<Published>>,
    _open: Open,
}

/// The events of the user.
struct Own {
    watch: Watch,
    position: u64,
    changes_read: u64,
    /// Whether there may be something to read, and not before which time.
    due: bool,
    from: Instant,
}

/// Events, and whether they are of the user's own channels.
pub(super) struct Batch {
    pub(super) events: Vec<Event>,
    pub(super) is_own: bool,
}

impl Events {
    pub(super) fn new(state: &Shared, access: Access, user: UserId, open: Open) -> Self {
        let state = Arc::clone(state);
        let received = Vec::new();
        Self { state, access, user, own: None, public: None, received, _open: open }
    }

    /// Begins with what these channels need, and ends with what they do not.
    pub(super) async fn listen(&mut self, channels: &[Channel]) -> Option<()> {
        if !channels.iter().any(|channel| channel.is_public()) {
            self.public = None;
        } else if self.public.is_none() {
            self.public = Some(streams::public(&self.state));
        }
        if !channels.iter().any(|channel| channel.is_of_user()) {
            self.own = None;
        } else if self.own.is_none() {
            // The watch begins before the first read, so no change in between is missed.
            let user = self.user;
            let begin = move |node: &Node, _: &str| {
                let watch = node.watch(user);
                drop(node.home_ids(user, &Page { cursor: Cursor::Newest, limit: 1 }));
                (watch, node.visible_up_to().0)
            };
            let (watch, position) = self.state.read_for_stream(begin).await?;
            let changes_read = watch.changes_end();
            let from = Instant::now();
            self.own = Some(Own { watch, position, changes_read, due: true, from });
        }
        Some(())
    }

    /// The next events; none of them when there are none for a while. `None` at the end: the token was revoked, the
    /// server stops, or the client was too slow. A call that is dropped loses nothing.
    pub(super) async fn next(&mut self) -> Option<Batch> {
        let mut closing = self.state.options.closing.clone();
        let closed = async {
            match &mut closing {
                Some(closing) => drop(closing.wait_for(|closing| *closing).await),
                None => pending().await,
            }
        };
        let batch = async {
            let batch = self.wait().await?;
            // After the read, which may have waited: nothing is sent for a revoked token.
            self.state.is_valid(&self.access).await.then_some(batch)
        };
        tokio::select! {
            () = closed => None,
            batch = batch => batch,
        }
    }

    /// Bytes to be sent; none if too many bytes wait to be sent.
    pub(super) fn hold(&self, text: String) -> Option<Bytes> {
        self.state.answers.hold(text.into_bytes()).ok()
    }

    async fn wait(&mut self) -> Option<Batch> {
        let keep_alive = Instant::now() + KEEP_ALIVE;
        loop {
            if !self.received.is_empty() {
                let events = self.read_public().await?;
                if !events.is_empty() {
                    return Some(Batch { events, is_own: false });
                }
            }
            if self.own.as_ref().is_some_and(|own| own.due) {
                let events = self.read_own().await?;
                if !events.is_empty() {
                    return Some(Batch { events, is_own: true });
                }
                continue;
            }
            let changed = async {
                match &mut self.own {
                    Some(own) => {
                        own.watch.changed().await;
                        own.due = true;
                    }
                    None => pending().await,
                }
            };
            let published = async {
                match &mut self.public {
                    Some(public) => public.recv().await,
                    None => pending().await,
                }
            };
            tokio::select! {
                () = changed => {}
                published = published => match published {
                    Ok(published) => self.received.push(published),
                    Err(RecvError::Lagged(_) | RecvError::Closed) => return None,
                },
                () = tokio::time::sleep_until(keep_alive) => {
                    // Reading activates the timeline if it is not active: only active timelines are notified.
                    self.own.iter_mut().for_each(|own| own.due = true);
                    return Some(Batch { events: Vec::new(), is_own: true });
                }
            }
        }
    }

    async fn read_own(&mut self) -> Option<Vec<Event>> {
        let Some(own) = &mut self.own else { return Some(Vec::new()) };
        tokio::time::sleep_until(own.from).await;
        // The order matters: everything visible up to this id is included in what is read next.
        let visible = self.state.node.visible_up_to().0;
        own.watch.mentions();
        let question = Question {
            user: self.user,
            position: own.position,
            visible,
            changes: own.watch.changes_after(own.changes_read),
            changes_read: own.changes_read,
        };
        // If this call is dropped, the same is read again.
        let news = self.state.read_for_stream(move |node, base| question.answer(node, base)).await;
        let News { mut events, position, changes_read, more } = news?;
        if !self.access.allows(AccessScope::ReadNotifications) {
            events.retain(|event| !event.is_notification());
        }
        (own.position, own.changes_read, own.due) = (position, changes_read, more);
        own.from = Instant::now() + PACE;
        Some(events)
    }

    /// Of the posts of all users those that the user wants.
    async fn read_public(&mut self) -> Option<Vec<Event>> {
        while let Some(public) = &mut self.public
            && self.received.len() < PUBLIC_AT_ONCE
            && let Ok(published) = public.try_recv()
        {
            self.received.push(published);
        }
        let (user, received) = (self.user, self.received.clone());
        let wanted = move |node: &Node, _: &str| {
            let viewer = node.viewer(Some(user));
            let is_wanted =
                |id: PostId| viewer.facts().post(id).is_some_and(|post| viewer.wanted(&post));
            let wanted = received.into_iter().filter(|published| is_wanted(published.post));
            let event = |published: Arc<Published>| Event {
                name: "update",
                payload: Arc::from(published.status.as_str()),
            };
            wanted.map(event).collect()
        };
        let events = self.state.read_for_stream(wanted).await?;
        self.received.clear();
        Some(events)
    }
}
