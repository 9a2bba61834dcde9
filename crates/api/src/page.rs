//! Pages of lists: `limit`, `before` and `after` in the query, `{"items", "next", "prev"}` in the response, and the
//! same links in the `Link` header. Every list has this form and these bounds.
//!
//! Posts and stories are listed newest first, users by ascending id. `before` and `after` always compare ids, so the
//! next page is `before` for posts and `after` for users.

use axum::body::Body;
use axum::extract::FromRequestParts;
use axum::http::header::{CONTENT_TYPE, LINK};
use axum::http::request::Parts;
use axum::http::{HeaderValue, Uri};
use axum::response::Response;
use feed::{Cursor, Page, PageEnds, Stamp, UserId, UserRef, limits};
use serde::Serialize;

use crate::current_session::{CurrentSession, current};
use crate::error::ApiError;
use crate::input::user;
use crate::query::Query;

/// Approximate length of both links of a page, in bytes.
const LINK_BYTES: usize = 192;

/// The order of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reading {
    /// Descending ids: posts and stories.
    Down,
    /// Ascending ids: users.
    Up,
}

/// Requested page: path, position and maximum number of items.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) cursor: Cursor<u64>,
    pub(crate) limit: usize,
    /// Viewer from the query, if the route reads one.
    pub(crate) viewer: Option<UserRef>,
    uri: Uri,
}

impl<S: Send + Sync> FromRequestParts<S> for Asked {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        Self::parse(&parts.uri, &["limit", "before", "after"])
    }
}

/// Page that may be read on behalf of a viewer.
pub(crate) struct AskedFor(pub(crate) Asked);

impl<S: Send + Sync> FromRequestParts<S> for AskedFor {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let mut asked = Asked::parse(&parts.uri, &["limit", "before", "after", "viewer"])?;
        asked.viewer = asked.viewer.or_else(|| own(parts));
        Ok(Self(asked))
    }
}

/// Viewer of a route that is not a list.
pub(crate) struct For(pub(crate) Option<UserRef>);

impl<S: Send + Sync> FromRequestParts<S> for For {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        viewer(parts, &mut Query::parse(&parts.uri, &["viewer"])?).map(Self)
    }
}

/// Viewer of a request: `viewer` in the query, otherwise the user who sends the request.
pub(crate) fn viewer(parts: &Parts, query: &mut Query) -> Result<Option<UserRef>, ApiError> {
    Ok(named(query)?.or_else(|| own(parts)))
}

/// User who sends a request; `None` for an application.
fn own(parts: &Parts) -> Option<UserRef> {
    current(parts).map(|CurrentSession(session)| UserRef::Id(UserId(session.user())))
}

/// Parses `viewer` of a query.
fn named(query: &mut Query) -> Result<Option<UserRef>, ApiError> {
    let viewer = query.text("viewer")?.map(|text| user(&text)).transpose();
    viewer.map_err(|error| error.at("viewer"))
}

/// Parses `limit` of a query, with the same bounds for every list.
pub(crate) fn limit(query: &mut Query) -> Result<usize, ApiError> {
    let Some(limit) = query.number("limit")? else { return Ok(limits::PAGE_DEFAULT) };
    let limit = usize::try_from(limit).ok().filter(|limit| (1..=limits::PAGE_MAX).contains(limit));
    limit.ok_or_else(|| ApiError::bad_limit(limits::PAGE_MAX))
}

/// Parses a `before` or `after` that is an id.
fn cursor(query: &mut Query, name: &'static str) -> Result<Option<u64>, ApiError> {
    let wrong = || ApiError::bad_cursor("a cursor must be an id from next or prev").at(name);
    let number = query.number(name).map_err(|_| wrong())?;
    match number {
        Some(id) if id > Stamp::MAX.0 => Err(wrong()),
        number => Ok(number),
    }
}

