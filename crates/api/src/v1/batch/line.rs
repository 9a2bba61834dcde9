//! One line of a batch: a flat object whose `op` says which other fields belong to it.

mod field;

use feed::{Bio, Command, Handle, Idempotency, Lifetime, Name, PostText, UserRef};
use serde::Deserialize;

use crate::error::ApiError;
use crate::input::{
    checked_key, given, idempotency, object, post_number, sample_number, story_number,
};
use crate::v1::recognitions::Given;
use crate::v1::samples::{checked, teaching};
use field::{Number, Text};

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
    #[serde(borrow, default, deserialize_with = "given")]
    label: Option<Text<'a>>,
    #[serde(default, deserialize_with = "given")]
    bits: Option<Given>,
    #[serde(borrow, default, deserialize_with = "given")]
    set: Option<Text<'a>>,
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
    Teach,
    ForgetSample,
}

/// The command of a line. A story lives for `story_life` if the line does not say.
pub(super) fn parse(line: &[u8], story_life: Lifetime) -> Result<node::Request, ApiError> {
    let line: Line<'_> = object(line)?;
    let mut fields = Fields { op: line.op, used: 0 };
    let given = line.given();
    let mut key = None;
    let command = match line.op {
        Op::Register => Command::Register {
            handle: Handle::parse(&fields.required("handle", line.handle)?.0)?,
            name: Name::parse(fields.optional(line.name.as_ref()).unwrap_or_default())?,
            bio: Bio::parse(fields.optional(line.bio.as_ref()).unwrap_or_default())?,
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
            key = fields.key(
                line.idempotency_key.as_ref(),
                "post",
                &author.as_text(),
                &[text.as_bytes()],
            )?;
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
        Op::TellStory => fields.tell(line, story_life, &mut key)?,
        Op::DeleteStory => {
            let id = fields.required("id", line.id)?;
            Command::DeleteStory { story: story_number(id.number())? }
        }
        Op::ViewStory => Command::ViewStory {
            story: story_number(fields.required("id", line.id)?.number())?,
            viewer: fields.required("user", line.user)?.user()?,
        },
        Op::Teach => fields.teach(line, &mut key)?,
        Op::ForgetSample => {
            let id = fields.required("id", line.id)?;
            Command::ForgetSample { sample: sample_number(id.number())? }
        }
    };
    if fields.used < given {
        let message =
            format!("a line of op {:?} has a field that does not belong to it", fields.op);
        return Err(ApiError::bad_json(message));
    }
    Ok(node::Request { command, idempotency: key })
}

/// Counts the fields that a command makes use of.
struct Fields {
    op: Op,
    used: usize,
}

impl Fields {
    fn required<T>(&mut self, name: &str, field: Option<T>) -> Result<T, ApiError> {
        self.used += 1;
        let op = self.op;
        field.ok_or_else(|| ApiError::bad_json(format!("a line of op {op:?} needs {name}")))
    }

    fn two_users(
        &mut self,
        user: Option<Number<'_>>,
        other: Option<Number<'_>>,
    ) -> Result<(UserRef, UserRef), ApiError> {
        Ok((self.required("user", user)?.user()?, self.required("other", other)?.user()?))
    }

    fn tell(
        &mut self,
        line: Line<'_>,
        story_life: Lifetime,
        key: &mut Option<Idempotency>,
    ) -> Result<Command, ApiError> {
        let author = self.required("user", line.user)?;
        let text = self.required("text", line.text)?.0;
        // A life that is not given is the same word, whatever the server is set to.
        let life = line.ttl_s.unwrap_or(0).to_be_bytes();
        let (about, content) = (author.as_text(), [&life, text.as_bytes()]);
        *key = self.key(line.idempotency_key.as_ref(), "tell_story", &about, &content)?;
        let life = self.life(line.ttl_s)?.unwrap_or(story_life);
        let text = PostText::parse(&text)?;
        Ok(Command::TellStory { author: author.user()?, text, life })
    }

    fn teach(
        &mut self,
        line: Line<'_>,
        key: &mut Option<Idempotency>,
    ) -> Result<Command, ApiError> {
        let label = self.required("label", line.label)?.0;
        let bits = self.required("bits", line.bits)?;
        let sample = checked(self.optional(line.set.as_ref()), &label, bits)?;
        let bits: [u8; 128] = sample.bits.into();
        let (about, content) = (sample.set.as_str(), [&bits, label.as_bytes()]);
        *key = self.key(line.idempotency_key.as_ref(), "teach", about, &content)?;
        Ok(teaching(sample))
    }

    /// The key of a line, if it has one: for its op, for whom or which set it names and for what it says.
    fn key(
        &mut self,
        key: Option<&Text<'_>>,
        op: &str,
        about: &str,
        content: &[&[u8]],
    ) -> Result<Option<Idempotency>, ApiError> {
        let Some(key) = key else { return Ok(None) };
        self.used += 1;
        let op = format!("batch {op}");
        let scope = [op.as_bytes(), about.as_bytes(), checked_key(key.0.as_bytes())?];
        Ok(Some(idempotency(&scope, &content.concat())))
    }

    fn life(&mut self, secs: Option<u64>) -> Result<Option<Lifetime>, ApiError> {
        self.used += usize::from(secs.is_some());
        Ok(secs.map(Lifetime::from_secs).transpose()?)
    }

    /// The text of a field that may be absent.
    fn optional<'a>(&mut self, field: Option<&'a Text<'_>>) -> Option<&'a str> {
        self.used += usize::from(field.is_some());
        field.map(|text| &*text.0)
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
            self.label.is_some(),
            self.bits.is_some(),
            self.set.is_some(),
        ];
        given.into_iter().filter(|given| *given).count()
    }
}

