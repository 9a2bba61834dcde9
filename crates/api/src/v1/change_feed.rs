//! Change feed: all changes in the order of the log, for the other systems of a product. Read page by page, with or
//! without waiting, or as Server-Sent Events.
//!
//! The node keeps kinds and ids. The user, post or story of a change is read when the change is sent, as `/v1` shows it
//! to the application, so an erased one is null.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{FromRequestParts, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue};
use axum::response::Response;
use bytes::Bytes;
use edge::request_id::carry_stream;
use edge::{Beat, Pulse, STREAM_PACE, Scope, random_within};
use feed::{PostId, StoryId, limits};
use futures_util::stream;
use node::Node;
use node::changes::{Kind, Of, Place, Record, Records, Unavailable};
use node::news::EVENTS_BYTES;
use serde::Serialize;
use serde_json::value::RawValue;
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::{Instant, sleep, sleep_until};
use utoipa::PartialSchema;
use utoipa::ToSchema;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};

use crate::auth::grant;
use crate::described;
use crate::error::ApiError;
use crate::input::{MayRead, decimal};
use crate::page::{self, answer, opened_with, to_json};
use crate::query::Query;
use crate::route::{Inputs, Reads, Route, inline};
use crate::state::AppState;
use crate::time::rfc3339;
use crate::v1::events::{Caller, NO_ROOM_PAUSE};
use crate::v1::posts::PostView;
use crate::v1::stories::StoryView;
use crate::v1::users::Profile;

/// Version of the schemas of all kinds.
const VERSION: u32 = 1;
/// Longest wait of a request for a change, in seconds.
const WAIT_SECS_MAX: u64 = 30;
/// Last event of a stream whose position is no longer kept.
const GONE: &[u8] = b"event: gone\ndata: {}\n\n";

pub(crate) fn routes() -> Vec<Route> {
    let errors = ["changes_off", "changes_gone", "changes_failed", "bad_position"];
    vec![
        Route::get("/v1/changes", list)
            .named("list_changes", "List changes")
            .scope(Scope::Admin)
            .text(
                "All changes in the order of the log, oldest first, if the server keeps a change \
                 feed (`roost serve --changes-max`). `next` is never null: it is the `after` of \
                 the next request. Each change comes once. `changes_gone`: the changes after the \
                 position are no longer kept, so read `after=end`, then everything from the other \
                 routes, and continue from that `next`. `user`, `post` and `story` are as they \
                 are now, and null for a key without the scope `read`.",
            )
            .lists::<ChangeView>("A page of changes")
            .errors(&errors)
            .error(ApiError::too_many_streams()),
        Route::get("/v1/changes/events", events)
            .named("stream_changes", "Stream changes")
            .scope(Scope::Admin)
            .text(
                "`event: change` has a change as `data`, as in `list_changes`, and its position \
                 as `id`. `event: gone` is the last one: the stream was too slow, and the next \
                 changes are no longer kept. Without `Last-Event-ID` and `after` the stream \
                 begins with the next change.",
            )
            .answers_with("Server-sent events", "text/event-stream", inline::<String>)
            .errors(&errors),
    ]
}

/// Returns the names of all kinds of changes.
pub fn kind_names() -> impl Iterator<Item = &'static str> {
    Kind::ALL.iter().map(|kind| kind.name())
}

/// Name of a kind.
pub(crate) struct KindName(Kind);

impl Serialize for KindName {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.name())
    }
}

impl PartialSchema for KindName {
    fn schema() -> RefOr<Schema> {
        let schema = ObjectBuilder::new().schema_type(Type::String);
        let schema = schema.enum_values(Some(kind_names()));
        schema.description(Some("Kind of the change.")).into()
    }
}

impl ToSchema for KindName {
    fn name() -> Cow<'static, str> {
        Cow::Borrowed("ChangeKind")
    }
}

