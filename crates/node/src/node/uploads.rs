//! Thread that adds pictures: it has them converted, stores their files, and submits the commands.

use std::io;

use feed::media::{
    BlurHash, MediaCommand, MediaDone, MediaFile, MediaId, MediaKey, NewMedia, ProfilePicture,
};
use feed::{Command, Done, Facts, UserRef};
use media::{Encoded, Picture, Shape};
use store::unless_unreadable;
use tokio::sync::oneshot;

use crate::cluster::Cluster;
use crate::pictures::files::{FileError, PinnedFiles};
use crate::pictures::uploads::{Job, Upload, UploadError};
use crate::shared::Shared;
use crate::submission::inbox::SubmitError;

impl Shared {
    /// Adds uploaded pictures until the node is closed.
    pub(crate) fn take_uploads(&self) {
        while let Some(Job { upload, submitted, result }) = self.uploads.next() {
            let unreadable = Err(SubmitError::Unreadable.into());
            let added = unless_unreadable(|| self.add_picture(upload, submitted));
            let added = added.unwrap_or(unreadable);
            // If the caller is gone, the picture stays unattached and expires.
            let _ = result.send(added);
        }
    }

    fn add_picture(
        &self,
        upload: Upload,
        submitted: oneshot::Sender<()>,
    ) -> Result<MediaId, UploadError> {
        let Upload { owner, file, shape, description, focus } = upload;
        let profile = match shape {
            Shape::Attachment => None,
            Shape::Avatar => Some(ProfilePicture::Avatar),
            Shape::Header => Some(ProfilePicture::Header),
        };
        // Pictures that would be refused are not converted.
        self.cluster.as_ref().map_or(Ok(()), Cluster::admits_pictures)?;
        if let Some(refusal) = Facts::new(&self.store).media_refusal(owner, profile, 0) {
            return Err(refusal.into());
        }
        drop(self.promise_media(1)?);
        let head = media::head(&file)?;
        let converted = self.uploads.converter.convert(&file, &head, shape);
        let picture = converted.map_err(UploadError::Converter)??;
        drop(file);
        let mut key = [0; 16];
        getrandom::fill(&mut key).map_err(|error| FileError::Write(io::Error::other(error)))?;
        let mut files = self.promise_media(disk_bytes(&picture))?;
        let new = NewMedia {
            owner: UserRef::Id(owner),
            key: MediaKey(key),
            original: self.store_file(&mut files, &picture.original)?,
            preview: picture
                .preview
                .map(|preview| self.store_file(&mut files, &preview))
                .transpose()?,
            blurhash: BlurHash::parse(&picture.blurhash).unwrap_or_default(),
            description,
            focus,
            profile,
        };
        let command = Command::Media(MediaCommand::Add(Box::new(new)));
        let reply = self.submit_own(command)?;
        let _ = submitted.send(());
        let replies = reply.blocking_recv().map_err(|_| SubmitError::Stopped)?;
        // The picture has a row now, which protects the files without pins.
        drop(files);
        match replies.first().map(|reply| reply.outcome) {
            Some(Ok(Done::Media(MediaDone::Added(id)))) => Ok(id),
            Some(Err(refusal)) => Err(refusal.into()),
            _ => Err(SubmitError::Stopped.into()),
        }
    }

    /// Stores a file here, and for the other nodes of a cluster, before the picture exists.
    fn store_file(
        &self,
        files: &mut PinnedFiles,
        file: &Encoded,
    ) -> Result<MediaFile, UploadError> {
        let stored = store(files, file)?;
        if let Some(exchange) = &self.exchange
            && let Err(error) = exchange.put(&stored.hash, &file.bytes)
        {
            tracing::warn!(%error, "a picture is refused");
            return Err(SubmitError::NoLog.into());
        }
        Ok(stored)
    }
}

/// Returns the size of the files of a picture in disk blocks, in bytes.
fn disk_bytes(picture: &Picture) -> u64 {
    let files = std::iter::once(&picture.original).chain(&picture.preview);
    files.map(|file| feed::media::disk_bytes(file.bytes.len() as u64)).sum()
}

fn store(files: &mut PinnedFiles, file: &Encoded) -> Result<MediaFile, FileError> {
    let hash = files.store(&file.bytes)?;
    let side = |side: u32| u16::try_from(side).unwrap_or(u16::MAX);
    let (width, height) = (side(file.width), side(file.height));
    let bytes = u32::try_from(file.bytes.len()).unwrap_or(u32::MAX);
    Ok(MediaFile { hash, bytes, is_png: file.is_png, width, height })
}
