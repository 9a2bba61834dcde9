//! Tests that every table is exported, can be derived from the export, or is left out for a documented reason.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use commitlog::disk::RealDisk;
use commitlog::{LocalLog, Position};
use feed::accounts::{
    AccessScopes, AccountCommand, AccountDone, AppName, AppRequest, Email, PasswordHash,
    RedirectUri, Role, SecretHash,
};
use feed::conversations::{ConversationMark, ConversationUpdate};
use feed::feeds::{FeedDefinition, FeedName};
use feed::filters::{
    FilterAction, FilterChange, FilterCommand, FilterContext, FilterContexts, FilterText,
    FilterTime, Keyword, NewFilter,
};
use feed::follow_options::FollowWith;
use feed::limits::{POLL_SECS_MAX, SCHEDULED_MS_MAX};
use feed::media::{
    BlurHash, Description, FileHash, Focus, MediaCommand, MediaDone, MediaFile, MediaKey, NewMedia,
    ProfilePicture,
};
use feed::polls::{NewPoll, PollOptions, PollTime};
use feed::quotes::QuotePolicy;
use feed::schedule::{ScheduleCommand, ScheduledPost};
use feed::{
    Bio, Command, Content, Draft, Handle, Idempotency, Label, Lifetime, List, ListChange,
    ListCommand, ListReplies, ListTitle, MarkerUpdate, MarkersUpdate, MuteTime, Name, Note, Patch,
    PollChoices, PostText, Reaction, SetName, Tag, UserEdit, UserId, UserRef, Visibility,
};
use kv::{BucketId, BucketName, Bytes, Expiry, KeyOp, KeyOps, Only};
use rows::{Table, Transfer};
use store::Store;

use crate::node::{Node, Parts};
use crate::threads::Background;
use crate::{NodeOptions, Request};

/// Writes something to every table that is kept.
fn fill(options: &NodeOptions) {
    let node = Node::open(options).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let run = |command| {
        let reply = runtime.block_on(node.submit(Request::from(command))).unwrap();
        reply.outcome.unwrap()
    };
    let [ann, bob, cyd, dan] = [0, 1, 2, 3].map(|id| UserRef::Id(UserId(id)));
    let text = |text| PostText::parse(text).unwrap();
    for handle in ["ann", "bob", "cyd", "dan"] {
        let handle = Handle::parse(handle).unwrap();
        run(Command::Register { handle, name: Name::default(), bio: Bio::default() });
    }
    fill_accounts(&|command| run(Command::Account(command)), &ann);
    let home = Some(MarkerUpdate { last_read: 7, replaces: None });
    let update = MarkersUpdate { user: ann.clone(), home, notifications: None };
    run(Command::SetMarkers(Box::new(update)));
    let locked = UserEdit { locked: Some(true), ..UserEdit::new(ann.clone()) };
    run(Command::EditUser(Box::new(locked)));
    run(Command::Follow { user: bob.clone(), other: ann.clone() });
    let note = Note::parse("a note").unwrap();
    run(Command::SetNote { user: ann.clone(), other: bob.clone(), note });
    let tag = Tag::parse("tag").unwrap();
    run(Command::FeatureTag { user: ann.clone(), tag: tag.clone(), on: true });
    run(Command::FollowTag { user: ann.clone(), tag, on: true });
    run(Command::Follow { user: ann.clone(), other: bob.clone() });
    fill_lists(&run, &ann, UserId(1));
    fill_filters(&run, &ann);
    run(Command::Befriend { user: ann.clone(), other: bob.clone() });
    run(Command::Block { user: ann.clone(), other: dan.clone() });
    let time = Some(MuteTime::from_secs(600_000).unwrap());
    run(Command::Mute { user: ann.clone(), other: dan, mentions: true, time });
    let post = Command::post(ann.clone(), text("hello @bob #tag"));
    fill_media(&run, &ann);
    fill_polls(&run, &ann, &bob);
    let idempotency = Some(Idempotency { key: [1; 16], content: [2; 8] });
    let request = Request { command: post, idempotency };
    let reply = runtime.block_on(node.submit(request)).unwrap();
    let Ok(feed::Done::Posted(parent)) = reply.outcome else { panic!("{reply:?}") };
    run(Command::edit(parent, Patch::of_text(text("hello, @bob #tag"))));
    let reply = Draft { parent: Some(parent), ..Draft::new(bob.clone(), text("hi")) };
    fill_quotes(&run, &Draft { quote: Some(parent), ..reply });
    fill_conversations(&run, &ann);
    fill_feeds(&run, &ann, &bob);
    run(Command::MuteThread { user: ann.clone(), post: parent, on: true });
    let (user, other) = (bob.clone(), ann.clone());
    let with = FollowWith { user, other, boosts: Some(false), notify: Some(true) };
    run(Command::FollowWith(Box::new(with)));
    for (user, reaction) in Reaction::ALL
        .map(|reaction| (if reaction == Reaction::Pin { &ann } else { &bob }, reaction))
    {
        run(Command::React { user: user.clone(), post: parent, reaction, on: true });
    }
    let life = Lifetime::from_secs(600_000).unwrap();
    let story = run(Command::PostStory { author: ann, text: text("once"), life });
    let feed::Done::StoryPosted { story, .. } = story else { panic!("{story:?}") };
    run(Command::ViewStory { story, viewer: bob });
    let (set, label) = (SetName::digits(), Label::parse("7").unwrap());
    run(Command::AddSample { set, label, bits: Box::new([5; 128].into()) });
    run(Command::DeleteUser { user: cyd });
    node.do_due();
    let (bucket, key, value) = (BucketId(16), Bytes::new(b"key"), Bytes::new(b"value"));
    let (expiry, only) = (Expiry::In(600_000_000), Only::Always);
    let ops: KeyOps = [
        KeyOp::Create { name: BucketName::parse("b").unwrap() },
        KeyOp::Put { bucket, key, value, expiry, only, old: false },
    ]
    .into_iter()
    .collect();
    runtime.block_on(node.submit_keys(ops, Vec::new())).unwrap();
    node.close();
}

