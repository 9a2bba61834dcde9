//! Single posts: create, show, edit, delete.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use edge::SMALL_BYTES_MAX;
use feed::limits::POST_MEDIA_MAX;
use feed::media::MediaId;
use feed::quotes::QuotePolicy;
use feed::{
    Command, Conditional, Draft, Language, Patch, PostId, PostText, Refusal, UserRef, Visibility,
    Warning,
};
use node::Node;
use serde::Deserialize;
use utoipa::ToSchema;

use crate::conditions::{OnlyIf, Unless};
use crate::error::ApiError;
use crate::guard::reserved;
use crate::idempotency::Once;
use crate::input::{Input, OnePost, OneUser, UserAnd, decimal, given, post_number};
use crate::page::{AskedFor, For, Reading};
use crate::route::{EDITED_TAG, Route};
use crate::rule::May::{Own, See};
use crate::state::AppState;
use crate::v1::follows;
use crate::v1::timelines::read_page;
use crate::v1::users::created;

/// Maximum size of a post as JSON, most of which are descriptions of pictures. If a post has pictures, the memory for a
/// response of this size is reserved before the change. Other responses are so small that they need no reservation.
const POST_BYTES_MAX: usize = SMALL_BYTES_MAX;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::post("/v1/users/{user}/posts", create)
            .named("create_post", "Create a post")
            .users(Own)
            .posting()
            .text(
                "`in_reply_to_id` makes the post a reply, which mentions the author of that \
                 post. A follower of the author sees the reply at home only if they also follow \
                 that user. `@handle` in the text mentions a user. `@handle@domain` does the \
                 same for the server's own domain, which is removed from the text. A handle in a \
                 URL, before another domain or within a longer name is not a mention. A URL \
                 counts as 23 characters.\n\nA key without the scope `read` gets only the `id`.",
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
                "quoted_not_found",
                "quote_not_allowed",
            ]),
        Route::get("/v1/posts/{id}", show)
            .named("get_post", "Show a post")
            .users(See)
            .shows::<PostView>("The post")
            .tagged(),
        Route::patch("/v1/users/{user}/posts/{id}", edit)
            .named("edit_post", "Edit a post")
            .users(Own)
            .posting()
            .text(
                "Changes the given fields. A new text also replaces the mentions, except in \
                 direct posts. The parent and the audience of the post do not change.\n\nA key \
                 without the scope `read` gets only the `id`.",
            )
            .shows::<PostView>("The edited post")
            .with_header("ETag", EDITED_TAG)
            .errors(&["bad_text", "bad_warning", "bad_language"]),
        Route::delete("/v1/users/{user}/posts/{id}", delete)
            .named("delete_post", "Delete a post")
            .users(Own)
            .text("Replies to it are not deleted.")
            .answers(204, "The post is deleted"),
        Route::get("/v1/posts/{id}/quotes", quotes)
            .named("list_quotes", "List the quotes of a post")
            .users(See)
            .text("Those that everybody may see, but for those by users whom the viewer blocks or mutes.")
            .lists::<PostView>("A page of posts"),
        Route::delete("/v1/users/{user}/quotes/{id}", revoke_quote)
            .named("revoke_quote", "Revoke the quote of a post of the user")
            .users(Own)
            .text("`id` is that of the post with the quote, which stays. Idempotent.")
            .answers(204, "It does not show the post any more"),
    ]
}

/// A post to be created.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewPost {
    /// Text of 1 to 500 characters after trimming; may be empty if the post has pictures.
    #[schema(example = "hello")]
    text: String,
    /// Ids of up to 4 pictures, in order. They were uploaded by the author and belong to no post.
    #[serde(default)]
    media_ids: Vec<String>,
    /// Id of the parent, if the post is a reply.
    #[serde(default, deserialize_with = "given")]
    #[schema(nullable = false)]
    in_reply_to_id: Option<String>,
    /// Audience of the post (default: public). The author and mentioned users always see it.
    #[serde(default)]
    visibility: VisibilityName,
    /// Content warning of at most 500 characters, shown instead of the text until the reader opens it.
    #[serde(default)]
    warning: String,
    /// Whether images are hidden until the reader opens them.
    #[serde(default)]
    sensitive: bool,
    /// Language of the text: a code of 2 or 3 letters. Subtags are removed.
    #[serde(default, deserialize_with = "given")]
    #[schema(nullable = false, example = "en")]
    language: Option<String>,
    /// Id of the quoted post. A quote of the author's own post for followers also becomes a post for followers.
    #[serde(default, deserialize_with = "given")]
    #[schema(nullable = false)]
    quote_id: Option<String>,
    /// Users who may quote the post, in addition to its author. Default: everybody, if everybody may see the post.
    #[serde(default)]
    quote_policy: QuotePolicyName,
}

