//! Page to show after a log-in or a sign-up.

use maud::{Markup, html};

use crate::error::ApiError;
use crate::fields::Fields;

/// Maximum length of an app's query, in bytes.
const NEXT_BYTES_MAX: usize = 8 << 10;
/// Field with the query of an app's request.
const APP: &str = "next";
/// Field of a log-in that the pages at `/` request.
const PAGES: &str = "pages";

/// Page after a log-in. Its path is never from the request, so it is never on another site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next<'a> {
    /// Settings of the account.
    Settings,
    /// Pages at `/`.
    Pages,
    /// Page of an app's request with this query.
    App(&'a str),
}

impl<'a> Next<'a> {
    /// Reads the next page from a query or a form.
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

    /// URL of the next page.
    pub(crate) fn destination(self) -> String {
        match self {
            Self::Settings => "/settings".to_owned(),
            Self::Pages => "/".to_owned(),
            Self::App(query) => format!("/oauth/authorize?{query}"),
        }
    }

    /// URL of the log-in or sign-up page that continues with the next page.
    pub(crate) fn after(self, path: &str) -> String {
        let Some((name, value)) = self.field() else { return path.to_owned() };
        let query =
            form_urlencoded::Serializer::new(String::new()).append_pair(name, value).finish();
        format!("{path}?{query}")
    }

    /// Hidden field of a form that continues with the next page.
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
            // Links between the log-in and the sign-up page preserve the next page.
            let link = next.after("/auth/sign-up");
            let fields =
                Fields::of_query(link.split_once('?').map_or("", |(_, query)| query)).unwrap();
            assert_eq!(Next::of(&fields).unwrap(), next, "{link}");
        }
    }
}
