//! Where a log-in or a sign-up leads.

use maud::{Markup, html};

use crate::error::ApiError;
use crate::fields::Fields;

/// Longest query that a log-in leads back to, in bytes.
const NEXT_BYTES_MAX: usize = 8 << 10;
/// The field with the query of an app's request.
const APP: &str = "next";
/// The field of a log-in that the pages at `/` ask for.
const PAGES: &str = "pages";

/// The page after a log-in. Never one of another site, because the paths are given here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next<'a> {
    /// The settings of the account.
    Settings,
    /// The pages at `/`.
    Pages,
    /// The page of an app's request with this query.
    App(&'a str),
}

impl<'a> Next<'a> {
    /// As a query or a form says.
    pub(crate) fn of(fields: &'a Fields) -> Result<Self, ApiError> {
        let is_query = |next: &&str| {
            next.len() <= NEXT_BYTES_MAX && next.bytes().all(|byte| byte.is_ascii_graphic())
        };
        let app = fields.one(APP)?.filter(is_query);
        Ok(match (app, fields.one(PAGES)?) {
            (Some(query), _) => Self::App(query),
            (None, Some(_)) => Self::Pages,
            (None, None) => Self::Settings,
        })
    }

    /// The address of the page.
    pub(crate) fn destination(self) -> String {
        match self {
            Self::Settings => "/settings".to_owned(),
            Self::Pages => "/".to_owned(),
            Self::App(query) => format!("/oauth/authorize?{query}"),
        }
    }

    /// The address of a page that leads there: of the log-in or the sign-up page.
    pub(crate) fn after(self, path: &str) -> String {
        let Some((name, value)) = self.field() else { return path.to_owned() };
        let query =
            form_urlencoded::Serializer::new(String::new()).append_pair(name, value).finish();
        format!("{path}?{query}")
    }

    /// The field of a form that leads there.
    pub(crate) fn hidden(self) -> Markup {
        html! {
            @if let Some((name, value)) = self.field() {
                input type="hidden" name=(name) value=(value);
            }
        }
    }

    fn field(self) -> Option<(&'static str, &'a str)> {
        match self {
            Self::Settings => None,
            Self::Pages => Some((PAGES, "1")),
            Self::App(query) => Some((APP, query)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_in_leads_to_pages_of_this_server_alone() {
        let too_long = format!("next={}", "x".repeat(NEXT_BYTES_MAX + 1));
        for (query, expect) in [
            ("", "/settings"),
            ("pages=1", "/"),
            ("pages=//evil.example", "/"),
            ("next=client_id%3D1%26state%3Dx", "/oauth/authorize?client_id=1&state=x"),
            ("next=https://evil.example/", "/oauth/authorize?https://evil.example/"),
            ("next=//evil.example&pages=1", "/oauth/authorize?//evil.example"),
            ("next=a%0D%0ALocation:%20https://evil.example", "/settings"),
            ("next=%C3%A9", "/settings"),
            (&too_long, "/settings"),
        ] {
            let fields = Fields::of_query(query).unwrap();
            let next = Next::of(&fields).unwrap();
            assert_eq!(next.destination(), expect, "{query}");
            // Links between the log-in and the sign-up page lead to the same.
            let link = next.after("/auth/sign-up");
            let fields =
                Fields::of_query(link.split_once('?').map_or("", |(_, query)| query)).unwrap();
            assert_eq!(Next::of(&fields).unwrap(), next, "{link}");
        }
    }
}
