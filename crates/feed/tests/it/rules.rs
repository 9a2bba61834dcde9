//! Rules as tables: the outcome of each command and the rows after it.

use crate::support;
use crate::support::{
    DAY_MS, World, befriend, edit_user, follow, handle, id, post, post_story, register, unfollow,
    unfriend, view,
};
use feed::feeds::{FeedDefinition, FeedName};
use feed::quotes::QuotePolicy;
use feed::{
    Bio, Command, Condition, Conditional, Content, Counts, Done, Draft, DueWork, Effect,
    ErasurePhase, Handle, Idempotency, Input, Label, Language, Lifetime, Listed, Name, Patch, Post,
    PostChange, PostDefaults, PostId, PostText, ProfileFields, Reaction, Refusal, Request,
    Revision, SampleId, SetName, StampedCommand, StoryId, Txn, User, UserEdit, UserId, UserRef,
    Visibility, apply, limits,
};
use rows::{Rows, SetTable, Span, Stamp, Table};

#[test]
fn a_refused_command_changes_nothing() {
    let edit = |user| edit_user(UserEdit::new(user));
    for (command, refusal) in [
        (register("ada"), Refusal::HandleTaken),
        (register("ADA"), Refusal::HandleTaken),
        (follow(id(0), id(0)), Refusal::SelfFollow),
        (follow(id(0), handle("ada")), Refusal::SelfFollow),
        (follow(id(0), id(3)), Refusal::OtherNotFound),
        (follow(id(3), id(0)), Refusal::UserNotFound),
        (follow(handle("nobody"), id(0)), Refusal::UserNotFound),
        (unfollow(id(0), id(0)), Refusal::SelfFollow),
        (unfollow(id(0), id(9)), Refusal::OtherNotFound),
        (post(3, "hi"), Refusal::UserNotFound),
        (edit(id(7)), Refusal::UserNotFound),
        (Command::DeletePost { post: PostId(5) }, Refusal::PostNotFound),
        (befriend(id(0), id(0)), Refusal::SelfFriend),
        (befriend(handle("ada"), id(0)), Refusal::SelfFriend),
        (befriend(id(0), id(3)), Refusal::OtherNotFound),
        (befriend(handle("nobody"), id(0)), Refusal::UserNotFound),
        (unfriend(id(0), id(0)), Refusal::SelfFriend),
        (unfriend(id(9), id(0)), Refusal::UserNotFound),
        (post_story(3, "hi", 10), Refusal::UserNotFound),
        (Command::DeleteStory { story: StoryId(5) }, Refusal::StoryNotFound),
        (view(StoryId(5), 0), Refusal::StoryNotFound),
        (view(StoryId(5), 3), Refusal::UserNotFound),
        (support::not_interested(0, 0, true), Refusal::SelfNotInterested),
        (support::not_interested(0, 9, true), Refusal::OtherNotFound),
        (support::not_interested(9, 0, false), Refusal::UserNotFound),
    ] {
        let mut world = World::new();
        let before = world.snapshot();
        assert_eq!(world.run(command.clone()), Err(refusal), "{command:?}");
        assert_eq!(world.snapshot(), before, "{command:?}");
        assert_eq!(world.effects, [], "{command:?}");
    }
}

#[test]
fn following_counts_both_ways_once_and_unfollowing_undoes_it() {
    let mut world = World::new();
    for (command, done, following, followers, effects) in [
        (follow(id(0), id(1)), Done::Followed, 1, 1, 2),
        (follow(handle("ada"), handle("BOB")), Done::Followed, 1, 1, 0),
        (unfollow(id(0), id(1)), Done::Unfollowed, 0, 0, 1),
        (unfollow(id(0), id(1)), Done::Unfollowed, 0, 0, 0),
    ] {
        assert_eq!(world.run(command.clone()), Ok(done), "{command:?}");
        assert_eq!(world.facts().counts(UserId(0)), Counts { following, ..Counts::default() });
        assert_eq!(world.facts().counts(UserId(1)), Counts { followers, ..Counts::default() });
        assert_eq!(world.rows.totals().follows, u64::from(following));
        assert_eq!(world.effects.len(), effects, "{command:?}");
        let follows = following == 1;
        assert_eq!(world.facts().follows(UserId(0), UserId(1)), follows);
        let followers = world.facts().users_in(SetTable::Followers, UserId(1), Span::ALL);
        assert_eq!(followers.contains(&UserId(0)), follows);
    }
}

