//! Tests of what a user may do in `/v1` with a token, or in a browser after a log-in: every route with every kind of
//! reader, requests from other sites, and tokens and sessions that have ended.

mod browser;
mod tokens;

use std::collections::BTreeMap;
use std::io::{BufRead as _, Write as _};

use serde_json::{Value, json};

use crate::support::http::{Answer, Client, connect, number, read_head, request};
use crate::support::process::{Process, Server, roost, serve};
use browser::Browser;

const KEY: &str = "a-key-of-the-product";
/// Origin of the pages of the product.
const APP: &str = "https://app.example";

/// Server whose users have accounts. They must not see each other's private data.
struct World {
    data: tempfile::TempDir,
    server: Server,
    product: Client,
    users: BTreeMap<&'static str, (u64, String)>,
}

impl World {
    fn new() -> Self {
        let data = tempfile::tempdir().unwrap();
        let mut command = serve(data.path(), &["--durability", "never", "--allow-origin", APP]);
        let server = Server::start(command.env("ROOST_KEY", KEY));
        let product = Client::new(server.address, Some(KEY.to_owned()));
        let mut world = Self { data, server, product, users: BTreeMap::new() };
        for handle in ["ada", "bob", "eve"] {
            let password = world.account(&["create", handle]);
            let path = format!("/v1/users?handle={handle}");
            let id = number(&world.product.get(&path).expect(200).json()["items"][0]["id"]);
            world.users.insert(handle, (id, password));
        }
        world
    }

    fn id(&self, handle: &str) -> u64 {
        self.users[handle].0
    }

    /// Runs a command of `roost account`. Returns its output.
    fn account(&self, arguments: &[&str]) -> String {
        let mut command = roost(["account"]);
        let ended = Process::start(command.args(arguments).arg("--data").arg(self.data.path()));
        let ended = ended.ended();
        assert!(ended.status.success(), "{arguments:?}: {ended:#?}");
        ended.out.trim().to_owned()
    }

    fn log_in(&self, handle: &str) -> Browser {
        Browser::log_in(self.server.address, handle, &self.users[handle].1)
    }

    /// Registers a user without an account.
    fn register(&mut self, handle: &'static str) -> u64 {
        let user = self.product.post("/v1/users", &json!({"handle": handle})).expect(201).json();
        let id = number(&user["id"]);
        self.users.insert(handle, (id, String::new()));
        id
    }

    fn post(&mut self, author: &str, fields: &Value) -> u64 {
        let path = format!("/v1/users/@{author}/posts");
        number(&self.product.post(&path, fields).expect(201).json()["id"])
    }
}

/// Kinds of rights that users have on a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Open {
    /// The user's own data.
    Own,
    /// Data that the user may see.
    See,
    /// Posts that the user wrote.
    Author,
}

