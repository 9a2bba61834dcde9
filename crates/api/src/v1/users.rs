//! People: registering, profiles, lists.

use std::sync::Arc;

use axum::extract::{FromRequestParts, State};
use axum::http::header::LOCATION;
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode, header::HeaderName};
use axum::response::Response;
use feed::{Bio, Command, Counts, Done, Facts, Handle, Name, Rows, User, UserId, limits};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::error::{ErrorBody, Problem};
use crate::guard::Entry;
use crate::input::{Input, OneUser, given};
use crate::page::{Asked, Ends, Place, Reading, json};
use crate::routes::Routes;
use crate::state::Edge;

/// Set on answers that repeat the outcome of an earlier request with the same key.
pub(crate) const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

pub(crate) fn route(routes: &mut Routes<'_>) {
    routes.on("POST", "/v1/users", Entry::Plain, register);
    routes.on("GET", "/v1/users", Entry::Query, list);
    routes.on("GET", "/v1/users/{user}", Entry::Plain, profile);
    routes.on("PATCH", "/v1/users/{user}", Entry::Plain, edit);
}

/// A person to be registered.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewUser {
    /// 1 to 30 of `a-z 0-9 _`, unique, in any case.
    #[schema(example = "ada")]
    handle: String,
    /// At most 50 characters on one line.
    #[serde(default)]
    name: String,
    /// At most 500 characters.
    #[serde(default)]
    bio: String,
}

/// What is to change about a person.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ProfileChange {
    /// At most 50 characters on one line.
    #[serde(default, deserialize_with = "given")]
    #[schema(nullable = false)]
    name: Option<String>,
    /// At most 500 characters.
    #[serde(default, deserialize_with = "given")]
    #[schema(nullable = false)]
    bio: Option<String>,
}

/// A person's profile.
#[derive(Serialize, ToSchema)]
pub(crate) struct Profile {
    #[schema(example = "0")]
    id: String,
    #[schema(example = "ada")]
    handle: String,
    name: String,
    bio: String,
    #[schema(example = "2026-11-21T09:30:00.123Z")]
    created_at: String,
    /// Posts that stand.
    posts: u32,
    followers: u32,
    following: u32,
    friends: u32,
}

/// A page of profiles.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes the answer, which is written as bytes")]
pub(crate) struct ProfilePage {
    items: Vec<Profile>,
    /// Path of the next page.
    next: Option<String>,
    /// Always null here.
    prev: Option<String>,
}

impl Profile {
    fn new(id: UserId, user: &User, counts: Counts) -> Self {
        Self {
            id: id.0.to_string(),
            handle: user.handle.as_str().to_owned(),
            name: user.name.as_str().to_owned(),
            bio: user.bio.as_str().to_owned(),
            created_at: rfc3339(user.registered.unix_ms()),
            posts: counts.posts,
            followers: counts.followers,
            following: counts.following,
            friends: counts.friends,
        }
    }

    /// Reads a profile. May block.
    fn read<R: Rows + ?Sized>(facts: Facts<'_, R>, id: UserId) -> Option<Self> {
        facts.user(id).map(|user| Self::new(id, &user, facts.counts(id)))
    }

    fn to_json(&self) -> Vec<u8> {
        let Ok(json) = serde_json::to_vec(self) else {
            unreachable!("strings and numbers serialise into memory");
        };
        json
    }
}

/// A time as answers tell it.
pub(crate) fn rfc3339(unix_ms: u64) -> String {
    let time = i64::try_from(unix_ms).ok();
    let time = time.and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok());
    let Some(time) = time else { unreachable!("41 bits of milliseconds are a time") };
    format!("{time:.3}")
}

/// Register a user
#[utoipa::path(
    post, path = "/v1/users", tag = "users", request_body = NewUser,
    params(("Idempotency-Key" = Option<String>, Header, description = "retries with the same key return the first result")),
    responses(
        (status = 201, body = Profile, headers(("Location" = String))),
        (status = 409, description = "`handle_taken`", body = ErrorBody),
        (status = 422, description = "`bad_handle`, `bad_name`, `bad_bio`", body = ErrorBody),
    )
)]
pub(crate) async fn register(
    State(edge): State<Arc<Edge>>,
    Input { body, idempotency, .. }: Input<NewUser>,
) -> Result<Response, Problem> {
    let command = Command::Register {
        handle: Handle::parse(&body.handle)?,
        name: Name::parse(&body.name)?,
        bio: Bio::parse(&body.bio)?,
    };
    let (Done::Registered(id), replayed) = edge.submit(command, idempotency).await? else {
        unreachable!("registering registers");
    };
    Ok(created(profile_of(&edge, id).await?, format!("/v1/users/{}", id.0), replayed))
}

/// Makes of an answer that of something new at `path`.
pub(crate) fn created(mut response: Response, path: String, replayed: bool) -> Response {
    *response.status_mut() = StatusCode::CREATED;
    if let Ok(location) = HeaderValue::try_from(path) {
        response.headers_mut().insert(LOCATION, location);
    }
    mark_replay(response, replayed)
}

/// Marks an answer that repeats an earlier outcome.
pub(crate) fn mark_replay(mut response: Response, replayed: bool) -> Response {
    if replayed {
        response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
    }
    response
}

