//! Tokenizer for URLs, mentions and hashtags in texts, used by the rules, the HTML, the length limit and both APIs. The
//! pages have the same algorithm in `crates/web/js/text.js`; `tests/tokens.json` has test cases for both.
//!
//! **Invariant:** finding all tokens of a text takes a number of steps linear in its length. The characters of a found
//! token are not read again. An attempt that finds no token has read a bounded number of characters, or only characters
//! at which no other token can begin. Brackets are paired once for all URLs between two spaces.

use std::borrow::Cow;

use unicode_segmentation::UnicodeSegmentation as _;

use crate::handle::{Handle, is_handle_byte};
use crate::limits::{DOMAIN_BYTES_MAX, HANDLE_CHARS_MAX, POST_TAGS_MAX, URL_CHARS};
use crate::tags::{self, Tag};

/// Characters that begin a hashtag: `#` and its fullwidth form.
pub const TAG_SIGNS: [char; 2] = ['#', '\u{ff03}'];

/// A URL, a mention or a hashtag in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token<'t> {
    /// Byte offset of the first character.
    pub start: usize,
    /// Text of the token as written.
    pub text: &'t str,
    /// Kind of the token.
    pub kind: TokenKind<'t>,
}

/// Kind of a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TokenKind<'t> {
    /// A URL with the scheme `http` or `https`.
    Url,
    /// `@name`: a mention of a user of this server, if the handle is registered.
    Mention(Handle),
    /// `@name@domain`: mentions nobody until [`without_domain`] turns it into a mention.
    Address(Handle, &'t str),
    /// A hashtag.
    Tag(Tag),
}

/// Iterator over the tokens of a text, in order.
#[derive(Clone, Debug)]
pub struct Tokens<'t> {
    text: &'t str,
    /// Byte offset of the unread rest.
    at: usize,
    brackets: Brackets,
    #[cfg(test)]
    steps: usize,
}

/// Brackets and quotation marks from the first URL to the next gap.
#[derive(Clone, Debug, Default)]
struct Brackets {
    /// Byte offset of the gap.
    end: usize,
    /// Byte offset of each opening bracket, in order, and of the end of its pair.
    pairs: Vec<(usize, Option<usize>)>,
    /// Index of the next pair to look at.
    next: usize,
}

/// Finds the tokens of a text.
#[must_use]
pub fn tokens(text: &str) -> Tokens<'_> {
    Tokens {
        text,
        at: 0,
        brackets: Brackets::default(),
        #[cfg(test)]
        steps: 0,
    }
}

/// Counts the user-perceived characters (grapheme clusters) of a text. A URL counts as [`URL_CHARS`], and the domain of
/// a mention does not count, as in Mastodon.
#[must_use]
pub fn length(text: &str) -> usize {
    let (mut length, mut counted) = (0, 0);
    let plain = |from: usize, to: usize| {
        text.get(from..to).map_or(0, |plain| plain.graphemes(true).count())
    };
    for token in tokens(text) {
        match token.kind {
            TokenKind::Url => length += plain(counted, token.start) + URL_CHARS,
            TokenKind::Address(handle, _) => {
                length += plain(counted, token.start) + 1 + handle.as_str().len();
            }
            TokenKind::Mention(_) | TokenKind::Tag(_) => continue,
        }
        counted = token.start + token.text.len();
    }
    length + plain(counted, text.len())
}

/// Replaces `@name@domain` with `@name` if `domain` is the server's own, where both mention the same user.
#[must_use]
pub fn without_domain<'t>(text: &'t str, domain: &str) -> Cow<'t, str> {
    let (mut short, mut copied) = (String::new(), 0);
    for token in tokens(text) {
        if let TokenKind::Address(handle, of) = token.kind
            && of.eq_ignore_ascii_case(domain)
        {
            let end = token.start + 1 + handle.as_str().len();
            short.push_str(text.get(copied..end).unwrap_or_default());
            copied = token.start + token.text.len();
        }
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    short.push_str(text.get(copied..).unwrap_or_default());
    Cow::Owned(short)
}

