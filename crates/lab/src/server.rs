//! roost as a server in its own process, with clients over HTTP. It shows the cost of the engine and of the boundary.

use std::net::SocketAddr;
use std::process::Stdio;

use serde::Deserialize;
use sim::client::{Client, Requests};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::runtime::Handle;

/// Address of this machine with any free port.
const LISTEN: &str = "127.0.0.1:0";
/// Maximum number of lines per batch, so that the lines fit into a body.
const BATCH_LINES: usize = 200;

/// Running server that does not sync its log, with as many worker threads as the runtime of the caller. Ends on drop.
pub(crate) struct Server {
    http: SocketAddr,
    redis: SocketAddr,
    _child: Child,
    /// Directory, removed after the process was killed: fields are dropped in the order of their declaration.
    _data: TempDir,
}

impl Server {
    /// Starts a server, and waits until it serves.
    ///
    /// # Panics
    /// If it cannot be started, which makes the trial impossible.
    pub(crate) async fn start() -> Self {
        match Self::try_start().await {
            Ok(server) => server,
            Err(error) => panic!("cannot start the server: {error}"),
        }
    }

    async fn try_start() -> std::io::Result<Self> {
        let data = tempfile::Builder::new().prefix("roost-lab-").tempdir()?;
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["serve", "--open", "--durability", "never", "--listen", LISTEN]);
        command.args(["--redis-listen", LISTEN, "--data"]).arg(data.path());
        let inherited = std::env::vars_os();
        command.env_clear();
        command.envs(inherited.filter(|(name, _)| !name.to_string_lossy().starts_with("ROOST_")));
        command.env("ROOST_LOG", "off");
        command.env("TOKIO_WORKER_THREADS", Handle::current().metrics().num_workers().to_string());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn()?;
        let Some(output) = child.stdout.take() else { unreachable!("it is piped") };
        let (mut lines, mut redis) = (BufReader::new(output).lines(), None);
        while let Some(line) = lines.next_line().await? {
            let address = |prefix: &str| line.strip_prefix(prefix)?.parse::<SocketAddr>().ok();
            redis = address("roost serves redis://").or(redis);
            if let (Some(http), Some(redis)) = (address("roost serves http://"), redis) {
                return Ok(Self { http, redis, _child: child, _data: data });
            }
        }
        Err(std::io::Error::other("it ended before it served"))
    }

    /// Client over HTTP. It connects with its first request.
    pub(crate) fn connect(&self) -> HttpClient {
        let requests = Requests::new(&self.http.to_string(), None);
        HttpClient { client: Client::new(self.http), requests, request: Vec::new() }
    }

    /// Address for Redis clients.
    pub(crate) fn redis(&self) -> SocketAddr {
        self.redis
    }
}

/// Client with its own connection. All its requests are valid.
pub(crate) struct HttpClient {
    client: Client<SocketAddr>,
    requests: Requests,
    request: Vec<u8>,
}

/// Page of posts or stories.
#[derive(Deserialize)]
struct Page<'a> {
    #[serde(borrow)]
    items: Vec<Item<'a>>,
    /// Path of the next page, with older items.
    next: Option<&'a str>,
}

#[derive(Deserialize)]
struct Item<'a> {
    /// Kind of the text and a unique number.
    text: &'a str,
}

impl HttpClient {
    /// Reads a page, and adds the numbers in its texts to `numbers`. Returns the path of the next page.
    ///
    /// # Panics
    /// If the server does not answer with a page.
    pub(crate) async fn page(&mut self, path: &str, numbers: &mut Vec<u64>) -> Option<String> {
        self.requests.get(path, &mut self.request);
        let body = self.send(path).await;
        match serde_json::from_slice::<Page<'_>>(body) {
            Ok(Page { items, next }) => {
                numbers.extend(items.iter().filter_map(|item| number(item.text)));
                next.map(str::to_owned)
            }
            Err(error) => panic!("{path}: {error}"),
        }
    }

    /// Reads a page and all pages after it.
    pub(crate) async fn pages(&mut self, path: String, numbers: &mut Vec<u64>) {
        let mut next = Some(path);
        while let Some(path) = next {
            next = self.page(&path, numbers).await;
        }
    }

    /// Sends JSON. The server must accept it.
    pub(crate) async fn post(&mut self, path: &str, json: &str) {
        self.requests.post(path, json.as_bytes(), &mut self.request);
        self.send(path).await;
    }

    /// Sends operations in order. Each is a line of JSON.
    ///
    /// # Panics
    /// If an operation is refused.
    pub(crate) async fn batch(&mut self, lines: &[String]) {
        for lines in lines.chunks(BATCH_LINES) {
            let body = lines.join("\n");
            self.requests.post_lines("/v1/batch", body.as_bytes(), &mut self.request);
            let answers = self.send("/v1/batch").await;
            let answers = String::from_utf8_lossy(answers);
            let refused = answers.lines().find(|line| line.contains("\"ok\":false"));
            assert!(refused.is_none(), "the lab submits what is valid: {refused:?}");
        }
    }

    async fn send(&mut self, path: &str) -> &[u8] {
        match self.client.send(&self.request).await {
            Ok(response) if response.is_success() => response.body,
            Ok(response) => panic!("{path}: status {}", response.status),
            Err(error) => panic!("{path}: {error}"),
        }
    }
}

/// Parses the number in `post 17: text` or `story 17`.
fn number(text: &str) -> Option<u64> {
    let (_, rest) = text.split_once(' ')?;
    rest.split(':').next()?.parse().ok()
}

/// Operations that register users, numbered from 0.
pub(crate) fn register(users: u32) -> impl Iterator<Item = String> {
    (0..users).map(|user| format!(r#"{{"op":"register","handle":"user{user}"}}"#))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_has_a_number() {
        for (text, expect) in
            [("post 17: words: 3", Some(17)), ("story 5", Some(5)), ("post", None), ("a b", None)]
        {
            assert_eq!(number(text), expect, "{text}");
        }
    }
}