/// Routes that are open for users. The list is repeated here, so that opening a route needs two changes.
const OPEN: &str = "
    See    GET /v1/users
    See    GET /v1/users/{user}
    Own    PATCH /v1/users/{user}
    See    GET /v1/users/{user}/followers
    See    GET /v1/users/{user}/following
    Own    PUT DELETE /v1/users/{user}/following/{other}
    Own    GET /v1/users/{user}/follow_requests
    Own    PUT DELETE /v1/users/{user}/follow_requests/{other}
    Own    GET /v1/users/{user}/blocks
    Own    PUT DELETE /v1/users/{user}/blocks/{other}
    Own    GET /v1/users/{user}/mutes
    Own    PUT DELETE /v1/users/{user}/mutes/{other}
    Own    GET /v1/users/{user}/not_interested
    Own    PUT DELETE /v1/users/{user}/not_interested/{other}
    Own    GET /v1/users/{user}/relations/{other}
    See    GET /v1/users/{user}/posts
    Own    POST /v1/users/{user}/posts
    See    GET /v1/posts/{id}
    Author PATCH DELETE /v1/users/{user}/posts/{id}
    Own    DELETE /v1/users/{user}/stories/{id}
    See    GET /v1/posts/{id}/context
    See    GET /v1/posts/{id}/history
    See    GET /v1/posts/{id}/favourites
    See    GET /v1/posts/{id}/boosts
    See    GET /v1/posts/{id}/quotes
    Author DELETE /v1/users/{user}/quotes/{id}
    See    GET /v1/tags/{tag}/posts
    Own    GET /v1/users/{user}/favourites
    Own    PUT DELETE /v1/users/{user}/favourites/{id}
    Own    GET /v1/users/{user}/bookmarks
    Own    PUT DELETE /v1/users/{user}/bookmarks/{id}
    Own    GET /v1/users/{user}/less
    Own    PUT DELETE /v1/users/{user}/less/{id}
    Own    PUT DELETE /v1/users/{user}/boosts/{id}
    See    GET /v1/users/{user}/pins
    Own    PUT DELETE /v1/users/{user}/pins/{id}
    Own    GET /v1/users/{user}/reactions
    Own    GET DELETE /v1/users/{user}/notifications
    Own    DELETE /v1/users/{user}/notifications/{id}
    Own    GET /v1/users/{user}/timeline
    Own    GET /v1/users/{user}/mentions
    Own    GET /v1/users/{user}/feeds/{name}
    Own    POST /v1/users/{user}/seen
    Own    POST /v1/users/{user}/rank
    Own    GET /v1/users/{user}/events
    Own    GET /v1/users/{user}/friends
    Own    DELETE /v1/users/{user}/friends/{other}
    Own    POST /v1/users/{user}/stories
    See    GET /v1/users/{user}/stories
    Own    GET /v1/users/{user}/stories/{id}/views
    Own    GET /v1/users/{user}/timeline/stories
    Own    PUT /v1/users/{user}/viewed_stories/{id}
    See    GET /v1/stories/{id}
";

fn open() -> BTreeMap<(String, String), Open> {
    let mut found = BTreeMap::new();
    for line in OPEN.lines().filter(|line| !line.trim().is_empty()) {
        let words: Vec<_> = line.split_whitespace().collect();
        let (what, methods, path) = (words[0], &words[1..words.len() - 1], words[words.len() - 1]);
        let what = match what {
            "Own" => Open::Own,
            "See" => Open::See,
            "Author" => Open::Author,
            other => panic!("{other}"),
        };
        for method in methods {
            assert!(
                found.insert(((*method).to_owned(), path.to_owned()), what).is_none(),
                "{line}"
            );
        }
    }
    found
}

/// Every route of the API that needs a key, according to its OpenAPI document.
fn routes(product: &mut Client) -> Vec<(String, String)> {
    let described = product.get("/v1/openapi.json").expect(200).json();
    let paths = described["paths"].as_object().unwrap().iter();
    let routes = paths.flat_map(|(path, item)| {
        let methods = item.as_object().unwrap().iter();
        // Routes without security give everyone the same data.
        let closed = methods.filter(|(_, route)| route["security"] != json!([{}]));
        closed.map(|(method, _)| (method.to_uppercase(), path.clone())).collect::<Vec<_>>()
    });
    routes.collect()
}

/// Path with its parameters filled in.
fn filled(path: &str, user: u64, other: u64, post: u64) -> String {
    let post = post.to_string();
    path.replace("{user}", &user.to_string())
        .replace("{other}", &other.to_string())
        .replace("{id}", &post)
        .replace("{tag}", "tag")
        .replace("{name}", "for-you")
        .replace("{bucket}", "0")
        .replace("{key}", "key")
}

/// Code of an error; for a success, its status.
fn code(status: u16, body: &[u8]) -> String {
    let json: Value = serde_json::from_slice(body).unwrap_or_default();
    json["error"].as_str().map_or_else(|| status.to_string(), str::to_owned)
}

/// Function that sends requests of a user.
type Send<'a> = dyn FnMut(&str, &str, Option<&Value>) -> Answer + 'a;

