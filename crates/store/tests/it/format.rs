//! Tests that stores of this format and of earlier ones open, and that stores of later formats are refused.
//!
//! `make_the_fixture` writes `fixtures/store-v1`. After its format is released, a fixture is never written again. The
//! feature `next-format` simulates a build that adds a table and a field: `cargo test -p store --features next-format
//! format`.

use std::fs;
use std::path::{Path, PathBuf};

use feed::accounts::{
    AccessScopes, AccountCommand, AppId, AppName, AppRequest, Email, GrantId, PasswordHash,
    RedirectUri, Role, SecretHash, Stage,
};
use feed::conversations::{ConversationMark, ConversationUpdate};
use feed::facts::UserTag;
use feed::filters::{
    Filter, FilterAction, FilterContext, FilterContexts, FilterId, FilterKeyword, FilterPartId,
    FilterText, FilteredPost, Keyword,
};
use feed::follow_options::{FollowOptions, FollowWith};
use feed::media::{
    BlurHash, Description, FileHash, Focus, Media, MediaFile, MediaId, MediaKey, MediaUse,
    ProfilePicture,
};
use feed::polls::{NewPoll, PollOptions, PollTime};
use feed::quotes::QuotePolicy;
use feed::relation::{BLOCKS, FRIENDS, MUTES, REQUESTS};
use feed::schedule::{ScheduleCommand, ScheduledPost};
use feed::whole::FILTERS;
use feed::{
    Command, Content, Draft, Facts, Handle, Language, List, ListChange, ListCommand, ListId,
    ListReplies, ListTitle, Marker, MarkerUpdate, Markers, MarkersUpdate, Mute, Note, Notice,
    NotificationId, Patch, Poll, PollChoices, PollCounts, PollId, Post, PostCounts, PostDefaults,
    PostId, PostText, ProfileFields, Reaction, ScheduledId, StampedCommand, Story, StoryId, Tag,
    Txn, User, UserEdit, UserId, UserRef, Viewer, Visibility, Warning, apply,
};
use feed::{Due, DueWork, write};
use kv::{Bucket, BucketId, BucketName, KeyParts, KeyRow, KeyRows, KeyRowsMut, Space, WalkLimit};
use rows::{NameTable, Order, PointTable, Rows, RowsMut, SetTable, Span, Stamp, Totals, Value};
use store::{FORMAT_VERSION, Store, StoreError, StoreOptions, StoreWriter};
use testkit::MemoryRows;
use testkit::files::copy;

const OPTIONS: StoreOptions = StoreOptions { cache_bytes: 4 << 20, bucket_bytes: 4 << 20 };
const APPLIED: u64 = 4_711;

const STORY: StoryId = StoryId(98 << 22);
const STORY_EXPIRES_MS: u64 = 1_704_153_600_098;
const KEY_EXPIRES_MS: u64 = 1_904_153_600_098;
const MUTE: Mute = Mute { mentions: true, ends_ms: Some(KEY_EXPIRES_MS) };

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/store-v1")
}

fn totals() -> Totals {
    let last_stamp = Some(Stamp(99 << 22));
    let old = Totals { users: 40, posts: 30, follows: 39, last_stamp, ..Totals::default() };
    Totals { idempotency_day: 19_900, ..old }
}

fn write(rows: &mut impl RowsMut) {
    for user in 0..40u64 {
        let name = format!("user_{user}");
        rows.put_point(PointTable::User, user, Some(Value::from_slice(name.as_bytes())));
        rows.put_point(PointTable::Counts, user, Some(Value::from_slice(&[user as u8; 16])));
        rows.put_name(NameTable::Handle, name.as_bytes(), Some(Value::from_slice(&[user as u8])));
        rows.put_member(SetTable::Following, 0, user, Some(0));
        rows.put_member(SetTable::Followers, user, 0, Some(0));
        rows.put_member(SetTable::AuthorPosts, user % 3, user << 22, Some(user * 1_000));
        rows.put_member(SetTable::Mentions, user / 10, user << 22, Some(0));
    }
    rows.put_totals(totals());
}

/// Removes some rows of the first checkpoint, in the second checkpoint.
fn remove(rows: &mut impl RowsMut) {
    rows.put_member(SetTable::Following, 0, 0, None);
    rows.put_name(NameTable::Handle, b"user_0", None);
    rows.put_name(NameTable::Idempotency, b"day and key", Some(Value::from_slice(b"outcome")));
}

/// Writes friends, and a story that one of them has seen.
fn write_stories(rows: &mut dyn RowsMut) {
    let story = Story { author: UserId(1), expires_ms: STORY_EXPIRES_MS, views: 0 };
    let totals = Totals { friendships: 2, stories: 1, ..totals() };
    FRIENDS.put(rows, UserId(1), UserId(2), Some(0));
    FRIENDS.put(rows, UserId(1), UserId(39), Some(0));
    let mut txn = Txn::new(rows);
    txn.put_story(STORY, &story, &PostText::parse("vanishing soon").unwrap());
    txn.put_view(STORY, &story, UserId(39), 1_704_067_300_000);
    txn.count(UserId(2), |counts| counts.friends = 1);
    txn.total(|old| *old = totals);
}

