//! Tests of costs: applying a command costs at most its declared cost (rows changed and looked up, bytes copied, growth
//! of the overlay, rows held for answers), and no command of the feed has a declared cost above the limit of a change.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;

use feed::accounts::{
    AccessScopes, AccountCommand, AccountState, AppId, AppName, AppRequest, Email, PasswordHash,
    RedirectUri, Role, SecretHash, Website,
};
use feed::conversations::{ConversationMark, ConversationUpdate};
use feed::feeds::{FeedDefinition, FeedName};
use feed::filters::{
    FilterAction, FilterChange, FilterCommand, FilterContext, FilterContexts, FilterEdit, FilterId,
    FilterText, FilterTime, Keyword, KeywordChange, NewFilter,
};
use feed::follow_options::FollowWith;
use feed::limits::{
    APP_GRANTS_MAX, CONVERSATION_MARKS_MAX, CONVERSATIONS_BYTES_MAX, EDIT_NOTICES_MAX,
    EDIT_NOTICES_QUIET_MS, ERASE_ROWS_MAX, ERASING_USERS_MAX, FEED_BYTES_MAX, FILTER_KEYWORDS_MAX,
    FILTER_SECS_MAX, FILTER_TEXT_CHARS_MAX, FILTERED_POSTS_MAX, FILTERS_BYTES_MAX, FILTERS_MAX,
    FOLLOW_MANY_MAX, FOLLOW_OPTIONS_BYTES_MAX, FOLLOW_OPTIONS_MAX, INVITES_MAX, LIST_CHANGED_MAX,
    LIST_MEMBERS_MAX, LISTS_MAX, MUTED_THREADS_BYTES_MAX, MUTED_THREADS_MAX, NOTIFYING_MAX,
    POLL_OPTION_CHARS_MAX, POLL_SECS_MIN, PROFILE_FIELDS_MAX, REDIRECT_URIS_MAX,
    RELISTED_POSTS_MAX, SAMPLE_SETS_MAX, SCHEDULED_MAX, SCHEDULED_MS_MIN, UNATTACHED_MEDIA_MAX,
    UNUSED_APPS_MAX, URI_BYTES_MAX, USER_GRANTS_MAX, USER_TOKENS_MAX, VERSIONS_BYTES_MAX,
};
use feed::media::{
    BlurHash, Description, FileHash, Focus, MediaChange, MediaCommand, MediaFile, MediaId,
    MediaKey, NewMedia, ProfilePicture,
};
use feed::polls::{NewPoll, PollOptions, PollTime};
use feed::schedule::{ScheduleCommand, ScheduledPost};
use feed::{
    Bio, Command, Condition, Conditional, Content, Draft, Due, DueWork, ErasurePhase, Facts,
    Handle, Idempotency, Label, Language, Lifetime, List, ListChange, ListCommand, ListId,
    ListReplies, ListTitle, Marker, MarkerUpdate, MarkersUpdate, MuteTime, Name, Note,
    NotificationId, Patch, PollChoices, PollId, PostId, PostText, ProfileFields, Reaction, Request,
    SampleBits, SampleId, ScheduledId, SetName, StoryId, Txn, UserEdit, UserId, UserRef,
    Visibility, Warning, apply,
};
use kv::{
    Bucket, BucketId, BucketName, Bytes, Expiry, KeyAnswer, KeyOp, KeyOps, KeyRow, KeyRows,
    KeyRowsMut, Lengths, Only, OnlyExpiry, Space, WalkLimit,
};
use proptest::prelude::*;
use rows::{
    CHANGE_BYTES_MAX, CHANGE_ROWS_MAX, Cost, EPOCH_MS, NameTable, PointTable, PutRows, Rows,
    RowsMut, SetTable, Span, Stamp, StampClock, Totals, Value, WORK_PER_ROW,
};
use store::{Store, StoreOptions, StoreWriter};

/// Store whose operations on rows are counted.
struct Counting {
    rows: StoreWriter,
    changed: usize,
    looked_up: Cell<usize>,
    /// Keys that were prefetched.
    prefetched: RefCell<BTreeSet<Vec<u8>>>,
    unexpected: Cell<usize>,
}

impl Counting {
    fn look_up(&self, rows: usize) {
        self.looked_up.set(self.looked_up.get() + rows.max(1));
    }
}

impl Rows for Counting {
    fn point(&self, table: PointTable, key: u64) -> Option<Value> {
        self.look_up(1);
        self.rows.point(table, key)
    }
    fn each_point(&self, table: PointTable, each: &mut dyn FnMut(u64, &[u8])) {
        self.look_up(usize::MAX / 2);
        self.rows.each_point(table, each);
    }
    fn points_below(
        &self,
        table: PointTable,
        below: u64,
        limit: usize,
        each: &mut dyn FnMut(u64, &[u8]),
    ) {
        self.look_up(usize::MAX / 2);
        self.rows.points_below(table, below, limit, each);
    }
    fn member(&self, table: SetTable, owner: u64, item: u64) -> Option<u64> {
        self.look_up(1);
        self.rows.member(table, owner, item)
    }
    fn members(&self, table: SetTable, owner: u64, span: Span) -> Vec<(u64, u64)> {
        let found = self.rows.members(table, owner, span);
        self.look_up(found.len());
        found
    }
    fn name(&self, table: NameTable, key: &[u8]) -> Option<Value> {
        self.look_up(1);
        self.rows.name(table, key)
    }
    fn names_under(
        &self,
        table: NameTable,
        prefix: &[u8],
        from: &[u8],
        limit: usize,
    ) -> Vec<Vec<u8>> {
        let found = self.rows.names_under(table, prefix, from, limit);
        self.look_up(found.len());
        found
    }
    fn totals(&self) -> Totals {
        self.rows.totals()
    }
}

impl KeyRows for Counting {
    fn key(&self, space: Space, key: &[u8]) -> Option<KeyRow> {
        self.look_up(1);
        if !self.prefetched.borrow().contains(key) {
            self.unexpected.set(self.unexpected.get() + 1);
        }
        self.rows.key(space, key)
    }
    fn prefetch_key(&self, space: Space, key: &[u8]) {
        self.prefetched.borrow_mut().insert(key.to_vec());
        self.rows.prefetch_key(space, key);
    }
    fn keys(&self, space: Space, cursor: u64, limit: WalkLimit) -> (Vec<KeyRow>, Option<u64>) {
        let found = self.rows.keys(space, cursor, limit);
        self.look_up(found.0.len());
        found
    }
    fn bucket(&self, bucket: BucketId) -> Option<Bucket> {
        self.rows.bucket(bucket)
    }
    fn bucket_count(&self) -> usize {
        self.rows.bucket_count()
    }
    fn counted_keys(&self) -> u64 {
        self.rows.counted_keys()
    }
}

impl PutRows for Counting {
    fn put_point(&mut self, table: PointTable, key: u64, value: Option<Value>) {
        self.changed += 1;
        self.rows.put_point(table, key, value);
    }
    fn put_member(&mut self, table: SetTable, owner: u64, item: u64, value: Option<u64>) {
        self.changed += 1;
        self.rows.put_member(table, owner, item, value);
    }
    fn put_name(&mut self, table: NameTable, key: &[u8], value: Option<Value>) {
        self.changed += 1;
        self.rows.put_name(table, key, value);
    }
}

impl RowsMut for Counting {
    fn put_totals(&mut self, totals: Totals) {
        self.rows.put_totals(totals);
    }
}

impl KeyRowsMut for Counting {
    fn put_key(&mut self, row: KeyRow) {
        self.changed += 1;
        self.rows.put_key(row);
    }
    fn put_bucket(&mut self, id: BucketId, bucket: Option<Bucket>) {
        self.changed += 1;
        self.rows.put_bucket(id, bucket);
    }
    fn save(&mut self) {
        self.rows.save();
    }
    fn keep(&mut self) {
        self.rows.keep();
    }
    fn undo(&mut self) {
        self.rows.undo();
    }
}

/// Lengths of the current values.
struct Now<'a>(&'a StoreWriter);

impl Lengths for Now<'_> {
    fn value_bytes(&self, bucket: BucketId, key: &[u8]) -> usize {
        let bucket = self.0.bucket(bucket);
        bucket.and_then(|bucket| self.0.key(bucket.space, key)).map_or(0, |row| row.value().len())
    }
}

struct World {
    _dir: tempfile::TempDir,
    counting: Counting,
    clock: StampClock,
    now_ms: u64,
    declared_bytes: usize,
    posts: Vec<PostId>,
    stories: Vec<StoryId>,
    samples: Vec<SampleId>,
}

