//! A mute, or a block that ends a follow, drops the timeline of its user.

use super::{Step, Subject};

#[test]
fn a_mute_or_block_drops_a_timeline_whether_it_or_its_shard_applies_it() {
    for hide in [Step::Mute(1, 0, true), Step::Block(1, 0, true), Step::Block(0, 1, true)] {
        for steps in [0, 100] {
            let mut subject = Subject::new(u64::MAX);
            let post = Step::Post(0, None);
            let before = [Step::Follow(1, 0, true), post.clone(), Step::Listen(1)];
            let after = [hide.clone(), Step::CatchUp(steps), Step::Read(1), Step::Listen(1), post];
            before.iter().chain(&after).for_each(|step| subject.step(step));
            assert!(subject.listeners[1].shown.is_empty(), "{hide:?}");
            subject.step(&Step::Listen(1));
        }
    }
}
