//! Lines of an export: JSON objects with one field, whose name is the kind of the line.
//!
//! A user is a number (the id) or a string (the handle); other ids are strings of decimal digits. A time is an RFC 3339
//! text with milliseconds, or a number of milliseconds since 1970; times after the year 9999 are written as numbers.
//! Fields that an import may omit are `Option`s; unknown fields are errors.

use std::borrow::Cow;
use std::cell::Cell;
use std::fmt;

use feed::{Handle, UserId, UserRef};
use jiff::Timestamp;
use rows::Stamp;
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use super::counts::TransferCounts;
use super::list_lines::List;
use super::poll_lines::{Scheduled, Vote};
use super::post_lines::{Post, Reaction, Story, View};
use super::user_lines::{Note, User};

/// Format that this code writes, and the newest that it reads.
pub(crate) const FORMAT_VERSION: u32 = 1;
/// Maximum length of a line in bytes. It exceeds the length of the longest value, in base64 or as a text whose
/// characters are all escaped.
pub(crate) const LINE_BYTES_MAX: usize = 48 << 20;
const _: () =
    assert!(2 * (kv::limits::VALUE_BYTES_MAX + kv::limits::KEY_BYTES_MAX) < LINE_BYTES_MAX);

/// Line of an export.
#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Line<'a> {
    #[serde(borrow)]
    Export(Header<'a>),
    User(Box<User<'a>>),
    #[serde(borrow)]
    Relation(Related<'a>),
    Mute(Mute),
    #[serde(borrow)]
    Note(Note<'a>),
    #[serde(borrow)]
    List(List<'a>),
    FollowOptions(FollowOptions),
    Post(Box<Post<'a>>),
    #[serde(borrow)]
    Reaction(Reaction<'a>),
    Vote(Vote),
    Scheduled(Box<Scheduled<'a>>),
    Story(Story<'a>),
    View(View),
    Sample(Sample<'a>),
    #[serde(borrow)]
    Feed(Feed<'a>),
    Bucket(Bucket<'a>),
    Key(Key<'a>),
    End(End<'a>),
}

/// First line.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Header<'a> {
    pub(crate) format: u32,
    /// Version of the program that wrote the export.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub(crate) roost: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) time: Option<Time>,
    /// Last used id: ids up to this one are never assigned again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) last_id: Option<Id>,
}

/// Users to whom a user has a relation.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Related<'a> {
    /// `block`, `not_interested`, `follow`, `request` or `friends`.
    #[serde(borrow)]
    pub(crate) kind: Cow<'a, str>,
    pub(crate) user: Who,
    pub(crate) users: Vec<Who>,
}

/// User whom a user mutes.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Mute {
    pub(crate) user: Who,
    pub(crate) mutes: Who,
    /// Whether mentions are hidden too.
    #[serde(default)]
    pub(crate) mentions: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ends: Option<Time>,
}

/// Options of a follow or of a request.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FollowOptions {
    pub(crate) user: Who,
    pub(crate) follows: Who,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) without_boosts: bool,
    /// Id that contains the time since which the user is notified of the other user's posts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) notified_since: Option<Id>,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Sample<'a> {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) id: Option<Id>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) time: Option<Time>,
    #[serde(borrow)]
    pub(crate) set: Cow<'a, str>,
    #[serde(borrow)]
    pub(crate) label: Cow<'a, str>,
    /// Sample as 256 hexadecimal digits, as in the API.
    #[serde(borrow)]
    pub(crate) sample: Cow<'a, str>,
}

/// Stored definition of a ranked feed.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Feed<'a> {
    #[serde(borrow)]
    pub(crate) name: Cow<'a, str>,
    /// Definition, as in the API.
    #[serde(borrow)]
    pub(crate) definition: &'a RawValue,
}

/// Named bucket. Numbered buckets always exist.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Bucket<'a> {
    #[serde(borrow)]
    pub(crate) name: Cow<'a, str>,
}

/// Key and value, each as text or in base64.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Key<'a> {
    #[serde(borrow)]
    pub(crate) bucket: Cow<'a, str>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub(crate) key: Option<Cow<'a, str>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub(crate) key_base64: Option<Cow<'a, str>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub(crate) value: Option<Cow<'a, str>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub(crate) value_base64: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) expires: Option<Time>,
    /// Version of the last change, for conditional requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) version: Option<Id>,
}

/// Last line.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct End<'a> {
    /// Numbers of the items in the lines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) counts: Option<TransferCounts>,
    /// Digest of the lines between the first and the last, in hexadecimal digits.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub(crate) sha256: Option<Cow<'a, str>>,
}

/// User, as a number or a handle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Who(pub(crate) UserRef);

impl From<UserId> for Who {
    fn from(user: UserId) -> Self {
        Self(UserRef::Id(user))
    }
}

impl Serialize for Who {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            UserRef::Id(UserId(id)) => out.serialize_u32(*id),
            UserRef::Handle(handle) => out.serialize_str(handle.as_str()),
        }
    }
}

impl<'de> Deserialize<'de> for Who {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        struct IdOrHandle;
        impl Visitor<'_> for IdOrHandle {
            type Value = Who;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("the id of a user or a string with the handle")
            }

            fn visit_u64<E: Error>(self, id: u64) -> Result<Who, E> {
                let id = u32::try_from(id).map_err(|_| E::custom("there is no such user"))?;
                Ok(UserId(id).into())
            }

            fn visit_str<E: Error>(self, handle: &str) -> Result<Who, E> {
                Ok(Who(UserRef::Handle(Handle::parse(handle).map_err(E::custom)?)))
            }
        }
        input.deserialize_any(IdOrHandle)
    }
}

