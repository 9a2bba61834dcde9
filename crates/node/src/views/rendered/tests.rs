//! Tests that a post is appended as it was rendered, from memory, from the facts, or from a scan after a start.

use feed::{
    Bio, Command, Content, Draft, Handle, Language, Name, PostText, Reaction, StampedCommand, Txn,
    UserRef, Warning, apply,
};
use rows::Stamp;
use testkit::MemoryRows;

use super::*;

const ADA: UserRef = UserRef::Id(UserId(0));
/// Numbers of changes: of bob's profile, and of everything else.
struct Changed(u32, u32);

impl Revisions for Changed {
    fn revision(&self, subject: Subject) -> Revision {
        match subject {
            Subject::Profile(1) => Revision { place: 1, count: self.0 },
            _ => Revision { place: 0, count: self.1 },
        }
    }

    fn is_current(&self, Revision { place, count }: Revision) -> bool {
        count == if place == 1 { self.0 } else { self.1 }
    }
}

const UNCHANGED: Changed = Changed(0, 0);
const ALL: UserId = UserId(u32::MAX);

struct World {
    rows: MemoryRows,
    posts: Vec<PostId>,
}

impl World {
    /// Creates posts of all kinds.
    fn new() -> Self {
        let mut world = Self { rows: MemoryRows::default(), posts: Vec::new() };
        for handle in ["ada", "bob"] {
            let (handle, name) =
                (Handle::parse(handle).unwrap(), Name::parse("A. \"Ada\" ☕").unwrap());
            world.apply(Command::Register { handle, name, bio: Bio::default() });
        }
        let post = |text: &str| Draft::new(ADA, PostText::parse(text).unwrap());
        world.publish(post("usual"));
        world.publish(post(
            r#"","edited_at":null,"in_reply_to_id":null,"reply_to":null,"mentions":[]"#,
        ));
        world.publish(post("hello @bob"));
        let mut in_language = post("in a language");
        in_language.content.language = Language::parse("de").ok();
        world.publish(in_language);
        let mut with_warning = post("with a warning");
        with_warning.content.warning = Warning::parse("careful").unwrap();
        with_warning.content.sensitive = true;
        world.publish(with_warning);
        let parent = Some(world.posts[0]);
        world.publish(Draft { parent, author: UserRef::Id(UserId(1)), ..post("a reply") });
        let (user, post) = (UserRef::Id(UserId(1)), world.posts[0]);
        world.apply(Command::React { user, post, reaction: Reaction::Boost, on: true });
        world
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

    fn publish(&mut self, post: Draft) {
        self.apply(Command::Publish(Box::new(post)));
    }

    fn facts(&self) -> Facts<'_, MemoryRows> {
        Facts::new(&self.rows)
    }

    fn read(&self, rendered: &Entities, post: PostId) -> String {
        let mut out = Vec::new();
        assert!(rendered.post(&UNCHANGED, self.facts(), post, |_| true, &mut out), "{post:?}");
        String::from_utf8(out).unwrap()
    }
}

fn in_memory(rendered: &Entities, post: PostId) -> Option<String> {
    let mut out = Vec::new();
    let found = rendered.try_post(&UNCHANGED, |_| None, post, |_| true, &mut out);
    found.then(|| String::from_utf8(out).unwrap())
}

#[test]
fn a_post_is_appended_from_memory_as_it_was_rendered() {
    let world = World::new();
    let rendered = Entities::new(4 << 20);
    assert_eq!(world.posts.len(), 7);
    for post in &world.posts {
        let first = world.read(&rendered, *post);
        serde_json::from_str::<serde_json::Value>(&first).unwrap();
        assert_eq!(in_memory(&rendered, *post).as_ref(), Some(&first));
    }
}

