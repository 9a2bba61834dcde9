//! Live streams over real connections.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::task::{Context, Waker};
use std::time::Duration;

use edge::BlockingReads;
use feed::accounts::{AccountCommand, AccountState};
use feed::{Command, Draft, PostText, UserId, UserRef};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::sync::watch;

use crate::client::{ALL_SCOPES, Person, World};

/// Timeout that is reached only if the server hangs.
const PATIENCE: Duration = Duration::from_secs(60);

async fn connect(address: SocketAddr, path: &str, headers: &str) -> BufReader<TcpStream> {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    BufReader::new(stream)
}

async fn line(stream: &mut BufReader<TcpStream>) -> Option<String> {
    let mut line = String::new();
    let read = tokio::time::timeout(PATIENCE, stream.read_line(&mut line)).await.unwrap();
    (read.ok()? > 0).then(|| line.trim_end().to_owned())
}

/// Stream of server-sent events.
struct Events(BufReader<TcpStream>);

impl Events {
    async fn open(address: SocketAddr, channel: &str, person: &Person) -> Self {
        let headers = format!("Connection: close\r\nAuthorization: Bearer {}\r\n", person.token);
        let path = format!("/api/v1/streaming/{channel}");
        let mut stream = connect(address, &path, &headers).await;
        while let Some(line) = line(&mut stream).await {
            if line == ":connected" {
                return Self(stream);
            }
        }
        panic!("{channel} was not opened");
    }

    /// Next event and its data; `None` at the end.
    async fn next(&mut self) -> Option<(String, String)> {
        let mut event = None;
        loop {
            let line = line(&mut self.0).await?;
            if let Some(name) = line.strip_prefix("event: ") {
                event = Some(name.to_owned());
            } else if let Some(data) = line.strip_prefix("data: ") {
                return Some((event.unwrap(), data.to_owned()));
            }
        }
    }

    /// Name of the next event, and id of its entity.
    async fn entity(&mut self) -> (String, String) {
        let (event, data) = self.next().await.unwrap();
        let entity: Value = serde_json::from_str(&data).unwrap();
        let id = entity.get("id").map(|id| id.as_str().unwrap().to_owned());
        (event, id.unwrap_or(data))
    }
}

/// WebSocket.
struct Socket(BufReader<TcpStream>);

impl Socket {
    async fn open(address: SocketAddr, query: &str, headers: &str) -> Self {
        let headers = format!(
            "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
             Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n{headers}"
        );
        let path = format!("/api/v1/streaming{query}");
        let mut stream = connect(address, &path, &headers).await;
        let status = line(&mut stream).await.unwrap();
        assert!(status.contains(" 101 "), "{status}");
        while !line(&mut stream).await.unwrap().is_empty() {}
        Self(stream)
    }

    /// Sends a text of at most 125 bytes.
    async fn send(&mut self, text: &str) {
        // A mask of zeros changes no byte.
        let head = [0x81, 0x80 | text.len() as u8, 0, 0, 0, 0];
        let stream = self.0.get_mut();
        stream.write_all(&[&head, text.as_bytes()].concat()).await.unwrap();
    }

    async fn bytes(&mut self, count: usize) -> Option<Vec<u8>> {
        let mut bytes = vec![0; count];
        let read = tokio::time::timeout(PATIENCE, self.0.read_exact(&mut bytes)).await.unwrap();
        read.ok().map(|_| bytes)
    }

    /// Next text; `None` at the end, which must be announced.
    async fn next(&mut self) -> Option<Value> {
        loop {
            let head = self.bytes(2).await.expect("the end is announced");
            let length = match head[1] {
                126 => {
                    let length = self.bytes(2).await?;
                    usize::from(length[0]) << 8 | usize::from(length[1])
                }
                127 => panic!("the frame is too long"),
                length => usize::from(length),
            };
            let bytes = self.bytes(length).await?;
            match head[0] & 15 {
                1 => return Some(serde_json::from_slice(&bytes).unwrap()),
                8 => {
                    assert!(bytes.len() > 2, "the reason is missing");
                    return None;
                }
                _ => {}
            }
        }
    }
}

#[tokio::test]
async fn a_user_gets_posts_mentions_edits_and_deletions() {
    let world = World::new();
    let [ada, bob, eve] = world.people(["ada", "bob", "eve"]).await;
    ada.does(&world, "follow", &bob).await;
    let address = world.listen().await;
    let mut user = Events::open(address, "user", &ada).await;
    let mut notified = Events::open(address, "user/notification", &ada).await;
    let one = bob.post(&world, "one").await;
    assert_eq!(user.entity().await, ("update".into(), one.clone()));
    let two = eve.post(&world, "hello @ada").await;
    assert_eq!(user.entity().await, ("notification".into(), two.clone()));
    bob.call(&world, "PUT", &format!("/api/v1/statuses/{one}"), &[("status", "other")]).await;
    assert_eq!(user.entity().await, ("status.update".into(), one.clone()));
    bob.call(&world, "DELETE", &format!("/api/v1/statuses/{one}"), &[]).await;
    assert_eq!(user.entity().await, ("delete".into(), one));
    let three = bob.post(&world, "@ada both").await;
    assert_eq!(user.entity().await, ("update".into(), three.clone()));
    assert_eq!(user.entity().await, ("notification".into(), three.clone()));
    assert_eq!(notified.entity().await, ("notification".into(), two));
    assert_eq!(notified.entity().await, ("notification".into(), three));
}

