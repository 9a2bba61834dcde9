//! Checked texts of accounts, valid by construction as in [`crate::text`].

use std::net::{Ipv4Addr, Ipv6Addr};

use serde::{Deserialize, Serialize};
use unicode_segmentation::UnicodeSegmentation as _;

use crate::limits;
use crate::refusal::Refusal;

/// An e-mail address in lower case: addresses that differ only in case are equal.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Email(Box<str>);

/// Hash of a password, as a PHC string of argon2id.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PasswordHash(Box<str>);

/// Name of an app, on one line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AppName(Box<str>);

/// Website of an app: an http or https URL.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Website(Box<str>);

/// Redirect URI of an app: an http or https URL, or a URI that opens an app, both without a fragment; or
/// [`RedirectUri::OUT_OF_BAND`]. The URI of an app has a scheme with a dot (`com.example.app:/back`, RFC 8252), or is
/// `name://...` with a name that no browser or operating system uses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RedirectUri(Box<str>);

impl Email {
    /// Trims, checks and folds `text`.
    ///
    /// # Errors
    /// [`Refusal::BadEmail`] if it cannot be an address.
    pub fn parse(text: &str) -> Result<Self, Refusal> {
        let text = text.trim();
        let plain = text.chars().all(|c| !c.is_whitespace() && !c.is_control());
        let mut parts = text.split('@');
        let (name, host) = (parts.next().unwrap_or(""), parts.next().unwrap_or(""));
        let is_whole = parts.next().is_none() && !name.is_empty() && !host.is_empty();
        let host_is_plain = !host.starts_with('.') && !host.ends_with('.') && !host.contains("..");
        let fits = text.len() <= limits::EMAIL_BYTES_MAX;
        // Folding to lower case may add bytes.
        let folded = text.to_lowercase();
        if plain && is_whole && host_is_plain && fits && folded.len() <= limits::EMAIL_BYTES_MAX {
            Ok(Self(folded.into()))
        } else {
            Err(Refusal::BadEmail)
        }
    }
}

impl PasswordHash {
    /// Checks `text`.
    ///
    /// # Errors
    /// [`Refusal::BadPasswordHash`] if it is not a PHC string of argon2id, or too long.
    pub fn parse(text: &str) -> Result<Self, Refusal> {
        let plain = text.bytes().all(|byte| byte.is_ascii_graphic());
        let fits = text.len() <= limits::PASSWORD_HASH_BYTES_MAX;
        if plain && fits && text.starts_with("$argon2id$") {
            Ok(Self(text.into()))
        } else {
            Err(Refusal::BadPasswordHash)
        }
    }
}

/// Keeps hashes out of logs.
impl std::fmt::Debug for PasswordHash {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("PasswordHash(..)")
    }
}

impl AppName {
    /// Trims and checks `text`.
    ///
    /// # Errors
    /// [`Refusal::BadAppName`] if it is empty, too long, looks empty, or holds characters that change lines or the
    /// direction of the text around it.
    pub fn parse(text: &str) -> Result<Self, Refusal> {
        let text = text.trim();
        let plain = !text.chars().any(|c| c.is_control() || is_direction(c));
        let fits = text.len() <= limits::APP_NAME_BYTES_MAX
            && text.graphemes(true).count() <= limits::APP_NAME_CHARS_MAX;
        if plain && fits && !text.chars().all(is_blank) {
            Ok(Self(text.into()))
        } else {
            Err(Refusal::BadAppName)
        }
    }
}

impl Website {
    /// Checks `text`.
    ///
    /// # Errors
    /// [`Refusal::BadWebsite`] if it is no http or https URL.
    pub fn parse(text: &str) -> Result<Self, Refusal> {
        match scheme_and_rest(text) {
            Some(("http" | "https", rest)) if is_of_web(rest) => Ok(Self(text.into())),
            _ => Err(Refusal::BadWebsite),
        }
    }
}

impl RedirectUri {
    /// Redirect URI for codes that the user copies by hand.
    pub const OUT_OF_BAND: &'static str = "urn:ietf:wg:oauth:2.0:oob";

    /// Checks `text`.
    ///
    /// # Errors
    /// [`Refusal::BadRedirectUri`] if it has none of these forms, or a fragment.
    pub fn parse(text: &str) -> Result<Self, Refusal> {
        let valid = match scheme_and_rest(text) {
            None => false,
            Some(_) if text == Self::OUT_OF_BAND => true,
            Some(("http" | "https", rest)) => is_of_web(rest),
            Some((scheme, _)) if scheme.contains('.') => is_escaped(text),
            Some((scheme, rest)) => {
                rest.starts_with("//") && !is_of_system(scheme) && is_escaped(text)
            }
        };
        if valid && !text.contains('#') {
            Ok(Self(text.into()))
        } else {
            Err(Refusal::BadRedirectUri)
        }
    }