/// Finds the distinct hashtags of a text in their order, at most [`POST_TAGS_MAX`].
#[must_use]
pub fn tags(text: &str) -> Vec<Tag> {
    let mut tags = Vec::new();
    if !text.contains(TAG_SIGNS) {
        return tags;
    }
    for token in tokens(text) {
        if let TokenKind::Tag(tag) = token.kind
            && !tags.contains(&tag)
        {
            tags.push(tag);
            if tags.len() == POST_TAGS_MAX {
                break;
            }
        }
    }
    tags
}

impl<'t> Iterator for Tokens<'t> {
    type Item = Token<'t>;

    fn next(&mut self) -> Option<Token<'t>> {
        while let Some(rest) = self.text.get(self.at..) {
            // The fullwidth form of `#` begins with the byte 0xef.
            let begins = |byte| matches!(byte, b'@' | b'#' | b'h' | b'H' | 0xef);
            let Some(plain) = rest.bytes().position(begins) else {
                self.step(rest.len());
                self.at = self.text.len();
                return None;
            };
            self.step(plain + 1);
            let start = self.at + plain;
            let c = self.char_at(start)?;
            let before = self.text.get(..start).and_then(|before| before.chars().next_back());
            let found = match c {
                '@' => self.mention(start, before),
                'h' | 'H' => self.url(start, before),
                _ => self.tag(start, before),
            };
            if let Some((end, kind)) = found {
                self.at = end;
                let text = self.text.get(start..end)?;
                return Some(Token { start, text, kind });
            }
            self.at = start + c.len_utf8();
        }
        None
    }
}

impl<'t> Tokens<'t> {
    fn char_at(&self, at: usize) -> Option<char> {
        self.text.get(at..)?.chars().next()
    }

    /// Counts characters read, for tests.
    fn step(&mut self, characters: usize) {
        #[cfg(test)]
        {
            self.steps += characters;
        }
        let _ = characters;
    }

    /// Returns end and kind of the mention at `start`, if there is one.
    fn mention(&mut self, start: usize, before: Option<char>) -> Option<(usize, TokenKind<'t>)> {
        let is_within = |c| is_word(c) && !rows::has_bug("mention-in-words");
        if before.is_some_and(|c| is_within(c) || is_accent(c) || "@/=".contains(c)) {
            return None;
        }
        let rest = self.text.get(start + 1..)?;
        let is_part = |byte: &u8| is_handle_byte(*byte);
        let length = rest.bytes().take(HANDLE_CHARS_MAX + 1).take_while(is_part).count();
        self.step(length);
        let handle = Handle::parse(rest.get(..length)?).ok()?;
        let (end, rest) = (start + 1 + length, rest.get(length..)?);
        let Some(rest) = rest.strip_prefix('@') else {
            return (!continues(rest)).then_some((end, TokenKind::Mention(handle)));
        };
        let (domain, read) = domain(rest);
        self.step(read);
        let is_whole = !domain.is_empty() && !continues(rest.get(domain.len()..)?);
        is_whole.then(|| (end + 1 + domain.len(), TokenKind::Address(handle, domain)))
    }

    /// Returns end and kind of the hashtag at `start`, if there is one.
    fn tag(&mut self, start: usize, before: Option<char>) -> Option<(usize, TokenKind<'t>)> {
        if before.is_some_and(|c| is_word(c) || TAG_SIGNS.contains(&c) || "/&=".contains(c)) {
            return None;
        }
        let rest = self.text.get(start..)?;
        let written = tags::word(rest.strip_prefix(TAG_SIGNS)?);
        // None of its characters begins a token.
        self.step(written.len());
        let sign = rest.chars().next()?.len_utf8();
        let tag = Tag::parse(written).ok()?;
        Some((start + sign + written.len(), TokenKind::Tag(tag)))
    }

