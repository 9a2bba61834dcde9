//! Filters, version 2. The server marks matching posts, and apps hide them.

use axum::Json;
use axum::extract::State;
use axum::response::Response;
use feed::accounts::AccessScope as S;
use feed::filters::{
    Filter, FilterAction, FilterChange, FilterCommand, FilterContext, FilterContexts, FilterEdit,
    FilterId, FilterKeyword, FilterPartId, FilterText, FilterTime, FilteredPost, Keyword,
    KeywordChange, NewFilter,
};
use feed::limits::KEYWORD_CHANGES_MAX;
use feed::{Command, Done, UserId, UserRef};
use serde_json::{Value, json};

use super::accounts::list;
use crate::access::Needs;
use crate::answers;
use crate::endpoints::Endpoints;
use crate::entities::Entities;
use crate::entities::filter::{filtered_status, keyword as keyword_entity};
use crate::error::ApiError;
use crate::fields::{Fields, Params, boolean};
use crate::input::{self, InPath, Me, Once};
use crate::state::{Server, Shared};

/// Adds the routes of filters.
pub(crate) fn routes(table: &mut Endpoints) {
    let read_filters = Needs::User(&[S::ReadFilters]);
    let write_filters = Needs::User(&[S::WriteFilters]);
    table.get("/api/v2/filters", read_filters, all);
    table.post("/api/v2/filters", write_filters, create);
    table.get("/api/v2/filters/{id}", read_filters, show);
    table.put("/api/v2/filters/{id}", write_filters, edit);
    table.delete("/api/v2/filters/{id}", write_filters, delete);
    table.get("/api/v2/filters/{id}/keywords", read_filters, keywords);
    table.post("/api/v2/filters/{id}/keywords", write_filters, add_keyword);
    table.get("/api/v2/filters/keywords/{id}", read_filters, keyword);
    table.put("/api/v2/filters/keywords/{id}", write_filters, edit_keyword);
    table.delete("/api/v2/filters/keywords/{id}", write_filters, delete_keyword);
    table.get("/api/v2/filters/{id}/statuses", read_filters, statuses);
    table.post("/api/v2/filters/{id}/statuses", write_filters, add_status);
    table.get("/api/v2/filters/statuses/{id}", read_filters, status);
    table.delete("/api/v2/filters/statuses/{id}", write_filters, delete_status);
}

pub(crate) async fn change(
    state: &Server,
    me: UserId,
    once: Once,
    change: FilterChange,
) -> Result<Done, ApiError> {
    let command = FilterCommand { user: UserRef::Id(me), change };
    state.change(me, once, Command::Filter(Box::new(command))).await
}

/// Saves a whole filter, and responds with it.
async fn save(
    state: &Server,
    me: UserId,
    once: Once,
    saved: FilterChange,
) -> Result<Response, ApiError> {
    let Done::FilterSaved(id) = change(state, me, once, saved).await? else {
        return Err(ApiError::internal());
    };
    let read = move |entities: &mut Entities<'_>| entities.filter_entity(id);
    answers::entity(state.entities_done(me, read).await?)
}

impl Server {
    /// Runs a read of an existing filter of a user.
    async fn of_filter<T: Send + 'static>(
        &self,
        me: UserId,
        id: FilterId,
        read: impl FnOnce(&Entities<'_>, &Filter) -> T + Send + 'static,
    ) -> Result<T, ApiError> {
        let read = move |_: &_, entities: &mut Entities<'_>| {
            entities.filter_of(id).map(|filter| read(entities, &filter))
        };
        self.entities(Some(me), read).await?.ok_or_else(ApiError::not_found)
    }

    /// Keyword of a user, with its filter.
    pub(crate) async fn filter_keyword(
        &self,
        me: UserId,
        part: FilterPartId,
    ) -> Result<(Filter, FilterKeyword), ApiError> {
        let of = move |filter: Filter| {
            let found = filter.keywords.iter().find(|keyword| keyword.id == part).cloned();
            found.map(|found| (filter, found))
        };
        let filters = self.read(move |node| node.facts().filters(me)).await?;
        filters.into_iter().find_map(of).ok_or_else(ApiError::not_found)
    }

    /// Filtered post that a user may see, with its filter.
    async fn filtered_post(
        &self,
        me: UserId,
        part: FilterPartId,
    ) -> Result<(FilterId, FilteredPost), ApiError> {
        let read = move |_: &_, entities: &mut Entities<'_>| {
            let of = |filter: Filter| {
                let found = filter.posts.iter().find(|found| found.id == part)?;
                Some((filter.id, *found))
            };
            let found = entities.filters().into_iter().find_map(of);
            found.filter(|(_, found)| entities.visible_post(found.post).is_some())
        };
        self.entities(Some(me), read).await?.ok_or_else(ApiError::not_found)
    }
}

/// Contexts of a new filter.
pub(crate) fn new_contexts(fields: &Fields) -> Result<FilterContexts, ApiError> {
    contexts(fields)?.ok_or_else(|| ApiError::invalid("Context can't be blank"))
}

