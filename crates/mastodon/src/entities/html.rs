//! Texts as HTML: paragraphs, line breaks, and links for URLs, mentions and hashtags, with the classes that apps
//! expect.
//!
//! **Invariant:** every character of a text passes through the template engine, which escapes it; only the templates
//! here produce markup.

use feed::Handle;
use feed::token::{Token, TokenKind, tokens};
use maud::{Markup, PreEscaped, html};

/// Line break exactly as in Mastodon, because some apps search for these bytes.
const LINE_BREAK: PreEscaped<&str> = PreEscaped("<br />");
/// Maximum number of characters shown of a URL, after its scheme.
const URL_CHARS_SHOWN: usize = 30;

/// Renders a text as HTML. `profile` returns the URL of the user with a handle, if the text may link it.
pub(crate) fn content(
    text: &str,
    base: &str,
    profile: impl Fn(&Handle) -> Option<String>,
) -> String {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let paragraphs = text.split("\n\n").map(|lines| lines.trim_matches('\n'));
    let markup = html! {
        @for paragraph in paragraphs.filter(|paragraph| !paragraph.is_empty()) {
            p {
                @for (number, line) in paragraph.split('\n').enumerate() {
                    @if number > 0 { (LINE_BREAK) }
                    (line_as_html(line, base, &profile))
                }
            }
        }
    };
    markup.into_string()
}

/// Renders a text on one line as HTML without a paragraph.
pub(crate) fn line(text: &str, base: &str) -> String {
    line_as_html(text, base, |_| None).into_string()
}

fn line_as_html(line: &str, base: &str, profile: impl Fn(&Handle) -> Option<String>) -> Markup {
    let mut end = 0;
    let parts = tokens(line).map(|token| {
        let plain = line.get(end..token.start).unwrap_or_default();
        end = token.start + token.text.len();
        html! { (plain) (token_as_html(&token, base, &profile)) }
    });
    let parts: Vec<_> = parts.collect();
    html! { @for part in parts { (part) } (line.get(end..).unwrap_or_default()) }
}

fn token_as_html(
    token: &Token<'_>,
    base: &str,
    profile: impl Fn(&Handle) -> Option<String>,
) -> Markup {
    let url = match &token.kind {
        TokenKind::Url => return link(token.text),
        TokenKind::Tag(tag) => {
            let (sign, name) =
                token.text.split_at(token.text.chars().next().map_or(0, char::len_utf8));
            let url = tag_url(base, tag.as_str());
            return html! {
                a href=(url) class="mention hashtag" rel="tag" { (sign) span { (name) } }
            };
        }
        TokenKind::Mention(handle) => profile(handle).map(|url| (url, handle)),
        TokenKind::Address(..) => None,
    };
    match url {
        None => html! { (token.text) },
        Some((url, handle)) => html! {
            span class="h-card" translate="no" {
                a href=(url) class="u-url mention" { "@" span { (handle.as_str()) } }
            }
        },
    }
}

fn link(url: &str) -> Markup {
    let (scheme, rest) = url.split_at(url.find("//").map_or(0, |at| at + 2));
    let shown = rest.char_indices().nth(URL_CHARS_SHOWN).map_or(rest.len(), |(at, _)| at);
    let (shown, cut) = rest.split_at(shown);
    html! {
        a href=(url) target="_blank" rel="nofollow noopener" translate="no" {
            span class="invisible" { (scheme) }
            span class=(if cut.is_empty() { "" } else { "ellipsis" }) { (shown) }
            span class="invisible" { (cut) }
        }
    }
}

