//! Filters, version 1, in which each keyword is a filter. Requests of this version cannot change a property that
//! several keywords of a filter share.

use axum::Json;
use axum::extract::State;
use axum::response::Response;
use feed::accounts::AccessScope as S;
use feed::filters::{
    Filter, FilterAction, FilterChange, FilterEdit, FilterPartId, FilterText, Keyword,
    KeywordChange, NewFilter,
};
use feed::{Done, UserId};
use serde_json::{Value, json};

use super::accounts::list;
use super::filters::{change, contexts, expires, new_contexts};
use crate::access::Needs;
use crate::answers;
use crate::endpoints::Endpoints;
use crate::entities::Entities;
use crate::entities::filter::version_1;
use crate::error::ApiError;
use crate::fields::{Fields, Params};
use crate::input::{InPath, Me, Once};
use crate::state::{Server, Shared};

/// Adds the routes of filters, version 1.
pub(crate) fn routes(table: &mut Endpoints) {
    let read_filters = Needs::User(&[S::ReadFilters]);
    let write_filters = Needs::User(&[S::WriteFilters]);
    table.get("/api/v1/filters", read_filters, all);
    table.post("/api/v1/filters", write_filters, create);
    table.get("/api/v1/filters/{id}", read_filters, show);
    table.put("/api/v1/filters/{id}", write_filters, edit);
    table.delete("/api/v1/filters/{id}", write_filters, delete);
}

/// Action of apps on matching posts: a warning unless `irreversible` is true.
fn action(fields: &Fields) -> Result<Option<FilterAction>, ApiError> {
    let hides = fields.flag("irreversible")?;
    Ok(hides.map(|hides| if hides { FilterAction::Hide } else { FilterAction::Warn }))
}

pub(crate) async fn all(State(state): State<Shared>, Me(me): Me) -> Result<Response, ApiError> {
    let filters = state.read(move |node| node.facts().filters(me)).await?;
    let keywords = filters
        .iter()
        .flat_map(|filter| filter.keywords.iter().map(move |keyword| version_1(filter, keyword)));
    Ok(answers::json(list(keywords, Some)))
}

pub(crate) async fn show(
    State(state): State<Shared>,
    Me(me): Me,
    InPath(id): InPath<FilterPartId>,
) -> Result<Json<Value>, ApiError> {
    let (filter, keyword) = state.filter_keyword(me, id).await?;
    Ok(Json(version_1(&filter, &keyword)))
}

pub(crate) async fn create(
    State(state): State<Shared>,
    Me(me): Me,
    once: Once,
    Params(fields): Params,
) -> Result<Json<Value>, ApiError> {
    let text = FilterText::parse(fields.text("phrase").unwrap_or_default())?;
    let new = NewFilter {
        title: text.clone(),
        contexts: new_contexts(&fields)?,
        action: action(&fields)?.unwrap_or_default(),
        expires: expires(&fields)?.flatten(),
        keywords: vec![Keyword { text, whole_word: fields.flag("whole_word")?.unwrap_or(true) }],
    };
    let done = change(&state, me, once, FilterChange::Create(new)).await?;
    let Done::FilterSaved(id) = done else { return Err(ApiError::internal()) };
    saved(&state, me, move |filter| (filter.id == id).then_some(0)).await
}

pub(crate) async fn edit(
    State(state): State<Shared>,
    Me(me): Me,
    InPath(id): InPath<FilterPartId>,
    once: Once,
    Params(fields): Params,
) -> Result<Json<Value>, ApiError> {
    let text = fields.text("phrase").map(FilterText::parse).transpose()?;
    let whole_word = fields.flag("whole_word")?;
    let keyword = KeywordChange::Edit { keyword: id, text: text.clone(), whole_word };
    let (filter, _) = state.filter_keyword(me, id).await?;
    let edit = FilterEdit {
        filter: filter.id,
        title: text,
        contexts: contexts(&fields)?,
        action: action(&fields)?,
        expires: expires(&fields)?,
        keywords: vec![keyword],
    };
    if filter.keywords.len() > 1 && changes_more(&edit, &filter) {
        let why = "this filter has several keywords, which need version 2 of the API";
        return Err(ApiError::invalid(why));
    }
    change(&state, me, once, FilterChange::Edit(edit)).await?;
    saved(&state, me, move |filter| filter.keywords.iter().position(|it| it.id == id)).await
}

/// Whether an edit changes a property that the keywords of the filter share.
fn changes_more(edit: &FilterEdit, filter: &Filter) -> bool {
    edit.title.as_ref().is_some_and(|title| *title != filter.title)
        || edit.contexts.is_some_and(|contexts| contexts != filter.contexts)
        || edit.action.is_some_and(|action| action != filter.action)
        || edit.expires.is_some_and(|expires| expires.is_some() || filter.expires_ms.is_some())
}

/// Entity of a saved keyword. `find` returns its index in its filter.
async fn saved(
    state: &Server,
    me: UserId,
    find: impl Fn(&Filter) -> Option<usize> + Send + 'static,
) -> Result<Json<Value>, ApiError> {
    let read = move |entities: &mut Entities<'_>| {
        entities.filters().iter().find_map(|filter| {
            let keyword = filter.keywords.get(find(filter)?)?;
            Some(version_1(filter, keyword))
        })
    };
    state.entities_done(me, read).await?.map(Json).ok_or_else(ApiError::not_found)
}

/// Removes a keyword. A filter without any content left is deleted, because this version cannot show it.
pub(crate) async fn delete(
    State(state): State<Shared>,
    Me(me): Me,
    InPath(id): InPath<FilterPartId>,
    once: Once,
) -> Result<Json<Value>, ApiError> {
    let (filter, keyword) = state.filter_keyword(me, id).await?;
    let removed = if filter.keywords.len() == 1 && filter.posts.is_empty() {
        FilterChange::Delete { filter: filter.id }
    } else {
        let keywords = vec![KeywordChange::Remove { keyword: keyword.id }];
        FilterChange::Edit(FilterEdit { keywords, ..FilterEdit::new(filter.id) })
    };
    change(&state, me, once, removed).await?;
    Ok(Json(json!({})))
}