/// Users who may quote a post, in addition to its author.
#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum QuotePolicyName {
    /// Everybody.
    #[default]
    Public,
    /// Followers of the author.
    Followers,
    /// Nobody else.
    Nobody,
}

impl From<QuotePolicyName> for QuotePolicy {
    fn from(name: QuotePolicyName) -> Self {
        match name {
            QuotePolicyName::Public => Self::Public,
            QuotePolicyName::Followers => Self::Followers,
            QuotePolicyName::Nobody => Self::Nobody,
        }
    }
}

/// Audience of a post. The author and mentioned users always see it.
#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum VisibilityName {
    /// Everybody.
    #[default]
    Public,
    /// Everybody, but lists of the newest posts of all users omit the post.
    Unlisted,
    /// Followers of the author.
    Followers,
    /// Mentioned users only.
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

/// Edit of a post. Absent fields do not change.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PostChange {
    /// New text of 1 to 500 characters after trimming; may be empty if the post has pictures.
    #[serde(default, deserialize_with = "given")]
    #[schema(nullable = false, example = "hello @bob and @cy")]
    pub(crate) text: Option<String>,
    /// New content warning; an empty string removes it.
    #[serde(default, deserialize_with = "given")]
    #[schema(nullable = false)]
    pub(crate) warning: Option<String>,
    /// Whether images are hidden until the reader opens them.
    #[serde(default, deserialize_with = "given")]
    #[schema(nullable = false)]
    pub(crate) sensitive: Option<bool>,
    /// New language; an empty string removes it.
    #[serde(default, deserialize_with = "given")]
    #[schema(nullable = false, example = "en")]
    pub(crate) language: Option<String>,
    /// Users who may quote the post from now on.
    #[serde(default, deserialize_with = "given")]
    #[schema(nullable = false)]
    pub(crate) quote_policy: Option<QuotePolicyName>,
}

impl PostChange {
    /// Makes a new post. Refuses an empty language, which only an edit may use.
    pub(crate) fn draft(self, author: UserRef, domain: &str) -> Result<Draft, ApiError> {
        if self.language.as_deref() == Some("") {
            return Err(Refusal::BadLanguage.into());
        }
        Ok(Draft::saying(author, self.patch(domain)?))
    }

    /// Checks the fields. An empty text or language becomes `none`.
    fn patch(self, domain: &str) -> Result<Patch, ApiError> {
        let text = |text: String| match text.trim() {
            "" => Ok(PostText::none()),
            text => PostText::written(text, domain),
        };
        let language = |code: String| match code.as_str() {
            "" => Ok(None),
            code => Language::parse(code).map(Some),
        };
        Ok(Patch {
            text: self.text.map(text).transpose()?,
            warning: self.warning.as_deref().map(Warning::parse).transpose()?,
            sensitive: self.sensitive,
            language: self.language.map(language).transpose()?,
            media: None,
            poll: None,
            described: Vec::new(),
            revoke_quote: false,
            quote_policy: self.quote_policy.map(Into::into),
        })
    }
}

/// A user named in a post.
#[derive(ToSchema)]
#[expect(dead_code, reason = "schema of the response, which the node renders")]
pub(crate) struct Mentioned {
    id: String,
    handle: String,
}

/// The author of a post or story.
#[derive(ToSchema)]
#[expect(dead_code, reason = "schema of the response, which the node renders")]
pub(crate) struct Author {
    id: String,
    handle: String,
    name: String,
}

