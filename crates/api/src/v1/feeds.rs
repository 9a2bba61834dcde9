//! Ranked feeds of a user.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::{FromRequestParts, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{IntoResponse as _, Response};
use edge::Scope;
use feed::limits::PAGE_MAX;
use feed::{PostId, Refusal};
use node::{Node, RankedPage, RankedPlace, RankedPost, Reason};
use rank::{Feature, Features};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::described;
use crate::error::ApiError;
use crate::input::{FromParam, Input, OneUser, UserAnd, WithoutKey, decimal, post_number};
use crate::page::{answer, cursor, limit, opened, opened_with, to_json};
use crate::query::Query;
use crate::route::{Inputs, Reads, Route};
use crate::rule::May::Own;
use crate::state::AppState;
use crate::v1::follows::UserSummary;
use crate::v1::posts::PostView;

/// Typical maximum size of an item in a response, in bytes.
const ITEM_BYTES: usize = 512;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::get("/v1/users/{user}/feeds/{name}", ranked)
            .named("read_feed", "Read a ranked feed")
            .users(Own)
            .text(
                "`following`, `for-you`, `popular`, `explore`, or a stored feed or one of the \
                 server's file; see docs/feeds.md. The best posts first, each with the reasons why it is \
                 there. Has no posts of the user, no direct posts, and nothing by users whom a \
                 block or a mute hides; posts by authors whom the user does not follow are \
                 public. A ranking has at most 200 posts. The pages after the first are of the \
                 same ranking, which the server keeps for at most ten minutes.",
            )
            .lists::<RankedPostView>("A page of posts")
            .error(ApiError::feed_not_found())
            .error(ApiError::ranking_expired()),
        Route::post("/v1/users/{user}/seen", seen)
            .named("report_seen_posts", "Report seen posts")
            .users(Own)
            .scope(Scope::Read)
            .text(
                "The client has shown these posts to the user, so ranked feeds show them later. \
                 Kept in memory only, for the last posts of the user. Report a post once each \
                 time that it is visible to the user.",
            )
            .answers(204, "The posts count as seen"),
        Route::post("/v1/users/{user}/rank", rank_posts)
            .named("rank_posts", "Rank given posts")
            .users(Own)
            .scope(Scope::Read)
            .text(
                "Orders candidates of your own with the score, `per_author_max` and `explore` of a \
                 feed; see docs/feeds.md. Leaves out what the feed may not show to the user, and \
                 returns at most 200 posts. A boost counts as the boosted post.",
            )
            .lists::<ScoredPost>("The posts on one page, the best first")
            .error(ApiError::feed_not_found()),
    ]
}

/// Name of a feed in a path.
pub(crate) struct FeedName(Box<str>);

impl FromParam for FeedName {
    fn from_param(text: &str) -> Result<Self, ApiError> {
        Ok(Self(text.into()))
    }
}

/// Requested page of a ranking.
pub(crate) struct Asked(RankedPage);

impl<S: Send + Sync> FromRequestParts<S> for Asked {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let mut query = Query::parse(&parts.uri, &["limit", "cursor", "explain"])?;
        let limit = limit(&mut query)?;
        let explains = match query.number("explain")? {
            None | Some(0) => false,
            Some(1) => true,
            Some(_) => return Err(ApiError::bad_request("explain must be 0 or 1").at("explain")),
        };
        let place = cursor(&mut query, place)?;
        Ok(Self(RankedPage { place, limit, explains }))
    }
}

/// Parses a cursor: the numbers of a ranking and of a place in it.
fn place(text: &str) -> Option<RankedPlace> {
    let (snapshot, index) = text.split_once('-')?;
    let index = usize::try_from(decimal(index)?).ok()?;
    Some(RankedPlace { snapshot: decimal(snapshot)?, index })
}

impl Reads for Asked {
    fn describe(inputs: &mut Inputs) {
        described::page(inputs);
        let text = "1 adds the score and the features of each post when the page is read.";
        inputs.number_or("explain", text, 0..=1, Some(0));
    }
}

