//! Posts of every visibility.

use feed::{NewPost, PostText, UserRef, Visibility};

/// A post that replies to user `to`, or only mentions them, of each visibility in turn; without one a public post.
pub(in crate::views) fn new_post(author: UserRef, to: Option<u32>, turn: u64) -> NewPost {
    let text = match (to, turn % 3) {
        (Some(to), 0) => format!("@u{to} hello"),
        (Some(to), _) => format!("hello @u{to}"),
        (None, _) => "plain".into(),
    };
    let Ok(text) = PostText::parse(&text) else { panic!("a text") };
    let visibility = to.map_or(Visibility::Public, |_| Visibility::ALL[(turn % 4) as usize]);
    NewPost { visibility, ..NewPost::new(author, text) }
}