fn check_stories(rows: &impl Rows) {
    let facts = Facts::new(rows);
    assert_eq!(facts.friends_all(UserId(1)), [UserId(2), UserId(39)]);
    assert!(facts.are_friends(UserId(39), UserId(1)) && !facts.are_friends(UserId(2), UserId(39)));
    assert_eq!(facts.counts(UserId(2)).friends, 1);
    let story = Story { author: UserId(1), expires_ms: STORY_EXPIRES_MS, views: 1 };
    assert_eq!(facts.story(STORY), Some(story));
    assert_eq!(facts.story_text(STORY).unwrap().as_str(), "vanishing soon");
    assert_eq!(facts.stories_by(UserId(1), Span::ALL), [(STORY, STORY_EXPIRES_MS)]);
    check_due(rows, DueWork::RemoveStory { story: STORY }.at(STORY_EXPIRES_MS));
    let views = facts.story_views(STORY, Span::ALL);
    assert_eq!(views, [(UserId(39), 1_704_067_300_000)]);
    assert_eq!(facts.seen_by(UserId(39), Span::ALL), [STORY]);
}

/// Writes a bucket with two keys, one of which expires.
fn write_keys(rows: &mut impl KeyRowsMut) {
    let space = Space(16);
    rows.put_bucket(
        BucketId(16),
        Some(Bucket { space, keys: 2, bytes: 12, expiring: 1, expiries_ms: KEY_EXPIRES_MS.into() }),
    );
    rows.put_name(NameTable::Bucket, b"drafts", Some(Value::from_slice(&[16])));
    rows.put_point(PointTable::BucketOfSpace, 16, Some(Value::from_slice(&[16])));
    let parts = |key, expires_ms| {
        let (value, version) = (&b"abc"[..], Stamp(99 << 22));
        KeyParts { space, key, value, expires_ms, version }
    };
    rows.put_key(KeyRow::new(parts(b"one", None)));
    rows.put_key(KeyRow::new(parts(b"two", Some(KEY_EXPIRES_MS))));
    let expiry = [&KEY_EXPIRES_MS.to_be_bytes()[..], &16_u32.to_be_bytes(), b"two"].concat();
    rows.put_name(NameTable::KeyExpiry, &expiry, Some(Value::new()));
    let totals = rows.totals();
    rows.put_totals(Totals { spaces: 1, keys_expiring: 1, buckets_made: 1, ..totals });
}

fn check_keys(rows: &impl KeyRows) {
    let facts = kv::Facts::new(rows);
    let id = facts.bucket_named(&BucketName::parse("drafts").unwrap()).unwrap();
    let bucket = facts.bucket(id).unwrap();
    let expected = Bucket {
        space: Space(16),
        keys: 2,
        bytes: 12,
        expiring: 1,
        expiries_ms: KEY_EXPIRES_MS.into(),
    };
    assert_eq!((id, bucket), (BucketId(16), expected));
    let key = |key| facts.key(bucket.space, key).unwrap();
    assert_eq!((key(b"one").value(), key(b"one").expires_ms()), (&b"abc"[..], None));
    assert_eq!(
        (key(b"two").value(), key(b"two").expires_ms()),
        (&b"abc"[..], Some(KEY_EXPIRES_MS))
    );
    assert_eq!(key(b"two").version(), Stamp(99 << 22));
    assert_eq!(facts.rows_of_keys(bucket.space, 0, WalkLimit::NONE).0.len(), 2);
    assert_eq!(facts.next_key_expiry_ms(), Some(KEY_EXPIRES_MS));
    assert!(facts.has_dead_keys(KEY_EXPIRES_MS) && !facts.has_dead_keys(KEY_EXPIRES_MS - 1));
    assert_eq!(facts.bucket_count(), 17);
}

const PARENT: PostId = PostId(50 << 22);
const REPLY: PostId = PostId(51 << 22);

fn reply() -> Post {
    let (text, edited) = (PostText::parse("a reply").unwrap(), Some(Stamp(60 << 22)));
    let (reply_to, mentions) = (Some(UserId(1)), vec![UserId(1)]);
    let plain = plain_post(UserId(2), text);
    Post { reply_to, mentions, in_reply_to: Some(PARENT), edited, ..plain }
}

fn parent() -> Post {
    let text = PostText::parse("text").unwrap();
    Post { mentions: vec![UserId(2)], ..plain_post(UserId(1), text) }
}

fn plain_post(author: UserId, text: PostText) -> Post {
    Post::of(author, Content::of_text(text))
}

/// Writes a post, and a reply to it.
fn write_replies(rows: &mut dyn RowsMut) {
    let mut txn = Txn::new(rows);
    txn.put_post(PARENT, &parent());
    txn.put_post(REPLY, &reply());
}

fn check_replies(rows: &impl Rows) {
    let facts = Facts::new(rows);
    assert_eq!(facts.post(PARENT), Some(parent()));
    assert_eq!(facts.post(REPLY), Some(reply()));
    assert_eq!(facts.replies_to(PARENT, Span::ALL), [(REPLY, Visibility::Public)]);
}