/// A picture of a post.
#[derive(ToSchema)]
#[expect(dead_code, reason = "schema of the response, which the node renders")]
pub(crate) struct Picture {
    /// Path of the picture, readable without a key by anyone who knows it.
    #[schema(example = "/media/381482917519855616-00112233445566778899aabbccddeeff/original.jpg")]
    url: String,
    /// Path of a preview of at most 230,400 pixels.
    preview_url: String,
    /// Width in pixels.
    width: u16,
    /// Height in pixels.
    height: u16,
    /// Description of the picture for people who cannot see it; may be empty.
    description: String,
    /// [BlurHash](https://blurha.sh) of the picture.
    blurhash: String,
}

/// Quote in a post.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes the answer, which the node renders")]
pub(crate) struct QuoteView {
    /// Id of the quoted post; null unless the quote is accepted. `GET /v1/posts/{id}` shows whether a viewer may see
    /// that post.
    id: Option<String>,
    state: QuoteStateName,
}

/// State of a quote.
#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
#[expect(dead_code, reason = "describes the answer, which the node renders")]
pub(crate) enum QuoteStateName {
    /// The quoted post is shown.
    Accepted,
    /// The author of the quoted post has revoked the quote; the quoted post is not shown.
    Revoked,
    /// The quoted post was deleted.
    Deleted,
    /// Fewer users may see the quoted post than the quote; the quoted post is not shown.
    Unauthorized,
}

/// A post.
#[derive(ToSchema)]
#[expect(dead_code, reason = "schema of the response, which the node renders")]
pub(crate) struct PostView {
    #[schema(example = "381482917519855616")]
    id: String,
    author: Author,
    text: String,
    #[schema(format = DateTime, example = "2026-11-21T09:30:00.123Z")]
    created_at: String,
    /// Time of the last edit.
    #[schema(format = DateTime, example = "2026-11-21T09:31:00.123Z")]
    edited_at: Option<String>,
    /// Id of the parent; null if the post is no reply, the parent was deleted, or the reply has a larger audience than
    /// the parent.
    in_reply_to_id: Option<String>,
    /// Author of the parent.
    reply_to: Option<Mentioned>,
    /// Mentioned users: the author of the parent, then the users named in the text.
    mentions: Vec<Mentioned>,
    visibility: VisibilityName,
    /// Content warning, shown instead of the text until the reader opens it; may be empty.
    warning: String,
    sensitive: bool,
    /// Quote of another post in this post, if any.
    quote: Option<QuoteView>,
    quote_policy: QuotePolicyName,
    #[schema(example = "en")]
    language: Option<String>,
    media: Vec<Picture>,
    /// The boosted post. A boost itself has only `id`, `author` and `created_at`.
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
    let quote = body.quote_id.map(|id| post_number(decimal(&id))).transpose();
    let quote = quote.map_err(|error| error.at("quote_id"))?;
    let said = PostChange {
        text: Some(body.text),
        warning: Some(body.warning),
        sensitive: Some(body.sensitive),
        language: body.language,
        quote_policy: Some(body.quote_policy),
    };
    let (media, visibility) = (pictures(&body.media_ids)?, body.visibility.into());
    let mut draft = Draft { parent, visibility, quote, ..said.draft(author, &state.domain)? };
    draft.content.media = media;
    draft.check()?;
    // Descriptions of pictures make the response long.
    let held = match draft.content.media.is_empty() {
        true => None,
        false => Some(state.unsent.response(client, POST_BYTES_MAX)?),
    };
    let post = state.submit_post(draft, key).await?;
    let id = post.value;
    let response = state.respond(&post, id.0, may_read, rendered_done(&state, id)).await?;
    let response = match held {
        Some(held) => reserved(response, held),
        None => response,
    };
    Ok(created(response, format!("/v1/posts/{}", id.0)))
}

/// Parses the ids of a new post's pictures.
fn pictures(ids: &[String]) -> Result<Vec<MediaId>, ApiError> {
    if ids.len() > POST_MEDIA_MAX {
        return Err(Refusal::TooManyMedia.into());
    }
    let not_found = Refusal::MediaNotFound;
    let found = ids.iter().map(|id| decimal(id).map(MediaId).ok_or(not_found));
    Ok(found.collect::<Result<_, _>>()?)
}