#[test]
fn what_most_posts_have_in_common_takes_no_memory() {
    let mut world = World::new();
    let rendered = Entities::new(4 << 20);
    // From here on the names are known.
    world.read(&rendered, world.posts[0]);
    let mut bytes = |post: Draft| {
        world.publish(post);
        let before = rendered.bytes();
        let length = world.read(&rendered, *world.posts.last().unwrap()).len();
        (rendered.bytes() - before) as usize - length
    };
    let text = PostText::parse("as usual").unwrap();
    let usual = Content::of_text(text);
    let sensitive = Content { sensitive: true, ..usual.clone() };
    let [usual, sensitive] = [usual, sensitive].map(|content| bytes(Draft::of(ADA, content)));
    assert_eq!(usual + render::USUAL.len(), sensitive);
}

#[test]
fn a_scan_after_a_start_renders_all_posts_but_boosts() {
    let world = World::new();
    let (first, rendered) = (Entities::new(4 << 20), Entities::new(4 << 20));
    let mut before = Some(ALL);
    while let Some(user) = before {
        before = rendered.load_names(&UNCHANGED, world.facts(), user, 1);
    }
    assert!(
        rendered.names(&UNCHANGED, UserId(0)).is_some()
            && rendered.names(&UNCHANGED, UserId(1)).is_some()
    );
    let mut before = Some(PostId(u64::MAX));
    while let Some(post) = before {
        before = rendered.load_posts(&UNCHANGED, world.facts(), post, 2);
    }
    let (boost, posts) = world.posts.split_last().unwrap();
    for post in posts {
        assert_eq!(in_memory(&rendered, *post), Some(world.read(&first, *post)));
    }
    assert_eq!(in_memory(&rendered, *boost), None);
}

#[test]
fn what_was_made_before_a_change_of_a_part_is_not_current() {
    let world = World::new();
    let rendered = Entities::new(4 << 20);
    world.posts.iter().for_each(|post| drop(world.read(&rendered, *post)));
    let current = |revisions: Changed| {
        let is_kept = |post: &&PostId| {
            rendered.try_post(&revisions, |_| None, **post, |_| true, &mut Vec::new())
        };
        world.posts.iter().filter(is_kept).count()
    };
    assert_eq!(current(UNCHANGED), 7);
    assert_eq!(current(Changed(1, 0)), 5, "a reply and a boost by bob");
    assert_eq!(current(Changed(0, 1)), 0);
    let bob = Changed(1, 0);
    assert!(rendered.names(&bob, UserId(0)).is_some() && rendered.names(&bob, UserId(1)).is_none());
}

#[test]
fn posts_of_deleted_users_are_not_rendered_by_a_scan() {
    let mut world = World::new();
    let rendered = Entities::new(4 << 20);
    world.apply(Command::DeleteUser { user: ADA });
    rendered.load_posts(&UNCHANGED, world.facts(), PostId(u64::MAX), 100);
    assert_eq!(in_memory(&rendered, world.posts[0]), None);
    assert!(in_memory(&rendered, world.posts[5]).is_some(), "of bob");
}

#[test]
fn a_kept_quote_is_rendered_again_when_its_quoted_author_is_deleted() {
    let mut world = World::new();
    let rendered = Entities::new(4 << 20);
    let (bob, text) = (UserRef::Id(UserId(1)), PostText::parse("a post").unwrap());
    world.publish(Draft::new(bob.clone(), text.clone()));
    let quote = world.posts.last().copied();
    world.publish(Draft { quote, ..Draft::new(ADA, text) });
    let quoting = *world.posts.last().unwrap();
    assert!(world.read(&rendered, quoting).contains("accepted"));
    // The rows of the quoted post are not removed yet.
    world.apply(Command::DeleteUser { user: bob });
    let mut out = Vec::new();
    assert!(rendered.post(&Changed(1, 0), world.facts(), quoting, |_| true, &mut out));
    let out = String::from_utf8(out).unwrap();
    assert!(out.contains("\"state\":\"deleted\""), "{out}");
}
