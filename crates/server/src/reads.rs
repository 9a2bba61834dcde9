//! Reads that may block, kept off the async workers and within a bound.

use std::sync::Arc;

use tokio::sync::Semaphore;

use crate::http::error::Problem;

/// How many reads may wait for each that may run.
const WAITING_PER_RUNNING: usize = 16;

/// Permits for blocking reads.
pub(crate) struct BlockingReads {
    /// Those that run or wait.
    room: Semaphore,
    /// Those that run.
    running: Arc<Semaphore>,
}

impl BlockingReads {
    /// At most `running_max` at a time.
    pub(crate) fn new(running_max: usize) -> Self {
        let running_max = running_max.max(1);
        Self {
            room: Semaphore::new(running_max * (1 + WAITING_PER_RUNNING)),
            running: Arc::new(Semaphore::new(running_max)),
        }
    }

    /// Runs `read` where blocking is allowed.
    ///
    /// # Errors
    /// Overloaded if too many wait already; internal if the read panicked.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        read: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Problem> {
        let Ok(_room) = self.room.try_acquire() else {
            return Err(Problem::overloaded());
        };
        let Ok(turn) = Arc::clone(&self.running).acquire_owned().await else {
            unreachable!("the semaphore is never closed");
        };
        let read = tokio::task::spawn_blocking(move || {
            // Held by the read itself: it goes on when the caller goes away.
            let _turn = turn;
            read()
        });
        read.await.map_err(|error| Problem::internal(&error))
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
        while reads.running.available_permits() > 0 {
            tokio::task::yield_now().await;
        }
        let mut waiting = Vec::new();
        for _ in 0..WAITING_PER_RUNNING {
            let reads = Arc::clone(&reads);
            waiting.push(tokio::spawn(async move { reads.run(|| ()).await }));
        }
        while reads.room.available_permits() > 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(reads.run(|| ()).await.unwrap_err().status, 503);
        release.send(()).unwrap();
        assert!(first.await.unwrap().unwrap());
        for read in waiting {
            read.await.unwrap().unwrap();
        }
        reads.run(|| ()).await.unwrap();
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
