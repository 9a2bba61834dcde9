//! Pages: `limit`, `before` and `after` in the query, and the links to the neighbouring pages in
//! the body and in the `Link` header.
//!
//! Posts are read newest first, people by ascending id. In both, `before` and `after` compare ids,
//! so reading on means `before` for posts and `after` for people.

use axum::body::Body;
use axum::extract::FromRequestParts;
use axum::http::header::{CONTENT_TYPE, LINK};
use axum::http::request::Parts;
use axum::http::{HeaderValue, Uri};
use axum::response::Response;
use feed::{Cursor, Order, Page, PostId, Span, ids, limits};

use crate::http::error::Problem;
use crate::http::input::decimal;

/// Where a page lies among ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Where reading begins.
    Start,
    /// Next to this id, below it.
    Before(u64),
    /// Next to this id, above it.
    After(u64),
}

/// In which direction a list is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reading {
    /// From the highest id down: posts.
    Down,
    /// From the lowest id up: people.
    Up,
}

/// What is on a page, in the order of reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ends {
    pub(crate) first: Option<u64>,
    pub(crate) last: Option<u64>,
    /// Whether there are more in the direction asked for.
    pub(crate) more: bool,
}

/// A page as asked for, of at most `MAX` items.
pub(crate) struct Asked<const MAX: usize> {
    pub(crate) place: Place,
    pub(crate) limit: usize,
    uri: Uri,
}

impl<const MAX: usize, S: Send + Sync> FromRequestParts<S> for Asked<MAX> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let (place, limit) = parse(parts.uri.query().unwrap_or(""), MAX)?;
        Ok(Self { place, limit, uri: parts.uri.clone() })
    }
}

fn parse(query: &str, limit_max: usize) -> Result<(Place, usize), Problem> {
    let (mut limit, mut before, mut after) = (None, None, None);
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        let slot = match &*name {
            "limit" => &mut limit,
            "before" => &mut before,
            "after" => &mut after,
            _ => return Err(Problem::bad_request("known parameters are limit, before and after")),
        };
        if slot.replace(decimal(&value)).is_some() {
            return Err(Problem::bad_request("a query parameter is given twice"));
        }
    }
    let limit = match limit {
        None => limits::PAGE_DEFAULT,
        Some(limit) => limit
            .and_then(|limit| usize::try_from(limit).ok())
            .filter(|limit| (1..=limit_max).contains(limit))
            .ok_or_else(|| Problem::bad_request(format!("a limit is 1 to {limit_max}")))?,
    };
    let place = match (before, after) {
        (None, None) => Place::Start,
        (Some(before), None) => Place::Before(cursor(before)?),
        (None, Some(after)) => Place::After(cursor(after)?),
        (Some(_), Some(_)) => return Err(Problem::bad_cursor("give before or after, not both")),
    };
    Ok((place, limit))
}

fn cursor(id: Option<u64>) -> Result<u64, Problem> {
    id.filter(|id| *id <= ids::STAMP_MAX.0)
        .ok_or_else(|| Problem::bad_cursor("a cursor is an id as this server gave it out"))
}

impl<const MAX: usize> Asked<MAX> {
    /// The page of a timeline.
    pub(crate) fn of_posts(&self) -> Page {
        let cursor = match self.place {
            Place::Start => Cursor::Newest,
            Place::Before(id) => Cursor::Before(PostId(id)),
            Place::After(id) => Cursor::After(PostId(id)),
        };
        Page { cursor, limit: self.limit }
    }

    /// The ids of people to scan for the page and one more; `None` if there can be none.
    pub(crate) fn of_people(&self) -> Option<Span> {
        let limit = self.limit + 1;
        match self.place {
            Place::Start => Some(Span { limit, ..Span::ALL }),
            Place::After(id) => Some(Span { low: id.checked_add(1)?, limit, ..Span::ALL }),
            Place::Before(id) => {
                let high = id.checked_sub(1)?;
                Some(Span { low: 0, high, limit, order: Order::Descending })
            }
        }
    }

    /// What a scan of [`Asked::of_people`] found, in order of ids, and whether there are more.
    pub(crate) fn people_found<T>(&self, mut found: Vec<T>) -> (Vec<T>, bool) {
        let more = found.len() > self.limit;
        found.truncate(self.limit);
        if matches!(self.place, Place::Before(_)) {
            found.reverse();
        }
        (found, more)
    }