/// Contexts of a filter, if the request has any.
pub(crate) fn contexts(fields: &Fields) -> Result<Option<FilterContexts>, ApiError> {
    let wrong = || ApiError::invalid("Context None or invalid context supplied");
    let mut names = fields.all("context").peekable();
    if names.peek().is_none() {
        return Ok(None);
    }
    let contexts = names.map(|name| FilterContext::named(name).ok_or_else(wrong));
    let contexts = contexts.collect::<Result<Vec<_>, _>>()?;
    Ok(Some(FilterContexts::new(contexts)?))
}

/// Lifetime of a filter, if the request has it; an empty parameter means that the filter never expires.
pub(crate) fn expires(fields: &Fields) -> Result<Option<Option<FilterTime>>, ApiError> {
    let wrong = || ApiError::invalid("expires_in must be a number of seconds");
    match fields.text("expires_in") {
        None => Ok(None),
        Some("") => Ok(Some(None)),
        Some(text) => {
            let secs = input::number(text).ok_or_else(wrong)?;
            Ok(Some(Some(FilterTime::from_secs(secs)?)))
        }
    }
}

fn action(fields: &Fields) -> Result<Option<FilterAction>, ApiError> {
    let wrong = || ApiError::invalid("filter_action must be warn, hide or blur");
    let name = fields.one("filter_action")?;
    name.map(|name| FilterAction::named(name).ok_or_else(wrong)).transpose()
}

/// Changes of keywords. Those with an id change existing keywords.
fn keyword_changes(fields: &Fields) -> Result<Vec<KeywordChange>, ApiError> {
    let parts = ["id", "keyword", "whole_word", "_destroy"];
    let given = fields.objects("keywords_attributes", parts).unwrap_or_default();
    if given.len() > KEYWORD_CHANGES_MAX {
        return Err(ApiError::invalid(format!(
            "there are more than {KEYWORD_CHANGES_MAX} keywords"
        )));
    }
    let mut changes = Vec::new();
    for [id, text, whole_word, destroy] in given {
        let is_removed = destroy.and_then(boolean) == Some(true);
        let id = id.filter(|id| !id.is_empty());
        let id = id.map(|id| input::id(id).ok_or_else(ApiError::not_found));
        match id.transpose()? {
            Some(keyword) if is_removed => changes.push(KeywordChange::Remove { keyword }),
            Some(keyword) => changes.push(KeywordChange::Edit {
                keyword,
                text: text.map(FilterText::parse).transpose()?,
                whole_word: whole_word.and_then(boolean),
            }),
            None if is_removed => {}
            None => {
                let text = FilterText::parse(text.unwrap_or_default())?;
                let whole_word = whole_word.and_then(boolean).unwrap_or(true);
                changes.push(KeywordChange::Add(Keyword { text, whole_word }));
            }
        }
    }
    Ok(changes)
}

pub(crate) async fn create(
    State(state): State<Shared>,
    Me(me): Me,
    once: Once,
    Params(fields): Params,
) -> Result<Response, ApiError> {
    let added = |change| match change {
        KeywordChange::Add(keyword) => Ok(keyword),
        KeywordChange::Edit { .. } | KeywordChange::Remove { .. } => Err(ApiError::not_found()),
    };
    let keywords = keyword_changes(&fields)?.into_iter().map(added);
    let new = NewFilter {
        title: FilterText::parse(fields.text("title").unwrap_or_default())?,
        contexts: new_contexts(&fields)?,
        action: action(&fields)?.unwrap_or_default(),
        expires: expires(&fields)?.flatten(),
        keywords: keywords.collect::<Result<_, _>>()?,
    };
    save(&state, me, once, FilterChange::Create(new)).await
}

pub(crate) async fn edit(
    State(state): State<Shared>,
    Me(me): Me,
    InPath(id): InPath<FilterId>,
    once: Once,
    Params(fields): Params,
) -> Result<Response, ApiError> {
    let edit = FilterEdit {
        filter: id,
        title: fields.text("title").map(FilterText::parse).transpose()?,
        contexts: contexts(&fields)?,
        action: action(&fields)?,
        expires: expires(&fields)?,
        keywords: keyword_changes(&fields)?,
    };
    save(&state, me, once, FilterChange::Edit(edit)).await
}

pub(crate) async fn delete(
    State(state): State<Shared>,
    Me(me): Me,
    InPath(id): InPath<FilterId>,
    once: Once,
) -> Result<Json<Value>, ApiError> {
    change(&state, me, once, FilterChange::Delete { filter: id }).await?;
    Ok(Json(json!({})))
}

pub(crate) async fn all(State(state): State<Shared>, Me(me): Me) -> Result<Response, ApiError> {
    let read = move |_: &_, entities: &mut Entities<'_>| {
        list(entities.filters().into_iter(), |filter| Some(entities.filter(&filter)))
    };
    Ok(answers::json(state.entities(Some(me), read).await?))
}

pub(crate) async fn show(
    State(state): State<Shared>,
    Me(me): Me,
    InPath(id): InPath<FilterId>,
) -> Result<Response, ApiError> {
    let read = move |_: &_, entities: &mut Entities<'_>| entities.filter_entity(id);
    answers::entity(state.entities(Some(me), read).await?)
}

