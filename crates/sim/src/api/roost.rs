//! roost's API: actions as requests, and the parsing of responses.

mod batch;
mod check;
mod keys;
mod lines;
pub(super) mod load;

use std::sync::Arc;

use rand::SeedableRng;
use rand::rngs::StdRng;
use serde::Deserialize;
use tokio::task::JoinHandle;

use super::last_posts::LastPosts;
use super::{Api, LoadError, Needs, PAGE, Timeline, TimelinePost, Used};
use crate::client::{Requests, Response, Target};
use crate::scenario::Scenario;
use crate::texts;
use crate::workload::{Action, PostKind, What, distorted};
use batch::parse_result;
use load::Loading;

/// Number of stories per request to the stories timeline of a user.
const STORIES_HOME: u32 = 10;

/// Server used through roost's API.
pub(crate) struct Roost {
    pub(crate) target: Target,
    pub(crate) requests: Requests,
    /// Seed of the handles.
    pub(crate) seed: u64,
    /// Drawings to distort, if any.
    pub(crate) references: Option<Arc<[[u8; 128]]>>,
    last_posts: LastPosts,
}

impl Roost {
    pub(crate) fn new(
        target: Target,
        requests: Requests,
        seed: u64,
        references: Option<Arc<[[u8; 128]]>>,
    ) -> Roost {
        Roost { target, requests, seed, references, last_posts: LastPosts::default() }
    }

    /// Prepares to load a scenario. `ids` contains the users' ids if they differ from the users' numbers.
    pub(super) fn loading(&self, scenario: Arc<Scenario>, ids: Option<Vec<u32>>) -> Loading {
        // Use one node, because the other nodes receive a registered user some milliseconds later.
        let target = self.target.nodes().next().unwrap_or_else(|| self.target.clone());
        Loading { target, requests: self.requests.clone(), scenario, ids }
    }
}

impl Api for Roost {
    fn check(self: Arc<Self>, needs: Needs) -> JoinHandle<Result<(), LoadError>> {
        tokio::spawn(async move { self.check_empty(needs).await })
    }

    /// Does nothing: users need no sign-in, because the application key acts for all of them.
    fn sign_in(self: Arc<Self>, _: u32) -> JoinHandle<Result<(), LoadError>> {
        tokio::spawn(async { Ok(()) })
    }

    fn limited(&self, _: &str, _: u64) -> Option<String> {
        None
    }

    fn load(self: Arc<Self>, scenario: Arc<Scenario>) -> JoinHandle<Result<(), LoadError>> {
        tokio::spawn(async move {
            Arc::new(self.loading(scenario, None)).load().await?;
            self.wait_for_all_nodes().await
        })
    }

    fn write(&self, action: &Action, request: &mut Vec<u8>) {
        let user = action.user;
        let mut get = |rest: String| self.requests.get(&format!("/v1/users/{rest}"), request);
        match action.what {
            What::ReadHome => self.write_page(Timeline::Home(user), request),
            What::ReadMentions => self.write_page(Timeline::Mentions(user), request),
            What::ReadStoriesHome => get(format!("{user}/timeline/stories?limit={STORIES_HOME}")),
            What::ReadStories(friend) => {
                get(format!("{friend}/stories?limit={PAGE}&viewer={user}"));
            }
            What::ReadUserTimeline(other) => self.write_page(Timeline::Posts(other), request),
            What::ReadKey(record) | What::ModifyKey { record, .. } => {
                keys::read(&self.requests, record, request);
            }
            What::UpdateKey { record, value } | What::InsertKey { record, value } => {
                keys::write(&self.requests, record, &value.bytes(), request);
            }
            What::ScanKeys { from, keys } => keys::scan(&self.requests, from, keys, request),
            What::Recognize { seed } => {
                let drawing = distorted(self.references.as_deref().unwrap_or_default(), seed);
                let body = format!("{{\"sample\":\"{drawing}\"}}");
                self.requests.post("/v1/recognitions", body.as_bytes(), request);
            }
            What::Post { kind, text_seed } => {
                let (kind, parent) = self.last_posts.parent(kind);
                let kind = kind.map(|mentioned| texts::handle(self.seed, mentioned));
                let text = texts::seeded_post_text(text_seed, kind.as_deref());
                let body = match parent {
                    Some(parent) => {
                        format!("{{\"text\":\"{text}\",\"in_reply_to_id\":\"{parent}\"}}")
                    }
                    None => format!("{{\"text\":\"{text}\"}}"),
                };
                self.requests.post(&format!("/v1/users/{user}/posts"), body.as_bytes(), request);
            }
            What::PostStories { stories: 1, life_s, text_seed } => {
                let text = texts::seeded_post_text(text_seed, PostKind::Plain);
                let body = format!("{{\"text\":\"{text}\",\"ttl_s\":{life_s}}}");
                let path = format!("/v1/users/{user}/stories");
                self.requests.post(&path, body.as_bytes(), request);
            }
            What::PostStories { stories, life_s, text_seed } => {
                let mut rng = StdRng::seed_from_u64(text_seed);
                let mut lines = Vec::new();
                for user in user..user + stories {
                    let text = texts::post_text(&mut rng, PostKind::Plain);
                    lines::post_story(user, &text, life_s.into(), &mut lines);
                }
                self.requests.post_lines("/v1/batch", &lines, request);
            }
        }
    }

