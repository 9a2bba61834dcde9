//! Tests that a mute, or a block that ends a follow, drops the timeline of its user.

use super::{LARGE, Step, Subject};

#[test]
fn a_mute_or_block_hides_posts_of_before_and_of_after() {
    for hide in [Step::Mute(1, 0, true), Step::Block(1, 0, true), Step::Block(0, 1, true)] {
        let mut subject = Subject::new(LARGE);
        let post = Step::Post(0, None);
        let before = [Step::Follow(1, 0, true), post.clone(), Step::Listen(1)];
        let after = [hide.clone(), Step::Listen(1), post];
        before.iter().chain(&after).for_each(|step| subject.step(step));
        assert!(subject.listeners[1].shown.is_empty(), "{hide:?}");
        subject.step(&Step::Listen(1));
    }
}
