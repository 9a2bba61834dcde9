//! Whole simulations of a small test server that records all requests.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn};
use axum::response::Response;
use axum::routing::{get, post};
use axum::{Json, Router};
use futures_util::stream::unfold;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use sim::client::{Target, TlsError};
use sim::population::Making;
use sim::simulate::LoadError;
use sim::summary::Correctness;
use sim::workload::Load;
use sim::{ApiOptions, Drive, Population, SimError, SimulateOptions, StoryLoad, simulate};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ServerConfig, crypto};
use tokio_rustls::server::TlsStream;

const KEY: &str = "open sesame";

#[derive(Default)]
struct World {
    handles: Vec<String>,
    ids: HashMap<String, usize>,
    follows: Vec<(u64, u64)>,
    friendships: Vec<(u64, u64)>,
    /// Author and TTL in seconds of each story.
    stories: Vec<(u64, u64)>,
    /// Posts, with their ids as index.
    posts: Vec<Post>,
    reads: usize,
    fault: Option<Fault>,
}

struct Post {
    author: u64,
    text: String,
    reply_to: Option<u64>,
    mentions: Vec<u64>,
}

/// Defect of the test server's home timelines.
#[derive(Clone, Copy, PartialEq)]
enum Fault {
    LosesEveryThird,
    ShowsTwice,
    TurnsRound,
    ShowsStrangers,
}

type Shared = Arc<Mutex<World>>;

fn lock(world: &Shared) -> MutexGuard<'_, World> {
    world.lock().expect("no panic in the server")
}

impl World {
    fn command(&mut self, line: &[u8]) -> Value {
        let command: Value = serde_json::from_slice(line).expect("a command is JSON");
        match command["op"].as_str().expect("a command has an op") {
            "register" => {
                let handle = command["handle"].as_str().expect("a handle").to_owned();
                if self.ids.contains_key(&handle) {
                    return json!({"ok": false, "error": "handle_taken", "message": "taken"});
                }
                self.ids.insert(handle.clone(), self.handles.len());
                self.handles.push(handle);
                json!({"ok": true, "id": (self.handles.len() - 1).to_string()})
            }
            op @ ("follow" | "befriend") => {
                let number = |value: &Value| value.as_u64().expect("a number");
                let user = number(&command["user"]);
                let others = match &command["others"] {
                    Value::Array(others) => others.iter().map(number).collect(),
                    _ => vec![number(&command["other"])],
                };
                if others.iter().chain([&user]).any(|user| *user as usize >= self.handles.len()) {
                    return json!({"ok": false, "error": "user_not_found", "message": "who?"});
                }
                let joined = if op == "follow" { &mut self.follows } else { &mut self.friendships };
                joined.extend(others.into_iter().map(|other| (user, other)));
                json!({"ok": true})
            }
            "post_story" => {
                let user = command["user"].as_u64().expect("a number");
                self.post_story(user, &command);
                json!({"ok": true, "id": "7"})
            }
            op => panic!("unexpected {op}"),
        }
    }

    /// Publishes a post and returns it in the API's form.
    fn publish(&mut self, author: u64, text: String) -> Value {
        let handle_in = |word: &str| {
            let end = word.find(|letter: char| !letter.is_ascii_alphanumeric());
            let handle = &word[..end.unwrap_or(word.len())];
            self.ids.get(handle).map(|id| *id as u64)
        };
        let mentions: Vec<u64> = text.split('@').skip(1).filter_map(handle_in).collect();
        let reply_to = mentions.first().copied().filter(|_| text.starts_with('@'));
        self.posts.push(Post { author, text, reply_to, mentions });
        self.view(self.posts.len() - 1)
    }

    fn view(&self, id: usize) -> Value {
        let Post { author, reply_to, .. } = &self.posts[id];
        let named = |id: &u64| json!({"id": id.to_string()});
        let reply_to = reply_to.as_ref().map(named);
        json!({"id": id.to_string(), "author": named(author), "reply_to": reply_to})
    }

    fn page(&self, belongs: impl Fn(&Post) -> bool) -> Value {
        let ids = (0..self.posts.len()).rev().filter(|id| belongs(&self.posts[*id])).take(20);
        json!({"items": ids.map(|id| self.view(id)).collect::<Vec<_>>()})
    }

