//! Browser and app that send requests to the router.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE, COOKIE, LOCATION, SET_COOKIE};
use axum::http::{HeaderMap, Method, Request, StatusCode};
use edge::ClientAddress;
use http_body_util::BodyExt as _;
use mastodon::{MastodonOptions, Rates, Registrations};
use node::{Clock, Node, NodeOptions};
use serde_json::Value;
use tokio::net::TcpListener;
use tower::ServiceExt as _;

pub(crate) const PASSWORD: &str = "correct horse battery";
pub(crate) const REDIRECT: &str = "https://app.example/back";
pub(crate) const OOB: &str = "urn:ietf:wg:oauth:2.0:oob";

/// Server with a new directory.
pub(crate) struct World {
    pub(crate) node: Node,
    router: Router,
    _data: Arc<tempfile::TempDir>,
}

/// Clock of a server.
pub(crate) struct TestClock(Arc<AtomicU64>);

impl TestClock {
    pub(crate) fn pass(&self, ms: u64) {
        self.0.fetch_add(ms, Ordering::AcqRel);
    }
}

/// Waits until connections have dropped their clones of the node, before the directory is removed.
impl Drop for World {
    fn drop(&mut self) {
        self.node.close();
    }
}

/// Response with its body.
#[derive(Debug)]
pub(crate) struct Got {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) bytes: Bytes,
    /// Body as text.
    pub(crate) text: String,
}

