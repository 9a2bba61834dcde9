//! The bodies of forms with files, which are longer than others.
//!
//! **Invariant:** a body takes at most [`BODY_BYTES_MAX`], those of a user [`USER_BYTES_MAX`], all together [`MEMORY`]. Of a
//! user one body is read at a time, while up to [`USER_BODIES_MAX`] less one wait. Memory is taken as bytes arrive, and a
//! body that is slower than [`WINDOW_BYTES`] in 5 s ends. If there is no memory for what arrives, the body ends that
//! has held most for longest, so those who hold memory keep out nobody who sends a body at the usual speed.

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

/// Longest body, in bytes: a file, and what other forms may have.
pub(crate) const BODY_BYTES_MAX: usize = FILE_BYTES_MAX + crate::bodies::BODY_BYTES_MAX;
/// Most memory of all bodies, in bytes: four of the longest.
pub(crate) const MEMORY: usize = 4 * BODY_BYTES_MAX;
/// Most bodies of one user that are read or wait at a time: the pictures of a post.
const USER_BODIES_MAX: u32 = 4;
/// Most memory of the bodies of one user, in bytes: one of the longest, and as much again of a part of it that is moved.
const USER_BYTES_MAX: usize = BODY_BYTES_MAX + BODY_BYTES_MAX / 2;
/// Longest time that a body waits for those that its user sent before.
const TURN_WAIT: Duration = Duration::from_secs(120);
/// Bytes that must arrive within 5 s: the networks of telephones are slow.
const WINDOW_BYTES: usize = 64 << 10;

/// The bodies that are being read or used.
pub(crate) struct Uploads {
    memory: Mutex<Memory>,
    /// Tells those who wait for memory that a body ended.
    freed: Notify,
}

/// The memory of all bodies.
struct Memory {
    /// Bytes that nobody has.
    free: usize,
    /// Bytes of bodies that have been told to end.
    ending: usize,
    of_user: HashMap<UserId, Share>,
}

/// What a user has of them.
struct Share {
    /// Bodies that are read, used, or wait.
    bodies: u32,
    /// Bytes of the body that has the turn.
    bytes: usize,
    /// A permit for the body that is read or used.
    turn: Arc<Semaphore>,
    reading: Option<Reading>,
}

/// A body that is being read.
struct Reading {
    began: Instant,
    is_ending: bool,
    end: Arc<Notify>,
}

/// A body of a user. Its bytes are paid for until it is dropped.
pub(crate) struct Uploading {
    uploads: Arc<Uploads>,
    user: UserId,
    bytes: usize,
    /// Tells this body to end.
    end: Arc<Notify>,
    turn: Option<OwnedSemaphorePermit>,
}

impl Share {
    fn new() -> Self {
        Self { bodies: 0, bytes: 0, turn: Arc::new(Semaphore::new(1)), reading: None }
    }

    /// The memory that the body holds and the time for which it has been read, as a product; `None` if it is not read.
    fn weight(&self, now: Instant) -> Option<u128> {
        let reading = self.reading.as_ref()?;
        let ms = now.saturating_duration_since(reading.began).as_millis() + 1;
        Some(self.bytes as u128 * ms)
    }
}

impl Memory {
    /// Takes memory for more bytes of a body.
    ///
    /// # Errors
    /// 503 if there is none, or the user has enough.
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

    /// Whether there will be memory for a body: tells the body to end that has held most for longest, unless it is that of
    /// this user, or one ends already.
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
        // No code that may panic runs while it is locked.
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a body, and waits until it may be read.
    ///
    /// # Errors
    /// 429 if its user has too many, or those before take too long.
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
    /// Takes memory for more bytes.
    ///
    /// # Errors
    /// 503 if there is none.
    pub(crate) fn pay(&mut self, bytes: usize) -> Result<(), ApiError> {
        self.uploads.memory().take(self.user, bytes)?;
        self.bytes += bytes;
        Ok(())
    }

    /// Takes memory for more bytes of a body that is being read, of another body if there is none.
    ///
    /// # Errors
    /// 503 if this body has held most for longest.
    async fn pay_or_end_another(&mut self, bytes: usize) -> Result<(), ApiError> {
        loop {
            let mut freed = pin!(self.uploads.freed.notified());
            // From here on no notification is missed.
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

    /// Marks the end of reading. What did not arrive whole, or was told to end, holds no memory any more: those who wait for it
    /// find it free, and end no other body.
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
        // What is reserved and not used takes no memory: it does when it arrives.
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

/// A body that is being read.
struct Arriving<'u> {
    upload: &'u mut Uploading,
    whole: Vec<u8>,
}

/// Why a body was not read.
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

    /// A body that sends `bytes` bytes every `every`, so many times.
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
        // Many who begin and send nothing more.
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
        // Two that take long together: the second one does not wait for ever.
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
                // It is dropped only later, as it may be on another thread.
                std::future::pending::<()>().await;
            })
        };
        let holding: Vec<_> = (10..18).map(hold).collect();
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(read(&uploads, USER, Body::from(vec![1; 1_000])).await, Ok(1_000));
        let reading =
            uploads.memory().of_user.values().filter(|share| share.reading.is_some()).count();
        assert_eq!(reading, holding.len() - 1, "one is ended");
        holding.iter().for_each(tokio::task::JoinHandle::abort);
    }

    #[tokio::test(start_paused = true)]
    async fn those_who_hold_all_memory_for_long_keep_out_nobody() {
        let uploads = Uploads::new();
        let second = Duration::from_secs(1);
        // Eight users fill the memory, go on as slowly as is allowed, and send as much again when they are ended, as often
        // as the limit of uploads lets them.
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