    fn home(&self, reader: u64) -> Value {
        let knows = |user| user == reader || self.follows.contains(&(reader, user));
        let fault = self.fault;
        let mut page = self.page(|post| {
            let answers = post.author == reader || post.reply_to.is_none_or(knows);
            let is_lost = fault == Some(Fault::LosesEveryThird) && post.text.len() % 3 == 0;
            let belongs = knows(post.author) && answers && !is_lost;
            belongs || fault == Some(Fault::ShowsStrangers)
        });
        let items = page["items"].as_array_mut().expect("items");
        match fault {
            Some(Fault::ShowsTwice) => items.extend(items.last().cloned()),
            Some(Fault::TurnsRound) => items.reverse(),
            _ => {}
        }
        page
    }

    fn post_story(&mut self, user: u64, story: &Value) {
        assert!(story["text"].as_str().is_some_and(|text| !text.is_empty()), "{story}");
        self.stories.push((user, story["ttl_s"].as_u64().expect("a life")));
    }
}

/// Responds line by line, while the body is still arriving.
async fn batch(State(world): State<Shared>, body: Body) -> Response {
    let (results, receiver) = mpsc::channel::<Bytes>(2);
    tokio::spawn(async move {
        let (mut body, mut begun) = (body, Vec::new());
        while let Some(Ok(frame)) = body.frame().await {
            begun.extend_from_slice(&frame.into_data().unwrap_or_default());
            let whole = begun.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
            let rest = begun.split_off(whole);
            let mut answers = Vec::new();
            for line in begun.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
                answers.extend_from_slice(lock(&world).command(line).to_string().as_bytes());
                answers.push(b'\n');
            }
            begun = rest;
            if results.send(answers.into()).await.is_err() {
                return;
            }
        }
    });
    let lines =
        unfold(receiver, async |mut lines| Some((Ok::<_, String>(lines.recv().await?), lines)));
    Response::new(Body::from_stream(lines))
}

async fn write_post(
    State(world): State<Shared>,
    Path(user): Path<u64>,
    body: Bytes,
) -> (StatusCode, Json<Value>) {
    let body: Value = serde_json::from_slice(&body).expect("a post is JSON");
    let text = body["text"].as_str().expect("a text").to_owned();
    (StatusCode::CREATED, Json(lock(&world).publish(user, text)))
}

async fn read_home(State(world): State<Shared>, Path(user): Path<u64>) -> Json<Value> {
    lock(&world).reads += 1;
    Json(lock(&world).home(user))
}

async fn read_posts(State(world): State<Shared>, Path(user): Path<u64>) -> Json<Value> {
    Json(lock(&world).page(|post| post.author == user))
}

async fn read_mentions(State(world): State<Shared>, Path(user): Path<u64>) -> Json<Value> {
    Json(lock(&world).page(|post| post.mentions.contains(&user)))
}

async fn post_story(State(world): State<Shared>, Path(user): Path<u64>, body: Bytes) -> StatusCode {
    lock(&world).post_story(user, &serde_json::from_slice(&body).expect("a story is JSON"));
    StatusCode::CREATED
}

async fn read(State(world): State<Shared>) -> &'static str {
    lock(&world).reads += 1;
    r#"{"items":[]}"#
}

async fn wants_key(request: Request, next: Next) -> Result<Response, StatusCode> {
    let key = request.headers().get("authorization").and_then(|value| value.to_str().ok());
    if key == Some(&format!("Bearer {KEY}")) {
        Ok(next.run(request).await)
    } else {
        Err(StatusCode::UNAUTHORIZED)
    }
}

async fn users(State(world): State<Shared>) -> Json<Value> {
    Json(json!({"items": lock(&world).handles.iter().take(1).collect::<Vec<_>>()}))
}

fn app(world: &Shared) -> Router {
    Router::new()
        .route("/v1/batch", post(batch))
        .route("/v1/users", get(users))
        .route("/v1/users/{user}/posts", get(read_posts).post(write_post))
        .route("/v1/users/{user}/timeline", get(read_home))
        .route("/v1/users/{user}/mentions", get(read_mentions))
        .route("/v1/users/{user}/stories", get(read).post(post_story))
        .route("/v1/users/{user}/timeline/stories", get(read))
        .layer(from_fn(wants_key))
        .with_state(Arc::clone(world))
}

async fn serve() -> (SocketAddr, Shared) {
    let world = Shared::default();
    let app = app(&world);
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("a bound socket");
    tokio::spawn(async move { axum::serve(listener, app).await });
    (address, world)
}