/// Writes deleted users. One of them has rows that were not removed yet.
fn write_deletions(rows: &mut dyn RowsMut) {
    for user in [35, 36] {
        rows.put_member(SetTable::DeletedUsers, user, 0, Some(0));
    }
    rows.put_member(SetTable::ErasingUsers, 0, 36, Some(KEY_EXPIRES_MS));
    write::due(rows, erasure(), Some(0));
    let totals = rows.totals();
    rows.put_totals(Totals { users_deleted: 2, users_erasing: 1, ..totals });
}

fn erasure() -> Due {
    DueWork::Erase { user: UserId(36) }.at(KEY_EXPIRES_MS)
}

#[track_caller]
fn check_due(rows: &(impl Rows + ?Sized), due: Due) {
    assert!(Facts::new(rows).first_due(0, None, 99).contains(&due), "{due:?}");
}

fn check_deletions(rows: &impl Rows) {
    let facts = Facts::new(rows);
    let deleted: Vec<u32> = (0..40).filter(|user| facts.is_deleted(UserId(*user))).collect();
    assert_eq!(deleted, [35, 36]);
    assert_eq!(facts.erasure_of(UserId(36)), Some(erasure()));
    check_due(rows, erasure());
}

/// Writes an account with a session, and an app to which the user has given a code.
fn write_accounts(rows: &mut dyn RowsMut) {
    let secret = |byte| SecretHash([byte; 32]);
    let password = PasswordHash::parse("$argon2id$v=19$m=8,t=1,p=1$c2FsdA$aGFzaA").unwrap();
    let (email, role) = (Some(Email::parse("one@example.org").unwrap()), Role::Moderator);
    let (user, scopes) = (UserId(1), AccessScopes::parse("read").unwrap());
    let app = AppRequest {
        name: AppName::parse("app").unwrap(),
        website: None,
        redirects: vec![RedirectUri::parse("https://app.example/").unwrap()],
        scopes,
        secret: secret(1),
    };
    let open = UserRef::Id(user);
    let (code, redirect, challenge) = (secret(2), secret(3), Some(secret(4)));
    let app_id = AppId(101 << 22);
    let commands = [
        AccountCommand::Open { user: open, email, password: password.clone(), role },
        AccountCommand::RegisterApp(Box::new(app)),
        AccountCommand::Authorize { user, app: app_id, scopes, code, redirect, challenge },
        AccountCommand::LogIn { user, password, session: secret(5) },
    ];
    for (stamp, command) in (100..).zip(commands) {
        run(rows, stamp, Command::Account(command));
    }
}

fn check_accounts(rows: &impl Rows) {
    let facts = Facts::new(rows);
    let (id, session) = facts.grant_of(&SecretHash([5; 32])).unwrap();
    check_due(rows, DueWork::ExpireGrant { grant: id }.at(session.expires_ms().unwrap()));
    let user = facts.by_email(&Email::parse("one@example.org").unwrap());
    assert_eq!(user, Some(UserId(1)));
    let account = facts.active_account(UserId(1)).unwrap();
    assert_eq!((account.role, account.created), (Role::Moderator, Stamp(100 << 22)));
    let app = facts.app(AppId(101 << 22)).unwrap();
    assert_eq!((app.name.as_str(), facts.app_uses(AppId(101 << 22))), ("app", 1));
    let (_, code) = facts.grant_of(&SecretHash([2; 32])).unwrap();
    assert!(matches!(code.stage, Stage::Code(code) if code.challenge == Some(SecretHash([4; 32]))));
    let now_ms = Stamp(104 << 22).unix_ms();
    let (id, session) = facts.granted(&SecretHash([5; 32]), now_ms).unwrap();
    assert_eq!((id, session.user, session.app), (GrantId(103 << 22), Some(UserId(1)), None));
    assert_eq!(facts.grants_of_user(UserId(1)).len(), 2);
    assert_eq!((facts.totals().accounts, facts.totals().apps_unused), (1, 0));
}

/// Writes a block, and a mute that ends.
fn write_blocks(rows: &mut dyn RowsMut) {
    let mut txn = Txn::new(rows);
    txn.relate(&BLOCKS, UserId(3), UserId(4), 0);
    txn.relate(&MUTES, UserId(3), UserId(5), MUTE.number());
    txn.count(UserId(3), |counts| (counts.blocks, counts.mutes) = (1, 1));
}

fn check_blocks(rows: &impl Rows) {
    let facts = Facts::new(rows);
    assert!(facts.blocks(UserId(3), UserId(4)) && !facts.blocks(UserId(4), UserId(3)));
    assert_eq!(facts.mute(UserId(3), UserId(5)), Some(MUTE));
    check_due(rows, MUTE.end_of(UserId(3), UserId(5)).unwrap());
    let counts = facts.counts(UserId(3));
    assert_eq!((counts.blocks, counts.mutes), (1, 1));
}

const DIRECT: PostId = PostId(120 << 22);

