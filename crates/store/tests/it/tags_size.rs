//! Measures the size of hashtags on disk: `cargo test --profile dist -p store --test it -- --ignored --nocapture`.

use feed::{Bio, Command, Handle, Name, PostText, StampedCommand, Txn, UserId, UserRef, apply};
use rows::{EPOCH_MS, Stamp};
use store::{Store, StoreOptions};

const USERS: u64 = 1_000;
const POSTS: u64 = 200_000;

/// Returns the size in bytes of a store of posts. Each post has one word of the given kind.
fn bytes(word: impl Fn(u64) -> String) -> u64 {
    let dir = tempfile::tempdir().unwrap();
    let options = StoreOptions { cache_bytes: 64 << 20, bucket_bytes: 1 << 20 };
    let (mut writer, _) = Store::open(dir.path(), options).unwrap();
    let mut run = |at: u64, command: Command| {
        let stamp = Stamp::first_of(EPOCH_MS + 1_000 + at * 500);
        let entry = StampedCommand { stamp, idempotency: None, command };
        let reply = apply(&mut Txn::new(&mut writer), &entry, &mut Vec::new());
        assert!(reply.outcome.is_ok(), "{reply:?}");
        if at.is_multiple_of(20_000) {
            writer.freeze(at).unwrap().run().unwrap();
        }
    };
    for user in 0..USERS {
        let handle = Handle::parse(&format!("user{user}")).unwrap();
        run(1 + user, Command::Register { handle, name: Name::default(), bio: Bio::default() });
    }
    for post in 0..POSTS {
        let scattered = post.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
        let author = UserRef::Id(UserId((scattered % USERS) as u32));
        let text = PostText::parse(&format!("post {post} {}", word(scattered))).unwrap();
        run(1 + USERS + post, Command::post(author, text));
    }
    writer.freeze(u64::MAX).unwrap().run().unwrap();
    writer.store().disk_bytes()
}

#[test]
#[ignore = "prints measured sizes"]
fn a_hashtag_of_a_post_takes_few_bytes() {
    for (what, tag) in [
        ("2,000 hashtags", (|number: u64| format!("gardening{}", number % 2_000)) as fn(u64) -> _),
        ("different hashtags", |number| format!("gardening{number}")),
    ] {
        let (plain, tagged) = (bytes(tag), bytes(|number| format!("#{}", tag(number))));
        let each = tagged.saturating_sub(plain) as f64 / POSTS as f64;
        println!("{what}: {plain} bytes without, {tagged} with: {each:.1} for each");
    }
}