impl World {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let options = StoreOptions { cache_bytes: 4 << 20, bucket_bytes: 1 << 20 };
        let (rows, _) = Store::open(dir.path(), options).unwrap();
        let counting = Counting {
            rows,
            changed: 0,
            looked_up: Cell::new(0),
            prefetched: RefCell::default(),
            unexpected: Cell::new(0),
        };
        Self {
            _dir: dir,
            counting,
            clock: StampClock::new(Stamp(0)),
            now_ms: EPOCH_MS + 86_400_000,
            declared_bytes: 0,
            posts: Vec::new(),
            stories: Vec::new(),
            samples: Vec::new(),
        }
    }

    /// Compares the declared cost with that of `act`.
    fn check(&mut self, what: &str, cost: Cost, act: impl FnOnce(&mut Self) -> (usize, usize)) {
        self.counting.changed = 0;
        self.counting.looked_up.set(0);
        let (copied, answer) = act(self);
        let (changed, looked_up) = (self.counting.changed, self.counting.looked_up.get());
        assert!(changed <= cost.rows, "{what}: {changed} rows changed, {} declared", cost.rows);
        let work = (changed + looked_up) * WORK_PER_ROW + copied;
        assert!(
            work <= cost.work,
            "{what}: {changed} rows changed and {looked_up} looked up, {copied} bytes copied, \
             {} of work declared",
            cost.work
        );
        assert!(answer <= cost.answer, "{what}: {answer} bytes kept, {} declared", cost.answer);
        self.declared_bytes += cost.bytes;
        let grown = self.counting.rows.overlay_bytes();
        let declared = self.declared_bytes;
        assert!(grown <= declared, "{what}: the overlay has {grown} bytes, {declared} declared");
    }

    fn request(&mut self, request: Request) {
        let (cost, what) = (request.cost(), format!("{request:?}"));
        // A group accepts its first command at any cost.
        assert!(cost.bytes <= CHANGE_BYTES_MAX, "{what}: {} bytes declared", cost.bytes);
        assert!(cost.rows <= CHANGE_ROWS_MAX, "{what}: {} rows declared", cost.rows);
        self.now_ms += 1;
        self.check(&what, cost, |world| {
            let stamp = world.clock.next(world.now_ms);
            let mut txn = Txn::new(&mut world.counting);
            let reply = apply(&mut txn, &request.stamped(stamp), &mut Vec::new());
            let work = txn.work();
            match reply.outcome {
                Ok(feed::Done::Posted(id)) => world.posts.push(id),
                Ok(feed::Done::StoryPosted { story, .. }) => world.stories.push(story),
                Ok(feed::Done::SampleAdded { sample }) => world.samples.push(sample),
                _ => {}
            }
            (work, 0)
        });
    }

    fn op(&mut self, op: KeyOp<'_>) {
        let cost = op.cost(&Now(&self.counting.rows));
        let what: String = format!("{op:?}").chars().take(300).collect();
        self.now_ms += 1;
        self.check(&what, cost, |world| {
            let ops: KeyOps = [op].into_iter().collect();
            let stamp = world.clock.next(world.now_ms);
            let mut txn = kv::Txn::new(&mut world.counting);
            let mut answers = Vec::new();
            kv::apply(&mut txn, stamp, &ops, &mut |_, _| (), &mut answers);
            let answer = match &answers[0] {
                KeyAnswer::Row(row) => row.memory_bytes(),
                _ => 0,
            };
            (txn.work(), answer)
        });
    }
}

#[derive(Clone, Debug)]
enum Step {
    Register(u8, usize),
    Edit(u8, usize),
    Follow(u8, u8, bool),
    FollowMany(u8, Vec<u8>),
    Befriend(u8, u8, bool),
    Block(u8, u8, bool),
    Mute(u8, u8, Option<u64>),
    Unmute(u8, u8),
    Post(u8, usize),
    Reply(u8, usize, usize),
    EditPost(usize, usize),
    DeletePost(usize),
    Publish(u8, usize, usize),
    React(u8, usize, u8, bool),
    DoDue(usize),
    Mark(u8, u64),
    Note(u8, u8, usize),
    List(u8, u8, usize),
    Filter(u8, u8, usize),
    Lock(u8, bool),
    Answer(u8, u8, bool),
    ClearNotifications(u8),
    Dismiss(u8, usize),
    Story(u8, usize),
    DeleteStory(usize),
    View(usize, u8),
    DeleteUser(u8),
    EraseUser,
    AddSample(u8, u8),
    Forget(usize),
    Put(u8, usize, bool, bool),
    PutAll(Vec<(u8, usize)>),
    Remove(Vec<u8>),
    Take(u8),
    Add(u8),
    AddFloat(u8),
    Append(u8, usize),
    SetRange(u8, usize, usize),
    SetBit(u8, usize),
    Expire(u8, u64, bool),
    Rename(u8, u8),
    Copy(u8, u8),
    Move(u8, u8),
    Flush(u8),
    FlushNumbered,
    Swap(u8, u8),
    Create(u8),
    Drop(u8),
    SweepKeys,
    Wait(u64),
    Idempotent(u8, u8),
    Poll(u8, usize, bool),
    Vote(u8, usize, usize),
    Schedule(u8, usize),
    Scheduled(u8, u8),
    FollowWith(u8, u8, Option<bool>, Option<bool>),
    MuteThread(u8, usize, bool),
    NotInterested(u8, u8, bool),
    SetFeed(u8, usize),
}

fn feed_step() -> impl Strategy<Value = Step> {
    let user = || 0..6_u8;
    prop_oneof![
        2 => (user(), 0..4_000_usize).prop_map(|(u, n)| Step::Register(u, n)),
        1 => (user(), 0..4_000_usize).prop_map(|(u, n)| Step::Edit(u, n)),
        2 => (user(), user(), any::<bool>()).prop_map(|(a, b, on)| Step::Follow(a, b, on)),
        1 => (user(), proptest::collection::vec(user(), 0..40))
            .prop_map(|(u, others)| Step::FollowMany(u, others)),
        2 => (user(), user(), any::<bool>()).prop_map(|(a, b, on)| Step::Befriend(a, b, on)),
        2 => (user(), user(), any::<bool>()).prop_map(|(a, b, on)| Step::Block(a, b, on)),
        2 => (user(), user(), proptest::option::of(1..9_u64)).prop_map(|(a, b, s)| Step::Mute(a, b, s)),
        1 => (user(), user()).prop_map(|(a, b)| Step::Unmute(a, b)),
        3 => (user(), 0..250_usize).prop_map(|(u, n)| Step::Post(u, n)),
        2 => (user(), 0..250_usize, any::<usize>()).prop_map(|(u, n, at)| Step::Reply(u, n, at)),
        2 => (any::<usize>(), 0..250_usize).prop_map(|(at, n)| Step::EditPost(at, n)),
        1 => any::<usize>().prop_map(Step::DeletePost),
        2 => (user(), 0..200_usize, 0..400_usize).prop_map(|(u, n, w)| Step::Publish(u, n, w)),
        6 => (user(), any::<usize>(), 0..5_u8, prop::bool::weighted(0.7))
            .prop_map(|(u, at, kind, on)| Step::React(u, at, kind, on)),
        9 => any::<usize>().prop_map(Step::DoDue),
        1 => (user(), any::<u64>()).prop_map(|(u, n)| Step::Mark(u, n)),
        1 => (user(), any::<bool>()).prop_map(|(u, on)| Step::Lock(u, on)),
        1 => (user(), user(), any::<bool>()).prop_map(|(a, b, yes)| Step::Answer(a, b, yes)),
        1 => (user(), user(), 0..2_000_usize).prop_map(|(a, b, n)| Step::Note(a, b, n / 9 * 9)),
        3 => (user(), 0..9_u8, any::<usize>()).prop_map(|(u, kind, at)| Step::List(u, kind, at)),
        2 => (user(), 0..9_u8, any::<usize>()).prop_map(|(u, kind, at)| Step::Filter(u, kind, at)),
        1 => user().prop_map(Step::ClearNotifications),
        1 => (user(), any::<usize>()).prop_map(|(u, at)| Step::Dismiss(u, at)),
        2 => (user(), 1..500_usize).prop_map(|(u, n)| Step::Story(u, n)),
        1 => any::<usize>().prop_map(Step::DeleteStory),
        2 => (any::<usize>(), user()).prop_map(|(at, u)| Step::View(at, u)),
        1 => user().prop_map(Step::DeleteUser),
        3 => Just(Step::EraseUser),
        2 => (0..20_u8, 0..3_u8).prop_map(|(set, label)| Step::AddSample(set, label)),
        1 => any::<usize>().prop_map(Step::Forget),
        2 => (user(), any::<u8>()).prop_map(|(u, key)| Step::Idempotent(u, key)),
        2 => (user(), 0..200_usize, any::<bool>()).prop_map(|(u, n, edits)| Step::Poll(u, n, edits)),
        4 => (user(), any::<usize>(), 0..3_usize).prop_map(|(u, at, n)| Step::Vote(u, at, n)),
        2 => (user(), 0..200_usize).prop_map(|(u, n)| Step::Schedule(u, n)),
        3 => (user(), 0..4_u8).prop_map(|(u, kind)| Step::Scheduled(u, kind)),
        1 => (300_000..400_000_u64).prop_map(Step::Wait),
        2 => (user(), user(), any::<Option<bool>>(), any::<Option<bool>>())
            .prop_map(|(a, b, boosts, notify)| Step::FollowWith(a, b, boosts, notify)),
        1 => (user(), any::<usize>(), any::<bool>()).prop_map(|(u, at, on)| Step::MuteThread(u, at, on)),
        1 => (user(), user(), any::<bool>()).prop_map(|(a, b, on)| Step::NotInterested(a, b, on)),
        1 => (0..40_u8, 0..=FEED_BYTES_MAX).prop_map(|(n, bytes)| Step::SetFeed(n, bytes)),
    ]
}

