//! Pictures of posts, which are uploaded with the Mastodon API.

use feed::media::{Description, MediaChange, MediaId};
use feed::{Command, Content, Done, Draft, Patch, PostId, UserId, UserRef};
use media::Shape;
use node::{Request, Upload};
use serde_json::{Value, json};
use testkit::gif;
use tokio::runtime::{Builder, Runtime};

use crate::client::TestServer;

struct Subject {
    server: TestServer,
    runtime: Runtime,
}

impl Subject {
    fn new() -> Self {
        let server = TestServer::open();
        server.register(&["ada", "bob"]);
        Self { server, runtime: Builder::new_current_thread().build().unwrap() }
    }

    fn picture(&self, color: u8, description: &str) -> MediaId {
        let description = Description::parse(description).unwrap();
        let (file, shape) = (gif(color), Shape::Attachment);
        let upload = Upload { owner: UserId(0), file, shape, description, focus: None };
        self.runtime.block_on(self.server.node.upload(upload)).unwrap()
    }

    fn submit(&self, command: Command) -> Done {
        let request = Request::from(command);
        self.runtime.block_on(self.server.node.submit(request)).unwrap().outcome.unwrap()
    }

    fn publish(&self, media: Vec<MediaId>) -> PostId {
        let content = Content { media, ..Content::default() };
        let draft = Draft::of(UserRef::Id(UserId(0)), content);
        match self.submit(Command::Publish(Box::new(draft))) {
            Done::Posted(post) => post,
            other => panic!("{other:?}"),
        }
    }

    fn describe(&self, post: PostId, media: MediaId, description: &str) {
        let description = Some(Description::parse(description).unwrap());
        let described = vec![MediaChange { media, description, focus: None }];
        self.submit(Command::edit(post, Patch { described, ..Patch::default() }));
    }

    /// Reads the post alone, twice, and in a timeline, with equal results.
    fn read(&self, post: PostId) -> Value {
        let path = format!("/v1/posts/{}", post.0);
        let first = self.server.get(&path).json();
        assert_eq!(self.server.get(&path).json(), first, "from memory");
        let home = self.server.get("/v1/users/@bob/timeline").json();
        assert_eq!(home["items"][0], first, "at home");
        first
    }
}

#[test]
fn a_post_with_pictures_shows_them_and_others_have_no_field_for_them() {
    let it = Subject::new();
    it.server.send("PUT", "/v1/users/@bob/following/@ada", &[], b"");
    let plain = it.server.post("/v1/users/@ada/posts", &json!({"text": "x"})).json();
    assert_eq!(plain["media"], json!([]));
    let (one, two) = (it.picture(1, "a \"dot\""), it.picture(2, ""));
    let post = it.publish(vec![two, one]);
    let shown = it.read(post);
    assert_eq!(shown["text"], "");
    let [first, second] = shown["media"].as_array().unwrap().as_slice() else { panic!("{shown}") };
    assert_eq!((&first["width"], &first["description"]), (&json!(1), &json!("")));
    assert_eq!(second["description"], "a \"dot\"");
    assert!(!second["blurhash"].as_str().unwrap().is_empty());
    let key = it.server.node.facts().media(one).unwrap().key;
    let start = format!("/media/{}-{:032x}", one.0, u128::from_be_bytes(key.0));
    assert_eq!(second["url"], format!("{start}/original.png"));
    assert_eq!(second["preview_url"], format!("{start}/small.png"));
    it.describe(post, one, "two dots");
    assert_eq!(it.read(post)["media"][1]["description"], "two dots", "at once");
    let boost = format!("/v1/users/@bob/boosts/{}", post.0);
    it.server.send("PUT", &boost, &[], b"");
    let boosts = it.server.get("/v1/users/@bob/posts").json();
    assert_eq!(boosts["items"][0]["boost_of"]["media"][1]["description"], "two dots");
    assert_eq!(boosts["items"][0]["media"], json!([]));
}

#[test]
fn the_response_to_an_edit_has_the_longest_descriptions() {
    let it = Subject::new();
    let long = "\"\u{301}\u{301}".repeat(1_200);
    let media: Vec<_> = (0..4).map(|color| it.picture(color, &long)).collect();
    let post = it.publish(media);
    let path = it.server.own(&post.0.to_string());
    let edited = it.server.with_json("PATCH", &path, &[], &json!({"text": "x"}));
    assert_eq!(edited.status, 200, "{edited:?}");
    assert!(edited.body.len() > 24_000, "{}", edited.body.len());
    assert_eq!(edited.json()["media"][3]["description"], long);
}

#[test]
fn a_post_is_made_with_pictures_of_its_author_and_a_retry_makes_no_other() {
    let it = Subject::new();
    let long = "\"\u{301}\u{301}".repeat(1_200);
    let media: Vec<_> = (0..4).map(|color| it.picture(color, &long).0.to_string()).collect();
    let body = json!({"text": " ", "media_ids": media, "warning": "dots"});
    let path = "/v1/users/@ada/posts";
    let other = it.server.post("/v1/users/@bob/posts", &body);
    other.assert_error(422, "media_not_found", "pictures of another user");
    let keyed = [("Idempotency-Key", "k")];
    let posted = it.server.with_json("POST", path, &keyed, &body);
    assert_eq!(posted.status, 201, "{posted:?}");
    let post = posted.json();
    assert_eq!((&post["text"], &post["warning"]), (&json!(""), &json!("dots")));
    assert_eq!(post["media"].as_array().unwrap().len(), 4);
    let again = it.server.with_json("POST", path, &keyed, &body);
    assert_eq!((again.status, &again.json()["id"]), (201, &post["id"]));
    assert_eq!(again.header("idempotent-replayed"), Some("true"));
    it.server.post(path, &body).assert_error(422, "media_attached", "pictures of a post");
    for (ids, code) in [
        (&["1"][..], "media_not_found"),
        (&["x"], "media_not_found"),
        (&["1", "2", "3", "4", "5"], "too_many_media"),
        (&[], "bad_text"),
    ] {
        let body = json!({"text": "", "media_ids": ids});
        it.server.post(path, &body).assert_error(422, code, &format!("{ids:?}"));
    }
}
