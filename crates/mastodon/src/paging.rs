//! Pages: `max_id`, `since_id`, `min_id`, `limit`, and the `Link` header that leads to the pages beside one.

use axum::http::HeaderValue;
use axum::http::header::LINK;
use axum::response::Response;
use feed::{Cursor, Page};

use crate::error::ApiError;
use crate::fields::Fields;
use crate::input::number;
use crate::state::Server;

/// The parameters that say where a page begins, and the token, which belongs into no URL.
const CURSORS: [&str; 4] = ["max_id", "since_id", "min_id", "access_token"];

/// Default and greatest number of items on a page.
#[derive(Clone, Copy)]
pub(crate) struct Limits(usize, usize);

/// Of statuses.
pub(crate) const STATUSES: Limits = Limits(20, 40);
/// Of accounts and notifications.
pub(crate) const ACCOUNTS: Limits = Limits(40, 80);

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
    /// JSON objects in `[` and `]`.
    pub(crate) json: Vec<u8>,
    /// The greatest and the smallest id that was read.
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

    /// Whether an id is between the bounds.
    pub(crate) fn has(&self, id: u64) -> bool {
        self.max.is_none_or(|max| id < max) && self.above.is_none_or(|above| id > above)
    }

    /// Whether the page begins at its end with the smallest ids.
    pub(crate) fn is_up(&self) -> bool {
        self.up
    }

    /// The id above all that are wanted.
    pub(crate) fn max(&self) -> Option<u64> {
        self.max
    }

    /// Keeps of a page that was read the ids between the bounds.
    pub(crate) fn cut<T>(&self, items: &mut Vec<T>, id: impl Fn(&T) -> u64) {
        items.retain(|item| self.has(id(item)));
    }
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
        let mut response = self.answers.json(json)?;
        let Some((first, last)) = ends else { return Ok(response) };
        let url = |name: &str, id: u64| {
            let mut query = form_urlencoded::Serializer::new(String::new());
            query.extend_pairs(fields.without(&CURSORS)).append_pair(name, &id.to_string());
            format!("{}{path}?{}", self.options.base, query.finish())
        };
        let mut links = Vec::new();
        // Upwards, what is below was read before.
        if more || asked.is_up() {
            links.push(format!("<{}>; rel=\"next\"", url("max_id", last)));
        }
        links.push(format!("<{}>; rel=\"prev\"", url("min_id", first)));
        if let Ok(value) = HeaderValue::try_from(links.join(", ")) {
            response.headers_mut().insert(LINK, value);
        }
        Ok(response)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