#[test]
fn befriending_counts_on_both_sides_once_and_unfriending_undoes_it() {
    let mut world = World::new();
    for (command, done, friends, effects) in [
        (befriend(id(0), id(1)), Done::Befriended, 1, 2),
        (befriend(handle("bob"), handle("ADA")), Done::Befriended, 1, 0),
        (unfriend(id(1), id(0)), Done::Unfriended, 0, 2),
        (unfriend(id(0), id(1)), Done::Unfriended, 0, 0),
    ] {
        assert_eq!(world.run(command.clone()), Ok(done), "{command:?}");
        assert_eq!(world.rows.totals().friendships, u64::from(friends));
        assert_eq!(world.effects.len(), effects, "{command:?}");
        for (user, other) in [(UserId(0), UserId(1)), (UserId(1), UserId(0))] {
            assert_eq!(world.facts().counts(user), Counts { friends, ..Counts::default() });
            assert_eq!(world.facts().are_friends(user, other), friends == 1, "{command:?}");
            let all = world.facts().friends_all(user);
            assert_eq!(all, if friends == 1 { vec![other] } else { vec![] }, "{command:?}");
        }
    }
}

#[test]
fn interest_in_an_author_is_lost_and_found_once_and_blocks_do_not_end_that() {
    let mut world = World::new();
    for (command, done, not_interested) in [
        (support::not_interested(0, 1, true), Done::InterestSet, 1),
        (support::not_interested(0, 1, true), Done::InterestSet, 1),
        (support::block(id(1), id(0)), Done::Blocked, 1),
        (support::not_interested(0, 1, false), Done::InterestSet, 0),
        (support::not_interested(0, 1, false), Done::InterestSet, 0),
    ] {
        assert_eq!(world.run(command.clone()), Ok(done), "{command:?}");
        let expect = Counts { not_interested, ..Counts::default() };
        assert_eq!(world.facts().counts(UserId(0)), expect, "{command:?}");
        let authors = world.facts().not_interested(UserId(0));
        assert_eq!(authors, [UserId(1)][..not_interested as usize], "{command:?}");
    }
}

#[test]
fn a_stored_feed_is_replaced_and_deleted_and_their_number_is_bounded() {
    let set = |number: usize, text: Option<&str>| Command::SetFeed {
        name: FeedName::parse(&format!("f{number}")).unwrap(),
        definition: text.map(|text| FeedDefinition::parse(text).unwrap()),
    };
    let mut world = World::new();
    let before = world.snapshot();
    for number in 0..limits::STORED_FEEDS_MAX {
        assert_eq!(world.run(set(number, Some("{}"))), Ok(Done::FeedSet));
    }
    let name = FeedName::parse("f7").unwrap();
    for (command, outcome, stored) in [
        (set(99, Some("{}")), Err(Refusal::TooManyFeeds), Some("{}")),
        (set(7, Some("new")), Ok(Done::FeedSet), Some("new")),
        (set(7, None), Ok(Done::FeedSet), None),
        (set(7, None), Ok(Done::FeedSet), None),
        (set(99, Some("{}")), Ok(Done::FeedSet), None),
    ] {
        assert_eq!(world.run(command.clone()), outcome, "{command:?}");
        let found = world.facts().stored_feed(&name);
        assert_eq!(found.as_ref().map(FeedDefinition::as_str), stored, "{command:?}");
        assert_eq!(world.effects, [], "{command:?}");
    }
    assert_eq!(world.facts().stored_feeds().len(), limits::STORED_FEEDS_MAX);
    for number in 0..100 {
        world.run(set(number, None)).unwrap();
    }
    assert!(world.snapshot() == before, "rows are left");
}

/// Sets the counts of a user without adding rows.
fn count(world: &mut World, user: u32, change: impl FnOnce(&mut Counts)) {
    Txn::new(&mut world.rows).count(UserId(user), change);
}