/// Get a user's profile
#[utoipa::path(
    get, path = "/v1/users/{user}", tag = "users",
    params(("user" = String, Path, description = "number or @handle", example = "@ada")),
    responses((status = 200, body = Profile), (status = 404, description = "`user_not_found`", body = ErrorBody))
)]
pub(crate) async fn profile(
    State(edge): State<Arc<Edge>>,
    OneUser(user): OneUser,
) -> Result<Response, Problem> {
    let read = edge.read(move |node| Profile::read(node.facts(), node.resolve(&user)?)).await?;
    read.map(|profile| json(profile.to_json())).ok_or(feed::Refusal::UserNotFound.into())
}

/// The profile of whoever was just registered or changed.
async fn profile_of(edge: &Edge, id: UserId) -> Result<Response, Problem> {
    let read = edge.read_done(move |node| Profile::read(node.facts(), id)).await?;
    read.map(|profile| json(profile.to_json())).ok_or(feed::Refusal::UserNotFound.into())
}

/// Edit a user's name or bio
#[utoipa::path(
    patch, path = "/v1/users/{user}", tag = "users", request_body = ProfileChange,
    params(
        ("user" = String, Path, description = "number or @handle", example = "@ada"),
        ("Idempotency-Key" = Option<String>, Header, description = "retries with the same key return the first result"),
    ),
    responses(
        (status = 200, body = Profile),
        (status = 404, description = "`user_not_found`", body = ErrorBody),
        (status = 422, description = "`bad_name`, `bad_bio`", body = ErrorBody),
    )
)]
pub(crate) async fn edit(
    State(edge): State<Arc<Edge>>,
    OneUser(user): OneUser,
    Input { body, idempotency, .. }: Input<ProfileChange>,
) -> Result<Response, Problem> {
    let command = Command::EditProfile {
        user,
        name: body.name.as_deref().map(Name::parse).transpose()?,
        bio: body.bio.as_deref().map(Bio::parse).transpose()?,
    };
    let (Done::Edited(id), replayed) = edge.submit(command, idempotency).await? else {
        unreachable!("editing edits");
    };
    Ok(mark_replay(profile_of(&edge, id).await?, replayed))
}

/// What a list of people is asked for.
pub(crate) enum Listing {
    /// Whoever has this handle.
    Handle(Handle),
    /// Everybody, in order of registration.
    Page(Asked<{ limits::PAGE_MAX }>),
}

impl<S: Send + Sync> FromRequestParts<S> for Listing {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let query = parts.uri.query().unwrap_or("").as_bytes();
        let mut pairs = form_urlencoded::parse(query);
        match (pairs.next(), pairs.next()) {
            (Some((name, handle)), None) if name == "handle" => {
                Ok(Self::Handle(Handle::parse(&handle)?))
            }
            _ => {
                let asked = Asked::from_request_parts(parts, state).await?;
                if matches!(asked.place, Place::Before(_)) {
                    return Err(Problem::bad_cursor("this list is read onwards only: give after"));
                }
                Ok(Self::Page(asked))
            }
        }
    }
}

/// List users in order of registration, or find one by handle
#[utoipa::path(
    get, path = "/v1/users", tag = "users",
    params(
        ("handle" = Option<String>, Query, description = "only the user with this handle"),
        ("limit" = Option<u32>, Query, description = "1 to 100, by default 20"),
        ("after" = Option<String>, Query, description = "users with greater ids"),
    ),
    responses((status = 200, body = ProfilePage))
)]
pub(crate) async fn list(
    State(edge): State<Arc<Edge>>,
    listing: Listing,
) -> Result<Response, Problem> {
    let mut asked = match listing {
        Listing::Handle(handle) => {
            let read = edge.read(move |node| {
                let facts = node.facts();
                facts.by_handle(&handle).and_then(|id| Profile::read(facts, id))
            });
            return Ok(json(list_of_one(read.await?.as_ref())));
        }
        Listing::Page(asked) => asked,
    };
    let Some(span) = asked.of_people() else { unreachable!("nobody asked for people before 0") };
    let found = edge.read(move |node| {
        let facts = node.facts();
        let ids = span.low..u64::from(facts.totals().users);
        let ids = ids.take(span.limit).filter_map(|id| u32::try_from(id).ok()).map(UserId);
        ids.filter_map(|id| Some((id, Profile::read(facts, id)?))).collect::<Vec<_>>()
    });
    let (found, more) = asked.people_found(found.await?);
    let id_of = |found: Option<&(UserId, Profile)>| found.map(|(id, _)| u64::from(id.0));
    let ends = Ends { first: None, last: id_of(found.last()), more };
    let items: Vec<Vec<u8>> = found.iter().map(|(_, profile)| profile.to_json()).collect();
    let mut out = b"{\"items\":[".to_vec();
    out.extend_from_slice(&items.join(&b','));
    // Read onwards only, as the whole list is: nothing in front is ever linked.
    asked.place = Place::Start;
    Ok(asked.answer(Reading::Up, ends, out))
}

fn list_of_one(profile: Option<&Profile>) -> Vec<u8> {
    let mut out = b"{\"items\":[".to_vec();
    out.extend(profile.map(Profile::to_json).unwrap_or_default());
    out.extend_from_slice(b"],\"next\":null,\"prev\":null}");
    out
}
