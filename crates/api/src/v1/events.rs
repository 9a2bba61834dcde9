//! Live updates as Server-Sent Events, one stream per user: new posts in the home timeline, new mentions, deleted and
//! edited posts, follows and unfollows by the user, new and expired stories of friends.
//!
//! A stream holds a position and reads the events after it from the node whenever new events are possible. It has no
//! queue, so a slow reader costs at most the bytes in its connection; a client that stops reading is disconnected. The
//! id of an event is the position after it: a client that reconnects with this id misses nothing and gets nothing
//! twice. Posts and stories that were deleted or have expired meanwhile are skipped.
//!
//! A stream that is woken first reads from memory, on its async worker. If something is missing in memory, it waits for
//! one of the few turns of [`edge::BlockingReads::streams`], which are reserved for streams. A post that wakes
//! thousands of streams therefore does not delay requests.
//!
//! `story_expired` is sent when a story disappears from the stories of friends, for any reason, while the stream is
//! open. The event has no id: a client that was disconnected at that time uses `expires_at` of the story.
//!
//! Events of deletions, edits and follows have no id either, and are not stored for disconnected clients. The rule for
//! clients: open the stream, then load the pages to show, and load them again after each `resync`. A resumed stream
//! begins with `resync`. A stream also sends it whenever it may have missed changes: the user's timeline was evicted,
//! their follows changed, or there were more changes than the node keeps.

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
use edge::request_id::carry_stream;
use edge::{Beat, Held, Pulse, Session, SessionUse, Share, held_bytes, random_within};
use feed::{Refusal, UserId};
use futures_util::stream;
use node::Node;
use node::news::{Answered, EVENTS_BYTES, Interest, NewsPosition, Question, Source, Subscription};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::current_session::{CurrentSession, current};
use crate::error::ApiError;
use crate::input::OneUser;
use crate::query::Query;
use crate::route::{Inputs, Reads, Route, inline};
use crate::rule::May::Own;
use crate::state::AppState;
use news::Frames;

/// Pause of a stream when memory for its events is short.
pub(crate) const NO_ROOM_PAUSE: Range<Duration> =
    Duration::from_millis(500)..Duration::from_millis(1_500);
/// Pause of a stream whose change is not yet visible to all readers.
const VISIBLE_PAUSE: Duration = Duration::from_millis(1);

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::get("/v1/users/{user}/events", events)
            .named("stream_events", "Stream new posts, mentions and stories")
            .users(Own)
            .text(
                "`event: post` (a new post at home) and `event: mention` have the post as \
                 `data`. `event: story` has a friend's new story, `event: story_expired` the \
                 `id` of a story that expired or was deleted. `event: delete` has the `id` of a \
                 deleted post, `event: edit` a post with a new text; both are sent for posts at \
                 home and for posts that mention the user. Clients ignore events for posts they \
                 do not show, and repeated events. `event: follow` and `event: unfollow` have \
                 the `id` of the user whom the user followed or unfollowed. After `event: \
                 resync` clients load their pages again, which may be out of date, for example \
                 because a followed user was deleted. Without `Last-Event-ID` the stream begins \
                 with the next event. It ends when the user is deleted.",
            )
            .answers_with("Server-sent events", "text/event-stream", inline::<String>),
    ]
}

/// Position to resume from: the header `Last-Event-ID`, which browsers send when they reconnect, otherwise the query
/// parameter.
pub(crate) struct Resume(Option<NewsPosition>);

impl<S: Send + Sync> FromRequestParts<S> for Resume {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let mut asked = Query::parse(&parts.uri, &["last_event_id"])?.text("last_event_id")?;
        if let Some(header) = parts.headers.get("last-event-id") {
            asked = Some(header.to_str().unwrap_or("?").to_owned());
        }
        let position = asked.map(|asked| news::parse(&asked).ok_or_else(ApiError::bad_event_id));
        Ok(Self(position.transpose()?))
    }
}

impl Reads for Resume {
    fn describe(inputs: &mut Inputs) {
        inputs.header("Last-Event-ID", "Resume after this event.");
        inputs.query(
            "last_event_id",
            "Replaces `Last-Event-ID` for clients that cannot set headers.",
        );
        inputs.errors(&["bad_event_id"]);
    }
}