impl Got {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|_| panic!("{self:?}"))
    }

    pub(crate) fn location(&self) -> &str {
        assert_eq!(self.status, StatusCode::SEE_OTHER, "{self:?}");
        self.headers[LOCATION].to_str().unwrap()
    }

    /// Parameter of the URL to which the response redirects.
    pub(crate) fn led_with(&self, name: &str) -> Option<String> {
        let (_, query) = self.location().split_once('?')?;
        let mut pairs = form_urlencoded::parse(query.as_bytes());
        pairs.find(|(given, _)| given == name).map(|(_, value)| value.into_owned())
    }

    /// Fields of all forms on the page. If several fields have one name, the last one counts.
    pub(crate) fn hidden(&self) -> BTreeMap<String, String> {
        let inputs = self.text.split("<input type=\"hidden\" name=\"").skip(1);
        let field = |input: &str| {
            let (name, rest) = input.split_once("\" value=\"")?;
            let value = rest.split('"').next()?;
            Some((name.to_owned(), value.replace("&amp;", "&")))
        };
        inputs.filter_map(field).collect()
    }
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with(|_| {})
    }

    /// Starts a server whose clock the test sets.
    pub(crate) fn with_clock() -> (Self, TestClock) {
        let clock = TestClock(Arc::new(AtomicU64::new(1_800_000_000_000)));
        let now = Arc::clone(&clock.0);
        let clocked = |options: &mut NodeOptions| {
            options.clock = Clock::from_fn(move || now.load(Ordering::Acquire));
        };
        (Self::with_both(clocked, |_| {}), clock)
    }

    pub(crate) fn with(change: impl FnOnce(&mut MastodonOptions)) -> Self {
        Self::with_both(|_| {}, change)
    }

    /// Ends polls and publishes statuses that are due, as a thread of the node does.
    pub(crate) async fn do_due(&self) {
        let node = self.node.clone();
        tokio::task::spawn_blocking(move || node.do_due()).await.unwrap();
    }

    fn with_both(
        change_node: impl FnOnce(&mut NodeOptions),
        change: impl FnOnce(&mut MastodonOptions),
    ) -> Self {
        let data = tempfile::tempdir().unwrap();
        let mut options = NodeOptions::new(data.path());
        change_node(&mut options);
        let node = Node::open(&options).unwrap();
        Self::of_node(node, Arc::new(data), change)
    }

    /// Starts another server on the same node.
    pub(crate) fn beside(&self, change: impl FnOnce(&mut MastodonOptions)) -> Self {
        Self::of_node(self.node.clone(), Arc::clone(&self._data), change)
    }

    fn of_node(
        node: Node,
        data: Arc<tempfile::TempDir>,
        change: impl FnOnce(&mut MastodonOptions),
    ) -> Self {
        let mut options = MastodonOptions::new("https://social.example");
        options.registrations = Registrations::Open;
        options.rates = Rates::unlimited();
        options.anonymous_reads = true;
        change(&mut options);
        let (router, _) = mastodon::router(node.clone(), options);
        Self { node, router, _data: data }
    }

    pub(crate) async fn send(&self, request: Request<Body>) -> Got {
        let mut request = request;
        let extensions = request.extensions_mut();
        if extensions.get::<ClientAddress>().is_none() {
            extensions.insert(ClientAddress(IpAddr::from([192, 0, 2, 1])));
        }
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        Got { status: parts.status, headers: parts.headers, bytes, text }
    }

    /// Serves the router on a port; returns the address.
    pub(crate) async fn listen(&self) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = self.router.clone();
        tokio::spawn(async move { axum::serve(listener, router).await });
        address
    }

    /// Requests a response without reading its body.
    pub(crate) async fn begin(&self, path: &str, token: &str) -> axum::response::Response {
        let request = Request::get(path).header(AUTHORIZATION, format!("Bearer {token}"));
        self.router.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap()
    }

    pub(crate) async fn get(&self, path: &str, token: Option<&str>) -> Got {
        let mut request = Request::get(path);
        if let Some(token) = token {
            request = request.header(AUTHORIZATION, format!("Bearer {token}"));
        }
        self.send(request.body(Body::empty()).unwrap()).await
    }

    pub(crate) async fn post(
        &self,
        path: &str,
        token: Option<&str>,
        fields: &[(&str, &str)],
    ) -> Got {
        let mut request = Request::post(path).header(CONTENT_TYPE, FORM);
        if let Some(token) = token {
            request = request.header(AUTHORIZATION, format!("Bearer {token}"));
        }
        self.send(request.body(form(fields)).unwrap()).await
    }

    /// Sends a request with parameters in the body, or in the query of a `GET`.
    pub(crate) async fn call(
        &self,
        method: &str,
        path: &str,
        token: Option<&str>,
        fields: &[(&str, &str)],
    ) -> Got {
        self.call_with(method, path, token, fields, &[]).await
    }

    /// Sends a request like [`World::call`], with headers.
    pub(crate) async fn call_with(
        &self,
        method: &str,
        path: &str,
        token: Option<&str>,
        fields: &[(&str, &str)],
        headers: &[(&str, &str)],
    ) -> Got {
        let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
        let (path, body) = match method {
            "GET" if !query.is_empty() => (format!("{path}?{query}"), Body::empty()),
            _ => (path.to_owned(), Body::from(query)),
        };
        let mut request = Request::builder().method(method).uri(path).header(CONTENT_TYPE, FORM);
        if let Some(token) = token {
            request = request.header(AUTHORIZATION, format!("Bearer {token}"));
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.send(request.body(body).unwrap()).await
    }

    /// Signs up users with an app that has all scopes.
    pub(crate) async fn people<const N: usize>(&self, handles: [&str; N]) -> [Person; N] {
        let app = self.app_with(ALL_SCOPES).await;
        let own = app.own_token(self, "write:accounts").await;
        let mut people = Vec::new();
        for handle in handles {
            let email = format!("{handle}@example.org");
            let fields = [
                ("username", handle),
                ("email", &email),
                ("password", PASSWORD),
                ("agreement", "true"),
            ];
            let got = self.post("/api/v1/accounts", Some(&own), &fields).await;
            assert_eq!(got.status, StatusCode::OK, "{got:?}");
            let token = got.json()["access_token"].as_str().unwrap().to_owned();
            let me = self.get("/api/v1/accounts/verify_credentials", Some(&token)).await.json();
            people.push(Person { id: me["id"].as_str().unwrap().to_owned(), token });
        }
        people.try_into().ok().unwrap()
    }

    pub(crate) async fn app(&self) -> App {
        self.app_with("read write follow push").await
    }

    pub(crate) async fn app_with(&self, scopes: &str) -> App {
        let redirects = format!("{REDIRECT}\n{OOB}");
        let fields =
            [("client_name", "An app"), ("redirect_uris", redirects.as_str()), ("scopes", scopes)];
        let got = self.post("/api/v1/apps", None, &fields).await;
        assert_eq!(got.status, StatusCode::OK, "{got:?}");
        let body = got.json();
        let text = |name: &str| body[name].as_str().unwrap().to_owned();
        App { id: text("client_id"), secret: text("client_secret") }
    }

    /// Makes a browser in which a new user has just signed up.
    pub(crate) async fn signed_up(&self, handle: &str) -> Browser {
        let mut browser = Browser::default();
        let page = browser.get(self, "/auth/sign-up").await;
        assert_eq!(page.status, StatusCode::OK, "{page:?}");
        let mut fields = page.hidden();
        let email = format!("{handle}@example.org");
        for (name, value) in
            [("username", handle), ("email", &email), ("password", PASSWORD), ("agreement", "true")]
        {
            fields.insert(name.to_owned(), value.to_owned());
        }
        let got = browser.post(self, "/auth/sign-up", &fields).await;
        assert_eq!(got.location(), "/settings");
        browser
    }
}

