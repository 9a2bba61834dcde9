//! Costs of pictures.

use rows::{Cost, WORK_PER_ROW};

use crate::index::MEDIA_ROWS;
use crate::limits::{DESCRIPTION_BYTES_MAX, POST_MEDIA_MAX};
use crate::media::MediaCommand;
use crate::users::rules::USER_BYTES_MAX;

/// Bytes of the rows of a picture.
pub(crate) const MEDIA_BYTES: usize = DESCRIPTION_BYTES_MAX + 1_024;

pub(crate) fn media_cost(command: &MediaCommand) -> Cost {
    let user = Cost::of_rows(1, USER_BYTES_MAX);
    match command {
        // The second picture is a replaced profile picture.
        MediaCommand::Add(_) => pictures_cost(2).and(user),
        MediaCommand::ClearProfile { .. } => pictures_cost(1).and(user),
        MediaCommand::Change { .. } | MediaCommand::Delete { .. } => pictures_cost(1),
        // The deletion of the post is not included: `cost.rs` adds it.
        MediaCommand::Redraft { .. } => pictures_cost(POST_MEDIA_MAX),
    }
}

/// Cost of adding, changing or removing `pictures` pictures, each of which is read twice.
pub(crate) fn pictures_cost(pictures: usize) -> Cost {
    let cost = Cost::of_rows(MEDIA_ROWS * pictures, MEDIA_BYTES * pictures);
    let read = pictures * (3 * MEDIA_BYTES + 3 * WORK_PER_ROW);
    Cost { work: cost.work + read, ..cost }
}
