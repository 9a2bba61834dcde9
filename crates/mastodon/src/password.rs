//! Passwords: hashed with argon2id, a bounded number at a time.
//!
//! A hash takes 19 MiB and about 50 ms (the parameters that OWASP recommends).
//! **Invariant:** one hash runs at a time and at most `WAITING_MAX` wait, so that they exhaust neither memory nor
//! processors; further ones are refused.
//! **Invariant:** clients take turns. The next hash is that of the client whose last turn is longest ago. If the queue
//! is full, a client with fewer waiting hashes, or without an earlier turn, replaces the newest hash of the client with
//! the most.
//! **Invariant:** clients that have logged in before have a separate queue with every second turn. However many new
//! addresses there are, known clients are not refused because of them, and wait at most twice as long.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use argon2::password_hash::phc;
use argon2::password_hash::{PasswordHasher as _, PasswordVerifier as _};
use argon2::{Algorithm, Argon2, Params, Version};
use feed::accounts::PasswordHash;
use tokio::sync::oneshot;

/// Memory of one hash, in KiB.
const MEMORY_KIB: u32 = 19_456;
/// Number of passes over the memory.
const PASSES: u32 = 2;
/// Maximum number of hashes computed at a time.
const RUNNING_MAX: usize = 1;
/// Niceness of the hashing thread.
const NICENESS: i32 = 19;
/// Maximum number of waiting hashes: two to three seconds of work.
const WAITING_MAX: usize = 64;
/// Maximum number of clients whose last log-ins are remembered.
const KNOWN_MAX: usize = 4_096;
/// Maximum number of clients whose last turns are remembered.
const TURNS_MAX: usize = 4_096;
/// Maximum memory of all hashes together, in bytes.
pub(crate) const MEMORY: usize = RUNNING_MAX * MEMORY_KIB as usize * 1_024;
/// Minimum length of a password, in characters.
pub const CHARS_MIN: usize = 8;
/// Maximum length of a password, in bytes. A longer one adds no security, only work.
pub const BYTES_MAX: usize = 256;

/// Reason why a password was not hashed.
#[derive(Debug, thiserror::Error)]
pub enum PasswordError {
    /// The password is too short or too long.
    #[error("a password has at least {CHARS_MIN} characters and at most {BYTES_MAX} bytes")]
    Length,
    /// Too many hashes are waiting.
    #[error("too many users are logging in; try again in a second")]
    Busy,
    /// The operating system provides no random bytes or no memory.
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

/// Whether `hash` is the hash of this password. False for a hash with larger parameters than this module uses, which an
/// import may contain.
fn verify(password: &str, hash: &PasswordHash) -> bool {
    let Ok(parsed) = phc::PasswordHash::new(hash.as_str()) else { return false };
    let fits = Params::try_from(&parsed)
        .is_ok_and(|params| params.m_cost() <= MEMORY_KIB && params.t_cost() <= 2 * PASSES);
    let Ok(hasher) = hasher(MEMORY_KIB) else { return false };
    fits && hasher.verify_password(password.as_bytes(), &parsed).is_ok()
}

/// Work of the hashing thread.
type Work = Box<dyn FnOnce() + Send>;

/// Client that waits for a hash: the network of its address, as a number.
pub(crate) type Waiter = u64;

/// Queues of waiting hashes.
#[derive(Default)]
struct Queue {
    queues: Mutex<Queues>,
    changed: Condvar,
}

#[derive(Default)]
struct Queues {
    of_strangers: State,
    of_known: State,
    /// Clients that have logged in before, each with the number of its last log-in.
    known: HashMap<Waiter, u64>,
    /// Number of log-ins so far.
    log_ins: u64,
    /// Whether the next turn belongs to known clients.
    is_turn_of_known: bool,
    is_closed: bool,
}

/// Queue of waiting hashes, oldest first.
#[derive(Default)]
struct State {
    waiting: VecDeque<(Waiter, Work)>,
    /// Clients, each with the number of its last turn.
    turns: HashMap<Waiter, u64>,
    /// Number of turns so far.
    turn: u64,
}

impl Queue {
    fn queues(&self) -> MutexGuard<'_, Queues> {
        // No code that may panic runs while the lock is held.
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds work. Returns false if the queue is full.
    fn put(&self, waiter: Waiter, work: Work) -> bool {
        let mut queues = self.queues();
        let is_closed = queues.is_closed;
        let queue = match queues.known.contains_key(&waiter) {
            true => &mut queues.of_known,
            false => &mut queues.of_strangers,
        };
        if is_closed || !queue.make_room(waiter) {
            return false;
        }
        queue.waiting.push_back((waiter, work));
        drop(queues);
        self.changed.notify_one();
        true
    }