fn key_step() -> impl Strategy<Value = Step> {
    let key = || 0..6_u8;
    let length =
        || prop_oneof![3 => 0..100_usize, 1 => Just(70_000_usize), 1 => Just(300_000_usize)];
    prop_oneof![
        4 => (key(), length(), any::<bool>(), any::<bool>())
            .prop_map(|(k, n, expires, old)| Step::Put(k, n, expires, old)),
        1 => proptest::collection::vec((key(), length()), 1..5).prop_map(Step::PutAll),
        1 => proptest::collection::vec(key(), 1..5).prop_map(Step::Remove),
        1 => key().prop_map(Step::Take),
        1 => key().prop_map(Step::Add),
        1 => key().prop_map(Step::AddFloat),
        1 => (key(), length()).prop_map(|(k, n)| Step::Append(k, n)),
        1 => (key(), length(), length()).prop_map(|(k, at, n)| Step::SetRange(k, at, n)),
        1 => (key(), length()).prop_map(|(k, at)| Step::SetBit(k, at)),
        2 => (key(), 0..5_000_u64, any::<bool>()).prop_map(|(k, ms, r)| Step::Expire(k, ms, r)),
        1 => (key(), key()).prop_map(|(a, b)| Step::Rename(a, b)),
        1 => (key(), key()).prop_map(|(a, b)| Step::Copy(a, b)),
        1 => (key(), 0..3_u8).prop_map(|(k, b)| Step::Move(k, b)),
        1 => (0..3_u8).prop_map(Step::Flush),
        1 => Just(Step::FlushNumbered),
        1 => (0..3_u8, 0..3_u8).prop_map(|(a, b)| Step::Swap(a, b)),
        1 => (0..4_u8).prop_map(Step::Create),
        1 => (0..4_u8).prop_map(Step::Drop),
        2 => Just(Step::SweepKeys),
        1 => (0..4_000_u64).prop_map(Step::Wait),
    ]
}

fn user(number: u8) -> UserRef {
    if number.is_multiple_of(2) {
        UserRef::Id(UserId(number.into()))
    } else {
        UserRef::Handle(Handle::parse(&format!("u{number}")).unwrap())
    }
}

fn picked<T: Copy>(items: &[T], at: usize) -> Option<T> {
    items.get(at % items.len().max(1)).copied()
}

/// Returns a text with the maximum number of mentions, of users who exist and of others. A joiner is one character with
/// the letter before it.
fn mentioning(mentions: usize) -> PostText {
    let registered = ["@u1 @u3 @u5", "@u0 @u2", "@u1"][mentions % 3];
    // Hashtags have two letters of two bytes each, which have three bytes in lower case.
    let letters = ('\u{23a}', char::from_u32(0x100 + mentions as u32).unwrap_or('x'));
    let tag = |number: usize| format!(" #{}{}{number}", letters.0, letters.1);
    let tags: String = (0..mentions / 6).map(tag).collect();
    let text = "@a\u{200d}".repeat(mentions / (1 + mentions % 2)) + registered + &tags;
    PostText::parse(&text).or_else(|_| PostText::parse(registered)).unwrap()
}

/// Returns all scheduled work, except the removal of rows of deleted users.
fn due(world: &World) -> Vec<Due> {
    let due = Facts::new(&world.counting.rows).first_due(0, None, usize::MAX).into_iter();
    let due = due.take_while(|due| due.at_ms <= world.now_ms);
    due.filter(|due| !matches!(due.work, DueWork::Erase { .. })).collect()
}

/// Does all scheduled work. Returns the number of commands.
fn do_due(world: &mut World) -> usize {
    let mut commands = 0;
    while let Some(due) = due(world).first() {
        world.request(Request::from(Command::DoDue(*due)));
        commands += 1;
    }
    commands
}

/// Returns the next command that removes rows of a deleted user.
fn erasure(facts: Facts<'_, StoreWriter>) -> Option<Command> {
    let user = *facts.erasing().first()?;
    let mut phase = ErasurePhase::first();
    while phase != ErasurePhase::LAST {
        if let Some(from) = facts.items_in_phase(user, phase, 0, 1).first() {
            return Some(Command::EraseUser { user, phase, from: *from });
        }
        phase = phase.next();
    }
    Some(Command::EraseUser { user, phase, from: 0 })
}

fn poll_step(world: &World, step: &Step) -> Option<Command> {
    Some(match step {
        Step::Poll(u, mentions, edits) => {
            let post = picked(&world.posts, *mentions).filter(|_| *edits);
            poll_command(user(*u), mentioning(*mentions), post)
        }
        Step::Vote(u, at, options) => {
            let choices = PollChoices::new(0..=*options).unwrap();
            let (user, post) = (user(*u), picked(&world.posts, *at)?);
            Command::Vote { user, post, choices }
        }
        Step::Schedule(u, mentions) => {
            let parent = picked(&world.posts, *mentions).filter(|_| mentions % 2 == 0);
            let post = Draft { parent, ..Draft::new(user(*u), mentioning(*mentions)) };
            schedule_command(post, Vec::new(), world.now_ms)
        }
        Step::Scheduled(u, kind) => scheduled_command(world, *u, *kind)?,
        _ => return None,
    })
}

fn social_command(world: &World, step: &Step) -> Option<Command> {
    Some(match step {
        Step::Publish(u, mentions, warning) => {
            let mut draft = Draft::new(user(*u), mentioning(*mentions));
            draft.visibility = Visibility::ALL[warning % 4];
            draft.content.warning = Warning::parse(&"w".repeat(*warning)).unwrap();
            draft.content.language = Language::parse("deu").ok();
            Command::Publish(Box::new(draft))
        }
        Step::React(u, at, kind, on) => {
            let (post, reaction) = (picked(&world.posts, *at)?, Reaction::ALL[usize::from(*kind)]);
            Command::React { user: user(*u), post, reaction, on: *on }
        }
        Step::DoDue(at) => Command::DoDue(picked(&due(world), *at)?),
        Step::ClearNotifications(u) => Command::ClearNotifications { user: user(*u) },
        Step::Lock(u, locked) => Command::EditUser(Box::new(UserEdit {
            locked: Some(*locked),
            ..UserEdit::new(user(*u))
        })),
        Step::Answer(a, b, accept) => {
            Command::AnswerRequest { user: user(*a), other: user(*b), accept: *accept }
        }
        Step::Note(a, b, chars) => {
            let note = Note::parse(&"\u{1F600}".repeat(chars.saturating_sub(500))).unwrap();
            Command::SetNote { user: user(*a), other: user(*b), note }
        }
        Step::List(u, kind, at) => {
            let lists = Facts::new(&world.counting.rows).lists(UserId(u32::from(*u)));
            let list = picked(&lists, *at).unwrap_or(ListId(7));
            let title = ListTitle::parse(&"\u{4e00}".repeat(255)).unwrap();
            let users = vec![UserId((at % 6) as u32)];
            let change = match kind {
                0 | 1 => ListChange::Create(List { title, replies: ListReplies::List }),
                2 => ListChange::Edit { list, title: Some(title), replies: None },
                3 => ListChange::Delete { list },
                4 => ListChange::Remove { list, users },
                _ => ListChange::Add { list, users },
            };
            Command::List(Box::new(ListCommand { user: user(*u), change }))
        }
        Step::Filter(u, kind, at) => filter_command(world, *u, *kind, *at)?,
        Step::Mark(u, last_read) => {
            let markers = Facts::new(&world.counting.rows).markers(UserId(u32::from(*u)));
            let update = |marker: Option<Marker>| {
                let replaces = marker.map(|marker| marker.version);
                Some(MarkerUpdate { last_read: *last_read, replaces })
            };
            Command::SetMarkers(Box::new(MarkersUpdate {
                user: user(*u),
                home: update(markers.home),
                notifications: update(markers.notifications),
            }))
        }
        Step::Dismiss(u, at) => {
            let notification = NotificationId(picked(&world.posts, *at)?.0);
            Command::DismissNotification { user: user(*u), notification }
        }
        step => return choice_step(world, step),
    })
}

fn choice_step(world: &World, step: &Step) -> Option<Command> {
    Some(match step {
        Step::FollowWith(a, b, boosts, notify) => {
            let (user, other, boosts, notify) = (user(*a), user(*b), *boosts, *notify);
            Command::FollowWith(Box::new(FollowWith { user, other, boosts, notify }))
        }
        Step::SetFeed(n, bytes) => {
            let definition = FeedDefinition::parse(&"x".repeat(*bytes)).ok();
            let name = FeedName::parse(&format!("{}{n}", "f".repeat(30))).unwrap();
            Command::SetFeed { name, definition: definition.filter(|_| n % 4 > 0) }
        }
        Step::NotInterested(a, b, on) => {
            Command::NotInterested { user: user(*a), other: user(*b), on: *on }
        }
        Step::MuteThread(u, at, on) => {
            Command::MuteThread { user: user(*u), post: picked(&world.posts, *at)?, on: *on }
        }
        step => return poll_step(world, step),
    })
}

