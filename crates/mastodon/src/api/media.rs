//! Pictures before they are attached: upload, description, deletion; and the pictures that a status names.

use axum::Json;
use axum::extract::State;
use axum::response::Response;
use feed::accounts::AccessScope as S;
use feed::media::{Description, Focus, MediaChange, MediaCommand, MediaId, MediaUse};
use feed::{Command, Refusal, UserId, UserRef};
use media::Shape;
use node::Upload;
use serde_json::{Value, json};

use crate::access::Needs;
use crate::answers;
use crate::endpoints::Endpoints;
use crate::entities::Entities;
use crate::error::ApiError;
use crate::fields::Fields;
use crate::form::Form;
use crate::input::{InPath, Me, Once, number};
use crate::limiter::What;
use crate::state::{Server, Shared};

/// Adds the routes of pictures.
pub(crate) fn routes(table: &mut Endpoints) {
    let write_media = Needs::User(&[S::WriteMedia]);
    for path in ["/api/v1/media", "/api/v2/media"] {
        table.post(path, write_media, add);
    }
    table.get("/api/v1/media/{id}", write_media, show);
    table.put("/api/v1/media/{id}", write_media, change);
    table.delete("/api/v1/media/{id}", write_media, delete);
}

/// Description and focus of a picture, each if the request has it.
type Said = (Option<Description>, Option<Focus>);

impl Server {
    /// Stores a picture of a user.
    pub(crate) async fn upload(
        &self,
        me: UserId,
        file: Vec<u8>,
        shape: Shape,
        (description, focus): Said,
    ) -> Result<MediaId, ApiError> {
        let description = description.unwrap_or_default();
        let upload = Upload { owner: me, file, shape, description, focus };
        Ok(self.node.upload(upload).await?)
    }

    /// Returns how a picture that the user uploaded is used.
    async fn used(&self, me: UserId, id: MediaId) -> Result<MediaUse, ApiError> {
        let media = self.read(move |node| node.facts().media(id)).await?;
        let own = media.filter(|media| media.owner == me).ok_or_else(ApiError::not_found)?;
        Ok(own.used)
    }

    /// Checks that a picture of the user is not attached. As in Mastodon, an attached picture belongs to its status.
    async fn unattached(&self, me: UserId, id: MediaId) -> Result<(), ApiError> {
        match self.used(me, id).await? {
            MediaUse::Unattached { .. } => Ok(()),
            MediaUse::Post(_) | MediaUse::Profile(_) | MediaUse::Scheduled(_) => {
                Err(ApiError::not_found())
            }
        }
    }

    /// Responds with a picture.
    async fn attachment(&self, me: UserId, id: MediaId) -> Result<Response, ApiError> {
        let read = move |entities: &mut Entities<'_>| {
            let media = entities.facts().media(id).filter(|media| media.owner == me)?;
            Some(entities.attachment(id, &media))
        };
        answers::entity(self.entities_done(me, read).await?)
    }
}

/// Stores a picture. Ignores the parameter `thumbnail`, because the server makes the preview from the picture.
pub(crate) async fn add(
    State(state): State<Shared>,
    Me(me): Me,
    Form { fields, mut files }: Form,
) -> Result<Response, ApiError> {
    if !state.node.accepts_pictures() {
        return Err(ApiError::not_supported("pictures"));
    }
    let said = said(&fields)?;
    files.keep(&["file"]);
    let file = files.take("file")?.ok_or_else(|| ApiError::invalid("File can't be blank"))?;
    if !files.is_counted() {
        state.limit(What::Uploads, u64::from(me.0))?;
    }
    // From here on, the node accounts for the memory of the file.
    drop(files);
    let id = state.upload(me, file, Shape::Attachment, said).await?;
    state.attachment(me, id).await
}

pub(crate) async fn show(
    State(state): State<Shared>,
    Me(me): Me,
    InPath(id): InPath<MediaId>,
) -> Result<Response, ApiError> {
    state.unattached(me, id).await?;
    state.attachment(me, id).await
}

