//! Quotes: who may quote what, what viewers see of it, what ends it, and who is notified.

use crate::mend::mend;
use crate::support::{World, block, follow, id, mute, register, schedule};
use feed::accounts::AccountState;
use feed::limits::{EDIT_NOTICES_MAX, EDIT_NOTICES_QUIET_MS, EDIT_NOTICES_QUOTES};
use feed::quotes::{Quote, QuotePolicy};
use feed::{
    Command, Done, Draft, DueWork, Effect, Notice, NoticeKind, NotificationFilter, NotificationId,
    Page, Patch, Post, PostChange, PostId, PostText, Reaction, Refusal, SetTable, UserId, Viewer,
    Visibility,
};

const ADA: u32 = 0;
const BOB: u32 = 1;
const CY: u32 = 2;

fn draft(author: u32, text: &str) -> Draft {
    Draft::new(id(author), PostText::parse(text).unwrap())
}

impl World {
    fn try_publish(&mut self, draft: Draft) -> Result<PostId, Refusal> {
        match self.run(Command::Publish(Box::new(draft)))? {
            Done::Posted(post) => Ok(post),
            other => panic!("{other:?}"),
        }
    }

    fn quote(&mut self, author: u32, quoted: PostId) -> Result<PostId, Refusal> {
        self.try_publish(Draft { quote: Some(quoted), ..draft(author, "look") })
    }

    fn patch(&mut self, post: PostId, patch: Patch) {
        assert_eq!(self.run(Command::edit(post, patch)), Ok(Done::PostEdited));
    }

    fn revoke(&mut self, post: PostId) {
        self.patch(post, Patch { revoke_quote: true, ..Patch::default() });
    }

    /// Revokes some of the newest quotes of a post by a user.
    fn revoke_newest(&mut self, user: u32, post: PostId, count: usize) {
        let quotes = self.facts().quotes_of(post, feed::Span::ALL).into_iter().rev();
        let of_user: Vec<_> = quotes.filter(|(_, by)| by.0 == user).take(count).collect();
        of_user.into_iter().for_each(|(quote, _)| self.revoke(quote));
    }

    fn edit_text(&mut self, post: PostId, text: &str) {
        self.patch(post, Patch::of_text(PostText::parse(text).unwrap()));
    }

    fn stored(&self, post: PostId) -> Post {
        self.facts().post(post).unwrap()
    }

    /// State of the quote in a post for a user, or for a visitor.
    fn seen(&self, user: Option<u32>, post: PostId) -> &'static str {
        let viewer = match user {
            Some(user) => Viewer::new(self.facts(), Some(UserId(user))),
            None => Viewer::anyone(self.facts()),
        };
        viewer.quoted(&self.stored(post).quote.unwrap()).name()
    }

    fn quotes(&self, user: Option<u32>, post: PostId) -> Vec<PostId> {
        let viewer = Viewer::new(self.facts(), user.map(UserId));
        viewer.quotes(post, &Page::newest(100)).items
    }

    fn notify_of_edits(&mut self) -> usize {
        self.do_due_of(|work| matches!(work, DueWork::NotifyOfEdit { .. }))
    }
}