fn feed_command(world: &World, step: &Step) -> Option<Command> {
    Some(match step {
        Step::Register(u, bio) => Command::Register {
            handle: Handle::parse(&format!("u{u}")).unwrap(),
            name: Name::parse("a name").unwrap(),
            bio: Bio::parse(&"é".repeat(bio / 8)).unwrap(),
        },
        Step::Edit(u, bio) => {
            let bio = Bio::parse(&"b".repeat(bio / 8)).unwrap();
            let field = "\u{4e00}".repeat(255);
            let fields = [(&*field, &*field); PROFILE_FIELDS_MAX];
            Command::EditUser(Box::new(UserEdit {
                bio: Some(bio),
                fields: ProfileFields::parse(fields).ok(),
                language: Some(Language::parse("deu").ok()),
                ..UserEdit::new(user(*u))
            }))
        }
        Step::Follow(a, b, true) => Command::Follow { user: user(*a), other: user(*b) },
        Step::FollowMany(u, others) => {
            let others = others.iter().map(|other| user(*other)).collect();
            Command::FollowMany { user: user(*u), others }
        }
        Step::Follow(a, b, false) => Command::Unfollow { user: user(*a), other: user(*b) },
        Step::Befriend(a, b, true) => Command::Befriend { user: user(*a), other: user(*b) },
        Step::Befriend(a, b, false) => Command::Unfriend { user: user(*a), other: user(*b) },
        Step::Block(a, b, true) => Command::Block { user: user(*a), other: user(*b) },
        Step::Block(a, b, false) => Command::Unblock { user: user(*a), other: user(*b) },
        Step::Mute(a, b, secs) => {
            let time = secs.map(|secs| MuteTime::from_secs(secs).unwrap());
            Command::Mute { user: user(*a), other: user(*b), mentions: true, time }
        }
        Step::Unmute(a, b) => Command::Unmute { user: user(*a), other: user(*b) },
        Step::Post(u, mentions) => Command::post(user(*u), mentioning(*mentions)),
        Step::Reply(u, mentions, at) => {
            let (author, parent) = (user(*u), picked(&world.posts, *at)?);
            Command::Publish(Box::new(Draft {
                parent: Some(parent),
                quote: picked(&world.posts, *at / 2),
                ..Draft::new(author, mentioning(*mentions))
            }))
        }
        Step::EditPost(at, mentions) => {
            let revoke_quote = mentions % 2 == 0;
            let patch = Patch { revoke_quote, ..Patch::of_text(mentioning(*mentions)) };
            Command::edit(picked(&world.posts, *at)?, patch)
        }
        Step::DeletePost(at) => Command::DeletePost { post: picked(&world.posts, *at)? },
        Step::Story(u, n) => Command::PostStory {
            author: user(*u),
            text: PostText::parse(&"s".repeat(*n)).unwrap(),
            life: Lifetime::from_secs(1).unwrap(),
        },
        Step::DeleteStory(at) => Command::DeleteStory { story: picked(&world.stories, *at)? },
        Step::View(at, u) => {
            Command::ViewStory { story: picked(&world.stories, *at)?, viewer: user(*u) }
        }
        Step::DeleteUser(u) => Command::DeleteUser { user: user(*u) },
        Step::EraseUser => erasure(Facts::new(&world.counting.rows))?,
        Step::AddSample(set, label) => Command::AddSample {
            set: SetName::parse(&format!("set{}", usize::from(*set) % (SAMPLE_SETS_MAX + 2)))
                .unwrap(),
            label: Label::parse(&label.to_string()).unwrap(),
            bits: Box::new(SampleBits::from([*label; 128])),
        },
        Step::Forget(at) => Command::DeleteSample { sample: picked(&world.samples, *at)? },
        step => return social_command(world, step),
    })
}

/// Adds a condition that holds to a command that changes a post or a user.
fn conditional(world: &World, command: Command) -> Command {
    let facts = Facts::new(&world.counting.rows);
    let of_post = |post| (facts.post(post).map(|post| post.author), facts.post_revision(post));
    let ((author, revision), change) = match command {
        Command::Edit { post, patch } => (of_post(post), Conditional::Edit { post, patch }),
        Command::DeletePost { post } => (of_post(post), Conditional::DeletePost { post }),
        Command::EditUser(edit) => {
            let user = facts.resolve(&edit.user);
            let revision = user.and_then(|user| facts.user_revision(user));
            ((None, revision), Conditional::EditUser(edit))
        }
        command => return command,
    };
    let handle = author.and_then(|author| facts.user(author)).map(|author| author.handle);
    let (author, revisions) =
        (handle.map(UserRef::Handle), revision.map(|revision| vec![revision]));
    Command::If(Box::new(Condition { author, revisions, change }))
}

fn take(world: &mut World, step: &Step, zeros: &[u8]) {
    match step {
        Step::Wait(ms) => world.now_ms += ms,
        Step::Idempotent(u, key) => {
            let idempotency = Some(Idempotency { key: [*key; 16], content: [*u; 8] });
            let (text, author) = (PostText::parse("once").unwrap(), user(*u));
            let command = Command::post(author, text);
            world.now_ms += 20_000_000;
            world.request(Request { idempotency, command });
        }
        step => match feed_command(world, step) {
            Some(command) => world.request(Request::from(conditional(world, command))),
            None => take_op(world, step, zeros),
        },
    }
}

fn take_op(world: &mut World, step: &Step, zeros: &[u8]) {
    const ZERO: BucketId = BucketId(0);
    let names: Vec<String> =
        (0..6).map(|key| format!("key{key}{}", "x".repeat(key * key * 1_000))).collect();
    let key = |at: &u8| Bytes::new(names[usize::from(*at)].as_bytes());
    let value = |length: &usize| Bytes::new(&zeros[..*length]);
    let bucket = |at: &u8| BucketId(u64::from(*at));
    let name = |at: &u8| BucketName::parse(&format!("bucket{at}")).unwrap();
    let op = match step {
        Step::Put(k, n, expires, old) => KeyOp::Put {
            bucket: ZERO,
            key: key(k),
            value: value(n),
            expiry: if *expires { Expiry::In(1_500) } else { Expiry::Keep },
            only: Only::Always,
            old: *old,
        },
        Step::PutAll(pairs) => {
            let pairs = pairs.iter().map(|(k, n)| (key(k), value(n))).collect();
            KeyOp::PutAll { bucket: ZERO, pairs, only_new: false }
        }
        Step::Remove(keys) => KeyOp::Remove { bucket: ZERO, keys: keys.iter().map(key).collect() },
        Step::Take(k) => KeyOp::Take { bucket: ZERO, key: key(k), only: Only::Always },
        Step::Add(k) => KeyOp::Add { bucket: ZERO, key: key(k), by: i64::MAX / 3 },
        Step::AddFloat(k) => {
            KeyOp::AddFloat { bucket: ZERO, key: key(k), by: Bytes::new(b"1.7e308") }
        }
        Step::Append(k, n) => KeyOp::Append { bucket: ZERO, key: key(k), bytes: value(n) },
        Step::SetRange(k, at, n) => {
            KeyOp::SetRange { bucket: ZERO, key: key(k), offset: *at as u64, bytes: value(n) }
        }
        Step::SetBit(k, at) => {
            KeyOp::SetBit { bucket: ZERO, key: key(k), offset: 8 * *at as u64, bit: true }
        }
        Step::Expire(k, ms, read) => KeyOp::Expire {
            bucket: ZERO,
            key: key(k),
            expiry: Expiry::In(*ms),
            only: OnlyExpiry::Always,
            read: *read,
        },
        Step::Rename(a, b) => {
            KeyOp::Rename { bucket: ZERO, from: key(a), to: key(b), only_new: true }
        }
        Step::Copy(a, b) => {
            let (key, to) = (key(a), key(b));
            KeyOp::Copy { bucket: ZERO, key, to_bucket: ZERO, to, replace: true }
        }
        Step::Move(k, to) => KeyOp::Move { bucket: ZERO, key: key(k), to_bucket: bucket(to) },
        Step::Flush(b) => KeyOp::Flush { bucket: bucket(b) },
        Step::FlushNumbered => KeyOp::FlushNumbered,
        Step::Swap(a, b) => KeyOp::Swap { a: bucket(a), b: bucket(b) },
        Step::Create(b) => KeyOp::Create { name: name(b) },
        Step::Drop(b) => KeyOp::Drop { name: name(b) },
        Step::SweepKeys => KeyOp::Sweep,
        _ => return,
    };
    world.op(op);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn no_command_costs_more_than_it_was_costed_at(
        steps in proptest::collection::vec(prop_oneof![feed_step(), key_step()], 1..150)
    ) {
        let zeros = vec![0; 300_000];
        let mut world = World::new();
        for step in &steps {
            take(&mut world, step, &zeros);
        }
        let facts = Facts::new(&world.counting.rows);
        prop_assert!(facts.totals().last_stamp <= Some(Stamp::first_of(world.now_ms + 1_000)));
    }
}

/// An idempotency key that is stored removes old ones.
#[test]
fn idempotency_costs_no_more_than_it_was_costed_at() {
    let mut world = World::new();
    take(&mut world, &Step::Register(0, 0), &[]);
    for key in 0..30 {
        take(&mut world, &Step::Idempotent(0, key), &[]);
        take(&mut world, &Step::Idempotent(0, key), &[]);
    }
}

