//! The page: head, texts and tables.

use std::fmt::Write as _;

use crate::html::escape;

const STYLE: &str = include_str!("style.css");
/// Content-Security-Policy that allows only the style in the page itself: no scripts, pictures or requests.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; \
                      form-action 'none'";

/// Builds the whole document. `program` is the name of its generator, `body` is markup.
pub fn document(program: &str, title: &str, body: &str) -> String {
    let (program, title) = (escape(program), escape(title));
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{title} · {program}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n\
         <header><p class=\"eyebrow\">{program}</p>\n<h1>{title}</h1></header>\n\
         <main>\n{body}</main>\n</body>\n</html>\n"
    )
}

/// Builds a section with a heading; `title` and `html` are markup.
pub fn section(title: &str, html: &str) -> String {
    format!("<section>\n<h2>{title}</h2>\n{html}</section>\n")
}

/// Severity of a verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// Expected result.
    Good,
    /// Result to interpret with care.
    Warn,
    /// Unusable result.
    Bad,
}

/// Builds a verdict: a sentence that begins with `word`. Both are text.
pub fn verdict(tone: Tone, word: &str, sentence: &str) -> String {
    let class = match tone {
        Tone::Good => "good",
        Tone::Warn => "warn",
        Tone::Bad => "bad",
    };
    let (word, sentence) = (escape(word), escape(sentence));
    format!("<p class=\"verdict {class}\"><strong>{word}</strong>{sentence}</p>\n")
}

/// Builds tiles with large values. Each has a name (markup), a value and a note (text).
pub fn tiles(tiles: Vec<(&str, String, String)>) -> String {
    let mut html = String::from("<dl class=\"tiles\">\n");
    for (name, value, more) in tiles {
        let (value, more) = (escape(&value), escape(&more));
        let _ = writeln!(html, "<div><dt>{name}</dt><dd>{value}</dd><dd>{more}</dd></div>");
    }
    html + "</dl>\n"
}

/// Builds a list of facts; names and values are markup.
pub fn facts(rows: &[(&str, String)]) -> String {
    let mut html = String::from("<dl class=\"facts\">\n");
    for (name, value) in rows {
        let _ = writeln!(html, "<div><dt>{name}</dt><dd>{value}</dd></div>");
    }
    html + "</dl>\n"
}

/// Builds a table, which scrolls horizontally if the page is too narrow. With fewer than three columns, the table is
/// only as wide as its content. `label` describes the table for screen readers. All arguments are markup.
pub fn table(label: &str, head: &[&str], rows: &[Vec<String>]) -> String {
    let class = if head.len() < 3 { " class=\"short\"" } else { "" };
    let mut html = format!(
        "<div class=\"scrolls\" tabindex=\"0\" role=\"region\" aria-label=\"{label}\"><table{class}>\n<thead><tr>"
    );
    for name in head {
        let _ = write!(html, "<th scope=\"col\">{name}</th>");
    }
    html.push_str("</tr></thead>\n<tbody>\n");
    for row in rows {
        for (at, cell) in row.iter().enumerate() {
            let (open, close) =
                if at == 0 { ("<tr><th scope=\"row\">", "</th>") } else { ("<td>", "</td>") };
            let _ = write!(html, "{open}{cell}{close}");
        }
        html.push_str("</tr>\n");
    }
    html + "</tbody></table></div>\n"
}

/// Builds links to files. Each has a name (text) and an address (see [`crate::html::address`]).
pub fn links<'a>(links: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let mut html = String::from("<ul class=\"links\">\n");
    for (name, address) in links {
        let _ = writeln!(html, "<li><a href=\"{address}\">{}</a></li>", escape(name));
    }
    html + "</ul>\n"
}