    /// Returns the end of the URL at `start`, if there is one. Excludes punctuation of the sentence around it.
    fn url(&mut self, start: usize, before: Option<char>) -> Option<(usize, TokenKind<'t>)> {
        if before.is_some_and(|c| is_word(c) && !is_unspaced(c)) {
            return None;
        }
        let rest = self.text.get(start..)?;
        let scheme = ["https://", "http://"].into_iter().find(|scheme| {
            rest.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme))
        })?;
        let mut host = rest.get(scheme.len()..)?.chars();
        let is_host = match host.next()? {
            '[' => host.next().is_some_and(|c| c.is_ascii_hexdigit() || c == ':'),
            c => c.is_alphanumeric(),
        };
        if !is_host {
            return None;
        }
        let mut at = start + scheme.len();
        let mut end = at;
        while let Some(c) = self.char_at(at) {
            self.step(1);
            if is_gap(c) || is_stop(c) {
                break;
            }
            at += c.len_utf8();
            if is_bracket(c) {
                // An unpaired bracket belongs to the surrounding text.
                let Some(close) = self.closed(at - c.len_utf8()) else { break };
                (at, end) = (close, close);
            } else if !".,;:!?'*_~".contains(c) {
                end = at;
            }
        }
        (end > start + scheme.len()).then_some((end, TokenKind::Url))
    }

    /// Returns the end of the pair of an opening bracket. Calls must be in the order of the brackets.
    fn closed(&mut self, at: usize) -> Option<usize> {
        if at >= self.brackets.end {
            self.pair_brackets(at);
        }
        let Brackets { pairs, next, .. } = &mut self.brackets;
        while pairs.get(*next).is_some_and(|(open, _)| *open < at) {
            *next += 1;
        }
        pairs.get(*next).filter(|(open, _)| *open == at)?.1
    }

    /// Pairs the brackets from a byte offset to the next gap.
    fn pair_brackets(&mut self, from: usize) {
        let (mut pairs, mut open) = (Vec::new(), Vec::new());
        let mut end = from;
        for c in self.text.get(from..).unwrap_or_default().chars().take_while(|c| !is_gap(*c)) {
            let at = end;
            end += c.len_utf8();
            match open.last().copied() {
                Some((index, opening)) if closes(opening, c) => {
                    open.pop();
                    if let Some((_, close)) = pairs.get_mut(index) {
                        *close = Some(end);
                    }
                }
                _ if is_opening(c) => {
                    open.push((pairs.len(), c));
                    pairs.push((at, None));
                }
                _ => {}
            }
        }
        self.step(end - from + 1);
        self.brackets = Brackets { end: end.max(from + 1), pairs, next: 0 };
    }
}

/// Whether the character is part of a word.
fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Whether `rest` continues the name before it, so that the name is part of a longer name, an address, a host or a
/// package.
fn continues(rest: &str) -> bool {
    // Invisible characters may be copied along with a mention.
    let begins_unseen = rest.starts_with(is_invisible);
    let mut rest = rest.trim_start_matches(is_invisible).chars();
    let (Some(c), next) = (rest.next(), rest.next()) else { return false };
    match c {
        // These are '@' and its fullwidth form.
        '@' | '\u{ff20}' => true,
        _ if begins_unseen => false,
        '/' | '-' => true,
        '.' => next.is_some_and(is_word),
        // Addresses of Matrix contain a colon.
        ':' => next.is_some_and(|c| c.is_ascii_alphanumeric()),
        c => is_word(c) && !is_unspaced(c) || is_accent(c),
    }
}

/// Returns the domain and port at the start of `text`, empty if there is none, and the number of bytes read.
fn domain(text: &str) -> (&str, usize) {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b':');
    let bytes = text.bytes().take(DOMAIN_BYTES_MAX + 1);
    let read = bytes.take_while(|byte| is_part(*byte)).count();
    let domain = text.get(..read).filter(|_| read <= DOMAIN_BYTES_MAX).unwrap_or_default();
    let host = domain.split(':').next().unwrap_or_default();
    let port = domain.get(host.len() + 1..).unwrap_or_default();
    let digits = port.bytes().take_while(u8::is_ascii_digit).count();
    let length = if digits > 0 { host.len() + 1 + digits } else { host.len() };
    let domain = domain.get(..length).unwrap_or_default();
    // Punctuation at the end belongs to the sentence.
    let domain = domain.trim_end_matches(['.', '-']);
    (if domain.starts_with(['.', '-', ':']) { "" } else { domain }, read)
}

