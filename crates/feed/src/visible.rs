//! Visibility of users and posts for a viewer. Every list, thread, timeline and stream asks this module.
//!
//! **Visible** means that the viewer may see it. A block hides two users and their data from each other, as if they did
//! not exist. A post that is not for everybody is visible to its author, to the users it mentions and, unless it is
//! direct, to followers of the author. **Wanted** means visible and not muted. Unwanted posts are left out where the
//! viewer did not ask for their author: at home, in threads and among stories of friends.
//!
//! Both depend only on the current facts, so a block or a mute also affects older posts. `docs/visibility.md` has all
//! rules.

use std::cell::OnceCell;

use rows::{Rows, SetTable, Span};

use crate::blocks::Mute;
use crate::facts::Facts;
use crate::ids::{PostId, UserId};
use crate::page::{Page, PageOf};
use crate::posts::{Post, Posted, Visibility};
use crate::reactions::Reaction;
use crate::scan::{Batch, Shown, scan};

/// A reader of the facts. Remembers whether blocks and mutes exist for the reader, so that most reads look up none.
pub struct Viewer<'a, R: Rows + ?Sized> {
    facts: Facts<'a, R>,
    /// The user who reads; `None` for the application, which sees everything, or for a visitor.
    user: Option<UserId>,
    /// Whether the reader is a visitor without an account.
    is_anyone: bool,
    has_blocks: bool,
    has_mutes: bool,
    /// Threads muted by the user, read on first use.
    muted_threads: OnceCell<Vec<PostId>>,
}

impl<'a, R: Rows + ?Sized> Viewer<'a, R> {
    /// Creates a viewer for `user`, or for the application itself.
    #[must_use]
    pub fn new(facts: Facts<'a, R>, user: Option<UserId>) -> Self {
        let totals = facts.totals();
        let lists = |table| user.is_some_and(|user| facts.has_users_in(table, user));
        let has_blocks =
            totals.blocks > 0 && (lists(SetTable::Blocks) || lists(SetTable::BlockedBy));
        let has_mutes = totals.mutes > 0 && lists(SetTable::Mutes);
        let (is_anyone, muted_threads) = (false, OnceCell::new());
        Self { facts, user, is_anyone, has_blocks, has_mutes, muted_threads }
    }

    /// Creates a viewer for a visitor without an account, who sees public data only.
    #[must_use]
    pub fn anyone(facts: Facts<'a, R>) -> Self {
        Self { is_anyone: true, ..Self::new(facts, None) }
    }

