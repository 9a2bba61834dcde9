//! Single posts: create, show, edit, delete.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use edge::SMALL_BYTES_MAX;
use feed::limits::POST_MEDIA_MAX;
use feed::media::MediaId;
use feed::{
    Command, Draft, Language, Patch, PostId, PostText, Refusal, UserRef, Visibility, Warning,
};
use node::Node;
use serde::Deserialize;
use utoipa::ToSchema;

use crate::changes::{Changed, only_id};
use crate::error::ApiError;
use crate::guard::reserved;
use crate::idempotency::Once;
use crate::input::{Input, OnePost, OneUser, UserAnd, decimal, given, post_number};
use crate::page::{For, json};
use crate::route::Route;
use crate::rule::May::{Own, See};
use crate::state::AppState;
use crate::v1::users::created;

/// Most bytes of a post as JSON, which are mostly the descriptions of its pictures. The response to every other change is
/// shorter than what needs memory; these are reserved before the change.
const POST_BYTES_MAX: usize = SMALL_BYTES_MAX;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::post("/v1/users/{user}/posts", create)
            .named("create_post", "Create a post")
            .users(Own)
            .posting()
            .text(
                "With `in_reply_to_id` it is a reply to that post, and mentions its author. Of \
                 the author's followers, those who also follow that user see a reply in their \
                 home timeline. `@handle` in the text mentions a user, also with the domain of \
                 the server, which is left out of the text; not in a URL, and not before \
                 another domain or as part of a longer name. A URL counts as 23 \
                 characters.\n\nA key without the scope `read` gets the `id` alone.",
            )
            .creates::<PostView>("The new post", "Path of the post")
            .errors(&[
                "bad_text",
                "bad_warning",
                "bad_language",
                "media_not_found",
                "media_attached",
                "too_many_media",
                "too_many_posts",
                "in_reply_to_not_found",
                "post_not_found",
            ]),
        Route::get("/v1/posts/{id}", show)
            .named("get_post", "Show a post")
            .users(See)
            .shows::<PostView>("The post"),
        Route::patch("/v1/users/{user}/posts/{id}", edit)
            .named("edit_post", "Edit a post")
            .users(Own)
            .posting()
            .text(
                "Changes the given fields, and with the text its mentions; a direct post keeps \
                 those it has. The post remains a reply to the same post, and visible to the \
                 same users.\n\nA key without the scope `read` gets the `id` alone.",
            )
            .shows::<PostView>("The edited post")
            .errors(&["bad_text", "bad_warning", "bad_language"]),
        Route::delete("/v1/users/{user}/posts/{id}", delete)
            .named("delete_post", "Delete a post")
            .users(Own)
            .text("Replies to it are not deleted.")
            .answers(204, "The post is deleted"),
    ]
}

/// A post to be created.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewPost {
    /// 1 to 500 characters after trimming; may be empty with pictures.
    #[schema(example = "hello")]
    text: String,
    /// Pictures of the author that no post has, at most 4, in their order.
    #[serde(default)]
    media_ids: Vec<String>,
    /// The post replied to.
    #[serde(default, deserialize_with = "given")]
    #[schema(nullable = false)]
    in_reply_to_id: Option<String>,
    /// Who may see it, besides the author and the users it mentions; by default everybody.
    #[serde(default)]
    visibility: VisibilityName,
    /// At most 500 characters that are shown instead of the text until the reader asks for it.
    #[serde(default)]
    warning: String,
    /// Whether images should be hidden until the reader asks for them.
    #[serde(default)]
    sensitive: bool,
    /// The language of the text: a code of 2 or 3 letters. Subtags are cut.
    #[serde(default, deserialize_with = "given")]
    #[schema(nullable = false, example = "en")]
    language: Option<String>,
}

/// Who may see a post, besides the author and the users it mentions.
#[derive(Clone, Copy, Default, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum VisibilityName {
    /// Everybody.
    #[default]
    Public,
    /// Everybody, but it is not in lists of the newest posts of all users.
    Unlisted,
    /// The followers of the author.
    Followers,
    /// Nobody else.
    Direct,
}

impl From<VisibilityName> for Visibility {
    fn from(name: VisibilityName) -> Self {
        match name {
            VisibilityName::Public => Self::Public,
            VisibilityName::Unlisted => Self::Unlisted,
            VisibilityName::Followers => Self::Followers,
            VisibilityName::Direct => Self::Direct,
        }
    }
}

