//! Requests as bytes, written into a buffer that is reused.

/// The common parts of all requests to one server.
#[derive(Debug, Clone)]
pub struct Requests {
    /// Part of every request from after the path to the last common header: the version, `Host` and, with a key,
    /// `Authorization`.
    common: String,
}

impl Requests {
    /// Creates requests to `host` (name or address, with the port), with the key if there is one.
    pub fn new(host: &str, key: Option<&str>) -> Requests {
        let mut common = format!(" HTTP/1.1\r\nHost: {host}\r\n");
        if let Some(key) = key {
            common.push_str(&format!("Authorization: Bearer {key}\r\n"));
        }
        Requests { common }
    }

    /// Replaces `buffer` with a GET of `path`.
    pub fn get(&self, path: &str, buffer: &mut Vec<u8>) {
        self.begin("GET ", path, buffer);
        buffer.extend_from_slice(b"\r\n");
    }

    /// Replaces `buffer` with a POST of a JSON `body` to `path`.
    pub fn post(&self, path: &str, body: &[u8], buffer: &mut Vec<u8>) {
        self.send_as("POST ", "application/json", path, body, buffer);
    }

    /// Replaces `buffer` with a GET of `path`, authorized by `token`.
    pub(crate) fn get_as(&self, token: &str, path: &str, buffer: &mut Vec<u8>) {
        self.begin("GET ", path, buffer);
        authorize(token, buffer);
        buffer.extend_from_slice(b"\r\n");
    }

    /// Replaces `buffer` with a POST of a JSON `body` to `path`, authorized by `token`.
    pub(crate) fn post_as(&self, token: &str, path: &str, body: &[u8], buffer: &mut Vec<u8>) {
        self.begin("POST ", path, buffer);
        authorize(token, buffer);
        finish("application/json", body, buffer);
    }

    /// Replaces `buffer` with a PUT of a `body` of any bytes to `path`.
    pub fn put(&self, path: &str, body: &[u8], buffer: &mut Vec<u8>) {
        self.send_as("PUT ", "application/octet-stream", path, body, buffer);
    }

    /// Replaces `buffer` with a PUT to `path` that the server refuses with 412 if something exists there.
    pub(crate) fn put_new(&self, path: &str, buffer: &mut Vec<u8>) {
        self.begin("PUT ", path, buffer);
        buffer.extend_from_slice(b"If-None-Match: *\r\nContent-Length: 0\r\n\r\n");
    }

    /// Replaces `buffer` with a POST of NDJSON `lines` to `path`.
    pub fn post_lines(&self, path: &str, lines: &[u8], buffer: &mut Vec<u8>) {
        self.send_as("POST ", "application/x-ndjson", path, lines, buffer);
    }

    fn send_as(&self, method: &str, media: &str, path: &str, body: &[u8], buffer: &mut Vec<u8>) {
        self.begin(method, path, buffer);
        finish(media, body, buffer);
    }

    /// Replaces `buffer` with the head of a POST to `path`; the chunked NDJSON body must follow.
    pub(crate) fn post_stream(&self, path: &str, buffer: &mut Vec<u8>) {
        self.begin("POST ", path, buffer);
        buffer.extend_from_slice(
            b"Content-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n\r\n",
        );
    }

    fn begin(&self, method: &str, path: &str, buffer: &mut Vec<u8>) {
        buffer.clear();
        for part in [method, path, &self.common] {
            buffer.extend_from_slice(part.as_bytes());
        }
    }
}

fn authorize(token: &str, buffer: &mut Vec<u8>) {
    for part in ["Authorization: Bearer ", token, "\r\n"] {
        buffer.extend_from_slice(part.as_bytes());
    }
}

fn finish(media: &str, body: &[u8], buffer: &mut Vec<u8>) {
    let mut digits = itoa::Buffer::new();
    let length = digits.format(body.len());
    for part in ["Content-Type: ", media, "\r\nContent-Length: ", length, "\r\n\r\n"] {
        buffer.extend_from_slice(part.as_bytes());
    }
    buffer.extend_from_slice(body);
}

/// Inserts the idempotency key, by which a server recognizes a repeated request.
pub(crate) fn insert_idempotency_key(key: &str, request: &mut Vec<u8>) {
    let line = request.windows(2).position(|pair| pair == b"\r\n");
    let at = line.map_or(request.len(), |line| line + 2);
    request.splice(at..at, format!("Idempotency-Key: {key}\r\n").into_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idempotency_key_is_the_first_header() {
        let mut request = Vec::new();
        Requests::new("localhost:1", None).post("/v1/x", b"{}", &mut request);
        insert_idempotency_key("k7", &mut request);
        let expect = "POST /v1/x HTTP/1.1\r\nIdempotency-Key: k7\r\nHost: localhost:1\r\n\
                      Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}";
        assert_eq!(String::from_utf8(request).unwrap(), expect);
    }
}
