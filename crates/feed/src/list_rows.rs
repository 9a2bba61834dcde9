//! Rows of posts in lists that have nothing but what their pages show; see `post_lists`.

use rows::{PutRows, SetTable};

use crate::ids::{PostId, UserId};
use crate::post::Visibility;
use crate::records::Post;

/// A list of posts for everybody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PublicList {
    /// Posts of the public timeline: public, neither a boost nor a reply to another user.
    Posts,
    /// Those of them with pictures.
    Pictures,
}

impl PublicList {
    /// The owner of its rows.
    pub(crate) const fn owner(self) -> u64 {
        match self {
            Self::Posts => 0,
            Self::Pictures => 1,
        }
    }
}

/// Owner of the list of an author's posts with pictures.
pub(crate) fn pictures_of(author: UserId) -> u64 {
    1 << 32 | u64::from(author.0)
}

/// The rows of a post in lists: owner and number.
pub(crate) fn rows_of(post: &Post) -> Vec<(u64, u64)> {
    let (mut rows, author) = (Vec::new(), u64::from(post.author.0));
    if post.boost.is_some() {
        return rows;
    }
    let has_pictures = !post.media.is_empty();
    if has_pictures {
        rows.push((pictures_of(post.author), post.listed().number()));
    }
    if post.visibility == Visibility::Public && !post.listed().is_reply_by(post.author) {
        rows.push((PublicList::Posts.owner(), author));
        if has_pictures {
            rows.push((PublicList::Pictures.owner(), author));
        }
    }
    rows
}

/// Replaces the rows of a post in lists that are only in `old` by those in `new`.
pub(crate) fn replace(
    rows: &mut (impl PutRows + ?Sized),
    id: PostId,
    old: &[(u64, u64)],
    new: &[(u64, u64)],
) {
    for (list, _) in old.iter().filter(|row| !new.contains(row)) {
        rows.put_member(SetTable::PostLists, *list, id.0, None);
    }
    for (list, number) in new.iter().filter(|row| !old.contains(row)) {
        rows.put_member(SetTable::PostLists, *list, id.0, Some(*number));
    }
}
