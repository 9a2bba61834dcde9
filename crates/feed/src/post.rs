//! Who may see a post, what lists know about it, and the input that publishes or edits one.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::ids::{PostId, UserId, UserRef};
use crate::text::{Language, PostText, Warning};

/// Who may see a post, besides its author and the users it mentions. A block hides it in any case. Stored as the
/// position in the enum.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub enum Visibility {
    /// Everybody, also in lists of the newest posts of all users.
    #[default]
    Public,
    /// Everybody, but not in those lists.
    Unlisted,
    /// The followers of the author.
    Followers,
    /// Nobody else.
    Direct,
}

impl Visibility {
    /// All of them, in the order of the enum.
    pub const ALL: [Self; 4] = [Self::Public, Self::Unlisted, Self::Followers, Self::Direct];

    /// Its name in interfaces.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Public => "public",
            Self::Unlisted => "unlisted",
            Self::Followers => "followers",
            Self::Direct => "direct",
        }
    }

    /// Reverses [`Visibility::name`].
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|visibility| visibility.name() == name)
    }

    /// Whether a post of this visibility may be named to all who see a reply to it of the other one: it is for everybody,
    /// or the reply is for fewer.
    #[must_use]
    pub const fn shows_to_all_of(self, reply: Self) -> bool {
        self.is_open() || self as u8 <= reply as u8
    }

    /// Of its position in the enum.
    pub(crate) const fn of_number(number: u64) -> Self {
        match number {
            0 => Self::Public,
            1 => Self::Unlisted,
            2 => Self::Followers,
            _ => Self::Direct,
        }
    }

    /// Whether everybody may see it who is not separated from the author by a block.
    #[must_use]
    pub const fn is_open(self) -> bool {
        matches!(self, Self::Public | Self::Unlisted)
    }
}

/// What a list knows about a post, so that most lists are read without reading posts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Listed {
    /// The user it replies to, if it is a reply.
    pub reply_to: Option<UserId>,
    /// Who may see it.
    pub visibility: Visibility,
}

impl Listed {
    const VISIBILITY_SHIFT: u32 = 33;

    /// The number of its row: the user replied to plus 1, or 0, in 33 bits, then the visibility in 2. Rows of formats
    /// before 9 have no visibility, and all were public.
    #[must_use]
    pub fn number(self) -> u64 {
        let reply = self.reply_to.map_or(0, |user| u64::from(user.0) + 1);
        reply | (self.visibility as u64) << Self::VISIBILITY_SHIFT
    }

    /// Reverses [`Listed::number`].
    #[must_use]
    pub fn of_number(number: u64) -> Self {
        let reply = number & ((1 << Self::VISIBILITY_SHIFT) - 1);
        let reply_to = reply.checked_sub(1).and_then(|user| u32::try_from(user).ok()).map(UserId);
        let visibility = Visibility::of_number(number >> Self::VISIBILITY_SHIFT & 3);
        Self { reply_to, visibility }
    }
}

/// A post in a list: its id, and what the list knows about it.
pub type Posted = (PostId, Listed);

/// The users to whom a direct post is shown, besides its author.
pub type Recipients = Arc<Vec<UserId>>;

/// A post as it is loaded into memory for many readers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loaded {
    /// Its author.
    pub author: UserId,
    /// Its id, and what lists know about it.
    pub posted: Posted,
    /// The users it mentions, if it is direct.
    pub recipients: Option<Recipients>,
}

/// A post to be published.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewPost {
    /// The author.
    pub author: UserRef,
    /// Its text.
    pub text: PostText,
    /// The post replied to.
    pub parent: Option<PostId>,
    /// Who may see it.
    pub visibility: Visibility,
    /// Shown instead of the text until the reader asks for it; may be empty.
    pub warning: Warning,
    /// Whether its images should be hidden until the reader asks for them.
    pub sensitive: bool,
    /// The language of the text.
    pub language: Option<Language>,
}

impl NewPost {
    /// A public post without a warning, in no particular language, that replies to no post.
    #[must_use]
    pub fn new(author: UserRef, text: PostText) -> Self {
        Self {
            author,
            text,
            parent: None,
            visibility: Visibility::Public,
            warning: Warning::default(),
            sensitive: false,
            language: None,
        }
    }
}

/// A change of a post. `None` leaves a field as it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PostEdit {
    /// The post.
    pub post: PostId,
    /// The new text.
    pub text: Option<PostText>,
    /// The new warning; an empty one removes it.
    pub warning: Option<Warning>,
    /// Whether it is sensitive from now on.
    pub sensitive: Option<bool>,
    /// The new language, or that there is none.
    pub language: Option<Option<Language>>,
}

impl PostEdit {
    /// A change of the text alone.
    #[must_use]
    pub fn of_text(post: PostId, text: PostText) -> Self {
        Self { post, text: Some(text), warning: None, sensitive: None, language: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_keeps_the_reply_and_the_visibility_and_old_rows_are_public() {
        for reply_to in [None, Some(UserId(0)), Some(UserId(7)), Some(UserId(u32::MAX - 1))] {
            for visibility in Visibility::ALL {
                let listed = Listed { reply_to, visibility };
                assert_eq!(Listed::of_number(listed.number()), listed);
                assert_eq!(Visibility::named(visibility.name()), Some(visibility));
                assert_eq!(listed.number() >> 35, 0, "the bits above are free");
            }
            let old = reply_to.map_or(0, |user| u64::from(user.0) + 1);
            assert_eq!(Listed::of_number(old), Listed { reply_to, visibility: Visibility::Public });
        }
    }
}
