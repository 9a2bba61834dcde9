//! Pages: `max_id`, `since_id`, `min_id`, `limit`, and the `Link` header that leads to the pages beside one.
//!
//! **Invariant:** a list has at most [`PAGE_BYTES`] and one entity more; what does not fit is on the next page.

use axum::http::HeaderValue;
use axum::http::header::LINK;
use axum::response::Response;
use feed::{Cursor, Page, PageOf, PostId, Span, Tag};

use crate::answers;
use crate::entities::json::{Json, push};
use crate::error::ApiError;
use crate::fields::Fields;
use crate::input::number;
use crate::state::Server;

/// A list ends when it has this many bytes. An entity has at most about 250 KiB.
pub(crate) const PAGE_BYTES: usize = 256 << 10;
/// Bytes of a typical entity.
const TYPICAL_BYTES: usize = 2_560;
/// The parameters that the URL of another page repeats: those that choose what is listed.
const REPEATED: [&str; 20] = [
    "limit",
    "local",
    "remote",
    "only_media",
    "exclude_replies",
    "exclude_reblogs",
    "exclude_direct",
    "pinned",
    "types[]",
    "types",
    "exclude_types[]",
    "exclude_types",
    "account_id",
    "any[]",
    "any",
    "all[]",
    "all",
    "none[]",
    "none",
    "tagged",
];
/// Most parameters that are repeated, and most bytes of a value: `Link` stays below 8 KiB, which is what proxies accept.
const REPEATED_MAX: usize = 32;
pub(crate) const REPEATED_BYTES_MAX: usize = 40;

/// Default and greatest number of items on a page.
#[derive(Clone, Copy)]
pub(crate) struct Limits(usize, usize);

/// Of statuses.
pub(crate) const STATUSES: Limits = Limits(20, 40);
/// Of accounts and notifications.
pub(crate) const ACCOUNTS: Limits = Limits(40, 80);

/// Of followed hashtags.
pub(crate) const TAGS: Limits = Limits(100, 200);

/// The requested page. Items are newest first, which is by descending ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    /// Items have smaller ids.
    max: Option<u64>,
    /// Items have greater ids.
    above: Option<u64>,
    /// Whether the page begins directly above `above`.
    up: bool,
    pub(crate) limit: usize,
}

/// Some items, and what is needed for the links.
#[derive(Debug, Default)]
pub(crate) struct Listed {
    /// JSON objects with commas between, after the bracket that opens a list; or nothing.
    pub(crate) json: Vec<u8>,
    /// The greatest and the smallest id that the page covers.
    pub(crate) ends: Option<(u64, u64)>,
    /// Whether there are more in the direction of reading.
    pub(crate) more: bool,
}

impl Asked {
    pub(crate) fn parse(fields: &Fields, Limits(default, max): Limits) -> Result<Self, ApiError> {
        let id = |name| {
            let text = fields.one(name)?;
            let wrong = || ApiError::invalid(format!("{name} is no id"));
            text.map(|text| number(text).ok_or_else(wrong)).transpose()
        };
        let (below, since, min) = (id("max_id")?, id("since_id")?, id("min_id")?);
        Ok(Self {
            max: below,
            above: min.or(since),
            up: min.is_some(),
            limit: limit(fields, default, max)?,
        })
    }

    /// The page as the node reads it; ids outside of [`Asked::has`] are on it, too.
    pub(crate) fn page<I>(&self, id: fn(u64) -> I) -> Page<I> {
        let cursor = match (self.above, self.max) {
            (Some(above), _) if self.up => Cursor::After(id(above)),
            (_, Some(max)) => Cursor::Before(id(max)),
            (_, None) => Cursor::Newest,
        };
        Page { cursor, limit: self.limit }
    }

    /// The page of items of which these are all, the newest first.
    pub(crate) fn page_of<T>(&self, mut items: Vec<T>, id: impl Fn(&T) -> u64) -> PageOf<T> {
        items.retain(|item| self.has(id(item)));
        if self.up {
            items.reverse();
        }
        items.truncate(self.limit + 1);
        PageOf::from_scan(items, &self.page(|id| id))
    }

