//! Texts as HTML: paragraphs, line breaks, and links for URLs, mentions and hashtags, with the classes that apps look
//! for.
//!
//! **Invariant:** every character of a text passes through the template engine, which escapes it; markup comes from the
//! templates here alone.

use feed::Handle;
use feed::tag::{self, Found};
use maud::{Markup, PreEscaped, html};

/// As Mastodon writes it: some apps look for these bytes.
const LINE_BREAK: PreEscaped<&str> = PreEscaped("<br />");
/// Characters of a URL that are shown, after its scheme.
const URL_CHARS_SHOWN: usize = 30;

/// A part of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Part<'t> {
    Plain(&'t str),
    Url(&'t str),
    /// With the `@`; the handle, in lower case.
    Mention(&'t str, Handle),
    /// As in [`Found::Tag`].
    Tag(char, &'t str),
}

/// A text as HTML. `profile` is the URL of the user with a handle, if the text may link it.
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

/// A text on one line as HTML without a paragraph.
pub(crate) fn line(text: &str, base: &str) -> String {
    line_as_html(text, base, |_| None).into_string()
}

fn line_as_html(line: &str, base: &str, profile: impl Fn(&Handle) -> Option<String>) -> Markup {
    html! { @for part in parts(line) { (part_as_html(&part, base, &profile)) } }
}

fn part_as_html(
    part: &Part<'_>,
    base: &str,
    profile: impl Fn(&Handle) -> Option<String>,
) -> Markup {
    match part {
        Part::Plain(text) => html! { (text) },
        Part::Url(url) => link(url),
        Part::Tag(sign, tag) => html! {
            a href=(tag_url(base, tag)) class="mention hashtag" rel="tag" { (sign) span { (tag) } }
        },
        Part::Mention(text, handle) => match profile(handle) {
            None => html! { (text) },
            Some(url) => html! {
                span class="h-card" translate="no" {
                    a href=(url) class="u-url mention" { "@" span { (handle.as_str()) } }
                }
            },
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

/// The URL of a hashtag.
pub(crate) fn tag_url(base: &str, tag: &str) -> String {
    let tag: String = form_urlencoded::byte_serialize(tag.to_lowercase().as_bytes()).collect();
    format!("{base}/tags/{tag}")
}

/// The parts of a text, in order; all of them together are the text.
fn parts(text: &str) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    let mut mentions = feed::text::mentions(text).peekable();
    // Where the plain text begins that is no part yet.
    let (mut plain, mut at) = (0, 0);
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        while mentions.peek().is_some_and(|mention| mention.start < at) {
            mentions.next();
        }
        let before = text.get(..at).and_then(|before| before.chars().next_back());
        let found = match rest.as_bytes().first() {
            Some(b'@') => mentions.next_if(|mention| mention.start == at).and_then(|mention| {
                let name = rest.get(..=mention.handle.as_str().len())?;
                Some(Part::Mention(name, mention.handle))
            }),
            _ => tag::found(rest, before).map(|found| match found {
                Found::Url(url) => Part::Url(url),
                Found::Tag(sign, tag) => Part::Tag(sign, tag),
            }),
        };
        let Some(part) = found else {
            at += rest.chars().next().map_or(1, char::len_utf8);
            continue;
        };
        parts.extend(text.get(plain..at).filter(|text| !text.is_empty()).map(Part::Plain));
        at += match &part {
            Part::Tag(sign, tag) => sign.len_utf8() + tag.len(),
            Part::Plain(text) | Part::Url(text) | Part::Mention(text, _) => text.len(),
        };
        plain = at;
        parts.push(part);
    }
    parts.extend(text.get(plain..).filter(|text| !text.is_empty()).map(Part::Plain));
    parts
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
    fn urls_end_where_a_reader_would_end_them() {
        for (text, expect) in [
            ("https://a.example", Some("https://a.example")),
            ("see HTTP://a.example/b?c=d#e!", Some("HTTP://a.example/b?c=d#e")),
            ("https://a.example/b_(c)", Some("https://a.example/b_(c)")),
            ("(https://a.example/b)", Some("https://a.example/b")),
            ("https://a.example/@ada", Some("https://a.example/@ada")),
            ("https://a.example\"onclick=x", Some("https://a.example")),
            ("xhttps://a.example", None),
            ("https://", None),
            ("https:///x", None),
            ("javascript:alert(1)", None),
        ] {
            let found = parts(text).into_iter().find_map(|part| match part {
                Part::Url(url) => Some(url),
                _ => None,
            });
            assert_eq!(found, expect, "{text:?}");
        }
    }

    /// The text of HTML of the kind that is made here; none if it has any other markup.
    fn text_of(html: &str) -> Option<String> {
        let (mut text, mut rest) = (String::new(), html);
        while let Some(start) = rest.find('<') {
            text.push_str(rest.get(..start)?);
            let end = start + rest.get(start..)?.find('>')?;
            let tag = rest.get(start + 1..end)?.trim_end_matches(" /");
            let name = tag.split(' ').next()?;
            // Attributes are a name, and a value in quotes without quotes in it.
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
