//! Live updates as Server-Sent Events: new posts at home and new mentions, one stream a person.
//!
//! A stream holds a position and asks the node for what lies behind it whenever there may be
//! something new: it keeps no queue, so a slow reader costs no memory and is disconnected when it
//! takes nothing for a while. An event's id is the position behind it: whoever comes back with it
//! misses nothing and sees nothing twice. Posts deleted meanwhile are left out.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{FromRequestParts, State};
use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use axum::response::Response;
use bytes::Bytes;
use feed::{Cursor, Page, PageOf, PostId, Refusal, UserId, ids, limits};
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
/// Pause of a stream when the server is overloaded.
const OVERLOAD_PAUSE: Duration = Duration::from_secs(1);

pub(super) fn route(routes: &mut Routes<'_>) {
    routes.on("GET", "/v1/users/{user}/events", Entry::Query, events);
}

/// What an event tells of a post: that it is at home, then that it mentions the person.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Home,
    Mention,
}

/// Behind which event a stream stands. Events are ordered by post, then by kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Position {
    post: u64,
    kind: Kind,
}

impl Position {
    /// Reads `{post}.p` or `{post}.m`.
    fn parse(text: &str) -> Option<Self> {
        let (post, kind) = text.split_once('.')?;
        let kind = match kind {
            "p" => Kind::Home,
            "m" => Kind::Mention,
            _ => return None,
        };
        let post = decimal(post).filter(|post| *post <= ids::STAMP_MAX.0)?;
        Some(Self { post, kind })
    }

    fn write(self, out: &mut Vec<u8>) {
        push_number(self.post, out);
        out.extend_from_slice(match self.kind {
            Kind::Home => b".p",
            Kind::Mention => b".m",
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

/// New posts and mentions as they happen
///
/// `event: post` for a post at home and `event: mention` for a mention, with the post as `data`.
/// Without `Last-Event-ID` the stream begins now.
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
    let user = edge.read(move |node| node.resolve(&user)).await?.ok_or(Refusal::UserNotFound)?;
    // The watch begins before the first read: what comes between is heard of.
    let watch = edge.node.watch(user);
    let position = resume.unwrap_or(Position { post: edge.node.settled().0, kind: Kind::Mention });
    let mut greeting = b"retry: 2000\n: connected\nid: ".to_vec();
    position.write(&mut greeting);
    greeting.extend_from_slice(b"\n\n");
    let closing = edge.closing.clone();
    let subscription = Subscription { edge, user, watch, closing, position, caught_up: false };
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
    /// Whether all was read that was there at the last news.
    caught_up: bool,
}

impl Subscription {
    /// The next events, or a comment when there are none for a while. `None` at shutdown.
    async fn next(&mut self) -> Option<Bytes> {
        while !*self.closing.borrow() {
            if !self.caught_up {
                let (user, position) = (self.user, self.position);
                match self.edge.read(move |node| news(node, user, position)).await {
                    Ok(news) => {
                        (self.position, self.caught_up) = (news.position, !news.more);
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

/// What lies behind a position.
struct News {
    events: Vec<u8>,
    position: Position,
    more: bool,
}

/// Reads a page of home and one of mentions behind `position` and merges them, as far as both
/// reach: an event is told only when every earlier one is known.
fn news(node: &Node, user: UserId, position: Position) -> News {
    let settled = node.settled().0;
    let page = |after| Page { cursor: Cursor::After(PostId(after)), limit: limits::PAGE_MAX };
    let home = node.home_ids(user, &page(position.post));
    // Behind the post at home its own mention may still be due.
    let told = position.post.saturating_sub(u64::from(position.kind == Kind::Home));
    let mentions = node.mention_ids(user, &page(told));
    let end = [&home, &mentions].into_iter().filter_map(reach).fold(settled, u64::min);
    let at = |kind| move |post: &PostId| Position { post: post.0, kind };
    let mut due: Vec<Position> = home.items.iter().map(at(Kind::Home)).collect();
    due.extend(mentions.items.iter().map(at(Kind::Mention)));
    let read = due.len();
    due.retain(|event| event.post <= end);
    due.sort_unstable();
    let mut events = Vec::new();
    for event in &due {
        write_event(node, *event, &mut events);
    }
    let more = due.len() < read || home.more || mentions.more;
    let told = due.last().copied().unwrap_or(position);
    // With nothing left, all up to `settled` is told: posts from before a later follow are no news.
    let position = if more { told } else { told.max(Position { post: end, kind: Kind::Mention }) };
    News { events, position, more }
}

/// Up to which post a page is complete, if it does not hold all there is.
fn reach(page: &PageOf<PostId>) -> Option<u64> {
    page.items.first().filter(|_| page.more).map(|newest| newest.0)
}

fn write_event(node: &Node, event: Position, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(match event.kind {
        Kind::Home => b"event: post\nid: ",
        Kind::Mention => b"event: mention\nid: ",
    });
    event.write(out);
    out.extend_from_slice(b"\ndata: ");
    if node.post(PostId(event.post), out) {
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