/// Correction of ids and times that come from a clock that was ahead: all from a time on are set back by the same
/// difference, so their order stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetBack {
    /// Earliest wrong time, in milliseconds since 1970.
    pub from_ms: u64,
    /// Time by which the clock was ahead, in milliseconds.
    pub by_ms: u64,
}

thread_local! {
    /// Correction of the lines that this thread reads. It is thread-local because serde passes no context to the types
    /// of fields.
    static SET_BACK: Cell<Option<SetBack>> = const { Cell::new(None) };
}

impl SetBack {
    /// Corrects everything that `read` reads on this thread.
    pub fn during<T>(of: Option<Self>, read: impl FnOnce() -> T) -> T {
        let before = SET_BACK.replace(of);
        let done = read();
        SET_BACK.set(before);
        done
    }

    fn time(self, ms: u64) -> u64 {
        if ms < self.from_ms { ms } else { ms.saturating_sub(self.by_ms) }
    }

    /// Corrects an id, which has a time in its upper bits. Ids of users are small numbers and stay.
    fn id(self, id: u64) -> u64 {
        if Stamp(id) < Stamp::first_of(self.from_ms) {
            return id;
        }
        let at = Stamp(id).unix_ms();
        let within = id - Stamp::first_of(at).0;
        Stamp::first_of(self.time(at)).0 + within
    }
}

/// An id: a number of 63 bits as a string of decimal digits, because many programs round long numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Id(pub(crate) u64);

impl Serialize for Id {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        out.collect_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Id {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        let text = Cow::<str>::deserialize(input)?;
        let digits = text.bytes().all(|byte| byte.is_ascii_digit());
        let number = digits.then(|| text.parse().ok()).flatten();
        let number: Option<u64> = number;
        number
            .map(|id| Self(SET_BACK.get().map_or(id, |set_back| set_back.id(id))))
            .ok_or_else(|| D::Error::custom("an id is a string of decimal digits"))
    }
}

