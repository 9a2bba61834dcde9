//! Limited blocking reads. They run on other threads than those that serve connections.
//!
//! There are four lanes. The quick lane is for reads of a few rows, which at most wait for a disk. The long lane is for
//! reads of keys that take many rows or much computation (KEYS, LCS). The listing lane is for lists of many rows that
//! users request. The computation lane is for work without rows (recognition, decoding of images). The last three lanes
//! have few threads, so that they delay neither quick reads nor each other. **Invariant:** the number of running reads
//! of a lane is limited, and a fixed multiple of that number may wait.
//!
//! A thread of a lane takes reads from the lane's queue until the queue is empty. The quick lane gets another thread
//! only when more reads wait than threads run. Waking a thread takes longer than a read from memory, and a read that
//! waits for a disk delays at most one other read.
//!
//! Turns are a separate queue, for reads that may wait but are never refused: those for responses to changes, for live
//! streams, for permissions of long requests, of the change feed, and for pieces of files.
//!
//! All protocols share one set of lanes and turns. A long read stops early if its caller no longer waits for it.

use std::any::Any;
use std::collections::VecDeque;
use std::num::NonZero;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::task::JoinError;

use crate::request_id::carry;

/// Number of quick reads that may wait, per read that may run.
const WAITING_PER_RUNNING: usize = 16;
/// Number of reads of another lane that may wait, per read that may run. It is higher than for quick reads, because
/// these lanes have few threads.
const WAITING_PER_RUNNING_LONG: usize = 64;

/// Maximum number of concurrent reads for responses to changes. Most need no disk, because their rows were just
/// written.
const CHANGE_READS_MAX: usize = 8;
/// Maximum number of concurrent reads of live streams. It is low, so that a post that wakes thousands of streams delays
/// no request.
pub const STREAM_READS_MAX: usize = 4;
/// Maximum number of concurrent reads of permissions of long requests. These reads have their own turns, so that live
/// streams do not delay them.
const PERMISSION_READS_MAX: usize = 4;
/// Maximum number of concurrent reads of the change feed. These reads have their own turns, because each scans files.
const FEED_READS_MAX: usize = 2;
/// Maximum number of pieces of files that are read at a time.
const PIECES_MAX: usize = 8;

/// Lanes and turns of blocking reads. A clone shares those of the original.
#[derive(Clone, Debug)]
pub struct BlockingReads {
    quick: Lane,
    long: Lane,
    listing: Lane,
    computation: Lane,
    after_change: Turns,
    streams: Turns,
    permissions: Turns,
    feed: Turns,
    pieces: Turns,
}

/// Limit of concurrent reads. Further reads wait in order and are never refused, so the caller must limit their number.
#[derive(Clone, Debug)]
pub struct Turns(Arc<Semaphore>);

/// Permission to run one read.
#[derive(Debug)]
pub struct Turn {
    _permit: OwnedSemaphorePermit,
}

impl Turns {
    fn new(reads_max: usize) -> Self {
        Self(Arc::new(Semaphore::new(reads_max)))
    }

    /// Waits for the next turn.
    pub async fn next(&self) -> Turn {
        let Ok(permit) = Arc::clone(&self.0).acquire_owned().await else {
            unreachable!("the semaphore is never closed");
        };
        Turn { _permit: permit }
    }

    /// Runs a read in the next turn.
    ///
    /// # Errors
    /// [`ReadError::Panicked`]
    pub async fn run<T: Send + 'static>(
        &self,
        read: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ReadError> {
        self.next().await.run(read).await
    }
}

impl Turn {
    /// Runs a read that may block.
    ///
    /// # Errors
    /// [`ReadError::Panicked`]
    pub async fn run<T: Send + 'static>(
        self,
        read: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ReadError> {
        let read = move || {
            // Keep the turn until the read ends, because the read continues even if its caller no longer waits.
            let _turn = self;
            read()
        };
        blocking(read).await
    }
}

/// Lane of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// Reads a few rows.
    Quick,
    /// Reads many rows of keys, or computes much on them.
    Long,
    /// Reads many rows for a user.
    Listing,
    /// Computes much, and reads no rows.
    Computation,
}

/// Reason why a read has no result.
#[derive(Debug)]
pub enum ReadError {
    /// Too many reads are waiting.
    Overloaded,
    /// The read panicked, with this payload.
    Panicked(Box<dyn Any + Send>),
}