/// Whether the letter is of a script written without spaces between words.
fn is_unspaced(c: char) -> bool {
    matches!(c,
        '\u{e00}'..='\u{fff}'
        | '\u{1000}'..='\u{109f}'
        | '\u{1100}'..='\u{11ff}'
        | '\u{1780}'..='\u{17ff}'
        | '\u{1950}'..='\u{19df}'
        | '\u{1a20}'..='\u{1aaf}'
        | '\u{2e80}'..='\u{2fdf}'
        | '\u{3005}'..='\u{3007}'
        | '\u{3021}'..='\u{31ff}'
        | '\u{3400}'..='\u{a4cf}'
        | '\u{a960}'..='\u{a97f}'
        | '\u{a9e0}'..='\u{a9ff}'
        | '\u{aa60}'..='\u{aadf}'
        | '\u{ac00}'..='\u{d7ff}'
        | '\u{f900}'..='\u{faff}'
        | '\u{ff66}'..='\u{ffdc}'
        | '\u{1b000}'..='\u{1b16f}'
        | '\u{20000}'..='\u{3ffff}')
}

/// Whether the character is a combining accent.
fn is_accent(c: char) -> bool {
    matches!(c,
        '\u{300}'..='\u{36f}'
        | '\u{483}'..='\u{489}'
        | '\u{1ab0}'..='\u{1aff}'
        | '\u{1dc0}'..='\u{1dff}'
        | '\u{20d0}'..='\u{20ff}'
        | '\u{fe20}'..='\u{fe2f}')
}

/// Whether the character always ends a URL: spaces, control characters, characters that URLs exclude, and invisible or
/// bidirectional formatting characters.
fn is_gap(c: char) -> bool {
    c.is_whitespace()
        || c.is_control()
        || "<>\"`{}|\\^\u{ff02}".contains(c)
        || is_unseen(c)
        || matches!(c, '\u{fff9}'..='\u{fffd}')
}

/// Whether the character is invisible and not a joiner.
fn is_unseen(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{feff}'
        | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}')
}

/// Whether the character is invisible on its own.
fn is_invisible(c: char) -> bool {
    is_unseen(c) || matches!(c, '\u{200c}' | '\u{200d}' | '\u{fe00}'..='\u{fe0f}')
}

/// Whether the character is non-ASCII punctuation of sentences, which ends a URL outside of brackets.
fn is_stop(c: char) -> bool {
    matches!(c,
        '\u{2025}' | '\u{2026}' | '\u{203c}' | '\u{2047}'..='\u{2049}'
        | '\u{3001}' | '\u{3002}' | '\u{ff61}' | '\u{ff64}'
        | '\u{ff01}' | '\u{ff0c}' | '\u{ff0e}' | '\u{ff1a}' | '\u{ff1b}' | '\u{ff1f}'
        | '\u{fe10}'..='\u{fe19}'
        | '\u{fe50}'..='\u{fe57}'
        | '\u{589}' | '\u{60c}' | '\u{61b}' | '\u{61f}' | '\u{6d4}' | '\u{964}' | '\u{965}'
        | '\u{104a}' | '\u{104b}' | '\u{1362}' | '\u{17d4}' | '\u{17d5}' | '\u{1802}' | '\u{1803}')
}

