//! Uploads of pictures. One thread lets them be converted, one at a time, stores their files, and adds them.
//!
//! **Invariant:** the files that wait, and the one that is converted, are within the bounds: on all bytes, on the number of
//! all, and on the number of those of one user. What is beyond is refused at once.
//! **Invariant:** users have turns. The next file is one of the user whose last turn is longest ago, and if there is no
//! room, a user with fewer waiting files or bytes replaces the newest file of the one with the most.
//! **Invariant:** files stay pinned until the picture was added or refused, also if nobody waits for the answer any longer.

use std::collections::{HashMap, VecDeque};
use std::io;

use feed::media::{Description, Focus, MediaId};
use feed::{Refusal, UserId};
use media::{ANSWER_BYTES_MAX, FILE_BYTES_MAX, MediaError, Shape};
use parking_lot::{Condvar, Mutex};
use tokio::sync::oneshot;

use super::converter::Converter;
use super::files::FileError;
use crate::submission::inbox::SubmitError;

/// Most bytes of the files that wait or are converted: two of the longest.
const QUEUE_BYTES_MAX: usize = 2 * FILE_BYTES_MAX;
/// Most files that wait or are converted.
const QUEUE_MAX: usize = 64;
/// Most of them of one user: the pictures of a post.
const OF_USER_MAX: usize = feed::limits::POST_MEDIA_MAX;
/// Most users whose last turns are remembered.
const TURNS_MAX: usize = 1_024;
/// Most memory that uploads take in this process, in bytes: the files, and what the converter returns.
pub const UPLOAD_MEMORY: u64 = (QUEUE_BYTES_MAX + ANSWER_BYTES_MAX) as u64;

/// A picture to be added.
#[derive(Clone, Debug)]
pub struct Upload {
    /// The user who uploads it.
    pub owner: UserId,
    /// The file, in any of the formats that can be decoded.
    pub file: Vec<u8>,
    /// What it is for. An avatar and a header replace those that the user has.
    pub shape: Shape,
    /// What it shows.
    pub description: Description,
    /// Its most important point.
    pub focus: Option<Focus>,
}

