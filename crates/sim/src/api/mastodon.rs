//! Mastodon's client API: actions as requests with the tokens of their users, and the parsing of responses.

mod accounts;
mod check;
mod fields;
mod load;
mod sign_in;

use std::sync::{Arc, OnceLock};

use tokio::task::JoinHandle;

use super::last_posts::LastPosts;
use super::roost::Roost;
use super::{Api, LoadError, Needs, PAGE, Timeline, TimelinePost, Used};
use crate::client::{Requests, Response, TOO_MANY, Target};
use crate::options::MastodonOptions;
use crate::scenario::Scenario;
use crate::texts;
use crate::workload::{Action, PostKind, What};
use accounts::{Account, Accounts};
use fields::{Entry, Status};

/// Server used through Mastodon's client API.
pub(crate) struct Mastodon {
    /// roost's own API of the same server, for actions that are not in Mastodon's API.
    own: Roost,
    /// Writer of requests without a user's token.
    requests: Requests,
    options: MastodonOptions,
    /// Whether the follows must be loaded.
    loads: bool,
    accounts: OnceLock<Accounts>,
    last_posts: LastPosts,
}

impl Mastodon {
    pub(super) fn new(own: Roost, options: MastodonOptions, loads: bool) -> Mastodon {
        let requests = Requests::new(own.target.authority(), None);
        let (accounts, last_posts) = (OnceLock::new(), LastPosts::default());
        Mastodon { own, requests, options, loads, accounts, last_posts }
    }

    fn target(&self) -> Target {
        self.own.target.clone()
    }

    /// Sets the accounts, once.
    fn set_accounts(&self, accounts: Accounts) {
        let set = self.accounts.set(accounts);
        assert!(set.is_ok(), "users sign in once");
    }

    fn accounts(&self) -> &Accounts {
        self.accounts.get().unwrap_or_else(|| unreachable!("users sign in before they act"))
    }

    fn account(&self, user: u32) -> &Account {
        self.accounts().of(user)
    }

    fn get(&self, user: u32, path: &str, request: &mut Vec<u8>) {
        self.requests.get_as(&self.account(user).token, path, request);
    }

    /// Replaces `request` with a request by `reader` for the newest posts of `author`.
    fn write_posts(&self, reader: u32, author: u32, request: &mut Vec<u8>) {
        let id = self.account(author).id;
        self.get(reader, &format!("/api/v1/accounts/{id}/statuses?limit={PAGE}"), request);
    }

    fn write_post(&self, user: u32, kind: PostKind<u32>, text_seed: u64, request: &mut Vec<u8>) {
        let (kind, parent) = self.last_posts.parent(kind);
        let kind = kind.map(|mentioned| &*self.account(mentioned).handle);
        let text = texts::seeded_post_text(text_seed, kind);
        let body = match parent {
            Some(parent) => format!("{{\"status\":\"{text}\",\"in_reply_to_id\":\"{parent}\"}}"),
            None => format!("{{\"status\":\"{text}\"}}"),
        };
        let token = &self.account(user).token;
        self.requests.post_as(token, "/api/v1/statuses", body.as_bytes(), request);
    }

    fn entry(&self, status: &Status<'_>) -> Option<TimelinePost> {
        let number = |id: &str| Some(self.accounts().number(id.parse().ok()?));
        let reply_to = match status.in_reply_to_account_id {
            Some(other) => Some(number(other)?),
            None => None,
        };
        let author = number(status.account.id)?;
        Some(TimelinePost { id: status.id.parse().ok()?, author, reply_to })
    }
}

impl Api for Mastodon {
    fn check(self: Arc<Self>, needs: Needs) -> JoinHandle<Result<(), LoadError>> {
        tokio::spawn(async move { self.check_instance(needs).await })
    }

    fn sign_in(self: Arc<Self>, users: u32) -> JoinHandle<Result<(), LoadError>> {
        tokio::spawn(sign_in::sign_in(self, users))
    }

    fn load(self: Arc<Self>, scenario: Arc<Scenario>) -> JoinHandle<Result<(), LoadError>> {
        tokio::spawn(load::load(self, scenario))
    }

    fn limited(&self, failure: &str, count: u64) -> Option<String> {
        (failure == format!("status {TOO_MANY}")).then(|| {
            format!(
                "the server refused {count} requests because of its rate limits (status {TOO_MANY}), so the run \
                 measures these instead of its speed: use more --users or a lower --rate, or raise the limits of the \
                 server (roost serve --open has none)"
            )
        })
    }

    fn write(&self, action: &Action, request: &mut Vec<u8>) {
        let user = action.user;
        match action.what {
            What::ReadHome => self.write_page(Timeline::Home(user), request),
            What::ReadMentions => self.write_page(Timeline::Mentions(user), request),
            What::ReadUserTimeline(other) => self.write_posts(user, other, request),
            What::Post { kind, text_seed } => self.write_post(user, kind, text_seed, request),
            what => unreachable!("the API has no request for {what:?}, which the options exclude"),
        }
    }

    fn write_second(&self, action: &Action, _: &[u8], _: &mut Vec<u8>) {
        unreachable!("this action needs one request: {action:?}")
    }

    fn done_in(&self, answer: &Response<'_>, _: u64) -> u64 {
        u64::from(answer.is_success())
    }

    fn first_refusal(&self, _: &[u8]) -> String {
        unreachable!("a request is of one operation, which its status is about")
    }

    fn posted(&self, body: &[u8]) -> Option<TimelinePost> {
        let posted = self.entry(&serde_json::from_slice(body).ok()?)?;
        self.last_posts.add(&posted);
        Some(posted)
    }

    /// The timeline of an author is read by the author.
    fn write_page(&self, timeline: Timeline, request: &mut Vec<u8>) {
        match timeline {
            Timeline::Home(user) => {
                self.get(user, &format!("/api/v1/timelines/home?limit={PAGE}"), request);
            }
            Timeline::Posts(user) => self.write_posts(user, user, request),
            Timeline::Mentions(user) => {
                let path = format!("/api/v1/notifications?types[]=mention&limit={PAGE}");
                self.get(user, &path, request);
            }
        }
    }

    fn page(&self, body: &[u8]) -> Option<Vec<TimelinePost>> {
        let entries: Vec<Entry<'_>> = serde_json::from_slice(body).ok()?;
        let is_notified = entries.iter().any(|entry| matches!(entry, Entry::Notification { .. }));
        let posts = entries.iter().map(|entry| self.entry(entry.status()));
        let mut posts: Vec<_> = posts.collect::<Option<_>>()?;
        if is_notified {
            // Sort the posts: a server may create notifications later and in another order than the posts.
            posts.sort_by_key(|post| std::cmp::Reverse(post.id));
        }
        Some(posts)
    }

    fn write_used(&self, request: &mut Vec<u8>) {
        self.own.write_used(request);
    }

    fn used(&self, body: &[u8]) -> Option<Used> {
        self.own.used(body)
    }
}

#[cfg(test)]
mod tests;
