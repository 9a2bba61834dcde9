//! Passwords: hashed with argon2id, a bounded number at a time.
//!
//! A hash takes 19 MiB and about 50 ms (the parameters that OWASP recommends). **Invariant:** one runs at a time and 16
//! wait at most, so that they take neither the memory nor all processors; beyond that they are refused.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;

use argon2::password_hash::phc;
use argon2::password_hash::{PasswordHasher as _, PasswordVerifier as _};
use argon2::{Algorithm, Argon2, Params, Version};
use feed::accounts::PasswordHash;
use tokio::sync::{Semaphore, oneshot};

/// Memory of one hash, in KiB.
const MEMORY_KIB: u32 = 19_456;
/// Passes over the memory.
const PASSES: u32 = 2;
/// Most hashes that are computed at a time.
const RUNNING_MAX: usize = 1;
/// The niceness of the thread.
const NICENESS: i32 = 19;
/// Most hashes that wait: half a second to a second of work.
const WAITING_MAX: usize = 16;
/// Most memory of all hashes together, in bytes.
pub(crate) const MEMORY: usize = RUNNING_MAX * MEMORY_KIB as usize * 1_024;
/// Shortest password, in characters.
pub const CHARS_MIN: usize = 8;
/// Longest password, in bytes: a longer one adds no security, only work.
pub const BYTES_MAX: usize = 256;

/// Why there is no hash.
#[derive(Debug, thiserror::Error)]
pub enum PasswordError {
    /// The password is too short or too long.
    #[error("a password has at least {CHARS_MIN} characters and at most {BYTES_MAX} bytes")]
    Length,
    /// Too many wait.
    #[error("too many people log in at this moment; try again in a second")]
    Busy,
    /// The operating system gives no random bytes, or no memory.
    #[error("the password cannot be hashed")]
    Failed,
}

/// Hashes a password. Takes about 50 ms.
///
/// # Errors
/// [`PasswordError::Length`] and [`PasswordError::Failed`]
pub fn hash(password: &str) -> Result<PasswordHash, PasswordError> {
    check(password)?;
    let mut salt = [0; 16];
    getrandom::fill(&mut salt).map_err(|_| PasswordError::Failed)?;
    let hash = hasher(MEMORY_KIB)?.hash_password_with_salt(password.as_bytes(), &salt);
    let hash: phc::PasswordHash = hash.map_err(|_| PasswordError::Failed)?;
    PasswordHash::parse(&hash.to_string()).map_err(|_| PasswordError::Failed)
}

/// Checks the length of a new password.
///
/// # Errors
/// [`PasswordError::Length`]
pub fn check(password: &str) -> Result<(), PasswordError> {
    let fits = password.len() <= BYTES_MAX && password.chars().count() >= CHARS_MIN;
    if fits { Ok(()) } else { Err(PasswordError::Length) }
}

fn hasher(memory_kib: u32) -> Result<Argon2<'static>, PasswordError> {
    let params = Params::new(memory_kib, PASSES, 1, None).map_err(|_| PasswordError::Failed)?;
    Ok(Argon2::new(Algorithm::Argon2id, Version::V0x13, params))
}

/// Whether `hash` is of this password. A hash that needs more memory than ours is never right: an import may bring one.
fn verify(password: &str, hash: &PasswordHash) -> bool {
    let Ok(parsed) = phc::PasswordHash::new(hash.as_str()) else { return false };
    let fits = Params::try_from(&parsed)
        .is_ok_and(|params| params.m_cost() <= MEMORY_KIB && params.t_cost() <= 2 * PASSES);
    let Ok(hasher) = hasher(MEMORY_KIB) else { return false };
    fits && hasher.verify_password(password.as_bytes(), &parsed).is_ok()
}

/// Something that the thread computes.
type Work = Box<dyn FnOnce() + Send>;

/// Hashes and compares passwords on a thread of its own. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Passwords {
    admitted: Arc<Semaphore>,
    work: mpsc::Sender<Work>,
    /// The hash that is compared if there is no account.
    nobody: Option<PasswordHash>,
    /// Number of hashes that were computed.
    computed: Arc<AtomicU64>,
}

impl Passwords {
    /// Takes about 50 ms.
    pub(crate) fn new() -> Self {
        let (work, waiting) = mpsc::channel::<Work>();
        let compute = move || {
            give_way();
            waiting.iter().for_each(|work| work());
        };
        // Without the thread every log-in fails, and says so.
        if let Err(error) = thread::Builder::new().name("passwords".to_owned()).spawn(compute) {
            tracing::error!(%error, "the thread for passwords does not start");
        }
        Self {
            admitted: Arc::new(Semaphore::new(RUNNING_MAX + WAITING_MAX)),
            work,
            nobody: hash("a password of nobody").ok(),
            computed: Arc::default(),
        }
    }