#[tokio::test]
async fn the_channel_of_conversations_has_direct_posts_of_and_for_the_user() {
    let world = World::new();
    let [ada, bob] = world.people(["ada", "bob"]).await;
    ada.does(&world, "follow", &bob).await;
    let address = world.listen().await;
    let mut direct = Events::open(address, "direct", &ada).await;
    let mut user = Events::open(address, "user", &ada).await;
    let mut first = None;
    for (author, text, visibility, unread) in [
        (&bob, "public @ada", "public", None),
        (&bob, "one @ada", "direct", Some(true)),
        (&ada, "two @bob", "direct", Some(false)),
    ] {
        let mut fields = vec![("status", text), ("visibility", visibility)];
        fields.extend(first.as_deref().map(|first| ("in_reply_to_id", first)));
        let status = author.call(&world, "POST", "/api/v1/statuses", &fields).await;
        assert_eq!(user.next().await.unwrap().0, "update");
        if author.id == bob.id {
            assert_eq!(user.next().await.unwrap().0, "notification");
        }
        let Some(unread) = unread else { continue };
        let first = first.get_or_insert_with(|| status["id"].as_str().unwrap().to_owned());
        let (event, data) = direct.next().await.unwrap();
        let data: Value = serde_json::from_str(&data).unwrap();
        assert_eq!((event.as_str(), &data["unread"]), ("conversation", &json!(unread)));
        assert_eq!((&data["id"], &data["last_status"]["id"]), (&json!(first), &status["id"]));
        assert_eq!(data["accounts"][0]["acct"], "bob");
    }
}

#[tokio::test]
async fn a_stream_has_nothing_of_whom_a_block_or_a_mute_hides() {
    let world = World::new();
    let [ada, bob, eve, max] = world.people(["ada", "bob", "eve", "max"]).await;
    bob.does(&world, "block", &ada).await;
    ada.does(&world, "mute", &eve).await;
    let address = world.listen().await;
    let mut all = Events::open(address, "public", &ada).await;
    let mut own = Events::open(address, "user", &ada).await;
    for (person, text) in [(&bob, "hidden @ada"), (&eve, "muted @ada"), (&max, "hello @ada")] {
        let post = person.post(&world, text).await;
        if text.starts_with("hello") {
            assert_eq!(all.entity().await, ("update".into(), post.clone()));
            assert_eq!(own.entity().await, ("notification".into(), post));
        }
    }
}

#[tokio::test]
async fn a_stream_has_posts_of_which_the_user_wants_to_be_notified() {
    let world = World::new();
    let [ada, bob, eve] = world.people(["ada", "bob", "eve"]).await;
    let path = format!("/api/v1/accounts/{}/follow", bob.id);
    ada.call(&world, "POST", &path, &[("notify", "true")]).await;
    ada.does(&world, "follow", &eve).await;
    let address = world.listen().await;
    let mut own = Events::open(address, "user", &ada).await;
    let mut notified = Events::open(address, "user/notification", &ada).await;
    eve.post(&world, "no notification").await;
    let post = bob.post(&world, "one").await;
    let (event, data) = notified.next().await.unwrap();
    let data: Value = serde_json::from_str(&data).unwrap();
    assert_eq!((event.as_str(), &data["type"]), ("notification", &json!("status")));
    assert_eq!(data["status"]["id"], json!(post));
    own.entity().await;
    assert_eq!(own.entity().await, ("update".into(), post.clone()));
    assert_eq!(own.entity().await, ("notification".into(), post));
}

#[tokio::test]
async fn a_socket_has_the_channels_that_it_subscribes_to() {
    let world = World::new();
    let [ada, bob] = world.people(["ada", "bob"]).await;
    let address = world.listen().await;
    let query = format!("?access_token={}&stream=public:local", ada.token);
    let mut socket = Socket::open(address, &query, "").await;
    // The server answers this message only after it has read the request for the first channel.
    socket.send("{\"type\":\"subscribe\",\"stream\":\"nothing\"}").await;
    let error = json!({"error": "Unknown stream type", "status": 400});
    assert_eq!(socket.next().await, Some(error.clone()));
    let one = bob.post(&world, "one").await;
    let frame = socket.next().await.unwrap();
    assert_eq!((&frame["stream"], &frame["event"]), (&json!(["public:local"]), &json!("update")));
    let status: Value = serde_json::from_str(frame["payload"].as_str().unwrap()).unwrap();
    assert_eq!(status["id"], one.as_str());
    for text in [
        "{\"type\":\"unsubscribe\",\"stream\":\"public:local\"}",
        "{\"type\":\"subscribe\",\"stream\":\"user\"}",
        "{\"type\":\"subscribe\",\"stream\":\"hashtag\",\"tag\":\"x\"}",
        "no JSON",
    ] {
        socket.send(text).await;
    }
    assert_eq!(socket.next().await, Some(error));
    bob.post(&world, "two").await;
    let three = bob.post(&world, "@ada three").await;
    let frame = socket.next().await.unwrap();
    assert_eq!(frame["stream"], json!(["user"]));
    assert!(frame["payload"].as_str().unwrap().contains(&three), "{frame}");
    // Browsers send the token as the protocol.
    for path in ["?stream=nothing", "/?stream=nothing"] {
        let protocol = format!("Sec-WebSocket-Protocol: {}, other\r\n", bob.token);
        let mut other = Socket::open(address, path, &protocol).await;
        assert!(other.next().await.unwrap()["error"].is_string());
    }
}

