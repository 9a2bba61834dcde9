//! Reads that may block, kept off the threads that serve connections and within bounds.
//!
//! There are two lanes. The quick lane is for reads of a few rows, which wait for a disk at most. The
//! long lane is for what takes many rows or much computation (KEYS, LCS, long listings); it has few
//! threads, so that the quick reads of others never wait for it. **Invariant:** at most so many reads
//! of a lane run, and [`WAITING_PER_RUNNING`] times as many wait.

use std::num::NonZero;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use feed::keys::KeyOps;
use node::Node;
use tokio::sync::Semaphore;
use tokio::task::JoinError;

use crate::http::error::Problem;

/// How many reads may wait for each that may run.
const WAITING_PER_RUNNING: usize = 16;
/// As before, in the long lane. It has few threads, so more may wait for each.
const WAITING_PER_RUNNING_LONG: usize = 64;

/// The two lanes. Clones are the same lanes.
#[derive(Clone)]
pub(crate) struct BlockingReads {
    quick: Lane,
    long: Lane,
}

/// Which lane a read takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Length {
    /// A few rows.
    Quick,
    /// Many rows or much computation.
    Long,
}

/// Why a read has no result.
#[derive(Debug)]
pub(crate) enum ReadError {
    /// Too many wait already.
    Overloaded,
    /// The read panicked.
    Panicked(JoinError),
}

impl From<ReadError> for Problem {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Overloaded => Self::overloaded(),
            ReadError::Panicked(error) => Self::internal(&error),
        }
    }
}

/// Says whether the caller of a read still waits for it. A long read asks between two pieces of work
/// and stops when nobody waits.
#[derive(Clone, Debug, Default)]
pub(crate) struct Abandoned(Arc<AtomicBool>);

impl Abandoned {
    pub(crate) fn is_set(&self) -> bool {
        // A hint: nothing else is published with it.
        self.0.load(Ordering::Relaxed)
    }
}

/// Sets the flag when the future that waits for a read is dropped.
struct SetOnDrop(Abandoned);

impl Drop for SetOnDrop {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::Relaxed);
    }
}

#[derive(Clone)]
struct Lane {
    /// Permits of reads that run or wait.
    admitted: Arc<Semaphore>,
    /// Permits of reads that run.
    running: Arc<Semaphore>,
}

impl Lane {
    fn new(running_max: usize, waiting_per_running: usize) -> Self {
        let running_max = running_max.max(1);
        Self {
            admitted: Arc::new(Semaphore::new(running_max * (1 + waiting_per_running))),
            running: Arc::new(Semaphore::new(running_max)),
        }
    }
}

impl BlockingReads {
    /// At most `quick_max` quick reads at a time, and one long read for two processors.
    pub(crate) fn new(quick_max: usize) -> Self {
        let processors = std::thread::available_parallelism().map_or(1, NonZero::get);
        Self {
            quick: Lane::new(quick_max, WAITING_PER_RUNNING),
            long: Lane::new(processors / 2, WAITING_PER_RUNNING_LONG),
        }
    }

    /// Most threads that reads take at a time.
    pub(crate) fn threads_max(&self) -> usize {
        self.quick.running.available_permits() + self.long.running.available_permits()
    }

    /// Runs a quick read where blocking is allowed.
    ///
    /// # Errors
    /// Overloaded if too many wait already; internal if the read panicked.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        read: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Problem> {
        Ok(self.try_run(Length::Quick, |_| read()).await?)
    }

    /// Runs a long read where blocking is allowed.
    ///
    /// # Errors
    /// Overloaded if too many wait already; internal if the read panicked.
    pub(crate) async fn run_long<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Abandoned) -> T + Send + 'static,
    ) -> Result<T, Problem> {
        Ok(self.try_run(Length::Long, read).await?)
    }

    /// Brings the rows that operations look up into memory, if some may be on the disk alone: the writer
    /// would read them while everybody's changes wait.
    ///
    /// # Errors
    /// [`ReadError`]; the operations must not be submitted then.
    pub(crate) async fn load_keys(&self, node: &Node, ops: KeyOps) -> Result<KeyOps, ReadError> {
        if !node.may_need_disk(&ops) {
            return Ok(ops);
        }
        let node = node.clone();
        let load = move |_: &Abandoned| {
            node.load_keys(&ops);
            ops
        };
        self.try_run(Length::Quick, load).await
    }

    /// Runs a read where blocking is allowed. Dropping the future abandons the read: one that waits
    /// does not start, one that runs may ask.
    ///
    /// # Errors
    /// [`ReadError`]
    pub(crate) async fn try_run<T: Send + 'static>(
        &self,
        length: Length,
        read: impl FnOnce(&Abandoned) -> T + Send + 'static,
    ) -> Result<T, ReadError> {
        let lane = match length {
            Length::Quick => &self.quick,
            Length::Long => &self.long,
        };
        let Ok(_admitted) = lane.admitted.try_acquire() else {
            return Err(ReadError::Overloaded);
        };
        let Ok(turn) = Arc::clone(&lane.running).acquire_owned().await else {
            unreachable!("the semaphore is never closed");
        };
        let abandoned = Abandoned::default();
        let _set = SetOnDrop(abandoned.clone());
        let read = tokio::task::spawn_blocking(move || {
            // Held by the read itself: it goes on when the caller goes away.
            let _turn = turn;
            read(&abandoned)
        });
        read.await.map_err(ReadError::Panicked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn reads_beyond_the_room_are_refused_and_taken_again_when_there_is_room() {
        let reads = Arc::new(BlockingReads::new(1));
        let (release, held) = std::sync::mpsc::channel::<()>();
        let first = tokio::spawn({
            let reads = Arc::clone(&reads);
            async move { reads.run(move || held.recv().is_ok()).await }
        });
        while reads.quick.running.available_permits() > 0 {
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
        assert_eq!(reads.run(|| ()).await.unwrap_err().status, 503);
        // The other lane has permits of its own.
        reads.run_long(|_| ()).await.unwrap();
        release.send(()).unwrap();
        assert!(first.await.unwrap().unwrap());
        for read in waiting {
            read.await.unwrap().unwrap();
        }
        reads.run(|| ()).await.unwrap();
    }

    #[tokio::test]
    async fn quick_reads_run_while_every_long_one_is_stuck() {
        let reads = BlockingReads { long: Lane::new(1, 1), ..BlockingReads::new(1) };
        let (release, held) = std::sync::mpsc::channel::<()>();
        let stuck = tokio::spawn({
            let reads = reads.clone();
            async move { reads.run_long(move |_| held.recv().is_ok()).await }
        });
        while reads.long.running.available_permits() > 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(reads.run(|| 7).await.unwrap(), 7);
        release.send(()).unwrap();
        assert!(stuck.await.unwrap().unwrap());
    }

    #[tokio::test]
    async fn a_read_learns_that_nobody_waits_for_it() {
        let reads = BlockingReads { long: Lane::new(1, 1), ..BlockingReads::new(1) };
        let (started, starts) = tokio::sync::oneshot::channel();
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
        // The permit of the lane comes back only when the read has ended.
        while reads.long.running.available_permits() == 0 {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn a_read_that_panics_is_an_internal_error_and_frees_its_permit() {
        let reads = BlockingReads::new(1);
        for _ in 0..3 {
            let failed = reads.run(|| panic!("a broken invariant")).await;
            assert_eq!(failed.unwrap_err().status, 500);
        }
        assert_eq!(reads.run(|| 7).await.unwrap(), 7);
    }
}
