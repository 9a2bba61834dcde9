//! Live updates as Server-Sent Events, one stream a person: new posts at home, new mentions, and
//! stories of friends that come and go.
//!
//! A stream holds a position and asks the node for what lies behind it whenever there may be
//! something new: it keeps no queue, so a slow reader costs no memory and is disconnected when it
//! takes nothing for a while. An event's id is the position behind it: whoever comes back with it
//! misses nothing and sees nothing twice. Posts and stories that are gone meanwhile are left out.
//!
//! That a story is gone is told when it is not among the stories of friends any more, for whatever
//! reason, while the stream is open. Such an event has no id: whoever was away when a story expired
//! knows by its `expires_at`.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{FromRequestParts, State};
use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use axum::response::Response;
use bytes::Bytes;
use feed::stories::Told;
use feed::{Cursor, Page, PageOf, PostId, Refusal, StoryId, UserId, ids, limits};
use futures_util::stream;
use node::{Node, Watch};
use tokio::sync::watch;

use crate::http::error::{ErrorBody, Problem};
use crate::http::guard::Entry;
use crate::http::input::{OneUser, decimal};
use crate::http::page::push_number;
use crate::http::{Edge, Routes};

/// How often an idle stream shows that it lives.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// Of so many of the newest stories of friends a stream tells that they are gone.
const STORIES_SHOWN: usize = 1_000;
/// Pause of a stream when the server is overloaded.
const OVERLOAD_PAUSE: Duration = Duration::from_secs(1);

pub(super) fn route(routes: &mut Routes<'_>) {
    routes.on("GET", "/v1/users/{user}/events", Entry::Query, events);
}

/// What an event tells: that a post is at home, then that it mentions the person; or that a friend
/// told a story.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Home,
    Mention,
    Story,
}

/// Behind which event a stream stands. Events are ordered by id, then by kind; posts and stories
/// share the ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Position {
    id: u64,
    kind: Kind,
}

impl Position {
    /// Behind everything up to an id.
    fn behind(id: u64) -> Self {
        Self { id, kind: Kind::Story }
    }

    /// Reads an id and `.p`, `.m` or `.s`.
    fn parse(text: &str) -> Option<Self> {
        let (id, kind) = text.split_once('.')?;
        let kind = match kind {
            "p" => Kind::Home,
            "m" => Kind::Mention,
            "s" => Kind::Story,
            _ => return None,
        };
        let id = decimal(id).filter(|id| *id <= ids::STAMP_MAX.0)?;
        Some(Self { id, kind })
    }

    fn write(self, out: &mut Vec<u8>) {
        push_number(self.id, out);
        out.extend_from_slice(match self.kind {
            Kind::Home => b".p",
            Kind::Mention => b".m",
            Kind::Story => b".s",
        });
    }
}

/// The position to resume from: the header, which browsers send when they reconnect, or else the
/// query.
pub(super) struct Resume(Option<Position>);

impl<S: Send + Sync> FromRequestParts<S> for Resume {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let mut asked = None;
        for (name, value) in form_urlencoded::parse(parts.uri.query().unwrap_or("").as_bytes()) {
            if name != "last_event_id" || asked.replace(value.into_owned()).is_some() {
                return Err(Problem::bad_request("the only parameter is last_event_id, once"));
            }
        }
        if let Some(header) = parts.headers.get("last-event-id") {
            asked = Some(header.to_str().unwrap_or("?").to_owned());
        }
        let position = asked.map(|asked| {
            Position::parse(&asked)
                .ok_or_else(|| Problem::bad_cursor("Last-Event-ID is an id of an earlier event"))
        });
        Ok(Self(position.transpose()?))
    }
}