#[tokio::test]
async fn the_channel_of_a_hashtag_has_public_posts_with_it_and_replies() {
    let world = World::new();
    let [ada, bob] = world.people(["ada", "bob"]).await;
    let question = ada.post(&world, "a question").await;
    let address = world.listen().await;
    let query = format!("?access_token={}&stream=hashtag&tag=Rust", ada.token);
    let mut socket = Socket::open(address, &query, "").await;
    for text in [
        "{\"type\":\"subscribe\",\"stream\":\"hashtag:local\",\"tag\":\"go\"}",
        "{\"type\":\"subscribe\",\"stream\":\"public\"}",
        "{\"type\":\"subscribe\",\"stream\":\"hashtag\"}",
    ] {
        socket.send(text).await;
    }
    let error = json!({"error": "Unknown stream type", "status": 400});
    assert_eq!(socket.next().await, Some(error));
    let parent = ada.post(&world, "parent").await;
    let mut expect = vec![(json!(["public"]), parent.clone())];
    let reply = bob.reply(&world, &parent, "@ada #rust").await;
    expect.push((json!(["hashtag", "Rust"]), reply));
    for (text, channels) in [
        ("plain", vec![json!(["public"])]),
        ("#rust", vec![json!(["hashtag", "Rust"]), json!(["public"])]),
        ("#GO", vec![json!(["hashtag:local", "go"]), json!(["public"])]),
    ] {
        let post = match text.strip_prefix("@ada") {
            Some(text) => bob.reply(&world, &question, text).await,
            None => bob.post(&world, text).await,
        };
        expect.extend(channels.into_iter().map(|channel| (channel, post.clone())));
    }
    let mut found = Vec::new();
    while found.len() < expect.len() {
        let frame = socket.next().await.unwrap();
        let status: Value = serde_json::from_str(frame["payload"].as_str().unwrap()).unwrap();
        found.push((frame["stream"].clone(), status["id"].as_str().unwrap().to_owned()));
    }
    // Posts that arrive together are sent channel by channel.
    let key = |frame: &(Value, String)| (frame.1.clone(), frame.0.to_string());
    found.sort_by_key(key);
    expect.sort_by_key(key);
    assert_eq!(found, expect);
    // Another spelling of the hashtag names the same channel.
    for text in [
        "{\"type\":\"subscribe\",\"stream\":\"hashtag\",\"tag\":\"rUST\"}",
        "{\"type\":\"unsubscribe\",\"stream\":\"hashtag:local\",\"tag\":\"GO\"}",
        "{\"type\":\"unsubscribe\",\"stream\":\"public\"}",
        "{\"type\":\"subscribe\",\"stream\":\"hashtag\"}",
    ] {
        socket.send(text).await;
    }
    assert_eq!(socket.next().await.unwrap()["status"], 400);
    bob.post(&world, "#go").await;
    let (first, second) = (bob.post(&world, "#rust").await, bob.post(&world, "#rust").await);
    for post in [first, second] {
        let frame = socket.next().await.unwrap();
        assert_eq!((&frame["stream"], post_of(&frame)), (&json!(["hashtag", "Rust"]), post));
    }
}

#[tokio::test]
async fn edits_and_deletions_reach_the_channels_that_have_the_post() {
    let world = World::new();
    let [ada, bob, eve] = world.people(["ada", "bob", "eve"]).await;
    ada.does(&world, "mute", &eve).await;
    let address = world.listen().await;
    let (mut all, mut tagged) = (
        Events::open(address, "public/local", &ada).await,
        Events::open(address, "hashtag?tag=x", &ada).await,
    );
    let followers = [("status", "#x"), ("visibility", "private")];
    let hidden = bob.call(&world, "POST", "/api/v1/statuses", &followers).await;
    let hidden = hidden["id"].as_str().unwrap().to_owned();
    let muted = eve.post(&world, "#x").await;
    let post = bob.post(&world, "#x").await;
    for (author, id) in [(&bob, &hidden), (&eve, &muted), (&bob, &post)] {
        let path = format!("/api/v1/statuses/{id}");
        author.call(&world, "PUT", &path, &[("status", "other #x")]).await;
        author.call(&world, "DELETE", &path, &[]).await;
    }
    let last = bob.post(&world, "last #x").await;
    for events in [&mut all, &mut tagged] {
        let mut found = Vec::new();
        while found.last().is_none_or(|(_, id)| *id != last) {
            found.push(events.entity().await);
        }
        // The post and its edit may be deleted before they are read.
        let delete = ("delete".to_owned(), post.clone());
        assert_eq!(found.iter().filter(|event| **event == delete).count(), 1, "{found:?}");
        assert!(found.iter().all(|(_, id)| [&post, &last].contains(&id)), "{found:?}");
    }
    let path = format!("/api/v1/statuses/{last}");
    bob.call(&world, "PUT", &path, &[("status", "edited #x")]).await;
    for events in [&mut all, &mut tagged] {
        let (event, data) = events.next().await.unwrap();
        let data: Value = serde_json::from_str(&data).unwrap();
        assert_eq!((event.as_str(), &data["id"]), ("status.update", &json!(last)));
        assert!(data["content"].as_str().unwrap().contains("edited"));
    }
}