    /// Facts that the viewer reads.
    #[must_use]
    pub fn facts(&self) -> Facts<'a, R> {
        self.facts
    }

    /// User who reads; `None` for the application or a visitor.
    #[must_use]
    pub fn user(&self) -> Option<UserId> {
        self.user
    }

    /// Whether the viewer has no blocks and mutes: all existing users other than those of disabled accounts are visible
    /// and wanted.
    #[must_use]
    pub fn has_no_blocks_or_mutes(&self) -> bool {
        !self.has_blocks && !self.has_mutes
    }

    /// Whether all existing users are visible and wanted: the viewer has no blocks and mutes, and no account is
    /// disabled.
    #[must_use]
    pub fn hides_no_author(&self) -> bool {
        self.has_no_blocks_or_mutes() && self.facts.totals().accounts_disabled == 0
    }

    /// Whether the viewer may see an existing user. Users of disabled accounts are visible only to themselves and to
    /// the application.
    #[must_use]
    pub fn visible_user(&self, other: UserId) -> bool {
        let Some(user) = self.user.filter(|user| *user != other) else {
            let sees_disabled = !self.is_anyone || rows::has_bug("show-disabled-to-anyone");
            return sees_disabled || !self.facts.is_disabled(other);
        };
        let is_blocked = || match rows::has_bug("show-whom-one-blocks") {
            true => self.facts.blocks(other, user),
            false => self.has_blocks && self.facts.is_blocked_between(user, other),
        };
        !self.facts.is_disabled(other) && !is_blocked()
    }

    /// Whether the viewer may see an existing post.
    #[must_use]
    pub fn visible(&self, post: &Post) -> bool {
        let is_mentioned = |user| post.mentions.contains(&user);
        self.sees(post.author, post.visibility, is_mentioned)
            && post.boost.as_ref().is_none_or(|boost| self.visible_user(boost.author))
    }

    /// Whether the viewer may see a post of a list. Reads no row for a post that is for everybody.
    #[must_use]
    pub fn visible_posted(&self, author: UserId, (post, listed): Posted) -> bool {
        let is_mentioned = |user| self.facts.is_mentioned(user, post);
        self.sees(author, listed.visibility(), is_mentioned)
            && listed.boosted().is_none_or(|boost| {
                // The boosted post may be deleted.
                self.visible_user(boost.author) && self.facts.post(post).is_some()
            })
    }

    fn sees(
        &self,
        author: UserId,
        visibility: Visibility,
        is_mentioned: impl FnOnce(UserId) -> bool,
    ) -> bool {
        let Some(user) = self.user.filter(|user| *user != author) else {
            return !self.is_anyone || visibility.is_open() && self.visible_user(author);
        };
        let is_addressed = || match visibility {
            Visibility::Public | Visibility::Unlisted => true,
            Visibility::Direct if rows::has_bug("show-direct-to-followers") => {
                self.facts.follows(user, author) || is_mentioned(user)
            }
            Visibility::Followers => self.facts.follows(user, author) || is_mentioned(user),
            Visibility::Direct => is_mentioned(user),
        };
        self.visible_user(author) && is_addressed()
    }

    /// Whether the viewer may see an existing post and mutes neither its author nor the author of the boosted post.
    #[must_use]
    pub fn wanted(&self, post: &Post) -> bool {
        let mutes = |author| self.mute_of(author).is_some();
        let boosts_muted = || post.boost.as_ref().is_some_and(|boost| mutes(boost.author));
        let boosts_muted = || boosts_muted() && !rows::has_bug("show-boosts-of-muted");
        self.visible(post) && !mutes(post.author) && !boosts_muted()
    }

    /// Whether home shows boosts of posts by `author`.
    #[must_use]
    pub fn wants_boosts_of(&self, author: UserId) -> bool {
        self.wants_public_by(author)
    }

    /// Whether home and lists show the post: it is not a boost of a hidden user's post. Reads the post only if users
    /// may be hidden.
    #[must_use]
    pub fn wants_at_home(&self, post: PostId) -> bool {
        let boosted = || self.facts.post(post).map(|post| post.boost.map(|boost| boost.author));
        self.hides_no_author()
            || boosted().is_some_and(|author| author.is_none_or(|it| self.wants_boosts_of(it)))
    }

    /// Returns a page of the posts that `user` reacted to and `is_shown` accepts, by the stamps of the reactions.
    #[must_use]
    pub fn reacted(
        &self,
        user: UserId,
        reaction: Reaction,
        page: &Page,
        is_shown: impl Fn(&Post) -> bool,
    ) -> PageOf<(u64, PostId)> {
        let facts = self.facts;
        let read = |span| Batch::of(facts.reactions_of(user, reaction, span), span);
        scan(page, read, |reacted: (u64, PostId)| {
            Shown::when(facts.post(reacted.1).is_some_and(|post| is_shown(&post)), reacted)
        })
    }

    /// Whether the viewer may see and wants public posts by an existing user. Reads no post.
    #[must_use]
    pub fn wants_public_by(&self, author: UserId) -> bool {
        self.visible_user(author) && self.mute_of(author).is_none()
    }

    /// Whether the viewer is notified of a post that mentions or mentioned them: the post exists and is visible, no
    /// mute hides notifications by its author, and its thread is not muted.
    #[must_use]
    pub fn notified(&self, id: PostId) -> bool {
        let post = self.facts.post(id);
        post.is_some_and(|post| {
            self.receives_updates_of(&post)
                && (rows::has_bug("notify-of-muted-thread") || !self.mutes_thread_of((id, &post)))
        })
    }

    /// Whether the viewer receives updates of the post: it is visible, and no mute hides notifications by its author.
    #[must_use]
    pub fn receives_updates_of(&self, post: &Post) -> bool {
        self.visible(post)
            && self
                .mute_of(post.author)
                .is_none_or(|mute| !mute.mentions || rows::has_bug("notify-of-muted"))
    }

    /// Whether the viewer has muted the thread of a post.
    #[must_use]
    pub fn mutes_thread_of(&self, (id, post): (PostId, &Post)) -> bool {
        self.mutes_threads() && self.muted_threads().contains(&post.thread_or(id))
    }

    /// Whether the viewer has muted any thread.
    #[must_use]
    pub fn mutes_threads(&self) -> bool {
        !self.muted_threads().is_empty()
    }

    fn muted_threads(&self) -> &[PostId] {
        self.muted_threads
            .get_or_init(|| self.user.map_or_else(Vec::new, |user| self.facts.muted_threads(user)))
    }

    /// Whether the viewer is notified of mentions by `author` in threads that are not muted. The mentioning post may be
    /// deleted.
    #[must_use]
    pub fn notified_by(&self, author: UserId) -> bool {
        self.visible_user(author) && self.mute_of(author).is_none_or(|mute| !mute.mentions)
    }

    fn mute_of(&self, other: UserId) -> Option<Mute> {
        self.user.filter(|_| self.has_mutes).and_then(|user| self.facts.mute(user, other))
    }
}

impl<R: Rows + ?Sized> Facts<'_, R> {
    /// Authors of the stories that `user` sees, in ascending order of ids: friends who are not muted and whose accounts
    /// are not disabled.
    #[must_use]
    pub fn story_authors(&self, user: UserId) -> Vec<UserId> {
        self.without_unwanted(user, self.friends_all(user))
    }

    /// Filters out users whom `user` mutes, and users of disabled accounts.
    pub(crate) fn without_unwanted(&self, user: UserId, mut users: Vec<UserId>) -> Vec<UserId> {
        if self.totals().accounts_disabled > 0 {
            users.retain(|other| !self.is_disabled(*other));
        }
        if self.totals().mutes > 0 && !users.is_empty() && !rows::has_bug("show-muted-stories") {
            let muted = self.users_in(SetTable::Mutes, user, Span::ALL);
            if !muted.is_empty() {
                users.retain(|other| muted.binary_search(other).is_err());
            }
        }
        users
    }
}
