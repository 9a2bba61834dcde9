//! The profile and the settings of the user for whom an app acts.

use axum::extract::State;
use axum::response::Response;
use feed::Visibility;
use feed::{Bio, Command, Language, Name, PostDefaults, ProfileFields, UserEdit, UserId, UserRef};

use crate::answers;
use crate::entities::Entities;
use crate::entities::status::visibility;
use crate::error::ApiError;
use crate::fields::{Fields, Params};
use crate::input::{Me, Once};
use crate::state::{Server, Shared};

impl Server {
    /// The defaults of the posts of a user; none if the user does not exist.
    pub(crate) async fn defaults(&self, user: UserId) -> Result<Option<PostDefaults>, ApiError> {
        self.read(move |node| node.facts().user(user).map(|user| user.defaults)).await
    }
}

/// `PATCH /api/v1/accounts/update_credentials`
pub(crate) async fn update(
    State(state): State<Shared>,
    Me(me): Me,
    once: Once,
    Params(fields): Params,
) -> Result<Response, ApiError> {
    refuse_fixed(&fields)?;
    let edit = edit(UserRef::Id(me), &fields)?;
    if edit != UserEdit::new(UserRef::Id(me)) {
        state.change(me, once, Command::EditUser(Box::new(edit))).await?;
    }
    let account = state.entities_done(me, move |entities| entities.own_account(me)).await?;
    answers::entity(account)
}

/// Refuses to set what every account has in the same way here.
fn refuse_fixed(fields: &Fields) -> Result<(), ApiError> {
    for name in ["avatar", "header"] {
        if fields.has(name) {
            return Err(ApiError::not_supported("pictures of accounts"));
        }
    }
    match fields.flag("hide_collections")? {
        Some(true) => Err(ApiError::not_supported("setting hide_collections to true")),
        _ => Ok(()),
    }
}

fn edit(user: UserRef, fields: &Fields) -> Result<UserEdit, ApiError> {
    // An empty text is one, too, so not `Fields::one`.
    let name = fields.text("display_name").map(Name::parse).transpose()?;
    let bio = fields.text("note").map(Bio::parse).transpose()?;
    let language = fields.text("source[language]").map(|code| match code {
        "" => Ok(None),
        code => Language::parse(code).map(Some),
    });
    Ok(UserEdit {
        user,
        name,
        bio,
        fields: profile_fields(fields)?,
        bot: fields.flag("bot")?,
        discoverable: fields.flag("discoverable")?,
        indexable: fields.flag("indexable")?,
        visibility: fields.one("source[privacy]")?.map(default_visibility).transpose()?,
        sensitive: fields.flag("source[sensitive]")?,
        language: language.transpose()?,
        locked: fields.flag("locked")?,
    })
}

/// As in Mastodon, no post is direct by default.
fn default_visibility(name: &str) -> Result<Visibility, ApiError> {
    let found = visibility(name).filter(|visibility| *visibility != Visibility::Direct);
    found.ok_or_else(|| ApiError::invalid("source[privacy] is public, unlisted or private"))
}

/// The fields of the profile: all of them, if the request has any. They are `fields_attributes[0][name]` and `[value]`
/// with any number or word for the 0, or `fields_attributes[][name]`, where a part that the last field has begins a
/// new one.
fn profile_fields(fields: &Fields) -> Result<Option<ProfileFields>, ApiError> {
    let mut found: Vec<(&str, [Option<&str>; 2])> = Vec::new();
    let mut is_given = false;
    for (inner, value) in fields.within("fields_attributes") {
        is_given = true;
        let Some((key, part)) = inner.split_once("][") else { continue };
        let at = match part {
            "name" => 0,
            "value" => 1,
            // Such as the time at which a link was verified, which apps send back.
            _ => continue,
        };
        let known = found.iter_mut().rev().find(|(other, _)| *other == key);
        let known = known
            .filter(|(_, parts)| !key.is_empty() || parts.get(at).is_some_and(Option::is_none));
        let parts = match known {
            Some((_, parts)) => parts,
            None => {
                found.push((key, [None; 2]));
                let Some((_, parts)) = found.last_mut() else { continue };
                parts
            }
        };
        parts.get_mut(at).into_iter().for_each(|part| *part = Some(value));
    }
    let pairs = found
        .iter()
        .map(|(_, [name, value])| (name.unwrap_or_default(), value.unwrap_or_default()));
    let parsed = is_given.then(|| ProfileFields::parse(pairs)).transpose()?;
    Ok(parsed)
}

/// `GET /api/v1/preferences`
pub(crate) async fn preferences(
    State(state): State<Shared>,
    Me(me): Me,
) -> Result<Response, ApiError> {
    let read = move |_: &_, entities: &mut Entities<'_>| entities.preferences(me);
    let preferences = state.entities(Some(me), read).await?;
    answers::entity(preferences)
}

#[cfg(test)]
mod tests {
    use feed::limits::PROFILE_FIELDS_MAX;

    use super::*;

    fn check(query: &str, expect: Option<&[(&str, &str)]>) {
        let fields = Fields::of_query(query).unwrap();
        let found = profile_fields(&fields).unwrap();
        let found = found.as_ref().map(|fields| {
            let fields = fields.as_slice().iter();
            fields.map(|field| (field.name(), field.value())).collect::<Vec<_>>()
        });
        assert_eq!(found.as_deref(), expect, "{query}");
    }

    #[test]
    fn fields_are_lists_or_have_numbers() {
        check("display_name=x", None);
        check("fields_attributes=", None);
        check("fields_attributes[]=", Some(&[]));
        check("fields_attributes[0][name]=&fields_attributes[0][value]=", Some(&[]));
        let listed = "fields_attributes[][name]=a&fields_attributes[][value]=b\
            &fields_attributes[][name]=c&fields_attributes[][name]=d&fields_attributes[][value]=e";
        check(listed, Some(&[("a", "b"), ("c", ""), ("d", "e")]));
        let numbered = "fields_attributes[1][value]=b&fields_attributes[0][name]=c\
            &fields_attributes[1][name]=a&fields_attributes[0][verified_at]=x";
        check(numbered, Some(&[("a", "b"), ("c", "")]));
        check("fields_attributes[x][name]=a&fields_attributes[x][name]=b", Some(&[("b", "")]));
        let many: Vec<_> = (0..=PROFILE_FIELDS_MAX)
            .map(|number| format!("fields_attributes[{number}][name]=x"))
            .collect();
        let many = Fields::of_query(&many.join("&")).unwrap();
        assert!(profile_fields(&many).is_err());
        for nameless in ["fields_attributes[0][value]=x", "fields_attributes[][value]=x"] {
            assert!(profile_fields(&Fields::of_query(nameless).unwrap()).is_err(), "{nameless}");
        }
    }
}
