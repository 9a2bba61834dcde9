//! One line of a batch: a flat object whose `op` says which other fields belong to it.

use std::borrow::Cow;
use std::fmt;

use feed::{Bio, Command, Handle, Idempotency, Lifetime, Name, PostText, UserRef};
use serde::Deserialize;
use serde::de::{Deserializer, Error, Visitor};

use crate::http::error::Problem;
use crate::http::input::{
    checked_key, decimal, given, idempotency, object, post_number, story_number, user, user_number,
};

/// All fields of all commands: telling commands apart first would buffer every line.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line<'a> {
    op: Op,
    #[serde(borrow, default, deserialize_with = "given")]
    handle: Option<Text<'a>>,
    #[serde(borrow, default, deserialize_with = "given")]
    name: Option<Text<'a>>,
    #[serde(borrow, default, deserialize_with = "given")]
    bio: Option<Text<'a>>,
    #[serde(borrow, default, deserialize_with = "given")]
    user: Option<Number<'a>>,
    #[serde(borrow, default, deserialize_with = "given")]
    other: Option<Number<'a>>,
    #[serde(borrow, default, deserialize_with = "given")]
    text: Option<Text<'a>>,
    #[serde(borrow, default, deserialize_with = "given")]
    id: Option<Number<'a>>,
    #[serde(borrow, default, deserialize_with = "given")]
    idempotency_key: Option<Text<'a>>,
    #[serde(default, deserialize_with = "given")]
    ttl_s: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Op {
    Register,
    Follow,
    Unfollow,
    Post,
    DeletePost,
    Befriend,
    Unfriend,
    TellStory,
    DeleteStory,
    ViewStory,
}

/// Text, borrowed from the line unless it holds escapes.
struct Text<'a>(Cow<'a, str>);

/// What names a person, a post or a story: `12`, `"12"`, `"@handle"`.
enum Number<'a> {
    Plain(u64),
    Text(Cow<'a, str>),
}

/// The command of a line. A story lives for `story_life` if the line does not say.
pub(super) fn parse(line: &[u8], story_life: Lifetime) -> Result<node::Request, Problem> {
    let line: Line<'_> = object(line)?;
    let mut fields = Fields { op: line.op, used: 0 };
    let given = line.given();
    let mut key = None;
    let command = match line.op {
        Op::Register => Command::Register {
            handle: Handle::parse(&fields.required("handle", line.handle)?.0)?,
            name: Name::parse(fields.optional(line.name.as_ref()))?,
            bio: Bio::parse(fields.optional(line.bio.as_ref()))?,
        },
        Op::Follow => {
            let (user, other) = fields.two_users(line.user, line.other)?;
            Command::Follow { user, other }
        }
        Op::Unfollow => {
            let (user, other) = fields.two_users(line.user, line.other)?;
            Command::Unfollow { user, other }
        }
        Op::Post => {
            let author = fields.required("user", line.user)?;
            let text = fields.required("text", line.text)?.0;
            key = fields.key(line.idempotency_key.as_ref(), "post", &author, &[text.as_bytes()])?;
            Command::Post { author: author.user()?, text: PostText::parse(&text)? }
        }
        Op::DeletePost => {
            let id = fields.required("id", line.id)?;
            Command::DeletePost { post: post_number(id.number())? }
        }
        Op::Befriend => {
            let (user, other) = fields.two_users(line.user, line.other)?;
            Command::Befriend { user, other }
        }
        Op::Unfriend => {
            let (user, other) = fields.two_users(line.user, line.other)?;
            Command::Unfriend { user, other }
        }
        Op::TellStory => {
            let author = fields.required("user", line.user)?;
            let text = fields.required("text", line.text)?.0;
            // A life that is not given is the same word, whatever the server is set to.
            let life = line.ttl_s.unwrap_or(0).to_be_bytes();
            let content = [&life, text.as_bytes()];
            key = fields.key(line.idempotency_key.as_ref(), "tell_story", &author, &content)?;
            let life = fields.life(line.ttl_s)?.unwrap_or(story_life);
            Command::TellStory { author: author.user()?, text: PostText::parse(&text)?, life }
        }
        Op::DeleteStory => {
            let id = fields.required("id", line.id)?;
            Command::DeleteStory { story: story_number(id.number())? }
        }
        Op::ViewStory => Command::ViewStory {
            story: story_number(fields.required("id", line.id)?.number())?,
            viewer: fields.required("user", line.user)?.user()?,
        },
    };
    if fields.used < given {
        let message = format!("a line of op {:?} has a field that does not belong to it", line.op);
        return Err(Problem::bad_json(message));
    }
    Ok(node::Request { command, idempotency: key })
}