/// A change.
#[derive(Serialize, ToSchema)]
pub(crate) struct ChangeView {
    /// Position of the change: greater than that of all earlier ones, and the same on all nodes of a cluster.
    #[schema(example = "1729-0")]
    position: String,
    #[schema(format = DateTime, example = "2026-11-21T09:30:00.123Z")]
    changed_at: String,
    kind: KindName,
    /// Version of the kind's fields. Later versions may add fields.
    #[schema(example = 1)]
    version: u32,
    /// User who made the change, or whom it is about: the author of a post or story, unless it is a reaction.
    #[schema(example = "0")]
    user_id: String,
    /// The other user of a relation.
    other_id: Option<String>,
    post_id: Option<String>,
    story_id: Option<String>,
    /// The user, with kinds that change the profile.
    user: Option<Profile>,
    /// The post, with kinds that write it.
    #[schema(value_type = Option<PostView>)]
    post: Option<Box<RawValue>>,
    /// The story, when it is posted and still live.
    #[schema(value_type = Option<StoryView>)]
    story: Option<Box<RawValue>>,
}

impl ChangeView {
    /// Renders a change from the facts. May block.
    pub(crate) fn new(
        node: &Node,
        (place, time_ms, record): &(Place, u64, Record),
        may_read: bool,
    ) -> Self {
        let Record { kind, user, id } = *record;
        let of = kind.of();
        let shows = |wanted| may_read && kind.shows() && of == wanted;
        let id_of = |wanted| (of == wanted).then(|| id.to_string());
        Self {
            position: place.to_string(),
            changed_at: rfc3339(*time_ms),
            kind: KindName(kind),
            version: VERSION,
            user_id: user.0.to_string(),
            other_id: id_of(Of::Other),
            post_id: id_of(Of::Post),
            story_id: id_of(Of::Story),
            user: shows(Of::User).then(|| Profile::read(node.facts(), user)).flatten(),
            post: raw(shows(Of::Post), |out| node.post(PostId(id), out)),
            story: raw(shows(Of::Story), |out| node.story(StoryId(id), None, out)),
        }
    }
}

/// JSON that `render` appends; `None` if it is not wanted or does not exist.
fn raw(is_wanted: bool, render: impl FnOnce(&mut Vec<u8>) -> bool) -> Option<Box<RawValue>> {
    let mut out = Vec::new();
    let json = (is_wanted && render(&mut out)).then(|| String::from_utf8(out).ok()).flatten()?;
    RawValue::from_string(json).ok()
}

/// Start of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    /// The oldest kept change.
    Oldest,
    /// The next change.
    End,
    /// The change after a place.
    After(Place),
}

impl Start {
    /// Parses `end`, a group, or a group and the index of a change.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let number = |digits| decimal(digits).filter(|number| *number <= i64::MAX as u64);
        Some(match text.split_once('-') {
            _ if text == "end" => Self::End,
            None => Self::After(Place::after(number(text)?)),
            Some((group, index)) => {
                let index = Some(u32::try_from(decimal(index)?).ok()?);
                Self::After(Place { group: number(group)?, index })
            }
        })
    }

    fn of(text: Option<&str>, default: Self) -> Result<Self, ApiError> {
        text.map_or(Ok(default), |text| Self::parse(text).ok_or_else(ApiError::bad_position))
    }

    /// Reads changes. May block.
    fn read(self, node: &Node, limit: usize) -> Result<Records, ApiError> {
        let after = match self {
            Self::Oldest => None,
            Self::End => Some(node.changes_end()),
            Self::After(place) => Some(place),
        };
        node.changes(after, limit).map_err(|error| match error {
            Unavailable::Off => ApiError::changes_off(),
            Unavailable::Gone => ApiError::changes_gone(),
            Unavailable::Failed => ApiError::changes_failed(),
            Unavailable::Unreadable(_) => ApiError::fault(&error),
        })
    }
}

/// Query of a list.
pub(crate) struct Wanted {
    start: Start,
    limit: usize,
    wait: Duration,
}

