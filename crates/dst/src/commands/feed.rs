//! Commands of the feed.

use feed::conversations::{ConversationMark, ConversationUpdate};
use feed::feeds::{FeedDefinition, FeedName};
use feed::limits::{
    BIO_CHARS_MAX, FEED_BYTES_MAX, FIELD_CHARS_MAX, MUTE_SECS_MAX, NAME_CHARS_MAX, NOTE_CHARS_MAX,
    POST_BYTES_MAX, POST_CHARS_MAX, POST_TAGS_MAX, PROFILE_FIELDS_MAX, STORED_FEEDS_MAX,
    STORY_SECS_MAX, TAG_BYTES_MAX,
};
use feed::quotes::QuotePolicy;
use feed::{
    Bio, Command, Condition, Conditional, Content, Draft, Handle, Idempotency, Label, Language,
    Lifetime, MarkerUpdate, MarkersUpdate, MuteTime, Name, Note, Patch, PostId, PostText,
    ProfileFields, Reaction, Revision, SampleBits, SampleId, SetName, StoryId, Tag, UserEdit,
    UserId, UserRef, Visibility, Warning,
};
use node::Request;

use super::Generator;
use super::crowd::CROWD;
use crate::model::Model;

pub(super) const KINDS: usize = 31;

/// Texts before and after a name in a post. Only some of them make the name a mention.
const AROUND_MENTIONS: [(&str, &str); 8] = [
    ("", ""),
    ("", ""),
    ("(", ")"),
    ("", "."),
    ("x", ""),
    ("https://a.example/", "#Tag1"),
    ("", "@elsewhere.example"),
    ("@", ""),
];
/// Texts before and after the name of a hashtag, including the number sign.
const AROUND_TAGS: [(&str, &str); 7] = [
    ("#", ""),
    ("#", ""),
    ("(#", ")!"),
    ("\u{ff03}", "."),
    ("x#", ""),
    ("https://a.example/#", ""),
    ("##", ""),
];

impl Generator {
    /// Makes a command. `model` is what users know.
    pub(crate) fn request(&mut self, model: &Model) -> Request {
        let command = self.command(model);
        let command = if self.random.once_in(3) { self.condition(model, command) } else { command };
        let idempotency = self.random.once_in(8).then(|| self.idempotency());
        Request { idempotency, command }
    }

    /// Adds a condition to a change that can have one. Usually it is the right author; rarely it is a wrong revision,
    /// which the run may replace.
    fn condition(&mut self, model: &Model, command: Command) -> Command {
        let feed = &model.feed;
        let of_post = |post: PostId| feed.posts.get(&post.0).map(|post| post.author);
        let (author, change) = match command {
            Command::Edit { post, patch } => (of_post(post), Conditional::Edit { post, patch }),
            Command::DeletePost { post } => (of_post(post), Conditional::DeletePost { post }),
            Command::DeleteStory { story } => {
                let author = feed.stories.get(&story.0).map(|story| story.author);
                (author, Conditional::DeleteStory { story })
            }
            Command::EditUser(edit) => (None, Conditional::EditUser(edit)),
            Command::DeleteUser { user } => (None, Conditional::DeleteUser { user }),
            command => return command,
        };
        let right = author.map(|author| UserRef::Id(UserId(author)));
        let author = if self.random.once_in(4) { Some(self.user()) } else { right };
        let is_of_user =
            matches!(change, Conditional::EditUser(_) | Conditional::DeleteUser { .. });
        let author = author.filter(|_| !is_of_user);
        let revisions = self.random.once_in(8).then(|| vec![Revision(self.nonce())]);
        Command::If(Box::new(Condition { author, revisions, change }))
    }

    /// Makes an idempotency key: one that was used before, usually with the same content, or a new one.
    fn idempotency(&mut self) -> Idempotency {
        let number = if self.random.once_in(2) {
            self.nonce()
        } else {
            let newest = self.nonce;
            newest - self.random.below(newest.clamp(1, 50)).min(newest)
        };
        let mut key = [0; 16];
        key[..8].copy_from_slice(&number.to_le_bytes());
        Idempotency { key, content: [u8::from(self.random.once_in(10)); 8] }
    }