/// Counts the fields that a command makes use of.
struct Fields {
    op: Op,
    used: usize,
}

impl Fields {
    fn required<T>(&mut self, name: &str, field: Option<T>) -> Result<T, Problem> {
        self.used += 1;
        let op = self.op;
        field.ok_or_else(|| Problem::bad_json(format!("a line of op {op:?} needs {name}")))
    }

    fn two_users(
        &mut self,
        user: Option<Number<'_>>,
        other: Option<Number<'_>>,
    ) -> Result<(UserRef, UserRef), Problem> {
        Ok((self.required("user", user)?.user()?, self.required("other", other)?.user()?))
    }

    /// The key of a line, if it has one: for its op, for whom it names and for what it says.
    fn key(
        &mut self,
        key: Option<&Text<'_>>,
        op: &str,
        user: &Number<'_>,
        content: &[&[u8]],
    ) -> Result<Option<Idempotency>, Problem> {
        let Some(key) = key else { return Ok(None) };
        self.used += 1;
        let (op, user) = (format!("batch {op}"), user.as_text());
        let scope = [op.as_bytes(), user.as_bytes(), checked_key(key.0.as_bytes())?];
        Ok(Some(idempotency(&scope, &content.concat())))
    }

    fn life(&mut self, secs: Option<u64>) -> Result<Option<Lifetime>, Problem> {
        self.used += usize::from(secs.is_some());
        Ok(secs.map(Lifetime::from_secs).transpose()?)
    }

    /// The text of a field, empty if it is absent.
    fn optional<'a>(&mut self, field: Option<&'a Text<'_>>) -> &'a str {
        self.used += usize::from(field.is_some());
        field.map_or("", |text| &text.0)
    }
}

impl Line<'_> {
    fn given(&self) -> usize {
        let given = [
            self.handle.is_some(),
            self.name.is_some(),
            self.bio.is_some(),
            self.user.is_some(),
            self.other.is_some(),
            self.text.is_some(),
            self.id.is_some(),
            self.idempotency_key.is_some(),
            self.ttl_s.is_some(),
        ];
        given.into_iter().filter(|given| *given).count()
    }
}

impl Number<'_> {
    fn number(&self) -> Option<u64> {
        match self {
            Self::Plain(number) => Some(*number),
            Self::Text(text) => decimal(text),
        }
    }

    fn user(&self) -> Result<UserRef, Problem> {
        match self {
            Self::Plain(number) => user_number(Some(*number)),
            Self::Text(text) => user(text),
        }
    }

    fn as_text(&self) -> Cow<'_, str> {
        match self {
            Self::Plain(number) => number.to_string().into(),
            Self::Text(text) => Cow::Borrowed(text),
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OfText;
        impl<'de> Visitor<'de> for OfText {
            type Value = Text<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Borrowed(text)))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(OfText)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Number<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OfNumber;
        impl<'de> Visitor<'de> for OfNumber {
            type Value = Number<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an id or @handle")
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<Number<'de>, E> {
                Ok(Number::Plain(number))
            }

            fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Number<'de>, E> {
                Ok(Number::Text(Cow::Borrowed(text)))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Number<'de>, E> {
                Ok(Number::Text(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_any(OfNumber)
    }
}

