//! Bodies of forms with files, which are longer than others.
//!
//! **Invariant:** a body takes at most [`BODY_BYTES_MAX`], those of a user at most [`USER_BYTES_MAX`], all together at
//! most [`MEMORY`]. One body per user is read at a time, while up to [`USER_BODIES_MAX`] minus one wait. Memory is
//! reserved as bytes arrive, and a body slower than [`WINDOW_BYTES`] per 5 s ends. If memory is short, the body that
//! has held the most memory for the longest time ends, so that slow senders do not block faster ones.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::{Body, HttpBody as _};
use axum::http::StatusCode;
use edge::{BodyError, BodyLimits, BodySink};
use feed::UserId;
use media::FILE_BYTES_MAX;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout};

use crate::error::ApiError;

/// Maximum size of a body, in bytes: a file, and as much as other forms may have.
pub(crate) const BODY_BYTES_MAX: usize = FILE_BYTES_MAX + crate::bodies::BODY_BYTES_MAX;
/// Maximum memory of all bodies, in bytes: four of the longest.
pub(crate) const MEMORY: usize = 4 * BODY_BYTES_MAX;
/// Maximum number of concurrent or waiting bodies of one user: the pictures of a post.
const USER_BODIES_MAX: u32 = 4;
/// Maximum memory of one user's bodies, in bytes: that of the longest body, and half as much again for a part that is
/// copied.
const USER_BYTES_MAX: usize = BODY_BYTES_MAX + BODY_BYTES_MAX / 2;
/// Maximum time for which a body waits for earlier ones of its user.
const TURN_WAIT: Duration = Duration::from_secs(120);
/// Number of bytes that must arrive within 5 s. It is small, because mobile networks are slow.
const WINDOW_BYTES: usize = 64 << 10;

/// Bodies being read or used.
pub(crate) struct Uploads {
    memory: Mutex<Memory>,
    /// Notification, for bodies that wait for memory, that another body has ended.
    freed: Notify,
}

/// Memory of all bodies.
struct Memory {
    /// Free bytes.
    free: usize,
    /// Number of bytes held by bodies that are being ended.
    ending: usize,
    of_user: HashMap<UserId, Share>,
}

/// Bodies of a user.
struct Share {
    /// Number of bodies that are read, used, or waiting.
    bodies: u32,
    /// Number of bytes held by the body whose turn it is.
    bytes: usize,
    /// Permit for the body that is read or used.
    turn: Arc<Semaphore>,
    reading: Option<Reading>,
}

/// Body being read.
struct Reading {
    began: Instant,
    is_ending: bool,
    end: Arc<Notify>,
}

/// Body of a user. Its memory is reserved until it is dropped.
pub(crate) struct Uploading {
    uploads: Arc<Uploads>,
    user: UserId,
    bytes: usize,
    /// Notification that ends this body.
    end: Arc<Notify>,
    turn: Option<OwnedSemaphorePermit>,
}

impl Share {
    fn new() -> Self {
        Self { bodies: 0, bytes: 0, turn: Arc::new(Semaphore::new(1)), reading: None }
    }

    /// Product of the memory that the body holds and the time for which it has been read; `None` if it is not being
    /// read.
    fn weight(&self, now: Instant) -> Option<u128> {
        let reading = self.reading.as_ref()?;
        let ms = now.saturating_duration_since(reading.began).as_millis() + 1;
        Some(self.bytes as u128 * ms)
    }
}

impl Memory {
    /// Reserves memory for more bytes of a body.
    ///
    /// # Errors
    /// 503 if there is none, or the user has too much.
    fn take(&mut self, user: UserId, bytes: usize) -> Result<(), ApiError> {
        let share = self.of_user.get_mut(&user).ok_or_else(ApiError::internal)?;
        let is_ending = share.reading.as_ref().is_some_and(|reading| reading.is_ending);
        if is_ending || share.bytes + bytes > USER_BYTES_MAX || bytes > self.free {
            return Err(ApiError::overloaded());
        }
        share.bytes += bytes;
        self.free -= bytes;
        Ok(())
    }