#[test]
fn who_may_quote_depends_on_who_may_see_the_post_and_on_its_author() {
    use QuotePolicy::{Followers, Nobody, Public};
    use Visibility as V;
    let mut world = World::new();
    world.run(follow(id(BOB), id(ADA))).unwrap();
    let (fine, denied) = (None, Some(Refusal::QuoteNotAllowed));
    let unseen = Some(Refusal::QuotedNotFound);
    // The results are those of the author, of a follower, and of another user.
    for (visibility, policy, expect) in [
        (V::Public, Public, [fine, fine, fine]),
        (V::Public, Followers, [fine, fine, denied]),
        (V::Public, Nobody, [fine, denied, denied]),
        (V::Unlisted, Public, [fine, fine, fine]),
        (V::Unlisted, Followers, [fine, fine, denied]),
        (V::Followers, Public, [fine, denied, unseen]),
        (V::Followers, Nobody, [fine, denied, unseen]),
        (V::Direct, Public, [denied, unseen, unseen]),
    ] {
        let post = Draft { visibility, quote_policy: policy, ..draft(ADA, "a post") };
        let post = world.try_publish(post).unwrap();
        for (user, expect) in [ADA, BOB, CY].into_iter().zip(expect) {
            let found = world.quote(user, post);
            assert_eq!(found.err(), expect, "{visibility:?} {policy:?} by {user}");
            if let Some(viewer) = Some(Viewer::new(world.facts(), Some(UserId(user))))
                .filter(|viewer| viewer.visible(&world.stored(post)))
            {
                assert_eq!(viewer.may_quote(&world.stored(post)), found.is_ok());
            }
        }
        assert!(!Viewer::anyone(world.facts()).may_quote(&world.stored(post)));
    }
    let post = world.post(ADA, "a post");
    let policy = |policy| Patch { quote_policy: Some(policy), ..Patch::default() };
    world.patch(post, policy(Nobody));
    assert_eq!(world.stored(post).edited, None, "that is no edit");
    assert_eq!(world.quote(BOB, post), Err(Refusal::QuoteNotAllowed));
    world.patch(post, policy(Public));
    let first = world.quote(BOB, post).unwrap();
    for blocker in [ADA, CY] {
        world.run(block(id(blocker), id(ADA + CY - blocker))).unwrap();
        assert_eq!(world.quote(CY, post), Err(Refusal::QuotedNotFound), "{blocker} blocks");
        world.run(Command::Unblock { user: id(blocker), other: id(ADA + CY - blocker) }).unwrap();
    }
    assert_eq!(world.quote(CY, PostId(7)), Err(Refusal::QuotedNotFound));
    let boost = Command::React { user: id(CY), post, reaction: Reaction::Boost, on: true };
    world.run(boost).unwrap();
    let boost = PostId(world.log.last().unwrap().stamp.0);
    let second = world.quote(CY, boost).unwrap();
    let quote = Quote { post, is_revoked: false };
    assert_eq!(world.stored(second).quote, Some(quote), "of what is boosted");
    assert_eq!(world.quotes(None, post), [second, first]);
    world.run(Command::DeletePost { post }).unwrap();
    assert_eq!(world.quote(BOB, post), Err(Refusal::QuotedNotFound));
}

#[test]
fn a_quote_is_for_nobody_who_may_not_see_what_it_quotes() {
    use Visibility::{Direct, Followers, Public, Unlisted};
    let mut world = World::new();
    for (quoted, of_draft, expect) in [
        (Public, Public, Public),
        (Public, Direct, Direct),
        (Unlisted, Public, Public),
        (Followers, Public, Followers),
        (Followers, Unlisted, Followers),
        (Followers, Followers, Followers),
        (Followers, Direct, Direct),
    ] {
        let post = world.try_publish(Draft { visibility: quoted, ..draft(ADA, "a post") }).unwrap();
        let new = Draft { visibility: of_draft, quote: Some(post), ..draft(ADA, "look") };
        let quote = world.try_publish(new).unwrap();
        assert_eq!(world.stored(quote).visibility, expect, "{quoted:?} in {of_draft:?}");
        let is_listed = matches!(expect, Public | Unlisted);
        assert_eq!(world.quotes(None, post), vec![quote; usize::from(is_listed)]);
    }
}

#[test]
fn a_viewer_sees_of_a_quote_what_they_may_see_of_the_quoted_post() {
    let quoted = |change: &dyn Fn(&mut World, PostId, PostId)| {
        let mut world = World::new();
        world.run(register("dan")).unwrap();
        let post = world.post(ADA, "a post");
        let quote = world.quote(BOB, post).unwrap();
        change(&mut world, post, quote);
        [Some(ADA), Some(CY), None].map(|user| match user {
            Some(user) if world.facts().user(UserId(user)).is_none() => "",
            user => world.seen(user, quote),
        })
    };
    type Change = dyn Fn(&mut World, PostId, PostId);
    let cases: [(&str, &Change, [&str; 3]); 8] = [
        ("nothing", &|_: &mut World, _, _| (), ["accepted"; 3]),
        ("revoked", &|world: &mut World, _, quote| world.revoke(quote), ["revoked"; 3]),
        (
            "deleted",
            &|world: &mut World, post, _| {
                world.run(Command::DeletePost { post }).unwrap();
            },
            ["deleted"; 3],
        ),
        (
            "its author is deleted",
            &|world: &mut World, _, _| {
                world.run(Command::DeleteUser { user: id(ADA) }).unwrap();
            },
            ["", "deleted", "deleted"],
        ),
        (
            "its author is disabled",
            &|world: &mut World, _, _| world.set_account(ADA, AccountState::Disabled),
            ["accepted", "unauthorized", "unauthorized"],
        ),
        (
            "the viewer blocks its author",
            &|world: &mut World, _, _| {
                world.run(block(id(CY), id(ADA))).unwrap();
            },
            ["accepted", "blocked_account", "accepted"],
        ),
        (
            "its author blocks the viewer",
            &|world: &mut World, _, _| {
                world.run(block(id(ADA), id(CY))).unwrap();
            },
            ["accepted", "unauthorized", "accepted"],
        ),
        (
            "the viewer mutes its author",
            &|world: &mut World, _, _| {
                world.run(mute(CY, ADA, None)).unwrap();
            },
            ["accepted", "muted_account", "accepted"],
        ),
    ];
    for (what, change, expect) in cases {
        assert_eq!(quoted(change), expect, "{what}");
    }
    for policy in QuotePolicy::ALL {
        assert_eq!(QuotePolicy::named(policy.name()), Some(policy));
    }
}