/// Stores a feed, and makes a user not interested in another.
fn fill_feeds(run: &dyn Fn(Command) -> feed::Done, user: &UserRef, other: &UserRef) {
    let definition = r#"{"sources":{"popular":5},"score":"likes","per_author_max":0,"explore":0.0,"names_users":true}"#;
    let definition = Some(FeedDefinition::parse(definition).unwrap());
    run(Command::SetFeed { name: FeedName::parse("mine").unwrap(), definition });
    run(Command::NotInterested { user: user.clone(), other: other.clone(), on: true });
}

/// Publishes a quote, and another one that is revoked.
fn fill_quotes(run: &dyn Fn(Command) -> feed::Done, draft: &Draft) {
    run(Command::Publish(Box::new(draft.clone())));
    let revoked = Draft { quote_policy: QuotePolicy::Followers, ..draft.clone() };
    let done = run(Command::Publish(Box::new(revoked)));
    let feed::Done::Posted(revoked) = done else { panic!("{done:?}") };
    run(Command::edit(revoked, Patch { revoke_quote: true, ..Patch::default() }));
}

/// Adds a direct post whose conversation is removed.
fn fill_conversations(run: &dyn Fn(Command) -> feed::Done, user: &UserRef) {
    let direct = Draft::new(user.clone(), PostText::parse("hello @bob, between us").unwrap());
    let direct = Draft { visibility: Visibility::Direct, ..direct };
    let done = run(Command::Publish(Box::new(direct)));
    let feed::Done::Posted(first) = done else { panic!("{done:?}") };
    let mark = ConversationMark { first, read: first, is_removed: true };
    let update = ConversationUpdate { user: user.clone(), mark };
    run(Command::Conversation(Box::new(update)));
}

/// Adds a filter with a keyword.
fn fill_filters(run: &dyn Fn(Command) -> feed::Done, user: &UserRef) {
    let text = FilterText::parse("a keyword").unwrap();
    let new = NewFilter {
        title: text.clone(),
        contexts: FilterContexts::new([FilterContext::Home, FilterContext::Thread]).unwrap(),
        action: FilterAction::Hide,
        expires: FilterTime::from_secs(600).ok(),
        keywords: vec![Keyword { text, whole_word: true }],
    };
    let change = FilterChange::Create(new);
    run(Command::Filter(Box::new(FilterCommand { user: user.clone(), change })));
}

