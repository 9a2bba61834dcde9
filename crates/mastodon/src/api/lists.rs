//! Lists: selected followed users, and the timeline of their posts. The list "For You" is the ranked feed of this name.

use axum::Json;
use axum::extract::State;
use axum::http::Uri;
use axum::response::Response;
use feed::accounts::AccessScope as S;
use feed::limits::{LIST_CHANGED_MAX, LIST_MEMBERS_MAX};
use feed::{
    Command, Done, List, ListChange, ListCommand, ListId, ListReplies, ListTimeline, ListTitle,
    Page, Shown, Stamp, UserId, UserRef, of_all, scan,
};
use node::Node;
use serde_json::{Value, json};

use super::accounts::list as json_list;
use crate::access::Needs;
use crate::answers;
use crate::endpoints::Endpoints;
use crate::entities::Entities;
use crate::error::ApiError;
use crate::fields::{Fields, Params};
use crate::input::{self, InPath, Me, Once};
use crate::paging::{self, EntityList};
use crate::state::{Server, Shared};

/// Adds the routes of lists.
pub(crate) fn routes(table: &mut Endpoints) {
    let read_lists = Needs::User(&[S::ReadLists]);
    let write_lists = Needs::User(&[S::WriteLists]);
    table.get("/api/v1/lists", read_lists, all);
    table.post("/api/v1/lists", write_lists, create);
    table.get("/api/v1/lists/{id}", read_lists, show);
    table.put("/api/v1/lists/{id}", write_lists, edit);
    table.delete("/api/v1/lists/{id}", write_lists, delete);
    table.get("/api/v1/lists/{id}/accounts", read_lists, accounts);
    table.post("/api/v1/lists/{id}/accounts", write_lists, add);
    table.delete("/api/v1/lists/{id}/accounts", write_lists, remove);
    table.get("/api/v1/accounts/{id}/lists", read_lists, with_account);
    table.get("/api/v1/timelines/list/{list_id}", read_lists, timeline);
}

/// Id of the list "For You", which every user has. Its timeline is the ranked feed [`FOR_YOU_FEED`]; it has no members
/// and cannot be changed.
pub(crate) const FOR_YOU: ListId = ListId(1);
const _: () = assert!(FOR_YOU.0 < Stamp::MIN.0, "the id of no stored list");
const FOR_YOU_FEED: &str = "for-you";

impl Entities<'_> {
    /// Entity `List`; `None` if the user has no such list.
    fn list(&self, user: UserId, id: ListId) -> Option<Value> {
        let list = match id {
            FOR_YOU => {
                List { title: ListTitle::parse("For You").ok()?, replies: ListReplies::Followed }
            }
            _ => self.facts().list(user, id)?,
        };
        Some(json!({
            "id": id.0.to_string(),
            "title": list.title.as_str(),
            "replies_policy": list.replies.name(),
            "exclusive": false,
        }))
    }
}

async fn change(
    state: &Server,
    me: UserId,
    once: Once,
    change: ListChange,
) -> Result<Done, ApiError> {
    if change.list() == Some(FOR_YOU) {
        return Err(ApiError::invalid("the list For You cannot be changed or deleted"));
    }
    let command = ListCommand { user: UserRef::Id(me), change };
    state.change(me, once, Command::List(Box::new(command))).await
}

/// Saves the properties of a list, and responds with the list.
async fn save(
    state: &Server,
    me: UserId,
    once: Once,
    saved: ListChange,
) -> Result<Response, ApiError> {
    let Done::ListSaved(list) = change(state, me, once, saved).await? else {
        return Err(ApiError::internal());
    };
    answers::entity(state.entities_done(me, move |entities| entities.list(me, list)).await?)
}

/// Title and setting of replies. Exclusive lists, which remove posts from the home timeline, are refused, because this
/// server has none.
fn parts(fields: &Fields) -> Result<(Option<ListTitle>, Option<ListReplies>), ApiError> {
    if fields.is_true("exclusive")? {
        return Err(ApiError::not_supported("exclusive lists"));
    }
    let title = fields.text("title").map(ListTitle::parse).transpose()?;
    let wrong = || ApiError::invalid("replies_policy must be list, followed or none");
    let replies = fields.one("replies_policy")?;
    let replies = replies.map(|name| ListReplies::named(name).ok_or_else(wrong)).transpose()?;
    Ok((title, replies))
}

pub(crate) async fn create(
    State(state): State<Shared>,
    Me(me): Me,
    once: Once,
    Params(fields): Params,
) -> Result<Response, ApiError> {
    let (title, replies) = parts(&fields)?;
    let title = title.ok_or_else(|| ApiError::invalid("Title can't be blank"))?;
    let list = List { title, replies: replies.unwrap_or_default() };
    save(&state, me, once, ListChange::Create(list)).await
}

pub(crate) async fn edit(
    State(state): State<Shared>,
    Me(me): Me,
    InPath(list): InPath<ListId>,
    once: Once,
    Params(fields): Params,
) -> Result<Response, ApiError> {
    let (title, replies) = parts(&fields)?;
    save(&state, me, once, ListChange::Edit { list, title, replies }).await
}

pub(crate) async fn delete(
    State(state): State<Shared>,
    Me(me): Me,
    InPath(list): InPath<ListId>,
    once: Once,
) -> Result<Json<Value>, ApiError> {
    change(&state, me, once, ListChange::Delete { list }).await?;
    Ok(Json(json!({})))
}

