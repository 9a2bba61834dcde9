//! A post is appended as it was rendered, whether it comes from memory, from the facts, or from a scan after a start.

use feed::{
    Bio, Command, Handle, Language, Name, NewPost, PostText, Reaction, StampedCommand, Txn,
    UserRef, Warning, apply,
};
use rows::Stamp;
use testkit::MemoryRows;

use super::*;

const ADA: UserRef = UserRef::Id(UserId(0));
const ALL: UserId = UserId(u32::MAX);

struct Subject {
    rows: MemoryRows,
    posts: Vec<PostId>,
}

impl Subject {
    /// Posts of all kinds.
    fn new() -> Self {
        let mut subject = Self { rows: MemoryRows::default(), posts: Vec::new() };
        for handle in ["ada", "bob"] {
            let (handle, name) =
                (Handle::parse(handle).unwrap(), Name::parse("A. \"Ada\" ☕").unwrap());
            subject.apply(Command::Register { handle, name, bio: Bio::default() });
        }
        let post = |text: &str| NewPost::new(ADA, PostText::parse(text).unwrap());
        subject.publish(post("usual"));
        subject.publish(post(
            r#"","edited_at":null,"in_reply_to_id":null,"reply_to":null,"mentions":[]"#,
        ));
        subject.publish(post("hello @bob"));
        let language = Some(Language::parse("de").unwrap());
        subject.publish(NewPost { language, ..post("in a language") });
        let warning = Warning::parse("careful").unwrap();
        subject.publish(NewPost { warning, sensitive: true, ..post("with a warning") });
        let parent = Some(subject.posts[0]);
        subject.publish(NewPost { parent, author: UserRef::Id(UserId(1)), ..post("a reply") });
        let (user, post) = (UserRef::Id(UserId(1)), subject.posts[0]);
        subject.apply(Command::React { user, post, reaction: Reaction::Boost, on: true });
        subject
    }

    fn apply(&mut self, command: Command) {
        let stamp = self.rows.totals().last_stamp.map_or(1, |last| last.0 + 1);
        let entry = StampedCommand { stamp: Stamp(stamp), idempotency: None, command };
        let done = apply(&mut Txn::new(&mut self.rows), &entry, &mut Vec::new());
        assert!(done.outcome.is_ok(), "{:?}", done.outcome);
        if self.facts().stored_post(PostId(stamp)).is_some() {
            self.posts.push(PostId(stamp));
        }
    }

    fn publish(&mut self, post: NewPost) {
        self.apply(Command::Publish(Box::new(post)));
    }

    fn facts(&self) -> Facts<'_, MemoryRows> {
        Facts::new(&self.rows)
    }

    fn read(&self, rendered: &Rendered, post: PostId) -> String {
        let mut out = Vec::new();
        assert!(rendered.post(self.facts(), post, |_| true, &mut out), "{post:?}");
        String::from_utf8(out).unwrap()
    }
}

fn in_memory(rendered: &Rendered, post: PostId) -> Option<String> {
    let mut out = Vec::new();
    let found = rendered.try_post(|_| None, post, |_| true, &mut out);
    found.then(|| String::from_utf8(out).unwrap())
}

#[test]
fn a_post_is_appended_from_memory_as_it_was_rendered() {
    let subject = Subject::new();
    let rendered = Rendered::new(1 << 20, 1 << 20);
    assert_eq!(subject.posts.len(), 7);
    for post in &subject.posts {
        let first = subject.read(&rendered, *post);
        serde_json::from_str::<serde_json::Value>(&first).unwrap();
        assert_eq!(in_memory(&rendered, *post).as_ref(), Some(&first));
    }
}

#[test]
fn what_most_posts_have_in_common_takes_no_memory() {
    let mut subject = Subject::new();
    let rendered = Rendered::new(1 << 20, 1 << 20);
    let mut bytes = |post: NewPost| {
        subject.publish(post);
        let before = rendered.item_bytes();
        let length = subject.read(&rendered, *subject.posts.last().unwrap()).len();
        (rendered.item_bytes() - before) as usize - length
    };
    let text = PostText::parse("as usual").unwrap();
    let usual = bytes(NewPost::new(ADA, text.clone()));
    let sensitive = bytes(NewPost { sensitive: true, ..NewPost::new(ADA, text) });
    assert_eq!(usual + render::USUAL.len(), sensitive);
}

#[test]
fn a_scan_after_a_start_renders_all_posts_but_boosts() {
    let subject = Subject::new();
    let (first, rendered) = (Rendered::new(1 << 20, 1 << 20), Rendered::new(1 << 20, 1 << 20));
    let mut before = Some(ALL);
    while let Some(user) = before {
        before = rendered.load_names(subject.facts(), user, 1);
    }
    assert!(rendered.names(UserId(0)).is_some() && rendered.names(UserId(1)).is_some());
    let mut before = Some(PostId(u64::MAX));
    while let Some(post) = before {
        before = rendered.load_posts(subject.facts(), post, 2);
    }
    let (boost, posts) = subject.posts.split_last().unwrap();
    for post in posts {
        assert_eq!(in_memory(&rendered, *post), Some(subject.read(&first, *post)));
    }
    assert_eq!(in_memory(&rendered, *boost), None);
}

#[test]
fn names_that_were_read_before_a_change_are_not_kept() {
    let subject = Subject::new();
    let rendered = Rendered::new(1 << 20, 1 << 20);
    let invalidated = rendered.invalidated.load(Ordering::Acquire);
    let read = Read { invalidated, item: subject.facts().users_before(ALL, 10) };
    rendered.invalidate(UserId(1));
    rendered.keep_names(&read);
    assert!(rendered.names(UserId(0)).is_none() && rendered.names(UserId(1)).is_none());
}

#[test]
fn posts_of_deleted_users_are_not_rendered_by_a_scan() {
    let mut subject = Subject::new();
    let rendered = Rendered::new(1 << 20, 1 << 20);
    subject.apply(Command::DeleteUser { user: ADA });
    rendered.load_posts(subject.facts(), PostId(u64::MAX), 100);
    assert_eq!(in_memory(&rendered, subject.posts[0]), None);
    assert!(in_memory(&rendered, subject.posts[5]).is_some(), "of bob");
}
