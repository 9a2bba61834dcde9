//! Pages: `limit` and `cursor` in the query, `{"items", "next", "prev"}` in the response. Every list has this shape and
//! these bounds.
//!
//! A cursor is a position in the list, where a page begins or ends. The items are chosen when the page is read. Clients
//! pass cursors back unchanged.

use axum::body::Body;
use axum::extract::FromRequestParts;
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use axum::http::{HeaderValue, Uri};
use axum::response::Response;
use feed::{Page, PageEnds, Stamp, UserId, UserRef, limits};
use serde::Serialize;

use crate::current_session::{CurrentSession, current};
use crate::error::ApiError;
use crate::input::{decimal, user};
use crate::query::Query;

/// Approximate length of both cursors of a page, in bytes.
const CURSOR_BYTES: usize = 64;

/// Order of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reading {
    /// Descending ids: posts and stories.
    Down,
    /// Ascending ids: users.
    Up,
}

/// Place of a page in its list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// The page with the first items.
    Start,
    /// The first items from this id on, in the order of the list. The item with this id may have been removed. As a
    /// cursor, this is the id.
    From(u64),
    /// The last items before this id, for going back. As a cursor, this is the id after a `-`.
    Before(u64),
}

/// Requested page: place and maximum number of items.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) place: Place,
    pub(crate) limit: usize,
    /// Viewer from the query, if the route reads one.
    pub(crate) viewer: Option<UserRef>,
}

impl<S: Send + Sync> FromRequestParts<S> for Asked {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        Self::parse(&parts.uri, &["limit", "cursor"])
    }
}

/// Page that may be read on behalf of a viewer.
pub(crate) struct AskedFor(pub(crate) Asked);

impl<S: Send + Sync> FromRequestParts<S> for AskedFor {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let mut asked = Asked::parse(&parts.uri, &["limit", "cursor", "viewer"])?;
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

/// Parses `cursor` of a query with `parse`; `None` if the query has none.
pub(crate) fn cursor<T>(
    query: &mut Query,
    parse: impl FnOnce(&str) -> Option<T>,
) -> Result<Option<T>, ApiError> {
    let text = query.text("cursor").map_err(|_| ApiError::bad_cursor())?;
    text.map(|text| parse(&text).ok_or_else(ApiError::bad_cursor)).transpose()
}

impl Place {
    fn parse(text: &str) -> Option<Self> {
        let id = |digits| decimal(digits).filter(|id| *id <= Stamp::MAX.0);
        match text.strip_prefix('-') {
            Some(digits) => id(digits).map(Self::Before),
            None => id(text).map(Self::From),
        }
    }