fn picture(owner: &UserRef, profile: Option<ProfilePicture>) -> NewMedia {
    let file = |byte| MediaFile {
        hash: FileHash([byte; 32]),
        bytes: 7,
        is_png: byte == 1,
        width: 3,
        height: 4,
    };
    NewMedia {
        owner: owner.clone(),
        key: MediaKey([5; 16]),
        original: file(1),
        preview: profile.is_none().then(|| file(2)),
        blurhash: BlurHash::parse("U00").unwrap(),
        description: Description::parse("a cat").unwrap(),
        focus: Some(Focus::new(0.25, -1.0).unwrap()),
        profile,
    }
}

/// Adds an avatar, and a post with a picture and no text.
fn fill_media(run: &dyn Fn(Command) -> feed::Done, user: &UserRef) {
    run(Command::Media(MediaCommand::Add(Box::new(picture(user, Some(ProfilePicture::Avatar))))));
    let done = run(Command::Media(MediaCommand::Add(Box::new(picture(user, None)))));
    let feed::Done::Media(MediaDone::Added(media)) = done else { panic!("{done:?}") };
    let content = Content { media: vec![media], ..Content::default() };
    run(Command::Publish(Box::new(Draft::of(user.clone(), content))));
}

/// Adds a poll with a vote, one that an edit added, and a scheduled post with a poll.
fn fill_polls(run: &dyn Fn(Command) -> feed::Done, user: &UserRef, voter: &UserRef) {
    let poll = |options| NewPoll {
        options: PollOptions::parse(options).unwrap(),
        multiple: true,
        hide_totals: true,
        time: PollTime::from_secs(POLL_SECS_MAX).unwrap(),
    };
    let post = Draft::new(user.clone(), PostText::parse("well?").unwrap());
    let new = Draft { poll: Some(poll(["yes", "no"])), ..post.clone() };
    let done = run(Command::Publish(Box::new(new)));
    let feed::Done::Posted(asked) = done else { panic!("{done:?}") };
    let poll = Some(poll(["up", "down"]));
    let patch = Patch::of_text(PostText::parse("so?").unwrap());
    run(Command::edit(asked, Patch { poll: Some(poll.clone()), ..patch }));
    let choices = PollChoices::new([0, 1]).unwrap();
    run(Command::Vote { user: voter.clone(), post: asked, choices });
    let scheduled = ScheduledPost {
        draft: Draft {
            content: Content { sensitive: true, ..post.content },
            parent: Some(asked),
            opens_reply: true,
            poll,
            quote: Some(asked),
            quote_policy: QuotePolicy::Nobody,
            ..post
        },
        due_ms: asked.unix_ms() + SCHEDULED_MS_MAX - 1_000_000,
    };
    run(Command::Schedule(ScheduleCommand::Create(Box::new(scheduled))));
}

/// Adds a list with a member.
fn fill_lists(run: &dyn Fn(Command) -> feed::Done, user: &UserRef, other: UserId) {
    let change = |change| run(Command::List(Box::new(ListCommand { user: user.clone(), change })));
    let (title, replies) = (ListTitle::parse("a list").unwrap(), ListReplies::None);
    let done = change(ListChange::Create(List { title, replies }));
    let feed::Done::ListSaved(list) = done else { panic!("{done:?}") };
    change(ListChange::Add { list, users: vec![other] });
}

/// Adds an account, an invite, a used and an unused app, and a code.
fn fill_accounts(run: &dyn Fn(AccountCommand) -> feed::Done, user: &UserRef) {
    let secret = |byte| SecretHash([byte; 32]);
    let password = PasswordHash::parse("$argon2id$v=19$m=8,t=1,p=1$c2FsdA$aGFzaA").unwrap();
    let (email, role) = (Some(Email::parse("ann@example.org").unwrap()), Role::Admin);
    run(AccountCommand::Open { user: user.clone(), email, password: password.clone(), role });
    run(AccountCommand::CreateInvite { code: secret(1), uses: 1, life_secs: 1_000 });
    let scopes = AccessScopes::parse("read").unwrap();
    let app = AppRequest {
        name: AppName::parse("app").unwrap(),
        website: None,
        redirects: vec![RedirectUri::parse("https://app.example/").unwrap()],
        scopes,
        secret: secret(2),
    };
    run(AccountCommand::RegisterApp(Box::new(app.clone())));
    let done = run(AccountCommand::RegisterApp(Box::new(app)));
    let feed::Done::Account(AccountDone::AppRegistered(app)) = done else { panic!("{done:?}") };
    // The token does not expire, so nothing is due for it.
    let (user, token) = (UserId(0), secret(3));
    run(AccountCommand::GrantUser { app, user, password, scopes, token });
}

