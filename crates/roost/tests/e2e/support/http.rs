//! A blocking client: one kept-alive connection, one request at a time, never a request twice.

use std::io::{self, BufRead, BufReader, Read, Write as _};
use std::net::{SocketAddr, TcpStream};

use serde_json::{Value, json};

use super::PATIENCE;

/// A client of one server.
pub(crate) struct Client {
    pub(crate) address: SocketAddr,
    key: Option<String>,
    connection: Option<BufReader<TcpStream>>,
}

/// An answer, its body whole.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    head: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.head.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("no JSON: {}", self.text()))
    }

    /// Returns itself if its status is this one; panics otherwise.
    pub(crate) fn expect(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{}", self.text());
        self
    }
}

impl Client {
    pub(crate) fn new(address: SocketAddr, key: Option<String>) -> Self {
        Self { address, key, connection: None }
    }

    /// Sends a request, over a new connection if needed. After an error it is unknown whether the
    /// server has received it.
    pub(crate) fn send(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> io::Result<Answer> {
        let mut request = format!("{method} {path} HTTP/1.1\r\nHost: {}\r\n", self.address);
        if let Some(key) = &self.key {
            request.push_str(&format!("Authorization: Bearer {key}\r\n"));
        }
        for (name, value) in headers {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        request.push_str(&format!("Content-Length: {}\r\n\r\n", body.len()));
        // Taken out until the answer is whole: an error loses it.
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => connect(self.address)?,
        };
        connection.get_mut().write_all(&[request.as_bytes(), body].concat())?;
        let (status, head) = read_head(&mut connection)?;
        let mut answer = Answer { status, head, body: Vec::new() };
        if answer.header("transfer-encoding") == Some("chunked") {
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

    pub(crate) fn get(&mut self, path: &str) -> Answer {
        self.send("GET", path, &[], b"").unwrap()
    }

    pub(crate) fn put(&mut self, path: &str) -> Answer {
        self.send("PUT", path, &[], b"").unwrap()
    }

    pub(crate) fn post(&mut self, path: &str, body: &Value) -> Answer {
        self.try_post(path, &[], body).unwrap()
    }

    pub(crate) fn try_post(
        &mut self,
        path: &str,
        headers: &[(&str, &str)],
        body: &Value,
    ) -> io::Result<Answer> {
        let headers = [&[("Content-Type", "application/json")], headers].concat();
        self.send("POST", path, &headers, body.to_string().as_bytes())
    }

    /// Registers a user; returns the id.
    pub(crate) fn register(&mut self, handle: &str) -> u32 {
        let user = self.post("/v1/users", &json!({"handle": handle})).expect(201).json();
        number(&user["id"]) as u32
    }

    /// Publishes a post; gives its id.
    pub(crate) fn publish(&mut self, user: u32, text: &str) -> u64 {
        let path = format!("/v1/users/{user}/posts");
        number(&self.post(&path, &json!({"text": text})).expect(201).json()["id"])
    }

    pub(crate) fn follow(&mut self, user: u32, other: u32) {
        self.put(&format!("/v1/users/{user}/following/{other}")).expect(204);
    }

    /// Sends these commands as one batch, all of which must succeed; returns their ids.
    pub(crate) fn batch(&mut self, commands: &[Value]) -> Vec<Option<u64>> {
        let lines: String = commands.iter().map(|command| format!("{command}\n")).collect();
        let headers = [("Content-Type", "application/x-ndjson")];
        let answer = self.send("POST", "/v1/batch", &headers, lines.as_bytes()).unwrap();
        let answer = answer.expect(200).text();
        let results: Vec<Value> =
            answer.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(results.len(), commands.len(), "a result for each command");
        let id = |result: &Value| {
            assert_eq!(result["ok"], true, "{result}");
            result.get("id").map(number)
        };
        results.iter().map(id).collect()
    }

    /// Everything in a list, page after page from `path` on, in the order of reading.
    pub(crate) fn all(&mut self, path: &str) -> Vec<Value> {
        self.walk(path, "next").concat()
    }

    /// The items of the page at `path` and of those its links of this name lead to.
    pub(crate) fn walk(&mut self, path: &str, link: &str) -> Vec<Vec<Value>> {
        let mut pages = Vec::new();
        let mut path = Some(path.to_owned());
        while let Some(at) = path {
            let page = self.get(&at).expect(200).json();
            pages.push(page["items"].as_array().unwrap().clone());
            path = page[link].as_str().map(str::to_owned);
        }
        pages
    }
}

/// An id as it is in JSON.
pub(crate) fn number(id: &Value) -> u64 {
    let text = id.as_str().unwrap_or_else(|| panic!("no id: {id}"));
    text.parse().unwrap_or_else(|_| panic!("no id: {id}"))
}

pub(crate) fn connect(address: SocketAddr) -> io::Result<BufReader<TcpStream>> {
    let stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    Ok(BufReader::new(stream))
}

/// The status and the headers, their names in lower case.
pub(crate) fn read_head(from: &mut impl BufRead) -> io::Result<(u16, Vec<(String, String)>)> {
    let malformed = |line: &str| io::Error::other(format!("no HTTP answer: {line:?}"));
    let line = read_line(from)?;
    let status = line.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)?.parse().ok());
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

/// The data of a chunked body.
pub(crate) struct Chunked<R> {
    from: R,
    /// Left of the chunk under way, or `None` after the last one.
    left: Option<u64>,
}

impl<R: BufRead> Chunked<R> {
    pub(crate) fn new(from: R) -> Self {
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