#[test]
fn a_mentioned_user_who_may_not_see_what_followers_see_does_not_see_it_quoted() {
    let mut world = World::new();
    world.run(follow(id(BOB), id(ADA))).unwrap();
    let post = Draft { visibility: Visibility::Followers, ..draft(ADA, "a post") };
    let post = world.try_publish(post).unwrap();
    let quote = world.try_publish(Draft { quote: Some(post), ..draft(ADA, "@cy look") }).unwrap();
    let viewer = Viewer::new(world.facts(), Some(UserId(CY)));
    assert!(viewer.visible(&world.stored(quote)) && !viewer.visible(&world.stored(post)));
    assert_eq!([BOB, CY].map(|user| world.seen(Some(user), quote)), ["accepted", "unauthorized"]);
}

#[test]
fn quotes_are_listed_and_counted_while_everybody_may_see_them() {
    let mut world = World::new();
    world.run(register("dan")).unwrap();
    let post = world.post(ADA, "a post");
    let quotes = [BOB, CY, 3].map(|user| world.quote(user, post).unwrap());
    let [first, second, third] = quotes;
    let closed = Draft { visibility: Visibility::Followers, ..draft(BOB, "mine") };
    let closed = world.try_publish(Draft { quote: Some(post), ..closed }).unwrap();
    let count = |world: &World| world.facts().open_count(SetTable::Quotes, post, 100);
    assert_eq!((world.quotes(Some(ADA), post), count(&world)), (vec![third, second, first], 3));
    assert_eq!(world.facts().open_count(SetTable::Quotes, post, 2), 2);
    world.run(mute(ADA, 3, None)).unwrap();
    world.run(block(id(CY), id(ADA))).unwrap();
    assert_eq!(world.quotes(Some(ADA), post), [first]);
    world.set_account(3, AccountState::Disabled);
    assert_eq!(world.quotes(Some(BOB), post), [second, first]);
    assert_eq!(count(&world), 2);
    world.revoke(second);
    assert_eq!((world.quotes(None, post).len(), count(&world)), (2, 1));
    assert!(world.stored(second).quote.unwrap().is_revoked);
    world.run(Command::DeletePost { post: first }).unwrap();
    world.run(Command::DeletePost { post: closed }).unwrap();
    assert_eq!(count(&world), 0);
    let quote = world.quote(BOB, post).unwrap();
    world.run(Command::DeleteUser { user: id(BOB) }).unwrap();
    assert_eq!((world.quotes(None, post), count(&world)), (vec![third], 0), "at once");
    world.erase(BOB);
    assert_eq!(world.facts().stored_post(quote), None);
    assert!(world.facts().quotes_of(post, feed::Span::ALL).len() == 1);
    assert_eq!(mend(&mut world.rows), vec![]);
}

