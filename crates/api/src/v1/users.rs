//! Users: registration, profiles, lists of users.

use std::sync::Arc;

use axum::extract::{FromRequestParts, State};
use axum::http::header::LOCATION;
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use feed::accounts::{Account, AccountState};
use feed::{
    Bio, Conditional, Counts, Facts, Handle, Name, Order, ProfileField, ProfileFields, Refusal,
    Revision, Rows, Span, User, UserEdit, UserId, UserRef, Viewer,
};
use node::Node;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::conditions::{OnlyIf, Unless};
use crate::error::ApiError;
use crate::idempotency::Once;
use crate::input::{Input, OneUser, given};
use crate::page::{self, Asked, AskedFor, For, Reading, to_json};
use crate::query::Query;
use crate::route::{EDITED_TAG, Inputs, Reads, Route};
use crate::rule::May::{Own, See};
use crate::state::AppState;
use crate::time::rfc3339;
use crate::v1::follows::{on_behalf_of, page_of_users, shown_users, viewer};
use edge::Scope;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::post("/v1/users", register)
            .named("create_user", "Register a user")
            .text("A key without the scope `read` gets only the `id`.")
            .creates::<Profile>("The new user", "Path of the user")
            .errors(&["handle_taken", "bad_handle", "bad_name", "bad_bio", "full"]),
        Route::get("/v1/users", list)
            .named("list_users", "List users")
            .users(See)
            .text(
                "By order of registration, or by `handle` or `search`. A page may have fewer \
                 users than its limit, because deleted users and users hidden from the viewer \
                 are skipped.",
            )
            .lists::<Profile>("A page of users"),
        Route::get("/v1/users/{user}", profile)
            .named("get_user", "Show a user")
            .users(See)
            .shows::<Profile>("The user")
            .tagged(),
        Route::patch("/v1/users/{user}", edit)
            .named("update_user", "Edit a profile")
            .users(Own)
            .text("A key without the scope `read` gets only the `id`.")
            .shows::<Profile>("The edited user")
            .with_header("ETag", EDITED_TAG)
            .errors(&["bad_name", "bad_bio", "bad_field", "too_many_fields"]),
        Route::delete("/v1/users/{user}", delete)
            .named("delete_user", "Delete a user")
            .scope(Scope::Admin)
            .text(
                "Also deletes all posts, stories, follows, friendships and story views of the \
                 user. Replies by others, and their mentions of the user, remain. The handle \
                 stays reserved.",
            )
            .answers(204, "The user is deleted")
            .errors(&["too_many_deletions"]),
    ]
}

/// A user to be registered.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewUser {
    /// Unique handle: 1 to 30 of `a-z 0-9 _`, case-insensitive.
    #[schema(example = "ada")]
    handle: String,
    /// Display name: at most 50 characters on one line.
    #[serde(default)]
    name: String,
    /// Description: at most 500 characters.
    #[serde(default)]
    bio: String,
}

/// Edit of a profile. Absent fields do not change.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ProfileChange {
    /// New display name: at most 50 characters on one line.
    #[serde(default, deserialize_with = "given")]
    #[schema(nullable = false)]
    name: Option<String>,
    /// New description: at most 500 characters.
    #[serde(default, deserialize_with = "given")]
    #[schema(nullable = false)]
    bio: Option<String>,
    /// New list of all fields, at most 4. Fields with neither name nor value are dropped.
    #[serde(default, deserialize_with = "given")]
    #[schema(nullable = false)]
    fields: Option<Vec<Field>>,
    /// Whether the posts are written by a program.
    #[serde(default, deserialize_with = "given")]
    #[schema(nullable = false)]
    bot: Option<bool>,
    /// Whether lists of users to discover include the user.
    #[serde(default, deserialize_with = "given")]
    #[schema(nullable = false)]
    discoverable: Option<bool>,
    /// Whether searches may find the user's public posts.
    #[serde(default, deserialize_with = "given")]
    #[schema(nullable = false)]
    indexable: Option<bool>,
    /// Whether followers need the user's approval. Pending requests stay pending when this changes.
    #[serde(default, deserialize_with = "given")]
    #[schema(nullable = false)]
    locked: Option<bool>,
}

/// A field of a profile.
#[derive(Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Field {
    /// Label of the field: 1 to 255 characters on one line.
    #[schema(example = "Website")]
    name: String,
    /// Content of the field: at most 255 characters on one line.
    #[schema(example = "https://ada.example")]
    value: String,
}