    fn give_back(&mut self, user: UserId, bytes: usize) {
        let Some(share) = self.of_user.get_mut(&user) else { return };
        share.bytes -= bytes;
        self.free += bytes;
        if share.reading.as_ref().is_some_and(|reading| reading.is_ending) {
            self.ending -= bytes;
        }
    }

    /// Whether memory for a body will become free. Ends the body that has held the most memory for the longest time,
    /// unless it is that of this user, or another body is already ending.
    fn makes_room(&mut self, user: UserId, now: Instant) -> bool {
        if self.ending > 0 {
            return true;
        }
        let own = self.of_user.get(&user).and_then(|share| share.weight(now));
        let heaviest = self.of_user.values_mut().max_by_key(|share| share.weight(now));
        let Some(share) = heaviest.filter(|share| share.weight(now) > own) else { return false };
        let bytes = share.bytes;
        let Some(reading) = &mut share.reading else { return false };
        reading.is_ending = true;
        reading.end.notify_one();
        self.ending = bytes;
        bytes > 0
    }
}

impl Uploads {
    pub(crate) fn new() -> Arc<Self> {
        let memory = Memory { free: MEMORY, ending: 0, of_user: HashMap::new() };
        Arc::new(Self { memory: Mutex::new(memory), freed: Notify::new() })
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        // No code that may panic runs while the lock is held.
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a body, and waits until it may be read.
    ///
    /// # Errors
    /// 429 if the user has too many, or earlier ones take too long.
    pub(crate) async fn begin(self: &Arc<Self>, user: UserId) -> Result<Uploading, ApiError> {
        let (mut upload, turn) = {
            let mut memory = self.memory();
            let share = memory.of_user.entry(user).or_insert_with(Share::new);
            if share.bodies == USER_BODIES_MAX {
                return Err(ApiError::too_many());
            }
            share.bodies += 1;
            let (uploads, end) = (Arc::clone(self), Arc::default());
            (Uploading { uploads, user, bytes: 0, end, turn: None }, Arc::clone(&share.turn))
        };
        let turn = timeout(TURN_WAIT, turn.acquire_owned()).await;
        let turn = turn.map_err(|_| ApiError::too_many())?.map_err(|_| ApiError::internal())?;
        upload.turn = Some(turn);
        Ok(upload)
    }
}

impl Uploading {
    /// Reserves memory for more bytes.
    ///
    /// # Errors
    /// 503 if there is none.
    pub(crate) fn pay(&mut self, bytes: usize) -> Result<(), ApiError> {
        self.uploads.memory().take(self.user, bytes)?;
        self.bytes += bytes;
        Ok(())
    }

    /// Reserves memory for more bytes of a body being read. If there is none, ends another body.
    ///
    /// # Errors
    /// 503 if this body has held the most memory for the longest time.
    async fn pay_or_end_another(&mut self, bytes: usize) -> Result<(), ApiError> {
        loop {
            let mut freed = pin!(self.uploads.freed.notified());
            // From here on, every notification is received, even one before the wait.
            freed.as_mut().enable();
            {
                let mut memory = self.uploads.memory();
                if memory.take(self.user, bytes).is_ok() {
                    break;
                }
                if !memory.makes_room(self.user, Instant::now()) {
                    return Err(ApiError::overloaded());
                }
            }
            tokio::select! {
                () = self.end.notified() => return Err(ApiError::overloaded()),
                () = freed => {}
            }
        }
        self.bytes += bytes;
        Ok(())
    }

    /// Marks the beginning of reading.
    fn begin_reading(&self) {
        let reading =
            Reading { began: Instant::now(), is_ending: false, end: Arc::clone(&self.end) };
        if let Some(share) = self.uploads.memory().of_user.get_mut(&self.user) {
            share.reading = Some(reading);
        }
    }

    /// Marks the end of reading. An incomplete or ended body releases its memory, so that those who wait for it end no
    /// other body.
    fn end_reading(&mut self, read: Result<Vec<u8>, ApiError>) -> Result<Vec<u8>, ApiError> {
        let mut memory = self.uploads.memory();
        let share = memory.of_user.get_mut(&self.user).ok_or_else(ApiError::internal)?;
        let is_ending = share.reading.as_ref().is_some_and(|reading| reading.is_ending);
        let read = if is_ending { Err(ApiError::overloaded()) } else { read };
        if read.is_err() {
            memory.give_back(self.user, std::mem::take(&mut self.bytes));
        }
        if let Some(share) = memory.of_user.get_mut(&self.user) {
            share.reading = None;
        }
        drop(memory);
        self.uploads.freed.notify_waiters();
        read
    }

