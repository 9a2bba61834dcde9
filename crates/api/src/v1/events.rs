//! Live updates as Server-Sent Events, one stream per user: new posts at home, new mentions, deleted and
//! edited posts, follows and unfollows of the user, and new and expired stories of friends.
//!
//! A stream holds a position and reads events after it from the node whenever there may be new ones. It
//! has no queue, so a slow reader costs at most the bytes in its connection, and is disconnected when it
//! reads nothing for a while. An event's id is the position after it: a client that reconnects with it
//! misses nothing and gets nothing twice. Posts and stories that were deleted or have expired meanwhile
//! are skipped.
//!
//! A stream that is woken reads from memory first, on its async worker. Only if something is not in
//! memory does it wait for one of the few reads of [`streams`], which are for streams only: so a post that
//! wakes thousands of streams does not delay requests.
//!
//! The end of a story is reported when it is no longer among the stories of friends, for any reason,
//! while the stream is open. Such an event has no id: a client that was disconnected when a story
//! expired uses its `expires_at`.
//!
//! Events of deletions, edits and follows have no id either, and are not stored for disconnected clients.
//! So the rule for clients is: open the stream, then load the pages to show; load them again after each
//! `resync`. A resumed stream begins with `resync`, and a stream sends it whenever changes may have been
//! missed: the user's timeline was evicted, their follows changed, or there were more changes than are kept.

mod news;
#[cfg(test)]
mod tests;

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{FromRequestParts, State};
use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use axum::response::Response;
use bytes::Bytes;
use edge::{Held, Session, SessionUse};
use feed::stories::StoryRef;
use feed::{Cursor, Page, Refusal, Stamp, UserId};
use futures_util::stream;
use node::{Node, Watch};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::current_session::{CurrentSession, current};
use crate::error::{ApiError, ErrorBody};
use crate::guard::RouteKind;
use crate::input::OneUser;
use crate::params::UserPath;
use crate::query::Query;
use crate::request_id::carry_stream;
use crate::revocable::CHECK;
use crate::routes::Routes;
use crate::shares::Share;
use crate::state::AppState;
use crate::streams;
use news::{EVENTS_BYTES, News, Position, Question, STORIES_SHOWN, Source};

/// How far the clock of another node of the server can be ahead, in milliseconds: events of a later time never were.
const AHEAD_MS: u64 = 60_000;
/// Interval of the keep-alive comments of an idle stream.
const KEEP_ALIVE: Range<Duration> = Duration::from_secs(10)..Duration::from_secs(15);
/// Minimum time between two reads from the store, for a stream that had read everything: events that
/// arrive meanwhile are read together.
const PACE: Range<Duration> = Duration::from_millis(50)..Duration::from_millis(150);
/// The same of one that has read all but what came during the read.
const EARLY: Duration = Duration::from_millis(5);
/// Pause of a stream when there is no memory for its events.
const NO_ROOM_PAUSE: Range<Duration> = Duration::from_millis(500)..Duration::from_millis(1_500);
/// Pause of a stream that was notified of a change that is not visible everywhere yet.
const VISIBLE_PAUSE: Duration = Duration::from_millis(1);

pub(crate) fn route(routes: &mut Routes<'_>) {
    routes.on("GET", "/v1/users/{user}/events", RouteKind::Query, events);
}

/// The position to resume from: the header, which browsers send when they reconnect, or else the
/// query.
pub(crate) struct Resume(Option<Position>);

impl<S: Send + Sync> FromRequestParts<S> for Resume {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let mut asked = Query::parse(&parts.uri, &["last_event_id"])?.text("last_event_id")?;
        if let Some(header) = parts.headers.get("last-event-id") {
            asked = Some(header.to_str().unwrap_or("?").to_owned());
        }
        let position = asked.map(|asked| {
            let wrong = "Last-Event-ID is an id of an earlier event";
            Position::parse(&asked).ok_or_else(|| ApiError::bad_cursor(wrong).at("Last-Event-ID"))
        });
        Ok(Self(position.transpose()?))
    }
}