/// New posts, mentions and stories as they happen
///
/// `event: post` for a post at home and `event: mention` for a mention, with the post as `data`;
/// `event: story` for a friend's story, with the story, and `event: story_expired`, with its `id`,
/// once it is not to be seen any more. Without `Last-Event-ID` the stream begins now.
#[utoipa::path(
    get, path = "/v1/users/{user}/events", tag = "timelines",
    params(
        ("user" = String, Path, description = "number or @handle", example = "@ada"),
        ("Last-Event-ID" = Option<String>, Header, description = "resumes behind this event"),
        ("last_event_id" = Option<String>, Query, description = "the same, without the header"),
    ),
    responses(
        (status = 200, content_type = "text/event-stream", body = String),
        (status = 400, description = "`bad_cursor`", body = ErrorBody),
        (status = 404, description = "`user_not_found`", body = ErrorBody),
    )
)]
pub(super) async fn events(
    State(edge): State<Arc<Edge>>,
    OneUser(user): OneUser,
    Resume(resume): Resume,
) -> Result<Response, Problem> {
    // The watch begins before the first read: what comes between is heard of.
    let watch = move |node: &Node| {
        let user = node.resolve(&user)?;
        let watch = node.watch(user);
        Some((user, watch, node.settled(), node.stories_of_friends(user, STORIES_SHOWN)))
    };
    let (user, watch, settled, shown) = edge.read(watch).await?.ok_or(Refusal::UserNotFound)?;
    let position = resume.unwrap_or(Position::behind(settled.0));
    let mut greeting = b"retry: 2000\n: connected\nid: ".to_vec();
    position.write(&mut greeting);
    greeting.extend_from_slice(b"\n\n");
    let closing = edge.closing.clone();
    let subscription =
        Subscription { edge, user, watch, closing, position, shown, caught_up: false };
    let events = stream::unfold((Some(greeting), subscription), |(greeting, mut rest)| async {
        let bytes = match greeting {
            Some(greeting) => Bytes::from(greeting),
            None => rest.next().await?,
        };
        Some((Ok::<_, std::convert::Infallible>(bytes), (None, rest)))
    });
    let mut response = Response::new(Body::from_stream(events));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    Ok(response)
}

/// One stream.
struct Subscription {
    edge: Arc<Edge>,
    user: UserId,
    watch: Watch,
    closing: watch::Receiver<bool>,
    position: Position,
    /// The newest stories of friends, newest first.
    shown: Vec<Told>,
    /// Whether all was read that was there at the last news.
    caught_up: bool,
}

impl Subscription {
    /// The next events, or a comment when there are none for a while. `None` at shutdown.
    async fn next(&mut self) -> Option<Bytes> {
        while !*self.closing.borrow() {
            if !self.caught_up {
                let (user, position, shown) = (self.user, self.position, self.shown.clone());
                match self.edge.read(move |node| news(node, user, position, &shown)).await {
                    Ok(news) => {
                        (self.position, self.caught_up) = (news.position, !news.more);
                        self.shown = news.shown;
                        if !news.events.is_empty() {
                            return Some(news.events.into());
                        }
                    }
                    Err(_) => tokio::time::sleep(OVERLOAD_PAUSE).await,
                }
                continue;
            }
            tokio::select! {
                Ok(_) = self.closing.wait_for(|closing| *closing) => return None,
                () = self.watch.changed() => self.caught_up = false,
                () = next_expiry(&self.edge.node, &self.shown) => self.caught_up = false,
                () = tokio::time::sleep(KEEP_ALIVE) => {
                    // Should the timeline not be active, reading makes it so: without it there
                    // are no news.
                    self.caught_up = false;
                    return Some(Bytes::from_static(b": keep-alive\n\n"));
                }
            }
        }
        None
    }
}

/// Waits until the first of these stories expires.
async fn next_expiry(node: &Node, shown: &[Told]) {
    match shown.iter().map(|told| told.expires_ms).min() {
        Some(at) => {
            let rest = Duration::from_millis(at.saturating_sub(node.now_ms()));
            tokio::time::sleep(rest).await;
        }
        None => std::future::pending().await,
    }
}

/// What lies behind a position.
struct News {
    events: Vec<u8>,
    position: Position,
    shown: Vec<Told>,
    more: bool,
}

