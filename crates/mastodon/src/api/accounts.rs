//! Accounts: their entities, statuses and relations, and look-ups.

use std::collections::HashSet;

use axum::extract::State;
use axum::http::Uri;
use axum::response::Response;

use feed::accounts::AccessScope as S;
use feed::limits::FOLLOWING_MAX;
use feed::profile::ProfileFilter;
use feed::{Batch, Facts, Handle, Page, SetTable, Shown, Span, Tag, UserId, scan};
use node::Store;
use serde_json::json;

use crate::access::Needs;
use crate::answers;
use crate::domain;
use crate::endpoints::Endpoints;
use crate::entities::Entities;
use crate::entities::json::{Json, push_made};
use crate::error::ApiError;
use crate::fields::{Fields, Params};
use crate::input::{self, InPath, Me, Reader};
use crate::paging::{self, EntityList, PAGE_BYTES};
use crate::state::Shared;

/// Adds the routes of accounts.
pub(crate) fn routes(table: &mut Endpoints) {
    table.get("/api/v1/accounts", Needs::ANYONE_ACCOUNTS, many);
    table.get("/api/v1/accounts/lookup", Needs::ANYONE_ACCOUNTS, lookup);
    table.get("/api/v1/accounts/{id}", Needs::ANYONE_ACCOUNTS, show);
    table.get("/api/v1/accounts/{id}/statuses", Needs::ANYONE_STATUSES, statuses);
    table.get("/api/v1/accounts/{id}/followers", Needs::ANYONE_ACCOUNTS, followers);
    table.get("/api/v1/accounts/{id}/following", Needs::ANYONE_ACCOUNTS, following);
    table.get("/api/v1/accounts/familiar_followers", Needs::User(&[S::ReadFollows]), familiar);
}

/// Maximum number of ids in a request for accounts or statuses.
const IDS_MAX: usize = 100;
/// Maximum number of ids in a request for relations. Mastodon does not limit it, except by the length of a URL, 10 KiB.
const RELATED_IDS_MAX: usize = 400;
/// Maximum number of listed followers of an account whom the reader follows.
const FAMILIAR_MAX: usize = 40;
/// Maximum number of follows read for the accounts of a request: more than one user can have.
const FAMILIAR_READ_MAX: usize = 16_384;
const _: () = assert!(FAMILIAR_READ_MAX > FOLLOWING_MAX as usize);

pub(crate) async fn show(
    State(state): State<Shared>,
    Reader(reader): Reader,
    InPath(user): InPath<UserId>,
) -> Result<Response, ApiError> {
    let read = move |_: &_, entities: &mut Entities<'_>| {
        entities.knows(user).then(|| entities.account(user)).flatten()
    };
    let account = state.entities(reader, read).await?;
    answers::entity(account)
}

pub(crate) async fn many(
    State(state): State<Shared>,
    Reader(reader): Reader,
    Params(fields): Params,
) -> Result<Response, ApiError> {
    let ids = ids(&fields)?;
    let read = move |_: &_, entities: &mut Entities<'_>| {
        let known = ids.iter().filter_map(|id| input::user(id));
        list(known, |user| entities.knows(user).then(|| entities.account(user)).flatten())
    };
    let found = state.entities(reader, read).await?;
    Ok(answers::json(found))
}

/// Values of `id[]`, without duplicates.
pub(crate) fn ids(fields: &Fields) -> Result<Vec<String>, ApiError> {
    let ids = all_ids(fields);
    if ids.len() > IDS_MAX {
        return Err(ApiError::invalid(format!("there are more than {IDS_MAX} ids")));
    }
    Ok(ids)
}

/// Users in `id[]` of a request for relations, without duplicates.
pub(crate) fn related_ids(fields: &Fields) -> Result<Vec<UserId>, ApiError> {
    let ids = all_ids(fields);
    if ids.len() > RELATED_IDS_MAX {
        return Err(ApiError::too_long("There are more than 400 ids: ask for fewer at a time"));
    }
    Ok(ids.iter().filter_map(|id| input::user(id)).collect())
}

