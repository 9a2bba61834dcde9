//! Hashtags: timelines, featured hashtags of profiles, and followed hashtags.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::Uri;
use axum::response::Response;
use feed::accounts::AccessScope as S;
use feed::facts::UserTag;
use feed::limits::FEATURED_TAGS_MAX;
use feed::tagged::{self, TagQuery};
use feed::token::TAG_SIGNS;
use feed::{Command, Order, Shown, Span, Stamp, Tag, UserId, UserRef, Visibility, of_all, scan};
use serde_json::{Value, json};

use super::accounts::list;
use crate::access::Needs;
use crate::answers;
use crate::endpoints::Endpoints;
use crate::entities::Entities;
use crate::error::ApiError;
use crate::fields::{Fields, Params};
use crate::input::{self, InPath, Me, Once, Reader};
use crate::paging::{self, EntityList, REPEATED_BYTES_MAX};
use crate::state::Shared;

/// Adds the routes of hashtags.
pub(crate) fn routes(table: &mut Endpoints) {
    let write_follows = Needs::User(&[S::WriteFollows]);
    let read_accounts = Needs::User(&[S::ReadAccounts]);
    table.get("/api/v1/timelines/tag/{hashtag}", Needs::ANYONE_STATUSES, timeline);
    table.get("/api/v1/tags/{name}", Needs::ANYONE_STATUSES, show);
    table.post("/api/v1/tags/{name}/feature", Needs::WRITE_ACCOUNTS, feature);
    table.post("/api/v1/tags/{name}/unfeature", Needs::WRITE_ACCOUNTS, unfeature);
    table.post("/api/v1/tags/{name}/follow", write_follows, follow);
    table.post("/api/v1/tags/{name}/unfollow", write_follows, unfollow);
    table.get("/api/v1/followed_tags", Needs::User(&[S::ReadFollows]), followed);
    table.get("/api/v1/featured_tags", read_accounts, featured);
    table.get("/api/v1/featured_tags/suggestions", read_accounts, suggestions);
    table.post("/api/v1/featured_tags", Needs::WRITE_ACCOUNTS, add_featured);
    table.delete("/api/v1/featured_tags/{id}", Needs::WRITE_ACCOUNTS, remove_featured);
    table.get("/api/v1/accounts/{id}/featured_tags", Needs::ANYONE_ACCOUNTS, featured_by);
}

/// Maximum number of hashtags in each of `any`, `all` and `none`. Same as in Mastodon.
const MORE_TAGS_MAX: usize = 4;
/// Number of the newest posts of a user in which hashtags are suggested.
const SUGGESTING_POSTS: usize = 40;

pub(crate) async fn timeline(
    State(state): State<Shared>,
    Reader(reader): Reader,
    Path(name): Path<String>,
    uri: Uri,
    Params(fields): Params,
) -> Result<Response, ApiError> {
    let asked = paging::asked(&fields, paging::STATUSES)?;
    let (mut any, all, none) =
        (more(&fields, "any")?, more(&fields, "all")?, more(&fields, "none")?);
    let tag = Tag::parse(&name).ok();
    // There are no other servers, so nothing is remote. An invalid hashtag is in no post.
    let (is_empty, only_pictures) = (fields.is_true("remote")?, fields.is_true("only_media")?);
    let is_combined = !(any.is_empty() && all.is_empty() && none.is_empty());
    any.extend(tag.clone());
    let query = tag.filter(|_| !is_empty).map(|_| TagQuery { any, all, none, only_pictures });
    let read = move |_: &_, entities: &mut Entities<'_>| match &query {
        None => EntityList::default(),
        Some(query) => {
            let found = tagged::posts(entities.viewer(), query, &asked);
            paging::write(&asked, found, |post, out| entities.append_status(post, out))
        }
    };
    // With combined hashtags, a page may read many posts per result.
    let listed = match is_combined {
        true => state.entities_long(reader, read).await?,
        false => state.entities(reader, read).await?,
    };
    state.listed(uri.path(), &fields, &asked, listed)
}

/// Hashtags of a parameter. Ignores invalid ones, as Mastodon does. Refuses long ones, because the URLs of other pages
/// repeat them.
fn more(fields: &Fields, name: &str) -> Result<Vec<Tag>, ApiError> {
    let too_long =
        || ApiError::invalid(format!("a hashtag in {name} has at most {REPEATED_BYTES_MAX} bytes"));
    let tag = |text: &str| {
        let tag = Tag::parse(text).ok()?;
        Some(if text.len() <= REPEATED_BYTES_MAX { Ok(tag) } else { Err(too_long()) })
    };
    let given = fields.all(name).filter(|text| !text.is_empty());
    given.take(MORE_TAGS_MAX).filter_map(tag).collect()
}

pub(crate) async fn show(
    State(state): State<Shared>,
    Reader(reader): Reader,
    Path(name): Path<String>,
) -> Result<Json<Value>, ApiError> {
    let tag = Tag::parse(&name).map_err(|_| ApiError::not_found())?;
    let read =
        move |node: &node::Node, entities: &mut Entities<'_>| entities.tag(&tag, node.now_ms());
    Ok(Json(state.entities(reader, read).await?))
}