/// Opening brackets and quotation marks, with their closing ones.
const PAIRS: [(char, &str); 37] = [
    ('(', ")"),
    ('[', "]"),
    ('\u{ab}', "\u{bb}"),
    ('\u{2018}', "\u{2019}"),
    ('\u{201a}', "\u{2018}\u{2019}"),
    ('\u{201c}', "\u{201d}"),
    ('\u{201e}', "\u{201c}\u{201d}"),
    ('\u{2039}', "\u{203a}"),
    ('\u{2045}', "\u{2046}"),
    ('\u{2329}', "\u{232a}"),
    ('\u{275b}', "\u{275c}"),
    ('\u{275d}', "\u{275e}"),
    ('\u{2768}', "\u{2769}"),
    ('\u{27e6}', "\u{27e7}"),
    ('\u{27e8}', "\u{27e9}"),
    ('\u{27ea}', "\u{27eb}"),
    ('\u{2985}', "\u{2986}"),
    ('\u{2e22}', "\u{2e23}"),
    ('\u{2e28}', "\u{2e29}"),
    ('\u{3008}', "\u{3009}"),
    ('\u{300a}', "\u{300b}"),
    ('\u{300c}', "\u{300d}"),
    ('\u{300e}', "\u{300f}"),
    ('\u{3010}', "\u{3011}"),
    ('\u{3014}', "\u{3015}"),
    ('\u{3016}', "\u{3017}"),
    ('\u{3018}', "\u{3019}"),
    ('\u{301a}', "\u{301b}"),
    ('\u{301d}', "\u{301e}\u{301f}"),
    ('\u{fd3e}', "\u{fd3f}"),
    ('\u{fe59}', "\u{fe5a}"),
    ('\u{ff08}', "\u{ff09}"),
    ('\u{ff1c}', "\u{ff1e}"),
    ('\u{ff3b}', "\u{ff3d}"),
    ('\u{ff5b}', "\u{ff5d}"),
    ('\u{ff5f}', "\u{ff60}"),
    ('\u{ff62}', "\u{ff63}"),
];

fn is_opening(c: char) -> bool {
    may_be_bracket(c) && PAIRS.iter().any(|(open, _)| *open == c)
}

fn closes(open: char, c: char) -> bool {
    may_be_bracket(c) && PAIRS.iter().any(|(one, close)| *one == open && close.contains(c))
}

fn is_bracket(c: char) -> bool {
    may_be_bracket(c) && PAIRS.iter().any(|(open, close)| *open == c || close.contains(c))
}

/// Whether the character may be in `PAIRS`: a fast check before the search.
fn may_be_bracket(c: char) -> bool {
    matches!(c,
        '(' | ')' | '[' | ']' | '\u{ab}' | '\u{bb}'
        | '\u{2018}'..='\u{2046}'
        | '\u{2329}'..='\u{2e29}'
        | '\u{3008}'..='\u{301f}'
        | '\u{fd3e}'..='\u{ff63}')
}

/// Work of tokenizing one byte of text.
pub(crate) const TEXT_WORK: usize = 32;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Number of characters read to find all tokens.
    fn steps(text: &str) -> usize {
        let mut tokens = tokens(text);
        tokens.by_ref().for_each(drop);
        tokens.steps
    }

    /// Maximum number of characters read per byte of text.
    const STEPS_MAX: usize = 6;

    #[test]
    fn no_text_takes_more_steps_than_a_multiple_of_its_length() {
        for part in [
            "http://.",
            "http://a",
            "http://a(",
            "http://a\u{ff08}\u{3001}",
            "http://a\u{3001}(",
            "http://a)(",
            "http://a.......",
            "(http://a)",
            "http://[:",
            "h",
            "#",
            "#a\u{301}",
            "#\u{b7}",
            "#a\u{b7}\u{b7}",
            "@",
            "@a",
            " @a@b",
            " @a@b.",
            " @a@-",
            "@a-",
            "\u{ff03}",
            "\u{201e}\u{201c}",
            "\u{300c}",
        ] {
            for begin in ["", "#", "@a@", "http://a", "http://a(", "@"] {
                for end in ["", ")", "@", "\u{301}", "x"] {
                    let text = [begin, &part.repeat(8_000 / part.len()), end].concat();
                    let steps = steps(&text);
                    assert!(steps <= STEPS_MAX * text.len(), "{steps} for {begin}{part}...{end}");
                }
            }
        }
    }

    proptest! {
        #[test]
        fn a_text_that_is_longer_takes_as_many_steps_more(
            part in r"(https?://|[@#()\[\]\u{ff08}\u{ff09}\u{3001}\u{301}\u{b7}\u{201c}\u{201e} .a:-]){1,12}",
        ) {
            for times in [64, 128, 256] {
                let text = part.repeat(times);
                let steps = steps(&text);
                prop_assert!(steps <= STEPS_MAX * text.len(), "{} for {} x {:?}", steps, times, part);
            }
        }
    }
}