/// The client of a stream, who has one more stream open.
pub(crate) enum Caller {
    /// The stream ends with its key.
    Key(#[expect(dead_code, reason = "held, not read")] Share),
    /// The session of a user, checked while the stream is open.
    User(Arc<dyn Session>, #[expect(dead_code, reason = "held, not read")] Held),
}

impl Caller {
    /// Whether the client may still read.
    async fn is_valid(&self) -> bool {
        match self {
            Self::Key(_) => true,
            Self::User(session, _) => session.is_valid().await,
        }
    }
}

impl FromRequestParts<Arc<AppState>> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(
        parts: &mut Parts,
        state: &Arc<AppState>,
    ) -> Result<Self, ApiError> {
        if let Some(CurrentSession(session)) = current(parts) {
            let stream = session.begin_stream().ok_or_else(ApiError::too_many_streams)?;
            return Ok(Self::User(Arc::clone(session), stream));
        }
        state.shares.take(&state.access, &parts.headers).map(Self::Key)
    }
}

/// Stream new posts, mentions and stories
///
/// `event: post` for a post at home and `event: mention` for a mention, with the post as `data`;
/// `event: story` for a friend's story, with the story, and `event: story_expired`, with its `id`,
/// once it has expired or was deleted. `event: delete`, with its `id`, for a post that was deleted, and
/// `event: edit`, with the post, for one with a new text, whether the user has it at home or is mentioned
/// in it; clients ignore events for posts they do not show, and repeated events. `event: follow` and
/// `event: unfollow`, with the `id` of the other user, when the user follows or unfollows another user. After
/// `event: resync` clients load their pages again: they may be out of date, for example because a user whom
/// the user follows was deleted. Without `Last-Event-ID` the stream begins now. It ends when the user is deleted.
#[utoipa::path(
    get, path = "/v1/users/{user}/events", operation_id = "stream_events", tag = "timelines",
    params(
        UserPath,
        ("Last-Event-ID" = Option<String>, Header, description = "Resume after this event"),
        ("last_event_id" = Option<String>, Query, description = "The same, for clients that cannot set headers"),
    ),
    responses(
        (status = 200, description = "Server-sent events", content_type = "text/event-stream", body = String),
        (status = 404, description = "`user_not_found`", body = ErrorBody),
        (status = 422, description = "`bad_handle`", body = ErrorBody),
        (status = 429, description = "`too_many_requests`: the client has too many live streams", body = ErrorBody),
    )
)]
pub(crate) async fn events(
    State(state): State<Arc<AppState>>,
    caller: Caller,
    OneUser(user): OneUser,
    Resume(resume): Resume,
) -> Result<Response, ApiError> {
    // The watch begins before the first read, so no change in between is missed. For deletions this holds from
    // the first event of the stream on, since they are known for timelines in memory.
    let begin = move |node: &Node| {
        let user = node.resolve(&user)?;
        let watch = node.watch(user);
        drop(node.home_ids(user, &Page { cursor: Cursor::Newest, limit: 1 }));
        let latest = Stamp::first_of(node.now_ms() + AHEAD_MS).max(node.visible_up_to());
        let resume = resume.filter(|resume| resume.id() <= latest.0);
        let position = resume.unwrap_or(Position::after(node.visible_up_to().0));
        Some((user, watch, position, node.stories_of_friends(user, STORIES_SHOWN)))
    };
    let begun = state.streams.turn().await.read(&state.node, begin).await?;
    let (user, watch, position, shown) = begun.ok_or(Refusal::UserNotFound)?;
    let mut greeting = b"retry: 2000\n: connected\nid: ".to_vec();
    position.write(&mut greeting);
    greeting.extend_from_slice(b"\n\n");
    if resume.is_some() {
        greeting.extend_from_slice(news::RESYNC);
    }
    let subscription = Subscription {
        closing: state.closing.clone(),
        state,
        caller,
        user,
        changes_read: watch.changes_end(),
        watch,
        position,
        shown: shown.into(),
        mentions_read: None,
        stories_read: None,
        caught_up: false,
        store_from: Instant::now(),
    };
    let events = stream::unfold((Some(greeting), subscription), |(greeting, mut rest)| async {
        let bytes = match greeting {
            Some(greeting) => Bytes::from(greeting),
            None => rest.next().await?,
        };
        Some((Ok::<_, std::convert::Infallible>(bytes), (None, rest)))
    });
    let mut response = Response::new(Body::from_stream(carry_stream(events)));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    Ok(response)
}

/// One stream. Memory: about 1 KiB without its connection, 24 bytes for each story that is shown, at most
/// 24 kB, and 512 bytes for the newest changes of its user.
struct Subscription {
    state: Arc<AppState>,
    caller: Caller,
    user: UserId,
    watch: Watch,
    closing: watch::Receiver<bool>,
    position: Position,
    /// The newest stories of friends, newest first.
    shown: Arc<[StoryRef]>,
    /// The number of mentions, and of changes of stories, up to which everything is read.
    mentions_read: Option<u32>,
    stories_read: Option<u64>,
    /// The number of changes of posts and follows that were sent, or came before the stream.
    changes_read: u64,
    /// Whether everything was read at the last notification.
    caught_up: bool,
    /// The stream does not read from the store before this time.
    store_from: Instant,
}

/// A chunk that counts as sent to a user until it is dropped.
struct HeldChunk {
    chunk: Bytes,
    _held: Held,
}

impl AsRef<[u8]> for HeldChunk {
    fn as_ref(&self) -> &[u8] {
        &self.chunk
    }
}

/// A query, and the numbers of changes that its result includes.
struct Asked {
    question: Question,
    mentions: u32,
    stories: u64,
}