    /// Waits for the next work; `None` once the queue is closed. Blocks.
    fn next(&self) -> Option<Work> {
        let mut queues = self.queues();
        loop {
            if queues.is_closed {
                return None;
            }
            if let Some(work) = queues.take_next() {
                return Some(work);
            }
            queues = self.changed.wait(queues).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Remembers that a client has logged in.
    fn remember(&self, waiter: Waiter) {
        let mut queues = self.queues();
        queues.log_ins += 1;
        let log_ins = queues.log_ins;
        queues.known.insert(waiter, log_ins);
        if queues.known.len() > KNOWN_MAX {
            let from = log_ins.saturating_sub(KNOWN_MAX as u64 / 2);
            queues.known.retain(|_, log_in| *log_in > from);
        }
    }

    fn close(&self) {
        let mut queues = self.queues();
        queues.is_closed = true;
        queues.of_strangers.waiting.clear();
        queues.of_known.waiting.clear();
        drop(queues);
        self.changed.notify_one();
    }
}

impl Queues {
    /// Takes the next work of the queue whose turn it is; if it is empty, of the other one.
    fn take_next(&mut self) -> Option<Work> {
        let (first, second) = match self.is_turn_of_known {
            true => (&mut self.of_known, &mut self.of_strangers),
            false => (&mut self.of_strangers, &mut self.of_known),
        };
        let work = first.take_next();
        if work.is_some() {
            self.is_turn_of_known = !self.is_turn_of_known;
        }
        work.or_else(|| second.take_next())
    }
}

impl State {
    /// Number of waiting hashes of a client, and the number of its last turn.
    fn share(&self, waiter: Waiter) -> (usize, u64) {
        let waiting = self.waiting.iter().filter(|(other, _)| *other == waiter).count();
        (waiting, self.turns.get(&waiter).copied().unwrap_or(0))
    }

    /// Makes room for another hash of a client. Returns false if the client already has a fair share.
    fn make_room(&mut self, waiter: Waiter) -> bool {
        if self.waiting.len() < WAITING_MAX {
            return true;
        }
        let (waiting, turn) = self.share(waiter);
        let clients = self.waiting.iter().map(|(client, _)| *client).enumerate();
        let greatest = clients.max_by_key(|(at, client)| (self.share(*client), *at));
        let greatest = greatest.filter(|(_, client)| self.share(*client) > (waiting + 1, turn));
        // Dropping the work makes its caller return [`PasswordError::Busy`].
        greatest.is_some_and(|(at, _)| self.waiting.remove(at).is_some())
    }

    /// Takes the oldest work of the client whose last turn is longest ago.
    fn take_next(&mut self) -> Option<Work> {
        let turn_of =
            |(at, (waiter, _)): (usize, &(Waiter, Work))| (self.turns.get(waiter).copied(), at);
        let (_, at) = self.waiting.iter().enumerate().map(turn_of).min()?;
        let (waiter, work) = self.waiting.remove(at)?;
        self.turn += 1;
        self.turns.insert(waiter, self.turn);
        if self.turns.len() > TURNS_MAX {
            let from = self.turn.saturating_sub(TURNS_MAX as u64 / 2);
            self.turns.retain(|_, turn| *turn > from);
        }
        Some(work)
    }
}

/// Guard that closes the queue when the last user of the thread is dropped.
struct Closing(Arc<Queue>);

impl Drop for Closing {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// Handle of the thread that hashes and compares passwords. Clones share the thread.
#[derive(Clone)]
pub(crate) struct Passwords {
    queue: Arc<Closing>,
    /// Hash to compare passwords with if the account does not exist.
    nobody: Option<PasswordHash>,
    /// Number of computed hashes.
    computed: Arc<AtomicU64>,
}

impl Passwords {
    /// Starts the thread. Takes about 50 ms.
    pub(crate) fn new() -> Self {
        let queue = Arc::new(Queue::default());
        let waiting = Arc::clone(&queue);
        let compute = move || {
            give_way();
            while let Some(work) = waiting.next() {
                work();
            }
        };
        // If the thread does not start, every log-in fails.
        if let Err(error) = thread::Builder::new().name("passwords".to_owned()).spawn(compute) {
            tracing::error!(%error, "the thread for passwords does not start");
            queue.close();
        }
        Self {
            queue: Arc::new(Closing(queue)),
            nobody: hash("a password of no user").ok(),
            computed: Arc::default(),
        }
    }

    /// Number of computed hashes.
    #[cfg(test)]
    pub(crate) fn computed(&self) -> u64 {
        self.computed.load(Ordering::Relaxed)
    }

    pub(crate) async fn hash(
        &self,
        password: String,
        waiter: Waiter,
    ) -> Result<PasswordHash, PasswordError> {
        check(&password)?;
        self.run(waiter, move || hash(&password)).await?
    }

    /// Whether `stored` is the hash of the password. Without an account the result is false and takes the same time.
    pub(crate) async fn verify(
        &self,
        password: String,
        stored: Option<PasswordHash>,
        waiter: Waiter,
    ) -> Result<bool, PasswordError> {
        let exists = stored.is_some();
        let compared = stored.or_else(|| self.nobody.clone()).ok_or(PasswordError::Failed)?;
        // Longer passwords were never accepted. They are cut so that they take the same time as others.
        let password: String = password.chars().take(BYTES_MAX + 1).collect();
        let is_equal = self.run(waiter, move || verify(&password, &compared)).await?;
        let is_right = exists && is_equal;
        if is_right {
            self.queue.0.remember(waiter);
        }
        Ok(is_right)
    }

    async fn run<T: Send + 'static>(
        &self,
        waiter: Waiter,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, PasswordError> {
        let (done, result) = oneshot::channel();
        let computed = Arc::clone(&self.computed);
        let compute = move || {
            if done.is_closed() {
                return;
            }
            computed.fetch_add(1, Ordering::Relaxed);
            // An error means that the receiver is gone.
            drop(done.send(work()));
        };
        match self.queue.0.put(waiter, Box::new(compute)) {
            true => result.await.map_err(|_| PasswordError::Busy),
            false => Err(PasswordError::Busy),
        }
    }
}

/// Lowers the priority of this thread: a hash occupies a processor for 50 ms, a request for less than one.
fn give_way() {
    if let Err(error) = rustix::process::setpriority_process(None, NICENESS) {
        tracing::debug!(%error, "log-ins have the priority of other requests");
    }
}

#[cfg(test)]
mod tests {
    use tokio::task::JoinHandle;

    use super::*;

    #[tokio::test]
    async fn only_the_password_itself_is_right_and_nobody_has_one() {
        let passwords = Passwords::new();
        let stored = passwords.hash("correct horse".into(), 1).await.unwrap();
        let again = passwords.hash("correct horse".into(), 1).await.unwrap();
        assert!(stored != again, "each hash has its own salt");
        assert!(stored.as_str().starts_with("$argon2id$v=19$m=19456,t=2,p=1$"));
        for (password, expect) in [
            ("correct horse", true),
            ("correct hors", false),
            ("Correct horse", false),
            ("", false),
        ] {
            let found = passwords.verify(password.into(), Some(stored.clone()), 1).await.unwrap();
            assert_eq!(found, expect, "{password:?}");
        }
        assert!(!passwords.verify("a password of no user".into(), None, 1).await.unwrap());
    }

    #[tokio::test]
    async fn an_unknown_account_costs_the_same_work() {
        let passwords = Passwords::new();
        let stored = passwords.hash("correct horse".into(), 1).await.unwrap();
        let before = passwords.computed();
        passwords.verify("wrong".into(), Some(stored), 1).await.unwrap();
        assert_eq!(passwords.computed(), before + 1);
        passwords.verify("wrong".into(), None, 1).await.unwrap();
        assert_eq!(passwords.computed(), before + 2);
    }

    /// Keeps the thread busy until the returned sender is dropped.
    fn occupy(passwords: &Passwords) -> std::sync::mpsc::Sender<()> {
        let (finish, finished) = std::sync::mpsc::channel::<()>();
        let (begin, begun) = std::sync::mpsc::channel();
        let work = move || {
            begin.send(()).unwrap();
            finished.iter().for_each(drop);
        };
        assert!(passwords.queue.0.put(0, Box::new(work)));
        begun.recv().unwrap();
        finish
    }

    /// Queues a comparison for a client. The returned task gets the result when the thread is free.
    async fn begin(
        passwords: &Passwords,
        waiter: Waiter,
    ) -> JoinHandle<Result<bool, PasswordError>> {
        let own = passwords.clone();
        let answer = tokio::spawn(async move { own.verify("x".into(), None, waiter).await });
        // Yield, so that the spawned task runs on this thread up to its first wait.
        tokio::task::yield_now().await;
        answer
    }

    #[tokio::test]
    async fn passwords_beyond_the_bound_are_refused_and_none_is_computed_for_them() {
        let passwords = Passwords::new();
        let finish = occupy(&passwords);
        let mut waiting = Vec::new();
        for _ in 0..WAITING_MAX {
            waiting.push(begin(&passwords, 1).await);
        }
        let refused = passwords.verify("x".into(), None, 1).await;
        assert!(matches!(refused, Err(PasswordError::Busy)));
        // Another client may still wait.
        let other = begin(&passwords, 2).await;
        let replaced = waiting.pop().unwrap();
        assert!(matches!(replaced.await.unwrap(), Err(PasswordError::Busy)));
        assert_eq!(passwords.computed(), 0);
        drop(finish);
        for answer in waiting.into_iter().chain([other]) {
            assert!(matches!(answer.await.unwrap(), Ok(false)));
        }
        assert_eq!(passwords.computed(), WAITING_MAX as u64);
    }

    #[test]
    fn a_client_without_a_turn_is_next_and_replaces_one_that_had_a_turn() {
        let queue = Queue::default();
        let order = Arc::new(Mutex::new(Vec::new()));
        let put = |waiter| {
            let order = Arc::clone(&order);
            queue.put(waiter, Box::new(move || order.lock().unwrap().push(waiter)))
        };
        for waiter in [1, 1, 1, 2, 1, 3] {
            assert!(put(waiter));
        }
        (0..6).for_each(|_| queue.next().unwrap()());
        assert_eq!(*order.lock().unwrap(), [1, 2, 3, 1, 1, 1]);
        // Each of many clients has one waiting hash, and some have had a turn before.
        for waiter in 1..=WAITING_MAX as u64 {
            assert!(put(waiter));
        }
        assert!(put(1_000), "replaces client 1, whose turn was the last");
        assert!(put(1_001) && put(1_002), "replaces clients 3 and 2");
        assert!(!put(1_003), "no client has more");
    }

    #[test]
    fn new_addresses_keep_out_nobody_who_has_logged_in_before() {
        let queue = Queue::default();
        let order = Arc::new(Mutex::new(Vec::new()));
        let put = |waiter| {
            let order = Arc::clone(&order);
            queue.put(waiter, Box::new(move || order.lock().unwrap().push(waiter)))
        };
        (1..=3).for_each(|waiter| queue.remember(waiter));
        // Again and again, as many strangers come as can wait, each from another network.
        let mut stranger = 1_000;
        for _ in 0..5 {
            while put(stranger) {
                stranger += 1;
            }
            assert!((1..=3).all(put));
            (0..6).for_each(|_| queue.next().unwrap()());
            let done = std::mem::take(&mut *order.lock().unwrap());
            let known = done.iter().filter(|waiter| **waiter < 1_000).count();
            assert_eq!(known, 3, "every second turn: {done:?}");
        }
        // Clients whose last log-in is no longer remembered are strangers again.
        (10_000..10_000 + 2 * KNOWN_MAX as u64).for_each(|waiter| queue.remember(waiter));
        let known = queue.queues().known.len();
        assert!(known <= KNOWN_MAX && !queue.queues().known.contains_key(&1), "{known}");
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