const FORM: &str = "application/x-www-form-urlencoded";

fn form(fields: &[(&str, &str)]) -> Body {
    Body::from(form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish())
}

pub(crate) const ALL_SCOPES: &str = "read write follow push profile";

/// User with a token that has all scopes.
pub(crate) struct Person {
    pub(crate) id: String,
    pub(crate) token: String,
}

impl Person {
    /// Returns the JSON of a response, whose status must be 200.
    pub(crate) async fn get(&self, world: &World, path: &str) -> Value {
        let got = world.get(path, Some(&self.token)).await;
        assert_eq!(got.status, StatusCode::OK, "{path}: {got:?}");
        got.json()
    }

    /// Returns the JSON of the response to a change, whose status must be 200.
    pub(crate) async fn call(
        &self,
        world: &World,
        method: &str,
        path: &str,
        fields: &[(&str, &str)],
    ) -> Value {
        let got = world.call(method, path, Some(&self.token), fields).await;
        assert_eq!(got.status, StatusCode::OK, "{method} {path}: {got:?}");
        got.json()
    }

    /// Publishes a status; returns its id.
    pub(crate) async fn post(&self, world: &World, text: &str) -> String {
        let status = self.call(world, "POST", "/api/v1/statuses", &[("status", text)]).await;
        status["id"].as_str().unwrap().to_owned()
    }

    /// Publishes a reply; returns its id.
    pub(crate) async fn reply(&self, world: &World, parent: &str, text: &str) -> String {
        let fields = [("status", text), ("in_reply_to_id", parent)];
        let status = self.call(world, "POST", "/api/v1/statuses", &fields).await;
        status["id"].as_str().unwrap().to_owned()
    }

    /// Acts on another user.
    pub(crate) async fn does(&self, world: &World, what: &str, other: &Person) -> Value {
        self.call(world, "POST", &format!("/api/v1/accounts/{}/{what}", other.id), &[]).await
    }

    /// Ids of the entities in the list at `path`.
    pub(crate) async fn ids(&self, world: &World, path: &str) -> Vec<String> {
        ids(&self.get(world, path).await)
    }
}

/// Ids of the entities in a list.
pub(crate) fn ids(list: &Value) -> Vec<String> {
    let list = list.as_array().unwrap().iter();
    list.map(|entity| entity["id"].as_str().unwrap().to_owned()).collect()
}

/// Registered app.
pub(crate) struct App {
    pub(crate) id: String,
    pub(crate) secret: String,
}