/// Client of a stream; counts its open streams.
pub(crate) enum Caller {
    Key(#[expect(dead_code, reason = "held, not read")] Share<[u8; 32]>),
    /// Session of a user.
    User(Arc<dyn Session>, #[expect(dead_code, reason = "held, not read")] Held),
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
        state.share(&parts.headers).map(Self::Key)
    }
}

impl Reads for Caller {
    fn describe(inputs: &mut Inputs) {
        inputs.error(ApiError::too_many_streams());
    }
}

pub(crate) async fn events(
    State(state): State<Arc<AppState>>,
    caller: Caller,
    OneUser(user): OneUser,
    Resume(resume): Resume,
) -> Result<Response, ApiError> {
    let begin = move |node: &Node| {
        let user = node.resolve(&user)?;
        let from = resume.filter(|resume| node.may_have_reached(*resume));
        Some((user, Subscription::begin(node, user, Interest::MentionsAndStories, from)))
    };
    let begun = state.read_for_stream(begin).await?;
    let (user, subscription) = begun.ok_or(Refusal::UserNotFound)?;
    let mut greeting = b"retry: 2000\n: connected\nid: ".to_vec();
    news::write(subscription.position(), &mut greeting);
    greeting.extend_from_slice(b"\n\n");
    if resume.is_some() {
        greeting.extend_from_slice(news::RESYNC);
    }
    let subscription = Stream {
        closing: state.closing.clone(),
        state,
        caller,
        user,
        subscription,
        pulse: Pulse::new(Instant::now()),
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

/// Open event stream of a user. Memory: about 1 KiB plus its connection and its subscription.
struct Stream {
    state: Arc<AppState>,
    caller: Caller,
    user: UserId,
    subscription: Subscription,
    closing: watch::Receiver<bool>,
    /// Schedule of reads and keep-alive comments. Only reads from the store wait for their turn.
    pulse: Pulse,
}

impl Stream {
    /// Waits for the next events, or for the time of a keep-alive comment, and returns them. `None` at shutdown and
    /// after the user's deletion.
    async fn next(&mut self) -> Option<Bytes> {
        let mut closing = self.closing.clone();
        let next = async {
            loop {
                if self.pulse.next(self.subscription.changed()).await == Beat::KeepAlive {
                    return Some(Bytes::from_static(b": keep-alive\n\n"));
                }
                let events = self.read().await?;
                // The user is checked after the read, which may have waited, because a deleted user gets nothing.
                if self.state.node.is_deleted(self.user) {
                    return None;
                }
                if events.is_some() {
                    return events;
                }
            }
        };
        tokio::select! {
            Ok(_) = closing.wait_for(|closing| *closing) => None,
            events = next => events,
        }
    }

    /// Reads new events and returns them as a chunk, if any. `None` if reading failed.
    async fn read(&mut self) -> Option<Option<Bytes>> {
        let question = self.subscription.ask();
        let (question, (answered, events)) = match self.answer(&question) {
            Some(answered) => (question, answered),
            None => self.read_store().await?,
        };
        let chunk = match events.is_empty() {
            true => None,
            false => match self.chunk(&events) {
                Some(chunk) => Some(chunk),
                None => {
                    // The position has not moved, so the next read returns the same events.
                    drop(events);
                    tokio::time::sleep(random_within(&NO_ROOM_PAUSE)).await;
                    return Some(None);
                }
            },
        };
        if answered.more && chunk.is_none() {
            tokio::time::sleep(VISIBLE_PAUSE).await;
        }
        self.pulse.caught_up(answered.more);
        self.subscription.go_on(&question, answered);
        Some(chunk)
    }

    /// Reads the events that are in memory. `None` if one of them is not in memory.
    fn answer(&self, question: &Question) -> Option<(Answered, Vec<u8>)> {
        answer(question, &self.state.node, self.user, Source::Memory)
    }

    /// Makes a chunk of the response, if memory suffices. A user's chunk also counts towards the bytes sent to the
    /// user.
    fn chunk(&self, events: &[u8]) -> Option<Bytes> {
        let chunk = self.state.unsent.chunk(events)?;
        match &self.caller {
            Caller::User(session, _) => {
                let held = session.hold(chunk.len(), SessionUse::Read)?;
                Some(held_bytes(chunk, held))
            }
            Caller::Key(_) => Some(chunk),
        }
    }

    /// Reads new events; may read the store.
    async fn read_store(&mut self) -> Option<(Question, (Answered, Vec<u8>))> {
        self.pulse.turn().await;
        let turn = self.state.reads.streams().next().await;
        // The question is asked again, to include events that arrived during the wait. Other streams may meanwhile have
        // read the missing data into memory, for example a post that woke thousands of streams.
        let question = self.subscription.ask();
        if let Some(answered) = self.answer(&question) {
            return Some((question, answered));
        }
        let (asked, node, user) = (question.clone(), self.state.node.clone(), self.user);
        let read = turn.run(move || answer(&asked, &node, user, Source::Facts)).await;
        let read = read.map_err(ApiError::from).inspect_err(|error| error.log("")).ok()??;
        let (answered, events) = &read;
        // After a full chunk, the next chunk follows without a pause.
        if !answered.more || events.len() < EVENTS_BYTES / 4 {
            self.pulse.took_turn(Instant::now(), answered.more);
        }
        Some((question, read))
    }
}

/// Reads the events for a question.
fn answer(
    question: &Question,
    node: &Node,
    user: UserId,
    source: Source,
) -> Option<(Answered, Vec<u8>)> {
    let mut frames = Frames { node, user, source, out: Vec::new() };
    let answered = question.answer(node, source, &mut frames)?;
    Some((answered, frames.out))
}