fn options(target: impl Into<Target>) -> SimulateOptions {
    SimulateOptions {
        target: target.into(),
        api: ApiOptions::Roost,
        key: Some(KEY.to_owned()),
        making: Making::of(500, 4),
        feed: Some(Load::Heavy),
        stories: None,
        drawings: None,
        keys: None,
        graph: None,
        loaded: false,
    }
}

fn drive() -> Drive {
    Drive { connections: 8, ..Drive::new(Duration::from_millis(500)) }
}

/// Load with 300 stories, all due in each second, so that a request posts one story.
fn stories() -> StoryLoad {
    StoryLoad { friends: 4, stories: 3, life_s: 1, homes_per_second: 200 }
}

/// Simulates. Returns the summary and the output.
async fn run(options: SimulateOptions) -> (Result<sim::Summary, SimError>, String) {
    run_as(options, &drive()).await
}

async fn run_as(
    options: SimulateOptions,
    drive: &Drive,
) -> (Result<sim::Summary, SimError>, String) {
    let (_cancel, cancelled) = watch::channel(false);
    let mut out = Vec::new();
    let outcome = simulate(options, drive, &mut out, &mut [], cancelled).await;
    (outcome, String::from_utf8(out).expect("text"))
}

#[tokio::test]
async fn a_simulation_loads_all_users_and_drives_the_server() {
    let (target, world) = serve().await;
    let (summary, out) = run(options(target)).await;
    let summary = summary.expect("a simulation without errors");
    let mut world = world.lock().unwrap();

    let population = Population::made(&Making::of(500, 4));
    let mut follows: Vec<(u64, u64)> = (0..500)
        .flat_map(|user| population.following(user).iter().map(move |&o| (user.into(), o.into())))
        .collect();
    follows.sort_unstable();
    world.follows.sort_unstable();
    assert_eq!(
        world.handles,
        (0..500).map(|number| sim::texts::handle(4, number)).collect::<Vec<_>>()
    );
    assert_eq!(world.follows, follows);

    assert_eq!(summary.error_count(), 0, "{out}");
    let counts: Vec<u64> = summary.kinds.iter().map(|kind| kind.count).collect();
    assert!(counts[0] > 0 && counts[1] > 0, "{counts:?}");
    assert_eq!(counts[0] as usize, world.posts.len());
    // The consistency checker reads some homes too.
    assert!(world.reads as u64 > counts[1], "{} reads, {counts:?}", world.reads);
    for Post { author, text, .. } in &world.posts {
        assert!(*author < 500);
        for word in text.split('@').skip(1) {
            let end =
                word.find(|letter: char| !letter.is_ascii_alphanumeric()).unwrap_or(word.len());
            assert!(world.ids.contains_key(&word[..end]), "{text}");
        }
    }

    assert!(out.contains("requested   achieved") && out.contains("no errors"), "{out}");
    let written = serde_json::to_value(&summary).unwrap();
    assert_eq!(written["users"], 500);
    assert_eq!(written["follows"], population.follows());
    assert_eq!(written["kinds"][0]["count"], counts[0]);
    let correctness = summary.correctness.expect("timelines are looked at");
    assert_eq!((correctness.faults(), correctness.readers), (0, 200), "{correctness:?}");
    assert!(summary.delivery.is_some_and(|delivery| delivery.samples > 0), "{out}");
}

#[tokio::test]
async fn faults_of_a_server_are_found() {
    let check = async |fault: Fault, of: fn(&Correctness) -> u64| {
        let (target, world) = serve().await;
        lock(&world).fault = Some(fault);
        // A few users post much, so that every post has followers.
        let options = SimulateOptions { making: Making::of(30, 4), ..options(target) };
        let (summary, out) = run_as(options, &Drive { rate: Some(500.0), ..drive() }).await;
        let correctness = summary.expect("a simulation").correctness.expect("a look");
        assert!(of(&correctness) > 0 && !correctness.examples.is_empty(), "{out}");
    };
    check(Fault::ShowsTwice, |found| found.doubled).await;
    check(Fault::TurnsRound, |found| found.out_of_order).await;
    check(Fault::ShowsStrangers, |found| found.unexpected).await;
    check(Fault::LosesEveryThird, |found| found.missing).await;
}