/// An edit of a post. A missing field stays as it is.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PostChange {
    /// 1 to 500 characters after trimming; may be empty with pictures.
    #[serde(default, deserialize_with = "given")]
    #[schema(nullable = false, example = "hello @bob and @cy")]
    text: Option<String>,
    /// The new warning; an empty one removes it.
    #[serde(default, deserialize_with = "given")]
    #[schema(nullable = false)]
    warning: Option<String>,
    /// Whether images should be hidden until the reader asks for them.
    #[serde(default, deserialize_with = "given")]
    #[schema(nullable = false)]
    sensitive: Option<bool>,
    /// The new language; an empty one removes it.
    #[serde(default, deserialize_with = "given")]
    #[schema(nullable = false, example = "en")]
    language: Option<String>,
}

/// The parts of a new post, of an edit and of a line of a batch that are read alike.
pub(crate) struct Said<'a> {
    pub(crate) text: Option<&'a str>,
    pub(crate) warning: Option<&'a str>,
    pub(crate) sensitive: Option<bool>,
    pub(crate) language: Option<&'a str>,
}

impl Said<'_> {
    /// The parts of a new post, which has no language that an empty one could remove.
    pub(crate) fn draft(self, author: UserRef, domain: &str) -> Result<Draft, ApiError> {
        if self.language == Some("") {
            return Err(Refusal::BadLanguage.into());
        }
        Ok(Draft::saying(author, self.patch(domain)?))
    }

    /// The parts as checked values. An empty text or language is none.
    pub(crate) fn patch(self, domain: &str) -> Result<Patch, ApiError> {
        let text = |text: &str| match text.trim() {
            "" => Ok(PostText::none()),
            text => PostText::written(text, domain),
        };
        let language = |code: &str| match code {
            "" => Ok(None),
            code => Language::parse(code).map(Some),
        };
        Ok(Patch {
            text: self.text.map(text).transpose()?,
            warning: self.warning.map(Warning::parse).transpose()?,
            sensitive: self.sensitive,
            language: self.language.map(language).transpose()?,
            ..Patch::default()
        })
    }
}

/// A user named in a post.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes the answer, which the node renders")]
pub(crate) struct Mentioned {
    id: String,
    handle: String,
}

/// The author of a post or story.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes the answer, which the node renders")]
pub(crate) struct Author {
    id: String,
    handle: String,
    name: String,
}

/// A picture of a post.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes the answer, which the node renders")]
pub(crate) struct Picture {
    /// The path of the picture, which needs no key: whoever has it may read the picture.
    #[schema(example = "/media/381482917519855616-00112233445566778899aabbccddeeff/original.jpg")]
    url: String,
    /// The path of a small one, of at most 230,400 pixels.
    preview_url: String,
    /// Pixels in a row of the picture.
    width: u16,
    /// Rows of the picture.
    height: u16,
    /// What it shows; may be empty.
    description: String,
    /// A [BlurHash](https://blurha.sh).
    blurhash: String,
}

/// A post.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes the answer, which the node renders")]
pub(crate) struct PostView {
    #[schema(example = "381482917519855616")]
    id: String,
    author: Author,
    text: String,
    #[schema(format = DateTime, example = "2026-11-21T09:30:00.123Z")]
    created_at: String,
    /// When it was last edited.
    #[schema(format = DateTime, example = "2026-11-21T09:31:00.123Z")]
    edited_at: Option<String>,
    /// The post replied to; null if there is none, it was deleted, or fewer users may see it than the reply.
    in_reply_to_id: Option<String>,
    /// The author of the post replied to.
    reply_to: Option<Mentioned>,
    /// Mentioned users: the author of the post replied to, then the users in the text.
    mentions: Vec<Mentioned>,
    visibility: VisibilityName,
    /// Shown instead of the text until the reader asks for it; may be empty.
    warning: String,
    sensitive: bool,
    #[schema(example = "en")]
    language: Option<String>,
    media: Vec<Picture>,
    /// The boosted post. Of a boost all but `id`, `author` and `created_at` is empty.
    #[schema(no_recursion)]
    boost_of: Option<Box<PostView>>,
}