    /// Reads a body.
    ///
    /// # Errors
    /// 413, 408, 503, or 400 if it is incomplete.
    pub(crate) async fn read(&mut self, body: Body) -> Result<Vec<u8>, ApiError> {
        self.begin_reading();
        let read = self.read_all(body).await;
        self.end_reading(read)
    }

    async fn read_all(&mut self, body: Body) -> Result<Vec<u8>, ApiError> {
        let size = body.size_hint();
        let most = size.upper().and_then(|bytes| usize::try_from(bytes).ok());
        // Unused capacity takes no physical memory until bytes arrive.
        let whole = Vec::with_capacity(most.unwrap_or(usize::MAX).min(BODY_BYTES_MAX));
        let end = Arc::clone(&self.end);
        let mut arriving = Arriving { upload: self, whole };
        let limits = BodyLimits { bytes_max: BODY_BYTES_MAX, window_bytes: WINDOW_BYTES };
        tokio::select! {
            biased;
            () = end.notified() => Err(ApiError::overloaded()),
            read = edge::read_into(body, limits, &mut arriving) => match read {
                Ok(()) => Ok(arriving.whole),
                Err(UploadError(error)) => Err(error),
            },
        }
    }
}

/// Body while it arrives.
struct Arriving<'u> {
    upload: &'u mut Uploading,
    whole: Vec<u8>,
}

/// Reason why a body was not read.
struct UploadError(ApiError);

impl From<BodyError> for UploadError {
    fn from(error: BodyError) -> Self {
        Self(match error {
            BodyError::TooLarge(_) => {
                let why = format!("A picture has at most {FILE_BYTES_MAX} bytes");
                ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, why)
            }
            other => other.into(),
        })
    }
}

impl BodySink for Arriving<'_> {
    type Error = UploadError;

    async fn take(&mut self, data: &[u8]) -> Result<(), UploadError> {
        self.upload.pay_or_end_another(data.len()).await.map_err(UploadError)?;
        self.whole.extend_from_slice(data);
        Ok(())
    }
}

