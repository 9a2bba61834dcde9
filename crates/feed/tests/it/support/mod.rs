//! A small state to apply commands to, and helpers to create commands.
#![allow(dead_code, reason = "each test file uses its part")]

use feed::accounts::{AccountCommand, AccountState, PasswordHash, Role};
use feed::filters::{
    FilterAction, FilterChange, FilterCommand, FilterContext, FilterContexts, FilterText, Keyword,
    NewFilter,
};
use feed::polls::{NewPoll, PollOptions, PollTime};
use feed::schedule::{ScheduleCommand, ScheduledPost};
use feed::{
    Bio, Command, Done, Draft, Due, DueWork, Effect, ErasurePhase, Facts, Handle, HomeAuthors,
    Idempotency, Item, Lifetime, List, ListChange, ListCommand, ListId, ListReplies, ListTitle,
    MarkerUpdate, MarkersUpdate, MuteTime, Name, Note, Notice, NotificationFilter, Page, PageOf,
    Patch, PollChoices, PostId, PostText, Reply, Shown, StampedCommand, StoryId, Tag, Txn,
    UserEdit, UserId, UserRef, Viewer, apply, scan, timeline,
};
use rows::{Rows, Stamp, StampClock};
use testkit::MemoryRows;

/// A small state to which commands are applied, one millisecond apart.
pub(crate) struct World {
    pub(crate) rows: MemoryRows,
    clock: StampClock,
    /// All commands applied so far.
    pub(crate) log: Vec<StampedCommand>,
    /// Clock in milliseconds since 1970, advanced by one with every command.
    pub(crate) now_ms: u64,
    /// Effects of the last command, without acts, which the tests of the change feed compare.
    pub(crate) effects: Vec<Effect>,
}

pub(crate) const DAY_MS: u64 = 86_400_000;

/// A page of home of a reader who has these authors there.
pub(crate) fn gather<R: Rows + ?Sized>(
    facts: Facts<'_, R>,
    reader: UserId,
    home: &HomeAuthors,
    page: &Page,
) -> PageOf<PostId> {
    scan(page, timeline::source(facts, reader, home), Shown::Yes)
}

impl World {
    /// Creates a world with the users `ada` (0), `bob` (1) and `cy` (2).
    pub(crate) fn new() -> Self {
        let mut world = Self {
            rows: MemoryRows::default(),
            clock: StampClock::new(Stamp(0)),
            now_ms: rows::EPOCH_MS + 400 * DAY_MS,
            effects: Vec::new(),
            log: Vec::new(),
        };
        for (id, handle) in ["ada", "bob", "cy"].into_iter().enumerate() {
            assert_eq!(world.run(register(handle)), Ok(Done::Registered(UserId(id as u32))));
        }
        world
    }

    pub(crate) fn apply(&mut self, command: Command, idempotency: Option<Idempotency>) -> Reply {
        self.now_ms += 1;
        let entry = StampedCommand { stamp: self.clock.next(self.now_ms), idempotency, command };
        self.log.push(entry.clone());
        self.effects.clear();
        let reply = apply(&mut Txn::new(&mut self.rows), &entry, &mut self.effects);
        self.effects.retain(|effect| !matches!(effect, Effect::Act { .. }));
        reply
    }

    pub(crate) fn run(&mut self, command: Command) -> feed::Outcome {
        self.apply(command, None).outcome
    }

    pub(crate) fn post(&mut self, author: u32, text: &str) -> PostId {
        match self.run(post(author, text)) {
            Ok(Done::Posted(id)) => id,
            other => panic!("{text:?}: {other:?}"),
        }
    }

    pub(crate) fn post_story(&mut self, author: u32, secs: u64) -> StoryId {
        match self.run(post_story(author, "a story", secs)) {
            Ok(Done::StoryPosted { story, expires_ms }) => {
                assert_eq!(
                    (story.unix_ms(), expires_ms),
                    (self.now_ms, self.now_ms + secs * 1_000)
                );
                story
            }
            other => panic!("{other:?}"),
        }
    }

    /// All work with a row, due or not, in the order of time.
    pub(crate) fn due(&self) -> Vec<Due> {
        self.facts().first_due(0, None, usize::MAX)
    }

    /// Processes all due work selected by `chosen`, as the node does. Returns the number of commands.
    pub(crate) fn do_due_of(&mut self, chosen: impl Fn(DueWork) -> bool) -> usize {
        let mut commands = 0;
        loop {
            let due = self.due().into_iter().filter(|due| chosen(due.work));
            // The command has a stamp one millisecond later.
            let due: Vec<Due> = due.take_while(|due| due.at_ms <= self.now_ms + 1).collect();
            if due.is_empty() {
                return commands;
            }
            for due in due {
                assert_eq!(self.run(Command::DoDue(due)), Ok(Done::DueDone), "{due:?}");
                commands += 1;
            }
        }
    }