/// Checks every route with requests of a user who has these scopes and wrote a post. Returns the number of requests.
fn check_routes(
    world: &mut World,
    me: &'static str,
    scopes: &[&str],
    send: &mut Send<'_>,
) -> usize {
    let [ada, bob, eve] = [me, "bob", "eve"].map(|handle| world.id(handle));
    let own = world.post(me, &json!({"text": "mine"}));
    let others = world.post("bob", &json!({"text": "not mine"}));
    let open = open();
    let routes = routes(&mut world.product);
    assert!(routes.len() > 75, "{routes:?}");
    for known in open.keys() {
        assert!(routes.contains(known), "{known:?} is no route");
    }
    let mut checked = 0;
    for (method, path) in routes {
        let rule = open.get(&(method.clone(), path.clone())).copied();
        // Leave out deletions of posts, because other routes need the posts, and streams, because they do not end.
        let is_left =
            path.ends_with("/events") || (rule == Some(Open::Author) && method == "DELETE");
        // These two store nothing.
        let reads = method == "GET" || path.ends_with("/seen") || path.ends_with("/rank");
        let scope = if reads { "read" } else { "write" };
        for user in [ada, bob] {
            for post in [own, others] {
                for viewer in [None, Some(ada), Some(bob)] {
                    let query = viewer.map(|id| format!("?viewer={id}")).unwrap_or_default();
                    let at = filled(&path, user, eve, post) + &query;
                    let expect = match rule {
                        None => Err("not_for_users"),
                        _ if !scopes.contains(&scope) => Err("missing_scope"),
                        _ if viewer == Some(bob) => Err("not_own"),
                        Some(Open::Own | Open::Author) if user != ada => Err("not_own"),
                        Some(Open::Author) if post != own && viewer.is_none() => {
                            Err("post_not_found")
                        }
                        Some(_) => Ok(()),
                    };
                    if expect.is_ok() && is_left {
                        continue;
                    }
                    let body = if method == "GET" { None } else { Some(json!({})) };
                    let answer = send(&method, &at, body.as_ref());
                    let got = code(answer.status, &answer.body);
                    match expect {
                        Err(code) => assert_eq!(got, code, "{method} {at}"),
                        Ok(()) => {
                            let refused = ["not_own", "not_for_users", "post_not_found"];
                            assert!(
                                !refused.contains(&&*got) && ![401, 403].contains(&answer.status),
                                "{method} {at}: {got}"
                            );
                        }
                    }
                    checked += 1;
                }
            }
        }
    }
    if scopes.contains(&"write") {
        send("DELETE", &format!("/v1/users/{ada}/posts/{own}"), None).expect(204);
    }
    checked
}

#[test]
fn users_may_use_what_is_open_for_them_as_themselves_and_nothing_else() {
    let mut world = World::new();
    let mut browser = world.log_in("ada");
    let [ada, bob] = ["ada", "bob"].map(|handle| world.id(handle));
    assert_eq!(browser.user, ada);
    let mut send =
        |method: &str, path: &str, body: Option<&Value>| browser.send(method, path, body);
    let checked = check_routes(&mut world, "ada", &["read", "write"], &mut send);
    assert!(checked > 800, "{checked}");
    let others = world.post("bob", &json!({"text": "not mine"}));
    // These are other spellings of the same path.
    for path in [
        format!("/v1/users/@ada/timeline?viewer={ada}"),
        format!("/v1/users/0{ada}/timeline"),
        format!("/v1//users/{ada}/timeline"),
        format!("/v1/users/{bob}/timeline?%76iewer={ada}"),
        format!("/v1/posts/{others}?viewer=@ada"),
        format!("/v1/posts/{others}?viewer={ada}&viewer={bob}"),
        format!("/v1/posts/{others}?viewer={ada}&%76iewer={bob}"),
        format!("/v1/posts/{others}?viewer="),
    ] {
        let answer = browser.send("GET", &path, None);
        assert!([400, 403, 404].contains(&answer.status), "{path}: {}", answer.text());
    }
    browser.send("GET", "/v1/nothing", None).assert_error(404, "not_found", "an unknown path");
}