#[tokio::test]
async fn channels_of_pictures_have_posts_with_pictures_alone() {
    let world = World::new();
    let [ada, bob] = world.people(["ada", "bob"]).await;
    let address = world.listen().await;
    let mut streams = Vec::new();
    for channel in [
        "public/media",
        "public/local/media",
        "public?only_media=true",
        "public/local?only_media=1",
    ] {
        streams.push(Events::open(address, channel, &ada).await);
    }
    let query = format!("?access_token={}&stream=public&only_media=true", ada.token);
    let mut socket = Socket::open(address, &query, "").await;
    let local = json!({"type": "subscribe", "stream": "public:local", "only_media": true});
    socket.send(&local.to_string()).await;
    socket.send("{\"type\":\"subscribe\",\"stream\":\"user\",\"only_media\":true}").await;
    assert_eq!(socket.next().await.unwrap()["status"], 400, "home has no such channel");
    bob.post(&world, "text alone").await;
    let picture = bob.picture(&world, 1).await;
    let fields = [("status", "picture"), ("media_ids[]", picture.as_str())];
    let status = bob.call(&world, "POST", "/api/v1/statuses", &fields).await;
    let id = status["id"].as_str().unwrap().to_owned();
    for events in &mut streams {
        assert_eq!(events.entity().await, ("update".to_owned(), id.clone()));
    }
    for channel in ["public:media", "public:local:media"] {
        let frame = socket.next().await.unwrap();
        assert_eq!((&frame["stream"], post_of(&frame)), (&json!([channel]), id.clone()));
    }
}

#[tokio::test]
async fn the_posts_of_a_burst_are_complete_and_in_order() {
    const POSTS: u64 = 500;
    let world = World::new();
    let [ada, bob] = world.people(["ada", "bob"]).await;
    let address = world.listen().await;
    let mut events = Events::open(address, "public/local", &ada).await;
    let bob = UserRef::Id(UserId(bob.id.parse().unwrap()));
    let publish = (0..POSTS).map(|number| {
        let text = PostText::parse(&format!("post {number}")).unwrap();
        let command = Command::Publish(Box::new(Draft::new(bob.clone(), text)));
        world.node.submit(command.into())
    });
    for submitted in futures_util::future::join_all(publish).await {
        submitted.unwrap().outcome.unwrap();
    }
    for number in 0..POSTS {
        let (event, data) = events.next().await.unwrap();
        let data: Value = serde_json::from_str(&data).unwrap();
        let text = format!("<p>post {number}</p>");
        assert_eq!((event.as_str(), &data["content"]), ("update", &json!(text)));
    }
}

#[tokio::test]
async fn a_user_gets_posts_with_followed_hashtags_once_and_no_others() {
    let world = World::new();
    let [ada, bob, eve, max] = world.people(["ada", "bob", "eve", "max"]).await;
    ada.does(&world, "follow", &bob).await;
    ada.does(&world, "mute", &max).await;
    ada.call(&world, "POST", "/api/v1/tags/rust/follow", &[]).await;
    let address = world.listen().await;
    let mut user = Events::open(address, "user", &ada).await;
    let mut notified = Events::open(address, "user/notification", &ada).await;
    for (person, text) in [(&eve, "#go"), (&max, "#rust"), (&eve, "#rust"), (&bob, "#rust")] {
        let post = person.post(&world, text).await;
        if text == "#rust" && person.id != max.id {
            assert_eq!(user.entity().await, ("update".into(), post));
        }
    }
    let post = eve.post(&world, "@ada #rust").await;
    assert_eq!(user.entity().await, ("update".into(), post.clone()));
    assert_eq!(user.entity().await, ("notification".into(), post.clone()));
    assert_eq!(notified.entity().await, ("notification".into(), post));
    ada.call(&world, "POST", "/api/v1/tags/go/follow", &[]).await;
    ada.call(&world, "POST", "/api/v1/tags/rust/unfollow", &[]).await;
    for (text, is_at_home) in [("#rust", false), ("#go", true)] {
        let post = eve.post(&world, text).await;
        if is_at_home {
            assert_eq!(user.entity().await, ("update".into(), post));
        }
    }
}