/// Writes a direct post with a warning, reactions and notifications.
fn write_reactions(rows: &mut dyn RowsMut) {
    let plain = plain_post(UserId(1), PostText::parse("direct").unwrap());
    let (warning, language) = (Warning::parse("food").unwrap(), Language::parse("en").ok());
    let content = Content { warning, language, sensitive: true, ..plain.content };
    let mentions = vec![UserId(2)];
    let direct = Post { content, mentions, visibility: Visibility::Direct, ..plain };
    Txn::new(rows).put_post(DIRECT, &direct);
    let react =
        |post, reaction| Command::React { user: UserRef::Id(UserId(2)), post, reaction, on: true };
    let commands = [
        react(DIRECT, Reaction::Favourite),
        react(DIRECT, Reaction::Bookmark),
        react(REPLY, Reaction::Pin),
    ];
    for (stamp, command) in (130..).zip(commands) {
        run(rows, stamp, command);
    }
    write::due(rows, sweep(), Some(7));
}

fn sweep() -> Due {
    DueWork::SweepReactions { post: PostId(77 << 22) }.at(KEY_EXPIRES_MS)
}

fn check_reactions(rows: &impl Rows) {
    let facts = Facts::new(rows);
    let post = facts.post(DIRECT).unwrap();
    assert_eq!((post.visibility, post.content.warning.as_str()), (Visibility::Direct, "food"));
    let [author, friend, other] =
        [1, 2, 3].map(|user| Viewer::new(facts, Some(UserId(user))).visible(&post));
    assert_eq!((author, friend, other), (true, true, false));
    let kinds = [Reaction::Favourite, Reaction::Bookmark, Reaction::Pin];
    let reactions = kinds.map(|kind| facts.reactions_of(UserId(2), kind, Span::ALL));
    assert_eq!(reactions, [[(130 << 22, DIRECT)], [(131 << 22, DIRECT)], [(132 << 22, REPLY)]]);
    assert_eq!(facts.reaction(UserId(2), DIRECT, Reaction::Bookmark), Some(131 << 22));
    assert_eq!(facts.post_counts(DIRECT).favourites, 1);
    let viewer = Viewer::new(facts, Some(UserId(1)));
    let shown = viewer.notification(NotificationId(130 << 22)).unwrap();
    assert_eq!((shown.actor, shown.notice), (UserId(2), Notice::Favourite(DIRECT)));
    assert_eq!(facts.due_from(sweep()), Some(7));
}

/// Writes settings, markers and notes of a user, and a follow request.
fn write_settings(rows: &mut dyn RowsMut) {
    let mut txn = Txn::new(rows);
    txn.put_user(UserId(38), &User::of(Handle::parse("bob").unwrap(), Stamp(9)));
    txn.put_user(UserId(39), &user_with_settings());
    let home = Some(MarkerUpdate { last_read: 7, replaces: None });
    let update = MarkersUpdate { user: UserRef::Id(UserId(1)), home, notifications: None };
    run(rows, 140, Command::SetMarkers(Box::new(update)));
    let note = Note::parse("a note").unwrap();
    let (user, other) = (UserRef::Id(UserId(1)), UserRef::Id(UserId(2)));
    run(rows, 141, Command::SetNote { user, other, note });
    let locked = UserEdit { locked: Some(true), ..UserEdit::new(UserRef::Id(UserId(39))) };
    run(rows, 142, Command::EditUser(Box::new(locked)));
    // Written without a command, because the counts of most users do not match their rows in this store.
    REQUESTS.put(rows, UserId(2), UserId(39), Some(0));
}

const BOOST: PostId = PostId(148 << 22);

/// Writes a boost, and hashtags of posts and of profiles.
fn write_tags_and_boosts(rows: &mut dyn RowsMut) {
    let (user, reaction) = (UserRef::Id(UserId(39)), Reaction::Boost);
    run(rows, BOOST.0 >> 22, Command::React { user, post: REPLY, reaction, on: true });
    let (tag, user) = (Tag::parse("tag").unwrap(), UserRef::Id(UserId(1)));
    run(rows, 150, Command::FeatureTag { user, tag: tag.clone(), on: true });
    // Written without a command, because the counts of most users do not match their rows in this store.
    let (tag, post) = (tag.as_str().as_bytes(), (!TAGGED).to_be_bytes());
    let by_tag = [tag, &[0], &post, &[0, 0, 0, 1]].concat();
    let by_author = [&[0, 0, 0, 1], tag, &[0], &post].concat();
    for (table, name) in [(NameTable::TagPost, by_tag), (NameTable::AuthorTag, by_author)] {
        rows.put_name(table, &name, Some(Value::new()));
    }
}

const TAGGED: u64 = 151 << 22;

/// Returns a picture with a description and a focus.
fn media() -> Media {
    let file = |byte| MediaFile {
        hash: FileHash([byte; 32]),
        bytes: 70_000,
        is_png: byte == 1,
        width: 1_200,
        height: 800,
    };
    Media {
        owner: UserId(7),
        key: MediaKey([9; 16]),
        original: file(1),
        preview: Some(file(2)),
        blurhash: BlurHash::parse("U0TI:j,YfQ").unwrap(),
        description: Description::parse("a cat").unwrap(),
        focus: Some(Focus::new(0.5, -0.25).unwrap()),
        used: MediaUse::Unattached { since: Stamp(MEDIA.0) },
    }
}