#[test]
fn users_neither_read_nor_change_what_is_hidden_from_them() {
    let mut world = World::new();
    let [ada, bob, eve] = ["ada", "bob", "eve"].map(|handle| world.id(handle));
    let followers =
        world.post("bob", &json!({"text": "for followers #tag", "visibility": "followers"}));
    let direct = world.post("bob", &json!({"text": "@eve only", "visibility": "direct"}));
    let public = world.post("bob", &json!({"text": "for all #tag"}));
    let blocker = world.post("eve", &json!({"text": "eve blocks ada"}));
    world.product.put(&format!("/v1/users/{eve}/blocks/{ada}")).expect(204);
    let mut browser = world.log_in("ada");
    for hidden in [followers, direct, blocker] {
        for (method, path, body) in [
            ("GET", format!("/v1/posts/{hidden}?viewer={ada}"), None),
            ("GET", format!("/v1/posts/{hidden}/context?viewer={ada}"), None),
            ("GET", format!("/v1/posts/{hidden}/history?viewer={ada}"), None),
            ("GET", format!("/v1/posts/{hidden}/favourites?viewer={ada}"), None),
            ("GET", format!("/v1/posts/{hidden}/boosts?viewer={ada}"), None),
            ("PUT", format!("/v1/users/{ada}/favourites/{hidden}"), None),
            ("PUT", format!("/v1/users/{ada}/bookmarks/{hidden}"), None),
            ("PUT", format!("/v1/users/{ada}/boosts/{hidden}"), None),
            ("PATCH", format!("/v1/users/{ada}/posts/{hidden}"), Some(json!({"text": "other"}))),
            ("DELETE", format!("/v1/users/{ada}/posts/{hidden}"), None),
        ] {
            let answer = browser.send(method, &path, body.as_ref());
            assert_eq!(code(answer.status, &answer.body), "post_not_found", "{method} {path}");
        }
        let reply = json!({"text": "a reply", "in_reply_to_id": hidden.to_string()});
        let answer = browser.send("POST", &format!("/v1/users/{ada}/posts"), Some(&reply));
        assert_eq!(code(answer.status, &answer.body), "in_reply_to_not_found");
        let path = format!("/v1/users/{ada}/reactions?posts={hidden}");
        assert_eq!(browser.get(&path)["items"], json!([]), "{path}");
    }
    for path in
        [format!("/v1/users/{bob}/posts?viewer={ada}"), format!("/v1/tags/tag/posts?viewer={ada}")]
    {
        let items = browser.get(&path)["items"].clone();
        let ids: Vec<_> =
            items.as_array().unwrap().iter().map(|post| number(&post["id"])).collect();
        assert_eq!(ids, [public], "{path}");
    }
    // For a blocked user, the user who blocked does not exist.
    for path in [
        format!("/v1/users/{eve}?viewer={ada}"),
        format!("/v1/users/{eve}/posts?viewer={ada}"),
        format!("/v1/users/{eve}/followers?viewer={ada}"),
        format!("/v1/users/{ada}/relations/{eve}"),
    ] {
        let answer = browser.send("GET", &path, None);
        assert_eq!(code(answer.status, &answer.body), "user_not_found", "{path}");
    }
    let listed = browser.get(&format!("/v1/users?viewer={ada}"))["items"].clone();
    let handles: Vec<_> = listed.as_array().unwrap().iter().map(|user| &user["handle"]).collect();
    assert_eq!(handles, ["ada", "bob"]);
    assert_eq!(browser.get(&format!("/v1/users?handle=eve&viewer={ada}"))["items"], json!([]));
}