impl From<JoinError> for ReadError {
    /// Converts the error of a task that ran a read.
    fn from(error: JoinError) -> Self {
        Self::Panicked(error.try_into_panic().unwrap_or_else(|cancelled| Box::new(cancelled)))
    }
}

/// Flag that the caller of a read no longer waits for it. A long read checks the flag between two pieces of work, and
/// stops if it is set.
#[derive(Clone, Debug, Default)]
pub struct Abandoned(Arc<AtomicBool>);

impl Abandoned {
    /// Whether the caller no longer waits.
    #[must_use]
    pub fn is_set(&self) -> bool {
        // Relaxed: the value is only a hint, and publishes no other data.
        self.0.load(Ordering::Relaxed)
    }
}

/// Guard that sets the flag when the future that waits for a read is dropped.
struct SetOnDrop(Abandoned);

impl Drop for SetOnDrop {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::Relaxed);
    }
}

/// Place for the result of work. The work itself is converted to a closure without a specific type, so that the code
/// that runs it is compiled once, not once per read.
struct Place<T>(Arc<Mutex<Option<T>>>);

impl<T> Default for Place<T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<T> Clone for Place<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Place<T> {
    fn put(&self, result: T) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
    }

    fn take(&self) -> T {
        let result = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(result) = result else { unreachable!("work that has ended has a result") };
        result
    }
}

/// Runs `work`, which may block, on a thread of the runtime that belongs to no lane. The work is never refused, so the
/// caller must limit the concurrency.
///
/// # Errors
/// [`ReadError::Panicked`]
pub async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ReadError> {
    let result = Place::default();
    let place = result.clone();
    let work: Box<dyn FnOnce() + Send> = Box::new(carry(move || place.put(work())));
    tokio::task::spawn_blocking(work).await?;
    Ok(result.take())
}

/// Read that waits, with its permit of the lane. Running it does not panic.
struct Waiting {
    read: Box<dyn FnOnce() + Send>,
    _admitted: OwnedSemaphorePermit,
}

#[derive(Clone, Debug)]
struct Lane {
    threads_max: usize,
    /// Number of reads per thread that may wait before another thread is woken.
    waiting_per_thread: usize,
    /// Permits of running and waiting reads.
    admitted: Arc<Semaphore>,
    queue: Arc<Mutex<Queue>>,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Waiting>,
    /// Number of threads that take reads from the queue.
    threads: usize,
}

impl std::fmt::Debug for Queue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let waiting = self.waiting.len();
        f.debug_struct("Queue").field("waiting", &waiting).field("threads", &self.threads).finish()
    }
}