/// Returns the number of rows by tag, including those in the log.
fn rows_by_tag(data: &Path) -> BTreeMap<u8, u64> {
    let options = NodeOptions::new(data);
    let store = Store::open(&options.store_dir(), options.store()).unwrap();
    let log = LocalLog::open(Arc::new(RealDisk), &options.log_dir(), Position(store.1)).unwrap();
    let last = log.last().0;
    let mut parts =
        Parts::recover(&options, store, Box::new(log), (String::new(), Background::Threads, None))
            .unwrap();
    parts.writer.applier.rows_mut().freeze(last).unwrap().run().unwrap();
    let mut rows = BTreeMap::new();
    let count = std::cell::RefCell::new(&mut rows);
    let each = |key: &[u8], _: &[u8]| {
        *count.borrow_mut().entry(key[0]).or_insert(0) += 1;
        Ok(())
    };
    let snapshot = parts.shared.store.snapshot().unwrap().unwrap();
    snapshot.read(&mut { each }, &mut { each }).unwrap();
    rows
}

#[test]
fn every_table_is_exported_or_derived_or_left_out_for_a_reason() {
    let folder = tempfile::tempdir().unwrap();
    let [from, to] = ["from", "to"].map(|name| NodeOptions::new(folder.path().join(name)));
    fill(&from);
    let mut lines = Vec::new();
    super::export(&from, "test", &mut lines).unwrap();
    crate::import(&to, &*lines).unwrap();
    let mut again = Vec::new();
    super::export(&to, "test", &mut again).unwrap();
    let facts = |lines: &[u8]| {
        lines.split(|byte| *byte == b'\n').skip(1).map(<[u8]>::to_vec).collect::<Vec<_>>()
    };
    assert!(facts(&again) == facts(&lines), "{}", String::from_utf8_lossy(&again));
    let (before, after) = (rows_by_tag(&from.data), rows_by_tag(&to.data));
    let rows = |rows: &BTreeMap<u8, u64>, tag| rows.get(&tag).copied().unwrap_or(0);
    let docs = include_str!("../../../../docs/import.md");
    let docs: String = docs.split_whitespace().collect::<Vec<_>>().join(" ");
    for table in Table::all() {
        let (before, after) = (rows(&before, table.tag()), rows(&after, table.tag()));
        match table.transfer() {
            Transfer::Exported | Transfer::Derived => {
                assert!(before > 0, "{table:?} is empty, so this test does not see it");
                assert_eq!(after, before, "{table:?}");
            }
            Transfer::LeftOut(why) => {
                assert_eq!(after, 0, "{table:?}");
                assert!(docs.contains(why), "docs/import.md does not say {why}");
            }
            Transfer::NeverWritten => assert_eq!((before, after), (0, 0), "{table:?}"),
        }
    }
}

#[test]
fn nothing_is_due_of_what_is_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let [from, to] = ["from", "to"].map(|name| NodeOptions::new(folder.path().join(name)));
    let node = Node::open(&from).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let run = |command| {
        let reply = runtime.block_on(node.submit(Request::from(command))).unwrap();
        reply.outcome.unwrap()
    };
    let user = UserRef::Id(UserId(0));
    let handle = Handle::parse("ann").unwrap();
    run(Command::Register { handle, name: Name::default(), bio: Bio::default() });
    let password = PasswordHash::parse("$argon2id$v=19$m=8,t=1,p=1$c2FsdA$aGFzaA").unwrap();
    let (email, role) = (None, Role::User);
    let (owner, hash) = (user.clone(), password.clone());
    run(Command::Account(AccountCommand::Open { user: owner, email, password: hash, role }));
    let session = SecretHash([9; 32]);
    run(Command::Account(AccountCommand::LogIn { user: UserId(0), password, session }));
    let done = run(Command::Media(MediaCommand::Add(Box::new(picture(&user, None)))));
    let feed::Done::Media(MediaDone::Added(_)) = done else { panic!("{done:?}") };
    let due = |node: &Node| node.facts().first_due(0, None, 9);
    assert_eq!(due(&node).len(), 2, "a picture that is not attached, and a session");
    node.close();
    drop(node);
    let mut lines = Vec::new();
    super::export(&from, "test", &mut lines).unwrap();
    crate::import(&to, &*lines).unwrap();
    assert_eq!(due(&Node::open(&to).unwrap()), []);
}