#[cfg(test)]
mod tests {
    use feed::{PostId, StoryId, UserId};

    use super::*;

    fn parse(line: &[u8]) -> Result<node::Request, ApiError> {
        super::parse(line, Lifetime::from_secs(60).unwrap())
    }

    fn check(line: &str, expect: impl Into<Result<Command, &'static str>>) {
        let parsed = parse(line.as_bytes());
        let expect = expect.into();
        assert_eq!(parsed.map(|r| r.command).map_err(|error| error.code), expect, "{line}");
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
    fn lines_teach_samples_in_every_form() {
        let teach = |set: &str| Command::Teach {
            set: feed::SetName::parse(set).unwrap(),
            label: feed::Label::parse("\"7\"").unwrap(),
            bits: Box::new([0; 128].into()),
        };
        let numbers = format!("[{}0]", "0,".repeat(1_023));
        for bits in
            [format!("\"{}\"", "0".repeat(256)), format!("\"{}\"", "0 ".repeat(1_024)), numbers]
        {
            let line = format!(r#"{{"op":"teach","label":"\"7\"","bits":{bits}"#);
            check(&format!("{line}}}"), Ok(teach("digits")));
            check(&format!(r#"{line},"set":"a-B_9"}}"#), Ok(teach("a-B_9")));
        }
        let sample = feed::SampleId(7);
        check(r#"{"op":"forget_sample","id":7}"#, Ok(Command::ForgetSample { sample }));
        let zeros = "0".repeat(256);
        for (more, code) in [
            (format!(r#","label":"7","bits":"{zeros}","set":"a b""#), "bad_set"),
            (format!(r#","label":"","bits":"{zeros}""#), "bad_label"),
            (format!(r#","label":"7","bits":"{zeros}0""#), "bad_sample"),
            (format!(r#","label":"7","bits":"{zeros}","set":null"#), "bad_json"),
            (format!(r#","bits":"{zeros}""#), "bad_json"),
            (r#","label":"7","bits":{}"#.to_owned(), "bad_json"),
            (r#","label":"7""#.to_owned(), "bad_json"),
        ] {
            check(&format!(r#"{{"op":"teach"{more}}}"#), Err(code));
        }
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

        let teach = |label: &str, set: &str| {
            let common = r#"{"op":"teach","idempotency_key":"k","bits""#;
            key(&format!("{common}:\"{}\",\"label\":\"{label}\"{set}}}", "0".repeat(256)))
        };
        let digit = teach("7", "");
        assert_eq!(digit, teach("7", r#","set":"digits""#));
        let other = teach("8", "");
        assert!(digit.key == other.key && digit.content != other.content);
        assert_ne!(digit.key, teach("7", r#","set":"letters""#).key);
    }
}