/// Makes handlers of changes of a user's relation to a hashtag, which respond with the hashtag.
macro_rules! changes {
    ($($name:ident => |$user:ident, $tag:ident| $command:expr;)*) => {$(
        pub(crate) async fn $name(
            State(state): State<Shared>,
            Me(me): Me,
            Path(name): Path<String>,
            once: Once,
        ) -> Result<Json<Value>, ApiError> {
            change(&state, me, once, &name, |$user, $tag| $command).await
        }
    )*};
}

changes! {
    feature => |user, tag| Command::FeatureTag { user, tag, on: true };
    unfeature => |user, tag| Command::FeatureTag { user, tag, on: false };
    follow => |user, tag| Command::FollowTag { user, tag, on: true };
    unfollow => |user, tag| Command::FollowTag { user, tag, on: false };
}

async fn change(
    state: &Shared,
    me: UserId,
    once: Once,
    name: &str,
    command: impl FnOnce(UserRef, Tag) -> Command,
) -> Result<Json<Value>, ApiError> {
    let tag = Tag::parse(name).map_err(|_| ApiError::not_found())?;
    state.change(me, once, command(UserRef::Id(me), tag.clone())).await?;
    let now_ms = state.node.now_ms();
    Ok(Json(state.entities_done(me, move |entities| entities.tag(&tag, now_ms)).await?))
}

/// Responds with the hashtags that the user follows, by the time of the follow, which is also the id in the links.
pub(crate) async fn followed(
    State(state): State<Shared>,
    Me(me): Me,
    uri: Uri,
    Params(fields): Params,
) -> Result<Response, ApiError> {
    let asked = paging::asked(&fields, paging::TAGS)?;
    let read = move |node: &node::Node, entities: &mut Entities<'_>| {
        let followed = of_all(entities.facts().followed_tags(me));
        let tag = |followed: UserTag| Some(entities.tag(&followed.tag, node.now_ms()));
        paging::list(&asked, scan(&asked, followed, Shown::Yes), tag)
    };
    let listed = state.entities_long(Some(me), read).await?;
    state.listed(uri.path(), &fields, &asked, listed)
}

pub(crate) async fn featured(
    State(state): State<Shared>,
    Me(me): Me,
) -> Result<Response, ApiError> {
    of(&state, Some(me), me).await
}

pub(crate) async fn featured_by(
    State(state): State<Shared>,
    Reader(reader): Reader,
    InPath(user): InPath<UserId>,
) -> Result<Response, ApiError> {
    of(&state, reader, user).await
}

async fn of(state: &Shared, reader: Option<UserId>, user: UserId) -> Result<Response, ApiError> {
    let read = move |_: &_, entities: &mut Entities<'_>| {
        entities.knows(user).then(|| {
            let featured = entities.facts().featured_tags(user);
            list(featured.into_iter(), |featured| entities.featured_tag(user, &featured))
        })
    };
    let found = state.entities_long(reader, read).await?.ok_or_else(ApiError::not_found)?;
    Ok(answers::json(found))
}

pub(crate) async fn add_featured(
    State(state): State<Shared>,
    Me(me): Me,
    once: Once,
    Params(fields): Params,
) -> Result<Response, ApiError> {
    let name = fields.one("name")?.unwrap_or_default().trim();
    let tag = Tag::parse(name.strip_prefix(TAG_SIGNS).unwrap_or(name))?;
    let command = Command::FeatureTag { user: UserRef::Id(me), tag: tag.clone(), on: true };
    state.change(me, once, command).await?;
    let read = move |entities: &mut Entities<'_>| {
        let all = entities.facts().featured_tags(me);
        let featured = all.iter().find(|featured| featured.tag == tag);
        featured.and_then(|featured| entities.featured_tag(me, featured))
    };
    answers::entity(state.entities_done(me, read).await?)
}

pub(crate) async fn remove_featured(
    State(state): State<Shared>,
    Me(me): Me,
    Path(id): Path<String>,
    once: Once,
) -> Result<Json<Value>, ApiError> {
    let since = input::number(&id).map(Stamp).ok_or_else(ApiError::not_found)?;
    let find = move |node: &node::Node| {
        let all = node.facts().featured_tags(me);
        all.into_iter().find(|featured| featured.since == since)
    };
    let featured = state.read(find).await?.ok_or_else(ApiError::not_found)?;
    let command = Command::FeatureTag { user: UserRef::Id(me), tag: featured.tag, on: false };
    state.change(me, once, command).await?;
    Ok(Json(json!({})))
}

/// Responds with hashtags of the user's newest posts that the profile does not feature.
pub(crate) async fn suggestions(
    State(state): State<Shared>,
    Me(me): Me,
) -> Result<Response, ApiError> {
    let read = move |node: &node::Node, entities: &mut Entities<'_>| {
        let facts = entities.facts();
        let span = Span { order: Order::Descending, limit: SUGGESTING_POSTS, ..Span::ALL };
        let posts = facts.posts_by(me, span).into_iter();
        let public = posts.filter(|(_, listed)| listed.visibility() == Visibility::Public);
        let shown = facts.featured_tags(me);
        let mut tags = Vec::new();
        for tag in public.filter_map(|(post, _)| facts.post(post)).flat_map(|post| post.tags()) {
            let is_shown = shown.iter().any(|featured| featured.tag == tag);
            if !is_shown && !tags.contains(&tag) && tags.len() < FEATURED_TAGS_MAX {
                tags.push(tag);
            }
        }
        list(tags.into_iter(), |tag| Some(entities.tag(&tag, node.now_ms())))
    };
    Ok(answers::json(state.entities_long(Some(me), read).await?))
}