/// Id of the post in a frame.
fn post_of(frame: &Value) -> String {
    let payload = frame["payload"].as_str().unwrap();
    let entity = serde_json::from_str(payload).ok().filter(Value::is_object);
    entity.map_or(payload.to_owned(), |entity| entity["id"].as_str().unwrap().to_owned())
}

#[tokio::test]
async fn what_users_do_themselves_ends_no_stream_and_is_applied_to_it() {
    let world = World::new();
    let [ada, bob, eve] = world.people(["ada", "bob", "eve"]).await;
    ada.does(&world, "follow", &bob).await;
    let address = world.listen().await;
    let query = format!("?access_token={}&stream=user", ada.token);
    let mut socket = Socket::open(address, &query, "").await;
    socket.send("{\"type\":\"subscribe\",\"stream\":\"public\"}").await;
    socket.send("{\"type\":\"subscribe\",\"stream\":\"none\"}").await;
    assert_eq!(socket.next().await.unwrap()["status"], 400);
    let account = |what: &str| format!("/api/v1/accounts/{}/{what}", eve.id);
    // Each row is a change by the user, and the number of channels on which eve's next post then arrives.
    for (path, channels) in [
        (account("follow"), 2),
        (account("unfollow"), 1),
        (account("follow"), 2),
        (account("mute"), 0),
        (account("unmute"), 2),
        ("/api/v1/tags/rust/follow".to_owned(), 2),
        ("/api/v1/tags/rust/unfollow".to_owned(), 2),
        (account("block"), 0),
        (account("unblock"), 1),
        ("/api/v1/tags/x/follow".to_owned(), 2),
    ] {
        ada.call(&world, "POST", &path, &[]).await;
        let other = eve.post(&world, "#x").await;
        let post = bob.post(&world, "y").await;
        let (mut of_other, mut of_bob) = (0, 0);
        while of_other < channels || of_bob < 2 {
            let frame = socket.next().await.unwrap_or_else(|| panic!("the end after {path}"));
            let id = post_of(&frame);
            of_other += usize::from(id == other);
            of_bob += usize::from(id == post);
        }
        assert_eq!(of_other, channels, "{path}");
    }
    // Changes by other users make no difference.
    eve.does(&world, "block", &ada).await;
    let post = bob.post(&world, "z").await;
    assert_eq!(post_of(&socket.next().await.unwrap()), post);
}

#[tokio::test]
async fn the_number_of_channels_of_a_socket_is_bounded() {
    let world = World::new();
    let [ada] = world.people(["ada"]).await;
    let address = world.listen().await;
    let mut socket = Socket::open(address, &format!("?access_token={}", ada.token), "").await;
    for number in 0..=12 {
        let text = json!({"type": "subscribe", "stream": "hashtag", "tag": format!("t{number}")});
        socket.send(&text.to_string()).await;
    }
    let error = json!({"error": "Too many channels", "status": 422});
    assert_eq!(socket.next().await, Some(error));
}

#[tokio::test]
async fn a_channel_needs_its_scope() {
    let world = World::new();
    let [ada] = world.people(["ada"]).await;
    let app = world.app_with(ALL_SCOPES).await;
    let mut browser = world.signed_up("bob").await;
    let statuses = app.user_token(&world, &mut browser, "read:statuses").await;
    let notifications = app.user_token(&world, &mut browser, "read:notifications").await;
    for (channel, token, expect) in [
        ("user", &statuses, 200),
        ("public", &statuses, 200),
        ("user/notification", &statuses, 403),
        ("user", &notifications, 403),
        ("public", &notifications, 403),
        ("user/notification", &notifications, 200),
    ] {
        let got = world.begin(&format!("/api/v1/streaming/{channel}"), token).await;
        assert_eq!(got.status().as_u16(), expect, "{channel}");
    }
    let address = world.listen().await;
    let query = format!("?access_token={notifications}&stream=user");
    let mut socket = Socket::open(address, &query, "").await;
    assert_eq!(socket.next().await.unwrap()["status"], 403);
    socket.send("{\"type\":\"subscribe\",\"stream\":\"user:notification\"}").await;
    socket.send("{\"type\":\"subscribe\",\"stream\":\"public\"}").await;
    assert_eq!(socket.next().await.unwrap()["status"], 403);
    ada.post(&world, "hello @bob").await;
    let frame = socket.next().await.unwrap();
    assert_eq!(
        (&frame["stream"], &frame["event"]),
        (&json!(["user:notification"]), &json!("notification"))
    );
}