/// Writes a filter.
fn write_filters(rows: &mut dyn RowsMut) {
    FILTERS.put(rows, UserId(7), &[filter()]);
}

fn filter() -> Filter {
    let part = |id: u64| FilterPartId(id << 22);
    let text = FilterText::parse("a keyword").unwrap();
    let keyword = Keyword { text: text.clone(), whole_word: true };
    Filter {
        id: FilterId(170 << 22),
        title: text,
        contexts: FilterContexts::new([FilterContext::Home, FilterContext::Account]).unwrap(),
        action: FilterAction::Blur,
        expires_ms: Some(1_800_000_000_000),
        keywords: vec![FilterKeyword { id: part(170), keyword }],
        posts: vec![FilteredPost { id: part(171), post: DIRECT }],
    }
}

fn check_filters(rows: &dyn Rows) {
    assert_eq!(Facts::new(rows).filters(UserId(7)), [filter()]);
}

const MEDIA: MediaId = MediaId(97 << 22);

/// Writes pictures.
fn write_media(rows: &mut dyn RowsMut) {
    write::media(rows, MEDIA, &media());
    let profile = MediaUse::Profile(ProfilePicture::Avatar);
    write::media(rows, MediaId(96 << 22), &Media { used: profile, ..media() });
}

/// Writes a hashtag that a user follows.
fn write_followed_tags(rows: &mut dyn RowsMut) {
    let (tag, user) = (Tag::parse("tag").unwrap(), UserRef::Id(UserId(1)));
    run(rows, 180, Command::FollowTag { user, tag, on: true });
}

#[track_caller]
fn check_followed_tags(rows: &impl Rows) {
    let tag = Tag::parse("tag").unwrap();
    let followed = Facts::new(rows).followed_tags(UserId(1));
    assert_eq!(followed, [UserTag { tag, since: Stamp(180 << 22) }]);
}

/// Writes a poll with a vote, and a scheduled post with a poll.
fn write_polls(rows: &mut dyn RowsMut) {
    let text = PostText::parse("well?").unwrap();
    let post = Draft::new(UserRef::Id(UserId(1)), text);
    let new = Draft { poll: Some(new_poll()), ..post.clone() };
    run(rows, ASKED.0 >> 22, Command::Publish(Box::new(new)));
    let (user, choices) = (UserRef::Id(UserId(2)), PollChoices::new([1]).unwrap());
    run(rows, 191, Command::Vote { user, post: ASKED, choices });
    let command = ScheduleCommand::Create(Box::new(scheduled(post)));
    run(rows, 192, Command::Schedule(command));
}

/// Writes earlier versions of a post, and the read position of a conversation with a reply.
fn write_versions(rows: &mut dyn RowsMut) {
    let text = PostText::parse("well!").unwrap();
    run(rows, 200, Command::edit(ASKED, Patch::of_text(text)));
    let new = Draft::new(UserRef::Id(UserId(2)), PostText::parse("also direct").unwrap());
    let visibility = Visibility::Direct;
    let new = Draft { parent: Some(DIRECT), visibility, ..new };
    run(rows, ANSWER.0 >> 22, Command::Publish(Box::new(new)));
    let user = UserRef::Id(UserId(1));
    run(rows, 202, Command::Conversation(Box::new(ConversationUpdate { user, mark: MARK })));
}

const ANSWER: PostId = PostId(201 << 22);
const MARK: ConversationMark = ConversationMark { first: DIRECT, read: ANSWER, is_removed: true };

fn check_versions(rows: &impl Rows) {
    let facts = Facts::new(rows);
    let versions = facts.post_versions(ASKED);
    let versions: Vec<_> =
        versions.iter().map(|one| (one.since, one.content.text.as_str())).collect();
    assert_eq!(versions, [(Stamp(ASKED.0), "well?")]);
    assert_eq!(facts.post(ASKED).unwrap().edited, Some(Stamp(200 << 22)));
    assert_eq!(facts.post(ANSWER).unwrap().conversation, Some(DIRECT));
    assert_eq!(facts.conversation_marks(UserId(1)), [MARK]);
}

/// Writes options of a follow, a muted thread, an edit whose notifications are pending, and the thread of a reply.
fn write_choices(rows: &mut dyn RowsMut) {
    let [user, other] = [UserId(0), UserId(3)].map(UserRef::Id);
    let text = PostText::parse("well, well").unwrap();
    run(rows, BOOSTED.0 >> 22, Command::post(other.clone(), text));
    let (boosts, notify) = (Some(false), Some(true));
    let with = FollowWith { user: user.clone(), other: other.clone(), boosts, notify };
    run(rows, 210, Command::FollowWith(Box::new(with)));
    let (reaction, on) = (Reaction::Boost, true);
    run(rows, 211, Command::React { user: user.clone(), post: BOOSTED, reaction, on });
    let text = PostText::parse("well, well?").unwrap();
    run(rows, 212, Command::edit(BOOSTED, Patch::of_text(text)));
    let text = PostText::parse("yes").unwrap();
    run(
        rows,
        IN_THREAD.0 >> 22,
        Command::Publish(Box::new(Draft { parent: Some(BOOSTED), ..Draft::new(other, text) })),
    );
    run(rows, 214, Command::MuteThread { user, post: IN_THREAD, on: true });
}