#[test]
fn only_pages_of_the_server_have_the_session_of_a_browser() {
    let world = World::new();
    let (ada, bob) = (world.log_in("ada"), world.log_in("bob"));
    let path = format!("/v1/users/{}/timeline", ada.user);
    let mut client = Client::new(world.server.address, None);
    let host = world.server.address.to_string();
    let own = format!("http://{host}");
    let (cookie, token) = (ada.cookie.as_str(), ada.token.as_str());
    let mut check = |headers: &[(&str, &str)], expect: &str| {
        let answer = client.send("GET", &path, headers, b"").unwrap();
        assert_eq!(code(answer.status, &answer.body), expect, "{headers:?}");
        assert_eq!(answer.header("cache-control"), Some("no-store"), "{headers:?}");
        assert_eq!(answer.header("access-control-allow-origin"), None, "{headers:?}");
    };
    let both = [("Cookie", cookie), ("Roost-Session", token)];
    check(&both, "200");
    check(&[&both[..], &[("Origin", &own)]].concat(), "200");
    check(&[&both[..], &[("Sec-Fetch-Site", "same-origin")]].concat(), "200");
    for (name, value) in [
        ("Origin", "https://evil.example"),
        ("Origin", "null"),
        ("Sec-Fetch-Site", "cross-site"),
        ("Sec-Fetch-Site", "same-site"),
        ("Sec-Fetch-Site", "none"),
    ] {
        check(&[&both[..], &[(name, value)]].concat(), "forbidden_origin");
    }
    // These are headers that a page of another site can make a browser send.
    check(&[("Cookie", cookie)], "unauthorized");
    check(&[("Cookie", cookie), ("Roost-Session", "")], "not_logged_in");
    check(&[("Cookie", cookie), ("Roost-Session", "1")], "not_logged_in");
    check(&[("Roost-Session", token)], "not_logged_in");
    check(&[("Cookie", cookie), ("Roost-Session", &bob.token)], "not_logged_in");
    check(&[&both[..], &[("Roost-Session", token)]].concat(), "not_logged_in");
    check(&[("Cookie", &bob.cookie), ("Roost-Session", &bob.token)], "not_own");
    // The secret of a session is not a key. If a request has both, the key has priority.
    let (_, secret) = cookie.split_once('=').unwrap();
    check(&[("Authorization", &format!("Bearer {secret}"))], "unauthorized");
    let key = format!("Bearer {KEY}");
    check(
        &[("Cookie", &bob.cookie), ("Roost-Session", &bob.token), ("Authorization", &key)],
        "200",
    );
    check(&[&both[..], &[("Authorization", "Bearer wrong")]].concat(), "unauthorized");
}

#[test]
fn a_page_learns_who_is_logged_in_and_pages_of_other_sites_do_not() {
    let world = World::new();
    let ada = world.log_in("ada");
    let mut client = Client::new(world.server.address, None);
    let mut described = |headers: &[(&str, &str)]| {
        let answer = client.send("GET", "/auth/session", headers, b"").unwrap().expect(200);
        assert_eq!(answer.header("cache-control"), Some("no-store"));
        assert_eq!(answer.header("access-control-allow-origin"), None);
        answer.json()
    };
    let got = described(&[("Cookie", &ada.cookie), ("Sec-Fetch-Site", "same-origin")]);
    assert_eq!(got["user"]["handle"], "ada");
    assert_eq!(got["user"]["visibility"], "public");
    assert_eq!(got["form_token"], json!(ada.token));
    assert_eq!((&got["open"], &got["sign_up"]), (&json!(false), &json!(false)));
    for headers in [
        &[][..],
        &[("Cookie", "roost_session=wrong")],
        &[("Cookie", &*ada.cookie), ("Sec-Fetch-Site", "cross-site")],
        &[("Cookie", &*ada.cookie), ("Origin", "https://evil.example")],
    ] {
        let got = described(headers);
        assert_eq!((&got["user"], &got["form_token"]), (&Value::Null, &Value::Null), "{headers:?}");
    }
}

