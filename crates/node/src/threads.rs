//! Starting of the node's threads, none of which may end unnoticed. Background work is a [`Job`], which the simulator
//! runs when it chooses.

use std::thread::JoinHandle;

use crate::fatal::{DiskError, end};

/// Guard that ends the process when its thread panics: a server without its writer would seem to run but never reply to
/// a change again.
struct AbortOnPanic;

impl Drop for AbortOnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            std::process::abort();
        }
    }
}

/// Starts a thread. Its panic, its error, or a failure to start it ends the process.
pub(crate) fn spawn(
    name: &str,
    work: impl FnOnce() -> Result<(), DiskError> + Send + 'static,
) -> JoinHandle<()> {
    let guarded = move || {
        let _guard = AbortOnPanic;
        if let Err(error) = work() {
            end(&error);
        }
    };
    match std::thread::Builder::new().name(name.into()).spawn(guarded) {
        Ok(thread) => thread,
        Err(error) => end(&DiskError::Thread(error)),
    }
}

/// Execution of background work.
#[derive(Clone, Default)]
pub(crate) enum Background {
    /// Each job on a separate thread.
    #[default]
    Threads,
    /// Each job when the simulator chooses.
    #[cfg(feature = "simulation")]
    Queue(queue::Queue),
}

/// Started work. An error on a thread ends the process.
pub(crate) enum Job {
    Thread(JoinHandle<()>),
    #[cfg(feature = "simulation")]
    Queued(queue::Queued),
}

impl Background {
    pub(crate) fn start(
        &self,
        name: &str,
        work: impl FnOnce() -> Result<(), DiskError> + Send + 'static,
    ) -> Job {
        match self {
            Self::Threads => Job::Thread(spawn(name, work)),
            #[cfg(feature = "simulation")]
            Self::Queue(queue) => Job::Queued(queue.push(Box::new(work))),
        }
    }
}

impl Job {
    pub(crate) fn is_finished(&self) -> bool {
        match self {
            Self::Thread(thread) => thread.is_finished(),
            #[cfg(feature = "simulation")]
            Self::Queued(job) => job.is_finished(),
        }
    }

    /// Waits for the end of the job.
    pub(crate) fn join(self) -> Result<(), DiskError> {
        match self {
            Self::Thread(thread) => drop(thread.join()),
            #[cfg(feature = "simulation")]
            Self::Queued(job) => job.run()?,
        }
        Ok(())
    }
}

/// Jobs that wait until the simulator runs them.
#[cfg(feature = "simulation")]
pub(crate) mod queue {
    use std::sync::Arc;

    use parking_lot::Mutex;

    use crate::fatal::DiskError;

    pub(super) type Work = Box<dyn FnOnce() -> Result<(), DiskError> + Send>;

    /// Started jobs, oldest first.
    #[derive(Clone, Default)]
    pub(crate) struct Queue(Arc<Mutex<Vec<Queued>>>);

    /// A job; empty after it was run. Clones share the job.
    #[derive(Clone)]
    pub(crate) struct Queued(Arc<Mutex<Option<Work>>>);

    impl Queue {
        pub(super) fn push(&self, work: Work) -> Queued {
            let job = Queued(Arc::new(Mutex::new(Some(work))));
            self.0.lock().push(job.clone());
            job
        }

        /// Runs the oldest job that was not run; returns false if there is none.
        pub(crate) fn run_one(&self) -> Result<bool, DiskError> {
            loop {
                let mut jobs = self.0.lock();
                if jobs.is_empty() {
                    return Ok(false);
                }
                let job = jobs.remove(0);
                drop(jobs);
                if !job.is_finished() {
                    job.run()?;
                    return Ok(true);
                }
            }
        }
    }

    impl Queued {
        pub(super) fn is_finished(&self) -> bool {
            self.0.lock().is_none()
        }

        /// Runs the job unless it was run already.
        pub(super) fn run(&self) -> Result<(), DiskError> {
            let work = self.0.lock().take();
            work.map_or(Ok(()), |work| work())
        }
    }
}
