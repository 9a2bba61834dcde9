//! Conversations: threads of direct posts, and the timeline of direct posts.

use axum::Json;
use axum::extract::State;
use axum::http::Uri;
use axum::response::Response;
use feed::accounts::AccessScope as S;
use feed::conversations::{Conversation, ConversationMark, ConversationUpdate};
use feed::{Command, PostId, UserId, UserRef};
use serde_json::{Value, json};

use crate::access::Needs;
use crate::answers;
use crate::endpoints::Endpoints;
use crate::entities::Entities;
use crate::entities::json::Json as Entity;
use crate::error::ApiError;
use crate::fields::Params;
use crate::input::{InPath, Me, Once};
use crate::paging;
use crate::state::{Server, Shared};

/// Adds the routes of conversations.
pub(crate) fn routes(table: &mut Endpoints) {
    let write_conversations = Needs::User(&[S::WriteConversations]);
    table.get("/api/v1/timelines/direct", Needs::MY_STATUSES, direct);
    table.get("/api/v1/conversations", Needs::MY_STATUSES, list);
    table.delete("/api/v1/conversations/{id}", write_conversations, remove);
    table.post("/api/v1/conversations/{id}/read", write_conversations, read);
    table.post("/api/v1/conversations/{id}/unread", write_conversations, unread);
}

/// Conversation of the user with this first post.
fn find(entities: &Entities<'_>, first: PostId) -> Option<Conversation> {
    entities.viewer().conversation(first)
}

pub(crate) async fn list(
    State(state): State<Shared>,
    Me(me): Me,
    uri: Uri,
    Params(fields): Params,
) -> Result<Response, ApiError> {
    let asked = paging::asked(&fields, paging::STATUSES)?;
    let read = move |_: &_, entities: &mut Entities<'_>| {
        let found = entities.viewer().conversations(&asked);
        paging::list(&asked, found, |found| entities.conversation(found))
    };
    let listed = state.entities(Some(me), read).await?;
    state.listed(uri.path(), &fields, &asked, listed)
}

pub(crate) async fn direct(
    State(state): State<Shared>,
    Me(me): Me,
    uri: Uri,
    Params(fields): Params,
) -> Result<Response, ApiError> {
    let asked = paging::asked(&fields, paging::STATUSES)?;
    let read = move |_: &_, entities: &mut Entities<'_>| {
        let found = entities.viewer().direct_posts(&asked);
        paging::write(&asked, found, |post, out| entities.append_status(post, out))
    };
    let listed = state.entities(Some(me), read).await?;
    state.listed(uri.path(), &fields, &asked, listed)
}

impl Server {
    /// Conversation of a user with this first post.
    async fn conversation(&self, me: UserId, first: PostId) -> Result<Conversation, ApiError> {
        let read = move |_: &_, entities: &mut Entities<'_>| find(entities, first);
        self.entities(Some(me), read).await?.ok_or_else(ApiError::not_found)
    }

    /// Responds with a conversation.
    async fn marked(&self, me: UserId, found: Conversation) -> Result<Response, ApiError> {
        let read = move |entities: &mut Entities<'_>| entities.conversation(found);
        let entity: Option<Entity> = self.entities_done(me, read).await?;
        answers::entity(entity)
    }

    /// Marks a conversation as read, or removes it. Returns its earlier state.
    async fn mark(
        &self,
        (me, first): (UserId, PostId),
        once: Once,
        is_removed: bool,
    ) -> Result<Conversation, ApiError> {
        let found = self.conversation(me, first).await?;
        let mark = ConversationMark { first, read: found.last, is_removed };
        let update = ConversationUpdate { user: UserRef::Id(me), mark };
        self.change(me, once, Command::Conversation(Box::new(update))).await?;
        Ok(found)
    }
}

pub(crate) async fn read(
    State(state): State<Shared>,
    Me(me): Me,
    InPath(first): InPath<PostId>,
    once: Once,
) -> Result<Response, ApiError> {
    let found = state.mark((me, first), once, false).await?;
    state.marked(me, Conversation { is_unread: false, ..found }).await
}

pub(crate) async fn unread(
    State(state): State<Shared>,
    Me(me): Me,
    InPath(first): InPath<PostId>,
    once: Once,
) -> Result<Response, ApiError> {
    let found = state.conversation(me, first).await?;
    let user = UserRef::Id(me);
    let command = Command::UnreadConversation { user, first, last: found.last };
    state.change(me, once, command).await?;
    state.marked(me, Conversation { is_unread: true, ..found }).await
}

pub(crate) async fn remove(
    State(state): State<Shared>,
    Me(me): Me,
    InPath(first): InPath<PostId>,
    once: Once,
) -> Result<Json<Value>, ApiError> {
    state.mark((me, first), once, true).await?;
    Ok(Json(json!({})))
}