impl Reads for UserAnd<FeedName> {
    fn describe(inputs: &mut Inputs) {
        described::user(inputs);
        inputs.path("name", "Name of the feed.", "for-you");
    }
}

/// A post of a ranked feed.
#[derive(ToSchema)]
#[expect(dead_code, reason = "schema of the items, which are written as bytes")]
pub(crate) struct RankedPostView {
    post: PostView,
    /// Reasons why the post is in the feed, the most personal first; at least one.
    reasons: Vec<ReasonView>,
    /// Score of the post, if requested.
    score: Option<f32>,
    /// Features of the post by name, if requested; docs/feeds.md describes them.
    features: Option<BTreeMap<String, f64>>,
}

/// A reason why a post is in a feed.
#[derive(Default, Serialize, ToSchema)]
pub(crate) struct ReasonView {
    /// `followed`: the user follows the author. `at_home`: a followed user boosted the post, or it has a followed
    /// hashtag. `liked_by_followed`: `users` and `others`, whom the user follows, favourited or boosted it. `hashtag`:
    /// it is popular in the hashtag `tag`, which the user follows or uses. `group`: it is popular among users with
    /// similar interests. `popular_in_language`: it is popular in `language`. `popular`: it is popular. `new_author`:
    /// its author has few posts.
    #[schema(example = "liked_by_followed")]
    kind: &'static str,
    /// At most 3 users.
    #[serde(skip_serializing_if = "Option::is_none")]
    users: Option<Vec<UserSummary>>,
    /// Number of further users.
    #[serde(skip_serializing_if = "Option::is_none")]
    others: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tag: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    language: Option<String>,
}

impl ReasonView {
    /// Reads the users of a reason. May block.
    fn read(node: &Node, reason: Reason) -> Self {
        let of = |kind| Self { kind, ..Self::default() };
        match reason {
            Reason::Followed => of("followed"),
            Reason::AtHome => of("at_home"),
            Reason::LikedByFollowed { users, others } => {
                let users = users.into_iter().filter_map(|user| UserSummary::read(node, user));
                let (users, others) = (Some(users.collect()), Some(others));
                Self { users, others, ..of("liked_by_followed") }
            }
            Reason::Hashtag(tag) => Self { tag: Some(tag.as_str().to_owned()), ..of("hashtag") },
            Reason::Group => of("group"),
            Reason::PopularInLanguage(language) => {
                Self { language: Some(language), ..of("popular_in_language") }
            }
            Reason::Popular => of("popular"),
            Reason::NewAuthor => of("new_author"),
        }
    }
}

/// Posts that a user has seen.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SeenPosts {
    /// Ids of posts, the last ones that the user has seen at the end.
    #[schema(min_items = 1, max_items = 100, example = json!(["381482917519855616"]))]
    posts: Vec<String>,
}

/// Parses 1 to `max` ids of posts.
fn post_ids(texts: &[String], max: usize) -> Result<Vec<PostId>, ApiError> {
    let ids: Result<Vec<_>, _> = texts.iter().map(|id| post_number(decimal(id))).collect();
    let ids = ids.ok().filter(|ids| (1..=max).contains(&ids.len()));
    let wrong = || ApiError::bad_request(format!("posts must be 1 to {max} ids")).at("posts");
    ids.ok_or_else(wrong)
}

/// Maximum number of posts to rank in a request.
const GIVEN_MAX: usize = 400;

/// Posts to rank.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct GivenPosts {
    /// Name of the feed.
    #[schema(example = "for-you")]
    feed: String,
    /// Ids of posts.
    #[schema(min_items = 1, max_items = 400, example = json!(["381482917519855616"]))]
    posts: Vec<String>,
}

/// A post with its score.
#[derive(Serialize, ToSchema)]
pub(crate) struct ScoredPost {
    /// Id of the post.
    #[schema(example = "381482917519855616")]
    id: String,
    score: f32,
    /// Features by name; docs/feeds.md describes them.
    features: BTreeMap<&'static str, f64>,
    /// Reasons why the feed could show the post, the most personal first; may be empty.
    reasons: Vec<ReasonView>,
}