#[test]
fn a_user_at_a_limit_cannot_follow_befriend_or_post() {
    let (follows, friends) = (limits::FOLLOWING_MAX, limits::FRIENDS_MAX);
    let full = |counts: &mut Counts| {
        *counts = Counts { following: follows, friends, posts: limits::USER_POSTS_MAX, ..*counts };
        counts.not_interested = limits::NOT_INTERESTED_MAX;
    };
    for (command, refusal) in [
        (follow(id(0), id(1)), Refusal::TooManyFollows),
        (befriend(id(0), id(1)), Refusal::TooManyFriends),
        (befriend(id(1), id(0)), Refusal::TooManyFriends),
        (post(0, "one too many"), Refusal::TooManyPosts),
        (support::not_interested(0, 1, true), Refusal::TooManyNotInterested),
    ] {
        let mut world = World::new();
        count(&mut world, 0, full);
        let before = world.snapshot();
        assert_eq!(world.run(command.clone()), Err(refusal), "{command:?}");
        assert_eq!(world.snapshot(), before, "{command:?}");
        assert_eq!(world.effects, [], "{command:?}");
        count(&mut world, 0, |counts| {
            counts.following -= 1;
            counts.friends -= 1;
            counts.posts -= 1;
            counts.not_interested -= 1;
        });
        assert!(world.run(command.clone()).is_ok(), "one below the limit: {command:?}");
    }
}

#[test]
fn existing_relations_at_a_limit_stay_and_may_be_repeated() {
    let mut world = World::new();
    world.run(follow(id(0), id(1))).unwrap();
    world.run(befriend(id(0), id(1))).unwrap();
    count(&mut world, 0, |counts| {
        counts.following = limits::FOLLOWING_MAX;
        counts.friends = limits::FRIENDS_MAX;
    });
    for (command, done) in [
        (follow(id(0), id(1)), Done::Followed),
        (befriend(id(1), id(0)), Done::Befriended),
        // The limit is on the followed users, not on followers.
        (follow(id(1), id(0)), Done::Followed),
        (unfollow(id(0), id(1)), Done::Unfollowed),
        (follow(id(0), id(2)), Done::Followed),
        (unfriend(id(0), id(1)), Done::Unfriended),
        (befriend(id(0), id(2)), Done::Befriended),
    ] {
        assert_eq!(world.run(command.clone()), Ok(done), "{command:?}");
    }
    assert_eq!(world.run(follow(id(0), id(1))), Err(Refusal::TooManyFollows));
    assert_eq!(world.run(befriend(id(0), id(1))), Err(Refusal::TooManyFriends));
}

#[test]
fn many_are_followed_or_none() {
    let many = |others: &[UserRef]| Command::FollowMany { user: id(0), others: others.to_vec() };
    for (others, outcome) in [
        (vec![], Ok(Done::Followed)),
        (vec![id(1), handle("cy"), id(1)], Ok(Done::Followed)),
        (vec![id(1), id(99)], Err(Refusal::OtherNotFound)),
        (vec![id(1), handle("nobody")], Err(Refusal::OtherNotFound)),
        (vec![id(1), handle("ada")], Err(Refusal::SelfFollow)),
    ] {
        let mut world = World::new();
        let mut one_by_one = World::new();
        let before = world.snapshot();
        assert_eq!(world.run(many(&others)), outcome, "{others:?}");
        if outcome.is_err() {
            assert_eq!(world.snapshot(), before, "{others:?}");
            assert_eq!(world.effects, [], "{others:?}");
            continue;
        }
        let mut effects = Vec::new();
        for other in &others {
            one_by_one.run(follow(id(0), other.clone())).unwrap();
            effects.append(&mut one_by_one.effects);
        }
        // One effect for any number of follows.
        let expected = (!effects.is_empty())
            .then_some(Effect::Input { user: UserId(0), input: Input::Follows });
        assert_eq!(world.effects, Vec::from_iter(expected), "{others:?}");
        for user in 0..3 {
            let [one, other] =
                [&world, &one_by_one].map(|world| world.facts().counts(UserId(user)));
            assert_eq!(one, other, "{others:?}");
        }
        assert_eq!(world.run(many(&others)), Ok(Done::Followed), "a repetition changes nothing");
        assert_eq!(world.facts().totals().follows, one_by_one.facts().totals().follows);
    }
    let mut world = World::new();
    count(&mut world, 0, |counts| counts.following = limits::FOLLOWING_MAX - 1);
    assert_eq!(world.run(many(&[id(1), id(2)])), Err(Refusal::TooManyFollows));
    assert_eq!(world.run(many(&[id(1), id(1)])), Ok(Done::Followed));
}

