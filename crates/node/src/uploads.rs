//! Uploads of pictures. One thread lets them be converted, one at a time, stores their files, and adds them.
//!
//! **Invariant:** the files that wait, and the one that is converted, are within the bounds: on all bytes, on the number of
//! all, and on the number of those of one user. What is beyond is refused at once.
//! **Invariant:** files stay pinned until the picture was added or refused, also if nobody waits for the answer any longer.

use std::collections::VecDeque;
use std::io;

use feed::media::{Description, Focus, MediaId};
use feed::{Refusal, UserId};
use media::{ANSWER_BYTES_MAX, FILE_BYTES_MAX, MediaError, Shape};
use parking_lot::{Condvar, Mutex};
use tokio::sync::oneshot;

use crate::converter::Converter;
use crate::inbox::SubmitError;
use crate::media_files::FileError;

/// Most bytes of the files that wait or are converted: two of the longest.
const QUEUE_BYTES_MAX: usize = 2 * FILE_BYTES_MAX;
/// Most files that wait or are converted: a small file can be a large picture, which takes seconds.
const QUEUE_MAX: usize = 16;
/// Most of them of one user: the pictures of a post.
const OF_USER_MAX: usize = feed::limits::POST_MEDIA_MAX;
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
    is_closed: bool,
}

impl State {
    /// Owners and bytes of all files.
    fn files(&self) -> impl Iterator<Item = (UserId, usize)> {
        let waiting = self.waiting.iter().map(|job| (job.upload.owner, job.upload.file.capacity()));
        waiting.chain(self.converted)
    }

    fn has_room(&self, upload: &Upload) -> bool {
        let bytes: usize = self.files().map(|(_, bytes)| bytes).sum();
        let of_user = self.files().filter(|(owner, _)| *owner == upload.owner).count();
        bytes + upload.file.capacity() <= QUEUE_BYTES_MAX
            && self.files().count() < QUEUE_MAX
            && of_user < OF_USER_MAX
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
        if !state.has_room(&upload) {
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
            if let Some(job) = state.waiting.pop_front() {
                state.converted = Some((job.upload.owner, job.upload.file.capacity()));
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
        check(&(0..30).map(|user| (user, 10)).collect::<Vec<_>>(), QUEUE_MAX);
        check(&[(1, FILE_BYTES_MAX), (2, FILE_BYTES_MAX), (3, 1)], 2);
        check(&[(1, FILE_BYTES_MAX), (2, FILE_BYTES_MAX - 1), (3, 1), (3, 1)], 3);
    }

    #[test]
    fn the_one_that_is_converted_counts_and_those_without_a_caller_are_left_out() {
        let queue = Uploads::default();
        let first = queue.put(upload(1, FILE_BYTES_MAX)).unwrap();
        let gone = queue.put(upload(1, 1)).unwrap();
        let last = queue.put(upload(2, 2)).unwrap();
        assert_eq!(queue.next().unwrap().upload.owner, UserId(1));
        assert!(matches!(queue.put(upload(3, FILE_BYTES_MAX)), Err(UploadError::Busy)));
        drop(gone);
        assert_eq!(queue.next().unwrap().upload.owner, UserId(2));
        assert!(queue.put(upload(3, FILE_BYTES_MAX)).is_ok(), "the first is done");
        drop((first, last));
        queue.close();
        assert!(queue.next().is_none());
        let refused = queue.put(upload(1, 1));
        assert!(matches!(refused, Err(UploadError::Unavailable(SubmitError::Stopped))));
    }
}
