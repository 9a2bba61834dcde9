//! Commands about polls and scheduled posts.

use feed::limits::{
    POLL_OPTION_CHARS_MAX, POLL_SECS_MAX, POLL_SECS_MIN, SCHEDULED_MS_MAX, SCHEDULED_MS_MIN,
};
use feed::polls::{NewPoll, PollOptions, PollTime};
use feed::schedule::{ScheduleCommand, ScheduledPost};
use feed::{Command, Content, Draft, Patch, PollChoices, PostId, ScheduledId, UserId, UserRef};

use super::Generator;

impl Generator {
    pub(super) fn poll_command(&mut self) -> Command {
        match self.random.below(10) {
            0 | 1 => {
                let parent = self.random.once_in(3).then(|| self.post());
                self.new_poll_post(parent)
            }
            2 => {
                let poll = Some((!self.random.once_in(4)).then(|| self.new_poll()));
                let post = self.asked();
                Command::edit(post, Patch { poll, ..self.patch() })
            }
            _ => {
                let count = if self.random.once_in(4) { 2 } else { 1 };
                let options: Vec<usize> = (0..count).map(|_| self.random.index(4)).collect();
                let Ok(choices) = PollChoices::new(options) else { unreachable!("a choice") };
                Command::Vote { user: self.user(), post: self.asked(), choices }
            }
        }
    }

    pub(super) fn new_poll_post(&mut self, parent: Option<PostId>) -> Command {
        let draft = Draft { parent, ..self.draft() };
        let poll = Some(self.new_poll());
        Command::Publish(Box::new(Draft { poll, ..draft }))
    }

    pub(super) fn new_poll(&mut self) -> NewPoll {
        let long = "\u{4e00}".repeat(POLL_OPTION_CHARS_MAX);
        let all = match self.is_extreme() {
            true => [long.as_str(), "b", "c", "d"],
            false => ["a", "b", "c", "d"],
        };
        let options = PollOptions::parse(all[..2 + self.random.index(3)].iter().copied());
        let Ok(options) = options else { unreachable!("within the limits") };
        let secs = *self.random.pick(&[POLL_SECS_MIN, POLL_SECS_MIN, 900, POLL_SECS_MAX]);
        let Ok(time) = PollTime::from_secs(secs) else { unreachable!("within the limits") };
        let (multiple, hide_totals) = (self.random.once_in(2), self.random.once_in(3));
        NewPoll { options, multiple, hide_totals, time }
    }

    /// Returns a post, usually one of a few, so that the same post gets several votes or boosts.
    pub(super) fn asked(&mut self) -> PostId {
        match self.posts.len() {
            0 => PostId(7),
            len if !self.random.once_in(10) => PostId(self.posts[self.random.index(len.min(9))]),
            _ => self.post(),
        }
    }

    /// Makes a command about scheduled posts. Few users schedule posts, so that commands find the post that they name.
    pub(super) fn schedule_command(&mut self) -> Command {
        let user = UserRef::Id(UserId(self.random.below(self.users.min(2)) as u32));
        let due_ms = self.due_ms();
        let id = ScheduledId(match self.scheduled.len() {
            0 => 7,
            len => self.scheduled[self.random.index(len)],
        });
        Command::Schedule(match self.random.below(8) {
            0 => ScheduleCommand::Cancel { user, id },
            1 => ScheduleCommand::Move { user, id, due_ms },
            _ => {
                let parent = self.random.once_in(3).then(|| self.post());
                let poll = self.random.once_in(4).then(|| self.new_poll());
                let has_media = self.random.once_in(if poll.is_some() { 9 } else { 2 });
                let media = if has_media { self.media_of_post() } else { Vec::new() };
                let draft = self.draft();
                let content = Content { media, ..draft.content };
                let draft = Draft { author: user, content, parent, poll, ..draft };
                ScheduleCommand::Create(Box::new(ScheduledPost { draft, due_ms }))
            }
        })
    }

    /// Returns a time of publication, usually soon after the latest time in a reply.
    fn due_ms(&mut self) -> u64 {
        let ahead = match self.random.below(8) {
            0 => SCHEDULED_MS_MIN - 10_000,
            1 => SCHEDULED_MS_MAX / 2,
            _ => SCHEDULED_MS_MIN + self.random.below(100_000),
        };
        self.known_ms + ahead
    }
}
