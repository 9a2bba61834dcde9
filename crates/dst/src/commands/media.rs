//! Commands about pictures. The files of the pictures do not exist.

use feed::limits::{DESCRIPTION_CHARS_MAX, POST_MEDIA_MAX};
use feed::media::{
    BlurHash, Description, FileHash, Focus, MediaChange, MediaCommand, MediaFile, MediaId,
    MediaKey, NewMedia, ProfilePicture,
};
use feed::{Command, Draft, Patch, PostText, UserId, UserRef};

use super::Generator;

impl Generator {
    /// Makes a command about pictures. Few users have pictures, so that commands find the picture that they name.
    pub(super) fn media_command(&mut self) -> Command {
        let user = UserRef::Id(UserId(self.random.below(self.users.min(2)) as u32));
        let command = match self.random.below(12) {
            0..4 => MediaCommand::Add(Box::new(self.new_media(user))),
            4 => MediaCommand::Change { user, change: Box::new(self.media_change()) },
            5 => MediaCommand::Delete { user, media: self.media() },
            6 => {
                let picture = self.profile_picture();
                MediaCommand::ClearProfile { user, picture }
            }
            7 | 8 => return self.media_edit(),
            9 => MediaCommand::Redraft { post: self.post() },
            _ => {
                let mut draft = Draft { author: user, ..self.draft() };
                if self.random.once_in(3) {
                    draft.content.text = PostText::none();
                }
                draft.content.media = self.media_of_post();
                draft.parent = self.random.once_in(4).then(|| self.post());
                draft.poll = self.random.once_in(12).then(|| self.new_poll());
                return Command::Publish(Box::new(draft));
            }
        };
        Command::Media(command)
    }

    fn new_media(&mut self, owner: UserRef) -> NewMedia {
        let has_preview = !self.random.once_in(3);
        NewMedia {
            owner,
            key: MediaKey([self.random.next() as u8; 16]),
            original: self.media_file(),
            preview: has_preview.then(|| self.media_file()),
            blurhash: BlurHash::parse("U00").unwrap_or_default(),
            description: self.description(),
            focus: self.focus(),
            profile: self.random.once_in(4).then(|| self.profile_picture()),
        }
    }

    /// Returns one of a few files, so that some pictures share a file.
    fn media_file(&mut self) -> MediaFile {
        let hash = FileHash([self.random.below(20) as u8; 32]);
        let bytes = if self.is_extreme() { u32::MAX } else { self.random.below(20_000) as u32 };
        MediaFile { hash, bytes, is_png: false, width: 3, height: 2 }
    }

    fn media_change(&mut self) -> MediaChange {
        let media = self.media();
        let description = (!self.random.once_in(3)).then(|| self.description());
        MediaChange { media, description, focus: self.focus() }
    }

    fn media_edit(&mut self) -> Command {
        let post = self.edited();
        let media = (!self.random.once_in(3)).then(|| self.media_of_post());
        let described = (0..self.random.below(3)).map(|_| self.media_change()).collect();
        let poll = self.random.once_in(6).then(|| self.random.once_in(2).then(|| self.new_poll()));
        Command::edit(post, Patch { media, described, poll, ..self.patch() })
    }

    /// Returns pictures for a post. Usually returns only one, because all must belong to the author.
    pub(super) fn media_of_post(&mut self) -> Vec<MediaId> {
        let most = if self.is_extreme() { POST_MEDIA_MAX as u64 + 2 } else { 3 };
        (0..self.random.below(most)).map(|_| self.media()).collect()
    }

    fn media(&mut self) -> MediaId {
        match self.media.len() {
            0 => MediaId(7),
            len => MediaId(self.media[self.random.index(len)]),
        }
    }

    fn profile_picture(&mut self) -> ProfilePicture {
        *self.random.pick(&[ProfilePicture::Avatar, ProfilePicture::Header])
    }

    fn description(&mut self) -> Description {
        let text = match self.is_extreme() {
            true => "\u{4e00}".repeat(DESCRIPTION_CHARS_MAX),
            false => format!("d{}", self.nonce()),
        };
        Description::parse(&text).unwrap_or_default()
    }

    fn focus(&mut self) -> Option<Focus> {
        let part = self.random.below(21) as f32 / 10.0 - 1.0;
        Focus::new(part, -part).ok().filter(|_| self.random.once_in(3))
    }
}