impl Asked {
    fn parse(uri: &Uri, known: &[&'static str]) -> Result<Self, ApiError> {
        let mut query = Query::parse(uri, known)?;
        let (limit, viewer) = (limit(&mut query)?, named(&mut query)?);
        let cursor = match (cursor(&mut query, "before")?, cursor(&mut query, "after")?) {
            (None, None) => Cursor::Newest,
            (Some(before), None) => Cursor::Before(before),
            (None, Some(after)) => Cursor::After(after),
            (Some(_), Some(_)) => {
                return Err(ApiError::bad_cursor("give before or after, not both").at("after"));
            }
        };
        Ok(Self { cursor, limit, viewer, uri: uri.clone() })
    }

    /// The page of a list in this order; without a cursor, the first page.
    pub(crate) fn of(&self, reading: Reading) -> Page {
        let page = Page::at(self.cursor, self.limit);
        let is_first_up = reading == Reading::Up && self.cursor == Cursor::Newest;
        Page { is_up: page.is_up || is_first_up, ..page }
    }

    /// Completes the response: `out` holds `{"items":[` and the items.
    pub(crate) fn answer(&self, reading: Reading, ends: PageEnds, out: Vec<u8>) -> Response {
        let (next, prev) = neighbors(reading, self.cursor, ends);
        let link = |cursor| self.link(cursor);
        answer(out, next.map(link).as_deref(), prev.map(link).as_deref())
    }

    fn link(&self, cursor: Cursor<u64>) -> Vec<u8> {
        // The path matched a route and its users were parsed, so JSON escapes nothing in it.
        let path = self.uri.path().as_bytes();
        let mut link = Vec::with_capacity(path.len() + LINK_BYTES / 2);
        link.extend_from_slice(path);
        link.extend_from_slice(b"?limit=");
        push_number(self.limit as u64, &mut link);
        let cursor = match cursor {
            Cursor::Newest => None,
            Cursor::Before(id) => Some((b"&before=".as_slice(), id)),
            Cursor::After(id) => Some((b"&after=".as_slice(), id)),
        };
        if let Some((name, id)) = cursor {
            link.extend_from_slice(name);
            push_number(id, &mut link);
        }
        push_viewer(self.viewer.as_ref(), &mut link);
        link
    }
}

/// Appends the `viewer` of a query to a link, if any.
pub(crate) fn push_viewer(viewer: Option<&UserRef>, link: &mut Vec<u8>) {
    match viewer {
        Some(UserRef::Id(id)) => {
            link.extend_from_slice(b"&viewer=");
            push_number(id.0.into(), link);
        }
        Some(UserRef::Handle(handle)) => {
            link.extend_from_slice(b"&viewer=@");
            link.extend_from_slice(handle.as_str().as_bytes());
        }
        None => {}
    }
}

/// A buffer with the beginning of a page, and capacity for `bytes` bytes of items.
pub(crate) fn opened(bytes: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes + LINK_BYTES);
    out.extend_from_slice(b"{\"items\":[");
    out
}

/// Serializes numbers and strings as JSON.
pub(crate) fn to_json(body: &impl Serialize) -> Vec<u8> {
    let Ok(json) = serde_json::to_vec(body) else {
        unreachable!("strings and numbers can be serialized into memory");
    };
    json
}

/// A buffer with the beginning of a page and these items.
pub(crate) fn opened_with(items: impl Iterator<Item = impl Serialize>) -> Vec<u8> {
    let mut out = opened(0);
    for (index, item) in items.enumerate() {
        if index > 0 {
            out.push(b',');
        }
        let Ok(()) = serde_json::to_writer(&mut out, &item) else {
            unreachable!("strings and numbers can be serialized into memory");
        };
    }
    out
}

/// Completes the response of a list: `out` holds `{"items":[` and the items. Links are paths in which JSON escapes
/// nothing.
pub(crate) fn answer(mut out: Vec<u8>, next: Option<&[u8]>, prev: Option<&[u8]>) -> Response {
    const REL_BYTES: usize = b"<>; rel=\"next\", ".len();
    let length = |link: Option<&[u8]>| link.map_or(0, |link| link.len() + REL_BYTES);
    let mut header = Vec::with_capacity(length(next) + length(prev));
    out.push(b']');
    for (name, link) in [(b"next", next), (b"prev", prev)] {
        out.extend_from_slice(b",\"");
        out.extend_from_slice(name);
        let Some(link) = link else {
            out.extend_from_slice(b"\":null");
            continue;
        };
        out.extend_from_slice(b"\":\"");
        out.extend_from_slice(link);
        out.push(b'"');
        let before: &[u8] = if header.is_empty() { b"<" } else { b", <" };
        for part in [before, link, b">; rel=\"", name, b"\""] {
            header.extend_from_slice(part);
        }
    }
    out.push(b'}');
    let mut response = json(out);
    if !header.is_empty()
        && let Ok(header) = HeaderValue::from_maybe_shared(bytes::Bytes::from(header))
    {
        response.headers_mut().insert(LINK, header);
    }
    response
}