impl Lane {
    fn new(threads_max: usize, waiting_per_running: usize, waiting_per_thread: usize) -> Self {
        let threads_max = threads_max.max(1);
        Self {
            threads_max,
            waiting_per_thread,
            admitted: Arc::new(Semaphore::new(threads_max * (1 + waiting_per_running))),
            queue: Arc::default(),
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        // No code that may panic runs while the lock is held.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a read to the queue. Wakes another thread if too many reads wait.
    fn push(&self, read: Waiting) {
        {
            let mut queue = self.queue();
            queue.waiting.push_back(read);
            let is_enough = queue.waiting.len() <= queue.threads * self.waiting_per_thread;
            if is_enough || queue.threads == self.threads_max {
                return;
            }
            queue.threads += 1;
        }
        let lane = self.clone();
        tokio::task::spawn_blocking(move || lane.work());
    }

    /// Runs the reads in the queue until it is empty.
    fn work(&self) {
        while let Some(next) = self.pop() {
            (next.read)();
        }
    }

    fn pop(&self) -> Option<Waiting> {
        let mut queue = self.queue();
        let next = queue.waiting.pop_front();
        if next.is_none() {
            queue.threads -= 1;
        }
        next
    }
}

impl BlockingReads {
    /// Creates lanes that allow `quick_max` concurrent quick reads, and per two processors one long read, one listing
    /// and one computation.
    #[must_use]
    pub fn new(quick_max: usize) -> Self {
        let processors = std::thread::available_parallelism().map_or(1, NonZero::get);
        Self {
            quick: Lane::new(quick_max, WAITING_PER_RUNNING, 1),
            long: Lane::new(processors / 2, WAITING_PER_RUNNING_LONG, 0),
            listing: Lane::new(processors / 2, WAITING_PER_RUNNING_LONG, 0),
            computation: Lane::new(processors / 2, WAITING_PER_RUNNING_LONG, 0),
            after_change: Turns::new(CHANGE_READS_MAX),
            streams: Turns::new(STREAM_READS_MAX),
            permissions: Turns::new(PERMISSION_READS_MAX),
            feed: Turns::new(FEED_READS_MAX),
            pieces: Turns::new(PIECES_MAX),
        }
    }

    /// Turns of reads for responses to changes. These reads are never refused, because the change is already made.
    #[must_use]
    pub fn after_change(&self) -> &Turns {
        &self.after_change
    }

    /// Turns of reads of live streams, which can wait.
    #[must_use]
    pub fn streams(&self) -> &Turns {
        &self.streams
    }

    /// Turns of reads that check the permissions of long requests.
    #[must_use]
    pub fn permissions(&self) -> &Turns {
        &self.permissions
    }

    /// Turns of reads of the change feed, which can wait.
    #[must_use]
    pub fn feed(&self) -> &Turns {
        &self.feed
    }

    /// Turns of reads of pieces of files whose responses have begun.
    #[must_use]
    pub fn pieces(&self) -> &Turns {
        &self.pieces
    }

    /// Maximum number of threads that the lanes use. Reads with turns use other threads.
    #[must_use]
    pub fn threads_max(&self) -> usize {
        let long = self.long.threads_max + self.listing.threads_max;
        self.quick.threads_max + long + self.computation.threads_max
    }

    /// Runs a quick read that may block.
    ///
    /// # Errors
    /// [`ReadError`]
    pub async fn run<T: Send + 'static>(
        &self,
        read: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ReadError> {
        self.run_in(Length::Quick, |_| read()).await
    }

    /// Runs a long read that may block.
    ///
    /// # Errors
    /// [`ReadError`]
    pub async fn run_long<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Abandoned) -> T + Send + 'static,
    ) -> Result<T, ReadError> {
        self.run_in(Length::Long, read).await
    }

