//! The bodies of forms with files, which are longer than others.
//!
//! **Invariant:** a body takes at most [`BODY_BYTES_MAX`], those of a user [`USER_BYTES_MAX`] and [`USER_BODIES_MAX`] at a
//! time, all together [`MEMORY`]. Memory is taken as bytes arrive, and a body that is slower than [`WINDOW_BYTES`] in
//! [`WINDOW`] ends, so who sends slowly holds little, and not for long.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::{Body, HttpBody as _};
use axum::http::StatusCode;
use feed::UserId;
use http_body_util::BodyExt as _;
use media::FILE_BYTES_MAX;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

use crate::error::ApiError;

/// Longest body, in bytes: a file, and what other forms may have.
pub(crate) const BODY_BYTES_MAX: usize = FILE_BYTES_MAX + crate::bodies::BODY_BYTES_MAX;
/// Most memory of all bodies, in bytes: four of the longest.
pub(crate) const MEMORY: usize = 4 * BODY_BYTES_MAX;
/// Most bodies of one user that are read at a time: the pictures of a post.
const USER_BODIES_MAX: u32 = 4;
/// Most memory of the bodies of one user, in bytes: one of the longest, and as much again of a part of it that is moved.
const USER_BYTES_MAX: usize = BODY_BYTES_MAX + BODY_BYTES_MAX / 2;
/// The first [`WINDOW_BYTES`] of a body, or all of it, must arrive within this time.
const FIRST_WINDOW: Duration = Duration::from_secs(10);
/// After that, another [`WINDOW_BYTES`], or the end, must arrive within each such period.
const WINDOW: Duration = Duration::from_secs(5);
const WINDOW_BYTES: usize = 64 << 10;

/// The bodies that are being read or used.
pub(crate) struct Uploads {
    /// A permit for each byte.
    bytes: Arc<Semaphore>,
    of_user: Mutex<HashMap<UserId, Share>>,
}

/// What a user has of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Share {
    bodies: u32,
    bytes: usize,
}

/// A body of a user. Its bytes are paid for until it is dropped.
pub(crate) struct Uploading {
    uploads: Arc<Uploads>,
    user: UserId,
    bytes: usize,
    paid: Option<OwnedSemaphorePermit>,
}

impl Uploads {
    pub(crate) fn new() -> Arc<Self> {
        let bytes = Arc::new(Semaphore::new(MEMORY));
        Arc::new(Self { bytes, of_user: Mutex::default() })
    }

    /// Counts a body; none if its user has too many.
    pub(crate) fn begin(self: &Arc<Self>, user: UserId) -> Option<Uploading> {
        let mut of_user = self.of_user.lock().ok()?;
        let share = of_user.entry(user).or_default();
        (share.bodies < USER_BODIES_MAX).then(|| share.bodies += 1)?;
        Some(Uploading { uploads: Arc::clone(self), user, bytes: 0, paid: None })
    }
}

impl Uploading {
    /// Takes memory for more bytes.
    ///
    /// # Errors
    /// 503 if there is none.
    pub(crate) fn pay(&mut self, bytes: usize) -> Result<(), ApiError> {
        let count = u32::try_from(bytes).map_err(|_| ApiError::overloaded())?;
        let mut of_user = self.uploads.of_user.lock().map_err(|_| ApiError::overloaded())?;
        let share = of_user.get_mut(&self.user).ok_or_else(ApiError::internal)?;
        if share.bytes + bytes > USER_BYTES_MAX {
            return Err(ApiError::overloaded());
        }
        let more = Arc::clone(&self.uploads.bytes).try_acquire_many_owned(count);
        let more = more.map_err(|_| ApiError::overloaded())?;
        share.bytes += bytes;
        self.bytes += bytes;
        match &mut self.paid {
            Some(paid) => paid.merge(more),
            None => self.paid = Some(more),
        }
        Ok(())
    }

    /// Reads a body.
    ///
    /// # Errors
    /// 413, 408, 503, or 400 if it is incomplete.
    pub(crate) async fn read(&mut self, mut body: Body) -> Result<Vec<u8>, ApiError> {
        let announced = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
        if announced > BODY_BYTES_MAX {
            return Err(too_large());
        }
        // What is announced is reserved and not used: it takes memory when it arrives.
        let mut whole = Vec::with_capacity(announced);
        let (mut deadline, mut window_end) = (Instant::now() + FIRST_WINDOW, WINDOW_BYTES);
        loop {
            let late =
                |_| ApiError::new(StatusCode::REQUEST_TIMEOUT, "The body did not arrive in time");
            let frame = timeout_at(deadline, body.frame()).await.map_err(late)?;
            let Some(frame) = frame else { return Ok(whole) };
            let broken = |_| ApiError::invalid_request("the body is incomplete");
            let Ok(data) = frame.map_err(broken)?.into_data() else { continue };
            self.push(&mut whole, &data)?;
            if whole.len() >= window_end {
                (deadline, window_end) = (Instant::now() + WINDOW, whole.len() + WINDOW_BYTES);
            }
        }
    }