impl<S: Send + Sync> FromRequestParts<S> for Wanted {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let mut query = Query::parse(&parts.uri, &["after", "limit", "wait_s"])?;
        let start = Start::of(query.text("after")?.as_deref(), Start::Oldest)?;
        let limit = page::limit(&mut query)?;
        let wait = query.number("wait_s")?.unwrap_or_default();
        if wait > WAIT_SECS_MAX {
            return Err(ApiError::bad_wait(WAIT_SECS_MAX));
        }
        Ok(Self { start, limit, wait: Duration::from_secs(wait) })
    }
}

impl Reads for Wanted {
    fn describe(inputs: &mut Inputs) {
        let text = "Position after which to read: `next` of another page, `position` of a change, or \
            `end`, after which there are only later changes. Default: the oldest kept change.";
        inputs.query("after", text);
        described::limit(inputs);
        let text = "Seconds to wait for a change if there is none.";
        inputs.number_or("wait_s", text, 0..=WAIT_SECS_MAX, Some(0));
        inputs.error(ApiError::bad_wait(WAIT_SECS_MAX));
    }
}

/// Start of a stream: the header `Last-Event-ID`, otherwise the query.
pub(crate) struct Resume(Start);

impl<S: Send + Sync> FromRequestParts<S> for Resume {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let mut asked = Query::parse(&parts.uri, &["after"])?.text("after")?;
        if let Some(header) = parts.headers.get("last-event-id") {
            asked = Some(header.to_str().unwrap_or("?").to_owned());
        }
        Start::of(asked.as_deref(), Start::End).map(Self)
    }
}

impl Reads for Resume {
    fn describe(inputs: &mut Inputs) {
        inputs.header("Last-Event-ID", "Position after which to stream.");
        inputs.query("after", "Replaces `Last-Event-ID` for clients that cannot set headers.");
    }
}

pub(crate) async fn list(
    State(state): State<Arc<AppState>>,
    headers: HeaderMap,
    MayRead(mut may_read): MayRead,
    Wanted { mut start, limit, wait }: Wanted,
) -> Result<Response, ApiError> {
    let _reader = (!wait.is_zero()).then(|| state.feed_reader()).transpose()?;
    let (deadline, mut closing) = (Instant::now() + wait, state.closing.clone());
    loop {
        let read = move |node: &Node| {
            let Records { items, next } = start.read(node, limit)?;
            let views = items.iter().map(|item| ChangeView::new(node, item, may_read));
            let out = (!items.is_empty()).then(|| opened_with(views));
            Ok::<_, ApiError>((out, next, next.group < node.changes_end().group))
        };
        let (items, next, more) = state.read_feed(read).await??;
        let is_over = !more && Instant::now() >= deadline || *closing.borrow();
        if items.is_some() || is_over {
            let items = items.unwrap_or_else(|| page::opened(0));
            return Ok(answer(items, Some(&next.to_string())));
        }
        start = Start::After(next);
        if !more {
            tokio::select! {
                // Not at once, so that one read returns the changes of many groups.
                () = async {
                    state.node.changes_after(next).await;
                    sleep(STREAM_PACE).await;
                } => {}
                () = sleep_until(deadline) => {}
                Ok(_) = closing.wait_for(|closing| *closing) => {}
            }
            let grant = grant(&state.access, &headers).filter(|grant| grant.allows(Scope::Admin));
            may_read &= grant.ok_or_else(ApiError::unauthorized)?.allows(Scope::Read);
        }
    }
}

