//! Line of a batch: a flat object whose `op` determines its other fields.

mod field;
#[cfg(test)]
mod tests;

use feed::limits::FOLLOW_MANY_MAX;
use feed::{Bio, Command, Conditional, Draft, Handle, Lifetime, Name, PostText, UserRef};
use serde::Deserialize;
use utoipa::ToSchema;

use crate::changes::adding;
use crate::conditions::OnlyIf;
use crate::error::ApiError;
use crate::idempotency::Key;
use crate::input::{given, object, post_number, sample_number, story_number};
use crate::unsent::Client;
use crate::v1::posts::{QuotePolicyName, Said, VisibilityName};
use crate::v1::recognitions::Given;
use crate::v1::samples::checked;
use field::{Number, Text};

/// All fields of all commands. If `op` were read first, every line would need a buffer.
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
    others: Option<Vec<Number<'a>>>,
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
    sample: Option<Given>,
    #[serde(borrow, default, deserialize_with = "given")]
    set: Option<Text<'a>>,
    #[serde(default, deserialize_with = "given")]
    visibility: Option<VisibilityName>,
    #[serde(borrow, default, deserialize_with = "given")]
    warning: Option<Text<'a>>,
    #[serde(default, deserialize_with = "given")]
    sensitive: Option<bool>,
    #[serde(borrow, default, deserialize_with = "given")]
    language: Option<Text<'a>>,
    #[serde(borrow, default, deserialize_with = "given")]
    quote_id: Option<Number<'a>>,
    #[serde(default, deserialize_with = "given")]
    quote_policy: Option<QuotePolicyName>,
}

/// The operation of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Op {
    Register,
    Follow,
    Unfollow,
    Post,
    DeletePost,
    Befriend,
    Unfriend,
    PostStory,
    DeleteStory,
    ViewStory,
    AddSample,
    DeleteSample,
}

/// The command of a line and its idempotency key.
#[derive(Debug)]
pub(super) struct Change {
    pub(super) command: Command,
    pub(super) key: Option<Key>,
}

/// Values for fields that a line omits.
#[derive(Clone, Copy)]
pub(super) struct Defaults<'a> {
    /// Default lifetime of a story.
    pub(super) story_life: Lifetime,
    /// Domain of this server in mentions.
    pub(super) domain: &'a str,
    pub(super) client: Client,
}

/// Parses a line.
pub(super) fn parse(line: &[u8], defaults: Defaults<'_>) -> Result<Change, ApiError> {
    let mut line: Line<'_> = object(line)?;
    let given = line.given();
    let key = line.idempotency_key.take();
    let mut fields = Fields { used: usize::from(key.is_some()) };
    let key = key.map(|key| Key::parse(key.0.as_bytes())).transpose();
    let key = key.map_err(|error| error.at("idempotency_key"))?;
    let key = key.map(|key| key.of_client(defaults.client));
    let command = command(line, &mut fields, defaults)?;
    if fields.used < given {
        return Err(ApiError::bad_json("the line has a field that its op does not take"));
    }
    Ok(Change { command, key })
}

