//! Follows and follow requests, blocks, mutes, notes.

use axum::extract::State;
use axum::http::Uri;
use axum::response::Response;
use feed::accounts::AccessScope as S;
use feed::follow_options::FollowWith;
use feed::{Command, Facts, MuteTime, Note, SetTable, UserId, UserRef};
use node::Store;

use super::accounts::{page_of_accounts, related_ids};
use crate::access::Needs;
use crate::answers;
use crate::endpoints::Endpoints;
use crate::entities::Entities;
use crate::entities::json::push_made;
use crate::error::ApiError;
use crate::fields::{Fields, Params};
use crate::input::{self, InPath, Me, Once};
use crate::paging::{self, PAGE_BYTES};
use crate::state::{Server, Shared};

/// Adds the routes of relations.
pub(crate) fn routes(table: &mut Endpoints) {
    let write_follows = Needs::User(&[S::WriteFollows]);
    let write_blocks = Needs::User(&[S::WriteBlocks]);
    let write_mutes = Needs::User(&[S::WriteMutes]);
    let read_follows = Needs::User(&[S::ReadFollows]);
    table.post("/api/v1/accounts/{id}/follow", write_follows, follow);
    table.post("/api/v1/accounts/{id}/unfollow", write_follows, unfollow);
    table.post("/api/v1/accounts/{id}/remove_from_followers", write_follows, remove_from_followers);
    table.post("/api/v1/accounts/{id}/block", write_blocks, block);
    table.post("/api/v1/accounts/{id}/unblock", write_blocks, unblock);
    table.post("/api/v1/accounts/{id}/mute", write_mutes, mute);
    table.post("/api/v1/accounts/{id}/unmute", write_mutes, unmute);
    table.post("/api/v1/accounts/{id}/note", Needs::WRITE_ACCOUNTS, note);
    table.post("/api/v1/follow_requests/{account_id}/authorize", write_follows, authorize);
    table.post("/api/v1/follow_requests/{account_id}/reject", write_follows, reject);
    table.get("/api/v1/follow_requests", read_follows, requests);
    table.get("/api/v1/accounts/relationships", read_follows, relationships);
    table.get("/api/v1/blocks", Needs::User(&[S::ReadBlocks]), blocks);
    table.get("/api/v1/mutes", Needs::User(&[S::ReadMutes]), mutes);
}

/// Maximum number of relations that a short read reads: each takes about a dozen look-ups.
const PAGE_IDS_MAX: usize = 80;

pub(crate) async fn relationships(
    State(state): State<Shared>,
    Me(me): Me,
    Params(fields): Params,
) -> Result<Response, ApiError> {
    let users = related_ids(&fields)?;
    let is_page = users.len() <= PAGE_IDS_MAX;
    let read = move |_: &_, entities: &mut Entities<'_>| {
        let mut out = vec![b'['];
        for user in users {
            // A relation that does not fit is an error: an app would take an omitted account for a missing one.
            if out.len() >= PAGE_BYTES {
                return None;
            }
            push_made(entities.relationship(user), &mut out);
        }
        out.push(b']');
        Some(out)
    };
    let found = match is_page {
        true => state.entities(Some(me), read).await?,
        false => state.entities_long(Some(me), read).await?,
    };
    let why = "The notes about these accounts are too long: ask for fewer at a time";
    found.map(answers::json).ok_or_else(|| ApiError::too_long(why))
}

/// Changes the relation of two users, and responds with the new relation.
async fn change(
    state: &Server,
    (me, other): (UserId, UserId),
    once: Once,
    command: impl FnOnce(UserRef, UserRef) -> Command,
) -> Result<Response, ApiError> {
    let known = state.entities(Some(me), move |_, entities| entities.knows(other)).await?;
    if !known {
        return Err(ApiError::not_found());
    }
    state.change(me, once, command(UserRef::Id(me), UserRef::Id(other))).await?;
    let relation = state.entities_done(me, move |entities| entities.relationship(other)).await?;
    answers::entity(relation)
}

/// Ends a relation, even with a user whom the reader can no longer see. See [`change`].
async fn undo(
    state: &Server,
    (me, other): (UserId, UserId),
    once: Once,
    command: impl FnOnce(UserRef, UserRef) -> Command,
) -> Result<Response, ApiError> {
    let may_undo = move |_: &_, entities: &mut Entities<'_>| entities.may_undo_with(other);
    if !state.entities(Some(me), may_undo).await? {
        return Err(ApiError::not_found());
    }
    state.change(me, once, command(UserRef::Id(me), UserRef::Id(other))).await?;
    let relation = move |entities: &mut Entities<'_>| entities.relationship_after_undo(other);
    answers::entity(state.entities_done(me, relation).await?)
}