#[test]
fn counts_take_bytes_only_where_there_are_any() {
    let counts = Counts { posts: 1, followers: 2, following: 3, friends: 4, ..Counts::default() };
    let bytes = counts.encode();
    assert_eq!((Counts::decode(&bytes), bytes.len()), (counts, 16));
    assert_eq!(Counts::try_decode(&bytes[..12]), None);
    for counts in [Counts { blocks: 5, ..counts }, Counts { mutes: 6, ..counts }] {
        assert_eq!(Counts::decode(&counts.encode()), counts);
    }
}

#[test]
fn rows_of_posts_take_bytes_only_for_what_they_have() {
    for reply_to in [None, Some(UserId(700))] {
        for text in ["a", "\u{e9}t\u{e9}".repeat(150).as_str()] {
            let content = Content::of_text(PostText::parse(text).unwrap());
            let mentions = vec![UserId(700)];
            let post = Post { reply_to, mentions, ..Post::of(UserId(300), content) };
            // Number of fields, author, number of parts of the content, and tag and length of the text and of the list
            // of mentions.
            let reply = if reply_to.is_some() { 4 } else { 0 };
            let len_len = if text.len() > 127 { 2 } else { 1 };
            let len = 1 + 2 + 1 + 1 + len_len + text.len() + reply + 1 + 1 + 2;
            assert_eq!(rows::encode(&post).len(), len);
            for (conversation, thread) in [(Some(PostId(9)), None), (None, Some(PostId(9)))] {
                let post = Post { conversation, thread, ..post.clone() };
                assert_eq!(rows::decode::<Post>(&rows::encode(&post)), post);
            }
        }
    }
}

#[test]
fn a_post_mentions_each_user_once_and_by_the_report_of_2014_replies_to_the_one_at_its_start() {
    for (text, reply_to, mentions) in [
        ("plain", None, vec![]),
        ("@bob hello", Some(1), vec![1]),
        ("@nobody @bob hello", None, vec![1]),
        ("hello @bob and @cy and @BOB", None, vec![1, 2]),
        ("@bob @cy", Some(1), vec![1, 2]),
        ("@ada to myself", Some(0), vec![0]),
        ("  @cy trimmed first", Some(2), vec![2]),
        ("mail ada@bob", None, vec![]),
    ] {
        let mut world = World::new();
        let id = world.post(0, text);
        let post = world.facts().post(id).unwrap();
        let mentions: Vec<_> = mentions.into_iter().map(UserId).collect();
        assert_eq!((post.reply_to, &post.mentions), (reply_to.map(UserId), &mentions), "{text:?}");
        // Self-mentions notify nobody.
        let others: Vec<_> = mentions.into_iter().filter(|user| *user != UserId(0)).collect();
        for user in (0..3).map(UserId) {
            let found = world.facts().mentions_of(user, Span::ALL);
            assert_eq!(found.contains(&id), others.contains(&user), "{text:?}");
            assert_eq!(
                world.notices(user.0).len(),
                usize::from(others.contains(&user)),
                "{text:?}"
            );
        }
        let (author, listed, users) = (UserId(0), post.listed(), None);
        let change = PostChange::Published;
        let posted = Effect::Post { post: id, author, listed, users, change };
        assert_eq!(world.effects[0], posted);
        assert_eq!(world.effects.len(), 1 + others.len());
    }
}

#[test]
fn a_text_alone_makes_no_post_a_reply() {
    for text in ["@bob hello", "@bob", "hello @bob"] {
        let mut world = World::new();
        let new = Draft::new(id(0), PostText::parse(text).unwrap());
        world.run(Command::Publish(Box::new(new))).unwrap();
        let (posts, _) = world.facts().posts_before(PostId(u64::MAX), 1);
        let (post, listed) = posts[0].posted;
        assert_eq!(listed.reply_to(), None, "{text:?}");
        assert_eq!(world.facts().mentions_of(UserId(1), Span::ALL), [post], "{text:?}");
    }
}