#[test]
fn of_the_api_for_apps_a_session_opens_the_pictures_alone() {
    let world = World::new();
    let mut ada = world.log_in("ada");
    for (method, path) in [
        ("GET", "/api/v1/accounts/verify_credentials"),
        ("GET", "/api/v1/timelines/home"),
        ("GET", "/api/v1/timelines/public"),
        ("POST", "/api/v1/statuses"),
        ("GET", "/api/v1/streaming/user"),
        ("GET", "/api/v1/apps/verify_credentials"),
    ] {
        assert_eq!(ada.send(method, path, None).status, 401, "{method} {path}");
    }
    for path in ["/api/v1/media", "/api/v2/media"] {
        let answer = ada.send("POST", path, None);
        assert_eq!(answer.status, 422, "there is no file: {}", answer.text());
    }
    assert_eq!(ada.send("GET", "/api/v1/media/1", None).status, 404);
    let mut client = Client::new(world.server.address, None);
    let mut check = |headers: &[(&str, &str)]| {
        let answer = client.send("POST", "/api/v2/media", headers, b"").unwrap();
        assert_eq!(answer.status, 401, "{headers:?}");
    };
    let both = [("Cookie", &*ada.cookie), ("Roost-Session", &*ada.token)];
    check(&both[..1]);
    check(&both[1..]);
    check(&[&both[..], &[("Sec-Fetch-Site", "cross-site")]].concat());
    check(&[&both[..], &[("Authorization", "Bearer wrong")]].concat());
    let asked = [("Origin", "https://evil.example"), ("Access-Control-Request-Method", "POST")];
    let preflight = client.send("OPTIONS", "/api/v2/media", &asked, b"").unwrap();
    let allowed = preflight.header("access-control-allow-headers").unwrap().to_lowercase();
    assert!(!allowed.contains("roost-session") && !allowed.contains('*'), "{allowed}");
    assert_eq!(preflight.header("access-control-allow-credentials"), None);
    ada.log_out();
    assert_eq!(ada.send("POST", "/api/v2/media", None).status, 401);
}

#[test]
fn a_log_in_begins_a_new_session_whatever_cookie_the_browser_had() {
    let world = World::new();
    let planted = "roost_session=a-secret-that-somebody-else-knows";
    let password = &world.users["ada"].1;
    let mut ada = Browser::log_in_with(world.server.address, "ada", password, Some(planted));
    assert_ne!(ada.cookie, planted);
    ada.send("GET", &format!("/v1/users/{}/timeline", ada.user), None).expect(200);
    // Another log-in in the same browser ends the previous session.
    let before = ada.clone();
    let mut again =
        Browser::log_in_with(world.server.address, "ada", password, Some(&before.cookie));
    assert_ne!(again.cookie, before.cookie);
    again.send("GET", &format!("/v1/users/{}/timeline", ada.user), None).expect(200);
    ada.send("GET", &format!("/v1/users/{}/timeline", ada.user), None).assert_error(
        401,
        "not_logged_in",
        "the session before",
    );
    again.log_out();
    again.send("GET", &format!("/v1/users/{}/timeline", ada.user), None).assert_error(
        401,
        "not_logged_in",
        "after the log-out",
    );
}

#[test]
fn nothing_is_read_written_or_streamed_with_a_session_that_has_ended() {
    std::thread::scope(|scope| {
        for way in ["disable", "reset-password", "delete", "log-out", "revoke"] {
            // Each waits until the server ends an idle stream.
            scope.spawn(move || nothing_is_left_after(way, false));
        }
        for way in ["disable", "reset-password", "delete", "revoke", "revoke-token"] {
            scope.spawn(move || nothing_is_left_after(way, true));
        }
    });
}