pub(crate) async fn events(
    State(state): State<Arc<AppState>>,
    caller: Caller,
    MayRead(may_read): MayRead,
    Resume(start): Resume,
) -> Result<Response, ApiError> {
    let begin = move |node: &Node| {
        let end = node.changes_end();
        // Reads one change to refuse a position that is not kept.
        start.read(node, 1)?;
        Ok::<_, ApiError>(if let Start::After(place) = start { place } else { end })
    };
    let reader = state.feed_reader()?;
    let after = state.read_feed(begin).await??;
    let greeting = format!("retry: 2000\n: connected\nid: {after}\n\n");
    let feed = Feed {
        closing: state.closing.clone(),
        state,
        _held: (caller, reader),
        after,
        may_read,
        is_over: false,
        pulse: Pulse::new(Instant::now()),
    };
    let events = stream::unfold((Some(greeting), feed), |(greeting, mut feed)| async {
        let bytes = match greeting {
            Some(greeting) => Bytes::from(greeting),
            None => feed.next().await?,
        };
        Some((Ok::<_, std::convert::Infallible>(bytes), (None, feed)))
    });
    let mut response = Response::new(Body::from_stream(carry_stream(events)));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    Ok(response)
}

/// Open stream of changes. It has a position and no queue.
struct Feed {
    state: Arc<AppState>,
    _held: (Caller, OwnedSemaphorePermit),
    after: Place,
    may_read: bool,
    /// Whether the last event was sent.
    is_over: bool,
    closing: watch::Receiver<bool>,
    pulse: Pulse,
}

/// Rendered events, the place after them, and whether there are more.
type Frames = (Vec<u8>, Place, bool);

impl Feed {
    /// Waits for changes, or for the time of a keep-alive comment. `None` at the end.
    async fn next(&mut self) -> Option<Bytes> {
        if self.is_over {
            return None;
        }
        let mut closing = self.closing.clone();
        let next = async {
            loop {
                let node = self.state.node.clone();
                let changed = node.changes_after(self.after);
                if self.pulse.next(changed).await == Beat::KeepAlive {
                    // The position moves on without changes, or the client could later ask for one that is not kept.
                    let id = format!(": keep-alive\nid: {}\n\n", self.after);
                    return Some(Bytes::from(id));
                }
                if let Some(chunk) = self.read().await? {
                    return Some(chunk);
                }
            }
        };
        tokio::select! {
            Ok(_) = closing.wait_for(|closing| *closing) => None,
            events = next => events,
        }
    }

    /// Reads changes and returns them as a chunk, if any. `None` if reading failed.
    async fn read(&mut self) -> Option<Option<Bytes>> {
        self.pulse.turn().await;
        let (after, may_read) = (self.after, self.may_read);
        let read = self.state.read_feed(move |node| frames(node, after, may_read)).await;
        let (events, next, more) = match read.and_then(|frames| frames) {
            Ok(frames) => frames,
            Err(error) => {
                error.log("");
                self.is_over = true;
                let is_gone = error.code == ApiError::changes_gone().code;
                return is_gone.then(|| Some(Bytes::from_static(GONE)));
            }
        };
        let chunk = match events.is_empty() {
            true => None,
            false => match self.state.unsent.chunk(&events) {
                Some(chunk) => Some(chunk),
                None => {
                    // The position has not moved, so the next read returns the same events.
                    drop(events);
                    sleep(random_within(&NO_ROOM_PAUSE)).await;
                    return Some(None);
                }
            },
        };
        self.after = next;
        self.pulse.caught_up(more);
        if !more {
            self.pulse.took_turn(Instant::now(), false);
        }
        Some(chunk)
    }
}

/// Reads and renders the next changes as events. May block.
fn frames(node: &Node, after: Place, may_read: bool) -> Result<Frames, ApiError> {
    let Records { items, next } = Start::After(after).read(node, limits::PAGE_MAX)?;
    let (mut out, mut sent) = (Vec::new(), after);
    for item in &items {
        if out.len() >= EVENTS_BYTES {
            return Ok((out, sent, true));
        }
        sent = item.0;
        let view = ChangeView::new(node, item, may_read);
        out.extend_from_slice(format!("event: change\nid: {sent}\ndata: ").as_bytes());
        out.extend_from_slice(&to_json(&view));
        out.extend_from_slice(b"\n\n");
    }
    let more = next.group < node.changes_end().group || next.index.is_some();
    Ok((out, next, more))
}
