//! Conversations: threads of direct posts, read positions, and removals.

use crate::support::{World, block, id};
use feed::conversations::{Conversation, ConversationMark, ConversationUpdate};
use feed::limits::{CONVERSATION_MARKS_MAX, CONVERSATIONS_BYTES_MAX};
use feed::{Command, Done, Draft, Page, PostId, PostText, Refusal, UserId, Viewer, Visibility};
use rows::{NameTable, Rows as _, SetTable, Span};

const ALL: Page = Page::newest(1_000);

impl World {
    fn send(&mut self, author: u32, text: &str, parent: Option<PostId>) -> PostId {
        self.publish(Visibility::Direct, author, text, parent)
    }

    fn publish(
        &mut self,
        visibility: Visibility,
        author: u32,
        text: &str,
        parent: Option<PostId>,
    ) -> PostId {
        let new = Draft::new(id(author), PostText::parse(text).unwrap());
        let new = Draft { visibility, parent, ..new };
        match self.run(Command::Publish(Box::new(new))) {
            Ok(Done::Posted(post)) => post,
            other => panic!("{other:?}"),
        }
    }

    fn mark(&mut self, user: u32, first: PostId, read: PostId, is_removed: bool) {
        let mark = ConversationMark { first, read, is_removed };
        let update = ConversationUpdate { user: id(user), mark };
        let outcome = self.run(Command::Conversation(Box::new(update)));
        assert_eq!(outcome, Ok(Done::ConversationUpdated));
    }

    /// Conversations of a user: first and last post, and whether it is unread.
    fn conversations(&self, user: u32) -> Vec<(PostId, PostId, bool)> {
        let viewer = Viewer::new(self.facts(), Some(UserId(user)));
        let all = viewer.conversations(&ALL).items;
        for found in &all {
            assert_eq!(viewer.conversation(found.first), Some(*found));
        }
        all.into_iter()
            .map(|Conversation { first, last, is_unread }| (first, last, is_unread))
            .collect()
    }
}

#[test]
fn a_conversation_is_a_thread_of_direct_posts_for_those_who_see_a_post_of_it() {
    let mut world = World::new();
    let public = world.post(1, "hello");
    let one = world.send(0, "@bob one", None);
    let two = world.send(1, "@ada two", Some(one));
    let other = world.send(0, "@bob @cy other", Some(public));
    // A public reply neither belongs to the conversation nor begins one.
    world.publish(Visibility::Public, 1, "@ada public", Some(two));
    assert_eq!(world.conversations(0), [(other, other, false), (one, two, true)]);
    assert_eq!(world.conversations(1), [(other, other, true), (one, two, false)]);
    assert_eq!(world.conversations(2), [(other, other, true)]);
    // A user who is mentioned later sees only posts from then on.
    let three = world.send(1, "@cy look", Some(two));
    assert_eq!(world.conversations(2), [(one, three, true), (other, other, true)]);
    world.run(Command::DeletePost { post: three }).unwrap();
    world.run(Command::DeletePost { post: one }).unwrap();
    assert_eq!(world.conversations(2), [(other, other, true)]);
    assert_eq!(world.conversations(0), [(other, other, false), (one, two, true)]);
    let note = world.send(2, "to myself, @cy", None);
    assert_eq!(world.conversations(2)[0], (note, note, false));
    assert_eq!(Viewer::new(world.facts(), None).conversations(&ALL).items, []);
}

#[test]
fn a_conversation_is_read_or_removed_until_the_next_post() {
    let mut world = World::new();
    let one = world.send(0, "@bob one", None);
    let two = world.send(0, "@bob two", Some(one));
    world.mark(1, one, one, true);
    assert_eq!(world.conversations(1), [(one, two, true)], "not up to the last post");
    world.mark(1, one, two, false);
    let read = world.snapshot();
    for (post, is_removed) in [(one, true), (two, false)] {
        world.mark(1, one, post, is_removed);
        assert_eq!(world.snapshot(), read, "it is so already");
    }
    assert_eq!(world.conversations(1), [(one, two, false)]);
    world.mark(1, one, two, true);
    assert_eq!(world.conversations(1), []);
    assert_eq!(world.conversations(0), [(one, two, false)], "for its user only");
    let three = world.send(0, "@bob three", Some(two));
    assert_eq!(world.conversations(1), [(one, three, true)]);
    let mark = ConversationMark { first: one, read: three, is_removed: true };
    let update = ConversationUpdate { user: id(9), mark };
    let outcome = world.run(Command::Conversation(Box::new(update)));
    assert_eq!(outcome, Err(Refusal::UserNotFound));
}

