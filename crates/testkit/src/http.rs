//! Blocking HTTP client: it has one kept-alive connection, sends one request at a time, and sends no request twice.

use std::io::{self, BufRead, BufReader, Read, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::{Value, json};

use crate::PATIENCE;

/// Client of one server.
#[derive(Debug)]
pub struct Client {
    /// Address of the server.
    pub address: SocketAddr,
    key: Option<String>,
    connection: Option<BufReader<TcpStream>>,
    /// Maximum time for a read or a write.
    patience: Duration,
}

/// Response with its whole body.
#[derive(Debug)]
pub struct Answer {
    /// Status code.
    pub status: u16,
    head: Vec<(String, String)>,
    /// Body, decoded from its chunks.
    pub body: Vec<u8>,
}

impl Answer {
    /// First header with this name, ignoring case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.head.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// Body as text.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Body, which must be JSON.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("no JSON: {}", self.text()))
    }

    /// Lines of an NDJSON body.
    #[must_use]
    pub fn lines(&self) -> Vec<Value> {
        let lines = self.body.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        lines.map(|line| serde_json::from_slice(line).unwrap()).collect()
    }

    /// Returns the response if it has this status; panics otherwise.
    pub fn expect(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{}", self.text());
        self
    }

    /// Asserts that this is an error of the API with this status and code. The message of a failure contains `what`.
    pub fn assert_error(&self, status: u16, code: &str, what: &str) {
        assert_eq!(self.status, status, "{what}: {}", self.text());
        assert_eq!(self.header("content-type"), Some("application/json"), "{what}");
        let body = self.json();
        assert_eq!(body["error"], code, "{what}: {body}");
        assert!(body["message"].as_str().is_some_and(|message| message.len() > 5), "{what}");
        let id = body["request_id"].as_str();
        assert!(id.is_some_and(|id| id.len() == 16), "{what}: {body}");
        assert_eq!(id, self.header("x-request-id"), "{what}");
        assert!(matches!(body["field"], Value::Null | Value::String(_)), "{what}: {body}");
        assert_eq!(body.as_object().unwrap().len(), 4, "{what}: {body}");
    }

    fn is_chunked(&self) -> bool {
        self.header("transfer-encoding") == Some("chunked")
    }
}

impl Client {
    /// Creates a client that presents `key`, if there is one. It connects with the first request.
    #[must_use]
    pub fn new(address: SocketAddr, key: Option<String>) -> Self {
        Self { address, key, connection: None, patience: PATIENCE }
    }