    /// Runs a listing that may block.
    ///
    /// # Errors
    /// [`ReadError`]
    pub async fn run_listing<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Abandoned) -> T + Send + 'static,
    ) -> Result<T, ReadError> {
        self.run_in(Length::Listing, read).await
    }

    /// Runs a long computation.
    ///
    /// # Errors
    /// [`ReadError`]
    pub async fn compute<T: Send + 'static>(
        &self,
        compute: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ReadError> {
        self.run_in(Length::Computation, |_| compute()).await
    }

    /// Runs a read that may block. Dropping the future abandons the read: if it waits, it does not start; if it runs,
    /// it can check the flag and stop.
    ///
    /// # Errors
    /// [`ReadError`]
    pub async fn run_in<T: Send + 'static>(
        &self,
        length: Length,
        read: impl FnOnce(&Abandoned) -> T + Send + 'static,
    ) -> Result<T, ReadError> {
        let result = Place::default();
        let place = result.clone();
        self.run_erased(length, Box::new(move |abandoned| place.put(read(abandoned)))).await?;
        Ok(result.take())
    }

    async fn run_erased(
        &self,
        length: Length,
        read: Box<dyn FnOnce(&Abandoned) + Send>,
    ) -> Result<(), ReadError> {
        let lane = match length {
            Length::Quick => &self.quick,
            Length::Long => &self.long,
            Length::Listing => &self.listing,
            Length::Computation => &self.computation,
        };
        let Ok(admitted) = Arc::clone(&lane.admitted).try_acquire_owned() else {
            return Err(ReadError::Overloaded);
        };
        let abandoned = Abandoned::default();
        let _set = SetOnDrop(abandoned.clone());
        let (answer, answered) = oneshot::channel();
        let read = Box::new(carry(move || {
            if abandoned.is_set() {
                return;
            }
            // Convert a panic into an error, as a task of the runtime does. Locks shared with other reads have no
            // poisoning.
            let result = catch_unwind(AssertUnwindSafe(|| read(&abandoned)));
            // Ignore an error: the caller no longer waits.
            let _ = answer.send(result);
        }));
        lane.push(Waiting { read, _admitted: admitted });
        match answered.await {
            Ok(result) => result.map_err(ReadError::Panicked),
            Err(dropped) => Err(ReadError::Panicked(Box::new(dropped))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn reads_above_the_limit_are_refused_until_permits_are_free() {
        let reads = Arc::new(BlockingReads::new(1));
        let (release, held) = std::sync::mpsc::channel::<()>();
        let first = tokio::spawn({
            let reads = Arc::clone(&reads);
            async move { reads.run(move || held.recv().is_ok()).await }
        });
        while reads.quick.queue().threads == 0 || !reads.quick.queue().waiting.is_empty() {
            tokio::task::yield_now().await;
        }
        let mut waiting = Vec::new();
        for _ in 0..WAITING_PER_RUNNING {
            let reads = Arc::clone(&reads);
            waiting.push(tokio::spawn(async move { reads.run(|| ()).await }));
        }
        while reads.quick.admitted.available_permits() > 0 {
            tokio::task::yield_now().await;
        }
        assert!(matches!(reads.run(|| ()).await, Err(ReadError::Overloaded)));
        // The long lane has separate permits.
        reads.run_long(|_| ()).await.unwrap();
        release.send(()).unwrap();
        assert!(first.await.unwrap().unwrap());
        for read in waiting {
            read.await.unwrap().unwrap();
        }
        reads.run(|| ()).await.unwrap();
    }

    #[tokio::test]
    async fn a_quick_read_waits_for_at_most_one_other() {
        let reads = BlockingReads::new(4);
        let (release, held) = std::sync::mpsc::channel::<()>();
        let slow = tokio::spawn({
            let reads = reads.clone();
            async move { reads.run(move || held.recv().is_ok()).await }
        });
        while reads.quick.queue().threads == 0 || !reads.quick.queue().waiting.is_empty() {
            tokio::task::yield_now().await;
        }
        let second = tokio::spawn({
            let reads = reads.clone();
            async move { reads.run(|| 2).await }
        });
        while reads.quick.queue().waiting.is_empty() {
            tokio::task::yield_now().await;
        }
        assert_eq!(reads.quick.queue().threads, 1);
        // For one read more than may wait for the only thread, another thread is woken, which runs both waiting reads.
        assert_eq!(reads.run(|| 3).await.unwrap(), 3);
        assert_eq!(second.await.unwrap().unwrap(), 2);
        release.send(()).unwrap();
        assert!(slow.await.unwrap().unwrap());
        while reads.quick.queue().threads > 0 {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn a_lane_whose_threads_are_all_busy_delays_no_other() {
        let all = [Length::Quick, Length::Long, Length::Listing, Length::Computation];
        for busy in all {
            let reads = BlockingReads {
                quick: Lane::new(1, 1, 1),
                long: Lane::new(1, 1, 0),
                listing: Lane::new(1, 1, 0),
                computation: Lane::new(1, 1, 0),
                ..BlockingReads::new(1)
            };
            let (release, held) = std::sync::mpsc::channel::<()>();
            let (started, starts) = oneshot::channel();
            let stuck = tokio::spawn({
                let reads = reads.clone();
                let stuck = move |_: &Abandoned| {
                    started.send(()).unwrap();
                    held.recv().is_ok()
                };
                async move { reads.run_in(busy, stuck).await }
            });
            starts.await.unwrap();
            for other in all.into_iter().filter(|other| *other != busy) {
                assert_eq!(reads.run_in(other, |_| 7).await.unwrap(), 7);
            }
            release.send(()).unwrap();
            assert!(stuck.await.unwrap().unwrap());
        }
    }

    #[tokio::test]
    async fn a_read_can_check_that_its_caller_is_gone() {
        let reads = BlockingReads { long: Lane::new(1, 1, 0), ..BlockingReads::new(1) };
        let (started, starts) = oneshot::channel();
        let caller = tokio::spawn({
            let reads = reads.clone();
            async move {
                let read = move |abandoned: &Abandoned| {
                    started.send(()).unwrap();
                    while !abandoned.is_set() {
                        std::thread::yield_now();
                    }
                };
                reads.run_long(read).await
            }
        });
        starts.await.unwrap();
        caller.abort();
        // The permit of the lane is released only when the read has ended.
        while reads.long.queue().threads > 0 {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn a_read_that_panics_is_an_error_and_frees_its_permit() {
        let reads = BlockingReads::new(1);
        for _ in 0..3 {
            let failed = reads.run(|| panic!("a broken invariant")).await;
            assert!(matches!(failed, Err(ReadError::Panicked(_))));
        }
        assert_eq!(reads.run(|| 7).await.unwrap(), 7);
    }
}