/// Random steps do not reach the limits of sweeps.
#[test]
fn sweeps_cost_no_more_than_they_were_costed_at() {
    let mut world = World::new();
    let names: Vec<String> = (0..1_500).map(|number| format!("{number:0>2000}")).collect();
    for name in &names {
        world.op(KeyOp::Put {
            bucket: BucketId(0),
            key: Bytes::new(name.as_bytes()),
            value: Bytes::new(b"v"),
            expiry: Expiry::In(60_000),
            only: Only::Always,
            old: false,
        });
    }
    for user in 0..40 {
        let handle = Handle::parse(&format!("w{user}")).unwrap();
        let (name, bio) = (Name::parse("").unwrap(), Bio::parse("").unwrap());
        world.request(Request::from(Command::Register { handle, name, bio }));
        if user > 0 {
            let (user, other) = (UserRef::Id(UserId(user)), UserRef::Id(UserId(0)));
            world.request(Request::from(Command::Befriend { user, other }));
        }
    }
    for _ in 0..20 {
        take(&mut world, &Step::Story(0, 100), &[]);
        let story = world.stories[world.stories.len() - 1];
        for viewer in 1..40 {
            let viewer = UserRef::Id(UserId(viewer));
            world.request(Request::from(Command::ViewStory { story, viewer }));
        }
    }
    world.now_ms += 5_000_000;
    for _ in 0..8 {
        world.op(KeyOp::Sweep);
    }
    assert_eq!(do_due(&mut world), 20);
    assert_eq!(world.counting.rows.totals().keys_expiring, 0);
    assert_eq!(world.counting.rows.totals().stories, 0);
}

/// Random steps do not reach the limits of deletions of users.
#[test]
fn deletions_cost_no_more_than_they_were_costed_at() {
    let mut world = World::new();
    let others = 600;
    for user in 0..=others {
        let handle = Handle::parse(&format!("w{user}")).unwrap();
        let (name, bio) = (Name::parse("").unwrap(), Bio::parse("").unwrap());
        world.request(Request::from(Command::Register { handle, name, bio }));
    }
    let id = |user| UserRef::Id(UserId(user));
    let note = Note::parse("a note").unwrap();
    for other in 1..=others {
        for command in [
            Command::Follow { user: id(0), other: id(other) },
            Command::Follow { user: id(other), other: id(0) },
            Command::Befriend { user: id(0), other: id(other) },
            Command::post(id(other), PostText::parse("@w0").unwrap()),
            Command::SetNote { user: id(0), other: id(other), note: note.clone() },
            Command::SetNote { user: id(other), other: id(0), note: note.clone() },
        ] {
            world.request(Request::from(command));
        }
    }
    let mentions: String = (1..120).map(|user| format!("@w{user} ")).collect();
    let life = Lifetime::from_secs(3_600).unwrap();
    for n in 0..250_u32 {
        let text = if n.is_multiple_of(7) { mentions.as_str() } else { "hi" };
        let text = PostText::parse(&text.chars().take(499).collect::<String>()).unwrap();
        world.request(Request::from(Command::post(id(0), text.clone())));
        world.request(Request::from(Command::PostStory { author: id(0), text, life }));
        let author = id(1 + n);
        let text = PostText::parse("seen").unwrap();
        world.request(Request::from(Command::PostStory { author, text, life }));
        let story = world.stories[world.stories.len() - 1];
        world.request(Request::from(Command::ViewStory { story, viewer: id(0) }));
    }
    // Delete this user last, when most of the others are not erased yet.
    for user in (0..ERASING_USERS_MAX).rev() {
        world.request(Request::from(Command::DeleteUser { user: id(user) }));
    }
    assert_eq!(world.counting.rows.totals().users_erasing, ERASING_USERS_MAX);
    let mut commands = 0;
    while let Some(command) = erasure(Facts::new(&world.counting.rows)) {
        world.request(Request::from(command));
        commands += 1;
        assert!(commands < 1_000, "it ends");
    }
    let facts = Facts::new(&world.counting.rows);
    let totals = facts.totals();
    assert_eq!((totals.users_erasing, totals.follows, totals.friendships), (0, 0, 0));
    assert!(facts.users_in(SetTable::Followers, UserId(599), Span::ALL).is_empty());
}

fn filter_command(world: &World, u: u8, kind: u8, at: usize) -> Option<Command> {
    let filters = Facts::new(&world.counting.rows).filters(UserId(u32::from(u)));
    let filter = filters.last().map_or(FilterId(7), |filter| filter.id);
    let change = match kind {
        0 => FilterChange::Create(new_filter(at % 40)),
        1 => FilterChange::Delete { filter },
        2 | 3 => FilterChange::AddPost { filter, post: picked(&world.posts, at)? },
        4 => {
            let title = Some(filter_text());
            FilterChange::Edit(FilterEdit { title, ..FilterEdit::new(filter) })
        }
        _ => FilterChange::AddKeyword { filter, keyword: keyword() },
    };
    Some(Command::Filter(Box::new(FilterCommand {
        user: UserRef::Id(UserId(u32::from(u))),
        change,
    })))
}

/// Returns a filter text of maximum length.
fn filter_text() -> FilterText {
    FilterText::parse(&"\u{1F600}".repeat(FILTER_TEXT_CHARS_MAX)).unwrap()
}

fn keyword() -> Keyword {
    Keyword { text: filter_text(), whole_word: true }
}

fn new_filter(keywords: usize) -> NewFilter {
    NewFilter {
        title: filter_text(),
        contexts: FilterContexts::new(FilterContext::ALL).unwrap(),
        action: FilterAction::Hide,
        expires: FilterTime::from_secs(FILTER_SECS_MAX).ok(),
        keywords: vec![keyword(); keywords],
    }
}

/// Returns a poll whose options have maximum length.
fn longest_poll(time: u64) -> NewPoll {
    let long = |letter: &str| letter.to_owned() + &"\u{1F600}".repeat(POLL_OPTION_CHARS_MAX - 1);
    let options = ["a", "b", "c", "d"].map(long);
    NewPoll {
        options: PollOptions::parse(options.iter().map(String::as_str)).unwrap(),
        multiple: true,
        hide_totals: true,
        time: PollTime::from_secs(time).unwrap(),
    }
}

/// Publishes a post with a poll, or adds a poll to a post.
fn poll_command(author: UserRef, text: PostText, post: Option<PostId>) -> Command {
    let poll = longest_poll(POLL_SECS_MIN);
    match post {
        Some(post) => {
            // Every second poll allows several choices.
            let poll = NewPoll { multiple: post.0 % 2 == 0, ..poll };
            Command::edit(post, Patch { poll: Some(Some(poll)), ..Patch::of_text(text) })
        }
        None => {
            let poll = Some(poll);
            Command::Publish(Box::new(Draft { poll, ..Draft::new(author, text) }))
        }
    }
}

fn schedule_command(draft: Draft, media: Vec<MediaId>, now_ms: u64) -> Command {
    let poll = media.is_empty().then(|| longest_poll(POLL_SECS_MIN));
    let due_ms = now_ms + SCHEDULED_MS_MIN + 10;
    let draft = Draft { content: Content { media, ..draft.content }, poll, ..draft };
    let new = ScheduledPost { draft, due_ms };
    Command::Schedule(ScheduleCommand::Create(Box::new(new)))
}

/// Moves, cancels or publishes the first scheduled post of a user.
fn scheduled_command(world: &World, u: u8, kind: u8) -> Option<Command> {
    let facts = Facts::new(&world.counting.rows);
    let owner = UserId(u.into());
    let id = *facts.scheduled_of(owner, ScheduledId(0), 1).first()?;
    let user = UserRef::Id(owner);
    Some(Command::Schedule(match kind {
        0 => ScheduleCommand::Move { user, id, due_ms: world.now_ms + SCHEDULED_MS_MIN + 10 },
        _ => ScheduleCommand::Cancel { user, id },
    }))
}

/// Random steps do not reach the limits of polls: as many voters as one command can notify, with full inboxes, and more
/// votes than one command can remove.
#[test]
fn polls_with_many_voters_cost_no_more_than_they_were_costed_at() {
    let mut world = World::new();
    let voters = ERASE_ROWS_MAX as u32 / 2 + 10;
    for user in 0..=voters {
        let handle = Handle::parse(&format!("w{user}")).unwrap();
        let (name, bio) = (Name::parse("").unwrap(), Bio::parse("").unwrap());
        world.request(Request::from(Command::Register { handle, name, bio }));
    }
    let id = |user| UserRef::Id(UserId(user));
    // The block makes each look-up check blocks, mutes and follows.
    world.request(Request::from(Command::Block { user: id(0), other: id(voters) }));
    for user in 1..voters {
        world.request(Request::from(Command::Follow { user: id(user), other: id(0) }));
        world.request(Request::from(Command::Block { user: id(user), other: id(voters) }));
        let (other, time) = (id(voters), None);
        let mute = Command::Mute { user: id(user), other, mentions: true, time };
        world.request(Request::from(mute));
    }
    world.request(Request::from(Command::DeleteUser { user: id(voters) }));
    let mut new = Draft::new(id(0), mentioning(80));
    new.visibility = Visibility::Followers;
    new.poll = Some(longest_poll(POLL_SECS_MIN));
    for _ in 0..4 {
        world.request(Request::from(Command::Publish(Box::new(new.clone()))));
    }
    for post in world.posts.clone() {
        for user in 1..voters {
            let choices = PollChoices::new(0..4).unwrap();
            world.request(Request::from(Command::Vote { user: id(user), post, choices }));
        }
    }
    let first = world.posts[0];
    let counts = Facts::new(&world.counting.rows).poll_counts(PollId(first.0));
    assert_eq!(counts.voters, voters - 1);
    world.now_ms += 400_000;
    let ends = do_due(&mut world);
    assert!(ends > 4 * 4, "{ends}");
    world.request(Request::from(poll_command(id(0), mentioning(70), Some(first))));
    world.request(Request::from(Command::DeletePost { post: world.posts[1] }));
    let sweeps = do_due(&mut world);
    assert!(sweeps >= 2, "{sweeps}");
    world.request(Request::from(Command::DeleteUser { user: id(1) }));
    while let Some(command) = erasure(Facts::new(&world.counting.rows)) {
        world.request(Request::from(command));
    }
}