const BOOSTED: PostId = PostId(209 << 22);
const IN_THREAD: PostId = PostId(213 << 22);

fn check_choices(rows: &impl Rows) {
    let facts = Facts::new(rows);
    let options = facts.follow_options(UserId(0), UserId(3));
    let notified_since = Some(Stamp(210 << 22));
    assert_eq!(options, FollowOptions { hides_boosts: true, notified_since });
    assert_eq!(facts.muted_threads(UserId(0)), [BOOSTED]);
    check_due(rows, DueWork::NotifyOfEdit { post: BOOSTED }.since(Stamp(212 << 22)));
    assert_eq!(facts.post(IN_THREAD).unwrap().thread, Some(BOOSTED));
}

const ASKED: PostId = PostId(190 << 22);

fn new_poll() -> NewPoll {
    NewPoll {
        options: PollOptions::parse(["yes", "no"]).unwrap(),
        multiple: false,
        hide_totals: true,
        time: PollTime::from_secs(300).unwrap(),
    }
}

fn scheduled(draft: Draft) -> ScheduledPost {
    let due_ms = Stamp(192 << 22).unix_ms() + 600_000;
    ScheduledPost { draft: Draft { poll: Some(new_poll()), ..draft }, due_ms }
}

#[track_caller]
fn check_polls(rows: &impl Rows) {
    let facts = Facts::new(rows);
    let poll = facts.post(ASKED).unwrap().poll.unwrap();
    let ends_ms = ASKED.unix_ms() + 300_000;
    assert_eq!(poll, Poll::new(PollId(ASKED.0), &new_poll(), ASKED.unix_ms(), None));
    assert_eq!(facts.poll_counts(poll.id), PollCounts { voters: 1, votes: [0, 1, 0, 0] });
    assert_eq!(facts.vote(poll.id, UserId(2)), PollChoices::new([1]).ok());
    assert_eq!(facts.votes_of(UserId(2), PollId(0), 9), [poll.id]);
    check_due(rows, DueWork::EndPoll { post: ASKED }.at(ends_ms));
    let id = ScheduledId(192 << 22);
    let post = Draft::new(UserRef::Id(UserId(1)), PostText::parse("well?").unwrap());
    let post = scheduled(post);
    check_due(rows, DueWork::Publish { user: UserId(1), id }.at(post.due_ms));
    assert_eq!(facts.scheduled(UserId(1), id), Some(post));
}

#[track_caller]
fn check_media(rows: &dyn Rows) {
    let facts = Facts::new(rows);
    assert_eq!(facts.media(MEDIA), Some(media()));
    let unattached = MediaUse::Unattached { since: Stamp(MEDIA.0) };
    check_due(rows, DueWork::RemoveMedia { media: MEDIA }.at(unattached.expires_ms().unwrap()));
    assert_eq!(facts.media_of(UserId(7), MediaId(0), 9), [MediaId(96 << 22), MEDIA]);
    assert_eq!(facts.needed_files(&[], 9).0, [FileHash([1; 32]), FileHash([2; 32])]);
}

fn check_tags_and_boosts(rows: &impl Rows) {
    let (facts, tag) = (Facts::new(rows), Tag::parse("tag").unwrap());
    let boost = facts.post(BOOST).unwrap().boost.unwrap();
    assert_eq!((boost.post, boost.author, boost.earlier), (REPLY, UserId(2), vec![]));
    let counts = PostCounts { favourites: 0, boosts: 1, boosters: vec![UserId(39)] };
    assert_eq!(facts.post_counts(REPLY), counts);
    let posts = facts.posts_by(UserId(39), Span::ALL);
    let boosts: Vec<_> =
        posts.iter().filter_map(|(id, listed)| Some((*id, listed.boosted()?.author))).collect();
    assert_eq!(boosts, [(BOOST, UserId(2))]);
    let newest = PostId(u64::MAX);
    assert_eq!(facts.tagged(&tag, newest, 9), [(PostId(TAGGED), UserId(1))]);
    assert_eq!(facts.tagged_by(UserId(1), &tag, newest, 9), [PostId(TAGGED)]);
    assert_eq!(facts.featured_tags(UserId(1)), [UserTag { tag, since: Stamp(150 << 22) }]);
}

/// Writes a list with a member.
fn write_lists(rows: &mut dyn RowsMut) {
    let mut change = |stamp, change| {
        let user = UserRef::Id(UserId(0));
        run(rows, stamp, Command::List(Box::new(ListCommand { user, change })));
    };
    let (title, replies) = (ListTitle::parse("a list").unwrap(), ListReplies::Followed);
    change(LIST.0 >> 22, ListChange::Create(List { title, replies }));
    change(161, ListChange::Add { list: LIST, users: vec![UserId(5)] });
}

const LIST: ListId = ListId(160 << 22);