    /// Sets the maximum time for a read or a write.
    #[must_use]
    pub fn within(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// Sends a request, on a new connection if there is none.
    ///
    /// # Errors
    /// If the connection fails. Whether the server has received the request is then unknown.
    pub fn send(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> io::Result<Answer> {
        let authorization = self.key.as_ref().map(|key| format!("Bearer {key}"));
        let authorization = authorization.iter().map(|value| ("Authorization", value.as_str()));
        let headers: Vec<_> = authorization.chain(headers.iter().copied()).collect();
        let request = request(&self.address.to_string(), method, path, &headers, body);
        // A connection is kept only after a complete response, so an error drops it.
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => connect_within(self.address, self.patience)?,
        };
        connection.get_mut().write_all(&request)?;
        let (status, head) = read_head(&mut connection)?;
        let mut answer = Answer { status, head, body: Vec::new() };
        if answer.is_chunked() {
            Chunked::new(&mut connection).read_to_end(&mut answer.body)?;
        } else {
            let length = answer.header("content-length").map_or(0, |text| text.parse().unwrap());
            answer.body.resize(length, 0);
            connection.read_exact(&mut answer.body)?;
        }
        if answer.header("connection") != Some("close") {
            self.connection = Some(connection);
        }
        Ok(answer)
    }

    /// Sends a GET request.
    pub fn get(&mut self, path: &str) -> Answer {
        self.send("GET", path, &[], b"").unwrap()
    }

    /// Sends a PUT request without a body.
    pub fn put(&mut self, path: &str) -> Answer {
        self.send("PUT", path, &[], b"").unwrap()
    }

    /// Sends a POST request.
    pub fn post(&mut self, path: &str, body: &Value) -> Answer {
        self.try_post(path, &[], body).unwrap()
    }

    /// Sends a POST request.
    ///
    /// # Errors
    /// See [`Client::send`].
    pub fn try_post(
        &mut self,
        path: &str,
        headers: &[(&str, &str)],
        body: &Value,
    ) -> io::Result<Answer> {
        let headers = [&[("Content-Type", "application/json")], headers].concat();
        self.send("POST", path, &headers, body.to_string().as_bytes())
    }

    /// Registers a user; returns the id.
    pub fn register(&mut self, handle: &str) -> u32 {
        let user = self.post("/v1/users", &json!({"handle": handle})).expect(201).json();
        number(&user["id"]) as u32
    }

    /// Publishes a post; returns its id.
    pub fn publish(&mut self, user: u32, text: &str) -> u64 {
        let path = format!("/v1/users/{user}/posts");
        number(&self.post(&path, &json!({"text": text})).expect(201).json()["id"])
    }

    /// Makes a user follow another.
    pub fn follow(&mut self, user: u32, other: u32) {
        self.put(&format!("/v1/users/{user}/following/{other}")).expect(200);
    }

    /// Sends commands as one batch, all of which must succeed. Returns their ids.
    pub fn batch(&mut self, commands: &[Value]) -> Vec<Option<u64>> {
        let lines: String = commands.iter().map(|command| format!("{command}\n")).collect();
        let headers = [("Content-Type", "application/x-ndjson")];
        let answer = self.send("POST", "/v1/batch", &headers, lines.as_bytes()).unwrap();
        let results = answer.expect(200).lines();
        assert_eq!(results.len(), commands.len(), "a result for each command");
        let id = |result: &Value| {
            assert_eq!(result["ok"], true, "{result}");
            result.get("id").map(number)
        };
        results.iter().map(id).collect()
    }

    /// All items of a list, page after page from `path` on.
    pub fn all(&mut self, path: &str) -> Vec<Value> {
        self.walk(path, "next").concat()
    }

    /// Items of the pages from `path` on. The next page is the one at the cursor in the field `cursor`.
    pub fn walk(&mut self, path: &str, cursor: &str) -> Vec<Vec<Value>> {
        let mut pages = Vec::new();
        let mut path = Some(path.to_owned());
        while let Some(at) = path {
            let page = self.get(&at).expect(200).json();
            pages.push(page["items"].as_array().unwrap().clone());
            path = page[cursor].as_str().map(|cursor| self::at(&at, cursor));
        }
        pages
    }
}

/// Path of the page at a cursor, in the list that `path` belongs to.
#[must_use]
pub fn at(path: &str, cursor: &str) -> String {
    let (list, query) = path.split_once('?').unwrap_or((path, ""));
    let is_kept = |part: &&str| !part.is_empty() && !part.starts_with("cursor=");
    let kept = query.split('&').filter(is_kept).map(|part| format!("{part}&"));
    format!("{list}?{}cursor={cursor}", kept.collect::<String>())
}

/// Encodes a request. `host` is the header `Host`, unless `headers` has one.
#[must_use]
pub fn request(
    host: &str,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> Vec<u8> {
    let mut request = format!("{method} {path} HTTP/1.1\r\n");
    if !headers.iter().any(|(name, _)| *name == "Host") {
        request.push_str(&format!("Host: {host}\r\n"));
    }
    for (name, value) in headers {
        request.push_str(&format!("{name}: {value}\r\n"));
    }
    request.push_str(&format!("Content-Length: {}\r\n\r\n", body.len()));
    [request.as_bytes(), body].concat()
}

/// Sends bytes on a new connection, and reads one response that ends with the connection.
#[must_use]
pub fn raw(address: SocketAddr, request: &[u8]) -> Answer {
    let mut connection = connect(address).unwrap();
    // A server may refuse a request before it has read all of it. Then writing fails, but the response can be read.
    drop(connection.get_mut().write_all(request));
    let (status, head) = read_head(&mut connection).unwrap();
    let mut answer = Answer { status, head, body: Vec::new() };
    let read = if answer.is_chunked() {
        Chunked::new(connection).read_to_end(&mut answer.body)
    } else {
        connection.read_to_end(&mut answer.body)
    };
    // If the server has not read everything, reading ends with an error instead of the end of the connection.
    drop(read);
    answer
}

/// Parses an id in JSON.
#[must_use]
pub fn number(id: &Value) -> u64 {
    let text = id.as_str().unwrap_or_else(|| panic!("no id: {id}"));
    text.parse().unwrap_or_else(|_| panic!("no id: {id}"))
}

/// Opens a connection whose reads wait at most [`PATIENCE`].
///
/// # Errors
/// If there is no server.
pub fn connect(address: SocketAddr) -> io::Result<BufReader<TcpStream>> {
    connect_within(address, PATIENCE)
}

fn connect_within(address: SocketAddr, patience: Duration) -> io::Result<BufReader<TcpStream>> {
    let stream = TcpStream::connect_timeout(&address, patience)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(patience))?;
    stream.set_write_timeout(Some(patience))?;
    Ok(BufReader::new(stream))
}

/// Reads the status and the headers, with names in lower case.
///
/// # Errors
/// If the connection ends before the head does, or does not speak HTTP.
pub fn read_head(from: &mut impl BufRead) -> io::Result<(u16, Vec<(String, String)>)> {
    let malformed = |line: &str| io::Error::other(format!("no HTTP answer: {line:?}"));
    let line = read_line(from)?;
    let status = line.strip_prefix("HTTP/1.1 ").or(line.strip_prefix("HTTP/1.0 "));
    let status = status.and_then(|rest| rest.get(..3)?.parse().ok());
    let status = status.ok_or_else(|| malformed(&line))?;
    let mut head = Vec::new();
    loop {
        let line = read_line(from)?;
        if line.is_empty() {
            return Ok((status, head));
        }
        let (name, value) = line.split_once(':').ok_or_else(|| malformed(&line))?;
        head.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
}

fn read_line(from: &mut impl BufRead) -> io::Result<String> {
    let mut line = String::new();
    from.read_line(&mut line)?;
    match line.strip_suffix("\r\n") {
        Some(line) => Ok(line.to_owned()),
        None => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// Reader of a chunked body.
#[derive(Debug)]
pub struct Chunked<R> {
    from: R,
    /// Number of remaining bytes of the current chunk; `None` after the last chunk.
    left: Option<u64>,
}

impl<R: BufRead> Chunked<R> {
    /// Creates a reader that begins with a chunk.
    pub fn new(from: R) -> Self {
        Self { from, left: Some(0) }
    }

    fn begin_chunk(&mut self) -> io::Result<()> {
        let line = read_line(&mut self.from)?;
        let size = u64::from_str_radix(&line, 16);
        let size = size.map_err(|_| io::Error::other(format!("no chunk: {line:?}")))?;
        self.left = Some(size);
        if size == 0 {
            read_line(&mut self.from)?;
            self.left = None;
        }
        Ok(())
    }
}

impl<R: BufRead> Read for Chunked<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left == Some(0) {
            self.begin_chunk()?;
        }
        let Some(left) = &mut self.left else { return Ok(0) };
        let size = buffer.len().min(usize::try_from(*left).unwrap());
        let read = self.from.read(&mut buffer[..size])?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        *left -= read as u64;
        if *left == 0 {
            read_line(&mut self.from)?;
        }
        Ok(read)
    }
}