/// Makes handlers of changes without parameters, by `$change`.
macro_rules! changes {
    ($change:ident: $($name:ident => |$me:ident, $other:ident| $command:expr;)*) => {$(
        pub(crate) async fn $name(
            State(state): State<Shared>,
            Me(me): Me,
            InPath(other): InPath<UserId>,
            once: Once,
        ) -> Result<Response, ApiError> {
            $change(&state, (me, other), once, |$me, $other| $command).await
        }
    )*};
}

changes! { change:
    block => |user, other| Command::Block { user, other };
    authorize => |user, other| Command::AnswerRequest { user, other, accept: true };
}

changes! { undo:
    unfollow => |user, other| Command::Unfollow { user, other };
    remove_from_followers => |user, other| Command::Unfollow { user: other, other: user };
    unblock => |user, other| Command::Unblock { user, other };
    reject => |user, other| Command::AnswerRequest { user, other, accept: false };
    unmute => |user, other| Command::Unmute { user, other };
}

pub(crate) async fn mute(
    State(state): State<Shared>,
    Me(me): Me,
    InPath(other): InPath<UserId>,
    once: Once,
    Params(fields): Params,
) -> Result<Response, ApiError> {
    let mentions = fields.flag("notifications")?.unwrap_or(true);
    let wrong = || ApiError::invalid("duration must be a number of seconds");
    let secs = fields.one("duration")?.map(|text| input::number(text).ok_or_else(wrong));
    // A duration of 0 means that the mute does not end.
    let time = secs.transpose()?.filter(|secs| *secs > 0).map(MuteTime::from_secs).transpose()?;
    let command = |user, other| Command::Mute { user, other, mentions, time };
    change(&state, (me, other), once, command).await
}

/// Sets the note about an account; without a comment, removes it.
pub(crate) async fn note(
    State(state): State<Shared>,
    Me(me): Me,
    InPath(other): InPath<UserId>,
    once: Once,
    Params(fields): Params,
) -> Result<Response, ApiError> {
    let note = Note::parse(fields.text("comment").unwrap_or_default())?;
    let is_removal = note.as_str().is_empty();
    let command = |user, other| Command::SetNote { user, other, note };
    match is_removal {
        true => undo(&state, (me, other), once, command).await,
        false => change(&state, (me, other), once, command).await,
    }
}

/// Follows an account. Absent parameters keep their values. A follow of only some languages is refused, because home
/// shows posts in all languages.
pub(crate) async fn follow(
    State(state): State<Shared>,
    Me(me): Me,
    InPath(other): InPath<UserId>,
    once: Once,
    Params(fields): Params,
) -> Result<Response, ApiError> {
    if fields.has("languages") {
        return Err(ApiError::not_supported("follows of some languages only"));
    }
    let (boosts, notify) = (fields.flag("reblogs")?, fields.flag("notify")?);
    let command = |user, other| match (boosts, notify) {
        (None, None) => Command::Follow { user, other },
        _ => Command::FollowWith(Box::new(FollowWith { user, other, boosts, notify })),
    };
    change(&state, (me, other), once, command).await
}

/// Responds with the accounts that a table lists for the user.
async fn own_accounts(
    state: &Server,
    me: UserId,
    (uri, fields): (&Uri, &Fields),
    table: SetTable,
) -> Result<Response, ApiError> {
    let asked = paging::asked(fields, paging::ACCOUNTS)?;
    let read = move |_: &_, entities: &mut Entities<'_>| {
        let read = |facts: Facts<'_, Store>, span| facts.users_in(table, me, span);
        page_of_accounts(entities, &asked, read, Entities::knows, Entities::account)
    };
    let listed = state.entities(Some(me), read).await?;
    state.listed(uri.path(), fields, &asked, listed)
}

pub(crate) async fn blocks(
    State(state): State<Shared>,
    Me(me): Me,
    uri: Uri,
    Params(fields): Params,
) -> Result<Response, ApiError> {
    own_accounts(&state, me, (&uri, &fields), SetTable::Blocks).await
}

pub(crate) async fn requests(
    State(state): State<Shared>,
    Me(me): Me,
    uri: Uri,
    Params(fields): Params,
) -> Result<Response, ApiError> {
    own_accounts(&state, me, (&uri, &fields), SetTable::FollowRequests).await
}

pub(crate) async fn mutes(
    State(state): State<Shared>,
    Me(me): Me,
    uri: Uri,
    Params(fields): Params,
) -> Result<Response, ApiError> {
    let asked = paging::asked(&fields, paging::ACCOUNTS)?;
    let read = move |_: &_, entities: &mut Entities<'_>| {
        let read = |facts: Facts<'_, Store>, span| facts.users_in(SetTable::Mutes, me, span);
        // Muted users who block the reader are shown too.
        page_of_accounts(entities, &asked, read, Entities::knows, Entities::muted_account)
    };
    let listed = state.entities(Some(me), read).await?;
    state.listed(uri.path(), &fields, &asked, listed)
}