pub(crate) async fn change(
    State(state): State<Shared>,
    Me(me): Me,
    InPath(id): InPath<MediaId>,
    once: Once,
    Form { fields, files }: Form,
) -> Result<Response, ApiError> {
    drop(files);
    let (description, focus) = said(&fields)?;
    state.unattached(me, id).await?;
    if description.is_some() || focus.is_some() {
        let change = Box::new(MediaChange { media: id, description, focus });
        let command = MediaCommand::Change { user: UserRef::Id(me), change };
        state.change(me, once, Command::Media(command)).await?;
    }
    state.attachment(me, id).await
}

pub(crate) async fn delete(
    State(state): State<Shared>,
    Me(me): Me,
    InPath(id): InPath<MediaId>,
    once: Once,
) -> Result<Json<Value>, ApiError> {
    state.used(me, id).await?;
    let command = MediaCommand::Delete { user: UserRef::Id(me), media: id };
    state.change(me, once, Command::Media(command)).await?;
    Ok(Json(json!({})))
}

/// Description and focus in a request. An empty description counts as given.
fn said(fields: &Fields) -> Result<Said, ApiError> {
    said_in([fields.text("description"), fields.one("focus")?])
}

fn said_in([description, focus]: [Option<&str>; 2]) -> Result<Said, ApiError> {
    let description = description.map(Description::parse).transpose()?;
    let focus = focus.filter(|text| !text.is_empty()).map(parse_focus).transpose();
    Ok((description, focus?))
}

/// Parses a point such as `-0.5,1.0`.
fn parse_focus(text: &str) -> Result<Focus, Refusal> {
    let part = |text: &str| text.trim().parse::<f32>().map_err(|_| Refusal::BadFocus);
    let (x, y) = text.split_once(',').ok_or(Refusal::BadFocus)?;
    Focus::new(part(x)?, part(y)?)
}

/// Pictures of a status, if the request names them.
pub(crate) fn named(fields: &Fields) -> Result<Option<Vec<MediaId>>, ApiError> {
    let mut given = fields.all("media_ids").peekable();
    if given.peek().is_none() {
        return Ok(None);
    }
    let id = |text| number(text).map(MediaId).ok_or(Refusal::MediaNotFound);
    let ids: Result<Vec<_>, _> = given.filter(|text| !text.is_empty()).map(id).collect();
    Ok(Some(ids?))
}

/// Changes of a status's pictures in a request.
pub(crate) fn changes(fields: &Fields) -> Result<Vec<MediaChange>, ApiError> {
    let objects = fields.objects("media_attributes", ["id", "description", "focus"]);
    let mut changes = Vec::new();
    for [id, description, focus] in objects.unwrap_or_default() {
        let media = id.and_then(number).map(MediaId).ok_or(Refusal::MediaNotFound)?;
        let (description, focus) = said_in([description, focus])?;
        changes.push(MediaChange { media, description, focus });
    }
    Ok(changes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_focus_is_two_numbers() {
        for (text, expect) in [
            ("0,0", Some((0.0, 0.0))),
            (" -0.5 , 1.0", Some((-0.5, 1.0))),
            ("1e-1,+1", Some((0.1, 1.0))),
            ("0", None),
            ("0,0,0", None),
            ("1.1,0", None),
            ("nan,0", None),
            ("inf,0", None),
        ] {
            let found = parse_focus(text).ok().map(Focus::coordinates);
            assert_eq!(found, expect, "{text}");
        }
    }

    #[test]
    fn pictures_of_a_status_are_named_or_not() {
        let ids = |query| named(&Fields::of_query(query).unwrap()).ok();
        assert_eq!(ids("status=x"), Some(None));
        for none in ["media_ids[]=", "media_ids="] {
            assert_eq!(ids(none), Some(Some(vec![])), "{none}");
        }
        assert_eq!(ids("media_ids[]=7&media_ids[]=8"), Some(Some(vec![MediaId(7), MediaId(8)])));
        assert!(ids("media_ids[]=x").is_none());
        let query = "media_attributes[][id]=7&media_attributes[][description]=a\
            &media_attributes[][id]=8&media_attributes[][focus]=0,1";
        let changes = changes(&Fields::of_query(query).unwrap()).ok().unwrap();
        let [first, second] = changes.as_slice() else { panic!("{changes:?}") };
        assert_eq!((first.media, first.focus), (MediaId(7), None));
        assert_eq!((second.media, &second.description), (MediaId(8), &None));
    }
}