#[test]
fn a_direct_post_is_for_nobody_whom_it_only_seems_to_mention() {
    for text in [
        "https://medium.example/@bob/x",
        "https://medium.example/?x=@bob",
        "blog.example/@bob",
        "x=@bob",
        "@bob@elsewhere.example",
        "@bob.social.example",
        "@bob-x",
        "@bob/tools",
        "@bob:matrix.example",
        "ada@bob.example",
    ] {
        let mut world = World::new();
        let new = Draft::new(id(0), PostText::parse(text).unwrap());
        let new = Draft { visibility: Visibility::Direct, ..new };
        let Ok(Done::Posted(post)) = world.run(Command::Publish(Box::new(new))) else {
            panic!("{text:?}")
        };
        let post = world.facts().post(post).unwrap();
        let viewer = feed::Viewer::new(world.facts(), Some(UserId(1)));
        assert!(
            !viewer.visible(&post) && world.facts().mentions_of(UserId(1), Span::ALL).is_empty(),
            "{text:?}"
        );
        assert_eq!((post.reply_to, world.notices(1)), (None, vec![]), "{text:?}");
        assert_eq!(world.effects.len(), 1, "{text:?}");
    }
}

#[test]
fn deleting_a_post_removes_all_its_rows_once() {
    let mut world = World::new();
    let before = world.snapshot();
    let id = world.post(0, "@bob and @cy");
    let delete = Command::DeletePost { post: id };
    assert_eq!(world.run(delete.clone()), Ok(Done::Deleted));
    let listed = Listed::new(Some(UserId(1)), Visibility::Public);
    let (author, change) = (UserId(0), PostChange::Deleted);
    let gone = |user| Effect::Mention { post: id, author, user: UserId(user), change };
    let deleted = Effect::Post { post: id, author, listed, users: None, change };
    assert_eq!(world.effects, [deleted, gone(1), gone(2)]);
    assert_eq!(world.run(delete), Err(Refusal::PostNotFound));
    assert_eq!(world.rows.totals().posts, 0);
    assert_eq!(world.facts().post(id), None);
    assert_eq!(world.facts().posts_by(UserId(0), Span::ALL), []);
    assert_eq!(world.facts().mentions_of(UserId(1), Span::ALL), []);
    assert_eq!(world.facts().counts(UserId(0)), Counts::default());
    // Only the row of the author's counts may differ: it is zero now.
    assert_eq!(before.totals().users, world.rows.totals().users);
}

#[test]
fn an_edit_changes_only_the_given_fields() {
    let mut world = World::new();
    let name = Name::parse("Ada L.").unwrap();
    let bio = Bio::parse("counts").unwrap();
    for (edit, expect) in [
        ((Some(name.clone()), None), ("Ada L.", "")),
        ((None, Some(bio)), ("Ada L.", "counts")),
        ((Some(name), None), ("Ada L.", "counts")),
        ((None, None), ("Ada L.", "counts")),
    ] {
        let (name, bio) = edit;
        world.run(edit_user(UserEdit { name, bio, ..UserEdit::new(id(0)) })).unwrap();
        let user = world.facts().user(UserId(0)).unwrap();
        assert_eq!((user.name.as_str(), user.bio.as_str()), expect);
    }
}

