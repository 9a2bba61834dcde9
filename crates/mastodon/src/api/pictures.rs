//! Files of pictures, at the URLs in entities. They need no token: anyone who knows a URL may read it until the picture
//! is deleted.
//!
//! **Invariant:** a wrong key in the URL reads no file, and the response does not depend on any file.
//! **Invariant:** a response holds one piece of its file at a time, which fits in the memory of its connection.

use std::io;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::header::{
    ACCESS_CONTROL_ALLOW_ORIGIN, CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_LENGTH,
    CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use edge::LineGate;
use edge::etag::is_known;
use feed::media::{MediaFile, MediaId, MediaKey};
use futures_util::stream;
use node::{picture_file, picture_path};
use subtle::ConstantTimeEq as _;

use crate::error::ApiError;
use crate::input::number;
use crate::state::Shared;

/// Size of a piece of a file, in bytes: as much as a response may hold within the memory of its connection.
const PIECE_BYTES: u64 = 16 << 10;
/// Headers of files. The content of a URL never changes, and browsers must not run it.
const HEADERS: [(HeaderName, &str); 5] = [
    (CACHE_CONTROL, "public, max-age=31536000, immutable"),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (CONTENT_SECURITY_POLICY, "default-src 'none'; sandbox"),
    (CONTENT_DISPOSITION, "inline"),
    (ACCESS_CONTROL_ALLOW_ORIGIN, "*"),
];

/// Paths of the default pictures of a profile. Apps know these names from Mastodon, and show a picture of their own.
pub(crate) const NO_AVATAR: &str = "/avatars/original/missing.png";
pub(crate) const NO_HEADER: &str = "/headers/original/missing.png";

/// `GET /avatars/original/missing.png`
pub(crate) async fn no_avatar() -> Response {
    placeholder(include_bytes!("../../pictures/avatar.png"))
}

/// `GET /headers/original/missing.png`
pub(crate) async fn no_header() -> Response {
    placeholder(include_bytes!("../../pictures/header.png"))
}

fn placeholder(png: &'static [u8]) -> Response {
    let headers = [
        (CONTENT_TYPE, "image/png"),
        (CACHE_CONTROL, "public, max-age=86400"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (ACCESS_CONTROL_ALLOW_ORIGIN, "*"),
    ];
    (headers, png).into_response()
}

/// Path of the files.
pub(crate) const PATH: &str = "/media/{picture}/{file}";

/// `GET /media/{id}-{key}/{original|small}.{jpg|png}`
pub(crate) async fn show(
    State(state): State<Shared>,
    Path((picture, name)): Path<(String, String)>,
    asked: HeaderMap,
) -> Response {
    find(&state, (&picture, &name), &asked).await.unwrap_or_else(|error| {
        let mut response = error.into_response();
        response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        response
    })
}

async fn find(
    state: &Shared,
    (picture, name): (&str, &str),
    asked: &HeaderMap,
) -> Result<Response, ApiError> {
    let (id, key) = parse(picture).ok_or_else(ApiError::not_found)?;
    let find = move |node: &node::Node| {
        let media = node.facts().shown_media(id);
        media.filter(|media| bool::from(media.key.0.ct_eq(&key.0)))
    };
    let media = state.read(find).await?.ok_or_else(ApiError::not_found)?;
    let is_small = name.starts_with("small.");
    // Each file has only one URL.
    if picture_path(id, &media, is_small) != format!("/media/{picture}/{name}") {
        return Err(ApiError::not_found());
    }
    let file = *picture_file(&media, is_small);
    let tag: String = file.hash.0.iter().take(12).map(|byte| format!("{byte:02x}")).collect();
    let mut response = match is_known(asked, &tag) {
        true => {
            let mut response = Response::new(Body::empty());
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            response
        }
        false => whole(state, file).await?,
    };
    let headers = response.headers_mut();
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    if let Ok(tag) = HeaderValue::try_from(format!("\"{tag}\"")) {
        headers.insert(ETAG, tag);
    }
    Ok(response)
}

/// Parses the id and the key in a URL.
fn parse(picture: &str) -> Option<(MediaId, MediaKey)> {
    let (id, digits) = picture.split_once('-')?;
    let is_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let key = u128::from_str_radix(digits, 16).ok().filter(|_| is_hex && digits.len() == 32)?;
    Some((MediaId(number(id)?), MediaKey(key.to_be_bytes())))
}

async fn whole(state: &Shared, file: MediaFile) -> Result<Response, ApiError> {
    let mut rest = Rest { state: Arc::clone(state), file, next: 0, read: None };
    // The first piece is read before the status of the response is sent, so that a missing file results in an error.
    rest.read = Some(match rest.piece().await {
        Ok(piece) => piece,
        // A cluster node may not have fetched the file yet.
        Err(_) if state.node.fetched_media(&file.hash).await => {
            rest.piece().await.map_err(|error| unreadable(&error))?
        }
        Err(_) if state.node.cluster().is_some() => return Err(ApiError::overloaded()),
        Err(error) => return Err(unreadable(&error)),
    });
    let body = Body::from_stream(stream::try_unfold(rest, Rest::next));
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    let kind = if file.is_png { "image/png" } else { "image/jpeg" };
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(CONTENT_LENGTH, file.bytes.into());
    Ok(response)
}

/// Rest of a file. The file is opened for each piece, so slow readers hold no open files.
struct Rest {
    state: Shared,
    file: MediaFile,
    /// Offset of the next piece.
    next: u64,
    /// Next piece, if it was already read.
    read: Option<Bytes>,
}

impl Rest {
    async fn next(mut self) -> io::Result<Option<(Bytes, Self)>> {
        if self.next >= u64::from(self.file.bytes) {
            return Ok(None);
        }
        let piece = match self.read.take() {
            Some(piece) => piece,
            None => self.piece().await.inspect_err(|error| _ = unreadable(error))?,
        };
        self.next += piece.len() as u64;
        Ok(Some((piece, self)))
    }

    /// Reads the next piece. Waits for a permit instead of failing, because the status of the response was already
    /// sent.
    async fn piece(&self) -> io::Result<Bytes> {
        let (node, file, at) = (self.state.node.clone(), self.file, self.next);
        let length = (u64::from(file.bytes) - at).min(PIECE_BYTES);
        let read = move || {
            let mut piece = vec![0; length as usize];
            node.open_media(&file.hash)?.read_exact_at(&mut piece, at)?;
            Ok::<_, io::Error>(piece)
        };
        let read = self.state.options.reads.pieces().run(read).await;
        read.map_err(|_| io::Error::other("a read panicked"))?.map(Bytes::from)
    }
}

fn unreadable(error: &io::Error) -> ApiError {
    static LINES: LineGate = LineGate::new();
    if let Some(failures) = LINES.due() {
        let text = "files of pictures cannot be read; roost verify says which";
        tracing::error!(%error, failures, "{text}");
    }
    ApiError::internal()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_an_id_and_a_key() {
        let key = "00112233445566778899aabbccddeeff";
        let parsed = parse(&format!("7-{key}")).unwrap();
        assert_eq!((parsed.0, parsed.1.0[1]), (MediaId(7), 0x11));
        for wrong in [
            format!("7-{}", &key[1..]),
            format!("7-+{}", &key[1..]),
            format!("7-{key}0"),
            format!("-{key}"),
            format!("x-{key}"),
            key.to_owned(),
            String::new(),
        ] {
            assert!(parse(&wrong).is_none(), "{wrong}");
        }
    }
}