    /// The ids between the bounds, of which `limit` are read; none if there can be none.
    pub(crate) fn span(&self, limit: usize) -> Option<Span> {
        let span = self.page(u64::from).span(limit)?;
        let low = self.above.map_or(Some(0), |above| above.checked_add(1))?.max(span.low);
        let high = self.max.map_or(Some(u64::MAX), |max| max.checked_sub(1))?.min(span.high);
        (low <= high).then_some(Span { low, high, ..span })
    }

    /// Whether an id is between the bounds.
    pub(crate) fn has(&self, id: u64) -> bool {
        self.max.is_none_or(|max| id < max) && self.above.is_none_or(|above| id > above)
    }

    /// Whether the page begins at its end with the smallest ids.
    pub(crate) fn is_up(&self) -> bool {
        self.up
    }

    /// Makes the entities of a page that was read. It begins where reading began, so that what does not fit in a
    /// response is on the next page in the direction of reading. `stopped` is the last id that was read, if reading
    /// ended before the page was full: then the next page begins there, also if this one is empty.
    pub(crate) fn list<T, E: Into<Json>>(
        &self,
        page: PageOf<T>,
        stopped: Option<u64>,
        id: impl Fn(&T) -> u64,
        mut entity: impl FnMut(T) -> Option<E>,
    ) -> Listed {
        self.write(page, stopped, id, |item, out| {
            let entity: Json = entity(item)?.into();
            entity.append(out);
            Some(())
        })
    }

    /// As [`Asked::list`], of statuses, which `write` appends.
    pub(crate) fn statuses(
        &self,
        page: PageOf<PostId>,
        stopped: Option<u64>,
        write: impl FnMut(PostId, &mut Vec<u8>) -> Option<()>,
    ) -> Listed {
        self.write(page, stopped, |post| post.0, write)
    }

    fn write<T>(
        &self,
        PageOf { mut items, more }: PageOf<T>,
        stopped: Option<u64>,
        id: impl Fn(&T) -> u64,
        mut write: impl FnMut(T, &mut Vec<u8>) -> Option<()>,
    ) -> Listed {
        items.retain(|item| self.has(id(item)));
        if self.up {
            items.reverse();
        }
        let (mut ends, mut is_full) = (None, false);
        let mut json = Vec::with_capacity(items.len() * TYPICAL_BYTES);
        json.push(b'[');
        // Where each entity begins, with the comma before it.
        let mut starts = Vec::with_capacity(items.len());
        let extend = |ends: Option<(u64, u64)>, at: u64| {
            ends.map_or((at, at), |(greatest, smallest)| (greatest.max(at), smallest.min(at)))
        };
        for item in items {
            is_full = json.len() >= PAGE_BYTES;
            if is_full {
                break;
            }
            ends = Some(extend(ends, id(&item)));
            starts.push(json.len());
            push(&mut json, |out| write(item, out));
        }
        if self.up {
            json = reversed(&json, &starts);
        }
        let stopped = stopped.filter(|_| !is_full);
        ends = stopped.map(|at| extend(ends, at)).or(ends);
        Listed { json, ends, more: more || is_full || stopped.is_some() }
    }
}

/// A list that is not closed, from its end to its beginning. Its entities begin at `starts`, with the commas before them; some
/// may be missing.
fn reversed(json: &[u8], starts: &[usize]) -> Vec<u8> {
    let mut out = Vec::with_capacity(json.len() + 1);
    out.push(b'[');
    let mut end = json.len();
    for start in starts.iter().rev() {
        let entity = json.get(*start..end).unwrap_or_default();
        let entity = entity.strip_prefix(b",").unwrap_or(entity);
        if !entity.is_empty() {
            push(&mut out, |out| {
                out.extend_from_slice(entity);
                Some(())
            });
        }
        end = *start;
    }
    out
}