/// A user's profile.
#[derive(Serialize, ToSchema)]
pub(crate) struct Profile {
    #[schema(example = "0")]
    id: String,
    #[schema(example = "ada")]
    handle: String,
    name: String,
    bio: String,
    fields: Vec<Field>,
    bot: bool,
    discoverable: bool,
    indexable: bool,
    /// Whether followers need the user's approval.
    locked: bool,
    #[schema(format = DateTime, example = "2026-11-21T09:30:00.123Z")]
    created_at: String,
    /// Number of public and unlisted posts.
    post_count: u32,
    follower_count: u32,
    following_count: u32,
    friend_count: u32,
}

impl From<&ProfileField> for Field {
    fn from(field: &ProfileField) -> Self {
        Self { name: field.name().to_owned(), value: field.value().to_owned() }
    }
}

impl Profile {
    fn new(id: UserId, user: &User, counts: Counts, locked: bool) -> Self {
        Self {
            id: id.0.to_string(),
            handle: user.handle.as_str().to_owned(),
            name: user.name.as_str().to_owned(),
            bio: user.bio.as_str().to_owned(),
            fields: user.fields.as_slice().iter().map(Field::from).collect(),
            bot: user.bot,
            discoverable: !user.undiscoverable,
            indexable: user.indexable,
            locked,
            created_at: rfc3339(user.registered.unix_ms()),
            post_count: counts.open_posts(),
            follower_count: counts.followers,
            following_count: counts.following,
            friend_count: counts.friends,
        }
    }

    /// Reads a profile. May block.
    pub(crate) fn read<R: Rows + ?Sized>(facts: Facts<'_, R>, id: UserId) -> Option<Self> {
        facts.user(id).map(|user| Self::new(id, &user, facts.counts(id), facts.is_locked(id)))
    }
}

pub(crate) async fn register(
    State(state): State<Arc<AppState>>,
    Input { body, key, may_read, .. }: Input<NewUser>,
) -> Result<Response, ApiError> {
    let (handle, name) = (Handle::parse(&body.handle)?, Name::parse(&body.name)?);
    let user = state.submit_registration(handle, name, Bio::parse(&body.bio)?, key).await?;
    let id = user.value;
    let response = state.respond(&user, id.0.into(), may_read, profile_of(&state, id)).await?;
    Ok(created(response, format!("/v1/users/{}", id.0)))
}

/// Turns a response into 201 with `path` as its location.
pub(crate) fn created(mut response: Response, path: String) -> Response {
    *response.status_mut() = StatusCode::CREATED;
    if let Ok(location) = HeaderValue::try_from(path) {
        response.headers_mut().insert(LOCATION, location);
    }
    response
}

pub(crate) async fn profile(
    State(state): State<Arc<AppState>>,
    OneUser(user): OneUser,
    For(viewer): For,
    unless: Unless,
) -> Result<Response, ApiError> {
    let read = move |node: &Node| {
        let user = node.resolve(&user).ok_or(Refusal::UserNotFound)?;
        on_behalf_of(node, viewer.as_ref(), user)?;
        tagged_profile(node, user).ok_or(Refusal::UserNotFound)
    };
    let (revision, profile) = state.read(read).await??;
    Ok(unless.answer(revision, profile))
}

/// Revision and JSON of a profile; `None` if the user has been deleted.
fn tagged_profile(node: &Node, user: UserId) -> Option<(Revision, Vec<u8>)> {
    // The revision is read first, so that the tag of an edit never has an older profile.
    let revision = node.facts().user_revision(user)?;
    Some((revision, to_json(&Profile::read(node.facts(), user)?)))
}

/// JSON of a user who was just registered; `None` if the user has been deleted.
async fn profile_of(state: &AppState, id: UserId) -> Result<Option<Vec<u8>>, ApiError> {
    let read = state.read_done(move |node| Profile::read(node.facts(), id)).await?;
    Ok(read.as_ref().map(to_json))
}

pub(crate) async fn edit(
    State(state): State<Arc<AppState>>,
    OneUser(user): OneUser,
    only_if: OnlyIf,
    Input { body, key, may_read, .. }: Input<ProfileChange>,
) -> Result<Response, ApiError> {
    let parse = |fields: &Vec<Field>| {
        ProfileFields::parse(fields.iter().map(|field| (&*field.name, &*field.value)))
    };
    let edit = UserEdit {
        name: body.name.as_deref().map(Name::parse).transpose()?,
        bio: body.bio.as_deref().map(Bio::parse).transpose()?,
        fields: body.fields.as_ref().map(parse).transpose()?,
        bot: body.bot,
        discoverable: body.discoverable,
        indexable: body.indexable,
        locked: body.locked,
        ..UserEdit::new(user)
    };
    let user = state.submit_edit(edit, only_if, key).await?;
    let id = user.value;
    let read = state.read_done(move |node| tagged_profile(node, id));
    state.respond_tagged(&user, id.0.into(), may_read, read).await
}