    /// Removes dead stories. Returns the number of commands.
    pub(crate) fn sweep(&mut self) -> usize {
        self.do_due_of(|work| matches!(work, DueWork::RemoveStory { .. }))
    }

    /// Ends all mutes whose time is over. Returns their number.
    pub(crate) fn end_mutes(&mut self) -> usize {
        self.do_due_of(|work| matches!(work, DueWork::EndMute { .. }))
    }

    /// Removes reactions to deleted posts. Returns the number of commands.
    pub(crate) fn sweep_reactions(&mut self) -> usize {
        self.do_due_of(|work| matches!(work, DueWork::SweepReactions { .. }))
    }

    /// Opens an account for a user, or changes its state.
    pub(crate) fn set_account(&mut self, user: u32, state: AccountState) {
        if self.facts().account(UserId(user)).is_none() {
            let password = PasswordHash::parse("$argon2id$").unwrap();
            let (user, role) = (id(user), Role::User);
            let open = AccountCommand::Open { user, email: None, password, role };
            self.run(Command::Account(open)).unwrap();
        }
        let change = AccountCommand::SetState { user: id(user), state };
        self.run(Command::Account(change)).unwrap();
    }

    /// Removes posts of disabled accounts from lists, and adds posts of enabled ones again.
    pub(crate) fn relist(&mut self) {
        self.do_due_of(|work| matches!(work, DueWork::Relist { .. }));
    }

    /// Removes all rows of a deleted user, as the node does.
    pub(crate) fn erase(&mut self, user: u32) {
        let (user, mut phase) = (UserId(user), ErasurePhase::first());
        loop {
            self.run(Command::EraseUser { user, phase, from: 0 }).unwrap();
            if phase == ErasurePhase::LAST {
                break;
            }
            if self.facts().items_in_phase(user, phase, 0, 1).is_empty() {
                phase = phase.next();
            }
        }
    }

    /// Notifications of a user, newest first: the actor and the event.
    pub(crate) fn notices(&self, user: u32) -> Vec<(u32, Notice)> {
        let page = Page::newest(2_000);
        let viewer = Viewer::new(self.facts(), Some(UserId(user)));
        let shown = viewer.notifications(&page, &NotificationFilter::default()).items;
        shown.into_iter().map(|shown| (shown.actor.0, shown.notice)).collect()
    }

    pub(crate) fn facts(&self) -> Facts<'_, MemoryRows> {
        Facts::new(&self.rows)
    }

    /// The rows without values that every command changes.
    pub(crate) fn snapshot(&self) -> MemoryRows {
        use rows::RowsMut as _;
        let mut rows = self.rows.clone();
        let mut totals = rows.totals();
        totals.last_stamp = None;
        rows.put_totals(totals);
        rows
    }
}

pub(crate) fn id(user: u32) -> UserRef {
    UserRef::Id(UserId(user))
}

pub(crate) fn handle(handle: &str) -> UserRef {
    UserRef::Handle(Handle::parse(handle).unwrap())
}

pub(crate) fn register(handle: &str) -> Command {
    let handle = Handle::parse(handle).unwrap();
    Command::Register { handle, name: Name::default(), bio: Bio::default() }
}

pub(crate) fn edit_user(edit: UserEdit) -> Command {
    Command::EditUser(Box::new(edit))
}

/// Moves the marker of the home timeline.
pub(crate) fn mark(user: u32, last_read: u64, replaces: Option<u32>) -> Command {
    let home = Some(MarkerUpdate { last_read, replaces });
    let update = MarkersUpdate { user: id(user), home, notifications: None };
    Command::SetMarkers(Box::new(update))
}

/// Creates a list.
pub(crate) fn create_list(user: u32) -> Command {
    let (title, replies) = (ListTitle::parse("a list").unwrap(), ListReplies::List);
    let change = ListChange::Create(List { title, replies });
    Command::List(Box::new(ListCommand { user: id(user), change }))
}

/// Adds a user to a list, or removes one.
pub(crate) fn put_in_list(user: u32, list: ListId, other: u32, on: bool) -> Command {
    let users = vec![UserId(other)];
    let change = match on {
        true => ListChange::Add { list, users },
        false => ListChange::Remove { list, users },
    };
    Command::List(Box::new(ListCommand { user: id(user), change }))
}

/// Creates a filter with a keyword.
pub(crate) fn create_filter(user: u32, keyword: &str) -> Command {
    let text = FilterText::parse(keyword).unwrap();
    let new = NewFilter {
        title: text.clone(),
        contexts: FilterContexts::new([FilterContext::Home]).unwrap(),
        action: FilterAction::Warn,
        expires: None,
        keywords: vec![Keyword { text, whole_word: true }],
    };
    let change = FilterChange::Create(new);
    Command::Filter(Box::new(FilterCommand { user: id(user), change }))
}

