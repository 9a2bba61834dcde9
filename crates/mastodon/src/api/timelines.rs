//! Timelines: home, and the newest posts of all users.

use std::collections::VecDeque;

use axum::extract::State;
use axum::http::Uri;
use axum::response::Response;
use feed::{PageOf, PostId, Visibility};

use super::accounts::page_of_statuses;
use crate::entities::Entities;
use crate::error::ApiError;
use crate::fields::Params;
use crate::input::{Me, Reader};
use crate::paging::{self, Asked, Listed};
use crate::state::Shared;

/// Posts of all users that one request reads: some of them are replies, or hidden from the reader.
const ROWS_READ_MAX: usize = 400;
/// Posts that are read at a time.
const ROWS_AT_ONCE: usize = 80;

/// `GET /api/v1/timelines/home`
pub(crate) async fn home(
    State(state): State<Shared>,
    Me(me): Me,
    uri: Uri,
    Params(fields): Params,
) -> Result<Response, ApiError> {
    let asked = Asked::parse(&fields, paging::STATUSES)?;
    let read = move |node: &node::Node, entities: &mut Entities<'_>| {
        let page = node.home_ids(me, &asked.page(PostId));
        page_of_statuses(entities, &asked, page)
    };
    let listed = state.entities(Some(me), read).await?;
    state.listed(uri.path(), &fields, &asked, listed)
}

/// `GET /api/v1/timelines/public`
pub(crate) async fn public(
    State(state): State<Shared>,
    Reader(reader): Reader,
    uri: Uri,
    Params(fields): Params,
) -> Result<Response, ApiError> {
    let asked = Asked::parse(&fields, paging::STATUSES)?;
    // There are no other servers, and no media.
    let none = fields.is_true("remote")? || fields.is_true("only_media")?;
    let read = move |_: &_, entities: &mut Entities<'_>| match none {
        true => Listed::default(),
        false => {
            let page = newest(entities, &asked);
            page_of_statuses(entities, &asked, page)
        }
    };
    let listed = state.entities(reader, read).await?;
    state.listed(uri.path(), &fields, &asked, listed)
}

/// The newest posts that are no replies to other users and that the reader wants. A page upwards (`min_id`) is read from
/// the newest post down, so it begins directly above the id only if that is among the newest [`ROWS_READ_MAX`].
fn newest(entities: &Entities<'_>, asked: &Asked) -> PageOf<PostId> {
    let (mut found, mut read) = (VecDeque::new(), 0);
    let mut before = Some(PostId(asked.max().unwrap_or(u64::MAX)));
    let mut more = false;
    'rows: while let Some(from) = before.filter(|_| read < ROWS_READ_MAX) {
        let (rows, rest) = entities.facts().posts_before(from, ROWS_AT_ONCE);
        read += ROWS_AT_ONCE;
        before = rest;
        for row in rows {
            let (post, listed) = row.posted;
            if !asked.has(post.0) {
                before = None;
                break 'rows;
            }
            let is_shown = || {
                let post = entities.visible_post(post);
                post.is_some_and(|post| entities.viewer().wanted(&post))
            };
            let is_reply = listed.reply_to.is_some_and(|to| to != row.author);
            if is_reply || listed.visibility != Visibility::Public || !is_shown() {
                continue;
            }
            if found.len() == asked.limit {
                more = true;
                if !asked.is_up() {
                    break 'rows;
                }
                found.pop_front();
            }
            found.push_back(post);
        }
    }
    PageOf { items: found.into(), more: more || before.is_some() }
}