impl Subscription {
    /// The next events, or a comment when there are none for a while. `None` at shutdown, and after the
    /// client's key was revoked, the session has ended or the user was deleted.
    async fn next(&mut self) -> Option<Bytes> {
        let mut closing = self.closing.clone();
        let keep_alive = Instant::now() + streams::within(&KEEP_ALIVE);
        let next = async {
            loop {
                if !self.caught_up {
                    let events = self.read().await?;
                    // After the read, which may have waited: nothing is sent to a deleted user, or for a
                    // revoked key or a session that has ended.
                    if self.state.node.is_deleted(self.user) || !self.caller.is_valid().await {
                        return None;
                    }
                    if events.is_some() {
                        return events;
                    }
                    continue;
                }
                tokio::select! {
                    () = self.watch.changed() => self.caught_up = false,
                    () = next_expiry(&self.state.node, &self.shown) => self.caught_up = false,
                    () = tokio::time::sleep(CHECK), if matches!(self.caller, Caller::User(..)) => {
                        if !self.caller.is_valid().await {
                            return None;
                        }
                    }
                    () = tokio::time::sleep_until(keep_alive) => {
                        // Reading keeps the timeline in memory, so that deletions and edits wake the
                        // stream.
                        self.caught_up = false;
                        return Some(Bytes::from_static(b": keep-alive\n\n"));
                    }
                }
            }
        };
        tokio::select! {
            Ok(_) = closing.wait_for(|closing| *closing) => None,
            events = next => events,
        }
    }

    /// Reads new events, and returns them as a chunk if there are any. `None` if reading failed.
    async fn read(&mut self) -> Option<Option<Bytes>> {
        let asked = self.ask();
        let (asked, news) = match asked.question.answer(&self.state.node, Source::Memory) {
            Some(news) => (asked, news),
            None => self.read_store().await?,
        };
        let chunk = match news.events.is_empty() {
            true => None,
            false => match self.chunk(&news.events) {
                Some(chunk) => Some(chunk),
                None => {
                    // No state was changed: the same events are read again.
                    drop(news);
                    tokio::time::sleep(streams::within(&NO_ROOM_PAUSE)).await;
                    return Some(None);
                }
            },
        };
        if !news.more {
            (self.mentions_read, self.stories_read) = (Some(asked.mentions), Some(asked.stories));
        } else if chunk.is_none() {
            tokio::time::sleep(VISIBLE_PAUSE).await;
        }
        (self.position, self.shown, self.caught_up) = (news.position, news.shown, !news.more);
        self.changes_read = news.changes_read;
        Some(chunk)
    }

    /// Events as a chunk of the response, if there is enough memory; that of a user counts as sent to the user, too.
    fn chunk(&self, events: &[u8]) -> Option<Bytes> {
        let chunk = self.state.streams.chunk(events)?;
        match &self.caller {
            Caller::User(session, _) => {
                let held = session.hold(chunk.len(), SessionUse::Read)?;
                Some(Bytes::from_owner(HeldChunk { chunk, _held: held }))
            }
            Caller::Key(_) => Some(chunk),
        }
    }

    /// Reads new events where blocking is allowed.
    async fn read_store(&mut self) -> Option<(Asked, News)> {
        tokio::time::sleep_until(self.store_from).await;
        let turn = self.state.streams.turn().await;
        // A new query: events that arrived during the wait are included, and data that other streams
        // have read meanwhile, such as a post that woke thousands, is in memory now.
        let asked = self.ask();
        if let Some(news) = asked.question.answer(&self.state.node, Source::Memory) {
            return Some((asked, news));
        }
        let question = asked.question.clone();
        let read = move |node: &Node| question.answer(node, Source::Facts);
        let news = turn.read(&self.state.node, read).await;
        let news = news.inspect_err(|error| error.log("")).ok()??;
        if !news.more {
            self.store_from = Instant::now() + streams::within(&PACE);
        } else if news.events.len() < EVENTS_BYTES / 4 {
            // What came during the read is visible in a moment.
            self.store_from = Instant::now() + EARLY;
        }
        Some((asked, news))
    }

    fn ask(&mut self) -> Asked {
        // The order matters: everything visible up to `visible_up_to` is included in the numbers read next,
        // and in the pages that are read after them.
        let visible_up_to = self.state.node.visible_up_to().0;
        let (mentions, stories) = (self.watch.mentions(), self.state.node.story_changes());
        let now_ms = self.state.node.now_ms();
        let expired = self.shown.iter().any(|story| story.expires_ms <= now_ms);
        let question = Question {
            user: self.user,
            position: self.position,
            visible_up_to,
            changes_read: self.changes_read,
            changes: self.watch.changes_after(self.changes_read).into(),
            mentions_due: self.mentions_read != Some(mentions),
            stories_due: self.stories_read != Some(stories) || expired,
            shown: Arc::clone(&self.shown),
        };
        Asked { question, mentions, stories }
    }
}

/// Waits until the first of these stories expires.
async fn next_expiry(node: &Node, shown: &[StoryRef]) {
    match shown.iter().map(|story| story.expires_ms).min() {
        Some(at) => {
            let rest = Duration::from_millis(at.saturating_sub(node.now_ms()));
            tokio::time::sleep(rest).await;
        }
        None => std::future::pending().await,
    }
}