    /// Appends what has arrived.
    fn push(&mut self, whole: &mut Vec<u8>, data: &[u8]) -> Result<(), ApiError> {
        let (length, capacity) = (whole.len() + data.len(), whole.capacity());
        if length > BODY_BYTES_MAX {
            return Err(too_large());
        }
        if length > capacity {
            let grown = length.max((2 * capacity).min(BODY_BYTES_MAX));
            // The bytes exist twice while they are moved.
            let moved = whole.len();
            self.pay(moved)?;
            whole.reserve_exact(grown - moved);
            self.refund(moved);
        }
        self.pay(data.len())?;
        whole.extend_from_slice(data);
        Ok(())
    }

    /// Gives memory back.
    fn refund(&mut self, bytes: usize) {
        let bytes = bytes.min(self.bytes);
        drop(self.paid.as_mut().and_then(|paid| paid.split(bytes)));
        self.bytes -= bytes;
        if let Ok(mut of_user) = self.uploads.of_user.lock()
            && let Some(share) = of_user.get_mut(&self.user)
        {
            share.bytes -= bytes;
        }
    }
}

impl Drop for Uploading {
    fn drop(&mut self) {
        self.refund(self.bytes);
        if let Ok(mut of_user) = self.uploads.of_user.lock()
            && let Some(share) = of_user.get_mut(&self.user)
        {
            share.bodies -= 1;
            if share.bodies == 0 {
                of_user.remove(&self.user);
            }
        }
    }
}

fn too_large() -> ApiError {
    let why = format!("A picture has at most {FILE_BYTES_MAX} bytes");
    ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, why)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use axum::body::Bytes;
    use futures_util::stream;

    use super::*;

    const USER: UserId = UserId(1);

    /// A body that sends `bytes` bytes every `every`, so many times.
    fn sending(bytes: usize, every: Duration, times: usize) -> Body {
        let frames = stream::unfold(0, move |sent| async move {
            tokio::time::sleep(every).await;
            (sent < times).then(|| (Ok::<_, Infallible>(Bytes::from(vec![1; bytes])), sent + 1))
        });
        Body::from_stream(frames)
    }

    async fn read(uploads: &Arc<Uploads>, user: UserId, body: Body) -> Result<usize, u16> {
        let mut upload = uploads.begin(user).ok_or(429_u16)?;
        let read = upload.read(body).await;
        read.map(|bytes| bytes.len()).map_err(|error| error.status().as_u16())
    }

    fn is_free(uploads: &Uploads) -> bool {
        uploads.bytes.available_permits() == MEMORY && uploads.of_user.lock().unwrap().is_empty()
    }

    #[tokio::test(start_paused = true)]
    async fn who_sends_too_slowly_is_refused_and_holds_only_what_has_arrived() {
        let uploads = Uploads::new();
        let second = Duration::from_secs(1);
        let fast = sending(WINDOW_BYTES / 4, second, 250);
        assert_eq!(read(&uploads, USER, fast).await, Ok(WINDOW_BYTES / 4 * 250));
        assert_eq!(read(&uploads, USER, sending(100, second, 9)).await, Ok(900));
        for slow in [sending(100, second, 1_000), sending(0, second * 60, 2)] {
            assert_eq!(read(&uploads, USER, slow).await, Err(408));
        }
        assert!(is_free(&uploads));
        // Many who begin and send nothing more.
        let mut begun = Vec::new();
        for user in 0..1_000 {
            let mut upload = uploads.begin(UserId(user)).unwrap();
            let mut whole = Vec::new();
            upload.push(&mut whole, &[1; 100]).unwrap();
            begun.push((upload, whole));
        }
        let whole = Body::from(vec![1; BODY_BYTES_MAX]);
        assert_eq!(read(&uploads, USER, whole).await, Ok(BODY_BYTES_MAX));
        drop(begun);
        assert!(is_free(&uploads));
    }

    #[tokio::test]
    async fn bodies_of_a_user_and_of_all_are_bounded_and_given_back() {
        let uploads = Uploads::new();
        let longest = || Body::from(vec![1; BODY_BYTES_MAX]);
        assert_eq!(read(&uploads, USER, Body::from(vec![1; BODY_BYTES_MAX + 1])).await, Err(413));
        let begun: Vec<_> = (0..USER_BODIES_MAX).map(|_| uploads.begin(USER).unwrap()).collect();
        assert!(uploads.begin(USER).is_none() && uploads.begin(UserId(2)).is_some());
        drop(begun);
        let mut held = Vec::new();
        // One of the longest, and half of one, of each of two users; then there is room for another of the longest.
        let of = |user| [BODY_BYTES_MAX, BODY_BYTES_MAX / 2].map(|bytes| (UserId(user), bytes));
        for (user, bytes) in [of(1), of(2)].concat() {
            let mut upload = uploads.begin(user).unwrap();
            let whole = upload.read(Body::from(vec![1; bytes])).await.ok().unwrap();
            assert_eq!(whole.len(), bytes);
            held.push((upload, whole));
        }
        for user in [1, 2] {
            assert_eq!(read(&uploads, UserId(user), Body::from("xx")).await, Err(503), "all of it");
        }
        let mut last = uploads.begin(UserId(3)).unwrap();
        assert!(last.read(longest()).await.is_ok());
        assert_eq!(read(&uploads, UserId(4), Body::from("xx")).await, Err(503), "all of all");
        held.remove(0);
        assert_eq!(read(&uploads, UserId(4), longest()).await, Ok(BODY_BYTES_MAX));
        drop(last);
        drop(held);
        assert!(is_free(&uploads));
    }
}
