//! Who follows whom.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use feed::{Command, Facts, Refusal, Rows, SetTable, UserId, UserRef, limits};
use serde::Serialize;
use utoipa::ToSchema;

use crate::error::{ErrorBody, Problem};
use crate::guard::Entry;
use crate::input::{Once, OneUser, TwoUsers};
use crate::page::{Asked, Ends, Reading};
use crate::routes::Routes;
use crate::state::Edge;

pub(crate) type PeoplePage = Asked<{ limits::PAGE_MAX }>;

pub(crate) fn route(routes: &mut Routes<'_>) {
    routes.on("PUT", "/v1/users/{user}/following/{other}", Entry::Plain, follow);
    routes.on("DELETE", "/v1/users/{user}/following/{other}", Entry::Plain, unfollow);
    routes.on("GET", "/v1/users/{user}/followers", Entry::Query, followers);
    routes.on("GET", "/v1/users/{user}/following", Entry::Query, following);
}

/// A person in a list.
#[derive(Serialize, ToSchema)]
pub(crate) struct Person {
    #[schema(example = "0")]
    id: String,
    #[schema(example = "ada")]
    handle: String,
    name: String,
}

impl Person {
    /// Reads a person. May block.
    pub(crate) fn read<R: Rows + ?Sized>(facts: Facts<'_, R>, id: UserId) -> Option<Self> {
        let user = facts.user(id)?;
        let (handle, name) = (user.handle.as_str().to_owned(), user.name.as_str().to_owned());
        Some(Self { id: id.0.to_string(), handle, name })
    }
}

/// A page of people.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes the answer, which is written as bytes")]
pub(crate) struct PersonPage {
    items: Vec<Person>,
    /// Path of the next page.
    next: Option<String>,
    /// Path of the page before.
    prev: Option<String>,
}

/// Follow a user
///
/// Following again changes nothing.
#[utoipa::path(
    put, path = "/v1/users/{user}/following/{other}", tag = "users",
    params(
        ("user" = String, Path, description = "who follows: number or @handle"),
        ("other" = String, Path, description = "whom: number or @handle"),
    ),
    responses(
        (status = 204),
        (status = 404, description = "`user_not_found`", body = ErrorBody),
        (status = 422, description = "`self_follow`", body = ErrorBody),
    )
)]
pub(crate) async fn follow(
    State(edge): State<Arc<Edge>>,
    TwoUsers(user, other): TwoUsers,
    Once(key): Once,
) -> Result<Response, Problem> {
    edge.carry_out(Command::Follow { user, other }, key).await
}

/// Unfollow a user
#[utoipa::path(
    delete, path = "/v1/users/{user}/following/{other}", tag = "users",
    params(
        ("user" = String, Path, description = "who follows: number or @handle"),
        ("other" = String, Path, description = "whom: number or @handle"),
    ),
    responses(
        (status = 204),
        (status = 404, description = "`user_not_found`", body = ErrorBody),
        (status = 422, description = "`self_follow`", body = ErrorBody),
    )
)]
pub(crate) async fn unfollow(
    State(edge): State<Arc<Edge>>,
    TwoUsers(user, other): TwoUsers,
    Once(key): Once,
) -> Result<Response, Problem> {
    edge.carry_out(Command::Unfollow { user, other }, key).await
}

/// List a user's followers
#[utoipa::path(
    get, path = "/v1/users/{user}/followers", tag = "users",
    params(
        ("user" = String, Path, description = "number or @handle"),
        ("limit" = Option<u32>, Query, description = "1 to 100, by default 20"),
        ("after" = Option<String>, Query, description = "people behind this id"),
        ("before" = Option<String>, Query, description = "people in front of this id"),
    ),
    responses((status = 200, body = PersonPage))
)]
pub(crate) async fn followers(
    State(edge): State<Arc<Edge>>,
    OneUser(user): OneUser,
    asked: PeoplePage,
) -> Result<Response, Problem> {
    people(&edge, SetTable::Followers, user, &asked).await
}

/// List whom a user follows
#[utoipa::path(
    get, path = "/v1/users/{user}/following", tag = "users",
    params(
        ("user" = String, Path, description = "number or @handle"),
        ("limit" = Option<u32>, Query, description = "1 to 100, by default 20"),
        ("after" = Option<String>, Query, description = "people behind this id"),
        ("before" = Option<String>, Query, description = "people in front of this id"),
    ),
    responses((status = 200, body = PersonPage))
)]
pub(crate) async fn following(
    State(edge): State<Arc<Edge>>,
    OneUser(user): OneUser,
    asked: PeoplePage,
) -> Result<Response, Problem> {
    people(&edge, SetTable::Following, user, &asked).await
}

/// A page of people beside `user` in `table`.
pub(crate) async fn people(
    edge: &Edge,
    table: SetTable,
    user: UserRef,
    asked: &PeoplePage,
) -> Result<Response, Problem> {
    let span = asked.of_people();
    let found = edge.read(move |node| {
        let user = node.resolve(&user).ok_or(Refusal::UserNotFound)?;
        let facts = node.facts();
        let ids = span.map(|span| facts.people(table, user, span)).unwrap_or_default();
        let person = |id| Some((id, Person::read(facts, id)?));
        Ok::<_, Refusal>(ids.into_iter().filter_map(person).collect::<Vec<_>>())
    });
    Ok(page_of_people(asked, found.await??))
}

/// The answer with those `found` by a scan of [`Asked::of_people`], each with their id.
pub(crate) fn page_of_people<T: Serialize>(
    asked: &PeoplePage,
    found: Vec<(UserId, T)>,
) -> Response {
    let (found, more) = asked.people_found(found);
    let id_of = |found: Option<&(UserId, T)>| found.map(|(id, _)| u64::from(id.0));
    let ends = Ends { first: id_of(found.first()), last: id_of(found.last()), more };
    let mut out = b"{\"items\":[".to_vec();
    for (index, (_, person)) in found.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        let Ok(()) = serde_json::to_writer(&mut out, person) else {
            unreachable!("strings serialise into memory");
        };
    }
    asked.answer(Reading::Up, ends, out)
}