pub(crate) async fn delete(
    State(state): State<Arc<AppState>>,
    OneUser(user): OneUser,
    only_if: OnlyIf,
    Once(key): Once,
) -> Result<Response, ApiError> {
    state.carry_out(only_if.on(None, Conditional::DeleteUser { user }), key).await
}

/// The requested list of users.
pub(crate) enum Listing {
    /// The user with this handle, on behalf of the viewer.
    Handle(Handle, Option<UserRef>),
    /// At most this many users whose handles begin with this text, possibly with one mistake, on behalf of the viewer.
    Search(Handle, usize, Option<UserRef>),
    /// All users, in order of registration.
    Page(Asked),
}

impl<S: Send + Sync> FromRequestParts<S> for Listing {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        if let Ok(mut query) = Query::parse(&parts.uri, &["handle", "viewer"])
            && let Some(handle) = query.text("handle")?
        {
            return Ok(Self::Handle(Handle::parse(&handle)?, page::viewer(parts, &mut query)?));
        }
        if let Ok(mut query) = Query::parse(&parts.uri, &["search", "limit", "viewer"])
            && let Some(start) = query.text("search")?
        {
            let (limit, viewer) = (page::limit(&mut query)?, page::viewer(parts, &mut query)?);
            return Ok(Self::Search(Handle::parse(&start)?, limit, viewer));
        }
        let AskedFor(asked) = AskedFor::from_request_parts(parts, state).await?;
        Ok(Self::Page(asked))
    }
}

impl Reads for Listing {
    fn describe(inputs: &mut Inputs) {
        let handle = "Returns only the user with this handle. Can be combined only with `viewer`.";
        inputs.query("handle", handle);
        let search = "Beginning of handles. Returns the first 180 users whose handles begin with \
            this text, in the order of handles, then up to 10 whose handles begin with it except for \
            one typing mistake: a character (not the first) that is missing, added, replaced or \
            swapped with the next. Mistakes are allowed if this text has at least 4 characters. There \
            is no next page. Can be combined only with `limit` and `viewer`.";
        inputs.query("search", search);
        AskedFor::describe(inputs);
    }
}

pub(crate) async fn list(
    State(state): State<Arc<AppState>>,
    listing: Listing,
) -> Result<Response, ApiError> {
    let asked = match listing {
        Listing::Handle(handle, named) => {
            let read = state.read(move |node| {
                let (facts, viewer) = (node.facts(), viewer(node, named.as_ref())?);
                let shows = |id: &UserId| named.is_none() || is_shown(&viewer, *id);
                let found = facts.by_handle(&handle).filter(shows);
                Ok::<_, Refusal>(found.and_then(|id| Profile::read(facts, id)))
            });
            let found = read.await??;
            return Ok(page::answer(page::opened_with(found.iter()), None));
        }
        Listing::Search(start, limit, named) => {
            let read = state.read_long(move |node| {
                let (facts, viewer) = (node.facts(), viewer(node, named.as_ref())?);
                let shows = |id: &UserId| named.is_none() || is_shown(&viewer, *id);
                let profiles = facts.search_users(&start).filter(shows);
                let profiles = profiles.filter_map(|id| Profile::read(facts, id));
                Ok::<_, Refusal>(profiles.take(limit).collect::<Vec<_>>())
            });
            return Ok(page::answer(page::opened_with(read.await??.iter()), None));
        }
        Listing::Page(asked) => asked,
    };
    let (page, named) = (asked.of(Reading::Up), asked.viewer.clone());
    let found = state.read(move |node| {
        let (facts, viewer) = (node.facts(), viewer(node, named.as_ref())?);
        let ids = |span: Span| ids(&span, facts.totals().users);
        let shows = |id| facts.exists(id) && (named.is_none() || is_shown(&viewer, id));
        Ok::<_, Refusal>(shown_users(&page, ids, |id| {
            shows(id).then(|| Profile::read(facts, id))?
        }))
    });
    Ok(page_of_users(&asked, &found.await??))
}

/// Whether a list of all users shows a user to the viewer. No user sees users whose account awaits approval.
fn is_shown<R: Rows + ?Sized>(viewer: &Viewer<'_, R>, id: UserId) -> bool {
    let is_pending = |account: Account| account.state == AccountState::Pending;
    viewer.visible_user(id) && !viewer.facts().account(id).is_some_and(is_pending)
}

/// Returns the ids within a span, if there are `users` users.
fn ids(span: &Span, users: u32) -> Vec<UserId> {
    let id = |id: u64| u32::try_from(id).ok().map(UserId);
    let Some(last) = u64::from(users).checked_sub(1) else { return Vec::new() };
    let ids = span.low..=span.high.min(last);
    match span.order {
        Order::Ascending => ids.take(span.limit).filter_map(id).collect(),
        Order::Descending => ids.rev().take(span.limit).filter_map(id).collect(),
    }
}