    fn command(&mut self, model: &Model) -> Command {
        let weights = self.feed_weights;
        match self.random.weighted(&weights) {
            0 => self.register(),
            1 => self.edit_user(),
            2 if self.random.once_in(4) => {
                let count = self.random.below(12);
                let others = (0..count).map(|_| self.user()).collect();
                Command::FollowMany { user: self.user(), others }
            }
            2 => Command::Follow { user: self.user(), other: self.user() },
            3 => Command::Unfollow { user: self.user(), other: self.user() },
            4 if self.random.once_in(8) => Command::post(self.loud_user(), self.text()),
            4 => Command::Publish(Box::new(self.draft())),
            5 => Command::DeletePost { post: self.post() },
            6 => Command::Befriend { user: self.user(), other: self.user() },
            7 => Command::Unfriend { user: self.user(), other: self.user() },
            8 => {
                let secs = match self.random.below(8) {
                    0 => STORY_SECS_MAX,
                    1 => self.random.between(1, STORY_SECS_MAX),
                    _ => self.random.between(1, 20),
                };
                let Ok(life) = Lifetime::from_secs(secs) else { unreachable!("within the limits") };
                Command::PostStory { author: self.user(), text: self.text(), life }
            }
            9 => Command::DeleteStory { story: self.story() },
            10 => Command::ViewStory { story: self.story(), viewer: self.user() },
            11 => self.sample_command(),
            12 => {
                let parent = self.post();
                Command::Publish(Box::new(Draft { parent: Some(parent), ..self.draft() }))
            }
            // Delete only few users, because deleted users send no commands.
            13 if self.users < CROWD && self.random.once_in(20) => {
                Command::DeleteUser { user: self.user() }
            }
            14 => self.account_command(),
            13 | 15 => {
                let post = self.edited();
                Command::edit(post, self.patch())
            }
            16 => self.block(),
            17 => self.mute(),
            18 => self.react(),
            19 if self.random.once_in(2) => self.update_conversation(),
            19 => self.set_markers(),
            20 => self.set_note(),
            21 => {
                let (user, other) = (self.user(), self.user());
                Command::AnswerRequest { user, other, accept: self.random.once_in(2) }
            }
            22 if self.random.once_in(4) => self.set_feed(),
            22 => {
                let Ok(tag) = Tag::parse(&self.tag()) else { unreachable!("a valid hashtag") };
                let (user, on) = (self.user(), !self.random.once_in(3));
                match self.random.once_in(2) {
                    true => Command::FollowTag { user, tag, on },
                    false => Command::FeatureTag { user, tag, on },
                }
            }
            23 => self.list_command(),
            24 => self.media_command(),
            25 => self.filter_command(),
            26 => self.poll_command(),
            27 => self.schedule_command(),
            28 => self.follow_with(),
            29 => self.mute_thread(),
            _ => self.notifications(model),
        }
    }

    fn edit_user(&mut self) -> Command {
        let user = self.user();
        let mut flag = || self.random.once_in(4).then(|| self.random.once_in(2));
        let (bot, discoverable, indexable) = (flag(), flag(), flag());
        let (sensitive, locked) = (flag(), flag());
        Command::EditUser(Box::new(UserEdit {
            user,
            name: self.random.once_in(2).then(|| self.name()),
            bio: self.random.once_in(2).then(|| self.bio()),
            fields: self.random.once_in(4).then(|| self.fields()),
            bot,
            discoverable,
            indexable,
            visibility: self.random.once_in(4).then(|| *self.random.pick(&Visibility::ALL)),
            quote_policy: self.random.once_in(4).then(|| *self.random.pick(&QuotePolicy::ALL)),
            sensitive,
            language: self.random.once_in(4).then(|| self.language()),
            locked,
        }))
    }

    fn set_feed(&mut self) -> Command {
        let name = format!("f{}", self.random.below(2 * STORED_FEEDS_MAX as u64));
        let Ok(name) = FeedName::parse(&name) else { unreachable!("a valid name") };
        let text = match self.is_extreme() {
            true => format!("\"{}\"", "x".repeat(FEED_BYTES_MAX - 2)),
            false => format!("{{\"score\":\"{}\"}}", self.nonce()),
        };
        let definition = FeedDefinition::parse(&text).ok().filter(|_| !self.random.once_in(4));
        Command::SetFeed { name, definition }
    }

    fn fields(&mut self) -> ProfileFields {
        let text = match self.is_extreme() {
            true => "\u{4e00}".repeat(FIELD_CHARS_MAX),
            false => format!("f{}", self.nonce()),
        };
        let count = self.random.index(PROFILE_FIELDS_MAX + 1);
        let pairs = std::iter::repeat_n((text.as_str(), text.as_str()), count);
        ProfileFields::parse(pairs).unwrap_or_default()
    }

    fn update_conversation(&mut self) -> Command {
        let (first, read, is_removed) = (self.post(), self.post(), self.random.once_in(3));
        if self.random.once_in(3) {
            let last = read.max(first);
            return Command::UnreadConversation { user: self.user(), first, last };
        }
        let mark = ConversationMark { first, read: read.max(first), is_removed };
        Command::Conversation(Box::new(ConversationUpdate { user: self.user(), mark }))
    }