impl Drop for Uploading {
    fn drop(&mut self) {
        let mut memory = self.uploads.memory();
        memory.give_back(self.user, self.bytes);
        if let Some(share) = memory.of_user.get_mut(&self.user) {
            share.bodies -= 1;
            if self.turn.is_some() {
                share.reading = None;
            }
            if share.bodies == 0 {
                memory.of_user.remove(&self.user);
            }
        }
        drop(memory);
        self.uploads.freed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use axum::body::Bytes;
    use futures_util::{StreamExt as _, stream};

    use super::*;

    const USER: UserId = UserId(1);

    /// Makes a body of `times` parts of `bytes` bytes, with one part every `every`.
    fn sending(bytes: usize, every: Duration, times: usize) -> Body {
        let frames = stream::unfold(0, move |sent| async move {
            tokio::time::sleep(every).await;
            (sent < times).then(|| (Ok::<_, Infallible>(Bytes::from(vec![1; bytes])), sent + 1))
        });
        Body::from_stream(frames)
    }

    async fn read(uploads: &Arc<Uploads>, user: UserId, body: Body) -> Result<usize, u16> {
        let status = |error: ApiError| error.status().as_u16();
        let mut upload = uploads.begin(user).await.map_err(status)?;
        let read = upload.read(body).await;
        read.map(|bytes| bytes.len()).map_err(status)
    }

    fn is_free(uploads: &Uploads) -> bool {
        let memory = uploads.memory();
        (memory.free, memory.ending) == (MEMORY, 0) && memory.of_user.is_empty()
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
        // Many users begin, and then send nothing.
        let mut begun = Vec::new();
        for user in 10..1_000 {
            let mut upload = uploads.begin(UserId(user)).await.ok().unwrap();
            upload.pay(100).ok().unwrap();
            begun.push(upload);
        }
        let whole = Body::from(vec![1; BODY_BYTES_MAX]);
        assert_eq!(read(&uploads, USER, whole).await, Ok(BODY_BYTES_MAX));
        drop(begun);
        assert!(is_free(&uploads));
    }

    #[tokio::test(start_paused = true)]
    async fn bodies_of_a_user_are_read_one_after_the_other() {
        let uploads = Uploads::new();
        assert_eq!(read(&uploads, USER, Body::from(vec![1; BODY_BYTES_MAX + 1])).await, Err(413));
        let slow = || sending(WINDOW_BYTES, Duration::from_secs(1), 20);
        let reads = (0..USER_BODIES_MAX + 1).map(|_| read(&uploads, USER, slow()));
        let began = Instant::now();
        let mut found = futures_util::future::join_all(reads).await;
        found.sort_unstable();
        let all = Ok(20 * WINDOW_BYTES);
        assert_eq!(found, [all, all, all, all, Err(429)]);
        assert!(began.elapsed() > Duration::from_secs(4 * 20));
        // A user sends two long bodies. The second does not wait forever.
        let long = || sending(WINDOW_BYTES, Duration::from_secs(1), 130);
        let (first, second) =
            tokio::join!(read(&uploads, USER, long()), read(&uploads, USER, long()));
        assert_eq!((first, second), (Ok(130 * WINDOW_BYTES), Err(429)));
        assert!(is_free(&uploads));
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_is_ended_has_given_its_memory_back_when_others_look() {
        let uploads = Uploads::new();
        let hold = |user| {
            let uploads = Arc::clone(&uploads);
            tokio::spawn(async move {
                let mut upload = uploads.begin(UserId(user)).await.ok().unwrap();
                let first = stream::iter([Ok::<_, Infallible>(Bytes::from(vec![1; MEMORY / 8]))]);
                let rest = sending(WINDOW_BYTES, Duration::from_secs(4), 250).into_data_stream();
                let rest = rest.map(|data| data.map_err(|_| unreachable!()));
                assert!(upload.read(Body::from_stream(first.chain(rest))).await.is_err());
                // The upload is dropped much later, as if another thread still used it.
                std::future::pending::<()>().await;
            })
        };
        let holding: Vec<_> = (10..18).map(hold).collect();
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(read(&uploads, USER, Body::from(vec![1; 1_000])).await, Ok(1_000));
        let reading =
            uploads.memory().of_user.values().filter(|share| share.reading.is_some()).count();
        assert_eq!(reading, holding.len() - 1, "one body is ended");
        holding.iter().for_each(tokio::task::JoinHandle::abort);
    }

    #[tokio::test(start_paused = true)]
    async fn those_who_hold_all_memory_for_long_keep_out_nobody() {
        let uploads = Uploads::new();
        let second = Duration::from_secs(1);
        // Eight users fill the memory and continue as slowly as allowed. When the server ends their uploads, they begin
        // again, as often as the limit of uploads allows.
        let attack = |user| {
            let uploads = Arc::clone(&uploads);
            tokio::spawn(async move {
                let mut ended = 0;
                while ended < 50 {
                    let first = stream::iter([Ok::<_, Infallible>(vec![1; MEMORY / 8])]);
                    let rest = sending(WINDOW_BYTES, second * 4, 250).into_data_stream();
                    let body =
                        first.map(|all| all.map(Bytes::from).map_err(|never| match never {}));
                    let body = Body::from_stream(body.chain(rest));
                    ended += usize::from(read(&uploads, UserId(user), body).await == Err(503));
                    tokio::time::sleep(second * 60).await;
                }
            })
        };
        let attacks: Vec<_> = (10..18).map(attack).collect();
        tokio::time::sleep(second * 20).await;
        for at in 0..20 {
            let photo = || sending(512 << 10, second / 2, 20);
            let both = tokio::join!(
                read(&uploads, UserId(1), photo()),
                read(&uploads, UserId(2), photo())
            );
            let all = Ok(20 * (512 << 10));
            assert_eq!(both, (all, all), "pictures {at}");
        }
        for attack in attacks {
            attack.abort();
            assert!(attack.await.is_err());
        }
        assert!(is_free(&uploads));
    }
}