/// Creates a poll that ends after five minutes, in a new or existing post.
pub(crate) fn poll(user: u32, edited: Option<PostId>) -> Command {
    let poll = |options: [&str; 2]| NewPoll {
        options: PollOptions::parse(options).unwrap(),
        multiple: false,
        hide_totals: false,
        time: PollTime::from_secs(300).unwrap(),
    };
    let text = PostText::parse("well?").unwrap();
    match edited {
        Some(post) => {
            let poll = Some(Some(poll(["up", "down"])));
            Command::edit(post, Patch { poll, ..Patch::of_text(text) })
        }
        None => {
            let poll = Some(poll(["yes", "no"]));
            Command::Publish(Box::new(Draft { poll, ..Draft::new(id(user), text) }))
        }
    }
}

pub(crate) fn vote(user: u32, post: PostId, choice: usize) -> Command {
    let choices = PollChoices::new([choice]).unwrap();
    Command::Vote { user: id(user), post, choices }
}

/// Schedules a post.
pub(crate) fn schedule(user: u32, due_ms: u64) -> Command {
    let draft = Draft::new(id(user), PostText::parse("later").unwrap());
    let post = ScheduledPost { draft, due_ms };
    Command::Schedule(ScheduleCommand::Create(Box::new(post)))
}

/// Locks or unlocks a user.
pub(crate) fn lock(user: u32, locked: bool) -> Command {
    edit_user(UserEdit { locked: Some(locked), ..UserEdit::new(id(user)) })
}

/// Adds a hashtag to a profile, or removes it.
pub(crate) fn feature(user: u32, tag: &str, on: bool) -> Command {
    Command::FeatureTag { user: id(user), tag: Tag::parse(tag).unwrap(), on }
}

/// Follows or unfollows a hashtag.
pub(crate) fn follow_tag(user: u32, tag: &str, on: bool) -> Command {
    Command::FollowTag { user: id(user), tag: Tag::parse(tag).unwrap(), on }
}

/// Accepts or rejects a follow request.
pub(crate) fn answer(user: u32, other: u32, accept: bool) -> Command {
    Command::AnswerRequest { user: id(user), other: id(other), accept }
}

/// Sets the note of a user about another one.
pub(crate) fn note(user: u32, other: u32, text: &str) -> Command {
    Command::SetNote { user: id(user), other: id(other), note: Note::parse(text).unwrap() }
}

pub(crate) fn post(author: u32, text: &str) -> Command {
    Command::post(id(author), PostText::parse(text).unwrap())
}

pub(crate) fn follow(user: UserRef, other: UserRef) -> Command {
    Command::Follow { user, other }
}

pub(crate) fn unfollow(user: UserRef, other: UserRef) -> Command {
    Command::Unfollow { user, other }
}

pub(crate) fn befriend(user: UserRef, other: UserRef) -> Command {
    Command::Befriend { user, other }
}

pub(crate) fn unfriend(user: UserRef, other: UserRef) -> Command {
    Command::Unfriend { user, other }
}

pub(crate) fn post_story(author: u32, text: &str, secs: u64) -> Command {
    let (text, life) = (PostText::parse(text).unwrap(), Lifetime::from_secs(secs).unwrap());
    Command::PostStory { author: id(author), text, life }
}

pub(crate) fn block(user: UserRef, other: UserRef) -> Command {
    Command::Block { user, other }
}

pub(crate) fn unblock(user: UserRef, other: UserRef) -> Command {
    Command::Unblock { user, other }
}

/// Changes the interest in an author.
pub(crate) fn not_interested(user: u32, other: u32, on: bool) -> Command {
    Command::NotInterested { user: id(user), other: id(other), on }
}

/// Mutes a user, including notifications.
pub(crate) fn mute(user: u32, other: u32, secs: Option<u64>) -> Command {
    let time = secs.map(|secs| MuteTime::from_secs(secs).unwrap());
    Command::Mute { user: id(user), other: id(other), mentions: true, time }
}

pub(crate) fn unmute(user: u32, other: u32) -> Command {
    Command::Unmute { user: id(user), other: id(other) }
}

pub(crate) fn view(story: StoryId, viewer: u32) -> Command {
    Command::ViewStory { story, viewer: id(viewer) }
}

/// Returns the page of a list with these items, newest first.
pub(crate) fn page_of<T: Item>(newest_first: Vec<T>, page: &Page) -> PageOf<T> {
    let is_on =
        |id| page.below.is_none_or(|below| id < below) && page.above.is_none_or(|it| id > it);
    let mut items: Vec<T> = newest_first.into_iter().filter(|item| is_on(item.id())).collect();
    let number = items.len();
    if page.is_up {
        drop(items.drain(..number.saturating_sub(page.limit)));
    } else {
        items.truncate(page.limit);
    }
    let end = if page.is_up { items.first() } else { items.last() };
    let next = end.filter(|_| number > page.limit).map(Item::id);
    PageOf { items, next }
}
