//! Text for HTML and SVG, and addresses of files next to the page.

/// Escapes markup in text, for use between tags and within double quotes.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            // Of the control characters, HTML allows only these; the others are replaced.
            '\n' | '\t' => escaped.push(character),
            control if control.is_control() => escaped.push('\u{fffd}'),
            other => escaped.push(other),
        }
    }
    escaped
}

/// Encodes a relative path as an address, with percent encoding of special characters.
pub fn address(path: &str) -> String {
    let mut address = String::new();
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'/' => {
                address.push(char::from(byte));
            }
            other => address.push_str(&format!("%{other:02X}")),
        }
    }
    // A colon before the first slash would begin a scheme, but colons are percent-encoded here.
    address
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn text_is_escaped() {
        for (text, expect) in [
            ("plain — ä", "plain — ä"),
            ("<b a=\"1\" c='2'>&", "&lt;b a=&quot;1&quot; c=&#39;2&#39;&gt;&amp;"),
            ("line\nline\u{1b}[1m", "line\nline\u{fffd}[1m"),
        ] {
            assert_eq!(escape(text), expect);
        }
    }

    #[test]
    fn a_path_is_an_address_of_a_file() {
        for (path, expect) in [
            ("report-data/home-reads.hgrm", "report-data/home-reads.hgrm"),
            ("a b#c?d%e-data/ä", "a%20b%23c%3Fd%25e-data/%C3%A4"),
            ("javascript:alert(1)", "javascript%3Aalert%281%29"),
        ] {
            assert_eq!(address(path), expect);
        }
    }

    proptest! {
        #[test]
        fn escaped_text_contains_no_markup(text: String) {
            let escaped = escape(&text);
            prop_assert!(!escaped.contains(['<', '>', '"', '\'', '\0']), "{}", escaped);
        }
    }
}