fn check_lists(rows: &impl Rows) {
    let facts = Facts::new(rows);
    let list = facts.list(UserId(0), LIST).unwrap();
    assert_eq!((list.title.as_str(), list.replies), ("a list", ListReplies::Followed));
    assert_eq!(facts.list_members(UserId(0), LIST), [UserId(5)]);
    assert_eq!(facts.lists_with(UserId(0), UserId(5)), [LIST]);
}

/// Applies a command. The command must succeed.
fn run(rows: &mut dyn RowsMut, stamp: u64, command: Command) {
    let entry = StampedCommand { stamp: Stamp(stamp << 22), idempotency: None, command };
    let reply = apply(&mut Txn::new(rows), &entry, &mut Vec::new());
    assert!(reply.outcome.is_ok(), "{reply:?}");
}

fn user_with_settings() -> User {
    let language = Language::parse("de").ok();
    User {
        fields: ProfileFields::parse([("Web", "https://a.example")]).unwrap(),
        bot: true,
        undiscoverable: true,
        indexable: true,
        defaults: PostDefaults {
            visibility: Visibility::Followers,
            sensitive: true,
            language,
            quote_policy: QuotePolicy::Nobody,
        },
        ..User::of(Handle::parse("ada").unwrap(), Stamp(9))
    }
}

fn check_settings(rows: &impl Rows) {
    let facts = Facts::new(rows);
    let bob = User::of(Handle::parse("bob").unwrap(), Stamp(9));
    assert_eq!(facts.stored_user(UserId(38)), Some(bob));
    assert_eq!(facts.stored_user(UserId(39)), Some(user_with_settings()));
    let home = Some(Marker { last_read: 7, version: 0, updated: Stamp(140 << 22) });
    assert_eq!(facts.markers(UserId(1)), Markers { home, notifications: None });
    assert_eq!(facts.note(UserId(1), UserId(2)), Note::parse("a note").ok());
    assert_eq!(facts.users_in(SetTable::NotedBy, UserId(2), Span::ALL), [UserId(1)]);
    assert_eq!(facts.counts(UserId(1)).notes, 1);
    assert!(facts.is_locked(UserId(39)) && !facts.is_locked(UserId(2)));
    assert!(facts.requests(UserId(2), UserId(39)));
    assert_eq!(facts.users_in(SetTable::FollowRequests, UserId(39), Span::ALL), [UserId(2)]);
}

/// Functions that write the other rows of the second checkpoint.
const WRITES: [fn(&mut dyn RowsMut); 14] = [
    write_replies,
    write_deletions,
    write_accounts,
    write_blocks,
    write_reactions,
    write_settings,
    write_tags_and_boosts,
    write_lists,
    write_media,
    write_filters,
    write_followed_tags,
    write_polls,
    write_versions,
    write_choices,
];

#[cfg(not(feature = "next-format"))]
#[test]
#[ignore = "writes the checked-in fixture"]
fn make_the_fixture() {
    let fixture = fixture();
    fs::remove_dir_all(&fixture).ok();
    fs::create_dir_all(&fixture).unwrap();
    let (mut writer, _) = Store::open(&fixture, OPTIONS).unwrap();
    write(&mut writer);
    writer.freeze(1).unwrap().run().unwrap();
    remove(&mut writer);
    write_stories(&mut writer);
    write_keys(&mut writer);
    WRITES.into_iter().for_each(|write| write(&mut writer));
    writer.freeze(APPLIED).unwrap().run().unwrap();
    drop(writer);
    // Open the store again, so that the engine shrinks its empty journal.
    Store::open(&fixture, OPTIONS).unwrap();
}

/// Checks all rows of the fixture.
fn check(writer: &StoreWriter) {
    let mut expected = MemoryRows::default();
    write(&mut expected);
    remove(&mut expected);
    write_stories(&mut expected);
    write_keys(&mut expected);
    WRITES.into_iter().for_each(|write| write(&mut expected));
    check_rows(writer, &expected);
    check_stories(writer);
    check_keys(writer);
    check_replies(writer);
    check_deletions(writer);
    check_accounts(writer);
    check_blocks(writer);
    check_reactions(writer);
    check_settings(writer);
    check_tags_and_boosts(writer);
    check_lists(writer);
    check_media(writer);
    check_filters(writer);
    check_followed_tags(writer);
    check_polls(writer);
    check_versions(writer);
    check_choices(writer);
}

#[test]
fn a_store_of_version_1_opens_with_its_rows() {
    let dir = tempfile::tempdir().unwrap();
    copy(&fixture(), dir.path());
    for applied in [APPLIED, APPLIED + 1] {
        let (mut writer, found) = Store::open(dir.path(), OPTIONS).unwrap();
        assert_eq!(found, applied);
        check(&writer);
        writer.freeze(APPLIED + 1).unwrap().run().unwrap();
    }
}

