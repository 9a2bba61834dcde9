//! Events of a client's channels, for both transports.

use std::collections::VecDeque;
use std::future::pending;
use std::sync::Arc;

use axum::body::Bytes;
use edge::{Beat, Pulse};
use feed::accounts::AccessScope;
use feed::{PostChange, Tag, UserId};
use node::news::{EVENTS_BYTES, Interest, Subscription};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::Instant;

use super::Event;
use super::channel::Channel;
use super::news::{self, News, Wanted};
use crate::answers::Client;
use crate::entities::{Entities, Renderer};
use crate::state::Shared;
use crate::streams::{self, Open, Published};
use crate::tokens::Access;

/// Maximum number of posts of all users that are sent together.
const PUBLIC_AT_ONCE: usize = 16;

/// Events of a client.
pub(super) struct Events {
    state: Shared,
    access: Access,
    user: UserId,
    own: Option<Own>,
    public: Option<Receiver<Arc<Published>>>,
    /// Received posts of all users that did not fit in the last read.
    unread: VecDeque<Arc<Published>>,
    /// Channels of posts that any user may see.
    of_public: Vec<Channel>,
    /// Whether the events include posts at home.
    has_home: bool,
    wanted: Wanted,
    /// Schedule of reads of the user's events, and of keep-alive messages.
    pulse: Pulse,
    _open: Open,
}

/// Events of the user.
struct Own {
    subscription: Subscription,
    /// Hashtags that the user follows.
    tags: Vec<Tag>,
}

/// Next action for a client.
pub(super) enum Due {
    /// Read new events of the user.
    Own,
    /// Read this post of all users, and those after it.
    Public(Arc<Published>),
    /// Send a keep-alive message.
    KeepAlive,
}

/// Data to send.
pub(super) enum Batch {
    /// Events of the user's channels, possibly none.
    Own(Vec<Event>),
    /// Posts of all users, possibly none.
    Public(Vec<Event>),
    /// Keep-alive message.
    KeepAlive,
}

impl Events {
    pub(super) fn new(state: &Shared, access: Access, user: UserId, open: Open) -> Self {
        let state = Arc::clone(state);
        let (own, public, of_public) = (None, None, Vec::new());
        Self {
            state,
            access,
            user,
            own,
            public,
            unread: VecDeque::new(),
            of_public,
            has_home: false,
            wanted: Wanted::default(),
            pulse: Pulse::new(Instant::now()),
            _open: open,
        }
    }

    /// Starts the subscriptions that these channels need, and ends the others.
    pub(super) async fn listen(&mut self, channels: &[Channel]) -> Option<()> {
        let of_public = channels.iter().filter(|channel| channel.is_public());
        self.of_public = of_public.cloned().collect();
        self.has_home = channels.iter().any(|channel| matches!(channel, Channel::User));
        self.wanted = Wanted {
            lists: channels.iter().filter_map(Channel::list).collect(),
            has_direct: channels.iter().any(|channel| matches!(channel, Channel::Direct)),
        };
        if !channels.iter().any(Channel::is_of_user) {
            self.own = None;
        } else if self.own.is_none() {
            let user = self.user;
            let begin = move |renderer: &Renderer| {
                let interest = Interest::Notifications;
                let subscription = Subscription::begin(&renderer.node, user, interest, None);
                (subscription, news::followed_tags(renderer, user))
            };
            let (subscription, tags) = self.state.read_for_stream(begin).await?;
            self.own = Some(Own { subscription, tags });
            self.pulse.wake();
        }
        self.listen_to_public();
        Some(())
    }

    /// Subscribes to the posts of all users if a channel or home needs them; otherwise ends the subscription.
    fn listen_to_public(&mut self) {
        if self.of_public.is_empty() && self.home_tags().is_empty() {
            self.public = None;
            self.unread.clear();
        } else if self.public.is_none() {
            self.public = Some(streams::public(&self.state));
            // The ring may already have an earlier post with a followed hashtag, so home is read.
            self.pulse.wake();
        }
    }

    /// Hashtags whose posts are events because they appear at home.
    fn home_tags(&self) -> &[Tag] {
        self.own.as_ref().filter(|_| self.has_home).map_or(&[], |own| &own.tags)
    }

    /// Waits for the next action. `None` when the server stops. The call can be cancelled without losing events.
    pub(super) async fn ready(&mut self) -> Option<Due> {
        let mut closing = self.state.options.closing.clone();
        let closed = async {
            match &mut closing {
                Some(closing) => drop(closing.wait_for(|closing| *closing).await),
                None => pending().await,
            }
        };
        let (own, pulse) = (&mut self.own, &mut self.pulse);
        let beat = async {
            let changed = async {
                match own {
                    Some(own) => own.subscription.changed().await,
                    None => pending().await,
                }
            };
            let beat = pulse.next(changed).await;
            if beat == Beat::Read {
                pulse.turn().await;
            }
            beat
        };
        let published = async {
            let Some(public) = &mut self.public else { return pending().await };
            if let Some(unread) = self.unread.pop_front() {
                return Some(unread);
            }
            loop {
                match public.recv().await {
                    Ok(published) => return Some(published),
                    // After missed posts, the stream continues with the oldest post in the ring.
                    Err(RecvError::Lagged(_)) => {}
                    Err(RecvError::Closed) => return None,
                }
            }
        };
        tokio::select! {
            () = closed => None,
            beat = beat => Some(match beat {
                Beat::Read => Due::Own,
                Beat::KeepAlive => Due::KeepAlive,
            }),
            published = published => published.map(Due::Public),
        }
    }