pub(crate) async fn keywords(
    State(state): State<Shared>,
    Me(me): Me,
    InPath(id): InPath<FilterId>,
) -> Result<Json<Vec<Value>>, ApiError> {
    let read =
        |_: &Entities<'_>, filter: &Filter| filter.keywords.iter().map(keyword_entity).collect();
    Ok(Json(state.of_filter(me, id, read).await?))
}

pub(crate) async fn add_keyword(
    State(state): State<Shared>,
    Me(me): Me,
    InPath(id): InPath<FilterId>,
    once: Once,
    Params(fields): Params,
) -> Result<Json<Value>, ApiError> {
    let text = FilterText::parse(fields.text("keyword").unwrap_or_default())?;
    let whole_word = fields.flag("whole_word")?.unwrap_or(true);
    let keyword = Keyword { text, whole_word };
    let added = FilterChange::AddKeyword { filter: id, keyword: keyword.clone() };
    let Done::FilterPartSaved(id) = change(&state, me, once, added).await? else {
        return Err(ApiError::internal());
    };
    Ok(Json(keyword_entity(&FilterKeyword { id, keyword })))
}

pub(crate) async fn keyword(
    State(state): State<Shared>,
    Me(me): Me,
    InPath(id): InPath<FilterPartId>,
) -> Result<Json<Value>, ApiError> {
    let (_, found) = state.filter_keyword(me, id).await?;
    Ok(Json(keyword_entity(&found)))
}

pub(crate) async fn edit_keyword(
    State(state): State<Shared>,
    Me(me): Me,
    InPath(id): InPath<FilterPartId>,
    once: Once,
    Params(fields): Params,
) -> Result<Json<Value>, ApiError> {
    let text = fields.text("keyword").map(FilterText::parse).transpose()?;
    let whole_word = fields.flag("whole_word")?;
    let (filter, found) = state.filter_keyword(me, id).await?;
    let is_whole = whole_word.unwrap_or(found.keyword.whole_word);
    let after = text.clone().unwrap_or(found.keyword.text);
    let keyword = KeywordChange::Edit { keyword: found.id, text, whole_word };
    let edit = FilterEdit { keywords: vec![keyword], ..FilterEdit::new(filter.id) };
    change(&state, me, once, FilterChange::Edit(edit)).await?;
    let keyword = Keyword { text: after, whole_word: is_whole };
    Ok(Json(keyword_entity(&FilterKeyword { id: found.id, keyword })))
}

pub(crate) async fn delete_keyword(
    State(state): State<Shared>,
    Me(me): Me,
    InPath(id): InPath<FilterPartId>,
    once: Once,
) -> Result<Json<Value>, ApiError> {
    let (filter, found) = state.filter_keyword(me, id).await?;
    let keywords = vec![KeywordChange::Remove { keyword: found.id }];
    let edit = FilterEdit { keywords, ..FilterEdit::new(filter.id) };
    change(&state, me, once, FilterChange::Edit(edit)).await?;
    Ok(Json(json!({})))
}

pub(crate) async fn statuses(
    State(state): State<Shared>,
    Me(me): Me,
    InPath(id): InPath<FilterId>,
) -> Result<Json<Vec<Value>>, ApiError> {
    let read = |entities: &Entities<'_>, filter: &Filter| entities.filtered_statuses(filter);
    Ok(Json(state.of_filter(me, id, read).await?))
}

/// Adds a status to a filter; for a boost, the boosted status.
pub(crate) async fn add_status(
    State(state): State<Shared>,
    Me(me): Me,
    InPath(id): InPath<FilterId>,
    once: Once,
    Params(fields): Params,
) -> Result<Json<Value>, ApiError> {
    let post = input::post(fields.need("status_id")?).ok_or_else(ApiError::not_found)?;
    let added = FilterChange::AddPost { filter: id, post };
    let Done::FilterPartSaved(part) = change(&state, me, once, added).await? else {
        return Err(ApiError::internal());
    };
    let read = move |entities: &mut Entities<'_>| {
        let filter = entities.filter_of(id)?;
        filter.posts.iter().find(|found| found.id == part).map(filtered_status)
    };
    state.entities_done(me, read).await?.map(Json).ok_or_else(ApiError::not_found)
}

pub(crate) async fn status(
    State(state): State<Shared>,
    Me(me): Me,
    InPath(id): InPath<FilterPartId>,
) -> Result<Json<Value>, ApiError> {
    let (_, found) = state.filtered_post(me, id).await?;
    Ok(Json(filtered_status(&found)))
}

pub(crate) async fn delete_status(
    State(state): State<Shared>,
    Me(me): Me,
    InPath(id): InPath<FilterPartId>,
    once: Once,
) -> Result<Json<Value>, ApiError> {
    let (filter, found) = state.filtered_post(me, id).await?;
    change(&state, me, once, FilterChange::RemovePost { filter, part: found.id }).await?;
    Ok(Json(filtered_status(&found)))
}