#[test]
fn settings_are_changed_one_by_one_and_stay_when_others_change() {
    let fields = ProfileFields::parse([("Web", "https://a.example"), ("Pronouns", "")]).unwrap();
    let language = Language::parse("de").ok();
    let none = UserEdit::new(id(0));
    let (fields, private) = (Some(fields), Some(Visibility::Followers));
    let mut world = World::new();
    let mut expect = world.facts().user(UserId(0)).unwrap();
    type Change = fn(&mut User);
    let edits: [(UserEdit, Change); 11] = [
        (UserEdit { fields: fields.clone(), ..none.clone() }, |_| {}),
        (UserEdit { bot: Some(true), ..none.clone() }, |user| user.bot = true),
        (UserEdit { discoverable: Some(false), ..none.clone() }, |user| user.undiscoverable = true),
        (UserEdit { indexable: Some(true), ..none.clone() }, |user| user.indexable = true),
        (UserEdit { visibility: private, ..none.clone() }, |user| {
            user.defaults.visibility = Visibility::Followers;
        }),
        (UserEdit { sensitive: Some(true), ..none.clone() }, |user| user.defaults.sensitive = true),
        (UserEdit { quote_policy: Some(QuotePolicy::Nobody), ..none.clone() }, |user| {
            user.defaults.quote_policy = QuotePolicy::Nobody;
        }),
        (UserEdit { language: Some(language), ..none.clone() }, |user| {
            user.defaults.language = Language::parse("de").ok();
        }),
        (UserEdit { discoverable: Some(true), ..none.clone() }, |user| user.undiscoverable = false),
        (UserEdit { language: Some(None), ..none.clone() }, |user| user.defaults.language = None),
        (none, |_| {}),
    ];
    for (edit, change) in edits {
        expect.fields = edit.fields.clone().unwrap_or(expect.fields);
        change(&mut expect);
        assert_eq!(world.run(edit_user(edit.clone())), Ok(Done::Edited(UserId(0))));
        assert_eq!(world.facts().user(UserId(0)), Some(expect.clone()), "{edit:?}");
        assert_eq!(world.effects, [], "{edit:?}");
    }
    assert_eq!(expect.fields.as_slice().len(), 2);
}

#[test]
fn a_row_of_a_user_takes_bytes_only_for_settings_that_there_are() {
    let user = User::of(Handle::parse("ada").unwrap(), Stamp(7));
    let row = [2, 3, b'a', b'd', b'a', 7];
    assert_eq!(rows::encode(&user).as_slice(), row);
    assert_eq!(
        (rows::decode::<User>(&row), rows::try_decode::<User>(&row)),
        (user.clone(), Some(user.clone()))
    );
    assert_eq!(rows::try_decode::<User>(&row[..2]), None);
    assert_eq!(
        rows::try_decode::<User>(&[4, 3, b'a', b'd', b'a', 7, 99, 1]),
        None,
        "an unknown part"
    );
    let fields = ProfileFields::parse([("a", "")]).unwrap();
    let language = Language::parse("de").ok();
    for user in [
        User { fields: fields.clone(), ..user.clone() },
        User { bot: true, ..user.clone() },
        User { fields, defaults: PostDefaults { language, ..PostDefaults::default() }, ..user },
    ] {
        assert_eq!(rows::decode::<User>(&rows::encode(&user)), user);
    }
}

#[test]
fn a_retry_with_the_same_idempotency_key_returns_the_first_result() {
    let key = |key, content| Some(Idempotency { key: [key; 16], content: [content; 8] });
    let mut world = World::new();
    let first = world.apply(post(0, "once"), key(1, 1));
    let again = world.apply(post(0, "once"), key(1, 1));
    assert_eq!((first.replayed, again.replayed), (false, true));
    assert_eq!(first.outcome, again.outcome);
    assert_eq!(world.rows.totals().posts, 1);
    let other = world.apply(post(0, "twice"), key(1, 2));
    assert_eq!(other.outcome, Err(Refusal::KeyReused));
    assert!(!world.apply(post(0, "once"), key(2, 1)).replayed);
    assert_eq!(world.rows.totals().posts, 2);
}

#[test]
fn a_refused_command_does_not_use_up_its_key() {
    let key = Some(Idempotency { key: [7; 16], content: [7; 8] });
    let mut world = World::new();
    assert_eq!(world.apply(follow(id(0), id(3)), key).outcome, Err(Refusal::OtherNotFound));
    world.run(register("dot")).unwrap();
    assert_eq!(world.apply(follow(id(0), id(3)), key).outcome, Ok(Done::Followed));
}