#[test]
fn the_author_of_the_quoted_post_is_notified_if_they_may_see_the_quote() {
    let mut world = World::new();
    let post = world.post(ADA, "a post");
    let quote = world.quote(BOB, post).unwrap();
    assert!(world.effects.contains(&Effect::Notified { user: UserId(ADA) }));
    assert_eq!(world.notices(ADA), [(BOB, Notice::Quote(quote))]);
    world.run(Command::DeletePost { post: quote }).unwrap();
    assert!(world.notices(ADA).is_empty());
    let state = world.facts().notice_state(UserId(ADA));
    assert_eq!(state.stored, 0);
    // Users are not notified of their own quotes, of quotes they may not see or have muted, nor twice of a mention.
    world.quote(ADA, post).unwrap();
    let secret = Draft { visibility: Visibility::Followers, ..draft(BOB, "mine") };
    world.try_publish(Draft { quote: Some(post), ..secret }).unwrap();
    world.run(mute(ADA, CY, None)).unwrap();
    world.quote(CY, post).unwrap();
    assert!(world.notices(ADA).is_empty());
    let both = world.try_publish(Draft { quote: Some(post), ..draft(BOB, "@ada look") }).unwrap();
    assert_eq!(world.notices(ADA), [(BOB, Notice::Mention(both))]);
    let quote = world.quote(BOB, post).unwrap();
    assert_eq!(world.notices(ADA).len(), 2);
    world.revoke(quote);
    assert_eq!(world.notices(ADA).len(), 1);
    // A dismissed notification of a quote does not come back as a notification of a new post.
    let with = feed::follow_options::FollowWith {
        user: id(ADA),
        other: id(BOB),
        boosts: None,
        notify: Some(true),
    };
    world.run(Command::FollowWith(Box::new(with))).unwrap();
    let quote = world.quote(BOB, post).unwrap();
    assert_eq!(world.notices(ADA)[0], (BOB, Notice::Quote(quote)));
    let stored = world.facts().notice_state(UserId(ADA)).stored;
    let notification = NotificationId(quote.0);
    world.run(Command::DismissNotification { user: id(ADA), notification }).unwrap();
    assert_eq!(world.notices(ADA).len(), 1);
    assert_eq!(world.facts().notice_state(UserId(ADA)).stored, stored - 1, "it takes no place");
    assert_eq!(mend(&mut world.rows), vec![]);
}

#[test]
fn those_who_boost_or_quote_a_post_are_notified_of_its_edit_some_at_a_time() {
    let mut world = World::new();
    for number in 0..2 * EDIT_NOTICES_MAX {
        world.run(register(&format!("u{number}"))).unwrap();
    }
    let post = world.post(ADA, "a post");
    let users = 3..3 + 2 * EDIT_NOTICES_MAX as u32;
    let boosters: Vec<u32> = users.clone().take(EDIT_NOTICES_MAX / 2).collect();
    for user in &boosters {
        let user = id(*user);
        world.run(Command::React { user, post, reaction: Reaction::Boost, on: true }).unwrap();
    }
    let quoters: Vec<u32> = users.skip(EDIT_NOTICES_MAX / 2).collect();
    let quotes: Vec<_> = quoters.iter().map(|user| world.quote(*user, post).unwrap()).collect();
    world.quote(ADA, post).unwrap();
    world.edit_text(post, "another one");
    assert_eq!(world.notify_of_edits(), 3, "64 with each command");
    for user in boosters {
        assert_eq!(world.notices(user), [(ADA, Notice::Edit(post))]);
    }
    for (user, quote) in quoters.iter().zip(&quotes) {
        assert_eq!(world.notices(*user), [(ADA, Notice::QuotedUpdate(*quote))]);
    }
    let is_of_edit = |notice: &Notice| matches!(notice, Notice::Edit(_) | Notice::QuotedUpdate(_));
    assert!(!world.notices(ADA).iter().any(|(_, notice)| is_of_edit(notice)), "nor oneself");
    let (user, quote) = (quoters[1], quotes[1]);
    let viewer = Viewer::new(world.facts(), Some(UserId(user)));
    let kinds = |kind| NotificationFilter { kinds: Some(vec![kind]), ..Default::default() };
    let count = |kind| viewer.notifications(&Page::newest(9), &kinds(kind)).items.len();
    assert_eq!(
        [NoticeKind::Edit, NoticeKind::QuotedUpdate, NoticeKind::Quote].map(count),
        [0, 1, 0]
    );
    world.revoke(quote);
    assert!(world.notices(user).is_empty());
}

