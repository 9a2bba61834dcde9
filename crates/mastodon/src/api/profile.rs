//! Profile and settings of the user for whom an app acts.

use axum::extract::State;
use axum::response::Response;
use feed::Visibility;
use feed::accounts::AccessScope as S;
use feed::media::{Description, MediaChange, MediaCommand, MediaId, ProfilePicture};
use feed::{Bio, Command, Language, Name, PostDefaults, ProfileFields, UserEdit, UserId, UserRef};

use media::Shape;
use node::UploadError;

use super::statuses::quote_policy;
use crate::access::Needs;
use crate::answers;
use crate::endpoints::Endpoints;
use crate::entities::Entities;
use crate::entities::status::visibility;
use crate::error::ApiError;
use crate::fields::Fields;
use crate::form::{Files, Form};
use crate::input::{Me, Once};
use crate::limiter::What;
use crate::state::{Server, Shared};

/// Adds the routes of the profile.
pub(crate) fn routes(table: &mut Endpoints) {
    table.patch("/api/v1/accounts/update_credentials", Needs::WRITE_ACCOUNTS, update);
    table.delete("/api/v1/profile/avatar", Needs::WRITE_ACCOUNTS, delete_avatar);
    table.delete("/api/v1/profile/header", Needs::WRITE_ACCOUNTS, delete_header);
    table.get("/api/v1/preferences", Needs::User(&[S::ReadAccounts]), preferences);
}

/// Fields of the profile's picture files and of their descriptions.
const PICTURES: [(&str, &str, Shape); 2] = [
    ("avatar", "avatar_description", Shape::Avatar),
    ("header", "header_description", Shape::Header),
];

impl Server {
    /// Default settings of a user's posts; `None` if the user does not exist.
    pub(crate) async fn defaults(&self, user: UserId) -> Result<Option<PostDefaults>, ApiError> {
        if let Some(known) = self.renderer.defaults(user) {
            return Ok(Some(known));
        }
        self.read(move |node| node.facts().user(user).map(|user| user.defaults)).await
    }
}

/// Current picture and new description of a profile picture.
type Described = Option<(Option<MediaId>, Description)>;

impl Server {
    /// New descriptions of the profile's pictures, in the order of [`PICTURES`].
    ///
    /// # Errors
    /// 422 if a description is too long, or there is no picture to describe.
    async fn descriptions(
        &self,
        me: UserId,
        fields: &Fields,
        files: &Files,
    ) -> Result<Vec<Described>, ApiError> {
        let said = |name| fields.text(name).map(Description::parse).transpose();
        let said = PICTURES.map(|(_, name, _)| said(name));
        if said.iter().all(|said| matches!(said, Ok(None))) {
            return Ok(Vec::new());
        }
        let user = self.read(move |node| node.facts().user(me)).await?;
        let has = user.map_or([None; 2], |user| [user.avatar, user.header]);
        let mut described = Vec::new();
        for ((said, has), (name, ..)) in said.into_iter().zip(has).zip(PICTURES) {
            let said = said?;
            let is_empty = said.as_ref().is_none_or(|text| text.as_str().is_empty());
            if !is_empty && has.is_none() && files.get(name).is_none() {
                return Err(ApiError::invalid(format!("there is no {name} to describe")));
            }
            described.push(said.map(|text| (has, text)));
        }
        Ok(described)
    }
}

pub(crate) async fn update(
    State(state): State<Shared>,
    Me(me): Me,
    once: Once,
    Form { fields, mut files }: Form,
) -> Result<Response, ApiError> {
    refuse_fixed(&fields)?;
    let edit = edit(UserRef::Id(me), &fields)?;
    files.keep(&PICTURES.map(|(name, ..)| name));
    let has_files = PICTURES.iter().any(|(name, ..)| files.get(name).is_some());
    if has_files && !files.is_counted() {
        state.limit(What::Uploads, u64::from(me.0))?;
    }
    // All pictures are checked before one is used.
    for (name, ..) in PICTURES {
        files.get(name).map(media::head).transpose().map_err(UploadError::from)?;
    }
    let mut descriptions = state.descriptions(me, &fields, &files).await?.into_iter();
    for (name, _, shape) in PICTURES {
        let described = descriptions.next().flatten();
        match (files.take(name)?, described) {
            (Some(file), described) => {
                let description = described.map(|(_, description)| description);
                state.upload(me, file, shape, (description, None)).await?;
            }
            (None, Some((Some(media), description))) => {
                let change = MediaChange { media, description: Some(description), focus: None };
                let user = UserRef::Id(me);
                let command = MediaCommand::Change { user, change: Box::new(change) };
                state.change_once(None, Command::Media(command)).await?;
            }
            (None, _) => {}
        }
    }
    drop(files);
    if edit != UserEdit::new(UserRef::Id(me)) {
        state.change(me, once, Command::EditUser(Box::new(edit))).await?;
    }
    let account = state.entities_done(me, move |entities| entities.own_account(me)).await?;
    answers::entity(account)
}

pub(crate) async fn delete_avatar(
    State(state): State<Shared>,
    Me(me): Me,
    once: Once,
) -> Result<Response, ApiError> {
    clear(&state, me, once, ProfilePicture::Avatar).await
}

pub(crate) async fn delete_header(
    State(state): State<Shared>,
    Me(me): Me,
    once: Once,
) -> Result<Response, ApiError> {
    clear(&state, me, once, ProfilePicture::Header).await
}

async fn clear(
    state: &Shared,
    me: UserId,
    once: Once,
    picture: ProfilePicture,
) -> Result<Response, ApiError> {
    let command = MediaCommand::ClearProfile { user: UserRef::Id(me), picture };
    state.change(me, once, Command::Media(command)).await?;
    let account = state.entities_done(me, move |entities| entities.own_account(me)).await?;
    answers::entity(account)
}

/// Refuses pictures that are not files, and changes of properties that are fixed on this server.
fn refuse_fixed(fields: &Fields) -> Result<(), ApiError> {
    for (name, ..) in PICTURES {
        if fields.has(name) {
            return Err(ApiError::invalid(format!("{name} must be a file in a multipart form")));
        }
    }
    if fields.has("attribution_domains") {
        return Err(ApiError::not_supported("attribution of links to authors"));
    }
    match fields.flag("hide_collections")? {
        Some(true) => Err(ApiError::not_supported("setting hide_collections to true")),
        _ => Ok(()),
    }
}

fn edit(user: UserRef, fields: &Fields) -> Result<UserEdit, ApiError> {
    // `Fields::text` accepts an empty text, which is a valid value here.
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
        quote_policy: quote_policy(fields, "source[quote_policy]")?,
        locked: fields.flag("locked")?,
    })
}

/// Default visibility of posts. As in Mastodon, it cannot be direct.
fn default_visibility(name: &str) -> Result<Visibility, ApiError> {
    let found = visibility(name).filter(|visibility| *visibility != Visibility::Direct);
    found.ok_or_else(|| ApiError::invalid("source[privacy] must be public, unlisted or private"))
}

/// New list of all fields of the profile, if the request has any.
fn profile_fields(fields: &Fields) -> Result<Option<ProfileFields>, ApiError> {
    let Some(found) = fields.objects("fields_attributes", ["name", "value"]) else {
        return Ok(None);
    };
    let pairs =
        found.iter().map(|[name, value]| (name.unwrap_or_default(), value.unwrap_or_default()));
    Ok(Some(ProfileFields::parse(pairs)?))
}

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
