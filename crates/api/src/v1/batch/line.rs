//! One line of a batch: a flat object whose `op` says which other fields belong to it.

mod field;
#[cfg(test)]
mod tests;

use feed::{Bio, Command, Handle, Idempotency, Lifetime, Name, PostText, UserRef};
use serde::Deserialize;

use crate::error::Problem;
use crate::input::{
    checked_key, given, idempotency, object, post_number, sample_number, story_number,
};
use crate::v1::recognise::Given;
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
    #[serde(borrow, default, deserialize_with = "given")]
    in_reply_to_id: Option<Number<'a>>,
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
pub(super) fn parse(line: &[u8], story_life: Lifetime) -> Result<node::Request, Problem> {
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
        Op::Post => fields.post(line, &mut key)?,
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

    fn post(&mut self, line: Line<'_>, key: &mut Option<Idempotency>) -> Result<Command, Problem> {
        let author = self.required("user", line.user)?;
        let text = self.required("text", line.text)?.0;
        self.used += usize::from(line.in_reply_to_id.is_some());
        let parent = line.in_reply_to_id.map(|id| post_number(id.number())).transpose()?;
        // A post that replies to none has the digest that it always had.
        let replied = parent.map(|parent| parent.0.to_be_bytes());
        let content = [replied.as_ref().map_or(&[][..], |id| id), text.as_bytes()];
        *key = self.key(line.idempotency_key.as_ref(), "post", &author.as_text(), &content)?;
        let (author, text) = (author.user()?, PostText::parse(&text)?);
        Ok(match parent {
            None => Command::Post { author, text },
            Some(parent) => Command::Reply { author, text, parent },
        })
    }

    fn tell(
        &mut self,
        line: Line<'_>,
        story_life: Lifetime,
        key: &mut Option<Idempotency>,
    ) -> Result<Command, Problem> {
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

    fn teach(&mut self, line: Line<'_>, key: &mut Option<Idempotency>) -> Result<Command, Problem> {
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
    ) -> Result<Option<Idempotency>, Problem> {
        let Some(key) = key else { return Ok(None) };
        self.used += 1;
        let op = format!("batch {op}");
        let scope = [op.as_bytes(), about.as_bytes(), checked_key(key.0.as_bytes())?];
        Ok(Some(idempotency(&scope, &content.concat())))
    }

    fn life(&mut self, secs: Option<u64>) -> Result<Option<Lifetime>, Problem> {
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
            self.in_reply_to_id.is_some(),
            self.ttl_s.is_some(),
            self.label.is_some(),
            self.bits.is_some(),
            self.set.is_some(),
        ];
        given.into_iter().filter(|given| *given).count()
    }
}