/// There are as many scheduled posts as allowed, some of maximum length and some with pictures.
#[test]
fn scheduled_posts_cost_no_more_than_they_were_costed_at() {
    let mut pictures = Pictures { world: World::new(), added: 0 };
    for user in 0..40 {
        let handle = Handle::parse(&format!("{user}{}", "w".repeat(28))).unwrap();
        let (name, bio) = (Name::parse("").unwrap(), Bio::parse("").unwrap());
        pictures.world.request(Request::from(Command::Register { handle, name, bio }));
    }
    let user = UserRef::Id(UserId(0));
    pictures.world.request(Request::from(Command::post(user.clone(), mentioning(9))));
    let mut post = Draft::new(user.clone(), mentioning(80));
    post.parent = pictures.world.posts.first().copied();
    post.content.warning = Warning::parse(&"\u{1F600}".repeat(500)).unwrap();
    for number in 0..=SCHEDULED_MAX {
        let media = if number < 3 { (0..4).map(|_| pictures.add(None)).collect() } else { vec![] };
        let now_ms = pictures.world.now_ms;
        pictures.world.request(Request::from(schedule_command(post.clone(), media, now_ms)));
    }
    let all =
        Facts::new(&pictures.world.counting.rows).scheduled_of(UserId(0), ScheduledId(0), 999);
    assert_eq!(all.len(), SCHEDULED_MAX);
    let run = |pictures: &mut Pictures, command| {
        pictures.world.request(Request::from(Command::Schedule(command)));
    };
    let due_ms = pictures.world.now_ms + 2 * SCHEDULED_MS_MIN;
    for id in [all[0], all[5]] {
        run(&mut pictures, ScheduleCommand::Move { user: user.clone(), id, due_ms });
    }
    for id in [all[1], all[6]] {
        run(&mut pictures, ScheduleCommand::Cancel { user: user.clone(), id });
    }
    pictures.world.now_ms += 3 * SCHEDULED_MS_MIN;
    for id in [all[0], all[2], all[7]] {
        let post = Facts::new(&pictures.world.counting.rows).scheduled(UserId(0), id).unwrap();
        let due = DueWork::Publish { user: UserId(0), id }.at(post.due_ms);
        pictures.world.request(Request::from(Command::DoDue(due)));
    }
    assert_eq!(Facts::new(&pictures.world.counting.rows).stored_counts(UserId(0)).posts, 4);
    pictures.world.request(Request::from(Command::DeleteUser { user }));
    while let Some(command) = erasure(Facts::new(&pictures.world.counting.rows)) {
        pictures.world.request(Request::from(command));
    }
    for table in [NameTable::Scheduled, NameTable::Media] {
        assert_eq!(pictures.world.counting.rows.first_name(table, &[]), None, "{table:?}");
    }
}

/// Random steps do not reach the limits of filters.
#[test]
fn full_filters_cost_no_more_than_they_were_costed_at() {
    let mut world = World::new();
    for user in 0..2 {
        let handle = Handle::parse(&format!("w{user}")).unwrap();
        let (name, bio) = (Name::parse("").unwrap(), Bio::parse("").unwrap());
        world.request(Request::from(Command::Register { handle, name, bio }));
    }
    let id = |user| UserRef::Id(UserId(user));
    let change = |change| Command::Filter(Box::new(FilterCommand { user: id(0), change }));
    for number in 0..FILTERS_MAX {
        let keywords = if number == 0 { FILTER_KEYWORDS_MAX } else { 0 };
        world.request(Request::from(change(FilterChange::Create(new_filter(keywords)))));
    }
    let filter = Facts::new(&world.counting.rows).filters(UserId(0))[0].id;
    for _ in 0..=FILTERED_POSTS_MAX {
        let text = PostText::parse(&"\u{1F600}".repeat(500)).unwrap();
        world.request(Request::from(Command::post(id(1), text)));
    }
    for post in world.posts.clone() {
        world.request(Request::from(change(FilterChange::AddPost { filter, post })));
    }
    let filters = Facts::new(&world.counting.rows).filters(UserId(0));
    assert_eq!((filters.len(), filters[0].posts.len()), (FILTERS_MAX, FILTERED_POSTS_MAX));
    let row = world.counting.rows.name(NameTable::Filters, &[0; 4]).unwrap();
    assert!(
        row.len() <= FILTERS_BYTES_MAX && row.len() * 5 > FILTERS_BYTES_MAX * 4,
        "{}",
        row.len()
    );
    let keyword = filters[0].keywords[0].id;
    let changes = vec![KeywordChange::Remove { keyword }, KeywordChange::Add(self::keyword())];
    let edit = FilterEdit { keywords: changes, ..FilterEdit::new(filter) };
    world.request(Request::from(change(FilterChange::Edit(edit))));
    world.request(Request::from(Command::DeleteUser { user: id(0) }));
    while let Some(command) = erasure(Facts::new(&world.counting.rows)) {
        world.request(Request::from(command));
    }
    assert_eq!(world.counting.rows.first_name(NameTable::Filters, &[]), None);
}

/// A post has as many earlier versions as allowed, and a user has marked as many conversations as allowed.
#[test]
fn full_histories_and_conversations_cost_no_more_than_they_were_costed_at() {
    let mut world = World::new();
    let (handle, name) = (Handle::parse("ann").unwrap(), Name::parse("").unwrap());
    let bio = Bio::parse("").unwrap();
    world.request(Request::from(Command::Register { handle, name, bio }));
    let author = UserRef::Id(UserId(0));
    let text = |number: usize| {
        let long = "\u{1F469}\u{200D}\u{1F680}".repeat(490);
        PostText::parse(&format!("{number} {long}")).unwrap()
    };
    world.request(Request::from(Command::post(author.clone(), text(0))));
    let post = world.posts[0];
    for number in 0..20 {
        let warning = Some(Warning::parse(text(number).as_str()).unwrap());
        let patch = Patch { warning, ..Patch::of_text(text(number)) };
        world.request(Request::from(Command::edit(post, patch)));
    }
    let row = world.counting.rows.name(NameTable::PostVersions, &post.0.to_be_bytes()).unwrap();
    assert!(row.len() * 5 > VERSIONS_BYTES_MAX * 3, "{}", row.len());
    for number in 0..CONVERSATION_MARKS_MAX as u64 + 3 {
        let (first, read) = (PostId(u64::MAX >> 1), PostId((u64::MAX >> 1) - number));
        let first = PostId(first.0 - 2 * number);
        let mark = ConversationMark { first, read, is_removed: true };
        let update = ConversationUpdate { user: author.clone(), mark };
        world.request(Request::from(Command::Conversation(Box::new(update))));
    }
    for number in 0..3 {
        let first = PostId((u64::MAX >> 1) - 2 * number);
        let (user, last) = (author.clone(), PostId(u64::MAX >> 1));
        world.request(Request::from(Command::UnreadConversation { user, first, last }));
    }
    let row = world.counting.rows.name(NameTable::Conversations, &[0; 4]).unwrap();
    assert!(row.len() * 5 > CONVERSATIONS_BYTES_MAX * 3, "{}", row.len());
    world.request(Request::from(Command::DeletePost { post }));
    assert_eq!(world.counting.rows.first_name(NameTable::PostVersions, &[]), None);
}