#[tokio::test]
async fn a_simulation_of_stories_makes_friends_and_posts_expired_stories_again() {
    let (target, world) = serve().await;
    let options = SimulateOptions {
        making: Making::of(100, 4),
        feed: None,
        stories: Some(stories()),
        ..options(target)
    };
    let (summary, out) = run(options).await;
    let summary = summary.expect("a simulation");
    assert_eq!(summary.error_count(), 0, "{out}");
    let mut world = world.lock().unwrap();

    let friends = Population::friends(100, 4, 4);
    let mut expected: Vec<(u64, u64)> = (0..100)
        .flat_map(|user| friends.following(user).iter().map(move |&o| (user.into(), o.into())))
        .filter(|(user, other)| user < other)
        .collect();
    expected.sort_unstable();
    world.friendships.sort_unstable();
    assert_eq!(world.friendships, expected);
    assert!(world.follows.is_empty() && world.posts.is_empty());

    let names: Vec<_> = summary.kinds.iter().map(|kind| kind.kind).collect();
    assert_eq!(names, ["story posts", "story homes", "story reads"]);
    let counts: Vec<u64> = summary.kinds.iter().map(|kind| kind.count).collect();
    assert!(counts.iter().all(|&count| count > 0), "{counts:?}");
    assert_eq!(world.stories.len() as u64, 300 + counts[0], "all are live, and are posted again");
    assert_eq!((counts[1] + counts[2]) as usize, world.reads);
    assert!(world.stories.iter().all(|&(user, life_s)| user < 100 && life_s == 1));
    assert!(
        out.contains("due per second: 300.0 stories (1 a request), 200.0 story homes"),
        "{out}"
    );
}

#[tokio::test]
async fn feed_and_stories_run_together_and_many_stories_go_in_one_request() {
    let (target, world) = serve().await;
    let story_load = StoryLoad { stories: 10, ..stories() };
    let (summary, out) =
        run(SimulateOptions { stories: Some(story_load), ..options(target) }).await;
    let summary = summary.expect("a simulation");
    assert_eq!((summary.error_count(), summary.kinds.len()), (0, 6), "{out}");
    let reported = summary.kinds.iter().find(|kind| kind.kind == "story posts").unwrap();
    assert!(reported.count > 0 && reported.count % 10 == 0, "ten a request: {}", reported.count);
    assert_eq!(world.lock().unwrap().stories.len() as u64, 5_000 + reported.count);
}

#[tokio::test]
async fn a_graph_from_a_file_is_loaded_in_both_directions() {
    let (target, world) = serve().await;
    let mut file = tempfile::NamedTempFile::new().unwrap();
    std::io::Write::write_all(&mut file, b"# three friends\n0 1\n1 2\n").unwrap();
    let graph = Some(file.path().to_owned());
    let (summary, _) = run(SimulateOptions { graph, ..options(target) }).await;
    assert_eq!(summary.expect("a simulation").users, 3);
    let mut world = world.lock().unwrap();
    world.follows.sort_unstable();
    assert_eq!(world.follows, [(0, 1), (1, 0), (1, 2), (2, 1)]);
}

#[tokio::test]
async fn what_prevents_a_simulation_is_reported() {
    let check = async |options: SimulateOptions, expect: &str| {
        let error = run(options).await.0.expect_err("no simulation");
        let source = std::error::Error::source(&error).map(ToString::to_string);
        let error = format!("{error}: {}", source.unwrap_or_default());
        assert!(error.contains(expect), "{error:?}");
    };
    let (target, _) = serve().await;
    check(SimulateOptions { key: None, ..options(target) }, "application key").await;
    check(
        SimulateOptions { making: Making::of(1, 4), ..options(target) },
        "2 to 10000000 users, not 1",
    )
    .await;
    let story_load = |story_load| SimulateOptions { stories: Some(story_load), ..options(target) };
    let friends = "1 to 400 friends, not 401";
    check(story_load(StoryLoad { friends: 401, ..stories() }), friends).await;
    check(story_load(StoryLoad { friends: 0, ..stories() }), "friends, not 0").await;
    check(story_load(StoryLoad { stories: 0, ..stories() }), "cannot have 0 stories").await;
    check(story_load(StoryLoad { stories: 200_001, ..stories() }), "cannot have").await;
    check(story_load(StoryLoad { life_s: 0, ..stories() }), "at least 1 s").await;
    check(
        SimulateOptions { graph: Some("no/such/file".into()), ..options(target) },
        "cannot read the graph",
    )
    .await;
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    // The server must be checked before a population is generated or read.
    let unread = SimulateOptions { graph: Some("no/such/file".into()), ..options(closed) };
    check(unread, "cannot use the server: connection: ").await;
}