#[cfg(test)]
mod tests {
    use feed::{PostId, StoryId, UserId};

    use super::*;

    fn parse(line: &[u8]) -> Result<node::Request, Problem> {
        super::parse(line, Lifetime::from_secs(60).unwrap())
    }

    fn check(line: &str, expect: impl Into<Result<Command, &'static str>>) {
        let parsed = parse(line.as_bytes());
        let expect = expect.into();
        assert_eq!(parsed.map(|r| r.command).map_err(|problem| problem.code), expect, "{line}");
    }

    fn id(id: u32) -> UserRef {
        UserRef::Id(UserId(id))
    }

    fn handle(text: &str) -> UserRef {
        UserRef::Handle(Handle::parse(text).unwrap())
    }

    #[test]
    fn lines_name_people_and_posts_as_numbers_strings_or_handles() {
        let follow = |user, other| Ok(Command::Follow { user, other });
        check(r#"{"op":"follow","user":1,"other":2}"#, follow(id(1), id(2)));
        check(r#"{"op":"follow","user":"1","other":"@Bob"}"#, follow(id(1), handle("bob")));
        check(r#"{"other":2,"user":"\u0031","op":"follow"}"#, follow(id(1), id(2)));
        let unfollow = Command::Unfollow { user: id(1), other: id(2) };
        check(r#"{"op":"unfollow","user":1,"other":2}"#, Ok(unfollow));
        let delete = |post| Ok(Command::DeletePost { post: PostId(post) });
        check(r#"{"op":"delete_post","id":7}"#, delete(7));
        check(r#"{"op":"delete_post","id":"7"}"#, delete(7));
        let text = PostText::parse("caf\u{e9} \"x\"").unwrap();
        let post = Command::Post { author: handle("a"), text };
        check(r#"{"op":"post","user":"@a","text":"caf\u00e9 \"x\""}"#, Ok(post));
        let register = Command::Register {
            handle: Handle::parse("a").unwrap(),
            name: Name::parse("A").unwrap(),
            bio: Bio::default(),
        };
        check(r#"{"op":"register","handle":"A","name":"A"}"#, Ok(register));
    }

    #[test]
    fn lines_tell_of_friends_and_stories() {
        let (user, other) = (id(1), handle("bob"));
        let line = |op: &str| format!(r#"{{"op":"{op}","user":1,"other":"@bob"}}"#);
        let befriend = Command::Befriend { user: user.clone(), other: other.clone() };
        check(&line("befriend"), Ok(befriend));
        check(&line("unfriend"), Ok(Command::Unfriend { user, other }));
        let tell = |secs| Command::TellStory {
            author: id(1),
            text: PostText::parse("x").unwrap(),
            life: Lifetime::from_secs(secs).unwrap(),
        };
        check(r#"{"op":"tell_story","user":1,"text":"x"}"#, Ok(tell(60)));
        check(r#"{"op":"tell_story","user":1,"text":"x","ttl_s":5}"#, Ok(tell(5)));
        let story = StoryId(7);
        check(r#"{"op":"delete_story","id":"7"}"#, Ok(Command::DeleteStory { story }));
        let view = Command::ViewStory { story, viewer: id(1) };
        check(r#"{"op":"view_story","id":7,"user":1}"#, Ok(view));
    }

    #[test]
    fn lines_that_are_no_command_are_refused() {
        for (line, code) in [
            ("x", "bad_json"),
            ("{", "bad_json"),
            ("[]", "bad_json"),
            (r#"["follow",null,null,null,1,2]"#, "bad_json"),
            ("{}", "bad_json"),
            (r#"{"op":"fly"}"#, "bad_json"),
            (r#"{"op":"follow","user":1}"#, "bad_json"),
            (r#"{"op":"follow","user":1,"other":null}"#, "bad_json"),
            (r#"{"op":"follow","user":1,"other":2.5}"#, "bad_json"),
            (r#"{"op":"follow","user":1,"other":2,"text":"x"}"#, "bad_json"),
            (r#"{"op":"follow","user":1,"user":1,"other":2}"#, "bad_json"),
            (r#"{"op":"follow","user":1,"other":2,"x":1}"#, "bad_json"),
            (r#"{"op":"follow","user":1,"other":2} {}"#, "bad_json"),
            (r#"{"op":"follow","user":-1,"other":2}"#, "bad_json"),
            (r#"{"op":"follow","user":4294967296,"other":2}"#, "bad_request"),
            (r#"{"op":"follow","user":"one","other":2}"#, "bad_request"),
            (r#"{"op":"follow","user":"@b-b","other":2}"#, "bad_handle"),
            (r#"{"op":"delete_post","id":"9223372036854775808"}"#, "bad_request"),
            (r#"{"op":"delete_post","id":"@ada"}"#, "bad_request"),
            (r#"{"op":"post","user":1,"text":" "}"#, "bad_text"),
            (r#"{"op":"post","user":1,"text":"x","idempotency_key":""}"#, "bad_idempotency_key"),
            (r#"{"op":"register","handle":"a","name":null}"#, "bad_json"),
            (r#"{"op":"tell_story","user":1,"text":"x","ttl_s":0}"#, "bad_lifetime"),
            (r#"{"op":"tell_story","user":1,"text":"x","ttl_s":604801}"#, "bad_lifetime"),
            (r#"{"op":"tell_story","user":1,"text":"x","ttl_s":null}"#, "bad_json"),
            (r#"{"op":"tell_story","user":1,"text":"x","ttl_s":"5"}"#, "bad_json"),
            (r#"{"op":"tell_story","user":1,"text":"x","ttl_s":-1}"#, "bad_json"),
            (r#"{"op":"tell_story","user":1,"text":""}"#, "bad_text"),
            (
                r#"{"op":"tell_story","user":1,"text":"x","idempotency_key":""}"#,
                "bad_idempotency_key",
            ),
            (r#"{"op":"follow","user":1,"other":2,"idempotency_key":"k"}"#, "bad_json"),
            (r#"{"op":"post","user":1,"text":"x","ttl_s":5}"#, "bad_json"),
            (r#"{"op":"delete_story","id":"9223372036854775808"}"#, "bad_request"),
            (r#"{"op":"view_story","id":7}"#, "bad_json"),
        ] {
            check(line, Err(code));
        }
        assert!(parse(b"{\"op\":\"post\",\"user\":1,\"text\":\"\xff\"}").is_err());
    }

    #[test]
    fn a_key_counts_for_its_user_and_content() {
        let key = |line: &str| parse(line.as_bytes()).unwrap().idempotency.unwrap();
        let first = key(r#"{"op":"post","user":1,"text":"x","idempotency_key":"k"}"#);
        let same = key(r#"{"idempotency_key":"k","op":"post","user":"1","text":"x"}"#);
        let other_text = key(r#"{"op":"post","user":1,"text":"y","idempotency_key":"k"}"#);
        let other_user = key(r#"{"op":"post","user":2,"text":"x","idempotency_key":"k"}"#);
        assert_eq!(first, same);
        assert!(first.key == other_text.key && first.content != other_text.content);
        assert_ne!(first.key, other_user.key);

        let tell = |more: &str| {
            let common = r#"{"op":"tell_story","user":1,"idempotency_key":"k","text":"x""#;
            key(&format!("{common}{more}}}"))
        };
        let (story, living_5_s) = (tell(""), tell(r#","ttl_s":5"#));
        assert!(story.key == living_5_s.key && story.content != living_5_s.content);
        assert_ne!(story.key, first.key, "a post and a story are two things");
    }
}