fn all_ids(fields: &Fields) -> Vec<String> {
    let mut seen = HashSet::new();
    let first = fields.all("id").filter(|id| seen.insert(id.trim_start_matches('0')));
    first.map(str::to_owned).collect()
}

/// JSON list of the entities that exist, as many as fit in a response.
pub(crate) fn list<I, E: Into<Json>>(
    ids: impl Iterator<Item = I>,
    mut entity: impl FnMut(I) -> Option<E>,
) -> Vec<u8> {
    let mut out = vec![b'['];
    for id in ids {
        if out.len() >= PAGE_BYTES {
            break;
        }
        push_made(entity(id), &mut out);
    }
    out.push(b']');
    out
}

pub(crate) async fn lookup(
    State(state): State<Shared>,
    Reader(reader): Reader,
    Params(fields): Params,
) -> Result<Response, ApiError> {
    let name = handle(fields.one("acct")?.unwrap_or_default(), &state.options.base);
    let handle = name.ok_or_else(ApiError::not_found)?;
    let read = move |_: &_, entities: &mut Entities<'_>| {
        let user = entities.facts().by_handle(&handle)?;
        entities.knows(user).then(|| entities.account(user)).flatten()
    };
    let account = state.entities(reader, read).await?;
    answers::entity(account)
}

/// Handle in `name`, `@name` or `name@host`, if the host is this server.
pub(crate) fn handle(name: &str, base: &str) -> Option<Handle> {
    let name = name.trim();
    let name = name.strip_prefix('@').unwrap_or(name);
    let (name, host) = name.split_once('@').unwrap_or((name, domain(base)));
    host.eq_ignore_ascii_case(domain(base)).then(|| Handle::parse(name).ok()).flatten()
}

pub(crate) async fn statuses(
    State(state): State<Shared>,
    Reader(reader): Reader,
    InPath(user): InPath<UserId>,
    uri: Uri,
    Params(fields): Params,
) -> Result<Response, ApiError> {
    let asked = paging::asked(&fields, paging::STATUSES)?;
    let is_pinned = fields.is_true("pinned")?;
    // No post has an invalid hashtag, so the list is then empty.
    let tag = fields.one("tagged")?.map(Tag::parse);
    let none = matches!(tag, Some(Err(_)));
    let filter = ProfileFilter {
        no_replies: fields.is_true("exclude_replies")?,
        no_boosts: fields.is_true("exclude_reblogs")?,
        no_direct: fields.is_true("exclude_direct")?,
        // Clients without a user see only public posts.
        only_open: reader.is_none(),
        only_pictures: fields.is_true("only_media")?,
        tag: tag.and_then(Result::ok),
    };
    let read = move |node: &node::Node, entities: &mut Entities<'_>| {
        entities.knows(user).then(|| match none || !entities.is_visible(user) {
            true => EntityList::default(),
            false if is_pinned => pinned(entities, user),
            false => {
                let found = node.visible_posts(entities.viewer(), user, &asked, &filter);
                paging::write(&asked, found, |post, out| entities.append_status(post, out))
            }
        })
    };
    let listed = state.entities(reader, read).await?.ok_or_else(ApiError::not_found)?;
    state.listed(uri.path(), &fields, &asked, listed)
}

/// Posts that a user pins, most recent pin first; few enough for one page.
fn pinned(entities: &mut Entities<'_>, user: UserId) -> EntityList {
    let mut pins = entities.facts().pins(user);
    pins.reverse();
    let mut json = vec![b'['];
    entities.statuses(&pins, &mut json);
    EntityList { json, ..EntityList::default() }
}

pub(crate) async fn followers(
    State(state): State<Shared>,
    Reader(reader): Reader,
    InPath(user): InPath<UserId>,
    uri: Uri,
    Params(fields): Params,
) -> Result<Response, ApiError> {
    related(&state, (reader, user), SetTable::Followers, &uri, &fields).await
}