#[test]
fn a_user_is_notified_once_of_an_edit_however_often_they_quote_the_post() {
    let mut world = World::new();
    let post = world.post(ADA, "a post");
    let boost = |user| Command::React { user: id(user), post, reaction: Reaction::Boost, on: true };
    world.run(boost(BOB)).unwrap();
    let quote = |world: &mut World, user| world.quote(user, post).unwrap();
    let quotes: Vec<_> = (0..=EDIT_NOTICES_MAX).map(|_| quote(&mut world, CY)).collect();
    quote(&mut world, BOB);
    world.edit_text(post, "another one");
    assert_eq!(world.notify_of_edits(), 1, "for any number of quotes by few users");
    let newest = [(ADA, Notice::QuotedUpdate(*quotes.last().unwrap()))];
    assert_eq!(world.notices(CY), newest, "of the newest quote");
    assert_eq!(world.notices(BOB), [(ADA, Notice::Edit(post))], "one who boosts and quotes");
    // A further edit does not notify these users again, although one has quoted the post again and one has ended the
    // boost.
    quote(&mut world, CY);
    world
        .run(Command::React { user: id(BOB), post, reaction: Reaction::Boost, on: false })
        .unwrap();
    world.now_ms += EDIT_NOTICES_QUIET_MS;
    world.edit_text(post, "a third one");
    assert_eq!(world.notify_of_edits(), 1);
    assert_eq!(world.notices(CY), newest);
    assert_eq!(world.notices(BOB), [(ADA, Notice::Edit(post))]);
    // Authors of older quotes than the newest 1,000 are not notified.
    world.run(register("dan")).unwrap();
    let dan = UserId(3);
    let first = quote(&mut world, dan.0);
    for _ in 0..EDIT_NOTICES_QUOTES {
        quote(&mut world, CY);
    }
    for (is_notified, others) in [(false, 0), (true, 1)] {
        world.revoke_newest(CY, post, others);
        world.now_ms += EDIT_NOTICES_QUIET_MS;
        world.edit_text(post, &format!("with {others} less"));
        world.notify_of_edits();
        let expect = [(ADA, Notice::QuotedUpdate(first))];
        assert_eq!(world.notices(dan.0), expect[..usize::from(is_notified)]);
    }
}

#[test]
fn an_imported_quote_of_a_boost_shows_nothing_and_nobody_revokes_it() {
    let mut world = World::new();
    let post = world.post(ADA, "a post");
    let boost = Command::React { user: id(CY), post, reaction: Reaction::Boost, on: true };
    world.run(boost).unwrap();
    let boost = PostId(world.log.last().unwrap().stamp.0);
    let quote = world.quote(BOB, boost).unwrap();
    let wrong = Quote { post: boost, is_revoked: false };
    let imported = Post { quote: Some(wrong), ..world.stored(quote) };
    feed::write::post(&mut world.rows, quote, &imported, 0, |_| false);
    assert_eq!([Some(ADA), None].map(|user| world.seen(user, quote)), ["deleted"; 2]);
    for user in [ADA, CY] {
        let viewer = Viewer::new(world.facts(), Some(UserId(user)));
        assert!(!viewer.may_revoke(&imported), "{user}");
    }
}

#[test]
fn a_change_of_quotes_is_no_edit_and_reaches_streams() {
    let mut world = World::new();
    let post = world.post(ADA, "a post");
    let quote = world.quote(BOB, post).unwrap();
    world.revoke(quote);
    let is_edit = |effect: &Effect| matches!(effect, Effect::Post { post, change: PostChange::Edited, .. } if *post == quote);
    assert!(world.effects.iter().any(is_edit));
    let mentioning = Draft { quote: Some(post), ..draft(BOB, "@cy look") };
    let mentioning = world.try_publish(mentioning).unwrap();
    world.revoke(mentioning);
    let is_told = |effect: &Effect| matches!(effect, Effect::Mention { post, user: UserId(CY), change: PostChange::Edited, .. } if *post == mentioning);
    assert!(world.effects.iter().any(is_told), "users it mentions");
    assert_eq!(world.stored(quote).edited, None);
    assert!(world.facts().post_versions(quote).is_empty());
    world.revoke(quote);
    assert!(world.effects.is_empty(), "again");
    let both = Patch::of_text(PostText::parse("look again").unwrap());
    world.patch(quote, Patch { quote_policy: Some(QuotePolicy::Nobody), ..both });
    assert_eq!(world.effects.iter().filter(|effect| is_edit(effect)).count(), 1, "of both");
    assert!(world.stored(quote).quote.unwrap().is_revoked, "an edit keeps it");
}

#[test]
fn a_scheduled_quote_is_checked_again_when_it_is_due() {
    for is_allowed in [true, false] {
        let mut world = World::new();
        let post = world.post(ADA, "a post");
        let due_ms = world.now_ms + 400_000;
        let Command::Schedule(feed::schedule::ScheduleCommand::Create(mut new)) =
            schedule(BOB, due_ms)
        else {
            panic!()
        };
        new.draft.quote = Some(post);
        let create = feed::schedule::ScheduleCommand::Create(new);
        world.run(Command::Schedule(create)).unwrap();
        if !is_allowed {
            let quote_policy = Some(QuotePolicy::Nobody);
            world.patch(post, Patch { quote_policy, ..Patch::default() });
        }
        world.now_ms = due_ms;
        world.do_due_of(|work| matches!(work, DueWork::Publish { .. }));
        assert_eq!(world.quotes(None, post).len(), usize::from(is_allowed));
    }
}