#[test]
fn a_conversation_that_is_marked_as_unread_is_until_it_is_read_or_answered() {
    let mut world = World::new();
    let one = world.send(0, "@bob one", None);
    let unread = |world: &mut World, user, last| {
        let command = Command::UnreadConversation { user: id(user), first: one, last };
        assert_eq!(world.run(command), Ok(Done::ConversationUpdated));
    };
    world.mark(1, one, one, false);
    assert_eq!(world.conversations(1), [(one, one, false)]);
    unread(&mut world, 1, one);
    let marked = world.snapshot();
    unread(&mut world, 1, one);
    assert_eq!(world.snapshot(), marked, "it is so already");
    assert_eq!(world.conversations(1), [(one, one, true)]);
    assert_eq!(world.conversations(0), [(one, one, false)], "for its user only");
    unread(&mut world, 0, one);
    assert_eq!(world.conversations(0), [(one, one, true)], "also after an own post");
    let two = world.send(0, "@bob two", Some(one));
    assert_eq!(world.conversations(0), [(one, two, false)], "which ends it");
    world.mark(1, one, two, false);
    unread(&mut world, 1, one);
    assert_eq!(world.conversations(1), [(one, two, false)], "a later post was read");
    world.mark(1, one, two, true);
    unread(&mut world, 1, two);
    assert_eq!(world.conversations(1), [], "it was removed");
    let three = world.send(0, "@bob three", Some(two));
    unread(&mut world, 1, three);
    world.mark(1, one, three, false);
    assert_eq!(world.conversations(1), [(one, three, false)]);
    let command = Command::UnreadConversation { user: id(9), first: one, last: three };
    assert_eq!(world.run(command), Err(Refusal::UserNotFound));
}

#[test]
fn what_a_block_or_a_mute_hides_is_in_no_conversation() {
    let mut world = World::new();
    let one = world.send(0, "@bob one", None);
    let two = world.send(2, "@bob two", None);
    let mute = Command::Mute { user: id(1), other: id(0), mentions: true, time: None };
    world.run(mute).unwrap();
    assert_eq!(world.conversations(1), [(two, two, true)]);
    world.run(block(id(2), id(1))).unwrap();
    assert_eq!(world.conversations(1), []);
    world.run(Command::Unmute { user: id(1), other: id(0) }).unwrap();
    assert_eq!(world.conversations(1), [(one, one, true)]);
}

#[test]
fn hidden_posts_take_no_place_in_a_list() {
    let mut world = World::new();
    let one = world.send(0, "@bob one", None);
    for number in 0..500 {
        world.send(2, &format!("@bob {number}"), None);
    }
    assert_eq!(world.conversations(1).len(), 501);
    for hide in [
        Command::Mute { user: id(1), other: id(2), mentions: true, time: None },
        block(id(1), id(2)),
        Command::DeleteUser { user: id(2) },
    ] {
        world.run(hide).unwrap();
        assert_eq!(world.conversations(1), [(one, one, true)]);
        if world.facts().exists(UserId(2)) {
            world.run(Command::Unmute { user: id(1), other: id(2) }).unwrap();
        }
    }
}

#[test]
fn marks_of_the_newest_posts_are_kept() {
    let mut world = World::new();
    let posts: Vec<_> = (0..CONVERSATION_MARKS_MAX + 3)
        .map(|number| world.send(0, &format!("@bob {number}"), None))
        .collect();
    for post in &posts {
        world.mark(1, *post, *post, false);
    }
    // At the limit, a mark older than all others is dropped.
    world.mark(1, PostId(1), PostId(1), true);
    let newest = posts.iter().enumerate().rev();
    let newest: Vec<_> = newest.map(|(at, post)| (*post, *post, at < 3)).collect();
    assert_eq!(world.conversations(1), newest);
    let row = world.rows.name(NameTable::Conversations, &1_u32.to_be_bytes()).unwrap();
    assert!(row.len() <= CONVERSATIONS_BYTES_MAX, "{}", row.len());
    world.run(Command::DeleteUser { user: id(1) }).unwrap();
    world.erase(1);
    for table in [NameTable::Conversations, NameTable::ConversationPost] {
        let of_bob = world.rows.names_under(table, &1_u32.to_be_bytes(), &[], 1);
        assert!(of_bob.is_empty(), "no row is left");
    }
    assert_eq!(world.rows.members(SetTable::DirectPosts, 1, Span::ALL), []);
}
