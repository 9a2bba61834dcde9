//! Parser of multipart forms (RFC 7578) in memory. Parts are ranges of the body, so files are not copied.

use std::ops::Range;

use memchr::memmem;

/// Maximum length of a boundary, in bytes (RFC 2046).
const BOUNDARY_BYTES_MAX: usize = 70;
/// Maximum length of a part's head, in bytes.
const HEAD_BYTES_MAX: usize = 4 << 10;

/// Part of a form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    /// Name of the field; empty if it has none.
    pub(crate) name: String,
    /// Whether the part has a file name, which is not read.
    pub(crate) is_file: bool,
    /// Range of the content in the body.
    pub(crate) content: Range<usize>,
}

/// Boundary in a content type.
pub(crate) fn boundary(content_type: &str) -> Option<String> {
    let boundary = parameter(content_type, "boundary")?;
    (1..=BOUNDARY_BYTES_MAX).contains(&boundary.len()).then_some(boundary)
}

/// Splits a body into at most `max` parts; `None` if it is malformed or incomplete. Reads each byte a fixed number of
/// times.
pub(crate) fn parts(body: &[u8], boundary: &str, max: usize) -> Option<Vec<Part>> {
    let delimiter = format!("\r\n--{boundary}");
    let find = memmem::Finder::new(&delimiter);
    let mut at = match delimiter.as_bytes().get(2..) {
        Some(first) if body.starts_with(first) => first.len(),
        // Text before the first boundary is ignored.
        _ => find.find(body)? + delimiter.len(),
    };
    let mut parts = Vec::new();
    while parts.len() < max {
        let rest = body.get(at..)?;
        if rest.starts_with(b"--") {
            return Some(parts);
        }
        let padding = rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
        // In a part without headers, the line break after the boundary is also the first of the two that end the head.
        let head = rest.get(padding..)?.strip_prefix(b"\r\n").and_then(|_| rest.get(padding..))?;
        let head = head.get(..HEAD_BYTES_MAX).unwrap_or(head);
        let head = head.get(..memmem::find(head, b"\r\n\r\n")?)?;
        let start = at + padding + head.len() + 4;
        let length = find.find(body.get(start..)?)?;
        let (name, is_file) = named(&String::from_utf8_lossy(head));
        parts.push(Part { name, is_file, content: start..start + length });
        at = start + length + delimiter.len();
    }
    Some(parts)
}

/// Name of a part, and whether it is a file.
fn named(head: &str) -> (String, bool) {
    let disposition = head.split("\r\n").find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.trim().eq_ignore_ascii_case("content-disposition").then_some(value)
    });
    let of = |name| disposition.and_then(|value| parameter(value, name));
    (of("name").unwrap_or_default(), of("filename").or_else(|| of("filename*")).is_some())
}

/// Value of a parameter after the first `;`, without quotes.
fn parameter(value: &str, name: &str) -> Option<String> {
    let (_, mut rest) = value.split_once(';')?;
    loop {
        let (given, after) = rest.split_once('=')?;
        let given = given.trim_matches([' ', '\t', ';']);
        let (found, after) = match after.trim_start().strip_prefix('"') {
            Some(quoted) => unquoted(quoted)?,
            None => {
                let (found, after) = after.split_once(';').unwrap_or((after, ""));
                (found.trim().to_owned(), after)
            }
        };
        if given.eq_ignore_ascii_case(name) {
            return Some(found);
        }
        rest = after;
    }
}

/// Text before the closing quote, unescaped, and the rest.
fn unquoted(text: &str) -> Option<(String, &str)> {
    let (mut found, mut is_escaped) = (String::new(), false);
    for (at, character) in text.char_indices() {
        match character {
            '"' if !is_escaped => return Some((found, text.get(at + 1..)?)),
            '\\' if !is_escaped => is_escaped = true,
            character => {
                found.push(character);
                is_escaped = false;
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(body: &str) -> Option<Vec<(String, bool, &str)>> {
        let parts = parts(body.as_bytes(), "x", 10)?;
        Some(parts.into_iter().map(|part| (part.name, part.is_file, &body[part.content])).collect())
    }

    #[test]
    fn boundaries_are_plain_or_in_quotes() {
        for (given, expect) in [
            ("multipart/form-data; boundary=abc", Some("abc")),
            ("multipart/form-data;charset=utf-8; Boundary=\"a; b\"", Some("a; b")),
            ("multipart/form-data; x=\"boundary=no\"; boundary=yes ; y=z", Some("yes")),
            ("multipart/form-data", None),
            ("multipart/form-data; boundary=", None),
            ("multipart/form-data; boundary=\"a", None),
        ] {
            assert_eq!(boundary(given).as_deref(), expect, "{given}");
        }
        let long = |bytes| boundary(&format!("a; boundary={}", "b".repeat(bytes)));
        assert!(long(BOUNDARY_BYTES_MAX).is_some() && long(BOUNDARY_BYTES_MAX + 1).is_none());
    }

    #[test]
    fn fields_and_files_are_read_as_clients_write_them() {
        let part = |head: &str, text: &str| format!("--x\r\n{head}\r\n\r\n{text}\r\n");
        let field = "Content-Disposition: form-data; name=\"a\"";
        let file = "content-type: image/png\r\nCONTENT-DISPOSITION: form-data; name=\"b c\"; \
                    filename=\"q\\\";name=d\"";
        let is = |name: &str, is_file, text| (name.to_owned(), is_file, text);
        let cut = [&part(field, "1\r\n--x2"), "--x--\r\n"].concat();
        assert_eq!(read(&cut), None, "a boundary within a field ends it");
        let body =
            [&part(field, "1"), &part(file, "--x\r\n-y"), &part(field, ""), "--x--"].concat();
        let expect = vec![is("a", false, "1"), is("b c", true, "--x\r\n-y"), is("a", false, "")];
        assert_eq!(read(&body).as_ref(), Some(&expect));
        assert_eq!(read(&format!("preamble\r\n{body}epilogue")), Some(expect));
        assert_eq!(read("--x--"), Some(Vec::new()));
        assert_eq!(read("--x \t\r\n\r\ntext\r\n--x--"), Some(vec![is("", false, "text")]));
        for end in 0..body.len() {
            assert_eq!(read(&body[..end]), None, "cut after {end} bytes");
        }
        let long = format!("{field}\r\nx: {}", "y".repeat(HEAD_BYTES_MAX));
        assert_eq!(read(&[&part(&long, "1"), "--x--"].concat()), None);
        let many = [part(field, "1").repeat(20).as_str(), "--x--"].concat();
        assert_eq!(read(&many).unwrap().len(), 10);
    }

    proptest! {
        #[test]
        fn parts_are_within_the_body_in_order_and_contain_no_boundary(
            body in "(--x|\r\n|\r\n--x|\r\n\r\n|--|Content-Disposition: form-data;| name=|\"|\\\\|[a-z;= ]){0,40}",
        ) {
            let mut end = 0;
            for part in parts(body.as_bytes(), "x", 10).unwrap_or_default() {
                prop_assert!(end <= part.content.start && part.content.start <= part.content.end);
                end = part.content.end;
                prop_assert!(!body[part.content].contains("\r\n--x"));
            }
        }
    }
}