#[tokio::test]
async fn a_stream_ends_when_its_token_is_not_valid_any_more() {
    let world = World::new();
    let [ada, bob] = world.people(["ada", "bob"]).await;
    let address = world.listen().await;
    let mut events = Events::open(address, "public", &ada).await;
    let mut socket =
        Socket::open(address, &format!("?access_token={}&stream=user", ada.token), "").await;
    let (user, state) = (UserRef::Id(UserId(0)), AccountState::Disabled);
    let disable = Command::Account(AccountCommand::SetState { user, state });
    world.node.submit(disable.into()).await.unwrap().outcome.unwrap();
    assert_eq!(socket.next().await, None);
    // The stream ends before a keep-alive message is due, although no event arrives.
    while let Some(line) = line(&mut events.0).await {
        assert_ne!(line, ":thump");
    }
    let path = "/api/v1/streaming/public";
    assert_eq!(world.begin(path, &ada.token).await.status().as_u16(), 401);
    assert_eq!(world.begin(path, &bob.token).await.status().as_u16(), 200);
}

#[tokio::test]
async fn a_stream_on_which_nothing_happens_ends_within_a_second_of_the_revocation() {
    let world = World::new();
    let [ada] = world.people(["ada"]).await;
    let mut streams = Vec::new();
    for channel in ["public", "user"] {
        let path = format!("/api/v1/streaming/{channel}");
        let mut body = world.begin(&path, &ada.token).await.into_body();
        drop(body.frame().await.unwrap().unwrap());
        streams.push(body);
    }
    // From here on the clock advances from timer to timer.
    tokio::time::pause();
    for body in &mut streams {
        let next = tokio::time::timeout(Duration::from_secs(5), body.frame()).await;
        assert!(next.is_err(), "it continues while the token is valid");
    }
    tokio::time::resume();
    let (user, state) = (UserRef::Id(UserId(0)), AccountState::Disabled);
    let disable = Command::Account(AccountCommand::SetState { user, state });
    world.node.submit(disable.into()).await.unwrap().outcome.unwrap();
    tokio::time::pause();
    let start = tokio::time::Instant::now();
    for body in &mut streams {
        assert!(body.frame().await.unwrap().is_err(), "it breaks off");
    }
    assert!(start.elapsed() <= Duration::from_secs(1), "{:?}", start.elapsed());
}

#[tokio::test]
async fn a_stream_outlives_the_revocation_of_another_token_on_a_busy_server() {
    let reads = BlockingReads::new(1);
    let world = World::with(|options| options.reads = reads.clone());
    let [ada, bob] = world.people(["ada", "bob"]).await;
    let address = world.listen().await;
    let mut events = Events::open(address, "public", &ada).await;
    let (user, state) = (UserRef::Id(UserId(1)), AccountState::Disabled);
    let disable = Command::Account(AccountCommand::SetState { user, state });
    world.node.submit(disable.into()).await.unwrap().outcome.unwrap();
    // From here on, every cached token must be looked up again, and no read of a request is admitted.
    let (done, wait) = std::sync::mpsc::channel::<()>();
    let wait = Arc::new(Mutex::new(wait));
    let mut reading = Vec::new();
    loop {
        let wait = Arc::clone(&wait);
        let mut read = Box::pin(reads.run(move || wait.lock().unwrap().recv().is_err()));
        if read.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready() {
            break;
        }
        reading.push(read);
    }
    let text = PostText::parse("hello").unwrap();
    let publish = Command::Publish(Box::new(Draft::new(UserRef::Id(UserId(0)), text)));
    world.node.submit(publish.into()).await.unwrap().outcome.unwrap();
    assert_eq!(events.entity().await.0, "update");
    drop((done, bob));
}

#[tokio::test]
async fn a_stream_that_has_missed_changes_goes_on() {
    let world = World::new();
    let [ada, bob] = world.people(["ada", "bob"]).await;
    ada.does(&world, "follow", &bob).await;
    let mut posts = Vec::new();
    for number in 0..40 {
        posts.push(bob.post(&world, &number.to_string()).await);
    }
    let mut body = world.begin("/api/v1/streaming/user", &ada.token).await.into_body();
    assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), ":connected\n\n");
    // The client reads nothing while more changes are made than the node keeps.
    for post in &posts {
        bob.call(&world, "DELETE", &format!("/api/v1/statuses/{post}"), &[]).await;
    }
    let last = bob.post(&world, "last").await;
    let mut text = String::new();
    while !text.contains(&format!("\"id\":\"{last}\"")) {
        let frame = body.frame().await.expect("it does not end").unwrap();
        text.push_str(std::str::from_utf8(&frame.into_data().unwrap()).unwrap());
    }
    assert!(text.contains(&format!("event: delete\ndata: {}\n", posts[39])), "{text}");
}

#[tokio::test]
async fn a_slow_stream_of_all_posts_goes_on_with_the_newest() {
    let world = World::new();
    let [ada] = world.people(["ada"]).await;
    let address = world.listen().await;
    let mut slow = world.begin("/api/v1/streaming/public", &ada.token).await.into_body();
    drop(slow.frame().await.unwrap().unwrap());
    let mut reader = Events::open(address, "public", &ada).await;
    let mut last = String::new();
    // These are more events than the ring keeps.
    for _ in 0..80 {
        last = ada.post(&world, "x").await;
        assert_eq!(reader.entity().await.1, last);
    }
    let mut text = String::new();
    while !text.contains(&format!("\"id\":\"{last}\"")) {
        let frame = slow.frame().await.expect("it does not end").unwrap();
        text.push_str(std::str::from_utf8(&frame.into_data().unwrap()).unwrap());
    }
}

