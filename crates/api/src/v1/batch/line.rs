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
use crate::v1::posts::{PostChange, QuotePolicyName, VisibilityName};
use crate::v1::recognitions::Given;
use crate::v1::samples::checked;
use field::{Number, Text};

/// All fields of all commands. If `op` were read first, every line would need a buffer. A command takes its fields out
/// of the line, so that a field that is left does not belong to the `op`.
#[derive(Default, Deserialize, PartialEq)]
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Op {
    #[default]
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
    let key = line.idempotency_key.take();
    let key = key.map(|key| Key::parse(key.0.as_bytes())).transpose();
    let key = key.map_err(|error| error.at("idempotency_key"))?;
    let key = key.map(|key| key.of_client(defaults.client));
    let command = command(&mut line, defaults)?;
    let none = Line { op: line.op, ..Line::default() };
    if line != none {
        return Err(ApiError::bad_json("the line has a field that its op does not take"));
    }
    Ok(Change { command, key })
}

/// Takes a field out of a line that must have it.
macro_rules! required {
    ($line:ident.$field:ident) => {{
        let name = stringify!($field);
        let missing = || ApiError::bad_json(format!("this op needs the field {name}")).at(name);
        $line.$field.take().ok_or_else(missing)?
    }};
}

fn command(
    line: &mut Line<'_>,
    Defaults { story_life, domain, .. }: Defaults<'_>,
) -> Result<Command, ApiError> {
    Ok(match line.op {
        Op::Register => Command::Register {
            handle: Handle::parse(&required!(line.handle).0)?,
            name: Name::parse(&line.name.take().unwrap_or_default().0)?,
            bio: Bio::parse(&line.bio.take().unwrap_or_default().0)?,
        },
        Op::Follow if line.others.is_some() => Command::FollowMany {
            user: required!(line.user).user()?,
            others: users(required!(line.others))?,
        },
        Op::Follow | Op::Unfollow | Op::Befriend | Op::Unfriend => {
            let user = required!(line.user).user()?;
            let other = required!(line.other).user().map_err(|error| error.at("other"))?;
            match line.op {
                Op::Follow => Command::Follow { user, other },
                Op::Unfollow => Command::Unfollow { user, other },
                Op::Befriend => Command::Befriend { user, other },
                _ => Command::Unfriend { user, other },
            }
        }
        Op::Post => Command::Publish(Box::new(new_post(line, domain)?)),
        Op::DeletePost => {
            let user = required!(line.user).user()?;
            let post = post_number(required!(line.id).number())?;
            OnlyIf::default().on(Some(user), Conditional::DeletePost { post })
        }
        Op::PostStory => Command::PostStory {
            author: required!(line.user).user()?,
            text: PostText::written(&required!(line.text).0, domain)?,
            life: line.ttl_s.take().map(Lifetime::from_secs).transpose()?.unwrap_or(story_life),
        },
        Op::DeleteStory => {
            let user = required!(line.user).user()?;
            let story = story_number(required!(line.id).number())?;
            OnlyIf::default().on(Some(user), Conditional::DeleteStory { story })
        }
        Op::ViewStory => Command::ViewStory {
            story: story_number(required!(line.id).number())?,
            viewer: required!(line.user).user()?,
        },
        Op::AddSample => {
            let (label, bits) = (required!(line.label), required!(line.sample));
            let set = line.set.take();
            adding(checked(set.as_ref().map(|set| &*set.0), &label.0, bits)?)
        }
        Op::DeleteSample => {
            Command::DeleteSample { sample: sample_number(required!(line.id).number())? }
        }
    })
}

fn new_post(line: &mut Line<'_>, domain: &str) -> Result<Draft, ApiError> {
    let author = required!(line.user).user()?;
    let owned = |text: Text<'_>| text.0.into_owned();
    let said = PostChange {
        text: Some(owned(required!(line.text))),
        warning: line.warning.take().map(owned),
        sensitive: line.sensitive.take(),
        language: line.language.take().map(owned),
        quote_policy: line.quote_policy.take(),
    };
    let post = |name, id: Option<Number<'_>>| {
        let id = id.map(|id| post_number(id.number())).transpose();
        id.map_err(|error| error.at(name))
    };
    let parent = post("in_reply_to_id", line.in_reply_to_id.take())?;
    let quote = post("quote_id", line.quote_id.take())?;
    let visibility = line.visibility.take().unwrap_or_default().into();
    let draft = Draft { parent, visibility, quote, ..said.draft(author, domain)? };
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