/// Why a picture was not added.
#[derive(Debug, thiserror::Error)]
pub enum UploadError {
    /// Too many pictures wait already.
    #[error("too many pictures are uploaded at this moment; try again in some seconds")]
    Busy,
    /// The file cannot be used.
    #[error(transparent)]
    Picture(#[from] MediaError),
    /// The program that converts it could not be started.
    #[error("pictures cannot be converted at this moment; try again later")]
    Converter(#[source] io::Error),
    /// Its files were not stored.
    #[error(transparent)]
    File(#[from] FileError),
    /// The picture is refused.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The command was not accepted.
    #[error(transparent)]
    Unavailable(#[from] SubmitError),
}

/// The result of an upload that was accepted.
pub(crate) struct Added {
    /// Ends when its command was submitted, or there is a result.
    pub(crate) submitted: oneshot::Receiver<()>,
    pub(crate) result: oneshot::Receiver<Result<MediaId, UploadError>>,
}

pub(crate) struct Job {
    pub(crate) upload: Upload,
    /// Its command was submitted.
    pub(crate) submitted: oneshot::Sender<()>,
    pub(crate) result: oneshot::Sender<Result<MediaId, UploadError>>,
}

/// The uploads that wait, oldest first.
#[derive(Default)]
pub(crate) struct Uploads {
    state: Mutex<State>,
    changed: Condvar,
    pub(crate) converter: Converter,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Job>,
    /// Owner and bytes of the one that is converted.
    converted: Option<(UserId, usize)>,
    /// Numbers of the last turns of users.
    turns: HashMap<UserId, u64>,
    /// Number of turns so far.
    turn: u64,
    is_closed: bool,
}

impl State {
    /// Owners and bytes of all files.
    fn files(&self) -> impl Iterator<Item = (UserId, usize)> {
        let waiting = self.waiting.iter().map(|job| (job.upload.owner, job.upload.file.capacity()));
        waiting.chain(self.converted)
    }

    /// Makes room for an upload; false if its user has a fair share already. Then nobody's upload is removed.
    fn make_room(&mut self, upload: &Upload) -> bool {
        let (owner, bytes) = (upload.owner, upload.file.capacity());
        if self.files().filter(|(user, _)| *user == owner).count() >= OF_USER_MAX {
            return false;
        }
        let mut removed = Vec::new();
        let has_room = loop {
            let all: usize = self.files().map(|(_, bytes)| bytes).sum();
            let is_full = self.files().count() >= QUEUE_MAX;
            if !is_full && all + bytes <= QUEUE_BYTES_MAX {
                break true;
            }
            let share = |bytes: usize| if is_full { 1 } else { bytes };
            // Without the one that is converted, which goes on.
            let share_of = |user: UserId| -> usize {
                let waiting = self.waiting.iter().filter(|job| job.upload.owner == user);
                waiting.map(|job| share(job.upload.file.capacity())).sum()
            };
            let own = share_of(owner) + share(bytes);
            let waiting = self.waiting.iter().map(|job| job.upload.owner).enumerate();
            let greatest = waiting.max_by_key(|(at, user)| (share_of(*user), *at));
            let Some((at, _)) = greatest.filter(|(_, user)| share_of(*user) > own) else {
                break false;
            };
            removed.extend(self.waiting.remove(at).map(|job| (at, job)));
        };
        if has_room {
            for (_, job) in removed {
                // If the caller is gone, nobody waits for it.
                drop(job.result.send(Err(UploadError::Busy)));
            }
        } else {
            for (at, job) in removed.into_iter().rev() {
                self.waiting.insert(at, job);
            }
        }
        has_room
    }

    /// Takes the oldest of the uploads by the user whose last turn is longest ago.
    fn take_next(&mut self) -> Option<Job> {
        let turn_of = |(at, job): (usize, &Job)| {
            (self.turns.get(&job.upload.owner).copied().unwrap_or(0), at)
        };
        let (_, at) = self.waiting.iter().enumerate().map(turn_of).min()?;
        let job = self.waiting.remove(at)?;
        self.turn += 1;
        self.turns.insert(job.upload.owner, self.turn);
        if self.turns.len() > TURNS_MAX {
            let from = self.turn.saturating_sub(TURNS_MAX as u64 / 2);
            self.turns.retain(|_, turn| *turn > from);
        }
        self.converted = Some((job.upload.owner, job.upload.file.capacity()));
        Some(job)
    }
}

impl Uploads {
    /// None yet.
    pub(crate) fn new(converter: Converter) -> Self {
        Self { converter, ..Self::default() }
    }

    /// Adds an upload to those that wait.
    pub(crate) fn put(&self, mut upload: Upload) -> Result<Added, UploadError> {
        upload.file.shrink_to_fit();
        let (result, on_result) = oneshot::channel();
        let (submitted, on_submitted) = oneshot::channel();
        let mut state = self.state.lock();
        if state.is_closed {
            return Err(SubmitError::Stopped.into());
        }
        if !state.make_room(&upload) {
            return Err(UploadError::Busy);
        }
        state.waiting.push_back(Job { upload, submitted, result });
        drop(state);
        self.changed.notify_one();
        Ok(Added { submitted: on_submitted, result: on_result })
    }

    /// The next upload, which counts until the next call; `None` once they were closed. Blocks.
    pub(crate) fn next(&self) -> Option<Job> {
        let mut state = self.state.lock();
        state.converted = None;
        loop {
            if state.is_closed {
                return None;
            }
            // Nobody waits for one whose connection ended.
            state.waiting.retain(|job| !job.result.is_closed());
            if let Some(job) = state.take_next() {
                return Some(job);
            }
            self.changed.wait(&mut state);
        }
    }

    /// Refuses the uploads that wait, and all later ones.
    pub(crate) fn close(&self) {
        let mut state = self.state.lock();
        state.is_closed = true;
        state.waiting.clear();
        drop(state);
        self.converter.end();
        self.changed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn upload(owner: u32, bytes: usize) -> Upload {
        Upload {
            owner: UserId(owner),
            file: vec![0; bytes],
            shape: Shape::Attachment,
            description: Description::default(),
            focus: None,
        }
    }

    #[test]
    fn what_waits_is_bounded_in_bytes_in_number_and_for_each_user() {
        let check = |uploads: &[(u32, usize)], expect: usize| {
            let queue = Uploads::default();
            let put = uploads.iter().map(|(owner, bytes)| queue.put(upload(*owner, *bytes)));
            let put: Vec<_> = put.collect();
            assert_eq!(put.iter().filter(|put| put.is_ok()).count(), expect, "{uploads:?}");
            let refused = put.iter().filter_map(|put| put.as_ref().err());
            assert!(refused.into_iter().all(|error| matches!(error, UploadError::Busy)));
        };
        check(&[(1, 10); 9], OF_USER_MAX);
        check(&(0..70).map(|user| (user, 10)).collect::<Vec<_>>(), QUEUE_MAX);
        check(&[(1, FILE_BYTES_MAX), (1, FILE_BYTES_MAX), (1, 1)], 2);
        check(&[(1, FILE_BYTES_MAX), (2, FILE_BYTES_MAX), (3, FILE_BYTES_MAX)], 2);
    }

    #[test]
    fn a_user_with_less_replaces_the_newest_of_whoever_has_the_most() {
        // The uploads of others, and which of them is replaced by a short one of user 99.
        let full: Vec<_> = (0..QUEUE_MAX as u32).map(|at| (at / 4, 10)).collect();
        let mut some = full.clone();
        some[0] = (50, 10);
        let long = vec![(1, FILE_BYTES_MAX), (2, FILE_BYTES_MAX)];
        for (others, replaced) in [(full, QUEUE_MAX - 1), (some, QUEUE_MAX - 1), (long, 1)] {
            let queue = Uploads::default();
            let mut put: Vec<_> = others
                .iter()
                .map(|(owner, bytes)| queue.put(upload(*owner, *bytes)).unwrap())
                .collect();
            let late = queue.put(upload(99, 10));
            assert!(late.is_ok());
            for (at, added) in put.iter_mut().enumerate() {
                let is_replaced = matches!(added.result.try_recv(), Ok(Err(UploadError::Busy)));
                assert_eq!(is_replaced, at == replaced, "{at} of {}", others.len());
            }
        }
    }

    #[test]
    fn a_user_who_has_had_no_turn_is_next() {
        let queue = Uploads::default();
        let users = [1, 1, 1, 2, 2, 1, 3];
        let put: Vec<_> = users.map(|user| queue.put(upload(user, 10)).unwrap()).into();
        let next: Vec<_> = users.map(|_| queue.next().unwrap().upload.owner.0).into();
        assert_eq!(next, [1, 2, 3, 1, 2, 1, 1]);
        drop(put);
    }

    #[test]
    fn the_one_that_is_converted_counts_and_those_without_a_caller_are_left_out() {
        let queue = Uploads::default();
        let first = queue.put(upload(1, FILE_BYTES_MAX)).unwrap();
        let abandoned = queue.put(upload(1, 1)).unwrap();
        let last = queue.put(upload(2, 2)).unwrap();
        assert_eq!(queue.next().unwrap().upload.owner, UserId(1));
        assert!(matches!(queue.put(upload(3, FILE_BYTES_MAX)), Err(UploadError::Busy)));
        drop(abandoned);
        assert_eq!(queue.next().unwrap().upload.owner, UserId(2));
        assert!(queue.put(upload(3, FILE_BYTES_MAX)).is_ok(), "the first is done");
        drop((first, last));
        queue.close();
        assert!(queue.next().is_none());
        let refused = queue.put(upload(1, 1));
        assert!(matches!(refused, Err(UploadError::Unavailable(SubmitError::Stopped))));
    }
}
