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

/// A row of a post in a list: table, owner and number.
pub(crate) type ListRow = (SetTable, u64, u64);

/// The rows of a post in lists.
pub(crate) fn rows_of(post: &Post) -> Vec<ListRow> {
    let mut rows = shared_rows_of(post);
    if post.boost.is_none() && !post.media.is_empty() {
        rows.push((SetTable::PostLists, pictures_of(post.author), post.listed().number()));
    }
    rows
}

/// The rows of a post in those of these lists that have posts of many users. A post of a disabled account has none of them, so
/// it neither delays a page nor displaces another post from it. Its rows in hashtags stay.
pub(crate) fn shared_rows_of(post: &Post) -> Vec<ListRow> {
    let (mut rows, author) = (Vec::new(), u64::from(post.author.0));
    if post.boost.is_some() {
        return rows;
    }
    if let Some(parent) = post.in_reply_to.filter(|_| post.visibility.is_open()) {
        rows.push((SetTable::OpenReplies, parent.0, author));
    }
    if post.visibility == Visibility::Public && !post.listed().is_reply_by(post.author) {
        rows.push((SetTable::PostLists, PublicList::Posts.owner(), author));
        if !post.media.is_empty() {
            rows.push((SetTable::PostLists, PublicList::Pictures.owner(), author));
        }
    }
    rows
}

/// Replaces the rows of a post in lists that are only in `old` by those in `new`.
pub(crate) fn replace(
    rows: &mut (impl PutRows + ?Sized),
    id: PostId,
    old: &[ListRow],
    new: &[ListRow],
) {
    for (table, owner, _) in old.iter().filter(|row| !new.contains(row)) {
        rows.put_member(*table, *owner, id.0, None);
    }
    for (table, owner, number) in new.iter().filter(|row| !old.contains(row)) {
        rows.put_member(*table, *owner, id.0, Some(*number));
    }
}