    fn write_second(&self, action: &Action, first: &[u8], request: &mut Vec<u8>) {
        let What::ModifyKey { record, value } = action.what else {
            unreachable!("this action needs one request: {action:?}")
        };
        keys::write(&self.requests, record, &value.changed(first), request);
    }

    /// A response to several commands has a line for each of them.
    fn done_in(&self, answer: &Response<'_>, count: u64) -> u64 {
        match count {
            _ if !answer.is_success() => 0,
            1 => 1,
            _ => results(answer.body).filter(Result::is_ok).count() as u64,
        }
    }

    fn first_refusal(&self, body: &[u8]) -> String {
        let refusal = results(body).find_map(Result::err);
        refusal.map_or_else(|| "the answer ended early".to_owned(), |error| error.to_string())
    }

    fn posted(&self, body: &[u8]) -> Option<TimelinePost> {
        let posted = serde_json::from_slice::<Post<'_>>(body).ok()?.entry()?;
        self.last_posts.add(&posted);
        Some(posted)
    }

    fn write_page(&self, timeline: Timeline, request: &mut Vec<u8>) {
        let (user, of) = match timeline {
            Timeline::Home(user) => (user, "timeline"),
            Timeline::Posts(user) => (user, "posts"),
            Timeline::Mentions(user) => (user, "mentions"),
        };
        self.requests.get(&format!("/v1/users/{user}/{of}?limit={PAGE}"), request);
    }

    fn page(&self, body: &[u8]) -> Option<Vec<TimelinePost>> {
        let page: Page<'_> = serde_json::from_slice(body).ok()?;
        page.items.iter().map(Post::entry).collect()
    }

    fn write_used(&self, request: &mut Vec<u8>) {
        self.requests.get("/metrics", request);
    }

    fn used(&self, body: &[u8]) -> Option<Used> {
        let metrics = str::from_utf8(body).ok()?;
        let value = |name: &str| -> Option<f64> {
            let line =
                metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?;
            line.split(' ').next()?.parse().ok()
        };
        let memory_bytes = value("process_resident_memory_bytes")? as u64;
        Some(Used { processor_s: value("process_cpu_seconds_total")?, memory_bytes })
    }
}

/// User in a post.
#[derive(Deserialize)]
struct Named<'a> {
    id: &'a str,
}

/// Fields by which posts are compared.
#[derive(Deserialize)]
struct Post<'a> {
    id: &'a str,
    #[serde(borrow)]
    author: Named<'a>,
    #[serde(borrow)]
    reply_to: Option<Named<'a>>,
}

impl Post<'_> {
    fn entry(&self) -> Option<TimelinePost> {
        let reply_to = match &self.reply_to {
            Some(other) => Some(other.id.parse().ok()?),
            None => None,
        };
        Some(TimelinePost {
            id: self.id.parse().ok()?,
            author: self.author.id.parse().ok()?,
            reply_to,
        })
    }
}

