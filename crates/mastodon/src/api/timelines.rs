//! Timelines: home, and the newest posts of all users.

use std::collections::VecDeque;

use axum::extract::State;
use axum::http::Uri;
use axum::response::Response;
use feed::{PageOf, PostId, UserId, Visibility, Visible};

use crate::entities::Entities;
use crate::error::ApiError;
use crate::fields::Params;
use crate::input::{Me, Reader};
use crate::paging::{self, Asked, Listed};
use crate::state::{Server, Shared};

/// Posts of all users that one request reads: some of them are replies, or hidden from the reader.
const ROWS_READ_MAX: usize = 1_000;
/// Posts that are read at a time.
const ROWS_AT_ONCE: usize = 80;

impl Server {
    /// A page of home(me) of what is in memory: then nothing needs to wait for a thread that may block.
    fn try_home(&self, me: UserId, asked: &Asked) -> Option<Listed> {
        let mut entities = Entities::of_kept(&self.renderer, me)?;
        let posts = self.node.try_home_ids(me, &asked.page(PostId))?;
        let append = |post, out: &mut Vec<u8>| {
            // The first that is missing ends the work.
            if entities.lacks_something() { None } else { entities.append_home_status(post, out) }
        };
        let listed = asked.statuses(posts, None, append);
        (!entities.lacks_something()).then_some(listed)
    }
}

/// `GET /api/v1/timelines/home`
pub(crate) async fn home(
    State(state): State<Shared>,
    Me(me): Me,
    uri: Uri,
    Params(fields): Params,
) -> Result<Response, ApiError> {
    let asked = Asked::parse(&fields, paging::STATUSES)?;
    if let Some(listed) = state.try_home(me, &asked) {
        return state.listed(uri.path(), &fields, &asked, listed);
    }
    let read = move |node: &node::Node, entities: &mut Entities<'_>| {
        let Visible { posts, end } = node.home_ids(me, &asked.page(PostId));
        let stopped = end.map(|end| end.0);
        asked.statuses(posts, stopped, |post, out| entities.append_home_status(post, out))
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
    // There are no other servers.
    let (none, only_media) = (fields.is_true("remote")?, fields.is_true("only_media")?);
    let read = move |_: &_, entities: &mut Entities<'_>| match none {
        true => Listed::default(),
        false => {
            let (page, stopped) = newest(entities, &asked, only_media);
            asked.statuses(page, stopped, |post, out| entities.append_status(post, out))
        }
    };
    let listed = state.entities(reader, read).await?;
    state.listed(uri.path(), &fields, &asked, listed)
}

/// Whether a post is in the timeline of all users: it is public, no reply to another user and no boost.
fn is_for_all(author: UserId, listed: feed::Listed) -> bool {
    let is_reply = listed.reply_to().is_some_and(|to| to != author);
    listed.visibility() == Visibility::Public && !is_reply && !listed.is_boost()
}

/// The newest posts of the timeline of all users that the reader wants. A page upwards (`min_id`) is read from
/// the newest post down, so it begins directly above the id only if that is among the newest [`ROWS_READ_MAX`]. Also
/// returns the last id that was read, if there are more rows and the page is not full.
fn newest(
    entities: &Entities<'_>,
    asked: &Asked,
    only_media: bool,
) -> (PageOf<PostId>, Option<u64>) {
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
                let post = post.filter(|post| !only_media || !post.media.is_empty());
                post.is_some_and(|post| entities.viewer().wanted(&post))
            };
            if !is_for_all(row.author, listed) || !is_shown() {
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
    let stopped = before.filter(|_| !more).map(|post| post.0);
    (PageOf { items: found.into(), more }, stopped)
}
