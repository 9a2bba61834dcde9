//! Uploads of pictures. One thread has them converted, one at a time, stores their files, and adds them.
//!
//! **Invariant:** the waiting files and the file that is converted are within three bounds: on their bytes, on their
//! number, and on their number per user. Further uploads are refused at once.
//! **Invariant:** users take turns. The next file is from the user whose last turn is longest ago. If there is no room,
//! an upload of a user with fewer files or bytes replaces the newest file of the user who has the most.
//! **Invariant:** files stay pinned until the picture was added or refused, even if the caller no longer waits.

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

/// Maximum size of the files that wait or are converted, in bytes: twice the maximum size of a file.
const QUEUE_BYTES_MAX: usize = 2 * FILE_BYTES_MAX;
/// Maximum number of files that wait or are converted.
const QUEUE_MAX: usize = 64;
/// Maximum number of files per user that wait or are converted: as many as a post may have.
const OF_USER_MAX: usize = feed::limits::POST_MEDIA_MAX;
/// Maximum number of users whose last turns are remembered.
const TURNS_MAX: usize = 1_024;
/// Maximum memory of uploads in this process, in bytes: the files, and the output of the converter.
pub const UPLOAD_MEMORY: u64 = (QUEUE_BYTES_MAX + ANSWER_BYTES_MAX) as u64;

/// Picture to be added.
#[derive(Clone, Debug)]
pub struct Upload {
    /// User who uploads the picture.
    pub owner: UserId,
    /// Bytes of the file, in any of the supported formats.
    pub file: Vec<u8>,
    /// Use of the picture. An avatar or header replaces the user's present one.
    pub shape: Shape,
    /// Description of the content.
    pub description: Description,
    /// Most important point of the picture.
    pub focus: Option<Focus>,
}

/// Reason why a picture was not added.
#[derive(Debug, thiserror::Error)]
pub enum UploadError {
    /// Too many pictures are waiting.
    #[error("too many pictures are uploaded at this moment; try again in some seconds")]
    Busy,
    /// The file cannot be used.
    #[error(transparent)]
    Picture(#[from] MediaError),
    /// The converter could not be started.
    #[error("pictures cannot be converted at this moment; try again later")]
    Converter(#[source] io::Error),
    /// The files of the picture were not stored.
    #[error(transparent)]
    File(#[from] FileError),
    /// The picture is refused.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The command was not accepted.
    #[error(transparent)]
    Unavailable(#[from] SubmitError),
}

/// Result of an accepted upload.
pub(crate) struct Added {
    /// Closed when the command was submitted, or there is a result.
    pub(crate) submitted: oneshot::Receiver<()>,
    pub(crate) result: oneshot::Receiver<Result<MediaId, UploadError>>,
}

pub(crate) struct Job {
    pub(crate) upload: Upload,
    /// Notified when the command was submitted.
    pub(crate) submitted: oneshot::Sender<()>,
    pub(crate) result: oneshot::Sender<Result<MediaId, UploadError>>,
}

/// Waiting uploads, oldest first.
#[derive(Default)]
pub(crate) struct Uploads {
    state: Mutex<State>,
    changed: Condvar,
    pub(crate) converter: Converter,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Job>,
    /// Owner and bytes of the upload that is converted.
    converted: Option<(UserId, usize)>,
    /// Numbers of the last turns of users.
    turns: HashMap<UserId, u64>,
    /// Number of turns so far.
    turn: u64,
    is_closed: bool,
}

impl State {
    /// Returns the owners and bytes of all files.
    fn files(&self) -> impl Iterator<Item = (UserId, usize)> {
        let waiting = self.waiting.iter().map(|job| (job.upload.owner, job.upload.file.capacity()));
        waiting.chain(self.converted)
    }

    /// Makes room for an upload; returns false and removes nothing if its user already has a fair share.
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
            // The upload that is being converted is not counted, because it cannot be replaced.
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
                // A send error means that the caller no longer waits.
                drop(job.result.send(Err(UploadError::Busy)));
            }
        } else {
            for (at, job) in removed.into_iter().rev() {
                self.waiting.insert(at, job);
            }
        }
        has_room
    }

    /// Takes the oldest upload of the user whose last turn is longest ago.
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
    /// Creates an empty queue.
    pub(crate) fn new(converter: Converter) -> Self {
        Self { converter, ..Self::default() }
    }

    /// Adds an upload to the queue.
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

    /// Returns the next upload, which counts as converted until the next call; `None` after [`Uploads::close`]. Blocks.
    pub(crate) fn next(&self) -> Option<Job> {
        let mut state = self.state.lock();
        state.converted = None;
        loop {
            if state.is_closed {
                return None;
            }
            // Removes uploads whose connection has ended.
            state.waiting.retain(|job| !job.result.is_closed());
            if let Some(job) = state.take_next() {
                return Some(job);
            }
            self.changed.wait(&mut state);
        }
    }

    /// Refuses the waiting uploads and all later ones.
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
        // Waiting uploads of other users, and the upload that a short one of user 99 replaces.
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