/// Reads a page of home, one of mentions and one of stories behind `position` and merges them, as
/// far as all reach: an event is told only when every earlier one is known. Before them come the
/// ends of stories that were `shown` before.
fn news(node: &Node, user: UserId, position: Position, shown: &[Told]) -> News {
    let settled = node.settled().0;
    let home = node.home_ids(user, &behind(position.id, PostId));
    // Behind the post at home its own mention may still be due.
    let told = position.id.saturating_sub(u64::from(position.kind == Kind::Home));
    let mentions = node.mention_ids(user, &behind(told, PostId));
    let now_shown = node.stories_of_friends(user, STORIES_SHOWN);
    let unread =
        now_shown.iter().rev().map(|told| told.story).filter(|story| story.0 > position.id);
    let unread = unread.take(limits::PAGE_MAX + 1).collect();
    let stories = PageOf::from_scan(unread, &behind(position.id, StoryId));

    let reaches = [reach(&home), reach(&mentions), reach(&stories)];
    let end = reaches.into_iter().flatten().fold(settled, u64::min);
    let mut due = Vec::new();
    due.extend(home.items.iter().map(|post| Position { id: post.0, kind: Kind::Home }));
    due.extend(mentions.items.iter().map(|post| Position { id: post.0, kind: Kind::Mention }));
    due.extend(stories.items.iter().map(|story| Position { id: story.0, kind: Kind::Story }));
    let read = due.len();
    due.retain(|event| event.id <= end);
    due.sort_unstable();
    let mut events = Vec::new();
    for story in gone(shown, &now_shown) {
        write_expired(story, &mut events);
    }
    for event in &due {
        write_event(node, user, *event, &mut events);
    }
    let more = due.len() < read || home.more || mentions.more || stories.more;
    let told = due.last().copied().unwrap_or(position);
    // With nothing left, all up to `settled` is told: posts from before a later follow are no news.
    let position = if more { told } else { told.max(Position::behind(end)) };
    News { events, position, shown: now_shown, more }
}

fn behind<I>(position: u64, id: fn(u64) -> I) -> Page<I> {
    Page { cursor: Cursor::After(id(position)), limit: limits::PAGE_MAX }
}

/// Up to which id a page is complete, if it does not hold all there is.
fn reach<I: Copy + Into<u64>>(page: &PageOf<I>) -> Option<u64> {
    page.items.first().filter(|_| page.more).map(|newest| (*newest).into())
}

/// What was shown and is not any more, unless it only had to make room. Both newest first.
fn gone(shown: &[Told], now_shown: &[Told]) -> Vec<StoryId> {
    let full = now_shown.last().filter(|_| now_shown.len() >= STORIES_SHOWN);
    let oldest = full.map_or(0, |told| told.story.0);
    let still = |story: &StoryId| {
        now_shown.binary_search_by(|told| story.cmp(&told.story)).is_ok() || story.0 < oldest
    };
    shown.iter().map(|told| told.story).filter(|story| !still(story)).collect()
}

fn write_expired(story: StoryId, out: &mut Vec<u8>) {
    out.extend_from_slice(b"event: story_expired\ndata: {\"id\":\"");
    push_number(story.0, out);
    out.extend_from_slice(b"\"}\n\n");
}

/// Nothing if the post or story is gone.
fn write_event(node: &Node, user: UserId, event: Position, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(match event.kind {
        Kind::Home => b"event: post\nid: ".as_slice(),
        Kind::Mention => b"event: mention\nid: ",
        Kind::Story => b"event: story\nid: ",
    });
    event.write(out);
    out.extend_from_slice(b"\ndata: ");
    let written = match event.kind {
        Kind::Home | Kind::Mention => node.post(PostId(event.id), out),
        Kind::Story => node.story(StoryId(event.id), Some(user), out),
    };
    if written {
        out.extend_from_slice(b"\n\n");
    } else {
        out.truncate(start);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_read_as_they_are_written() {
        for (text, valid) in [
            ("0.p", true),
            ("9223372036854775807.m", true),
            ("9223372036854775808.m", false),
            ("1", false),
            ("1.", false),
            ("7.s", true),
            ("1.x", false),
            ("01.p", false),
            (".p", false),
            ("1.p.m", false),
        ] {
            let position = Position::parse(text);
            assert_eq!(position.is_some(), valid, "{text}");
            let mut written = Vec::new();
            position.inspect(|position| position.write(&mut written));
            assert!(!valid || written == text.as_bytes(), "{text}");
        }
    }
}