#[tokio::test]
async fn a_slow_stream_does_not_have_what_was_quoted_and_is_deleted_by_then() {
    let world = World::new();
    let [ada, bob] = world.people(["ada", "bob"]).await;
    let quoted = ada.post(&world, "xyzzy").await;
    let address = world.listen().await;
    let mut slow = world.begin("/api/v1/streaming/public", &ada.token).await.into_body();
    drop(slow.frame().await.unwrap().unwrap());
    let mut reader = Events::open(address, "public", &ada).await;
    let quote = [("status", "look"), ("quoted_status_id", quoted.as_str())];
    let quote = bob.call(&world, "POST", "/api/v1/statuses", &quote).await;
    let (_, data) = reader.next().await.unwrap();
    assert!(data.contains("xyzzy"), "{data}");
    ada.call(&world, "DELETE", &format!("/api/v1/statuses/{quoted}"), &[]).await;
    let mut text = String::new();
    while !text.contains(&format!("\"id\":{}", quote["id"])) {
        let frame = slow.frame().await.expect("it does not end").unwrap();
        text.push_str(std::str::from_utf8(&frame.into_data().unwrap()).unwrap());
    }
    assert!(text.contains("deleted") && !text.contains("xyzzy"), "{text}");
}

#[tokio::test]
async fn a_post_of_all_users_mentions_nobody_whom_a_block_hides() {
    let world = World::new();
    let [ada, bob, eve] = world.people(["ada", "bob", "eve"]).await;
    ada.does(&world, "block", &bob).await;
    let address = world.listen().await;
    let (mut one, mut other) =
        (Events::open(address, "public", &ada).await, Events::open(address, "public", &eve).await);
    eve.post(&world, "hello @bob").await;
    for (stream, mentions) in [(&mut one, 0), (&mut other, 1)] {
        let status: Value = serde_json::from_str(&stream.next().await.unwrap().1).unwrap();
        assert_eq!(status["mentions"].as_array().unwrap().len(), mentions, "{status}");
    }
}

#[tokio::test]
async fn messages_of_a_client_do_not_hold_up_its_events() {
    const MESSAGES: usize = 5_000;
    let world = World::new();
    let [ada, bob] = world.people(["ada", "bob"]).await;
    ada.does(&world, "follow", &bob).await;
    let address = world.listen().await;
    let query = format!("?access_token={}&stream=user", ada.token);
    let mut socket = Socket::open(address, &query, "").await;
    let post = bob.post(&world, "hello").await;
    // The server answers each message.
    for _ in 0..MESSAGES {
        socket.send("{}").await;
    }
    let mut answers = 0;
    let frame = loop {
        let frame = socket.next().await.unwrap();
        if frame.get("event").is_some() {
            break frame;
        }
        answers += 1;
    };
    assert!(frame["payload"].as_str().unwrap().contains(&post), "{frame}");
    assert!(answers < MESSAGES, "the event came after the answers");
}

#[tokio::test]
async fn streams_end_when_the_server_stops() {
    let (closing, closed) = watch::channel(false);
    let world = World::with(|options| options.closing = Some(closed));
    let [ada] = world.people(["ada"]).await;
    let address = world.listen().await;
    let mut events = Events::open(address, "user", &ada).await;
    closing.send_replace(true);
    assert_eq!(events.next().await, None);
}

#[tokio::test]
async fn a_user_has_a_bounded_number_of_streams() {
    let world = World::new();
    let [ada, bob] = world.people(["ada", "bob"]).await;
    let mut open = Vec::new();
    for _ in 0..32 {
        open.push(world.begin("/api/v1/streaming/user", &ada.token).await);
        assert_eq!(open.last().unwrap().status().as_u16(), 200);
    }
    let begin = async |person: &Person| {
        world.begin("/api/v1/streaming/direct", &person.token).await.status().as_u16()
    };
    let refused = world.begin("/api/v1/streaming/direct", &ada.token).await;
    assert_eq!(refused.status().as_u16(), 429);
    assert_eq!(refused.headers()["retry-after"], "5");
    assert_eq!(begin(&bob).await, 200);
    drop(open.pop());
    assert_eq!(begin(&ada).await, 200);
}