    /// Whether the user copies the code by hand.
    #[must_use]
    pub fn is_out_of_band(&self) -> bool {
        &*self.0 == Self::OUT_OF_BAND
    }
}

/// Splits a URI into its scheme, which must be in lower case, and the rest after the colon.
fn scheme_and_rest(text: &str) -> Option<(&str, &str)> {
    if text.len() > limits::URI_BYTES_MAX || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return None;
    }
    // Browsers treat these characters as delimiters or remove them.
    if text.contains(['\\', '"', '<', '>', '^', '`', '{', '|', '}']) {
        return None;
    }
    let (scheme, rest) = text.split_once(':')?;
    let begins = scheme.starts_with(|c: char| c.is_ascii_lowercase());
    let follows = scheme.bytes().all(|byte| {
        byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'+' | b'-' | b'.')
    });
    (begins && follows && !rest.is_empty()).then_some((scheme, rest))
}

/// Whether the character changes the direction of the text around it.
fn is_direction(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Whether the character is blank: spaces, joiners, fillers and variation selectors.
fn is_blank(c: char) -> bool {
    c.is_whitespace()
        || matches!(
            c,
            '\u{ad}' | '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
                | '\u{200b}'..='\u{200d}' | '\u{2028}'..='\u{2029}' | '\u{2060}'..='\u{206f}' | '\u{2800}'
                | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{e0000}'..='\u{e0fff}'
        )
}

/// Whether a browser or operating system uses this scheme without a dot.
fn is_of_system(scheme: &str) -> bool {
    // Families of schemes, such as `chrome-extension` and `ms-settings`, are found by their first part.
    let family = scheme.split(['-', '+']).next().unwrap_or_default();
    SYSTEM_SCHEMES.contains(&scheme) || SYSTEM_SCHEMES.contains(&family)
}

/// Schemes, and first words of schemes, used by browsers and operating systems.
const SYSTEM_SCHEMES: [&str; 56] = [
    "about",
    "afp",
    "android",
    "blob",
    "brave",
    "chrome",
    "cid",
    "content",
    "data",
    "devtools",
    "dict",
    "dns",
    "edge",
    "facetime",
    "feed",
    "file",
    "filesystem",
    "finger",
    "ftp",
    "ftps",
    "git",
    "gopher",
    "imap",
    "intent",
    "ipfs",
    "ipp",
    "irc",
    "jar",
    "javascript",
    "ldap",
    "ldaps",
    "mailto",
    "market",
    "mhtml",
    "mid",
    "moz",
    "ms",
    "news",
    "nfs",
    "nntp",
    "opera",
    "pop",
    "resource",
    "rtsp",
    "sftp",
    "sip",
    "smb",
    "sms",
    "ssh",
    "tel",
    "telnet",
    "vbscript",
    "view",
    "vivaldi",
    "ws",
    "wss",
];

/// Whether the rest after `http:` or `https:` has a host, an optional port, and a valid path.
fn is_of_web(rest: &str) -> bool {
    let Some(rest) = rest.strip_prefix("//").filter(|rest| is_escaped(rest)) else { return false };
    // A host with `@` is refused, because a user name before the host could imitate another host.
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    let (host, port) = match authority.rfind(':') {
        Some(at) if !authority.ends_with(']') => authority.split_at(at),
        _ => (authority, ":1"),
    };
    let port = port.trim_start_matches(':');
    let is_port = port.bytes().all(|byte| byte.is_ascii_digit()) && port.parse() != Ok(0_u16);
    is_port && port.parse::<u16>().is_ok() && is_host(host)
}

/// Whether the text is a host name, an IPv4 address, or an IPv6 address in brackets.
fn is_host(host: &str) -> bool {
    if let Some(address) = host.strip_prefix('[') {
        return address.strip_suffix(']').is_some_and(|text| text.parse::<Ipv6Addr>().is_ok());
    }
    let is_label = |label: &str| {
        let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        !label.is_empty() && label.bytes().all(is_inner)
    };
    // Browsers parse every host that ends in a number as an address.
    let last = host.rsplit('.').next().unwrap_or_default();
    let is_number = last.starts_with(|c: char| c.is_ascii_digit());
    host.split('.').all(is_label) && (!is_number || host.parse::<Ipv4Addr>().is_ok())
}

/// Whether each `%` begins a valid escape.
fn is_escaped(text: &str) -> bool {
    let mut parts = text.split('%');
    parts.next();
    parts.all(|part| part.bytes().take(2).filter(u8::is_ascii_hexdigit).count() == 2)
}

crate::text::as_str!(Email, PasswordHash, AppName, Website, RedirectUri);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_folded_and_need_a_name_and_a_host() {
        let long = format!("{}@example.org", "a".repeat(250));
        for (text, expect) in [
            ("Ann@Example.ORG ", Some("ann@example.org")),
            ("a+b@localhost", Some("a+b@localhost")),
            ("ann", None),
            ("@example.org", None),
            ("ann@", None),
            ("a@b@c", None),
            ("a b@example.org", None),
            ("a\n@example.org", None),
            ("ann@.org", None),
            ("ann@a..org", None),
            (long.as_str(), None),
            ("", None),
        ] {
            assert_eq!(Email::parse(text).ok().as_ref().map(Email::as_str), expect, "{text:?}");
        }
    }

    #[test]
    fn redirects_are_absolute_without_a_fragment_and_run_no_code() {
        let long = format!("https://example.org/{}", "a".repeat(limits::URI_BYTES_MAX));
        for (text, expect) in [
            ("https://app.example/back?x=1", true),
            ("http://localhost:1234/", true),
            ("http://127.0.0.1", true),
            ("http://[::1]:8080/back", true),
            ("https://app.example?x=%20", true),
            ("https://xn--bcher-kva.example:65535", true),
            ("com.example.app:/oauth", true),
            ("com.example.app:back", true),
            ("tusky://oauth", true),
            ("icecubesapp://", true),
            ("mastodon-android-auth://callback", true),
            ("web+app://x", true),
            (RedirectUri::OUT_OF_BAND, true),
            ("https://app.example/#part", false),
            ("https:///path", false),
            ("https://", false),
            ("https://good.example@evil.example/", false),
            ("https://good.example\\@evil.example/", false),
            ("//app.example/", false),
            ("/path", false),
            ("javascript:alert(1)", false),
            ("JavaScript:alert(1)", false),
            ("data:text/html,x", false),
            ("view-source:https://app.example/", false),
            ("view-source://app.example/", false),
            ("filesystem:https://app.example/temporary/x", false),
            ("jar:https://app.example/x!/y", false),
            ("mhtml:https://app.example/x", false),
            ("chrome://settings", false),
            ("chrome-extension://abc/back", false),
            ("moz-extension://abc/back", false),
            ("resource://x", false),
            ("ftp://app.example/", false),
            ("file:///etc/passwd", false),
            ("ws://app.example/", false),
            ("ms-settings://x", false),
            ("intent://x", false),
            ("mailto:ann@example.org", false),
            ("tusky:oauth", false),
            ("tusky://%", false),
            ("urn:ietf:wg:oauth:2.0:oob:auto", false),
            ("https://a b/", false),
            ("https://a\n/", false),
            ("", false),
            (":x", false),
            (long.as_str(), false),
        ] {
            assert_eq!(RedirectUri::parse(text).is_ok(), expect, "{text:?}");
        }
    }

    #[test]
    fn urls_of_the_web_have_a_host_a_port_and_escapes_that_are_possible() {
        for bad in [
            "http://:80/",
            "http://app.example:",
            "http://app.example:0/",
            "http://app.example:65536/",
            "http://app.example:x/",
            "http://app.example:+1/",
            "http://app..example/",
            "http://.example/",
            "http://app.example./",
            "http://app%2eexample/",
            "http://[::1/",
            "http://[::g]/",
            "http://::1/",
            "http://1.2.3/",
            "http://127.0.0.256/",
            "http://127.0.0.0x1/",
            "http:app.example/",
            "http:/app.example/",
            "https://app.example/%zz",
            "https://app.example/%2",
        ] {
            assert!(RedirectUri::parse(bad).is_err(), "{bad}");
            assert!(Website::parse(bad).is_err(), "{bad}");
        }
        assert!(Website::parse("https://app.example").is_ok());
        assert!(Website::parse("javascript:alert(1)").is_err());
        assert!(Website::parse("app://x").is_err());
        assert!(Website::parse("https://app.example:x").is_err());
    }

    #[test]
    fn the_name_of_an_app_is_seen_and_changes_no_text_around_it() {
        for (text, expect) in [
            ("Elk", true),
            (" Tusky \u{1f418} ", true),
            ("\u{5d0}\u{5d1}", true),
            ("", false),
            ("\u{200b}\u{2060}", false),
            ("\u{3164}", false),
            ("Elk\u{202e}gnp", false),
            ("Elk\u{2067}", false),
            ("Elk\nasks", false),
        ] {
            assert_eq!(AppName::parse(text).is_ok(), expect, "{text:?}");
        }
    }

    #[test]
    fn a_password_hash_is_of_argon2id_and_never_shown() {
        let hash = PasswordHash::parse("$argon2id$v=19$m=19456,t=2,p=1$c2FsdA$aGFzaA").unwrap();
        assert_eq!(format!("{hash:?}"), "PasswordHash(..)");
        for bad in [
            "",
            "secret",
            "$argon2i$v=19$",
            "$argon2id$ x",
            &format!("$argon2id${hash:?}{}", "x".repeat(300)),
        ] {
            assert!(PasswordHash::parse(bad).is_err(), "{bad}");
        }
    }
}