pub(crate) async fn create(
    State(state): State<Arc<AppState>>,
    OneUser(author): OneUser,
    Input { body, key, may_read, client, .. }: Input<NewPost>,
) -> Result<Response, ApiError> {
    let parent = body.in_reply_to_id.map(|id| post_number(decimal(&id))).transpose();
    let parent = parent.map_err(|error| error.at("in_reply_to_id"))?;
    let said = Said {
        text: Some(&body.text),
        warning: Some(&body.warning),
        sensitive: Some(body.sensitive),
        language: body.language.as_deref(),
    };
    let (media, visibility) = (pictures(&body.media_ids)?, body.visibility.into());
    let draft = Draft { parent, visibility, media, ..said.draft(author, &state.domain)? };
    draft.check()?;
    // Descriptions of pictures make a new post long.
    let held = match draft.media.is_empty() {
        true => None,
        false => Some(state.unsent.response(client, POST_BYTES_MAX)?),
    };
    let post = state.submit_post(draft, key).await?;
    let id = post.value;
    let path = format!("/v1/posts/{}", id.0);
    if !may_read {
        return Ok(created(only_id(id.0), path, &post));
    }
    Ok(match rendered_done(&state, id).await? {
        Some(body) => {
            let response = json(body);
            let response = match held {
                Some(held) => reserved(response, held),
                None => response,
            };
            created(response, path, &post)
        }
        None => gone(&post),
    })
}

/// The pictures that a new post is to have.
fn pictures(ids: &[String]) -> Result<Vec<MediaId>, ApiError> {
    if ids.len() > POST_MEDIA_MAX {
        return Err(Refusal::TooManyMedia.into());
    }
    let not_found = Refusal::MediaNotFound;
    let found = ids.iter().map(|id| decimal(id).map(MediaId).ok_or(not_found));
    Ok(found.collect::<Result<_, _>>()?)
}

/// A post that was just created or edited, as JSON, unless it was deleted since.
async fn rendered_done(state: &AppState, post: PostId) -> Result<Option<Vec<u8>>, ApiError> {
    let mut body = Vec::with_capacity(512);
    if state.node.try_post(post, &mut body) {
        return Ok(Some(body));
    }
    state.read_done(move |node| node.post(post, &mut body).then_some(body)).await
}

/// The response if the post has been deleted since; the same for a replay.
fn gone<T>(changed: &Changed<T>) -> Response {
    changed.mark(ApiError::from(Refusal::PostNotFound).into_response())
}

pub(crate) async fn show(
    State(state): State<Arc<AppState>>,
    OnePost(post): OnePost,
    For(viewer): For,
) -> Result<Response, ApiError> {
    let post = match viewer {
        None => rendered(&state, post).await?,
        Some(viewer) => rendered_for(&state, viewer, post).await?,
    };
    post.map(json).ok_or(Refusal::PostNotFound.into())
}

pub(crate) async fn edit(
    State(state): State<Arc<AppState>>,
    UserAnd(author, post): UserAnd<PostId>,
    Input { body, key, may_read, client, .. }: Input<PostChange>,
) -> Result<Response, ApiError> {
    check_author(&state, author, post).await?;
    let said = Said {
        text: body.text.as_deref(),
        warning: body.warning.as_deref(),
        sensitive: body.sensitive,
        language: body.language.as_deref(),
    };
    let patch = said.patch(&state.domain)?;
    let held = state.unsent.response(client, POST_BYTES_MAX)?;
    let edited = state.submit_post_edit(post, patch, key).await?;
    if !may_read {
        return Ok(edited.mark(only_id(post.0)));
    }
    Ok(match rendered_done(&state, post).await? {
        Some(body) => edited.mark(reserved(json(body), held)),
        None => gone(&edited),
    })
}

pub(crate) async fn delete(
    State(state): State<Arc<AppState>>,
    UserAnd(author, post): UserAnd<PostId>,
    Once(key): Once,
) -> Result<Response, ApiError> {
    check_author(&state, author, post).await?;
    state.carry_out(Command::DeletePost { post }, key).await
}

async fn check_author(state: &AppState, author: UserRef, post: PostId) -> Result<(), ApiError> {
    let of = move |node: &Node| node.facts().post(post).map(|post| post.author);
    state.check_author(author, of, Refusal::PostNotFound).await
}

/// A post as JSON if a user may see it.
async fn rendered_for(
    state: &AppState,
    viewer: UserRef,
    post: PostId,
) -> Result<Option<Vec<u8>>, ApiError> {
    let read = move |node: &Node| {
        let viewer = node.resolve(&viewer).ok_or(Refusal::ViewerNotFound)?;
        let mut out = Vec::with_capacity(512);
        Ok::<_, Refusal>(node.post_for(viewer, post, &mut out).then_some(out))
    };
    Ok(state.read(read).await??)
}

/// A post as JSON, from memory if possible.
async fn rendered(state: &AppState, post: PostId) -> Result<Option<Vec<u8>>, ApiError> {
    let mut out = Vec::with_capacity(512);
    if state.node.try_post(post, &mut out) {
        return Ok(Some(out));
    }
    state.read(move |node| node.post(post, &mut out).then_some(out)).await
}
