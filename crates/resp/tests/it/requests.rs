//! Tests of requests: the pieces in which bytes arrive do not change the commands, and invalid requests give Redis's
//! errors.

use crate::support::{Read, TINY, feed, reference};
use proptest::prelude::*;
use resp::{Ahead, Encoder, Limits, Parser, Protocol, ProtocolError};

fn parser(limits: Limits, authenticated: bool) -> Parser {
    let mut parser = Parser::new(limits);
    parser.set_authenticated(authenticated);
    parser
}

fn multibulk(words: &[impl AsRef<[u8]>]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut encoder = Encoder::new(&mut out, Protocol::Resp2);
    encoder.array(words.len());
    words.iter().for_each(|word| encoder.bulk(word.as_ref()));
    out
}

#[test]
fn every_split_of_a_stream_gives_the_same_commands() {
    let stream = [
        &b"*2\r\n$3\r\nGET\r\n$5\r\nd\r\n\0t\r\n*0\r\n\r\nPING\r\n*-10\r\n set 'a b' \"\\x00\\n\"\n"[..],
        &multibulk(&[&b"SET"[..], b"", &[b'v'; 120]]),
        b"*1\r\n$4\r\nQU",
    ]
    .concat();
    let whole = feed(&stream, &[stream.len()], Parser::new(Limits::REDIS));
    let names: Vec<_> = whole.commands.iter().map(|words| words[0].as_slice()).collect();
    assert_eq!(names, [&b"GET"[..], b"PING", b"set", b"SET"]);
    assert_eq!(whole.commands[2][1..], [b"a b".to_vec(), b"\0\n".to_vec()]);
    assert_eq!(whole.end, Ok(10));
    for one in 1..stream.len() {
        for two in 1..=stream.len() - one {
            let pieces = [one, two, stream.len()];
            assert_eq!(feed(&stream, &pieces, Parser::new(Limits::REDIS)), whole, "{pieces:?}");
        }
    }
    assert_eq!(feed(&stream, &[1], Parser::new(Limits::REDIS)), whole, "byte by byte");
}

/// Parts of streams: valid, invalid, or meaningless ones.
fn part() -> impl Strategy<Value = Vec<u8>> {
    let bytes = |max| prop::collection::vec(any::<u8>(), 0..max);
    let inline = prop::sample::select(b" \t\x0b\r\"'\\\\xfnab01G*$".as_slice());
    let inline = prop::collection::vec(inline, 0..30);
    let digits = prop_oneof![
        (-2i64..20).prop_map(|number| number.to_string()),
        prop::sample::select(vec!["", "-", "-0", "+1", "01", "00", "1x", "2147483648"])
            .prop_map(str::to_owned),
        any::<i64>().prop_map(|number| number.to_string()),
    ];
    let marker = prop::sample::select(vec!["*", "$", "*1\r\n$", "*2\r\n$1\r\na\r\n$", "*1\r\n"]);
    prop_oneof![
        6 => prop::collection::vec(bytes(16), 0..6).prop_map(|words| multibulk(&words)),
        1 => prop::collection::vec(bytes(2), 6..16).prop_map(|words| multibulk(&words)),
        4 => (inline, any::<bool>()).prop_map(|(line, crlf)| {
            [line.as_slice(), if crlf { b"\r\n" } else { b"\n" }].concat()
        }),
        2 => (marker, digits).prop_map(|(marker, digits)| format!("{marker}{digits}\r\n").into_bytes()),
        1 => bytes(40),
    ]
}

