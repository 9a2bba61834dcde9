//! URLs of the 2014 report about feed servers, so that the report's command lines run unchanged. They exist only in
//! open mode, because they change data on GET and identify users only by id.

use std::sync::Arc;

use axum::extract::{FromRequestParts, State};
use axum::http::request::Parts;
use axum::response::Response;
use feed::{Draft, Page, PageEnds, PostText, Refusal, SetTable, UserId, UserRef, limits};
use node::Node;

use crate::error::ApiError;
use crate::input::{decimal, path, user_number};
use crate::page::{json, opened, push_number};
use crate::route::Route;
use crate::state::AppState;

/// Number of posts on a home page.
const HOME_POSTS: usize = limits::PAGE_MAX;
/// Number of posts in a mentions feed.
const MENTIONS: usize = limits::MENTIONS_PAGE_MAX;
/// Number of followers in a list.
const FOLLOWERS: usize = limits::PAGE_MAX;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::undescribed("GET", "/tweet/{user}/{type}/{other}/{text}", tweet),
        Route::undescribed("GET", "/homepage/{user}", homepage),
        Route::undescribed("GET", "/mentionsfeed/{user}", mentions_feed),
        Route::undescribed("GET", "/followers/{user}", followers),
    ]
}

/// Id of the user in the path.
pub(crate) struct Number(UserRef);

impl<S: Send + Sync> FromRequestParts<S> for Number {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let id: String = path(parts).await?;
        Ok(Self(user_number(decimal(&id))?))
    }
}

/// Post in the format of these URLs.
pub(crate) struct Tweet {
    author: UserRef,
    mention: Mention,
    other: UserRef,
    text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mention {
    No,
    First,
    Within,
}

impl<S: Send + Sync> FromRequestParts<S> for Tweet {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let (id, kind, other, text): (String, String, String, String) = path(parts).await?;
        let mention = match kind.as_str() {
            "0" => Mention::No,
            "1" => Mention::First,
            "2" => Mention::Within,
            _ => return Err(ApiError::bad_request("a type is 0, 1 or 2")),
        };
        let author = user_number(decimal(&id))?;
        let other = user_number(decimal(&other)).map_err(|error| error.at("other"))?;
        Ok(Self { author, mention, other, text })
    }
}

/// Publishes a post. Responds with `{"id":"..."}`, of the same length for every post.
pub(crate) async fn tweet(
    State(state): State<Arc<AppState>>,
    tweet: Tweet,
) -> Result<Response, ApiError> {
    let Tweet { author, mention, other, text } = tweet;
    let text = match mention {
        Mention::No => text,
        Mention::First | Mention::Within => {
            let handle = state.read(move |node| {
                let user = node.facts().user(node.resolve(&other)?)?;
                Some(user.handle.as_str().to_owned())
            });
            mentioning(&handle.await?.ok_or(Refusal::OtherNotFound)?, mention, text.trim())
        }
    };
    let text = PostText::written(&text, &state.domain)?;
    let draft = Draft { opens_reply: true, ..Draft::new(author, text) };
    let post = state.submit_post(draft, None).await?.value;
    let mut out = b"{\"id\":\"".to_vec();
    push_number(post.0, &mut out);
    out.extend_from_slice(b"\"}");
    Ok(json(out))
}

/// Adds a mention to `text`: at the beginning, or after the word that ends nearest to the middle.
fn mentioning(handle: &str, mention: Mention, text: &str) -> String {
    if mention == Mention::First {
        return format!("@{handle} {text}");
    }
    let gaps = text.match_indices(' ').map(|(at, _)| at);
    let cut = gaps.min_by_key(|at| at.abs_diff(text.len() / 2)).unwrap_or(text.len());
    let (head, tail) = text.split_at(cut);
    format!("{head} @{handle}{tail}")
}

pub(crate) async fn homepage(
    State(state): State<Arc<AppState>>,
    Number(user): Number,
) -> Result<Response, ApiError> {
    newest(&state, user, HOME_POSTS, Node::home).await
}

pub(crate) async fn mentions_feed(
    State(state): State<Arc<AppState>>,
    Number(user): Number,
) -> Result<Response, ApiError> {
    newest(&state, user, MENTIONS, Node::mentions).await
}

async fn newest(
    state: &AppState,
    user: UserRef,
    limit: usize,
    read: fn(&Node, UserId, &Page, &mut Vec<u8>) -> PageEnds,
) -> Result<Response, ApiError> {
    let page = Page::newest(limit);
    let found = state.read(move |node| {
        let user = node.resolve(&user)?;
        let mut out = opened(256 * limit);
        read(node, user, &page, &mut out);
        out.extend_from_slice(b"]}");
        Some(out)
    });
    Ok(json(found.await?.ok_or(Refusal::UserNotFound)?))
}

/// Responds with the followers with the smallest ids.
pub(crate) async fn followers(
    State(state): State<Arc<AppState>>,
    Number(user): Number,
) -> Result<Response, ApiError> {
    let span = feed::Span { limit: FOLLOWERS, ..feed::Span::ALL };
    let found = state.read(move |node| {
        let user = node.resolve(&user)?;
        Some(node.facts().users_in(SetTable::Followers, user, span))
    });
    let mut out = b"{\"items\":[".to_vec();
    for (index, follower) in found.await?.ok_or(Refusal::UserNotFound)?.iter().enumerate() {
        out.extend_from_slice(if index == 0 { b"\"" } else { b",\"" });
        push_number(follower.0.into(), &mut out);
        out.push(b'"');
    }
    out.extend_from_slice(b"]}");
    Ok(json(out))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mention_is_at_the_beginning_or_after_a_word_near_the_middle() {
        for (mention, text, expect) in [
            (Mention::First, "hello", "@bob hello"),
            (Mention::Within, "hello", "hello @bob"),
            (Mention::Within, "one two", "one @bob two"),
            (Mention::Within, "a b c d e", "a b @bob c d e"),
            (Mention::Within, "\u{e4}\u{e4}\u{e4} \u{f6}", "\u{e4}\u{e4}\u{e4} @bob \u{f6}"),
        ] {
            assert_eq!(mentioning("bob", mention, text), expect, "{mention:?} {text:?}");
        }
    }
}