/// Cursors of the next and previous page, in the order of the list.
fn neighbors(
    reading: Reading,
    cursor: Cursor<u64>,
    PageEnds { first: newest, last: oldest, more }: PageEnds,
) -> (Option<Cursor<u64>>, Option<Cursor<u64>>) {
    let down = reading == Reading::Down;
    let (first, last) = if down { (newest, oldest) } else { (oldest, newest) };
    let on = |id| if down { Cursor::Before(id) } else { Cursor::After(id) };
    let back = |id| if down { Cursor::After(id) } else { Cursor::Before(id) };
    let more_after = last.filter(|_| more).map(on);
    match cursor {
        Cursor::Newest => (more_after, None),
        Cursor::Before(id) | Cursor::After(id) if cursor == on(id) => {
            // There is nothing after `id`: the previous page ends with `id` itself.
            let beside = if down { id.checked_sub(1) } else { id.checked_add(1) };
            (more_after, first.or(beside).map(back))
        }
        // There is nothing before the cursor: the next page is the first one.
        Cursor::Before(_) | Cursor::After(_) => {
            (Some(last.map_or(Cursor::Newest, on)), first.filter(|_| more).map(back))
        }
    }
}

/// Makes a JSON response from bytes.
pub(crate) fn json(body: impl Into<Body>) -> Response {
    let mut response = Response::new(body.into());
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// Appends a decimal number.
pub(crate) fn push_number(number: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(query: &str, expect: Result<(Cursor<u64>, usize), (u16, &str)>) {
        let asked =
            Asked::parse(&format!("/?{query}").parse().unwrap(), &["limit", "before", "after"]);
        let parsed = asked.map(|asked| (asked.cursor, asked.limit));
        let parsed = parsed.map_err(|error| (error.status.as_u16(), error.code));
        assert_eq!(parsed, expect, "{query:?}");
    }

    #[test]
    fn invalid_queries_are_refused() {
        check("", Ok((Cursor::Newest, 20)));
        check("limit=1", Ok((Cursor::Newest, 1)));
        check("limit=100&before=7", Ok((Cursor::Before(7), 100)));
        check("after=0", Ok((Cursor::After(0), 20)));
        check("after=9223372036854775807", Ok((Cursor::After(i64::MAX as u64), 20)));
        for query in ["limit=", "limit=x", "limit=1&limit=1", "page=2", "as=1"] {
            check(query, Err((400, "bad_request")));
        }
        for query in ["limit=0", "limit=101", "limit=18446744073709551615"] {
            check(query, Err((422, "bad_limit")));
        }
        for query in ["before=1&after=2", "before=", "after=-1", "after=9223372036854775808"] {
            check(query, Err((400, "bad_cursor")));
        }
    }

    #[test]
    fn links_are_to_the_next_and_previous_page() {
        use Cursor::{After, Before, Newest as Start};
        let ends = |first, last, more| PageEnds { first: Some(first), last: Some(last), more };
        let none = PageEnds { first: None, last: None, more: false };
        for (reading, cursor, ends, expect) in [
            (Reading::Down, Start, ends(9, 5, true), (Some(Before(5)), None)),
            (Reading::Down, Start, ends(9, 5, false), (None, None)),
            (Reading::Down, Start, none, (None, None)),
            (Reading::Down, Before(5), ends(4, 2, true), (Some(Before(2)), Some(After(4)))),
            (Reading::Down, Before(5), ends(4, 2, false), (None, Some(After(4)))),
            (Reading::Down, Before(5), none, (None, Some(After(4)))),
            (Reading::Down, Before(0), none, (None, None)),
            (Reading::Down, After(5), ends(9, 6, true), (Some(Before(6)), Some(After(9)))),
            (Reading::Down, After(5), ends(9, 6, false), (Some(Before(6)), None)),
            (Reading::Down, After(5), none, (Some(Start), None)),
            (Reading::Up, Start, ends(4, 0, true), (Some(After(4)), None)),
            (Reading::Up, After(4), ends(9, 5, true), (Some(After(9)), Some(Before(5)))),
            (Reading::Up, After(4), none, (None, Some(Before(5)))),
            (Reading::Up, Before(5), ends(4, 1, true), (Some(After(4)), Some(Before(1)))),
            (Reading::Up, Before(0), none, (Some(Start), None)),
        ] {
            assert_eq!(neighbors(reading, cursor, ends), expect, "{reading:?} {cursor:?} {ends:?}");
        }
    }
}