/// URL of a hashtag.
pub(crate) fn tag_url(base: &str, tag: &str) -> String {
    let tag: String = form_urlencoded::byte_serialize(tag.to_lowercase().as_bytes()).collect();
    format!("{base}/tags/{tag}")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BASE: &str = "https://social.example";

    fn check(text: &str, expect: &str) {
        let known = |handle: &Handle| {
            (handle.as_str() == "ada").then(|| format!("{BASE}/@{}", handle.as_str()))
        };
        assert_eq!(content(text, BASE, known), expect, "{text:?}");
    }

    #[test]
    fn a_text_has_paragraphs_line_breaks_and_links() {
        check("one", "<p>one</p>");
        check("one\ntwo\r\nthree", "<p>one<br />two<br />three</p>");
        check("one\n\n\n\ntwo", "<p>one</p><p>two</p>");
        check("<b>&\"x\"</b>", "<p>&lt;b&gt;&amp;&quot;x&quot;&lt;/b&gt;</p>");
        check(
            "hi @Ada, @bob",
            "<p>hi <span class=\"h-card\" translate=\"no\"><a href=\"https://social.example/@ada\" \
             class=\"u-url mention\">@<span>ada</span></a></span>, @bob</p>",
        );
        check(
            "#Rust #1",
            "<p><a href=\"https://social.example/tags/rust\" class=\"mention hashtag\" rel=\"tag\">\
             #<span>Rust</span></a> #1</p>",
        );
        check(
            "(https://a.example/x).",
            "<p>(<a href=\"https://a.example/x\" target=\"_blank\" rel=\"nofollow noopener\" \
             translate=\"no\"><span class=\"invisible\">https://</span><span class=\"\">\
             a.example/x</span><span class=\"invisible\"></span></a>).</p>",
        );
    }

    #[test]
    fn only_users_of_the_server_are_links() {
        check("@ada@elsewhere.example x/@ada", "<p>@ada@elsewhere.example x/@ada</p>");
    }

    #[test]
    fn a_link_has_no_character_that_changes_the_direction_of_its_text() {
        let html = content("https://a.example/\u{202e}moc", BASE, |_| None);
        let (link, rest) = html.split_once("</a>").unwrap();
        assert!(!link.contains('\u{202e}') && rest.contains('\u{202e}'), "{html}");
    }

    /// Text of HTML made by this module; `None` if it has other markup.
    fn text_of(html: &str) -> Option<String> {
        let (mut text, mut rest) = (String::new(), html);
        while let Some(start) = rest.find('<') {
            text.push_str(rest.get(..start)?);
            let end = start + rest.get(start..)?.find('>')?;
            let tag = rest.get(start + 1..end)?.trim_end_matches(" /");
            let name = tag.split(' ').next()?;
            // An attribute is a name and a quoted value without quotes in it.
            let quotes = tag.split('"').skip(1).step_by(2);
            let names = tag.get(name.len()..)?.split('"').step_by(2).map(str::trim);
            let known = ["", "href=", "class=", "rel=", "target=", "translate="];
            if !["p", "/p", "br", "a", "/a", "span", "/span"].contains(&name)
                || names.into_iter().any(|name| !known.contains(&name))
                || quotes.into_iter().any(|value| value.contains(['<', '>']))
            {
                return None;
            }
            if name == "br" {
                text.push('\n');
            }
            rest = rest.get(end + 1..)?;
        }
        text.push_str(rest);
        let plain = text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"");
        (!text.contains('>')).then(|| plain.replace("&amp;", "&"))
    }

    proptest! {
        #[test]
        fn markup_comes_from_templates_alone_and_no_text_is_lost(
            text in r#"(<b>|&amp;|"|'|https?://|@ada|@[a-z]{1,3}|[#\u{ff03}][a-z0-9\u{b7}]{0,4}|[ <>\\/:=.()]|\n|\PC){0,60}"#,
        ) {
            let html = content(&text, BASE, |_| Some(format!("{BASE}/@ada")));
            let found = text_of(&html);
            prop_assert!(found.is_some(), "{html}");
            let words = |text: &str| -> String {
                text.to_lowercase().chars().filter(|c| *c != '\n' && *c != '\r').collect()
            };
            prop_assert_eq!(words(&found.unwrap()), words(&text), "{}", html);
            prop_assert!(!html.to_lowercase().contains("href=\"javascript"));
        }
    }
}
