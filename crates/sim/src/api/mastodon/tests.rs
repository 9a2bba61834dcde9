//! Actions as requests, and entities as posts.

use std::time::Duration;

use super::*;
use crate::options::Credential;

const CREDENTIALS: [&str; 3] = ["token-a", "token-b", "token-c"];

fn mastodon() -> Mastodon {
    let target = std::net::SocketAddr::from(([127, 0, 0, 1], 1)).into();
    let requests = Requests::new("localhost:1", Some("key"));
    let own = Roost::new(target, requests, 1, None);
    let credentials = CREDENTIALS.map(|token| Credential::Token(token.to_owned()));
    let credentials = Some(credentials.into());
    let options = MastodonOptions { credentials, password: String::new(), own_api: false };
    let mut mastodon = Mastodon::new(own, options, true);
    mastodon.requests = Requests::new("localhost:1", None);
    let account = |(id, handle, token): (u64, &str, &str)| Account {
        id,
        handle: handle.into(),
        token: token.into(),
    };
    let accounts = [(107, "ann", "token-a"), (9, "bob", "token-b"), (500, "cat", "token-c")];
    mastodon.set_accounts(Accounts::new(accounts.map(account).to_vec()).unwrap());
    mastodon
}

fn written(mastodon: &Mastodon, user: u32, what: What) -> String {
    let mut request = Vec::new();
    mastodon.write(&Action { due: Duration::ZERO, user, what }, &mut request);
    String::from_utf8(request).unwrap()
}

#[test]
fn actions_become_requests_with_the_token_of_their_user() {
    let mastodon = mastodon();
    let check = |user: u32, what: What, path: &str, token: &str| {
        let head = "HTTP/1.1\r\nHost: localhost:1\r\nAuthorization: Bearer ";
        let expect = format!("GET {path} {head}{token}\r\n\r\n");
        assert_eq!(written(&mastodon, user, what), expect);
    };
    check(0, What::ReadHome, "/api/v1/timelines/home?limit=20", "token-a");
    let mentions = "/api/v1/notifications?types[]=mention&limit=20";
    check(1, What::ReadMentions, mentions, "token-b");
    let posts = "/api/v1/accounts/500/statuses?limit=20";
    check(1, What::ReadUserTimeline(2), posts, "token-b");
    let mut request = Vec::new();
    mastodon.write_page(Timeline::Posts(2), &mut request);
    let request = String::from_utf8(request).unwrap();
    assert!(request.starts_with(&format!("GET {posts} ")) && request.contains("token-c"));
}

#[test]
fn a_reply_answers_the_last_known_post_of_the_mentioned_user() {
    let mastodon = mastodon();
    let post = |kind| What::Post { kind, text_seed: 5 };
    let body = |kind| {
        let request = written(&mastodon, 0, post(kind));
        assert!(request.starts_with("POST /api/v1/statuses ") && request.contains("token-a"));
        request.split_once("\r\n\r\n").unwrap().1.to_owned()
    };
    let text = |kind| texts::seeded_post_text(5, kind);
    let plain = format!("{{\"status\":\"{}\"}}", text(PostKind::Plain));
    assert_eq!(body(PostKind::Plain), plain);
    let within = format!("{{\"status\":\"{}\"}}", text(PostKind::MentionWithin("bob")));
    assert_eq!(body(PostKind::MentionWithin(1)), within);
    assert_eq!(body(PostKind::MentionFirst(1)), within, "no post is known");
    let posted = r#"{"id":"77","account":{"id":"9","acct":"bob"},"in_reply_to_account_id":null}"#;
    let entry = TimelinePost { id: 77, author: 1, reply_to: None };
    assert_eq!(mastodon.posted(posted.as_bytes()), Some(entry));
    let first = text(PostKind::MentionFirst("bob"));
    let reply = format!("{{\"status\":\"{first}\",\"in_reply_to_id\":\"77\"}}");
    assert_eq!(body(PostKind::MentionFirst(1)), reply);
}

#[test]
fn pages_of_statuses_and_of_notifications_are_parsed() {
    let mastodon = mastodon();
    let status = |id: u64, author: u64, reply_to: &str| {
        format!(
            "{{\"id\":\"{id}\",\"content\":\"<p>\\u00e4</p>\",\"account\":{{\"id\":\"{author}\",\
             \"note\":\"\\n\"}},\"in_reply_to_account_id\":{reply_to},\"reblog\":null}}"
        )
    };
    let entry = |id, author, reply_to| TimelinePost { id, author, reply_to };
    let check = |body: &str, expect: Option<&[TimelinePost]>| {
        assert_eq!(mastodon.page(body.as_bytes()).as_deref(), expect, "{body}");
    };
    let (one, other) = (status(8, 107, "\"500\""), status(5, 9, "null"));
    let posts = [entry(8, 0, Some(2)), entry(5, 1, None)];
    check(&format!("[{one},{other}]"), Some(&posts));
    let swapped = [posts[1], posts[0]];
    check(&format!("[{other},{one}]"), Some(&swapped));
    let notified =
        |status: &str| format!("{{\"id\":\"1\",\"type\":\"mention\",\"status\":{status}}}");
    let notifications = format!("[{},{}]", notified(&other), notified(&one));
    check(&notifications, Some(&posts));
    let stranger = status(3, 4, "null");
    check(&format!("[{stranger}]"), Some(&[entry(3, u32::MAX, None)]));
    check("[]", Some(&[]));
    for wrong in ["{}", "[{}]", "[{\"id\":\"x\",\"account\":{\"id\":\"9\"}}]", "<html>"] {
        check(wrong, None);
    }
}

#[test]
fn only_refusals_because_of_a_rate_make_a_run_inconclusive() {
    let mastodon = mastodon();
    assert!(mastodon.limited("status 429", 3).is_some_and(|why| why.contains("refused 3 ")));
    for other in ["status 500", "status 4290", "timeout"] {
        assert_eq!(mastodon.limited(other, 3), None);
    }
}

#[test]
fn two_users_with_one_account_are_an_error() {
    let account = |id| Account { id, handle: "ann".into(), token: "x".into() };
    let accounts = [7, 8, 7].map(account).to_vec();
    let error = Accounts::new(accounts).unwrap_err().to_string();
    assert!(error.contains("lines 1 and 3") && error.contains("ann"), "{error}");
}
