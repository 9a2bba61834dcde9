//! Search: finds users and hashtags by the beginning of their names, with at most one typing mistake, and posts and
//! profiles by URL.

use axum::extract::State;
use axum::response::Response;
use feed::accounts::AccessScope as S;
use feed::limits::{SEARCHED_MAX, SIMILAR_MAX};
use feed::tags;
use feed::token::TAG_SIGNS;
use feed::{Handle, PostId, UserId};

use super::accounts::{handle, list};
use crate::access::Needs;
use crate::answers;
use crate::endpoints::Endpoints;
use crate::entities::Entities;
use crate::entities::json::push_made;
use crate::error::ApiError;
use crate::fields::Params;
use crate::input::{self, Reader};
use crate::paging::limit;
use crate::state::Shared;

/// Adds the routes of search.
pub(crate) fn routes(table: &mut Endpoints) {
    table.get("/api/v1/accounts/search", Needs::ANYONE_ACCOUNTS, accounts);
    for path in ["/api/v1/search", "/api/v2/search"] {
        table.get(path, Needs::Anyone(&[S::ReadSearch]), all);
    }
}

/// Maximum offset of a page of a search. A larger one counts as this maximum.
const OFFSET_MAX: usize = 100;

/// Maximum number of users on a page of a search.
const USERS_MAX: usize = 80;

// A search reads enough for the last page.
const _: () = assert!(OFFSET_MAX + USERS_MAX <= SEARCHED_MAX);

/// Number of hashtags that a search reads, in the order of their names.
const TAGS_READ: usize = 60;
/// Maximum number of posts hidden from the reader that a search skips for all its hashtags together, in addition to a
/// fixed number for each hashtag.
pub(super) const HIDDEN_TAGGED_MAX: usize = 4_096;

pub(crate) async fn accounts(
    State(state): State<Shared>,
    Reader(reader): Reader,
    Params(fields): Params,
) -> Result<Response, ApiError> {
    let (limit, offset) = (limit(&fields, 40, USERS_MAX)?, offset(fields.one("offset")?));
    let start = handle(fields.one("q")?.unwrap_or_default(), &state.options.base);
    let is_following = fields.is_true("following")?;
    let followed = reader.filter(|_| is_following);
    let read = move |_: &_, entities: &mut Entities<'_>| {
        let found = users(entities, start.as_ref(), followed).skip(offset).take(limit);
        let found: Vec<_> = found.collect();
        list(found.into_iter(), |user| entities.account(user))
    };
    let found = state.entities_long(reader, read).await?;
    Ok(answers::json(found))
}

/// Name of a user, or post, in a query: the `url` or `uri` of an account or a status, or a name.
fn named<'q>(query: &'q str, base: &str) -> (&'q str, Option<PostId>) {
    let path: Vec<_> = match query.strip_prefix(base).and_then(|path| path.strip_prefix('/')) {
        Some(path) => path.split('/').collect(),
        None => return (query, None),
    };
    match path.as_slice() {
        [name] | ["users", name] => (name, None),
        [_, post] | ["users", _, "statuses", post] => ("", input::post(post)),
        _ => ("", None),
    }
}

/// Responds with the accounts, statuses and hashtags that match a query. Older clients use the path `/api/v1/search`.
/// Texts are not searched.
pub(crate) async fn all(
    State(state): State<Shared>,
    Reader(reader): Reader,
    Params(fields): Params,
) -> Result<Response, ApiError> {
    let (limit, offset) = (limit(&fields, 20, 40)?, offset(fields.one("offset")?));
    let query = fields.one("q")?.unwrap_or_default().trim().to_owned();
    let kind = fields.one("type")?.unwrap_or_default().to_owned();
    let base = state.options.base.clone();
    let is_following = fields.is_true("following")?;
    let followed = reader.filter(|_| is_following);
    let read = move |node: &node::Node, entities: &mut Entities<'_>| {
        let wants = |name: &str| kind.is_empty() || kind == name;
        let (name, post) = named(&query, &base);
        let mut out = b"{\"accounts\":[".to_vec();
        if wants("accounts") && !name.is_empty() {
            let start = handle(name, &base);
            let found = users(entities, start.as_ref(), followed).skip(offset).take(limit);
            for user in found.collect::<Vec<_>>() {
                push_made(entities.account(user), &mut out);
            }
        }
        out.extend_from_slice(b"],\"statuses\":[");
        if wants("statuses") && offset == 0 {
            entities.statuses(post.as_slice(), &mut out);
        }
        out.extend_from_slice(b"],\"hashtags\":[");
        let start = query.strip_prefix(TAG_SIGNS).unwrap_or(&query);
        if wants("hashtags")
            && let Some(start) = tags::prefix(start)
        {
            let facts = entities.facts();
            let similar = std::iter::once_with(|| facts.tags_similar(&start, SIMILAR_MAX));
            let found = facts.tags_by_prefix(&start).take(TAGS_READ).chain(similar.flatten());
            let mut rest = HIDDEN_TAGGED_MAX;
            let found = found.filter(|tag| entities.is_used(tag, &mut rest));
            for tag in found.skip(offset).take(limit) {
                push_made(Some(entities.tag(&tag, node.now_ms())), &mut out);
            }
        }
        out.extend_from_slice(b"]}");
        out
    };
    let found = state.entities_long(reader, read).await?;
    Ok(answers::json(found))
}

fn offset(text: Option<&str>) -> usize {
    text.and_then(input::number).map_or(0, |offset| offset.min(OFFSET_MAX as u64) as usize)
}

/// Users known to the reader whose handles begin with `start`, then those with a typing mistake; each group has its own
/// order. With `follower`, only users whom they follow.
fn users<'e>(
    entities: &'e Entities<'_>,
    start: Option<&'e Handle>,
    follower: Option<UserId>,
) -> impl Iterator<Item = UserId> + use<'e> {
    let facts = entities.facts();
    let found = start.into_iter().flat_map(move |start| {
        let followed = follower.map(|follower| facts.search_followed(start, follower));
        let all = follower.is_none().then(|| facts.search_users(start));
        followed.into_iter().flatten().chain(all.into_iter().flatten())
    });
    found.filter(|user| entities.knows(*user))
}