impl App {
    /// URL of the app's authorization request, with more parameters.
    pub(crate) fn url(&self, more: &[(&str, &str)]) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.append_pair("response_type", "code").append_pair("client_id", &self.id);
        if !more.iter().any(|(name, _)| *name == "redirect_uri") {
            query.append_pair("redirect_uri", REDIRECT);
        }
        query.extend_pairs(more);
        format!("/oauth/authorize?{}", query.finish())
    }

    /// Exchanges an authorization code for a token.
    pub(crate) async fn exchange(&self, world: &World, code: &str, more: &[(&str, &str)]) -> Got {
        let mut fields = vec![
            ("grant_type", "authorization_code"),
            ("client_id", self.id.as_str()),
            ("client_secret", self.secret.as_str()),
            ("code", code),
        ];
        if !more.iter().any(|(name, _)| *name == "redirect_uri") {
            fields.push(("redirect_uri", REDIRECT));
        }
        fields.extend_from_slice(more);
        world.post("/oauth/token", None, &fields).await
    }

    /// Requests the app's own token.
    pub(crate) async fn own_token(&self, world: &World, scope: &str) -> String {
        let fields = [
            ("grant_type", "client_credentials"),
            ("client_id", self.id.as_str()),
            ("client_secret", self.secret.as_str()),
            ("scope", scope),
        ];
        let got = world.post("/oauth/token", None, &fields).await;
        assert_eq!(got.status, StatusCode::OK, "{got:?}");
        got.json()["access_token"].as_str().unwrap().to_owned()
    }

    /// Requests a token for the user of a browser.
    pub(crate) async fn user_token(
        &self,
        world: &World,
        browser: &mut Browser,
        scope: &str,
    ) -> String {
        let code = browser.allow(world, &self.url(&[("scope", scope)])).await;
        let got = self.exchange(world, &code, &[]).await;
        assert_eq!(got.status, StatusCode::OK, "{got:?}");
        got.json()["access_token"].as_str().unwrap().to_owned()
    }
}

/// Browser with its cookies.
#[derive(Clone, Default)]
pub(crate) struct Browser {
    pub(crate) cookies: BTreeMap<String, String>,
    /// Address of the browser; `None` for the default one.
    pub(crate) address: Option<IpAddr>,
}

impl Browser {
    pub(crate) async fn get(&mut self, world: &World, path: &str) -> Got {
        self.send(world, Method::GET, path, Body::empty()).await
    }

    pub(crate) async fn post(
        &mut self,
        world: &World,
        path: &str,
        fields: &BTreeMap<String, String>,
    ) -> Got {
        let fields: Vec<_> = fields.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
        self.send(world, Method::POST, path, form(&fields)).await
    }

    async fn send(&mut self, world: &World, method: Method, path: &str, body: Body) -> Got {
        let cookies: Vec<_> =
            self.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let request = Request::builder().method(method).uri(path);
        let request = request.header(CONTENT_TYPE, FORM).header(COOKIE, cookies.join("; "));
        let mut request = request.body(body).unwrap();
        if let Some(address) = self.address {
            request.extensions_mut().insert(ClientAddress(address));
        }
        let got = world.send(request).await;
        for cookie in got.headers.get_all(SET_COOKIE) {
            let cookie = cookie.to_str().unwrap();
            assert!(cookie.contains("; HttpOnly; SameSite=Lax"), "{cookie}");
            assert!(cookie.starts_with("__Host-") && cookie.ends_with("; Secure"), "{cookie}");
            let (name, rest) = cookie.split_once('=').unwrap();
            let value = rest.split(';').next().unwrap();
            match value.is_empty() {
                true => drop(self.cookies.remove(name)),
                false => drop(self.cookies.insert(name.to_owned(), value.to_owned())),
            }
        }
        got
    }

    /// Logs in and returns the response.
    pub(crate) async fn log_in(&mut self, world: &World, name: &str, password: &str) -> Got {
        let mut fields = self.get(world, "/auth/log-in").await.hidden();
        fields.insert("username".into(), name.into());
        fields.insert("password".into(), password.into());
        self.post(world, "/auth/log-in", &fields).await
    }

    /// Presses a button on the authorization page.
    pub(crate) async fn decide(&mut self, world: &World, url: &str, decision: &str) -> Got {
        let page = self.get(world, url).await;
        assert_eq!(page.status, StatusCode::OK, "{page:?}");
        let mut fields = page.hidden();
        fields.insert("decision".into(), decision.into());
        self.post(world, "/oauth/authorize", &fields).await
    }

    /// Allows an authorization request; returns the code.
    pub(crate) async fn allow(&mut self, world: &World, url: &str) -> String {
        self.decide(world, url, "allow").await.led_with("code").unwrap()
    }
}