pub(crate) async fn rank_posts(
    State(state): State<Arc<AppState>>,
    OneUser(user): OneUser,
    WithoutKey(Input { body, .. }): WithoutKey<GivenPosts>,
) -> Result<Response, ApiError> {
    let GivenPosts { feed: name, posts } = body;
    let posts = post_ids(&posts, GIVEN_MAX)?;
    let read = move |node: &Node| {
        let feed = node.feed(&name).ok_or_else(ApiError::feed_not_found)?;
        let user = node.resolve(&user).ok_or(Refusal::UserNotFound)?;
        let ranked = node.rank_posts(user, (&name, &feed), &posts).into_iter();
        let scored = ranked.map(|RankedPost { post, reasons, explained }| {
            let (score, features) = explained.unwrap_or_default();
            let reasons = reasons.into_iter().map(|it| ReasonView::read(node, it));
            let features = by_name(&features);
            ScoredPost { id: post.0.to_string(), score, features, reasons: reasons.collect() }
        });
        Ok::<_, ApiError>(opened_with(scored))
    };
    Ok(answer(state.read(read).await??, None))
}

fn by_name(features: &Features) -> BTreeMap<&'static str, f64> {
    Feature::ALL.map(|feature| (feature.name(), features.of(feature))).into()
}

pub(crate) async fn seen(
    State(state): State<Arc<AppState>>,
    OneUser(user): OneUser,
    WithoutKey(Input { body, .. }): WithoutKey<SeenPosts>,
) -> Result<Response, ApiError> {
    let posts = post_ids(&body.posts, PAGE_MAX)?;
    let report = move |node: &Node| {
        let user = node.resolve(&user).ok_or(Refusal::UserNotFound)?;
        node.report_seen(user, &posts);
        Ok::<_, Refusal>(StatusCode::NO_CONTENT.into_response())
    };
    Ok(state.read(report).await??)
}

pub(crate) async fn ranked(
    State(state): State<Arc<AppState>>,
    UserAnd(user, FeedName(name)): UserAnd<FeedName>,
    Asked(page): Asked,
) -> Result<Response, ApiError> {
    let read = move |node: &Node| {
        let feed = node.feed(&name).ok_or_else(ApiError::feed_not_found)?;
        let user = node.resolve(&user).ok_or(Refusal::UserNotFound)?;
        let (posts, next) =
            node.ranked(user, (&name, &feed), &page).ok_or_else(ApiError::ranking_expired)?;
        let mut out = opened(ITEM_BYTES * page.limit);
        let start = out.len();
        for post in posts {
            append(node, post, start, &mut out);
        }
        Ok::<_, ApiError>((out, next))
    };
    let (out, next) = state.read(read).await??;
    let next = next.map(|place| format!("{}-{}", place.snapshot, place.index));
    Ok(answer(out, next.as_deref()))
}

/// Appends an item of a page that begins at `start`, unless the post was deleted.
fn append(node: &Node, ranked: RankedPost, start: usize, out: &mut Vec<u8>) {
    let before = out.len();
    if before > start {
        out.push(b',');
    }
    out.extend_from_slice(b"{\"post\":");
    if !node.post(ranked.post, out) {
        return out.truncate(before);
    }
    let reasons = ranked.reasons.into_iter().map(|it| ReasonView::read(node, it));
    out.extend_from_slice(b",\"reasons\":");
    out.extend_from_slice(&to_json(&reasons.collect::<Vec<_>>()));
    if let Some((score, features)) = ranked.explained {
        out.extend_from_slice(b",\"score\":");
        out.extend_from_slice(&to_json(&score));
        out.extend_from_slice(b",\"features\":");
        out.extend_from_slice(&to_json(&by_name(&features)));
    }
    out.push(b'}');
}
