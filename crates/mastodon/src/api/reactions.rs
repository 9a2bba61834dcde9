//! Favourites, bookmarks, pins, boosts, and muted threads.

use axum::extract::State;
use axum::http::Uri;
use axum::response::Response;
use feed::accounts::AccessScope as S;
use feed::{Command, Facts, PostId, Reaction, UserRef, Visibility};
use node::Store;

use super::accounts::page_of_accounts;
use crate::access::Needs;
use crate::answers;
use crate::endpoints::Endpoints;
use crate::entities::Entities;
use crate::error::ApiError;
use crate::fields::Params;
use crate::input::{InPath, Me, Once, Reader};
use crate::limiter::What;
use crate::paging;
use crate::state::Shared;

/// Adds the routes of reactions.
pub(crate) fn routes(table: &mut Endpoints) {
    let write_favourites = Needs::User(&[S::WriteFavourites]);
    let write_bookmarks = Needs::User(&[S::WriteBookmarks]);
    let write_mutes = Needs::User(&[S::WriteMutes]);
    table.post("/api/v1/statuses/{id}/favourite", write_favourites, favourite);
    table.post("/api/v1/statuses/{id}/unfavourite", write_favourites, unfavourite);
    table.post("/api/v1/statuses/{id}/bookmark", write_bookmarks, bookmark);
    table.post("/api/v1/statuses/{id}/unbookmark", write_bookmarks, unbookmark);
    table.post("/api/v1/statuses/{id}/pin", Needs::WRITE_ACCOUNTS, pin);
    table.post("/api/v1/statuses/{id}/unpin", Needs::WRITE_ACCOUNTS, unpin);
    table.post("/api/v1/statuses/{id}/mute", write_mutes, mute_thread);
    table.post("/api/v1/statuses/{id}/unmute", write_mutes, unmute_thread);
    table.get("/api/v1/statuses/{id}/favourited_by", Needs::ANYONE_STATUSES, favourited_by);
    table.post("/api/v1/statuses/{id}/reblog", Needs::WRITE_STATUSES, boost);
    table.post("/api/v1/statuses/{id}/unreblog", Needs::WRITE_STATUSES, unboost);
    table.get("/api/v1/statuses/{id}/reblogged_by", Needs::ANYONE_STATUSES, boosted_by);
    table.get("/api/v1/favourites", Needs::User(&[S::ReadFavourites]), favourites);
    table.get("/api/v1/bookmarks", Needs::User(&[S::ReadBookmarks]), bookmarks);
}

/// Makes handlers that change the user's reaction to a status, and respond with the status as read by `$read`.
macro_rules! changes {
    ($read:ident: $($name:ident = |$user:ident, $post:ident| $command:expr;)*) => {$(
        pub(crate) async fn $name(
            State(state): State<Shared>,
            Me(me): Me,
            InPath($post): InPath<PostId>,
            once: Once,
        ) -> Result<Response, ApiError> {
            let $user = UserRef::Id(me);
            state.change(me, once, $command).await?;
            let status = state.entities_done(me, move |entities| entities.$read($post)).await?;
            answers::entity(status)
        }
    )*};
}

changes! { status:
    favourite = |user, post| react(user, post, Reaction::Favourite, true);
    bookmark = |user, post| react(user, post, Reaction::Bookmark, true);
    pin = |user, post| react(user, post, Reaction::Pin, true);
    mute_thread = |user, post| Command::MuteThread { user, post, on: true };
}

changes! { status_after_undo:
    unfavourite = |user, post| react(user, post, Reaction::Favourite, false);
    unbookmark = |user, post| react(user, post, Reaction::Bookmark, false);
    unpin = |user, post| react(user, post, Reaction::Pin, false);
}

changes! { status_after_unmute:
    unmute_thread = |user, post| Command::MuteThread { user, post, on: false };
}

fn react(user: UserRef, post: PostId, reaction: Reaction, on: bool) -> Command {
    Command::React { user, post, reaction, on }
}