    /// Appends the place as a cursor in JSON, or null without a place.
    fn push(place: Option<Self>, out: &mut Vec<u8>) {
        let (before, id): (&[u8], _) = match place {
            Some(Self::From(id)) => (b"\"", id),
            Some(Self::Before(id)) => (b"\"-", id),
            Some(Self::Start) | None => return out.extend_from_slice(b"null"),
        };
        out.extend_from_slice(before);
        push_number(id, out);
        out.push(b'"');
    }
}

impl Asked {
    fn parse(uri: &Uri, known: &[&'static str]) -> Result<Self, ApiError> {
        let mut query = Query::parse(uri, known)?;
        let (limit, viewer) = (limit(&mut query)?, named(&mut query)?);
        let place = cursor(&mut query, Place::parse)?.unwrap_or(Place::Start);
        Ok(Self { place, limit, viewer })
    }

    /// Makes the page of a list in this order. Without a cursor, it is the first page.
    pub(crate) fn of(&self, reading: Reading) -> Page {
        let down = reading == Reading::Down;
        let (below, above) = match self.place {
            Place::Start => (None, None),
            Place::From(id) if down => (id.checked_add(1), None),
            Place::From(id) => (None, id.checked_sub(1)),
            Place::Before(id) if down => (None, Some(id)),
            Place::Before(id) => (Some(id), None),
        };
        let is_back = matches!(self.place, Place::Before(_));
        Page { below, above, is_up: down == is_back, limit: self.limit }
    }

    /// Completes the response: `out` holds `{"items":[` and the items.
    pub(crate) fn answer(&self, reading: Reading, ends: PageEnds, mut out: Vec<u8>) -> Response {
        let (next, prev) = neighbors(reading, self.place, ends);
        out.extend_from_slice(b"],\"next\":");
        Place::push(next, &mut out);
        out.extend_from_slice(b",\"prev\":");
        Place::push(prev, &mut out);
        out.push(b'}');
        json(out)
    }
}

/// Makes a buffer with the beginning of a page, and capacity for `bytes` bytes of items.
pub(crate) fn opened(bytes: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes + CURSOR_BYTES);
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

/// Makes a buffer with the beginning of a page and these items.
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

/// Completes the response of a list that is read in one direction only. `out` holds the response up to the last item,
/// and `next` a cursor in which JSON escapes nothing.
pub(crate) fn answer(mut out: Vec<u8>, next: Option<&str>) -> Response {
    out.extend_from_slice(b"],\"next\":");
    match next {
        None => out.extend_from_slice(b"null"),
        Some(next) => {
            out.push(b'"');
            out.extend_from_slice(next.as_bytes());
            out.push(b'"');
        }
    }
    out.extend_from_slice(b",\"prev\":null}");
    json(out)
}

/// Cursors of the next and previous page, in the order of the list.
fn neighbors(
    reading: Reading,
    place: Place,
    PageEnds { first: newest, last: oldest, more }: PageEnds,
) -> (Option<Place>, Option<Place>) {
    let down = reading == Reading::Down;
    let (first, last) = if down { (newest, oldest) } else { (oldest, newest) };
    let after = |id: u64| {
        let beside = if down { id.checked_sub(1) } else { id.checked_add(1) };
        beside.map(Place::From)
    };
    let more_after = last.filter(|_| more).and_then(after);
    match place {
        Place::Start => (more_after, None),
        Place::From(id) => (more_after, Some(Place::Before(first.unwrap_or(id)))),
        Place::Before(id) => {
            (last.map_or(Some(Place::From(id)), after), first.filter(|_| more).map(Place::Before))
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

    fn check(query: &str, expect: Result<(Place, usize), (u16, &str)>) {
        let asked = Asked::parse(&format!("/?{query}").parse().unwrap(), &["limit", "cursor"]);
        let parsed = asked.map(|asked| (asked.place, asked.limit));
        let parsed = parsed.map_err(|error| (error.status.as_u16(), error.code));
        assert_eq!(parsed, expect, "{query:?}");
    }

    #[test]
    fn invalid_queries_are_refused() {
        check("", Ok((Place::Start, 20)));
        check("limit=1", Ok((Place::Start, 1)));
        check("limit=100&cursor=7", Ok((Place::From(7), 100)));
        check("cursor=-0", Ok((Place::Before(0), 20)));
        check("cursor=9223372036854775807", Ok((Place::From(i64::MAX as u64), 20)));
        for query in ["limit=", "limit=x", "limit=1&limit=1", "before=2", "cursor=1&cursor=1"] {
            check(query, Err((400, "bad_request")));
        }
        for query in ["limit=0", "limit=101", "limit=18446744073709551615"] {
            check(query, Err((422, "bad_limit")));
        }
        for id in ["", "-", "x", "+1", "--1", "01", "5.6", "%ff", "9223372036854775808"] {
            check(&format!("cursor={id}"), Err((422, "bad_cursor")));
        }
    }

    #[test]
    fn cursors_are_of_the_next_and_previous_page() {
        use Place::{Before, From, Start};
        let ends = |first, last, more| PageEnds { first: Some(first), last: Some(last), more };
        let none = PageEnds { first: None, last: None, more: false };
        for (reading, place, ends, expect) in [
            (Reading::Down, Start, ends(9, 5, true), (Some(From(4)), None)),
            (Reading::Down, Start, ends(9, 5, false), (None, None)),
            (Reading::Down, Start, none, (None, None)),
            (Reading::Down, From(4), ends(4, 2, true), (Some(From(1)), Some(Before(4)))),
            (Reading::Down, From(4), ends(3, 2, false), (None, Some(Before(3)))),
            (Reading::Down, From(4), none, (None, Some(Before(4)))),
            (Reading::Down, From(4), ends(1, 0, true), (None, Some(Before(1)))),
            (Reading::Down, Before(5), ends(9, 6, true), (Some(From(5)), Some(Before(9)))),
            (Reading::Down, Before(5), ends(9, 6, false), (Some(From(5)), None)),
            (Reading::Down, Before(5), none, (Some(From(5)), None)),
            (Reading::Up, Start, ends(4, 0, true), (Some(From(5)), None)),
            (Reading::Up, From(5), ends(9, 5, true), (Some(From(10)), Some(Before(5)))),
            (Reading::Up, From(5), none, (None, Some(Before(5)))),
            (Reading::Up, Before(5), ends(4, 1, true), (Some(From(5)), Some(Before(1)))),
            (Reading::Up, Before(0), none, (Some(From(0)), None)),
        ] {
            assert_eq!(neighbors(reading, place, ends), expect, "{reading:?} {place:?} {ends:?}");
        }
    }

    /// Reads a list from which one item was removed page by page, in both orders.
    #[test]
    fn pages_join_without_gap_or_repetition_in_both_directions() {
        let read = |page: Page| {
            let span = page.span(page.wanted());
            let of_span = |id: &u64| span.is_some_and(|span| span.low <= *id && *id <= span.high);
            let mut found: Vec<u64> = [0, 1, 2, 4, 5, 6, 7].into_iter().filter(of_span).collect();
            if !page.is_up {
                found.reverse();
            }
            found.truncate(page.wanted());
            feed::PageOf::from_scan(found, &page, |id| *id)
        };
        for (reading, all) in
            [(Reading::Down, [7, 6, 5, 4, 2, 1, 0]), (Reading::Up, [0, 1, 2, 4, 5, 6, 7])]
        {
            for limit in 1..9 {
                let (mut asked, mut there, mut back) =
                    (Asked { place: Place::Start, limit, viewer: None }, Vec::new(), Vec::new());
                let page = |asked: &Asked| {
                    let found = read(asked.of(reading));
                    let sides = neighbors(reading, asked.place, found.ends(&asked.of(reading)));
                    let mut items = found.items;
                    if reading == Reading::Up {
                        items.reverse();
                    }
                    (items, sides)
                };
                while let (items, (Some(next), _)) = page(&asked) {
                    there.extend(items);
                    asked.place = next;
                }
                there.extend(page(&asked).0);
                assert_eq!(there, all, "{reading:?} {limit}");
                while let (items, (_, Some(prev))) = page(&asked) {
                    back.splice(0..0, items);
                    asked.place = prev;
                }
                back.splice(0..0, page(&asked).0);
                assert_eq!(back, all, "{reading:?} {limit}");
            }
        }
    }
}