#[derive(Deserialize)]
struct Page<'a> {
    #[serde(borrow)]
    items: Vec<Post<'a>>,
}

fn results(body: &[u8]) -> impl Iterator<Item = Result<Option<u64>, LoadError>> {
    let lines = body.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
    (0..).zip(lines).map(|(number, line)| parse_result(line, number))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::workload::Value;

    fn roost() -> Roost {
        let target = std::net::SocketAddr::from(([127, 0, 0, 1], 1)).into();
        let requests = Requests::new("localhost:1", Some("k"));
        Roost::new(target, requests, 1, None)
    }

    #[test]
    fn posts_pages_and_resource_usage_are_parsed() {
        let post = r#"{"id":"12","author":{"id":"3","handle":"c","name":""},"text":"x","reply_to":
            {"id":"4","handle":"d"},"mentions":[{"id":"4","handle":"d"}],"new":1}"#;
        let entry = TimelinePost { id: 12, author: 3, reply_to: Some(4) };
        assert_eq!(roost().posted(post.as_bytes()), Some(entry));
        let plain = r#"{"id":"13","author":{"id":"3"},"reply_to":null}"#;
        let page = format!("{{\"items\":[{plain},{post}],\"next\":null}}");
        let entries = vec![TimelinePost { id: 13, author: 3, reply_to: None }, entry];
        assert_eq!(roost().page(page.as_bytes()), Some(entries));
        assert_eq!(roost().page(b"{}"), None);
        assert_eq!(roost().posted(b"13"), None);

        let metrics = "# TYPE process_cpu_seconds counter\nprocess_cpu_seconds_total 1.25\n\
                       process_resident_memory_bytes 4096 1700000000\n";
        let used = Used { processor_s: 1.25, memory_bytes: 4096 };
        assert_eq!(roost().used(metrics.as_bytes()), Some(used));
        assert_eq!(roost().used(b"process_cpu_seconds_total 3\n"), None);
    }

    #[test]
    fn the_answer_to_a_batch_reports_successes_and_failures() {
        let roost = roost();
        let check = |status: u16, body: &str, count: u64, done: u64, refusal: &str| {
            let response = Response { status, body: body.as_bytes() };
            assert_eq!(roost.done_in(&response, count), done, "{status} {body}");
            assert_eq!(roost.first_refusal(response.body), refusal, "{body}");
        };
        let (done, early) = ("{\"ok\":true,\"id\":\"1\"}\n", "the answer ended early");
        let refused = "{\"ok\":false,\"error\":\"x\",\"message\":\"y\"}";
        check(200, &done.repeat(2), 2, 2, early);
        check(200, "{\"id\": \"1\", \"ok\": true}\n{\"ok\":true}", 2, 2, early);
        check(200, &format!("{done}{refused}\n{done}"), 3, 2, "command 1 was refused: x: y");
        check(200, done, 2, 1, early);
        check(200, "x", 2, 0, "malformed response: a malformed result");
        check(503, done, 2, 0, early);
        // The response to a single command is not a list of results.
        check(201, "", 1, 1, early);
        check(404, "", 1, 0, early);
    }

    #[test]
    fn modifying_a_key_reads_it_and_writes_a_changed_value() {
        let (value, head) = (Value { seed: 9, bytes: 3 }, "HTTP/1.1\r\nHost: localhost:1\r\n");
        let head = format!("{head}Authorization: Bearer k\r\n");
        let path = "/v1/buckets/ycsb/keys/user6284781860667377211";
        let put = |body: &[u8]| {
            let media = "Content-Type: application/octet-stream\r\nContent-Length: ";
            let head = format!("PUT {path} {head}{media}{}\r\n\r\n", body.len());
            [head.as_bytes(), body].concat()
        };
        let get = format!("GET {path} {head}\r\n").into_bytes();
        let check = |what: What, first: &[u8], second: Option<&[u8]>| {
            let action = Action { due: Duration::ZERO, user: 0, what };
            let mut request = Vec::new();
            roost().write(&action, &mut request);
            assert_eq!(request, first, "{what:?}");
            assert_eq!(what.takes_two(), second.is_some());
            if let Some(second) = second {
                roost().write_second(&action, b"what was read", &mut request);
                assert_eq!(request, second, "{what:?}");
            }
        };
        let changed = value.changed(b"what was read");
        assert!(changed != b"what was read" && changed.len() == 13);
        check(What::ModifyKey { record: 0, value }, &get, Some(&put(&changed)));
        check(What::ReadKey(0), &get, None);
        check(What::UpdateKey { record: 0, value }, &put(&value.bytes()), None);
        check(What::InsertKey { record: 0, value }, &put(&value.bytes()), None);
        let scan = "/v1/buckets/ycsb/keys?limit=7&cursor=6284781860667377211";
        let scan = format!("GET {scan} {head}\r\n").into_bytes();
        check(What::ScanKeys { from: 0, keys: 7 }, &scan, None);
    }

    #[test]
    fn actions_become_the_requests_of_the_api() {
        let roost = roost();
        let check = |what: What, expect: &str| {
            let mut request = Vec::new();
            roost.write(&Action { due: Duration::ZERO, user: 7, what }, &mut request);
            let request = String::from_utf8(request).unwrap();
            assert_eq!(request, expect.replace('\n', "\r\n"));
        };
        let head = "HTTP/1.1\nHost: localhost:1\nAuthorization: Bearer k\n";
        check(What::ReadHome, &format!("GET /v1/users/7/timeline?limit=20 {head}\n"));
        check(What::ReadMentions, &format!("GET /v1/users/7/mentions?limit=20 {head}\n"));
        let posts = format!("GET /v1/users/3/posts?limit=20 {head}\n");
        check(What::ReadUserTimeline(3), &posts);
        let home = format!("GET /v1/users/7/timeline/stories?limit=10 {head}\n");
        check(What::ReadStoriesHome, &home);
        check(What::ReadStories(3), &format!("GET /v1/users/3/stories?limit=20&viewer=7 {head}\n"));
        let check_body = |what: What, path: &str, media: &str, body: &str| {
            let length = body.len();
            let more = format!("Content-Type: application/{media}\nContent-Length: {length}\n\n");
            // Line ends in the body are not replaced.
            let expect = format!("POST {path} {head}{more}").replace('\n', "\r\n") + body;
            let mut request = Vec::new();
            roost.write(&Action { due: Duration::ZERO, user: 7, what }, &mut request);
            assert_eq!(String::from_utf8(request).unwrap(), expect);
        };
        let kind = PostKind::MentionFirst(3);
        let mentioned = texts::handle(1, 3);
        let text = texts::seeded_post_text(5, PostKind::MentionWithin(&mentioned));
        let body = format!("{{\"text\":\"{text}\"}}");
        check_body(What::Post { kind, text_seed: 5 }, "/v1/users/7/posts", "json", &body);
        roost.posted(br#"{"id":"77","author":{"id":"3"},"reply_to":null}"#);
        let text = texts::seeded_post_text(5, PostKind::MentionFirst(&mentioned));
        let body = format!("{{\"text\":\"{text}\",\"in_reply_to_id\":\"77\"}}");
        check_body(What::Post { kind, text_seed: 5 }, "/v1/users/7/posts", "json", &body);
        let post = |stories| What::PostStories { stories, life_s: 60, text_seed: 5 };
        let text = texts::seeded_post_text(5, PostKind::Plain);
        let body = format!("{{\"text\":\"{text}\",\"ttl_s\":60}}");
        check_body(post(1), "/v1/users/7/stories", "json", &body);
        let (mut body, mut rng) = (Vec::new(), StdRng::seed_from_u64(5));
        for user in [7, 8] {
            lines::post_story(user, &texts::post_text(&mut rng, PostKind::Plain), 60, &mut body);
        }
        let body = String::from_utf8(body).unwrap();
        let line =
            format!("{{\"op\":\"post_story\",\"user\":7,\"text\":\"{text}\",\"ttl_s\":60}}\n");
        assert!(body.starts_with(&line), "{body}");
        check_body(post(2), "/v1/batch", "x-ndjson", &body);
    }
}