/// Makes the handlers of the user's lists of reactions.
macro_rules! lists {
    ($($name:ident = $reaction:ident;)*) => {$(
        pub(crate) async fn $name(
            State(state): State<Shared>,
            Me(me): Me,
            uri: Uri,
            Params(fields): Params,
        ) -> Result<Response, ApiError> {
            let asked = paging::asked(&fields, paging::STATUSES)?;
            let read = move |_: &_, entities: &mut Entities<'_>| {
                let shown = |post: &_| entities.sees(post);
                // The cursors of these pages are stamps of reactions, not ids of posts.
                let found = entities.viewer().reacted(me, Reaction::$reaction, &asked, shown);
                paging::list(&asked, found, |(_, post)| entities.status(post))
            };
            let listed = state.entities(Some(me), read).await?;
            state.listed(uri.path(), &fields, &asked, listed)
        }
    )*};
}

lists! {
    favourites = Favourite;
    bookmarks = Bookmark;
}

/// Boosts a status, and responds with the boost.
pub(crate) async fn boost(
    State(state): State<Shared>,
    Me(me): Me,
    InPath(post): InPath<PostId>,
    once: Once,
    Params(fields): Params,
) -> Result<Response, ApiError> {
    // A boost has the audience of the status; a smaller one is not supported.
    let is_same = match fields.one("visibility")? {
        None | Some("public" | "unlisted") => true,
        Some("private") => {
            let read = move |_: &_, entities: &mut Entities<'_>| {
                let boosted = entities.boosted(post)?;
                entities.visible_post(boosted).map(|post| post.visibility)
            };
            state.entities(Some(me), read).await? == Some(Visibility::Followers)
        }
        Some(_) => false,
    };
    if !is_same {
        return Err(ApiError::not_supported("boosts for fewer users than may see the status"));
    }
    state.limit(What::Posts, u64::from(me.0))?;
    let (user, reaction) = (UserRef::Id(me), Reaction::Boost);
    state.change(me, once, Command::React { user, post, reaction, on: true }).await?;
    let boost = move |entities: &mut Entities<'_>| {
        let boosted = entities.boosted(post)?;
        let boost = entities.facts().reaction(me, boosted, reaction)?;
        entities.status(PostId(boost))
    };
    answers::entity(state.entities_done(me, boost).await?)
}

/// Removes a boost, and responds with the boosted status. `id` may be that of the boost.
pub(crate) async fn unboost(
    State(state): State<Shared>,
    Me(me): Me,
    InPath(post): InPath<PostId>,
    once: Once,
) -> Result<Response, ApiError> {
    // The status is read first, because the boost does not exist afterwards. The boost of a post that is now hidden can
    // also be removed.
    let find = move |_: &_, entities: &mut Entities<'_>| {
        entities.facts().post(post).map(|found| found.boosted_or(post))
    };
    let boosted = state.entities(Some(me), find).await?.unwrap_or(post);
    let (user, reaction) = (UserRef::Id(me), Reaction::Boost);
    state.change(me, once, Command::React { user, post, reaction, on: false }).await?;
    let status = move |entities: &mut Entities<'_>| entities.status_after_undo(boosted);
    answers::entity(state.entities_done(me, status).await?)
}

pub(crate) async fn favourited_by(
    state: State<Shared>,
    reader: Reader,
    post: InPath<PostId>,
    uri: Uri,
    params: Params,
) -> Result<Response, ApiError> {
    reacted_by(state, reader, (post, Reaction::Favourite), uri, params).await
}

pub(crate) async fn boosted_by(
    state: State<Shared>,
    reader: Reader,
    post: InPath<PostId>,
    uri: Uri,
    params: Params,
) -> Result<Response, ApiError> {
    reacted_by(state, reader, (post, Reaction::Boost), uri, params).await
}

async fn reacted_by(
    State(state): State<Shared>,
    Reader(reader): Reader,
    (InPath(post), reaction): (InPath<PostId>, Reaction),
    uri: Uri,
    Params(fields): Params,
) -> Result<Response, ApiError> {
    let asked = paging::asked(&fields, paging::ACCOUNTS)?;
    let read = move |_: &_, entities: &mut Entities<'_>| {
        let post = entities.boosted(post)?;
        let read = |facts: Facts<'_, Store>, span| facts.reacted_by(post, reaction, span);
        let (shown, account) = (Entities::is_visible, Entities::account);
        Some(page_of_accounts(entities, &asked, read, shown, account))
    };
    let listed = state.entities(reader, read).await?.ok_or_else(ApiError::not_found)?;
    state.listed(uri.path(), &fields, &asked, listed)
}