/// Ends a session or a token in this way, and checks that nothing of it continues.
fn nothing_is_left_after(way: &str, is_token: bool) {
    let mut world = World::new();
    let (ada, bob) = (world.id("ada"), world.id("bob"));
    world.product.put(&format!("/v1/users/{ada}/following/{bob}")).expect(200);
    let mut browser = world.log_in("ada");
    let mut other = world.log_in("ada");
    let mut stream = connect(world.server.address).unwrap();
    let (id, secret) = tokens::mint(&mut world, ada, &["read", "write"]);
    let head = match is_token {
        true => vec![("Authorization", format!("Bearer {secret}"))],
        false => browser.headers(),
    };
    let host = world.server.address.to_string();
    let head: Vec<_> = head.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let events = format!("/v1/users/{ada}/events");
    stream.get_mut().write_all(&request(&host, "GET", &events, &head, b"")).unwrap();
    assert_eq!(read_head(&mut stream).unwrap().0, 200);
    let mut next = || {
        let mut line = String::new();
        stream.read_line(&mut line).unwrap();
        line
    };
    while !next().contains("connected") {}
    world.post("bob", &json!({"text": "before"}));
    while !next().contains("before") {}
    // The body of this request arrives late.
    let mut slow = connect(world.server.address).unwrap();
    let body = br#"{"text":"too late"}"#;
    let json = [&head[..], &[("Content-Type", "application/json")]].concat();
    let whole = request(&host, "POST", &format!("/v1/users/{ada}/posts"), &json, body);
    let (begin, rest) = whole.split_at(whole.len() - 4);
    slow.get_mut().write_all(begin).unwrap();
    // Wait until the server has looked up the session of the incomplete request. It handles the requests of a
    // connection in order, so a later one that was answered shows this.
    let mut client = Client::new(world.server.address, None);
    let mut send = |method: &str, path: &str| client.send(method, path, &head, b"").unwrap();
    send("GET", &format!("/v1/users/{ada}/timeline")).expect(200);

    match way {
        "revoke-token" => {
            let path = format!("/v1/users/{ada}/tokens/{id}");
            world.product.send("DELETE", &path, &[], b"").unwrap().expect(204);
        }
        "log-out" => browser.log_out(),
        "revoke" => other.revoke_others(),
        "delete" => drop(world.account(&["delete", "ada", "--yes"])),
        way => drop(world.account(&[way, "ada"])),
    }
    let code = |answer: &Answer| code(answer.status, &answer.body);
    for (method, path) in [("GET", "timeline"), ("DELETE", "notifications")] {
        let answer = send(method, &format!("/v1/users/{ada}/{path}"));
        let expect = if is_token { "unauthorized" } else { "not_logged_in" };
        assert_eq!(code(&answer), expect, "{way}: {path}");
    }
    slow.get_mut().write_all(rest).unwrap();
    assert_eq!(read_head(&mut slow).unwrap().0, 401, "{way}");
    world.post("bob", &json!({"text": "after"}));
    let mut seen = String::new();
    loop {
        let line = next();
        if line.is_empty() {
            break;
        }
        seen.push_str(&line);
    }
    assert!(!seen.contains("after"), "{way}: {seen}");
    if way != "delete" {
        // Use a new connection, because the server has closed the idle one.
        let mut product = Client::new(world.server.address, Some(KEY.to_owned()));
        let posts = product.get(&format!("/v1/users/{ada}/posts")).expect(200).json();
        assert_eq!(posts["items"], json!([]), "{way}");
    }
}

#[test]
fn the_rates_and_streams_of_a_user_are_limited() {
    let world = World::new();
    let mut browser = world.log_in("ada");
    let head = browser.headers();
    let head: Vec<_> = head.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let host = world.server.address.to_string();
    let events = format!("/v1/users/{}/events", browser.user);
    let open = || {
        let mut stream = connect(world.server.address).unwrap();
        stream.get_mut().write_all(&request(&host, "GET", &events, &head, b"")).unwrap();
        (read_head(&mut stream).unwrap(), stream)
    };
    let streams: Vec<_> = (0..33).map(|_| open()).collect();
    let statuses: Vec<_> = streams.iter().map(|((status, _), _)| *status).collect();
    assert_eq!((&statuses[..32], statuses[32]), (&[200; 32][..], 429));
    assert!(streams[32].0.1.iter().any(|(name, _)| name == "retry-after"));
    drop(streams);
    let path = format!("/v1/users/{}/timeline", browser.user);
    let refused = (0..1_501).find_map(|_| {
        let answer = browser.send("GET", &path, None);
        (answer.status != 200).then_some(answer)
    });
    let refused = refused.expect("requests are counted");
    refused.assert_error(429, "too_many_requests", "too many requests");
    assert!(refused.header("retry-after").is_some());
    // Other users are not affected.
    let mut bob = world.log_in("bob");
    bob.send("GET", &format!("/v1/users/{}/timeline", bob.user), None).expect(200);
}

#[test]
fn open_mode_has_no_sessions() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::open(data.path(), &["--registrations", "open"]);
    let mut client = server.client();
    let user = client.register("ada");
    let described = client.get("/auth/session").expect(200).json();
    assert_eq!((&described["open"], &described["user"]), (&json!(true), &Value::Null));
    let path = format!("/v1/users/{user}/timeline");
    let headers = [("Roost-Session", "anything")];
    client.send("GET", &path, &headers, b"").unwrap().expect(200);
}
