//! Pages: `max_id`, `since_id`, `min_id`, `limit`, and the `Link` header with the neighboring pages.
//!
//! **Invariant:** a list has at most [`PAGE_BYTES`] plus one entity; the rest is on the next page.

use axum::http::HeaderValue;
use axum::http::header::LINK;
use axum::response::Response;
use feed::{Item, Page, PageOf, Tag};

use crate::answers;
use crate::entities::json::{Json, push};
use crate::error::ApiError;
use crate::fields::Fields;
use crate::input::number;
use crate::state::Server;

/// Size from which a list ends, in bytes. An entity has at most about 250 KiB.
pub(crate) const PAGE_BYTES: usize = 256 << 10;
/// Typical size of an entity, in bytes.
const TYPICAL_BYTES: usize = 2_560;
/// Parameters that select items. The URLs of other pages repeat them.
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
/// Maximum number of repeated parameters, and of bytes of a value, so that `Link` stays below 8 KiB, which proxies
/// accept.
const REPEATED_MAX: usize = 32;
pub(crate) const REPEATED_BYTES_MAX: usize = 40;

/// Default and maximum number of items on a page.
#[derive(Clone, Copy)]
pub(crate) struct Limits(usize, usize);

/// Limits of pages of statuses.
pub(crate) const STATUSES: Limits = Limits(20, 40);
/// Limits of pages of accounts and notifications.
pub(crate) const ACCOUNTS: Limits = Limits(40, 80);

/// Limits of pages of followed hashtags.
pub(crate) const TAGS: Limits = Limits(100, 200);

/// Items of a page, and the data for its links.
#[derive(Debug, Default)]
pub(crate) struct EntityList {
    /// JSON objects with commas between them, after the opening bracket of a list; empty without items.
    pub(crate) json: Vec<u8>,
    /// Ids of the first and the last item that the page covers, as it is listed.
    pub(crate) ends: Option<(u64, u64)>,
    /// Whether there are more items in the direction of reading.
    pub(crate) more: bool,
}

/// Parses the requested page. Items are listed newest first, by descending ids.
pub(crate) fn asked(fields: &Fields, Limits(default, max): Limits) -> Result<Page, ApiError> {
    let id = |name| {
        let text = fields.one(name)?;
        let wrong = || ApiError::invalid(format!("{name} is not an id"));
        text.map(|text| number(text).ok_or_else(wrong)).transpose()
    };
    let (below, since, min) = (id("max_id")?, id("since_id")?, id("min_id")?);
    let limit = limit(fields, default, max)?;
    Ok(Page { below, above: min.or(since), is_up: min.is_some(), limit })
}

/// Makes the entities of a page in the direction of reading. Entities that do not fit in the response are on the next
/// page in that direction.
pub(crate) fn list<T: Item, E: Into<Json>>(
    page: &Page,
    found: PageOf<T>,
    mut entity: impl FnMut(T) -> Option<E>,
) -> EntityList {
    write(page, found, |item, out| {
        let entity: Json = entity(item)?.into();
        entity.append(out);
        Some(())
    })
}

/// Makes the page from entities that `write` appends, as [`list`] does.
pub(crate) fn write<T: Item>(
    page: &Page,
    PageOf { mut items, next }: PageOf<T>,
    mut write: impl FnMut(T, &mut Vec<u8>) -> Option<()>,
) -> EntityList {
    if page.is_up {
        items.reverse();
    }
    // First and last id in the direction of reading.
    let (mut ends, mut is_full) = (None, false);
    let mut json = Vec::with_capacity(items.len() * TYPICAL_BYTES);
    json.push(b'[');
    // Positions at which entities begin, including the comma before each.
    let mut starts = Vec::with_capacity(items.len());
    let extend = |ends: Option<(u64, u64)>, at: u64| (ends.map_or(at, |(first, _)| first), at);
    for item in items {
        is_full = json.len() >= PAGE_BYTES;
        if is_full {
            break;
        }
        ends = Some(extend(ends, item.id()));
        starts.push(json.len());
        push(&mut json, |out| write(item, out));
    }
    if page.is_up {
        json = reversed(&json, &starts);
    }
    let next = next.filter(|_| !is_full);
    ends = next.map(|at| extend(ends, at)).or(ends);
    if page.is_up {
        ends = ends.map(|(last, first)| (first, last));
    }
    EntityList { json, ends, more: is_full || next.is_some() }
}

/// Reverses the order of the entities of an unclosed list. They begin at `starts`, including the commas before them;
/// some may be missing.
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

/// Parses `limit`. Ignores a value that is not a number, as Mastodon does.
pub(crate) fn limit(fields: &Fields, default: usize, max: usize) -> Result<usize, ApiError> {
    let given = fields.one("limit")?.and_then(number);
    Ok(given.map_or(default, |given| given.clamp(1, max as u64) as usize))
}

impl Server {
    /// Makes the response with a page. `path` is the path of the request.
    pub(crate) fn listed(
        &self,
        path: &str,
        fields: &Fields,
        page: &Page,
        listed: EntityList,
    ) -> Result<Response, ApiError> {
        let EntityList { mut json, ends, more } = listed;
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
        // For an upward page, the items below it always exist, so there is a next page.
        let next = (more || page.is_up).then(|| format!("<{url}max_id={last}>; rel=\"next\", "));
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
        let page = Page { below: None, above: Some(0), is_up: true, limit: 9 };
        for (shown, expect) in [
            ([true, true, true], "[{3},{2},{1}"),
            ([true, false, true], "[{3},{1}"),
            ([false, true, false], "[{2}"),
            ([false, false, true], "[{3}"),
            ([true, false, false], "[{1}"),
            ([false; 3], "["),
        ] {
            let found = PageOf { items: vec![3, 2, 1], next: None };
            let listed = write(&page, found, |id: u64, out| {
                // An entity may be partly written before a missing part is noticed.
                out.extend_from_slice(format!("{{{id}}}").as_bytes());
                shown[id as usize - 1].then_some(())
            });
            assert_eq!(String::from_utf8(listed.json).unwrap(), expect, "{shown:?}");
            assert_eq!(listed.ends, Some((3, 1)), "{shown:?}");
        }
    }

    #[test]
    fn cursors_and_limits_are_read() {
        let page = |below, above, is_up, limit| Page { below, above, is_up, limit };
        for (query, expect) in [
            ("", page(None, None, false, 20)),
            ("limit=3", page(None, None, false, 3)),
            ("limit=400", page(None, None, false, 40)),
            ("limit=0", page(None, None, false, 1)),
            ("limit=x", page(None, None, false, 20)),
            ("max_id=5", page(Some(5), None, false, 20)),
            ("max_id=6&since_id=4", page(Some(6), Some(4), false, 20)),
            ("since_id=5", page(None, Some(5), false, 20)),
            ("min_id=4", page(None, Some(4), true, 20)),
            ("min_id=4&since_id=3&max_id=5", page(Some(5), Some(4), true, 20)),
            ("max_id=", page(None, None, false, 20)),
        ] {
            assert_eq!(
                asked(&Fields::of_query(query).unwrap(), STATUSES).unwrap(),
                expect,
                "{query}"
            );
        }
        for bad in ["max_id=x", "min_id=-1", "since_id=99999999999999999999", "max_id=1&max_id=2"] {
            assert!(asked(&Fields::of_query(bad).unwrap(), STATUSES).is_err(), "{bad}");
        }
    }
}
