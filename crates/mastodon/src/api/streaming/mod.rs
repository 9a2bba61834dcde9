//! Live streams: new posts at home and of all users, edits, deletions and notifications, as server-sent events or over
//! a WebSocket.
//!
//! A stream has no past events. Apps load their timelines when they connect, and again after they lost a connection.

mod channel;
mod events;
mod news;
mod socket;

use std::sync::Arc;

use axum::Extension;
use axum::body::Body;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::{Path, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use feed::accounts::AccessScope as S;
use feed::{ListId, UserId};
use futures_util::stream;

use self::channel::{Channel, Of};
use self::events::{Batch, Events};
use super::lists::FOR_YOU;
use crate::access::Needs;
use crate::answers::Client;
use crate::endpoints::Endpoints;
use crate::entities::Renderer;
use crate::entities::json::Json;
use crate::error::ApiError;
use crate::fields::Params;
use crate::input::Me;
use crate::state::Shared;
use crate::streams::Published;
use crate::tokens::Access;

/// Adds the routes of streams.
pub(crate) fn routes(table: &mut Endpoints) {
    let read_statuses_read_notifications = Needs::Stream(&[S::ReadStatuses, S::ReadNotifications]);
    // The scope of a channel is checked when the channel is known.
    table.get("/api/v1/streaming", read_statuses_read_notifications, connect);
    table.get("/api/v1/streaming/health", Needs::Nothing, health);
    table.get("/api/v1/streaming/{*channel}", read_statuses_read_notifications, listen);
}

/// Event that is sent only on the direct channel.
const CONVERSATION: &str = "conversation";

/// Event of a stream.
#[derive(Clone, Debug)]
struct Event {
    name: &'static str,
    /// Entity as JSON, or an id; empty if the event has no data.
    payload: Arc<str>,
    /// Changed post, on channels of posts that any user may see.
    published: Option<Arc<Published>>,
    /// Subscribed lists of the user that have the post.
    lists: Vec<ListId>,
}

impl Event {
    fn of(name: &'static str, entity: Json) -> Self {
        Self { name, payload: Arc::from(entity.into_text()), published: None, lists: Vec::new() }
    }

    fn notification(entity: Json) -> Self {
        Self::of("notification", entity)
    }

    fn is_notification(&self) -> bool {
        self.name == "notification"
    }

    /// Whether the event is sent on this channel.
    fn is_for(&self, channel: &Channel) -> bool {
        match &self.published {
            Some(published) => channel.has(published),
            None => match channel {
                Channel::Notifications => self.is_notification(),
                Channel::Direct => self.name == CONVERSATION,
                _ if self.name == CONVERSATION => false,
                // The author of a deleted post is unknown, so deletions are sent on all channels of lists.
                Channel::List(list) => self.name == "delete" || self.lists.contains(list),
                _ => true,
            },
        }
    }
}

/// Opens a WebSocket, or server-sent events of the channel in `stream`.
pub(crate) async fn connect(
    State(state): State<Shared>,
    Extension(access): Extension<Access>,
    Me(user): Me,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
    Params(fields): Params,
) -> Result<Response, ApiError> {
    let (stream, of) = (fields.one("stream")?, Of::parse(&fields)?);
    match upgrade {
        Ok(upgrade) => socket::open(&state, access, user, upgrade, fields).await,
        Err(_) => begin(state, access, user, (stream.unwrap_or_default(), of)).await,
    }
}

/// Opens server-sent events of the channel in the path, such as `user` or `public/local`.
pub(crate) async fn listen(
    State(state): State<Shared>,
    Extension(access): Extension<Access>,
    Me(user): Me,
    Path(path): Path<String>,
    Params(fields): Params,
) -> Result<Response, ApiError> {
    begin(state, access, user, (&path.replace('/', ":"), Of::parse(&fields)?)).await
}

async fn begin(
    state: Shared,
    access: Access,
    user: UserId,
    (channel, of): (&str, Of<'_>),
) -> Result<Response, ApiError> {
    let unknown = || ApiError::new(StatusCode::BAD_REQUEST, "Unknown channel requested");
    let channel = Channel::parse(channel, of).ok_or_else(unknown)?;
    if !access.allows(channel.scope()) {
        return Err(ApiError::out_of_scope());
    }
    let open = state.streams.begin(user)?;
    if !exists(&state, user, &channel).await.ok_or_else(ApiError::internal)? {
        return Err(ApiError::not_found());
    }
    let mut events = Events::new(&state, access, user, open);
    events.listen(std::slice::from_ref(&channel)).await.ok_or_else(ApiError::internal)?;
    let begin = (Some(b":connected\n\n".to_vec()), events);
    let chunks = stream::unfold(begin, move |(greeting, mut events)| {
        let (state, channel) = (Arc::clone(&state), channel.clone());
        async move {
            let bytes = match greeting {
                Some(greeting) => greeting,
                None => next(&mut events, &channel).await?,
            };
            // For a client that does not read, the stream ends here when there is no memory for its events.
            let chunk = state.answers.hold(Client::User(user), bytes)?;
            Some((Ok::<_, std::convert::Infallible>(chunk), (None, events)))
        }
    });
    let mut response = Response::new(Body::from_stream(chunks));
    let kind = HeaderValue::from_static("text/event-stream");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    Ok(response)
}

/// Whether the list of a channel belongs to the user.
async fn exists(state: &Shared, user: UserId, channel: &Channel) -> Option<bool> {
    let Some(list) = channel.list() else { return Some(true) };
    let exists = move |from: &Renderer| from.node.facts().list(user, list).is_some();
    if list == FOR_YOU { Some(true) } else { state.read_for_stream(exists).await }
}

/// Next events as bytes, or a keep-alive message. Entities have no line breaks, because JSON escapes them.
async fn next(events: &mut Events, channel: &Channel) -> Option<Vec<u8>> {
    loop {
        let due = events.ready().await?;
        let (Batch::Own(found) | Batch::Public(found)) = events.read(due).await? else {
            return Some(b":thump\n\n".to_vec());
        };
        let mut out = String::new();
        for event in found.iter().filter(|event| event.is_for(channel)) {
            // Browsers drop events without data, so Mastodon sends the word `undefined`.
            let data = if event.payload.is_empty() { "undefined" } else { &event.payload };
            out.extend(["event: ", event.name, "\ndata: ", data, "\n\n"]);
        }
        if !out.is_empty() {
            return Some(out.into_bytes());
        }
    }
}

pub(crate) async fn health() -> &'static str {
    "OK"
}