pub(crate) async fn following(
    State(state): State<Shared>,
    Reader(reader): Reader,
    InPath(user): InPath<UserId>,
    uri: Uri,
    Params(fields): Params,
) -> Result<Response, ApiError> {
    related(&state, (reader, user), SetTable::Following, &uri, &fields).await
}

async fn related(
    state: &Shared,
    (reader, user): (Option<UserId>, UserId),
    table: SetTable,
    uri: &Uri,
    fields: &Fields,
) -> Result<Response, ApiError> {
    let asked = paging::asked(fields, paging::ACCOUNTS)?;
    let read = move |_: &_, entities: &mut Entities<'_>| {
        entities.knows(user).then(|| {
            let read = |facts: Facts<'_, Store>, span| facts.users_in(table, user, span);
            page_of_accounts(entities, &asked, read, Entities::is_visible, Entities::account)
        })
    };
    let listed = state.entities(reader, read).await?.ok_or_else(ApiError::not_found)?;
    state.listed(uri.path(), fields, &asked, listed)
}

/// Page of the users whom `is_shown` accepts, by descending ids; `read` reads the list.
pub(crate) fn page_of_accounts<'e>(
    entities: &mut Entities<'e>,
    page: &Page,
    read: impl Fn(Facts<'e, Store>, Span) -> Vec<UserId>,
    is_shown: impl Fn(&Entities<'e>, UserId) -> bool,
    entity: impl Fn(&Entities<'e>, UserId) -> Option<Json>,
) -> EntityList {
    let read = |span| Batch::of(read(entities.facts(), span), span);
    let found = scan(page, read, |user| Shown::when(is_shown(entities, user), user));
    paging::list(page, found, |user| entity(entities, user))
}

/// Responds with the followers of each account whom the reader follows. Omits accounts that were not checked because
/// others used up the work of the request.
pub(crate) async fn familiar(
    State(state): State<Shared>,
    Me(me): Me,
    Params(fields): Params,
) -> Result<Response, ApiError> {
    let users = related_ids(&fields)?;
    let read = move |_: &_, entities: &mut Entities<'_>| {
        let followed = entities.facts().following_all(me);
        let (mut out, mut rest) = (vec![b'['], FAMILIAR_READ_MAX);
        for user in users {
            if out.len() >= PAGE_BYTES {
                break;
            }
            if !entities.is_visible(user) {
                continue;
            }
            let Some(found) = familiar_followers(entities, &followed, user, &mut rest) else {
                break;
            };
            let entity = Json::from(json!({"id": user.0.to_string()}));
            let accounts = list(found.into_iter(), |user| entities.account(user));
            let accounts = Json::written(|out| {
                out.extend_from_slice(&accounts);
                Some(())
            });
            push_made(accounts.map(|accounts| entity.with_entity("accounts", &accounts)), &mut out);
        }
        out.push(b']');
        out
    };
    Ok(answers::json(state.entities_long(Some(me), read).await?))
}

/// First followers of a user among those whom the reader follows; `None` if this needs more than `rest` reads.
fn familiar_followers(
    entities: &Entities<'_>,
    followed: &[UserId],
    user: UserId,
    rest: &mut usize,
) -> Option<Vec<UserId>> {
    let facts = entities.facts();
    let followers = facts.counts(user).followers as usize;
    let is_read = followers <= followed.len();
    *rest = rest.checked_sub(followers.min(followed.len()))?;
    let found = match is_read {
        true => {
            let span = Span { limit: followers, ..Span::ALL };
            let mut found = facts.users_in(SetTable::Followers, user, span);
            found.retain(|other| followed.binary_search(other).is_ok());
            found
        }
        false => followed.iter().copied().filter(|other| facts.follows(*other, user)).collect(),
    };
    Some(found.into_iter().filter(|other| entities.is_visible(*other)).take(FAMILIAR_MAX).collect())
}