#[tokio::test]
async fn a_server_with_users_is_refused_whatever_they_are_called() {
    for seed in [4, 5] {
        let (target, _) = serve().await;
        run(options(target)).await.0.expect("the first simulation");
        let (second, _) =
            run(SimulateOptions { making: Making::of(500, seed), ..options(target) }).await;
        assert!(matches!(second, Err(SimError::Server(LoadError::NotEmpty))), "{second:?}");
    }
}

#[tokio::test]
async fn a_simulation_cancelled_before_its_run_says_so() {
    let (target, _) = serve().await;
    let (_cancel, cancelled) = watch::channel(true);
    let outcome = simulate(options(target), &drive(), &mut Vec::new(), &mut [], cancelled).await;
    assert!(matches!(outcome, Err(SimError::Interrupted)), "{outcome:?}");
}

#[tokio::test]
async fn what_prevents_a_drive_is_reported() {
    let check = async |drive: Drive, expect: &str| {
        let (target, _) = serve().await;
        let (_cancel, cancelled) = watch::channel(false);
        let outcome = simulate(options(target), &drive, &mut Vec::new(), &mut [], cancelled).await;
        let error = outcome.expect_err("no drive").to_string();
        assert!(error.contains(expect), "{error:?}");
    };
    check(Drive { connections: 0, ..drive() }, "at least 1 connection").await;
    check(Drive { threads: 0, ..drive() }, "1 thread").await;
    for rate in [0.0, 1e-20, 1e12, f64::NAN] {
        check(Drive { rate: Some(rate), ..drive() }, "from 0.001 to 10 million").await;
    }
    let year = Duration::from_secs(1_000_000_000);
    check(Drive { duration: year, ..drive() }, "at most a year").await;
    check(Drive { flash: Some(year), ..drive() }, "after the end").await;
    check(Drive { rate: Some(5.0), closed: true, ..drive() }, "closed loop takes no rate").await;
}

/// Listener for TLS connections, with the fixture's certificate for `localhost`.
struct TlsListener {
    listener: TcpListener,
    acceptor: TlsAcceptor,
}

impl axum::serve::Listener for TlsListener {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, SocketAddr) {
        loop {
            let (stream, peer) = self.listener.accept().await.expect("a connection");
            drop(stream.set_nodelay(true));
            if let Ok(stream) = self.acceptor.accept(stream).await {
                return (stream, peer);
            }
        }
    }

    fn local_addr(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

fn fixture(name: &str) -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/tls").join(name)
}

async fn serve_encrypted() -> SocketAddr {
    let certificate = CertificateDer::from_pem_file(fixture("server.pem")).expect("a certificate");
    let key = PrivateKeyDer::from_pem_file(fixture("server.key")).expect("a key");
    let config = ServerConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions of TLS")
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .expect("a certificate with its key");
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("a bound socket");
    let listener = TlsListener { listener, acceptor: Arc::new(config).into() };
    let app = app(&Shared::default());
    tokio::spawn(async move { axum::serve(listener, app).await });
    address
}

#[tokio::test]
async fn a_server_is_driven_over_tls_if_its_certificate_is_right() {
    let address = serve_encrypted().await;
    let target = |name: &str, roots: Option<&str>| {
        let roots = roots.map(fixture);
        Target::new(address, "localhost").over_tls(name, roots.as_deref())
    };
    let right = target("localhost", Some("ca.pem")).unwrap();
    let (summary, out) = run(options(right)).await;
    let summary = summary.expect("a simulation");
    assert_eq!(summary.error_count(), 0, "{out}");
    assert!(summary.kinds.iter().any(|kind| kind.count > 0), "{out}");

    for wrong in [target("example.org", Some("ca.pem")), target("localhost", None)] {
        // On a system without certificate authorities, the target cannot be created.
        let Ok(wrong) = wrong else { continue };
        let (outcome, _) = run(options(wrong)).await;
        assert!(matches!(outcome, Err(SimError::Server(LoadError::Client(_)))), "{outcome:?}");
    }
    let plain = run(options(address)).await.0;
    assert!(matches!(plain, Err(SimError::Server(LoadError::Client(_)))), "{plain:?}");
    let file = target("localhost", Some("server.key"));
    assert!(matches!(file, Err(TlsError::File(_))), "{file:?}");
    assert!(matches!(target("no name", None), Err(TlsError::Name(_))));
}