#[tokio::test]
async fn unknown_channels_are_refused_and_others_are_silent() {
    let world = World::new();
    let [ada] = world.people(["ada"]).await;
    for (channel, expect) in [
        ("public", 200),
        ("public/local", 200),
        ("public/remote", 200),
        ("hashtag?tag=x", 200),
        ("hashtag/local?tag=x", 200),
        ("hashtag", 400),
        ("hashtag?tag=-", 400),
        ("list?list=1", 200),
        ("list?list=2", 404),
        ("list", 400),
        ("list?list=x", 400),
        ("public/local?only_media=true", 200),
        ("public/remote?only_media=true", 200),
        ("hashtag?tag=x&only_media=true", 400),
        ("user?only_media=true", 400),
        ("user?only_media=false", 200),
        ("direct", 200),
        ("health", 200),
        ("nothing", 400),
        ("user/nothing", 400),
        ("", 400),
        ("?stream=user", 200),
        ("?stream=nothing", 400),
    ] {
        let got = world.begin(&format!("/api/v1/streaming/{channel}"), &ada.token).await;
        assert_eq!(got.status().as_u16(), expect, "{channel}");
    }
    // A request without an upgrade to WebSocket is refused.
    let got = world.get("/api/v1/streaming", Some(&ada.token)).await;
    assert!(got.status.is_client_error(), "{got:?}");
}

#[tokio::test]
async fn a_list_has_the_posts_of_its_members_and_says_what_changes() {
    let world = World::new();
    let address = world.listen().await;
    let [ada, bob, cy] = world.people(["ada", "bob", "cy"]).await;
    for other in [&bob, &cy] {
        ada.does(&world, "follow", other).await;
    }
    let list = ada.call(&world, "POST", "/api/v1/lists", &[("title", "x")]).await;
    let list = list["id"].as_str().unwrap();
    let path = format!("/api/v1/lists/{list}/accounts");
    ada.call(&world, "POST", &path, &[("account_ids[]", &bob.id)]).await;
    let mut events = Events::open(address, &format!("list?list={list}"), &ada).await;
    let headers = format!("Authorization: Bearer {}\r\n", ada.token);
    let query = format!("?stream=list&list={list}");
    let mut socket = Socket::open(address, &query, &headers).await;
    let theirs = cy.post(&world, "not a member").await;
    bob.reply(&world, &theirs, "a reply to somebody else").await;
    let first = bob.post(&world, "first").await;
    assert_eq!(events.entity().await, ("update".to_owned(), first.clone()));
    let frame = socket.next().await.unwrap();
    assert_eq!((&frame["stream"], &frame["event"]), (&json!(["list", list]), &json!("update")));
    let path = format!("/api/v1/statuses/{first}");
    bob.call(&world, "PUT", &path, &[("status", "edited")]).await;
    assert_eq!(events.entity().await, ("status.update".to_owned(), first.clone()));
    bob.call(&world, "DELETE", &path, &[]).await;
    assert_eq!(events.next().await.unwrap(), ("delete".to_owned(), first));
    // A list of another user is refused like a missing one.
    cy.does(&world, "follow", &bob).await;
    let path = format!("/api/v1/streaming/list?list={list}");
    assert_eq!(world.begin(&path, &cy.token).await.status().as_u16(), 404);
    let mut other = Socket::open(address, "", &headers.replace(&ada.token, &cy.token)).await;
    for (list, status) in [(Some(list), 404), (Some("999999"), 404), (None, 400)] {
        let text = json!({"type": "subscribe", "stream": "list", "list": list}).to_string();
        other.send(&text).await;
        assert_eq!(other.next().await.unwrap()["status"], status, "{list:?}");
    }
    other.send(&json!({"type": "subscribe", "stream": "user"}).to_string()).await;
    other.send("{}").await;
    assert_eq!(other.next().await.unwrap()["status"], 400);
    let second = bob.post(&world, "second").await;
    let third = bob.post(&world, "third").await;
    for expect in [&second, &third] {
        let frame = other.next().await.unwrap();
        assert_eq!(frame["stream"], json!(["user"]));
        assert!(frame["payload"].as_str().unwrap().contains(expect.as_str()));
        assert_eq!(events.entity().await, ("update".to_owned(), expect.clone()));
    }
}

#[tokio::test]
async fn streams_mark_what_filters_match_and_say_when_these_change() {
    let world = World::new();
    let address = world.listen().await;
    let [ada, bob] = world.people(["ada", "bob"]).await;
    ada.does(&world, "follow", &bob).await;
    let headers = format!("Authorization: Bearer {}\r\n", ada.token);
    let mut events = Events::open(address, "user", &ada).await;
    let mut socket = Socket::open(address, "?stream=user", &headers).await;
    let mut public = Socket::open(address, "?stream=public", &headers).await;
    let fields = [("phrase", "word"), ("context[]", "home")];
    ada.call(&world, "POST", "/api/v1/filters", &fields).await;
    assert_eq!(events.next().await.unwrap(), ("filters_changed".to_owned(), "undefined".into()));
    let frame = socket.next().await.unwrap();
    assert_eq!(frame, json!({"stream": ["user"], "event": "filters_changed"}));
    bob.post(&world, "a word").await;
    let (_, payload) = events.next().await.unwrap();
    let of_socket = socket.next().await.unwrap();
    let of_public = public.next().await.unwrap();
    for payload in
        [&payload, of_socket["payload"].as_str().unwrap(), of_public["payload"].as_str().unwrap()]
    {
        let status: Value = serde_json::from_str(payload).unwrap();
        assert_eq!(status["filtered"][0]["keyword_matches"], json!(["word"]));
    }
}