/// JSON of a post that was just created; `None` if it has been deleted.
async fn rendered_done(state: &AppState, post: PostId) -> Result<Option<Vec<u8>>, ApiError> {
    let mut body = Vec::with_capacity(512);
    if state.node.try_post(post, &mut body) {
        return Ok(Some(body));
    }
    state.read_done(move |node| node.post(post, &mut body).then_some(body)).await
}

pub(crate) async fn show(
    State(state): State<Arc<AppState>>,
    OnePost(post): OnePost,
    For(viewer): For,
    unless: Unless,
) -> Result<Response, ApiError> {
    let read = move |node: &Node| {
        let viewer = follows::viewer(node, viewer.as_ref())?.user();
        // The revision is read first, so that the tag of an edit never has an older post.
        let revision = node.post_revision(post);
        let mut out = Vec::with_capacity(512);
        let is_shown = match viewer {
            None => node.post(post, &mut out),
            Some(viewer) => node.post_for(viewer, post, &mut out),
        };
        revision.filter(|_| is_shown).map(|revision| (revision, out)).ok_or(Refusal::PostNotFound)
    };
    let (revision, body) = state.read(read).await??;
    Ok(unless.answer(revision, body))
}

pub(crate) async fn edit(
    State(state): State<Arc<AppState>>,
    UserAnd(author, post): UserAnd<PostId>,
    only_if: OnlyIf,
    Input { body, key, may_read, client, .. }: Input<PostChange>,
) -> Result<Response, ApiError> {
    let patch = body.patch(&state.domain)?;
    let held = state.unsent.response(client, POST_BYTES_MAX)?;
    let edited = state.submit_post_edit(author, (post, patch), only_if, key).await?;
    let read = state.read_done(move |node| {
        // The revision is read first, so that the tag of an edit never has an older post.
        let (revision, mut out) = (node.post_revision(post)?, Vec::with_capacity(512));
        node.post(post, &mut out).then_some((revision, out))
    });
    let response = state.respond_tagged(&edited, post.0, may_read, read).await?;
    Ok(reserved(response, held))
}

pub(crate) async fn delete(
    State(state): State<Arc<AppState>>,
    UserAnd(author, post): UserAnd<PostId>,
    only_if: OnlyIf,
    Once(key): Once,
) -> Result<Response, ApiError> {
    state.carry_out(only_if.on(Some(author), Conditional::DeletePost { post }), key).await
}

pub(crate) async fn quotes(
    State(state): State<Arc<AppState>>,
    OnePost(post): OnePost,
    AskedFor(asked): AskedFor,
) -> Result<Response, ApiError> {
    let (page, named) = (asked.of(Reading::Down), asked.viewer.clone());
    let read = move |node: &Node, out: &mut Vec<u8>| {
        let viewer = follows::viewer(node, named.as_ref())?;
        let found = node.facts().post(post).filter(|post| viewer.visible(post));
        let quoted = found.ok_or(Refusal::PostNotFound)?.boosted_or(post);
        Ok(node.append_page(&viewer.quotes(quoted, &page), &page, out))
    };
    read_page(&state, &asked, read).await
}

pub(crate) async fn revoke_quote(
    State(state): State<Arc<AppState>>,
    UserAnd(user, post): UserAnd<PostId>,
    Once(key): Once,
) -> Result<Response, ApiError> {
    let check = move |node: &Node| {
        let user = node.resolve(&user).ok_or(Refusal::UserNotFound)?;
        // If the post does not exist, the change continues: the rules refuse it, or it repeats an earlier change.
        let Some(found) = node.facts().post(post) else { return Ok(()) };
        let may_revoke = node.viewer(Some(user)).may_revoke(&found);
        if may_revoke { Ok(()) } else { Err(Refusal::PostNotFound) }
    };
    state.read(check).await??;
    let patch = Patch { revoke_quote: true, ..Patch::default() };
    state.carry_out(Command::edit(post, patch), key).await
}