    /// Reads the due data. `None` if reading failed. If the call is cancelled, events are lost.
    pub(super) async fn read(&mut self, due: Due) -> Option<Batch> {
        match due {
            Due::Own => self.read_own().await.map(Batch::Own),
            Due::Public(first) => self.read_public(first).await.map(Batch::Public),
            Due::KeepAlive => Some(Batch::KeepAlive),
        }
    }

    /// Reserves memory for text to send; `None` if too many bytes are unsent.
    pub(super) fn hold(&self, text: String) -> Option<Bytes> {
        self.state.answers.hold(Client::User(self.user), text.into_bytes())
    }

    async fn read_own(&mut self) -> Option<Vec<Event>> {
        let Some(own) = &mut self.own else {
            self.pulse.caught_up(false);
            return Some(Vec::new());
        };
        let question = own.subscription.ask();
        let (asked, user, wanted) = (question.clone(), self.user, self.wanted.clone());
        let read = move |renderer: &Renderer| news::answer(renderer, user, &asked, &wanted);
        let News { mut events, answered, tags } = self.state.read_for_stream(read).await??;
        self.pulse.took_turn(Instant::now(), events.is_empty() && answered.more);
        self.pulse.caught_up(answered.more);
        if !self.access.allows(AccessScope::ReadNotifications) {
            events.retain(|event| !event.is_notification());
        }
        own.subscription.go_on(&question, answered);
        if let Some(tags) = tags {
            own.tags = tags;
            self.listen_to_public();
        }
        Some(events)
    }

    /// Changed posts of all users in the channels that the client wants.
    async fn read_public(&mut self, first: Arc<Published>) -> Option<Vec<Event>> {
        let mut received = vec![first];
        received.extend(self.unread.drain(..));
        while let Some(public) = &mut self.public
            && received.len() < PUBLIC_AT_ONCE
            && let Ok(published) = public.try_recv()
        {
            received.push(published);
        }
        // Posts that are at home only because of a hashtag do not wake this user's stream, so a read of home is
        // requested here. It begins where the previous read of home ended, so it also finds posts that this read
        // missed.
        let is_at_home = |tag| self.home_tags().contains(tag);
        let is_posted = |it: &&Arc<Published>| it.change.kind == PostChange::Published;
        let posted = received.iter().filter(is_posted);
        if posted.flat_map(|published| &published.tags).any(is_at_home) {
            self.pulse.wake();
        }
        // Most posts are on no channel of the client, so they are dropped before anything is read.
        received.retain(|published| self.of_public.iter().any(|channel| channel.has(published)));
        if received.is_empty() {
            return Some(Vec::new());
        }
        let user = self.user;
        let wanted = move |renderer: &Renderer| {
            let mut entities = Entities::new(renderer, Some(user));
            let mut event = |published: &Arc<Published>| {
                let id = published.change.post;
                let payload = if published.is_deletion() {
                    if !entities.viewer().wants_public_by(published.change.author) {
                        return None;
                    }
                    Arc::clone(&published.payload)
                } else {
                    let post = entities.facts().post(id)?;
                    // Readers without blocks, filters and muted threads get the same event. For other readers, the
                    // entity omits mentions of blocked users or has marks. A status with a quote is read again, because
                    // the quoted post may be deleted or the quote revoked by now.
                    let is_for_all = post.quote.is_none()
                        && entities.viewer().has_no_blocks_or_mutes()
                        && !entities.has_marks();
                    match is_for_all {
                        _ if !entities.viewer().wanted(&post) => return None,
                        true => Arc::clone(&published.payload),
                        false => Arc::from(entities.status(id)?.into_text()),
                    }
                };
                let (name, published) = (published.event(), Some(Arc::clone(published)));
                Some(Event { name, payload, published, lists: Vec::new() })
            };
            let (mut events, mut unread) = (Vec::new(), VecDeque::from(received));
            // Posts rendered for this client stay in memory until they are sent.
            let mut bytes = 0;
            while bytes < EVENTS_BYTES
                && let Some(published) = unread.pop_front()
            {
                let event = event(&published);
                let own = event.iter().filter(|it| !Arc::ptr_eq(&it.payload, &published.payload));
                bytes += own.map(|event| event.payload.len()).sum::<usize>();
                events.extend(event);
            }
            (events, unread)
        };
        let (events, unread) = self.state.read_for_stream(wanted).await?;
        self.unread = unread;
        Some(events)
    }
}