pub(crate) async fn all(State(state): State<Shared>, Me(me): Me) -> Result<Response, ApiError> {
    let read = move |_: &_, entities: &mut Entities<'_>| {
        let lists = [FOR_YOU].into_iter().chain(entities.facts().lists(me));
        json_list(lists, |list| entities.list(me, list))
    };
    Ok(answers::json(state.entities(Some(me), read).await?))
}

pub(crate) async fn show(
    State(state): State<Shared>,
    Me(me): Me,
    InPath(list): InPath<ListId>,
) -> Result<Response, ApiError> {
    let read = move |_: &_, entities: &mut Entities<'_>| entities.list(me, list);
    answers::entity(state.entities(Some(me), read).await?)
}

/// Responds with the reader's lists that contain the account.
pub(crate) async fn with_account(
    State(state): State<Shared>,
    Me(me): Me,
    InPath(user): InPath<UserId>,
) -> Result<Response, ApiError> {
    let read = move |_: &_, entities: &mut Entities<'_>| {
        entities.knows(user).then(|| {
            let lists = entities.facts().lists_with(me, user);
            json_list(lists.into_iter(), |list| entities.list(me, list))
        })
    };
    let found = state.entities(Some(me), read).await?.ok_or_else(ApiError::not_found)?;
    Ok(answers::json(found))
}

/// Responds with the members of a list. With `limit=0` a page fills a response.
pub(crate) async fn accounts(
    State(state): State<Shared>,
    Me(me): Me,
    InPath(list): InPath<ListId>,
    uri: Uri,
    Params(fields): Params,
) -> Result<Response, ApiError> {
    let mut asked = paging::asked(&fields, paging::ACCOUNTS)?;
    if fields.one("limit")? == Some("0") {
        asked.limit = LIST_MEMBERS_MAX;
    }
    let read = move |_: &_, entities: &mut Entities<'_>| {
        if list == FOR_YOU {
            return Some(EntityList::default());
        }
        entities.facts().list(me, list)?;
        let members = of_all(entities.facts().list_members(me, list));
        let shown = |user| Shown::when(entities.is_visible(user), user);
        let found = scan(&asked, members, shown);
        Some(paging::list(&asked, found, |user| entities.account(user)))
    };
    let listed = state.entities(Some(me), read).await?.ok_or_else(ApiError::not_found)?;
    state.listed(uri.path(), &fields, &asked, listed)
}

pub(crate) async fn add(
    State(state): State<Shared>,
    Me(me): Me,
    InPath(list): InPath<ListId>,
    once: Once,
    Params(fields): Params,
) -> Result<Json<Value>, ApiError> {
    change_members(&state, me, once, &fields, |users| ListChange::Add { list, users }).await
}

pub(crate) async fn remove(
    State(state): State<Shared>,
    Me(me): Me,
    InPath(list): InPath<ListId>,
    once: Once,
    Params(fields): Params,
) -> Result<Json<Value>, ApiError> {
    change_members(&state, me, once, &fields, |users| ListChange::Remove { list, users }).await
}

async fn change_members(
    state: &Server,
    me: UserId,
    once: Once,
    fields: &Fields,
    changed: impl FnOnce(Vec<UserId>) -> ListChange,
) -> Result<Json<Value>, ApiError> {
    let ids = fields.all("account_ids").filter(|id| !id.is_empty());
    let users = ids.map(|id| input::user(id).ok_or_else(ApiError::not_found));
    let users = users.collect::<Result<Vec<_>, _>>()?;
    if users.len() > LIST_CHANGED_MAX {
        return Err(ApiError::invalid(format!("there are more than {LIST_CHANGED_MAX} ids")));
    }
    change(state, me, once, changed(users)).await?;
    Ok(Json(json!({})))
}

pub(crate) async fn timeline(
    State(state): State<Shared>,
    Me(me): Me,
    InPath(list): InPath<ListId>,
    uri: Uri,
    Params(fields): Params,
) -> Result<Response, ApiError> {
    let mut asked = paging::asked(&fields, paging::STATUSES)?;
    if list == FOR_YOU {
        // A page for newer posts is the start of a new ranking, in the same order.
        asked.is_up = false;
        let listed = state.entities(Some(me), move |node, from| for_you(node, from, me, &asked));
        let listed = listed.await?.ok_or_else(ApiError::not_found)?;
        return state.listed(uri.path(), &fields, &asked, listed);
    }
    let read = move |_: &_, entities: &mut Entities<'_>| {
        let timeline = ListTimeline::new(entities.facts(), me, list)?;
        let found = timeline.posts(entities.viewer(), &asked);
        Some(paging::write(&asked, found, |post, out| entities.append_home_status(post, out)))
    };
    let listed = state.entities(Some(me), read).await?.ok_or_else(ApiError::not_found)?;
    state.listed(uri.path(), &fields, &asked, listed)
}

/// Reads a page of the ranked feed. `max_id` is the last status of the page before: see [`Node::ranked_by_ids`].
fn for_you(
    node: &Node,
    entities: &mut Entities<'_>,
    me: UserId,
    asked: &Page,
) -> Option<EntityList> {
    let found = node.ranked_by_ids(me, (FOR_YOU_FEED, &*node.feed(FOR_YOU_FEED)?), asked);
    Some(paging::write(asked, found, |post, out| entities.append_status(post, out)))
}