    /// Sets markers. Usually states the version that they have if all earlier changes succeeded.
    fn set_markers(&mut self) -> Command {
        let user = UserRef::Id(UserId(self.random.below(self.users.min(3)) as u32));
        let [home, notifications] = [(); 2].map(|()| {
            let versions = [None, Some(0), Some(1), Some(2), Some(3)];
            let replaces = *self.random.pick(&versions);
            let last_read = self.random.below(4);
            self.random.once_in(2).then_some(MarkerUpdate { last_read, replaces })
        });
        Command::SetMarkers(Box::new(MarkersUpdate { user, home, notifications }))
    }

    fn set_note(&mut self) -> Command {
        let text = match self.random.below(4) {
            0 => String::new(),
            _ if self.is_extreme() => "n".repeat(NOTE_CHARS_MAX),
            _ => format!("n{}", self.nonce()),
        };
        let note = Note::parse(&text).unwrap_or_default();
        Command::SetNote { user: self.user(), other: self.user(), note }
    }

    fn react(&mut self) -> Command {
        let reaction = *self.random.pick(&Reaction::ALL);
        // Choose one of a few posts, so that several users boost the same post.
        let (user, post) = (self.user(), self.asked());
        Command::React { user, post, reaction, on: !self.random.once_in(3) }
    }

    pub(super) fn draft(&mut self) -> Draft {
        let visibility = match self.random.below(8) {
            0 => Visibility::Unlisted,
            1 => Visibility::Followers,
            2 | 3 => Visibility::Direct,
            _ => Visibility::Public,
        };
        let author = self.loud_user();
        let text = self.text();
        Draft {
            opens_reply: self.random.once_in(16),
            visibility,
            content: Content {
                warning: self.warning(),
                sensitive: self.random.once_in(4),
                language: self.language(),
                text,
                media: Vec::new(),
            },
            quote: self.random.once_in(5).then(|| self.edited()),
            quote_policy: self.quote_policy(),
            ..Draft::of(author, Content::default())
        }
    }

    /// Makes an edit of the texts of a post.
    pub(super) fn patch(&mut self) -> Patch {
        Patch {
            text: (!self.random.once_in(4)).then(|| self.text()),
            warning: self.random.once_in(4).then(|| self.warning()),
            sensitive: self.random.once_in(4).then(|| self.random.once_in(2)),
            language: self.random.once_in(4).then(|| self.language()),
            revoke_quote: self.random.once_in(12),
            quote_policy: self.random.once_in(8).then(|| self.quote_policy()),
            media: None,
            poll: None,
            described: Vec::new(),
        }
    }

    fn quote_policy(&mut self) -> QuotePolicy {
        if self.random.once_in(3) {
            *self.random.pick(&QuotePolicy::ALL)
        } else {
            QuotePolicy::Public
        }
    }

    pub(super) fn edited(&mut self) -> PostId {
        if self.random.once_in(2) { self.asked() } else { self.post() }
    }

    fn warning(&mut self) -> Warning {
        let text = match self.random.below(8) {
            0 => format!("w{}", self.nonce()),
            1 if self.is_extreme() => "w".repeat(POST_CHARS_MAX),
            _ => String::new(),
        };
        Warning::parse(&text).unwrap_or_default()
    }

    fn language(&mut self) -> Option<Language> {
        let code = *self.random.pick(&["", "de", "en", "gsw"]);
        Language::parse(code).ok()
    }

    /// Makes blocks and, more often, ends of blocks, so that there are follows again.
    fn block(&mut self) -> Command {
        let (user, other) = (self.user(), self.user());
        match self.random.once_in(3) {
            true => Command::Block { user, other },
            false => Command::Unblock { user, other },
        }
    }

    fn mute(&mut self) -> Command {
        let (user, other) = (self.user(), self.user());
        if self.random.once_in(3) {
            return Command::NotInterested { user, other, on: !self.random.once_in(3) };
        }
        if self.random.once_in(3) {
            return Command::Unmute { user, other };
        }
        let secs = match self.random.below(6) {
            0 => None,
            1 => Some(MUTE_SECS_MAX),
            _ => Some(self.random.between(1, 20)),
        };
        let time = secs.and_then(|secs| MuteTime::from_secs(secs).ok());
        Command::Mute { user, other, mentions: self.random.once_in(2), time }
    }

    fn register(&mut self) -> Command {
        let number = self.random.below(self.users);
        self.register_as(number)
    }