/// The maximum number of follow options and muted threads, and edits of a post that many users boosted.
#[test]
fn full_follow_options_muted_threads_and_edit_notices_cost_no_more_than_they_were_costed_at() {
    let mut world = World::new();
    let id = |user| UserRef::Id(UserId(user));
    for user in 0..FOLLOW_OPTIONS_MAX as u32 + 2 {
        let handle = Handle::parse(&format!("w{user}")).unwrap();
        let (name, bio) = (Name::parse("").unwrap(), Bio::parse("").unwrap());
        world.request(Request::from(Command::Register { handle, name, bio }));
    }
    let with = |user, other, notify| {
        let (user, other) = (id(user), id(other));
        let with = FollowWith { user, other, boosts: Some(false), notify: Some(notify) };
        Request::from(Command::FollowWith(Box::new(with)))
    };
    for other in 1..FOLLOW_OPTIONS_MAX as u32 + 2 {
        world.request(with(0, other, other as usize <= NOTIFYING_MAX));
    }
    let row = world.counting.rows.name(NameTable::FollowOptions, &[0; 4]).unwrap();
    assert!(row.len() * 2 > FOLLOW_OPTIONS_BYTES_MAX, "{}", row.len());
    world.request(Request::from(Command::Unfollow { user: id(0), other: id(1) }));
    world.request(with(0, 1, true));
    world.request(Request::from(Command::Block { user: id(0), other: id(2) }));
    for number in 0..MUTED_THREADS_MAX + 2 {
        let author = id(1);
        world.request(Request::from(Command::post(author, mentioning(1))));
        let post = world.posts[number];
        world.request(Request::from(Command::MuteThread { user: id(0), post, on: true }));
    }
    let row = world.counting.rows.name(NameTable::MutedThreads, &[0; 4]).unwrap();
    assert!(row.len() * 5 > MUTED_THREADS_BYTES_MAX * 3, "{}", row.len());
    let post = world.posts[0];
    // The deletion makes each look-up of a user check whether the user is deleted.
    world.request(Request::from(Command::DeleteUser { user: id(2) }));
    for user in 3..EDIT_NOTICES_MAX as u32 + 9 {
        // Each user has notifications that will be replaced, and may hide somebody.
        for other in [1, 4] {
            world.request(Request::from(Command::Follow { user: id(other), other: id(user) }));
        }
        world.request(Request::from(Command::ClearNotifications { user: id(user) }));
        // These users are blocked and block nobody, so both directions are looked up.
        let (blocker, blocked) = (id(EDIT_NOTICES_MAX as u32 + 20), id(user));
        world.request(Request::from(Command::Block { user: blocker, other: blocked }));
        let (other, time) = (id(5), None);
        let mute = Command::Mute { user: id(user), other, mentions: true, time };
        world.request(Request::from(mute));
        let (user, reaction) = (id(user), Reaction::Boost);
        world.request(Request::from(Command::React { user, post, reaction, on: true }));
    }
    for number in 0..3 {
        world.now_ms += EDIT_NOTICES_QUIET_MS;
        let text = PostText::parse(&format!("edit {number}")).unwrap();
        world.request(Request::from(Command::edit(post, Patch::of_text(text))));
        assert!(do_due(&mut world) > 1);
    }
    // Users who follow the deleted user, or have asked to, have options for many follows.
    for user in 10..40 {
        for other in (1..FOLLOW_OPTIONS_MAX as u32).filter(|other| *other != user) {
            let with =
                FollowWith { user: id(user), other: id(other), boosts: Some(false), notify: None };
            world.request(Request::from(Command::FollowWith(Box::new(with))));
        }
    }
    world.request(Request::from(Command::DeleteUser { user: id(1) }));
    while let Some(command) = erasure(Facts::new(&world.counting.rows)) {
        world.request(Request::from(command));
    }
    assert!(Facts::new(&world.counting.rows).all_follow_options(UserId(10)).len() > 400);
}

/// One command follows as many users as allowed. Some are locked, and some were locked when the user asked to follow
/// them.
#[test]
fn following_many_costs_no_more_than_it_was_costed_at() {
    let mut world = World::new();
    let id = |user| UserRef::Id(UserId(user));
    let lock = |user, locked| {
        let edit = UserEdit { locked: Some(locked), ..UserEdit::new(id(user)) };
        Request::from(Command::EditUser(Box::new(edit)))
    };
    let handle = |user| Handle::parse(&format!("{user:0>30}")).unwrap();
    for user in 0..=FOLLOW_MANY_MAX as u32 {
        let (name, bio) = (Name::parse("").unwrap(), Bio::parse("").unwrap());
        world.request(Request::from(Command::Register { handle: handle(user), name, bio }));
    }
    let others = 1..=FOLLOW_MANY_MAX as u32;
    for other in others.clone().filter(|other| other % 3 > 0) {
        world.request(lock(other, true));
    }
    for other in others.clone().filter(|other| other % 3 == 1) {
        world.request(Request::from(Command::Follow { user: id(0), other: id(other) }));
        world.request(lock(other, false));
    }
    let all = others.map(|other| UserRef::Handle(handle(other))).collect();
    world.request(Request::from(Command::FollowMany { user: id(0), others: all }));
    let counts = Facts::new(&world.counting.rows).stored_counts(UserId(0));
    let most = FOLLOW_MANY_MAX as u32;
    assert_eq!((counts.following + counts.requested, counts.requested), (most, most / 3));
}

/// Random steps do not reach the limits of lists.
#[test]
fn full_lists_cost_no_more_than_they_were_costed_at() {
    let mut world = World::new();
    for user in 0..=LIST_MEMBERS_MAX {
        let handle = Handle::parse(&format!("w{user}")).unwrap();
        let (name, bio) = (Name::parse("").unwrap(), Bio::parse("").unwrap());
        world.request(Request::from(Command::Register { handle, name, bio }));
    }
    let id = |user| UserRef::Id(UserId(user));
    let all: Vec<UserId> = (1..=LIST_MEMBERS_MAX as u32).map(UserId).collect();
    let change = |change| Command::List(Box::new(ListCommand { user: id(0), change }));
    let mut lists = Vec::new();
    for other in &all {
        world.request(Request::from(Command::Follow { user: id(0), other: id(other.0) }));
    }
    for number in 0..=LISTS_MAX {
        let title = ListTitle::parse(&"\u{4e00}".repeat(255)).unwrap();
        let create = ListChange::Create(List { title, replies: ListReplies::None });
        world.request(Request::from(change(create)));
        lists = Facts::new(&world.counting.rows).lists(UserId(0));
        assert_eq!(lists.len(), (number + 1).min(LISTS_MAX));
        let list = lists[lists.len() - 1];
        let users = if number < 2 { &all[..] } else { &all[..LIST_CHANGED_MAX] };
        for users in users.chunks(LIST_CHANGED_MAX) {
            let users = users.to_vec();
            world.request(Request::from(change(ListChange::Add { list, users })));
        }
    }
    // The other user is a member of all lists.
    world.request(Request::from(Command::Unfollow { user: id(0), other: id(1) }));
    world.request(Request::from(Command::Block { user: id(0), other: id(2) }));
    world.request(Request::from(Command::Block { user: id(3), other: id(0) }));
    let users = all[3..3 + LIST_CHANGED_MAX].to_vec();
    world.request(Request::from(change(ListChange::Remove { list: lists[0], users })));
    world.request(Request::from(change(ListChange::Delete { list: lists[1] })));
    for user in [4, 0] {
        world.request(Request::from(Command::DeleteUser { user: id(user) }));
        let mut commands = 0;
        while let Some(command) = erasure(Facts::new(&world.counting.rows)) {
            world.request(Request::from(command));
            commands += 1;
            assert!(commands < 1_000, "it ends");
        }
    }
    for table in [NameTable::List, NameTable::ListMember, NameTable::ListedUser] {
        assert_eq!(world.counting.rows.first_name(table, &[]), None, "{table:?}");
    }
}

/// Pictures with descriptions of maximum length, each with two separate files.
struct Pictures {
    world: World,
    added: u8,
}

impl Pictures {
    fn run(&mut self, command: MediaCommand) {
        self.world.request(Request::from(Command::Media(command)));
    }

    fn add(&mut self, profile: Option<ProfilePicture>) -> MediaId {
        self.added += 1;
        let file = |byte| MediaFile {
            hash: FileHash([byte; 32]),
            bytes: u32::from(byte),
            is_png: false,
            width: u16::MAX,
            height: u16::MAX,
        };
        self.run(MediaCommand::Add(Box::new(NewMedia {
            owner: UserRef::Id(UserId(0)),
            key: MediaKey([255; 16]),
            original: file(self.added),
            preview: Some(file(255 - self.added)),
            blurhash: BlurHash::parse(&"x".repeat(64)).unwrap(),
            description: Self::description(),
            focus: Focus::new(-1.0, -1.0).ok(),
            profile,
        })));
        MediaId(self.world.counting.rows.totals().last_stamp.unwrap().0)
    }

    fn description() -> Description {
        Description::parse(&"\u{1f600}".repeat(1_500)).unwrap()
    }

    fn changes(media: &[MediaId]) -> Vec<MediaChange> {
        let change = |media: &MediaId| MediaChange {
            media: *media,
            description: Some(Self::description()),
            focus: Focus::new(1.0, 1.0).ok(),
        };
        media.iter().map(change).collect()
    }
}