    /// Number of hashes that were computed.
    #[cfg(test)]
    pub(crate) fn computed(&self) -> u64 {
        self.computed.load(Ordering::Relaxed)
    }

    pub(crate) async fn hash(&self, password: String) -> Result<PasswordHash, PasswordError> {
        check(&password)?;
        self.run(move || hash(&password)).await?
    }

    /// Whether `stored` is the hash of the password. Without an account, it takes as long and is false.
    pub(crate) async fn verify(
        &self,
        password: String,
        stored: Option<PasswordHash>,
    ) -> Result<bool, PasswordError> {
        let exists = stored.is_some();
        let compared = stored.or_else(|| self.nobody.clone()).ok_or(PasswordError::Failed)?;
        // Longer ones were never accepted; they are cut, so that they take as long.
        let password: String = password.chars().take(BYTES_MAX + 1).collect();
        let is_right = self.run(move || verify(&password, &compared)).await?;
        Ok(exists && is_right)
    }

    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, PasswordError> {
        let admitted = Arc::clone(&self.admitted).try_acquire_owned();
        let admitted = admitted.map_err(|_| PasswordError::Busy)?;
        let (done, result) = oneshot::channel();
        let computed = Arc::clone(&self.computed);
        let compute = move || {
            // Held until the work is done, also if the caller is gone.
            let _admitted = admitted;
            computed.fetch_add(1, Ordering::Relaxed);
            // An error means that nobody waits any more.
            drop(done.send(work()));
        };
        self.work.send(Box::new(compute)).map_err(|_| PasswordError::Failed)?;
        result.await.map_err(|_| PasswordError::Failed)
    }
}

/// Lets other threads run first: a hash occupies a processor for 50 ms, and a request takes less than one.
fn give_way() {
    if let Err(error) = rustix::process::setpriority_process(None, NICENESS) {
        tracing::debug!(%error, "log-ins have the priority of other requests");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_the_password_itself_is_right_and_nobody_has_one() {
        let passwords = Passwords::new();
        let stored = passwords.hash("correct horse".into()).await.unwrap();
        let again = passwords.hash("correct horse".into()).await.unwrap();
        assert!(stored != again, "each hash has its own salt");
        assert!(stored.as_str().starts_with("$argon2id$v=19$m=19456,t=2,p=1$"));
        for (password, expect) in [
            ("correct horse", true),
            ("correct hors", false),
            ("Correct horse", false),
            ("", false),
        ] {
            let found = passwords.verify(password.into(), Some(stored.clone())).await.unwrap();
            assert_eq!(found, expect, "{password:?}");
        }
        assert!(!passwords.verify("a password of nobody".into(), None).await.unwrap());
    }

    #[tokio::test]
    async fn an_unknown_account_costs_the_same_work() {
        let passwords = Passwords::new();
        let stored = passwords.hash("correct horse".into()).await.unwrap();
        let before = passwords.computed();
        passwords.verify("wrong".into(), Some(stored)).await.unwrap();
        assert_eq!(passwords.computed(), before + 1);
        passwords.verify("wrong".into(), None).await.unwrap();
        assert_eq!(passwords.computed(), before + 2);
    }

    #[tokio::test]
    async fn passwords_beyond_the_bound_are_refused_and_none_is_computed_for_them() {
        let passwords = Passwords::new();
        let (finish, finished) = mpsc::channel::<()>();
        passwords.work.send(Box::new(move || finished.iter().for_each(drop))).unwrap();
        let mut waiting = Vec::new();
        for _ in 0..RUNNING_MAX + WAITING_MAX {
            let passwords = passwords.clone();
            waiting.push(tokio::spawn(async move { passwords.verify("x".into(), None).await }));
        }
        while passwords.admitted.available_permits() > 0 {
            tokio::task::yield_now().await;
        }
        let refused = passwords.verify("x".into(), None).await;
        assert!(matches!(refused, Err(PasswordError::Busy)));
        assert_eq!(passwords.computed(), 0);
        drop(finish);
        for answer in waiting {
            assert!(matches!(answer.await.unwrap(), Ok(false)));
        }
        assert_eq!(passwords.computed(), (RUNNING_MAX + WAITING_MAX) as u64);
    }

    #[test]
    fn passwords_of_a_wrong_length_and_hashes_that_need_much_memory_are_refused() {
        for bad in ["", "seven77", &"x".repeat(257)] {
            assert!(matches!(hash(bad), Err(PasswordError::Length)), "{bad:?}");
        }
        let large = "$argon2id$v=19$m=4194304,t=2,p=1$c2FsdHNhbHRzYWx0$\
                     aGFzaGhhc2hoYXNoaGFzaGhhc2hoYXNoaGFzaGhhc2g";
        assert!(!verify("correct horse", &PasswordHash::parse(large).unwrap()));
    }
}