/// Time in milliseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Time(pub(crate) u64);

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        let time = i64::try_from(self.0).ok();
        match time.and_then(|ms| Timestamp::from_millisecond(ms).ok()) {
            Some(time) => out.collect_str(&format_args!("{time:.3}")),
            None => out.serialize_u64(self.0),
        }
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        struct TextOrMs;
        impl Visitor<'_> for TextOrMs {
            type Value = Time;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a time such as \"2026-11-22T12:30:00Z\" or milliseconds since 1970")
            }

            fn visit_u64<E: Error>(self, ms: u64) -> Result<Time, E> {
                Ok(Time(SET_BACK.get().map_or(ms, |set_back| set_back.time(ms))))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Time, E> {
                let time: Result<Timestamp, _> = text.parse();
                let ms = time.ok().and_then(|time| u64::try_from(time.as_millisecond()).ok());
                let wrong = || E::custom(format_args!("{text:?} is not a time after 1970"));
                self.visit_u64(ms.ok_or_else(wrong)?)
            }
        }
        input.deserialize_any(TextOrMs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_set_back_keeps_the_order_of_ids_and_the_times_before() {
        let (right, wrong, by_ms) = (1_795_000_000_000, 2_110_000_000_000, 315_360_000_000);
        let set_back = SetBack { from_ms: 2_000_000_000_000, by_ms };
        let id = |ms: u64, within: u64| Stamp::first_of(ms).0 + within;
        for (before, expect) in [
            (7, 7),
            (id(right, 5), id(right, 5)),
            (id(set_back.from_ms, 0) - 1, id(set_back.from_ms, 0) - 1),
            (id(wrong, 0), id(wrong - by_ms, 0)),
            (id(wrong, 5), id(wrong - by_ms, 5)),
            (id(wrong + 1, 0), id(wrong + 1 - by_ms, 0)),
        ] {
            let text = format!("\"{before}\"");
            let read = || serde_json::from_str::<Id>(&text).unwrap().0;
            assert_eq!(SetBack::during(Some(set_back), read), expect, "{before}");
            assert_eq!(read(), before, "only as long as it lasts");
        }
        for (text, expect) in [
            ("1795000000000", right),
            ("2110000000000", wrong - by_ms),
            ("\"2036-11-11T07:06:40Z\"", wrong - by_ms),
        ] {
            let read = || serde_json::from_str::<Time>(text).unwrap().0;
            assert_eq!(SetBack::during(Some(set_back), read), expect, "{text}");
        }
    }

    #[test]
    fn times_keep_their_milliseconds_also_after_the_year_9999() {
        for (ms, expect) in [
            (0, "\"1970-01-01T00:00:00.000Z\""),
            (1_795_000_000_007, "\"2026-11-18T11:06:40.007Z\""),
            (253_402_000_000_000, "\"9999-12-28T12:26:40.000Z\""),
            (253_402_300_800_000, "253402300800000"),
            (u64::MAX, "18446744073709551615"),
        ] {
            let text = serde_json::to_string(&Time(ms)).unwrap();
            assert_eq!(text, expect);
            assert_eq!(serde_json::from_str::<Time>(&text).unwrap(), Time(ms));
        }
        for wrong in ["\"1969-12-31T23:59:59Z\"", "\"yesterday\"", "-1", "1.5", "null"] {
            assert!(serde_json::from_str::<Time>(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn ids_are_strings_of_digits_and_users_numbers_or_handles() {
        assert_eq!(serde_json::from_str::<Id>("\"07\"").unwrap(), Id(7));
        for wrong in ["7", "\"\"", "\"+7\"", "\"18446744073709551616\"", "\"x\""] {
            assert!(serde_json::from_str::<Id>(wrong).is_err(), "{wrong}");
        }
        assert_eq!(serde_json::from_str::<Who>("7").unwrap(), UserId(7).into());
        let bob = Who(UserRef::Handle(Handle::parse("bob").unwrap()));
        assert_eq!(serde_json::from_str::<Who>("\"Bob\"").unwrap(), bob);
        for wrong in ["-1", "4294967296", "\"\"", "\"a b\"", "null", "[]"] {
            assert!(serde_json::from_str::<Who>(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_line_is_one_thing_and_nothing_else() {
        for (line, good) in [
            (r#"{"user":{"handle":"ann"}}"#, true),
            (r#"{"user":{"handle":"ann","age":3}}"#, false),
            (r#"{"user":{"handle":"ann","handle":"bob"}}"#, false),
            (r#"{"user":{"handle":"ann"},"bucket":{"name":"b"}}"#, false),
            (r#"{"person":{"handle":"ann"}}"#, false),
            (r#"{"post":{"author":0,"text":"x","language":"en"}}"#, true),
            (r#"{"post":{"author":0,"text":"x","more":1}}"#, false),
            (r#"{"post":{"author":0,"text":"x","text":"y"}}"#, false),
            (r#"{"post":{"author":0}}"#, false),
            (r#"{"scheduled":{"author":0,"id":"7","due":7,"text":"x","more":1}}"#, false),
            (r#"{"user":{"handle":"ann"}} x"#, false),
            (r"{}", false),
            ("", false),
        ] {
            assert_eq!(serde_json::from_str::<Line>(line).is_ok(), good, "{line}");
        }
    }
}