/// The parameter `limit`: what is not a number is ignored, as in Mastodon.
pub(crate) fn limit(fields: &Fields, default: usize, max: usize) -> Result<usize, ApiError> {
    let given = fields.one("limit")?.and_then(number);
    Ok(given.map_or(default, |given| given.clamp(1, max as u64) as usize))
}

impl Server {
    /// The response with a page. `path` is that of the request.
    pub(crate) fn listed(
        &self,
        path: &str,
        fields: &Fields,
        asked: &Asked,
        listed: Listed,
    ) -> Result<Response, ApiError> {
        let Listed { mut json, ends, more } = listed;
        if json.is_empty() {
            json.push(b'[');
        }
        json.push(b']');
        let mut response = answers::json(json);
        let Some((first, last)) = ends else { return Ok(response) };
        let is_plain = |text: &str| {
            let is_word = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
            (is_word || Tag::parse(text).is_ok()) && text.len() <= REPEATED_BYTES_MAX
        };
        let pairs = fields.of_names(&REPEATED).filter(|(_, value)| is_plain(value));
        let url = format!("{}{path}?", self.options.base);
        let mut query =
            form_urlencoded::Serializer::for_suffix(url, self.options.base.len() + path.len() + 1);
        let mut url = query.extend_pairs(pairs.take(REPEATED_MAX)).finish();
        if !url.ends_with('?') {
            url.push('&');
        }
        // Upwards, what is below was read before.
        let next = (more || asked.is_up()).then(|| format!("<{url}max_id={last}>; rel=\"next\", "));
        let links = format!("{}<{url}min_id={first}>; rel=\"prev\"", next.unwrap_or_default());
        if let Ok(links) = HeaderValue::try_from(links) {
            response.headers_mut().insert(LINK, links);
        }
        Ok(response)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_upwards_is_listed_from_its_end_without_what_is_missing() {
        let asked = Asked { max: None, above: Some(0), up: true, limit: 9 };
        for (shown, expect) in [
            ([true, true, true], "[{3},{2},{1}"),
            ([true, false, true], "[{3},{1}"),
            ([false, true, false], "[{2}"),
            ([false, false, true], "[{3}"),
            ([true, false, false], "[{1}"),
            ([false; 3], "["),
        ] {
            let page = PageOf { items: vec![3, 2, 1], more: false };
            let listed = asked.write(
                page,
                None,
                |id| *id,
                |id, out| {
                    // A part of what is missing is written before it is known.
                    out.extend_from_slice(format!("{{{id}}}").as_bytes());
                    shown[id as usize - 1].then_some(())
                },
            );
            assert_eq!(String::from_utf8(listed.json).unwrap(), expect, "{shown:?}");
            assert_eq!(listed.ends, Some((3, 1)), "{shown:?}");
        }
    }

    #[test]
    fn cursors_and_limits_are_read() {
        let page = |cursor, limit| Page { cursor, limit };
        for (query, expect, has_5) in [
            ("", page(Cursor::Newest, 20), true),
            ("limit=3", page(Cursor::Newest, 3), true),
            ("limit=400", page(Cursor::Newest, 40), true),
            ("limit=0", page(Cursor::Newest, 1), true),
            ("limit=x", page(Cursor::Newest, 20), true),
            ("max_id=5", page(Cursor::Before(5), 20), false),
            ("max_id=6&since_id=4", page(Cursor::Before(6), 20), true),
            ("since_id=5", page(Cursor::Newest, 20), false),
            ("min_id=4", page(Cursor::After(4), 20), true),
            ("min_id=4&max_id=5", page(Cursor::After(4), 20), false),
            ("max_id=", page(Cursor::Newest, 20), true),
        ] {
            let asked = Asked::parse(&Fields::of_query(query).unwrap(), STATUSES).unwrap();
            assert_eq!(asked.page(|id| id), expect, "{query}");
            assert_eq!(asked.has(5), has_5, "{query}");
        }
        for bad in ["max_id=x", "min_id=-1", "since_id=99999999999999999999", "max_id=1&max_id=2"] {
            assert!(Asked::parse(&Fields::of_query(bad).unwrap(), STATUSES).is_err(), "{bad}");
        }
    }
}