/// Simulates an upgrade to a build that adds a table and a field. Every such build needs this test.
#[cfg(feature = "next-format")]
#[test]
fn a_store_of_version_1_takes_the_rows_and_the_field_of_version_2_and_keeps_its_own() {
    use rows::PutRows as _;
    let dir = tempfile::tempdir().unwrap();
    copy(&fixture(), dir.path());
    let (mut writer, _) = Store::open(dir.path(), OPTIONS).unwrap();
    assert_eq!((writer.totals().next, writer.name(NameTable::Next, b"name")), (0, None));
    let row = Value::from_slice(b"row");
    writer.put_name(NameTable::Next, b"name", Some(row.clone()));
    writer.put_totals(Totals { next: 7, ..writer.totals() });
    writer.freeze(APPLIED + 1).unwrap().run().unwrap();
    drop(writer);
    let (writer, _) = Store::open(dir.path(), OPTIONS).unwrap();
    assert_eq!((writer.totals().next, writer.name(NameTable::Next, b"name")), (7, Some(row)));
    check(&writer);
}

/// Checks all rows of users.
fn check_rows(writer: &StoreWriter, expected: &MemoryRows) {
    let orders = [Order::Ascending, Order::Descending];
    for owner in 0..41 {
        for table in PointTable::ALL {
            let (found, wanted) = (writer.point(table, owner), expected.point(table, owner));
            assert_eq!(found, wanted, "{table:?} {owner}");
        }
        for (table, order) in SetTable::ALL.into_iter().zip(orders.into_iter().cycle()) {
            let span = Span { order, ..Span::ALL };
            assert_eq!(writer.members(table, owner, span), expected.members(table, owner, span));
        }
        let handle = format!("user_{owner}");
        let [found, wanted] = [writer as &dyn Rows, expected]
            .map(|rows| rows.name(NameTable::Handle, handle.as_bytes()));
        assert_eq!(found, wanted);
    }
    assert_eq!(
        writer.first_name(NameTable::Idempotency, &[]).as_deref(),
        Some(&b"day and key"[..])
    );
}

/// Overwrites the head row, as another version of this program would.
fn describe(dir: &Path, head: &[u8]) {
    drop(Store::open(dir, OPTIONS).unwrap());
    let database = fjall::Database::builder(dir.join("facts")).worker_threads(1).open().unwrap();
    let keyspace = database.keyspace("facts", fjall::KeyspaceCreateOptions::default).unwrap();
    let mut ingestion = keyspace.start_ingestion().unwrap();
    ingestion.write([0u8], head).unwrap();
    ingestion.finish().unwrap();
}

#[test]
fn no_store_has_version_0() {
    let dir = tempfile::tempdir().unwrap();
    describe(dir.path(), &[&[0; 28][..], &rows::encode(&Totals::default())].concat());
    let error = Store::open(dir.path(), OPTIONS).map(|_| ()).unwrap_err();
    assert!(matches!(error, StoreError::Damaged(_)), "{error}");
}

#[test]
fn a_store_of_a_later_version_is_refused_and_both_versions_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let (known, next) = (FORMAT_VERSION, FORMAT_VERSION + 1);
    describe(dir.path(), &[&next.to_le_bytes()[..], &[1, 2, 3]].concat());
    let error = Store::open(dir.path(), OPTIONS).map(|_| ()).unwrap_err();
    assert!(matches!(error, StoreError::NewerFormat { .. }));
    let text = error.to_string();
    assert!(
        text.contains(&format!("version {next}")) && text.contains(&format!("up to {known}")),
        "{text}"
    );
}

#[test]
fn a_store_with_a_malformed_description_is_refused() {
    for head in [&[][..], &[1, 0, 0, 0, 9]] {
        let dir = tempfile::tempdir().unwrap();
        describe(dir.path(), head);
        let error = Store::open(dir.path(), OPTIONS).map(|_| ()).unwrap_err();
        assert!(matches!(error, StoreError::Damaged(_)), "{error}");
    }
}

/// The engine itself would remove the keyspace.
#[test]
fn a_store_that_lost_the_file_which_names_a_manifest_is_refused_and_keeps_its_tables() {
    for keyspace in ["1", "2"] {
        let dir = tempfile::tempdir().unwrap();
        copy(&fixture(), dir.path());
        let keyspace = dir.path().join("facts/keyspaces").join(keyspace);
        fs::remove_file(keyspace.join("current")).unwrap();
        let error = Store::open(dir.path(), OPTIONS).map(|_| ()).unwrap_err();
        assert!(matches!(error, StoreError::DamagedFile { .. }), "{error}");
        assert!(fs::read_dir(keyspace.join("tables")).unwrap().count() > 0);
    }
}

#[test]
fn a_manifest_with_a_changed_bit_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    copy(&fixture(), dir.path());
    let keyspace = dir.path().join("facts/keyspaces/1");
    let names = fs::read_dir(&keyspace).unwrap().map(|file| file.unwrap().file_name());
    let manifest = names.map(|name| name.into_string().unwrap()).find(|name| name.starts_with('v'));
    let manifest = keyspace.join(manifest.unwrap());
    let mut bytes = fs::read(&manifest).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&manifest, bytes).unwrap();
    let error = Store::open(dir.path(), OPTIONS).map(|_| ()).unwrap_err();
    assert!(matches!(error, StoreError::DamagedFile { path, .. } if path == manifest));
}