#[test]
fn a_condition_of_a_change_is_the_author_and_the_revision_at_its_time() {
    let mut world = World::new();
    let (first, story) = (world.post(0, "first"), world.post_story(0, 60));
    let edit = |text: &str| {
        let patch = Box::new(Patch::of_text(PostText::parse(text).unwrap()));
        Conditional::Edit { post: first, patch }
    };
    let bio = |text: &str| {
        let bio = Some(Bio::parse(text).unwrap());
        Conditional::EditUser(Box::new(UserEdit { bio, ..UserEdit::new(id(0)) }))
    };
    let only = |author: Option<u32>, revision: Option<Revision>, change| {
        let (author, revisions) = (author.map(id), revision.map(|revision| vec![revision]));
        Command::If(Box::new(Condition { author, revisions, change }))
    };
    let of_post = |world: &World| world.facts().post_revision(first);
    let of_user = |world: &World| world.facts().user_revision(UserId(0));
    let (old_post, old_user) = (of_post(&world), of_user(&world));
    let stale = Err(Refusal::PreconditionFailed);

    // Actions of other users, and edits that change nothing, leave the revisions unchanged.
    world.run(follow(id(1), id(0))).unwrap();
    world
        .run(Command::React { user: id(1), post: first, reaction: Reaction::Favourite, on: true })
        .unwrap();
    world.run(edit("first").into()).unwrap();
    assert_eq!((of_post(&world), of_user(&world)), (old_post, old_user));

    let refused = |world: &mut World, command, refusal| {
        let before = world.snapshot();
        assert_eq!(world.run(command), refusal);
        assert_eq!(world.snapshot(), before);
    };
    refused(&mut world, only(Some(1), old_post, edit("x")), Err(Refusal::PostNotFound));
    refused(&mut world, only(Some(9), old_post, edit("x")), Err(Refusal::UserNotFound));
    refused(&mut world, only(Some(0), Some(Revision(0)), edit("x")), stale);
    refused(&mut world, only(None, Some(Revision(0)), bio("x")), stale);
    let delete = Conditional::DeleteStory { story };
    refused(&mut world, only(Some(1), None, delete.clone()), Err(Refusal::StoryNotFound));
    refused(&mut world, only(Some(0), Some(Revision(0)), delete.clone()), stale);

    assert_eq!(world.run(only(Some(0), old_post, edit("second"))), Ok(Done::PostEdited));
    assert_eq!(world.run(only(None, old_user, bio("second"))), Ok(Done::Edited(UserId(0))));
    refused(&mut world, only(Some(0), old_post, edit("third")), stale);
    refused(&mut world, only(Some(0), old_post, Conditional::DeletePost { post: first }), stale);
    refused(&mut world, only(None, old_user, bio("third")), stale);
    let user = of_user(&world);
    world.run(support::lock(0, true)).unwrap();
    refused(&mut world, only(None, user, bio("third")), stale);
    let revision = world.facts().story_revision(story);
    assert_eq!(world.run(only(Some(0), revision, delete.clone())), Ok(Done::StoryDeleted));
    refused(&mut world, only(Some(0), Some(Revision(0)), delete), Err(Refusal::StoryNotFound));
    let post = of_post(&world);
    assert_eq!(
        world.run(only(Some(0), post, Conditional::DeletePost { post: first })),
        Ok(Done::Deleted)
    );
}

#[test]
fn revisions_change_with_what_everybody_may_read_alone() {
    let mut world = World::new();
    let post = world.post(0, "for all");
    let own = |edit: fn(&mut UserEdit)| {
        let mut changed = UserEdit::new(id(0));
        edit(&mut changed);
        edit_user(changed)
    };
    let of_user = |world: &World| world.facts().user_revision(UserId(0)).unwrap();
    let first = of_user(&world);
    for private in [
        own(|edit| edit.visibility = Some(Visibility::Direct)),
        own(|edit| edit.sensitive = Some(true)),
        own(|edit| edit.language = Some(Language::parse("de").ok())),
    ] {
        world.run(private).unwrap();
        assert_eq!(of_user(&world), first, "nobody else sees that a setting changed");
    }
    let mut known = vec![first];
    for public in [
        own(|edit| edit.name = Some(Name::parse("Ada").unwrap())),
        own(|edit| edit.bio = Some(Bio::parse("Ada").unwrap())),
        own(|edit| edit.fields = Some(ProfileFields::parse([("a", "b")]).unwrap())),
        own(|edit| edit.bot = Some(true)),
        own(|edit| edit.discoverable = Some(false)),
        own(|edit| edit.indexable = Some(true)),
        own(|edit| edit.locked = Some(true)),
    ] {
        world.run(public).unwrap();
        assert!(!known.contains(&of_user(&world)));
        known.push(of_user(&world));
    }
    let of_post = |world: &World| world.facts().post_revision(post).unwrap();
    let mut known = vec![of_post(&world)];
    for patch in [
        Patch::of_text(PostText::parse("new").unwrap()),
        Patch { quote_policy: Some(QuotePolicy::Nobody), ..Patch::default() },
    ] {
        world.run(Command::edit(post, patch)).unwrap();
        assert!(!known.contains(&of_post(&world)));
        known.push(of_post(&world));
    }
}