fn command(
    line: Line<'_>,
    fields: &mut Fields,
    Defaults { story_life, domain, .. }: Defaults<'_>,
) -> Result<Command, ApiError> {
    Ok(match line.op {
        Op::Register => Command::Register {
            handle: Handle::parse(&fields.required("handle", line.handle)?.0)?,
            name: Name::parse(fields.optional(line.name.as_ref()).unwrap_or_default())?,
            bio: Bio::parse(fields.optional(line.bio.as_ref()).unwrap_or_default())?,
        },
        Op::Follow if line.others.is_some() => Command::FollowMany {
            user: fields.required("user", line.user)?.user()?,
            others: users(fields.required("others", line.others)?)?,
        },
        Op::Follow | Op::Unfollow | Op::Befriend | Op::Unfriend => {
            let user = fields.required("user", line.user)?.user()?;
            let other = fields.required("other", line.other)?.user();
            let other = other.map_err(|error| error.at("other"))?;
            match line.op {
                Op::Follow => Command::Follow { user, other },
                Op::Unfollow => Command::Unfollow { user, other },
                Op::Befriend => Command::Befriend { user, other },
                _ => Command::Unfriend { user, other },
            }
        }
        Op::Post => Command::Publish(Box::new(new_post(line, fields, domain)?)),
        Op::DeletePost => {
            let user = fields.required("user", line.user)?.user()?;
            let post = post_number(fields.required("id", line.id)?.number())?;
            OnlyIf::default().on(Some(user), Conditional::DeletePost { post })
        }
        Op::PostStory => Command::PostStory {
            author: fields.required("user", line.user)?.user()?,
            text: PostText::written(&fields.required("text", line.text)?.0, domain)?,
            life: fields.life(line.ttl_s)?.unwrap_or(story_life),
        },
        Op::DeleteStory => {
            let user = fields.required("user", line.user)?.user()?;
            let story = story_number(fields.required("id", line.id)?.number())?;
            OnlyIf::default().on(Some(user), Conditional::DeleteStory { story })
        }
        Op::ViewStory => Command::ViewStory {
            story: story_number(fields.required("id", line.id)?.number())?,
            viewer: fields.required("user", line.user)?.user()?,
        },
        Op::AddSample => {
            let label = fields.required("label", line.label)?.0;
            let bits = fields.required("sample", line.sample)?;
            adding(checked(fields.optional(line.set.as_ref()), &label, bits)?)
        }
        Op::DeleteSample => {
            let id = fields.required("id", line.id)?;
            Command::DeleteSample { sample: sample_number(id.number())? }
        }
    })
}

fn new_post(line: Line<'_>, fields: &mut Fields, domain: &str) -> Result<Draft, ApiError> {
    let author = fields.required("user", line.user)?.user()?;
    let text = fields.required("text", line.text)?.0;
    let mut post = |name, id: Option<Number<'_>>| {
        fields.used += usize::from(id.is_some());
        let id = id.map(|id| post_number(id.number())).transpose();
        id.map_err(|error| error.at(name))
    };
    let parent = post("in_reply_to_id", line.in_reply_to_id)?;
    let quote = post("quote_id", line.quote_id)?;
    fields.used += usize::from(line.visibility.is_some());
    let visibility = line.visibility.unwrap_or_default().into();
    fields.used += usize::from(line.quote_policy.is_some());
    let quote_policy = line.quote_policy.unwrap_or_default().into();
    fields.used += usize::from(line.sensitive.is_some());
    let said = Said {
        text: Some(&text),
        warning: fields.optional(line.warning.as_ref()),
        sensitive: line.sensitive,
        language: fields.optional(line.language.as_ref()),
    };
    let said = said.draft(author, domain)?;
    let draft = Draft { parent, visibility, quote, quote_policy, ..said };
    draft.check()?;
    Ok(draft)
}

/// Parses a list of users.
fn users(list: Vec<Number<'_>>) -> Result<Vec<UserRef>, ApiError> {
    if list.is_empty() || list.len() > FOLLOW_MANY_MAX {
        let why = format!("others must have 1 to {FOLLOW_MANY_MAX} users");
        return Err(ApiError::bad_json(why).at("others"));
    }
    let users = list.into_iter().map(|other| other.user());
    users.collect::<Result<_, _>>().map_err(|error: ApiError| error.at("others"))
}

/// Counter of the fields that a command uses.
struct Fields {
    used: usize,
}

impl Fields {
    fn required<T>(&mut self, name: &'static str, field: Option<T>) -> Result<T, ApiError> {
        self.used += 1;
        let missing = || ApiError::bad_json(format!("this op needs the field {name}")).at(name);
        field.ok_or_else(missing)
    }

    fn life(&mut self, secs: Option<u64>) -> Result<Option<Lifetime>, ApiError> {
        self.used += usize::from(secs.is_some());
        Ok(secs.map(Lifetime::from_secs).transpose()?)
    }

    /// Counts and returns the text of an optional field.
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
            self.others.is_some(),
            self.text.is_some(),
            self.id.is_some(),
            self.idempotency_key.is_some(),
            self.in_reply_to_id.is_some(),
            self.ttl_s.is_some(),
            self.label.is_some(),
            self.sample.is_some(),
            self.set.is_some(),
            self.visibility.is_some(),
            self.warning.is_some(),
            self.sensitive.is_some(),
            self.language.is_some(),
            self.quote_id.is_some(),
            self.quote_policy.is_some(),
        ];
        given.into_iter().filter(|given| *given).count()
    }
}