    pub(super) fn register_as(&mut self, number: u64) -> Command {
        Command::Register { handle: handle_of(number), name: self.name(), bio: self.bio() }
    }

    fn sample_command(&mut self) -> Command {
        if self.random.once_in(3) {
            let sample = match self.samples.len() {
                0 => 1,
                len => self.samples[self.random.index(len)],
            };
            return Command::DeleteSample { sample: SampleId(sample) };
        }
        let (set, label) = (self.random.below(20), self.random.below(30));
        let mut bits = [0; 128];
        bits.iter_mut().for_each(|byte| *byte = self.random.next() as u8);
        let Ok(set) = SetName::parse(&format!("set{set}")) else { unreachable!("a valid name") };
        let Ok(label) = Label::parse(&format!("label{label}")) else { unreachable!("valid") };
        Command::AddSample { set, label, bits: Box::new(SampleBits::from(bits)) }
    }

    pub(super) fn handle(&mut self) -> Handle {
        handle_of(self.random.below(self.users))
    }

    pub(super) fn user(&mut self) -> UserRef {
        match self.random.below(10) {
            0 | 1 => UserRef::Handle(self.handle()),
            2 if self.is_extreme() => UserRef::Id(UserId(u32::MAX)),
            _ => UserRef::Id(UserId(self.random.below(self.users) as u32)),
        }
    }

    /// Returns a user. If a user of this run has long lists, usually returns that user.
    pub(super) fn loud_user(&mut self) -> UserRef {
        match self.is_one_loud && !self.random.once_in(4) {
            true => UserRef::Id(UserId(0)),
            false => self.user(),
        }
    }

    fn name(&mut self) -> Name {
        let text = match self.is_extreme() {
            true => "n".repeat(NAME_CHARS_MAX),
            false => format!("n{}", self.nonce()),
        };
        Name::parse(&text).unwrap_or_default()
    }

    fn bio(&mut self) -> Bio {
        let text = match self.is_extreme() {
            true => "b".repeat(BIO_CHARS_MAX),
            false => String::new(),
        };
        Bio::parse(&text).unwrap_or_default()
    }

    pub(super) fn post(&mut self) -> PostId {
        match self.posts.len() {
            0 => PostId(7),
            _ if self.is_extreme() => PostId(u64::MAX),
            len => PostId(self.posts[self.random.index(len)]),
        }
    }

    fn story(&mut self) -> StoryId {
        match self.stories.len() {
            0 => StoryId(7),
            len => StoryId(self.stories[self.random.index(len)]),
        }
    }

    fn tag(&mut self) -> String {
        let number = self.random.below(12);
        if number == 7 { "T".repeat(TAG_BYTES_MAX / 2) } else { format!("Tag{number}") }
    }

    fn text(&mut self) -> PostText {
        let mut text = String::new();
        if self.random.once_in(6) {
            text = format!("@{} ", self.handle().as_str());
        }
        text.push_str(&format!("t{}", self.nonce()));
        for _ in 0..self.random.below(8).saturating_sub(5) {
            let (before, after) = *self.random.pick(&AROUND_MENTIONS);
            text.push_str(&format!(" {before}@{}{after}", self.handle().as_str()));
        }
        for _ in 0..self.random.below(6).saturating_sub(3) {
            let (before, after) = *self.random.pick(&AROUND_TAGS);
            text.push_str(&format!(" {before}{}{after}", self.tag()));
        }
        if self.is_extreme() {
            text.push_str(" t");
            match self.random.below(4) {
                // The text has two hashtags more than are indexed.
                3 => {
                    for number in 0..POST_TAGS_MAX + 2 {
                        text.push_str(&format!(" #x{number}"));
                    }
                }
                // The text has as many mentions as fit.
                0 => {
                    while text.len() + 4 < POST_CHARS_MAX {
                        text.push_str(&format!(" @{}", self.handle().as_str()));
                    }
                    text.truncate(POST_CHARS_MAX);
                }
                1 => text.push_str(&"x".repeat(POST_CHARS_MAX - text.len())),
                // The text ends in one long grapheme cluster.
                _ => {
                    let marks = (POST_BYTES_MAX - text.len()) / '\u{301}'.len_utf8();
                    text.push_str(&"\u{301}".repeat(marks));
                }
            }
        }
        let Ok(text) = PostText::parse(&text) else { unreachable!("a valid text: {text}") };
        text
    }
}

fn handle_of(number: u64) -> Handle {
    let text = if number == 7 { "u".repeat(30) } else { format!("u{number}") };
    let Ok(handle) = Handle::parse(&text) else { unreachable!("a valid handle") };
    handle
}
