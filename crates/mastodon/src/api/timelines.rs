//! Timelines: home, and the newest posts of all users.

use axum::extract::State;
use axum::http::Uri;
use axum::response::Response;
use feed::post_lists::{self, PublicList};
use feed::{Page, UserId};

use crate::access::Needs;
use crate::endpoints::Endpoints;
use crate::entities::Entities;
use crate::error::ApiError;
use crate::fields::Params;
use crate::input::{Me, Reader};
use crate::paging::{self, EntityList};
use crate::state::{Server, Shared};

/// Adds the routes of timelines.
pub(crate) fn routes(table: &mut Endpoints) {
    table.get("/api/v1/timelines/home", Needs::MY_STATUSES, home);
    table.get("/api/v1/timelines/public", Needs::ANYONE_STATUSES, public);
}

impl Server {
    /// A page of the user's home timeline from memory, which needs no thread that may block. `None` if something is
    /// missing.
    fn try_home(&self, me: UserId, asked: &Page) -> Option<EntityList> {
        let mut entities = Entities::of_kept(&self.renderer, me)?;
        let posts = self.node.try_home_ids(me, asked)?;
        let append = |post, out: &mut Vec<u8>| {
            // After the first missing entity, the rest is skipped.
            if entities.lacks_something() { None } else { entities.append_home_status(post, out) }
        };
        let listed = paging::write(asked, posts, append);
        (!entities.lacks_something()).then_some(listed)
    }
}

pub(crate) async fn home(
    State(state): State<Shared>,
    Me(me): Me,
    uri: Uri,
    Params(fields): Params,
) -> Result<Response, ApiError> {
    let asked = paging::asked(&fields, paging::STATUSES)?;
    if let Some(listed) = state.try_home(me, &asked) {
        return state.listed(uri.path(), &fields, &asked, listed);
    }
    let read = move |node: &node::Node, entities: &mut Entities<'_>| {
        let found = node.home_ids(me, &asked);
        paging::write(&asked, found, |post, out| entities.append_home_status(post, out))
    };
    let listed = state.entities(Some(me), read).await?;
    state.listed(uri.path(), &fields, &asked, listed)
}

pub(crate) async fn public(
    State(state): State<Shared>,
    Reader(reader): Reader,
    uri: Uri,
    Params(fields): Params,
) -> Result<Response, ApiError> {
    let asked = paging::asked(&fields, paging::STATUSES)?;
    // There are no other servers, so nothing is remote.
    let (none, only_media) = (fields.is_true("remote")?, fields.is_true("only_media")?);
    let read = move |_: &_, entities: &mut Entities<'_>| match none {
        true => EntityList::default(),
        false => {
            let list = if only_media { PublicList::Pictures } else { PublicList::Posts };
            let found = post_lists::posts(entities.viewer(), list, &asked);
            paging::write(&asked, found, |post, out| entities.append_status(post, out))
        }
    };
    let listed = state.entities(reader, read).await?;
    state.listed(uri.path(), &fields, &asked, listed)
}