/// A stream of a few parts, with possibly one byte replaced, and truncated anywhere.
fn stream() -> impl Strategy<Value = Vec<u8>> {
    let change = prop::option::of((any::<prop::sample::Index>(), any::<u8>()));
    let cut = prop::option::of(any::<prop::sample::Index>());
    (prop::collection::vec(part(), 0..6), change, cut).prop_map(|(parts, change, cut)| {
        let mut stream = parts.concat();
        if let (Some((at, byte)), false) = (change, stream.is_empty()) {
            let at = at.index(stream.len());
            stream[at] = byte;
        }
        if let Some(cut) = cut {
            stream.truncate(cut.index(stream.len() + 1));
        }
        stream
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn the_parser_equals_the_reference(
        stream in stream(),
        pieces in prop::collection::vec(1_usize..40, 1..6),
        tiny in any::<bool>(),
        authenticated in any::<bool>(),
    ) {
        let limits = if tiny { TINY } else { Limits::REDIS };
        let read = feed(&stream, &pieces, parser(limits, authenticated));
        prop_assert_eq!(read, reference(&stream, &limits, authenticated));
    }

    #[test]
    fn a_look_ahead_sees_nothing_but_what_the_parser_returns_later(stream in stream()) {
        let mut ahead = Ahead::new(&stream);
        let seen: Vec<_> =
            ahead.by_ref().map(|(name, word)| vec![name.to_vec(), word.to_vec()]).collect();
        let read = feed(&stream, &[stream.len()], Parser::new(Limits::REDIS));
        prop_assert!(read.commands.starts_with(&seen), "{seen:?} before {:?}", read.commands);
        prop_assert!(stream.ends_with(ahead.rest()));
    }

    #[test]
    fn any_bytes_are_read_or_refused(
        stream in prop::collection::vec(any::<u8>(), 0..300),
        pieces in prop::collection::vec(1_usize..40, 1..6),
    ) {
        let read = feed(&stream, &pieces, Parser::new(TINY));
        prop_assert_eq!(read, reference(&stream, &TINY, true));
    }
}

#[test]
fn a_look_ahead_sees_plain_commands_with_one_argument_up_to_the_first_other_command() {
    let plain = [multibulk(&["GET", "a"]), multibulk(&["ttl", ""])].concat();
    for other in [
        &b""[..],
        b"PING\r\n",
        &multibulk(&["PING"]),
        &multibulk(&["SET", "a", "b"]),
        b"*2\r\n$3\r\nGET\r\n$4\r\nabc",
        b"*2\r\n$3\r\nGET\r\n$-1\r\n",
        b"*02\r\n$3\r\nGET\r\n$1\r\na\r\n",
    ] {
        let stream = [&plain, other].concat();
        let mut ahead = Ahead::new(&stream);
        assert_eq!(ahead.next(), Some((&b"GET"[..], &b"a"[..])));
        assert_eq!(ahead.next(), Some((&b"ttl"[..], &b""[..])));
        assert_eq!(ahead.next(), None, "{}", other.escape_ascii());
        assert_eq!(ahead.rest(), other);
    }
}

fn check_error(limits: Limits, authenticated: bool, stream: &[u8], expect: &str) {
    for pieces in [stream.len(), 4_000] {
        let read = feed(stream, &[pieces], parser(limits, authenticated));
        let shown = stream[..stream.len().min(60)].escape_ascii();
        let expect = Err(format!("ERR Protocol error: {expect}"));
        assert_eq!(read, Read { commands: Vec::new(), end: expect }, "{shown}");
    }
}

#[test]
fn what_is_malformed_is_refused_in_the_words_of_redis() {
    let check = |stream: &[u8], expect: &str| check_error(Limits::REDIS, true, stream, expect);
    for count in ["", "x", "1x", "+1", "01", "-", "-0", "1 ", "3000000000", "9223372036854775808"] {
        check(format!("*{count}\r\n").as_bytes(), "invalid multibulk length");
    }
    for len in ["", "blabla", "-1", "-10", "2000000000", "536870913", "05"] {
        let stream = format!("*3\r\n$3\r\nSET\r\n$1\r\nx\r\n${len}\r\n");
        check(stream.as_bytes(), "invalid bulk length");
    }
    check(b"*1\r\nfoo\r\n", "expected '$', got 'f'");
    check(b"*1\r\n'\r\n", "expected '$', got '''");
    check(b"*1\r\n\r\n", "expected '$', got ' '");
    check(b"*1\r\n\n\r\n", "expected '$', got ' '");
    check(b"*1\r\n\xff\r\n", "expected '$', got '\\xff'");
    check(b"set \"\"\"test-key\"\"\" test-value\r\n", "unbalanced quotes in request");
    for line in ["'", "\"", "a 'b", "\"\\\"", "'a'b", "\"a\"'b'", "\"\\", "'\\'"] {
        check(format!("{line}\r\n").as_bytes(), "unbalanced quotes in request");
    }
}

#[test]
fn what_is_too_large_is_refused_before_it_arrives() {
    let check = |stream: &[u8], expect: &str| check_error(Limits::REDIS, true, stream, expect);
    let endless = |start: &[u8]| [start, &[b'1'; 65_536]].concat();
    check(&endless(b"*"), "too big mbulk count string");
    check(&endless(b"*1\r\n$"), "too big bulk count string");
    check(&endless(b"G"), "too big inline request");
    check(&[endless(b"G"), b"\n".to_vec()].concat(), "too big inline request");
    check(b"*1048577\r\n", "invalid multibulk length");
    let limits = Limits { command_bytes_max: 100_000, ..Limits::REDIS };
    let half = multibulk(&[&[b'x'; 60_000][..], b"y"]);
    let half = half.strip_suffix(b"$1\r\ny\r\n").unwrap();
    check_error(limits, true, &[half, b"$50000\r\n"].concat(), "too big request");
    let fits = format!("${}\r\n", limits.command_bytes_max - half.len() - 10);
    let fits = [half, fits.as_bytes()].concat();
    assert_eq!(feed(&fits, &[fits.len()], Parser::new(limits)).end, Ok(fits.len()));
}

#[test]
fn a_nul_in_an_inline_command_keeps_everything_after_it_from_being_executed() {
    let stream = [b"\0payload\n".as_slice(), b"FLUSHALL\r\n".repeat(10_000).as_slice()].concat();
    check_error(Limits::REDIS, true, &stream, "too big inline request");
}

#[test]
fn a_client_that_has_not_authenticated_may_send_little() {
    let check = |stream: &[u8], expect: &str| check_error(Limits::REDIS, false, stream, expect);
    check(b"*11\r\n", "unauthenticated multibulk length");
    check(b"*1\r\n$16385\r\n", "unauthenticated bulk length");
    let most = multibulk(&[[b'x'; 16_384]; 10]);
    let read = feed(&most, &[most.len()], parser(Limits::REDIS, false));
    assert_eq!((read.commands.len(), read.end), (1, Ok(0)));
}

#[test]
fn authentication_counts_from_the_next_command_on() {
    let mut parser = parser(Limits::REDIS, false);
    let stream = [b"AUTH secret\r\n", multibulk(&[b"x"; 11]).as_slice()].concat();
    let mut rest = stream.as_slice();
    let mut refused = {
        assert_eq!(parser.next(&mut rest).unwrap().unwrap().name(), b"AUTH");
        rest
    };
    assert_eq!(parser.next(&mut refused).unwrap_err(), ProtocolError::UnauthenticatedCount);
    parser.set_authenticated(true);
    assert_eq!(parser.next(&mut rest).unwrap().unwrap().arguments().len(), 10);
}

#[test]
fn inline_commands_are_split_as_redis_does() {
    let check = |line: &str, expect: &[&str]| {
        let mut parser = Parser::new(Limits::REDIS);
        let stream = format!("x {line}\n");
        let mut rest = stream.as_bytes();
        let command = parser.next(&mut rest).unwrap().unwrap();
        let words: Vec<_> = command.arguments().map(String::from_utf8_lossy).collect();
        assert_eq!(words, expect, "{line:?}");
    };
    check("", &[]);
    check("  a \t b\r", &["a", "b"]);
    check("\"\" ''", &["", ""]);
    check("foo\"bar baz\" q'u'", &["foobar baz", "qu"]);
    check(r#""\x41\x4a\xzz\n\r\t\b\a\q\"\\""#, &["AJxzz\n\r\t\u{8}\u{7}q\"\\"]);
    check(r"'\n\'\x41'", &[r"\n'\x41"]);
    check("a\u{b}b \u{b}c \"d\"\u{c}e", &["a\u{b}b", "c", "d", "e"]);
    check(r"a\ b", &["a\\", "b"]);
}

#[test]
fn arguments_are_taken_by_place_and_by_number() {
    let mut parser = Parser::new(Limits::REDIS);
    let stream = multibulk(&["set", "key", "value"]);
    let command = parser.next(&mut stream.as_slice()).unwrap().unwrap();
    assert_eq!((command.name(), command.argument(1)), (&b"set"[..], Some(&b"value"[..])));
    assert_eq!(command.argument(2), None);
    assert!(command.arguments().eq([&b"key"[..], b"value"]));
    let shown = format!("{command:?}");
    assert!(shown.contains("set") && !shown.contains("value"), "no secret in {shown}");
}

#[test]
fn an_http_request_is_recognized_by_its_first_word() {
    let check = |stream: &[u8], expect: bool| {
        let mut parser = Parser::new(Limits::REDIS);
        let command = parser.next(&mut &*stream).unwrap().unwrap();
        assert_eq!(command.is_http(), expect, "{}", stream.escape_ascii());
    };
    check(b"POST / HTTP/1.1\r\n", true);
    check(b"Host: localhost:6380\r\n", true);
    check(b"*1\r\n$4\r\npost\r\n", true);
    check(b"GET / HTTP/1.1\r\n", false);
    check(b"hostname\r\n", false);
}

#[test]
fn a_command_in_very_many_pieces_is_read_once() {
    let many = multibulk(&vec![b"v"; 100_000]);
    let mut parser = Parser::new(Limits::REDIS);
    for end in 1..many.len() {
        assert!(parser.next(&mut &many[..end]).unwrap().is_none(), "{end} bytes are incomplete");
    }
    assert_eq!(parser.next(&mut many.as_slice()).unwrap().unwrap().arguments().len(), 99_999);
    let large = multibulk(&[&b"SET"[..], b"key", &vec![b'x'; 16 << 20]]);
    for end in (1..large.len()).step_by(4_096) {
        assert!(parser.next(&mut &large[..end]).unwrap().is_none(), "{end} bytes are incomplete");
    }
    let command = parser.next(&mut large.as_slice()).unwrap().unwrap();
    assert_eq!(command.argument(1).map(<[u8]>::len), Some(16 << 20));
}
