//! Earlier versions of edited posts.

use crate::support;
use crate::support::World;
use feed::limits::{VERSIONS_BYTES_MAX, VERSIONS_MAX};
use feed::polls::PollOption;
use feed::{Command, Done, Patch, PostId, PostText, Stamp, UserId, Warning};
use rows::{NameTable, Rows as _};

fn edit(text: &str) -> Patch {
    Patch::of_text(PostText::parse(text).unwrap())
}

impl World {
    fn run_edit(&mut self, post: PostId, patch: Patch) {
        assert_eq!(self.run(Command::edit(post, patch)), Ok(Done::PostEdited));
    }

    /// Texts and warnings of a post's earlier versions.
    fn versions(&self, post: PostId) -> Vec<(String, String)> {
        let versions = self.facts().post_versions(post).into_iter();
        versions
            .map(|one| (one.content.text.as_str().into(), one.content.warning.as_str().into()))
            .collect()
    }
}

#[test]
fn each_edit_keeps_what_the_post_said_before_and_since_when() {
    let mut world = World::new();
    let post = world.post(0, "one @bob");
    assert_eq!(world.versions(post), []);
    world.run_edit(post, edit("two"));
    world.run_edit(post, edit("two"));
    let warned = Patch { warning: Warning::parse("food").ok(), ..edit("two") };
    world.run_edit(post, warned);
    let edited = world.facts().post(post).unwrap().edited.unwrap();
    world.run_edit(post, edit("three"));
    let pair = |text: &str, warning: &str| (text.to_owned(), warning.to_owned());
    let expected = [pair("one @bob", ""), pair("two", ""), pair("two", "food")];
    assert_eq!(world.versions(post), expected, "an edit that changes nothing is none");
    let versions = world.facts().post_versions(post);
    assert_eq!((versions[0].since, versions[2].since), (Stamp(post.0), edited));
    assert!(versions.is_sorted_by_key(|version| version.since));
}

#[test]
fn the_options_of_a_poll_are_kept() {
    let mut world = World::new();
    let Ok(Done::Posted(post)) = world.run(support::poll(0, None)) else { panic!("no poll") };
    world.run(support::poll(0, Some(post))).unwrap();
    let versions = world.facts().post_versions(post);
    let options = versions[0].poll.as_ref().unwrap().as_slice();
    assert_eq!(options.iter().map(PollOption::as_str).collect::<Vec<_>>(), ["yes", "no"]);
}

#[test]
fn the_first_version_stays_and_of_the_others_the_newest() {
    let mut world = World::new();
    for (letter, most) in [("x", VERSIONS_MAX), ("\u{1F469}\u{200D}\u{1F680}", 9)] {
        let text = |number: usize| format!("{number} {}", letter.repeat(490));
        let long = letter.len() > 1;
        let text = |number: usize| if long { text(number) } else { number.to_string() };
        let post = world.post(0, &text(0));
        for number in 1..=VERSIONS_MAX + 10 {
            world.run_edit(post, edit(&text(number)));
        }
        let found: Vec<_> = world.versions(post).into_iter().map(|(text, _)| text).collect();
        assert!((2..=most).contains(&found.len()) && (long || found.len() == most));
        let last = VERSIONS_MAX + 10;
        let newest: Vec<_> = (last + 1 - found.len()..last).map(text).collect();
        assert_eq!(found[1..], newest);
        assert_eq!(found[0], text(0));
        let row = world.rows.name(NameTable::PostVersions, &post.0.to_be_bytes()).unwrap();
        assert!(row.len() <= VERSIONS_BYTES_MAX, "{}", row.len());
    }
}

#[test]
fn versions_end_with_their_post_and_with_its_author() {
    let mut world = World::new();
    for deletes_user in [false, true] {
        let post = world.post(0, "one");
        world.run_edit(post, edit("two"));
        match deletes_user {
            false => world.run(Command::DeletePost { post }).map(|_| ()).unwrap(),
            true => {
                world.run(Command::DeleteUser { user: support::id(0) }).unwrap();
                world.erase(0);
                assert!(!world.facts().exists(UserId(0)));
            }
        }
        assert_eq!(world.rows.first_name(NameTable::PostVersions, &[]), None, "no row is left");
    }
}