#[test]
fn pictures_cost_no_more_than_they_were_costed_at() {
    let mut pictures = Pictures { world: World::new(), added: 0 };
    for user in 0..40 {
        let handle = Handle::parse(&format!("{user}{}", "w".repeat(28))).unwrap();
        let (name, bio) = (Name::parse("").unwrap(), Bio::parse("").unwrap());
        pictures.world.request(Request::from(Command::Register { handle, name, bio }));
    }
    let user = UserRef::Id(UserId(0));
    for picture in [ProfilePicture::Avatar, ProfilePicture::Header, ProfilePicture::Avatar] {
        pictures.add(Some(picture));
    }
    let media: Vec<MediaId> = (0..UNATTACHED_MEDIA_MAX).map(|_| pictures.add(None)).collect();
    pictures.add(None);
    let change = Box::new(Pictures::changes(&media)[0].clone());
    pictures.run(MediaCommand::Change { user: user.clone(), change });
    pictures.run(MediaCommand::Delete { user: user.clone(), media: media[63] });
    let text = mentioning(80);
    for four in media[..40].chunks(4) {
        let mut post = Draft::new(user.clone(), text.clone());
        post.parent = pictures.world.posts.first().copied();
        post.content.media = four.to_vec();
        pictures.world.request(Request::from(Command::Publish(Box::new(post))));
    }
    let post = pictures.world.posts[0];
    for text in [mentioning(60), mentioning(70)] {
        let four = &media[40..44];
        let (media, described) = (Some(four.to_vec()), Pictures::changes(four));
        let patch = Patch { media, described, ..Patch::of_text(text) };
        pictures.world.request(Request::from(Command::edit(post, patch)));
    }
    // Replace all parts at once: pictures by a poll, then the poll by other pictures.
    for (new, text) in [(&media[..0], mentioning(60)), (&media[44..48], mentioning(70))] {
        let poll = Some(new.is_empty().then(|| longest_poll(POLL_SECS_MIN)));
        let described = Pictures::changes(if new.is_empty() { &media[40..44] } else { new });
        let patch = Patch { media: Some(new.to_vec()), described, poll, ..Patch::of_text(text) };
        pictures.world.request(Request::from(Command::edit(post, patch)));
        let edited = Facts::new(&pictures.world.counting.rows).post(post).unwrap().clone();
        assert_eq!(
            (edited.content.media.len(), edited.poll.is_some()),
            (new.len(), new.is_empty())
        );
    }
    pictures
        .run(MediaCommand::ClearProfile { user: user.clone(), picture: ProfilePicture::Header });
    pictures.world.request(Request::from(Command::DeletePost { post }));
    pictures.world.now_ms += 86_400_000;
    assert!(do_due(&mut pictures.world) > 0);
    for _ in 0..64 {
        pictures.add(None);
    }
    pictures.world.request(Request::from(Command::DeleteUser { user }));
    let mut commands = 0;
    while let Some(command) = erasure(Facts::new(&pictures.world.counting.rows)) {
        pictures.world.request(Request::from(command));
        commands += 1;
        assert!(commands < 1_000, "it ends");
    }
    for table in [NameTable::Media, NameTable::MediaFile, NameTable::MediaOf, NameTable::MediaSpace]
    {
        assert_eq!(pictures.world.counting.rows.first_name(table, &[]), None, "{table:?}");
    }
}

/// Accounts at their limits.
struct Accounts {
    world: World,
    secrets: u32,
    password: PasswordHash,
    scopes: AccessScopes,
}

impl Accounts {
    fn new() -> Self {
        let password = PasswordHash::parse(&format!("$argon2id${}", "x".repeat(246))).unwrap();
        let scopes = AccessScopes::parse("read").unwrap();
        Self { world: World::new(), secrets: 0, password, scopes }
    }

    fn run(&mut self, command: AccountCommand) {
        self.world.request(Request::from(Command::Account(command)));
    }

    fn secret(&mut self) -> SecretHash {
        self.secrets += 1;
        let mut bytes = [7; 32];
        bytes[..4].copy_from_slice(&self.secrets.to_be_bytes());
        SecretHash(bytes)
    }

    fn sign_up(&mut self, n: u32) {
        self.run(AccountCommand::SignUp {
            handle: Handle::parse(&format!("{n}{}", "h".repeat(29))).unwrap(),
            email: Some(Email::parse(&format!("{n}@{}", "e".repeat(250))).unwrap()),
            password: self.password.clone(),
            role: Role::User,
            state: AccountState::Active,
            invite: None,
        });
    }

    fn register_app(&mut self, redirect: &str) -> AppId {
        let app = AppRequest {
            name: AppName::parse(&"n".repeat(60)).unwrap(),
            website: Website::parse(redirect).ok(),
            redirects: vec![RedirectUri::parse(redirect).unwrap(); REDIRECT_URIS_MAX],
            scopes: self.scopes,
            secret: self.secret(),
        };
        self.run(AccountCommand::RegisterApp(Box::new(app)));
        AppId(self.world.counting.rows.totals().last_stamp.unwrap().0)
    }

    /// Creates a code for an app, and exchanges it for a token.
    fn grant(&mut self, user: UserId, app: AppId, is_exchanged: bool) {
        let (code, redirect, scopes) = (self.secret(), self.secret(), self.scopes);
        let challenge = Some(self.secret());
        self.run(AccountCommand::Authorize { user, app, scopes, code, redirect, challenge });
        if is_exchanged {
            let token = self.secret();
            self.run(AccountCommand::Exchange { app, code, redirect, challenge, token });
        }
    }

    fn invite(&mut self) {
        let code = self.secret();
        self.run(AccountCommand::CreateInvite { code, uses: 1, life_secs: 1 });
    }
}

/// Users have as many grants as allowed, apps have the longest rows and as many tokens as allowed, and there are as
/// many invites as allowed.
#[test]
fn accounts_cost_no_more_than_they_were_costed_at() {
    let mut accounts = Accounts::new();
    (0..3).for_each(|n| accounts.sign_up(n));
    let long = format!("https://app.example/{}", "p".repeat(URI_BYTES_MAX - 20));
    let apps = [(); 4].map(|()| accounts.register_app(&long));
    for n in 0..APP_GRANTS_MAX * 4 + 2 {
        let (scopes, token) = (accounts.scopes, accounts.secret());
        accounts.run(AccountCommand::GrantApp { app: apps[n % 4], scopes, token });
    }
    // An app registers while there are as many unused apps as allowed: two of them are removed, with their tokens.
    let totals = accounts.world.counting.rows.totals();
    let full = Totals { apps_unused: UNUSED_APPS_MAX + 5, ..totals };
    accounts.world.counting.rows.put_totals(full);
    accounts.register_app("app://x");
    assert!(Facts::new(&accounts.world.counting.rows).app(apps[1]).is_none());
    for n in 0..USER_GRANTS_MAX + 10 {
        accounts.grant(UserId(0), apps[2 + n % 2], n % 3 > 0);
        let (password, session) = (accounts.password.clone(), accounts.secret());
        accounts.run(AccountCommand::LogIn { user: UserId(1), password, session });
    }
    // One user has as many tokens as allowed, half of them created by a key. Another user has one token that ends with
    // the user.
    for n in 0..USER_TOKENS_MAX as u32 + 1 {
        let (scopes, token, user) = (accounts.scopes, accounts.secret(), UserRef::Id(UserId(1)));
        let user = if n == 0 { UserRef::Id(UserId(2)) } else { user };
        accounts.run(AccountCommand::Mint { user, scopes, life_secs: 9_000_000, token, key: None });
    }
    let mint_for_two = |accounts: &mut Accounts| {
        let (scopes, token, user) = (accounts.scopes, accounts.secret(), UserRef::Id(UserId(2)));
        accounts.run(AccountCommand::Mint { user, scopes, life_secs: 60, token, key: None });
    };
    (1..USER_TOKENS_MAX).for_each(|_| mint_for_two(&mut accounts));
    // Codes, sessions and tokens created by a key have expired; new tokens replace them.
    accounts.world.now_ms += 2_600_000_000;
    mint_for_two(&mut accounts);
    for _ in 0..4 {
        let (app, user, scopes) = (apps[3], UserId(0), accounts.scopes);
        let (password, token) = (accounts.password.clone(), accounts.secret());
        accounts.run(AccountCommand::GrantUser { app, user, password, scopes, token });
    }
    (0..INVITES_MAX).for_each(|_| accounts.invite());
    accounts.world.now_ms += 2_000;
    accounts.invite();
    let (user, password) = (UserRef::Id(UserId(1)), accounts.password.clone());
    accounts.run(AccountCommand::SetPassword { user, password, keep: None });
    let mut parent = None;
    for _ in 0..RELISTED_POSTS_MAX + 9 {
        let new = Draft { parent, ..Draft::new(UserRef::Id(UserId(1)), mentioning(0)) };
        accounts.world.request(Request::from(Command::Publish(Box::new(new))));
        parent = accounts.world.counting.rows.totals().last_stamp.map(|stamp| PostId(stamp.0));
    }
    for state in [AccountState::Disabled, AccountState::Active] {
        accounts.run(AccountCommand::SetState { user: UserRef::Id(UserId(1)), state });
        assert!(do_due(&mut accounts.world) > 1);
    }
    let mut world = accounts.world;
    world.request(Request::from(Command::DeleteUser { user: UserRef::Id(UserId(0)) }));
    while let Some(command) = erasure(Facts::new(&world.counting.rows)) {
        world.request(Request::from(command));
    }
    let facts = Facts::new(&world.counting.rows);
    let left = [0, 1].map(|user| facts.grants_of_user(UserId(user)).len());
    assert_eq!(left, [0, 0]);
}

#[test]
fn rows_of_many_operations_are_prefetched_before_they_are_looked_up() {
    let keys: Vec<Vec<u8>> = (0..100).map(|key: u32| key.to_string().into_bytes()).collect();
    let add = |key| KeyOp::Add { bucket: BucketId(0), key: Bytes::new(key), by: 1 };
    let mut ops: KeyOps = keys.iter().map(|key| add(key.as_slice())).collect();
    ops.push(&KeyOp::Rename {
        bucket: BucketId(0),
        from: Bytes::new(b"1"),
        to: Bytes::new(b"one"),
        only_new: false,
    });
    let mut world = World::new();
    let stamp = world.clock.next_run(world.now_ms, ops.stamps());
    let mut answers = Vec::new();
    kv::apply(&mut kv::Txn::new(&mut world.counting), stamp, &ops, &mut |_, _| (), &mut answers);
    assert_eq!(answers.last(), Some(&KeyAnswer::Number(1)));
    assert_eq!(world.counting.prefetched.borrow().len(), keys.len() + 1);
    assert_eq!(world.counting.unexpected.get(), 0);
}