#[test]
fn keys_are_kept_for_a_day_and_swept_afterwards() {
    let key = |n: u32| {
        let mut key = [0; 16];
        key[..4].copy_from_slice(&n.to_be_bytes());
        Some(Idempotency { key, content: [0; 8] })
    };
    let mut world = World::new();
    for n in 0..10 {
        world.apply(post(0, "x"), key(n));
    }
    world.now_ms += DAY_MS;
    assert!(world.apply(post(0, "x"), key(3)).replayed, "a day later the key still counts");
    world.now_ms += 2 * DAY_MS;
    assert!(!world.apply(post(0, "x"), key(3)).replayed, "days later it does not");
    for n in 100..110 {
        world.apply(post(0, "x"), key(n));
    }
    let first = world.rows.first_name(rows::NameTable::Idempotency, &[]).unwrap();
    let oldest = u32::from_be_bytes(first[..4].try_into().unwrap());
    assert_eq!(oldest, (world.now_ms / DAY_MS) as u32, "only today's keys are left");
}

#[test]
#[should_panic(expected = "stamps rise")]
fn a_log_out_of_order_is_a_bug() {
    let mut world = World::new();
    let entry = StampedCommand { stamp: Stamp(1), idempotency: None, command: register("late") };
    apply(&mut Txn::new(&mut world.rows), &entry, &mut Vec::new());
}

#[test]
fn entries_survive_their_bytes() {
    for command in [
        register("ada"),
        Command::EditUser(Box::new(UserEdit {
            bio: Some(Bio::parse("b").unwrap()),
            ..UserEdit::new(id(0))
        })),
        edit_user(UserEdit {
            fields: ProfileFields::parse([("a", "b"); 4]).ok(),
            language: Some(Language::parse("de").ok()),
            bot: Some(true),
            ..UserEdit::new(handle("ada"))
        }),
        follow(id(1), handle("ada")),
        unfollow(handle("x"), id(u32::MAX)),
        post(0, "text @ada"),
        Command::DeletePost { post: PostId(u64::MAX >> 1) },
        befriend(id(1), handle("ada")),
        unfriend(handle("x"), id(2)),
        Command::PostStory {
            author: id(1),
            text: PostText::parse("text").unwrap(),
            life: Lifetime::from_secs(604_800).unwrap(),
        },
        Command::DeleteStory { story: StoryId(1) },
        view(StoryId(u64::MAX >> 1), 7),
        Command::DoDue(DueWork::RemoveStory { story: StoryId(1) }.at(7)),
        Command::AddSample {
            set: SetName::parse("letters").unwrap(),
            label: Label::parse("a").unwrap(),
            bits: Box::new(std::array::from_fn(|at| at as u8).into()),
        },
        Command::DeleteSample { sample: SampleId(u64::MAX >> 1) },
        Command::DeleteUser { user: handle("ada") },
        Command::EraseUser {
            user: UserId(7),
            phase: ErasurePhase::of(Table::Set(SetTable::Seen)),
            from: u64::MAX,
        },
        support::block(id(1), handle("ada")),
        support::unblock(handle("x"), id(2)),
        support::mute(1, 2, None),
        support::mute(1, 2, Some(315_360_000)),
        support::unmute(1, 2),
    ] {
        let idempotency = Some(Idempotency { key: [1; 16], content: [2; 8] });
        let request = Request { idempotency, command };
        let bytes = postcard::to_stdvec(&request).unwrap();
        assert_eq!(postcard::from_bytes::<Request>(&bytes).unwrap(), request);
    }
}