    /// Completes the answer: `out` holds `{"items":[` and the items.
    pub(crate) fn answer(&self, reading: Reading, ends: Ends, mut out: Vec<u8>) -> Response {
        let (next, prev) = neighbours(reading, self.place, ends);
        let mut link = Vec::new();
        out.extend_from_slice(b"],\"next\":");
        self.write_neighbour(next, "next", &mut out, &mut link);
        out.extend_from_slice(b",\"prev\":");
        self.write_neighbour(prev, "prev", &mut out, &mut link);
        out.push(b'}');
        let mut response = json(out);
        if let Ok(link) = HeaderValue::from_maybe_shared(bytes::Bytes::from(link))
            && !link.is_empty()
        {
            response.headers_mut().insert(LINK, link);
        }
        response
    }

    fn write_neighbour(
        &self,
        place: Option<Place>,
        relation: &str,
        body: &mut Vec<u8>,
        link: &mut Vec<u8>,
    ) {
        let Some(place) = place else {
            body.extend_from_slice(b"null");
            return;
        };
        let start = body.len() + 1;
        body.push(b'"');
        // The path matched a route and its user was parsed: it holds nothing that JSON escapes.
        body.extend_from_slice(self.uri.path().as_bytes());
        body.extend_from_slice(b"?limit=");
        push_number(self.limit as u64, body);
        let (name, id) = match place {
            Place::Start => ("", None),
            Place::Before(id) => ("&before=", Some(id)),
            Place::After(id) => ("&after=", Some(id)),
        };
        body.extend_from_slice(name.as_bytes());
        if let Some(id) = id {
            push_number(id, body);
        }
        if !link.is_empty() {
            link.extend_from_slice(b", ");
        }
        link.push(b'<');
        link.extend_from_slice(body.get(start..).unwrap_or_default());
        link.extend_from_slice(b">; rel=\"");
        link.extend_from_slice(relation.as_bytes());
        link.push(b'"');
        body.push(b'"');
    }
}

/// The pages behind and in front of a page.
fn neighbours(reading: Reading, place: Place, ends: Ends) -> (Option<Place>, Option<Place>) {
    let down = reading == Reading::Down;
    let on = |id| if down { Place::Before(id) } else { Place::After(id) };
    let back = |id| if down { Place::After(id) } else { Place::Before(id) };
    let more_behind = ends.last.filter(|_| ends.more).map(on);
    match place {
        Place::Start => (more_behind, None),
        Place::Before(id) | Place::After(id) if place == on(id) => {
            // Nothing behind `id`: the page in front of it ends with `id` itself.
            let beside = if down { id.checked_sub(1) } else { id.checked_add(1) };
            (more_behind, ends.first.or(beside).map(back))
        }
        // Nothing in front of the cursor: behind it is where reading begins.
        Place::Before(_) | Place::After(_) => {
            (Some(ends.last.map_or(Place::Start, on)), ends.first.filter(|_| ends.more).map(back))
        }
    }
}

/// A JSON answer from its bytes.
pub(crate) fn json(body: Vec<u8>) -> Response {
    let mut response = Response::new(Body::from(body));
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

    fn check(query: &str, expect: Result<(Place, usize), &str>) {
        let parsed = parse(query, 100).map_err(|problem| problem.code);
        assert_eq!(parsed, expect, "{query:?}");
    }

    #[test]
    fn queries_are_strict() {
        check("", Ok((Place::Start, 20)));
        check("limit=1", Ok((Place::Start, 1)));
        check("limit=100&before=7", Ok((Place::Before(7), 100)));
        check("after=0", Ok((Place::After(0), 20)));
        check("after=9223372036854775807", Ok((Place::After(i64::MAX as u64), 20)));
        for query in ["limit=0", "limit=101", "limit=", "limit=x", "limit=1&limit=1", "page=2"] {
            check(query, Err("bad_request"));
        }
        for query in ["before=1&after=2", "before=", "after=-1", "after=9223372036854775808"] {
            check(query, Err("bad_cursor"));
        }
    }

    #[test]
    fn links_lead_on_and_back() {
        use Place::{After, Before, Start};
        let ends = |first, last, more| Ends { first: Some(first), last: Some(last), more };
        let none = Ends { first: None, last: None, more: false };
        for (reading, place, ends, expect) in [
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
            (Reading::Up, Start, ends(0, 4, true), (Some(After(4)), None)),
            (Reading::Up, After(4), ends(5, 9, true), (Some(After(9)), Some(Before(5)))),
            (Reading::Up, After(4), none, (None, Some(Before(5)))),
            (Reading::Up, Before(5), ends(1, 4, true), (Some(After(4)), Some(Before(1)))),
            (Reading::Up, Before(0), none, (Some(Start), None)),
        ] {
            assert_eq!(neighbours(reading, place, ends), expect, "{reading:?} {place:?} {ends:?}");
        }
    }
}
