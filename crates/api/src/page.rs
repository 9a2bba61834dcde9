//! Pages: `limit`, `before` and `after` in the query, and the links to the neighbouring pages in
//! the body and in the `Link` header. Some are read in somebody's name: `as`, which links keep.
//!
//! Posts and stories are read newest first, people by ascending id. In both, `before` and `after`
//! compare ids, so reading on means `before` for posts and `after` for people.

use axum::body::Body;
use axum::extract::FromRequestParts;
use axum::http::header::{CONTENT_TYPE, LINK};
use axum::http::request::Parts;
use axum::http::{HeaderValue, Uri};
use axum::response::Response;
use feed::{Cursor, Order, Page, Span, Stamp, UserRef, limits};
use node::PageEnds;

use crate::error::Problem;
use crate::input::{decimal, user};

/// Room for both links of a page, roughly.
const LINK_BYTES: usize = 192;

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
    /// From the highest id down: posts and stories.
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

impl<I: Into<u64>> From<PageEnds<I>> for Ends {
    fn from(ends: PageEnds<I>) -> Self {
        let PageEnds { first, last, more } = ends;
        Self { first: first.map(Into::into), last: last.map(Into::into), more }
    }
}

/// A page as asked for, of at most `MAX` items and of `DEFAULT` unless the caller says.
pub(crate) struct Asked<const MAX: usize, const DEFAULT: usize = { limits::PAGE_DEFAULT }> {
    pub(crate) place: Place,
    pub(crate) limit: usize,
    /// In whose name, if the endpoint is one that can be asked so and was.
    pub(crate) reader: Option<UserRef>,
    uri: Uri,
}

impl<const MAX: usize, const DEFAULT: usize, S: Send + Sync> FromRequestParts<S>
    for Asked<MAX, DEFAULT>
{
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let (place, limit) = parse(parts.uri.query().unwrap_or(""), MAX, DEFAULT)?;
        Ok(Self { place, limit, reader: None, uri: parts.uri.clone() })
    }
}

/// A page that may be asked for in somebody's name.
pub(crate) struct AskedAs<const MAX: usize>(pub(crate) Asked<MAX>);

impl<const MAX: usize, S: Send + Sync> FromRequestParts<S> for AskedAs<MAX> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let (reader, rest) = split_reader(parts.uri.query().unwrap_or(""))?;
        let (place, limit) = parse(&rest, MAX, limits::PAGE_DEFAULT)?;
        Ok(Self(Asked { place, limit, reader, uri: parts.uri.clone() }))
    }
}

/// In whose name something is asked that is no page.
pub(crate) struct As(pub(crate) Option<UserRef>);

impl As {
    /// # Errors
    /// Bad request if nobody is named.
    pub(crate) fn required(reader: Option<UserRef>) -> Result<UserRef, Problem> {
        reader.ok_or_else(|| Problem::bad_request("say in whose name: as=USER in the query"))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for As {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        match split_reader(parts.uri.query().unwrap_or(""))? {
            (reader, rest) if rest.is_empty() => Ok(Self(reader)),
            _ => Err(Problem::bad_request("the only parameter is as")),
        }
    }
}

/// Takes `as` out of a query: who it names, and the query without it.
fn split_reader(query: &str) -> Result<(Option<UserRef>, String), Problem> {
    let (mut reader, mut rest) = (None, form_urlencoded::Serializer::new(String::new()));
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        if name != "as" {
            rest.append_pair(&name, &value);
        } else if reader.replace(user(&value)?).is_some() {
            return Err(Problem::bad_request("a query parameter is given twice"));
        }
    }
    Ok((reader, rest.finish()))
}

fn parse(query: &str, limit_max: usize, limit_default: usize) -> Result<(Place, usize), Problem> {
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
        None => limit_default,
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
    id.filter(|id| *id <= Stamp::MAX.0)
        .ok_or_else(|| Problem::bad_cursor("a cursor is an id as this server gave it out"))
}

impl<const MAX: usize, const DEFAULT: usize> Asked<MAX, DEFAULT> {
    /// The page of a list that is read down; `id` makes ids of its items.
    pub(crate) fn of<I>(&self, id: fn(u64) -> I) -> Page<I> {
        let cursor = match self.place {
            Place::Start => Cursor::Newest,
            Place::Before(before) => Cursor::Before(id(before)),
            Place::After(after) => Cursor::After(id(after)),
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
        let mut link = Vec::with_capacity(LINK_BYTES);
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
        match &self.reader {
            None => {}
            Some(UserRef::Id(reader)) => {
                body.extend_from_slice(b"&as=");
                push_number(reader.0.into(), body);
            }
            Some(UserRef::Handle(reader)) => {
                body.extend_from_slice(b"&as=@");
                body.extend_from_slice(reader.as_str().as_bytes());
            }
        }
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

    fn check(query: &str, expect: Result<(Place, usize), &str>) {
        let parsed = parse(query, 100, 20).map_err(|problem| problem.code);
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
    fn the_name_in_which_a_page_is_asked_for_is_taken_out_of_its_query() {
        let check = |query: &str, expect: Result<(Option<UserRef>, &str), &str>| {
            let expect = expect.map(|(reader, rest)| (reader, rest.to_owned()));
            assert_eq!(split_reader(query).map_err(|problem| problem.code), expect, "{query:?}");
        };
        let id = Some(UserRef::Id(feed::UserId(7)));
        let ada = feed::Handle::parse("ada").unwrap();
        check("", Ok((None, "")));
        check("as=7", Ok((id.clone(), "")));
        check("limit=1&as=7&x=%26as", Ok((id, "limit=1&x=%26as")));
        check("as=%40Ada", Ok((Some(UserRef::Handle(ada)), "")));
        check("as=", Err("bad_request"));
        check("as=7&as=7", Err("bad_request"));
        check("as=@a-b", Err("bad_handle"));
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
