//! Tests of replies: encoding gives the bytes that clients of both protocol versions expect, and decoding returns what
//! was encoded.

use proptest::prelude::*;
use resp::{Encoder, Protocol, ProtocolError};
use testkit::{DecodeError, Decoder, Reply, ReplyLimits};

const TINY: ReplyLimits =
    ReplyLimits { depth_max: 3, elements_max: 6, bulk_bytes_max: 10, line_bytes_max: 12 };

fn encoded(protocol: Protocol, say: impl FnOnce(&mut Encoder<'_>)) -> Vec<u8> {
    let mut out = Vec::new();
    say(&mut Encoder::new(&mut out, protocol));
    out
}

#[test]
#[allow(clippy::redundant_closure_for_method_calls, reason = "a method is bound to one encoder")]
fn each_version_gets_its_own_bytes() {
    let check = |say: fn(&mut Encoder<'_>), resp2: &str, resp3: &str| {
        for (protocol, expect) in [(Protocol::Resp2, resp2), (Protocol::Resp3, resp3)] {
            let out = encoded(protocol, say);
            assert_eq!(
                out.escape_ascii().to_string(),
                expect.as_bytes().escape_ascii().to_string()
            );
        }
    };
    let both = |say: fn(&mut Encoder<'_>), expect: &str| check(say, expect, expect);
    both(|out| out.simple("OK"), "+OK\r\n");
    both(|out| out.simple("two\r\nlines"), "+two  lines\r\n");
    both(|out| out.error("WRONGPASS no\n+OK"), "-WRONGPASS no +OK\r\n");
    both(
        |out| out.error(ProtocolError::ExpectedBulk(b'f')),
        "-ERR Protocol error: expected '$', got 'f'\r\n",
    );
    both(|out| out.integer(i64::MIN), ":-9223372036854775808\r\n");
    both(|out| out.bulk(b"a\r\n\0"), "$4\r\na\r\n\0\r\n");
    both(|out| out.bulk(b""), "$0\r\n\r\n");
    both(|out| out.array(2), "*2\r\n");
    check(|out| out.verbatim(*b"txt", b"a\nb"), "$3\r\na\nb\r\n", "=7\r\ntxt:a\nb\r\n");
    check(|out| out.null(), "$-1\r\n", "_\r\n");
    check(|out| out.null_array(), "*-1\r\n", "_\r\n");
    check(|out| out.boolean(true), ":1\r\n", "#t\r\n");
    check(|out| out.boolean(false), ":0\r\n", "#f\r\n");
    check(|out| out.map(2), "*4\r\n", "%2\r\n");
    check(|out| out.set(3), "*3\r\n", "~3\r\n");
    check(|out| out.push(3), "*3\r\n", ">3\r\n");
    check(|out| out.big_number("-12"), "$3\r\n-12\r\n", "(-12\r\n");
    check(|out| out.double(3.0), "$1\r\n3\r\n", ",3\r\n");
    check(|out| out.double(-0.1), "$4\r\n-0.1\r\n", ",-0.1\r\n");
    check(|out| out.double(1e300), "$5\r\n1e300\r\n", ",1e300\r\n");
    check(|out| out.double(f64::INFINITY), "$3\r\ninf\r\n", ",inf\r\n");
    check(|out| out.double(f64::NEG_INFINITY), "$4\r\n-inf\r\n", ",-inf\r\n");
    check(|out| out.double(f64::NAN), "$3\r\nnan\r\n", ",nan\r\n");
}

/// Replies of every type, except doubles.
#[derive(Clone, Debug)]
enum Said {
    Simple(String),
    Error(String),
    Integer(i64),
    Bulk(Vec<u8>),
    Verbatim(Vec<u8>),
    Null,
    NullArray,
    Boolean(bool),
    BigNumber(String),
    Array(Vec<Said>),
    Map(Vec<(Said, Said)>),
    Set(Vec<Said>),
    Push(Vec<Said>),
}

fn said() -> impl Strategy<Value = Said> {
    let bytes = || prop::collection::vec(any::<u8>(), 0..20);
    let leaf = prop_oneof![
        "[^\r\n]{0,10}".prop_map(Said::Simple),
        "[A-Z]{3,8} [^\r\n]{0,10}".prop_map(Said::Error),
        any::<i64>().prop_map(Said::Integer),
        bytes().prop_map(Said::Bulk),
        bytes().prop_map(Said::Verbatim),
        Just(Said::Null),
        Just(Said::NullArray),
        any::<bool>().prop_map(Said::Boolean),
        "-?[1-9][0-9]{0,40}".prop_map(Said::BigNumber),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        let several = || prop::collection::vec(inner.clone(), 0..6);
        prop_oneof![
            several().prop_map(Said::Array),
            prop::collection::vec((inner.clone(), inner.clone()), 0..4).prop_map(Said::Map),
            several().prop_map(Said::Set),
            several().prop_map(Said::Push),
        ]
    })
}

impl Said {
    fn say(&self, out: &mut Encoder<'_>) {
        match self {
            Self::Simple(text) => out.simple(text),
            Self::Error(text) => out.error(text),
            Self::Integer(number) => out.integer(*number),
            Self::Bulk(bytes) => out.bulk(bytes),
            Self::Verbatim(text) => out.verbatim(*b"mkd", text),
            Self::Null => out.null(),
            Self::NullArray => out.null_array(),
            Self::Boolean(truth) => out.boolean(*truth),
            Self::BigNumber(digits) => out.big_number(digits),
            Self::Map(pairs) => {
                out.map(pairs.len());
                for (key, value) in pairs {
                    key.say(out);
                    value.say(out);
                }
            }
            Self::Array(parts) | Self::Set(parts) | Self::Push(parts) => {
                match self {
                    Self::Array(_) => out.array(parts.len()),
                    Self::Set(_) => out.set(parts.len()),
                    _ => out.push(parts.len()),
                }
                parts.iter().for_each(|part| part.say(out));
            }
        }
    }

    fn all_heard(parts: &[Self], protocol: Protocol) -> Vec<Reply> {
        parts.iter().map(|part| part.heard(protocol)).collect()
    }

    fn heard(&self, protocol: Protocol) -> Reply {
        match (self, protocol) {
            (Self::Simple(text), _) => Reply::Simple(text.clone()),
            (Self::Error(text), _) => Reply::Error(text.clone()),
            (Self::Integer(number), _) => Reply::Integer(*number),
            (Self::Bulk(bytes), _) => Reply::Bulk(Some(bytes.clone())),
            (Self::Null | Self::NullArray, _) => Reply::Bulk(None),
            (Self::Verbatim(text), Protocol::Resp2) => Reply::Bulk(Some(text.clone())),
            (Self::Verbatim(text), Protocol::Resp3) => Reply::Verbatim(*b"mkd", text.clone()),
            (Self::Boolean(truth), Protocol::Resp2) => Reply::Integer((*truth).into()),
            (Self::Boolean(truth), Protocol::Resp3) => Reply::Boolean(*truth),
            (Self::BigNumber(digits), Protocol::Resp2) => {
                Reply::Bulk(Some(digits.clone().into_bytes()))
            }
            (Self::BigNumber(digits), Protocol::Resp3) => Reply::BigNumber(digits.clone()),
            (Self::Map(pairs), Protocol::Resp2) => {
                let flat = pairs.iter().flat_map(|(key, value)| [key, value]);
                Reply::Array(flat.map(|part| part.heard(protocol)).collect())
            }
            (Self::Map(pairs), Protocol::Resp3) => {
                let pairs = pairs.iter();
                let pairs = pairs.map(|(key, value)| (key.heard(protocol), value.heard(protocol)));
                Reply::Map(pairs.collect())
            }
            (Self::Set(parts), Protocol::Resp3) => Reply::Set(Self::all_heard(parts, protocol)),
            (Self::Push(parts), Protocol::Resp3) => Reply::Push(Self::all_heard(parts, protocol)),
            (Self::Array(parts) | Self::Set(parts) | Self::Push(parts), _) => {
                Reply::Array(Self::all_heard(parts, protocol))
            }
        }
    }
}

/// Decodes `stream` in pieces of `size` bytes. Returns each reply as text, and the number of unfinished bytes or the
/// error at the end.
fn hear(
    stream: &[u8],
    size: usize,
    limits: ReplyLimits,
) -> (Vec<String>, Result<usize, DecodeError>) {
    let mut decoder = Decoder::new(limits);
    let (mut replies, mut start, mut end) = (Vec::new(), 0, 0);
    loop {
        let mut rest = &stream[start..end];
        let reply = decoder.next(&mut rest);
        start = end - rest.len();
        match reply {
            Ok(Some(reply)) => replies.push(format!("{reply:?}")),
            Ok(None) if end == stream.len() => return (replies, Ok(end - start)),
            Ok(None) => end = stream.len().min(end + size),
            Err(error) => return (replies, Err(error)),
        }
    }
}

fn protocols() -> impl Strategy<Value = Protocol> {
    prop_oneof![Just(Protocol::Resp2), Just(Protocol::Resp3)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn what_is_said_is_what_is_heard(
        said in prop::collection::vec(said(), 1..4),
        protocol in protocols(),
    ) {
        let stream = encoded(protocol, |out| said.iter().for_each(|said| said.say(out)));
        let mut decoder = Decoder::new(ReplyLimits::CLIENT);
        let mut rest = stream.as_slice();
        for said in &said {
            let heard = decoder.next(&mut rest).unwrap();
            prop_assert_eq!(heard, Some(said.heard(protocol)));
        }
        prop_assert!(rest.is_empty());
    }

    #[test]
    fn every_double_reads_back_as_itself(bits in any::<u64>(), protocol in protocols()) {
        let number = f64::from_bits(bits);
        let out = encoded(protocol, |out| out.double(number));
        let heard = match Decoder::new(ReplyLimits::CLIENT).next(&mut out.as_slice()).unwrap() {
            Some(Reply::Double(heard)) if protocol == Protocol::Resp3 => heard,
            Some(Reply::Bulk(Some(text))) if protocol == Protocol::Resp2 => {
                str::from_utf8(&text).unwrap().parse().unwrap()
            }
            other => panic!("{other:?}"),
        };
        prop_assert!(heard.to_bits() == bits || (heard.is_nan() && number.is_nan()), "{}", heard);
        prop_assert!(out.len() <= 32, "{}", out.escape_ascii());
    }

    #[test]
    fn pieces_and_damage_do_not_change_what_is_heard(
        said in prop::collection::vec(said(), 1..4),
        damage in prop::option::of((any::<prop::sample::Index>(), any::<u8>())),
        size in 1_usize..20,
        tiny in any::<bool>(),
        protocol in protocols(),
    ) {
        let mut stream = encoded(protocol, |out| said.iter().for_each(|said| said.say(out)));
        if let Some((at, byte)) = damage {
            let at = at.index(stream.len());
            stream[at] = byte;
        }
        let limits = if tiny { TINY } else { ReplyLimits::CLIENT };
        prop_assert_eq!(hear(&stream, size, limits), hear(&stream, stream.len(), limits));
    }
}

#[test]
fn a_malformed_or_excessive_reply_is_refused() {
    let check = |stream: &str, expect: DecodeError| {
        for size in [1, stream.len()] {
            let (replies, end) = hear(stream.as_bytes(), size, TINY);
            assert_eq!((replies.len(), end), (0, Err(expect)), "{stream:?}");
        }
    };
    check("GET\r\n", DecodeError::UnknownType(b'G'));
    check("|1\r\n", DecodeError::UnknownType(b'|'));
    check("+a\nb\r\n", DecodeError::BadEnd);
    check("+a\rb\r\n", DecodeError::BadEnd);
    check("$1\r\nab\r\n", DecodeError::BadEnd);
    check("$1\r\na\n\n", DecodeError::BadEnd);
    check("+1234567890123\r\n", DecodeError::LineTooLong);
    check("+1234567890123", DecodeError::LineTooLong);
    check("$11\r\n", DecodeError::BulkTooLong);
    check("=11\r\n", DecodeError::BulkTooLong);
    check("*7\r\n", DecodeError::TooManyElements);
    check("%4\r\n", DecodeError::TooManyElements);
    check("*3\r\n*4\r\n", DecodeError::TooManyElements);
    check("*1\r\n~1\r\n>1\r\n*0\r\n", DecodeError::TooDeep);
    for wrong in
        ["$", "$-2", "$x", "*-2", "%-1", ":", ":1.5", ",x", ",", "#x", "#", "_x", "(", "(1x"]
    {
        check(&format!("{wrong}\r\n"), DecodeError::BadNumber);
    }
    check("=3\r\ntxt\r\n", DecodeError::BadFormat);
    check("=1\r\na\r\n:1\r\n", DecodeError::BadFormat);
    check("=5\r\ntxt-a\r\n", DecodeError::BadFormat);
}

#[test]
fn replies_at_the_limits_are_read() {
    let stream = b"*1\r\n~1\r\n>1\r\n_\r\n%3\r\n:1\r\n:2\r\n:3\r\n:4\r\n:5\r\n$10\r\n0123456789\r\n+123456789012\r\n!3\r\nERR\r\n";
    let (replies, end) = hear(stream, 3, TINY);
    assert_eq!(end, Ok(0));
    let shown = replies.iter().map(|reply| reply.split('(').next().unwrap()).collect::<Vec<_>>();
    assert_eq!(shown, ["Array", "Map", "Simple", "Error"]);
}
