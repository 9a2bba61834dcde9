//! Reading from a node. `try_` functions look only at memory and never wait for a disk: an async
//! worker may call them. The others may read the store and belong where blocking is allowed.

use std::sync::Arc;

use commitlog::Position;
use feed::profile::ProfileFilter;
use feed::tagged::{self, TagQuery};
use feed::thread::{self, Descendants, ThreadPath};
use feed::{
    Batch, Effect, Facts, Page, PageEnds, PageOf, Post, PostId, Reaction, Shown, UserId, UserRef,
    Viewer, scan,
};
use rows::{PointTable, Rows, SetTable};
use store::Store;
use tokio::sync::watch;

use super::Node;
use crate::views::{Change, Lost, News, Views};

impl Node {
    /// The facts of the feed. May block.
    #[must_use]
    pub fn facts(&self) -> Facts<'_, Store> {
        Facts::new(&self.shared.store)
    }

    /// The stamp up to which all changes are in the facts and in the views: a read from now on misses
    /// nothing up to it. A read may show later changes too.
    #[must_use]
    pub fn visible_up_to(&self) -> rows::Stamp {
        rows::Stamp(self.shared.visible_up_to.load(std::sync::atomic::Ordering::Acquire))
    }

    /// The id of a user: `Some(None)` if it is known that the user does not exist, `None` if only the facts
    /// can say.
    #[must_use]
    pub fn try_resolve(&self, user: &UserRef) -> Option<Option<UserId>> {
        let known = match user {
            UserRef::Id(id) => (id.0 < self.shared.store.totals().users).then_some(*id),
            UserRef::Handle(handle) => Some(self.shared.handles.get(&self.shared.store, handle)?),
        };
        Some(known.filter(|id| !self.is_deleted(*id)))
    }

    /// Whether a user was deleted. Never waits for a disk.
    #[must_use]
    pub fn is_deleted(&self, user: UserId) -> bool {
        let store = &self.shared.store;
        // Rows of this table are never removed, so memory knows.
        store.totals().users_deleted > 0
            && store.may_have_member(SetTable::DeletedUsers, user.0.into(), 0)
    }

    /// The id of a user, if they are registered. May block.
    #[must_use]
    pub fn resolve(&self, user: &UserRef) -> Option<UserId> {
        let read = || self.facts().resolve(user);
        match user {
            UserRef::Handle(handle) => self.shared.handles.read(&self.shared.store, handle, read),
            UserRef::Id(_) => read(),
        }
    }

    /// Appends a page of home(user) to `out`: posts as JSON objects joined by commas, newest
    /// first. `None`, and nothing appended, if it is not all in memory.
    pub fn try_home(&self, user: UserId, page: &Page, out: &mut Vec<u8>) -> Option<PageEnds> {
        let mut ids = Vec::with_capacity(page.limit.min(feed::limits::PAGE_MAX));
        let more = self.shared.views.try_home(user, page, &mut ids)?;
        let start = out.len();
        for (index, id) in ids.iter().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            if !self.try_home_post(user, *id, out) {
                out.truncate(start);
                return None;
            }
        }
        Some(PageOf::newest_first(ids, more, page).ends(page))
    }

    /// As [`Node::try_home`], reading what is not in memory; the user's timeline is active from now on. May
    /// block.
    pub fn home(&self, user: UserId, page: &Page, out: &mut Vec<u8>) -> PageEnds {
        let home = self.home_ids(user, page);
        let viewer = self.viewer(Some(user));
        self.append_wanted(&home.items, |author| viewer.wants_boosts_of(author), out);
        home.ends(page)
    }

    /// Appends a post that is in home(user) as JSON if it is in memory, and if no block or mute hides what it boosts; false
    /// if not.
    pub fn try_home_post(&self, user: UserId, post: PostId, out: &mut Vec<u8>) -> bool {
        self.try_wanted_post(post, |author| self.surely_wants(user, author), out)
    }

    /// As [`Node::try_home_post`]. May block.
    pub fn home_post(&self, user: UserId, post: PostId, out: &mut Vec<u8>) -> bool {
        let wants = |author| self.viewer(Some(user)).wants_boosts_of(author);
        self.views().entities.post(&self.shared.store, self.facts(), post, wants, out)
    }

    /// A page of posts that mention `user`, as [`Node::home`] does. May block.
    pub fn mentions(&self, user: UserId, page: &Page, out: &mut Vec<u8>) -> PageEnds {
        self.append_page(&self.mention_ids(user, page), page, out)
    }

    /// The ids on a page of posts that mention `user`, without posts that are hidden from the user. May block.
    #[must_use]
    pub fn mention_ids(&self, user: UserId, page: &Page) -> PageOf<PostId> {
        let (facts, viewer) = (self.facts(), self.viewer(Some(user)));
        let read = |span| Batch::of(facts.mentions_of(user, span), span);
        scan(page, read, |post| Shown::when(viewer.notified(post), post))
    }

    /// A page of the posts to which `user` reacted, by descending stamps of the reactions, which are its ends. Without posts
    /// that the viewer may not see. May block.
    pub fn reacted<R: Rows + ?Sized>(
        &self,
        viewer: &Viewer<'_, R>,
        user: UserId,
        reaction: Reaction,
        page: &Page,
        out: &mut Vec<u8>,
    ) -> PageEnds {
        let found = viewer.reacted(user, reaction, page, |post| viewer.visible(post));
        let posts: Vec<_> = found.items.iter().map(|(_, post)| *post).collect();
        self.append_posts(&posts, out);
        found.ends(page)
    }

    /// A page of the posts by `user` that the viewer may see, as [`Node::home`] does; see [`feed::profile`]. May block.
    pub fn posts_by<R: Rows + ?Sized>(
        &self,
        viewer: &Viewer<'_, R>,
        user: UserId,
        page: &Page,
        out: &mut Vec<u8>,
    ) -> PageEnds {
        let posts = self.visible_posts(viewer, user, page, &ProfileFilter::default());
        self.append_page(&posts, page, out)
    }

    /// Appends a page of a hashtag timeline as `reader` sees it, or the application itself, as [`Node::home`] does. May block.
    pub fn append_tagged(
        &self,
        reader: Option<UserId>,
        query: &TagQuery,
        page: &Page,
        out: &mut Vec<u8>,
    ) -> PageEnds {
        self.append_page(&tagged::posts(&self.viewer(reader), query, page), page, out)
    }

    /// Appends `"ancestors":[...],"descendants":[...]` of a post: posts as JSON objects, oldest first and
    /// in thread order; see [`feed::thread`] for the bounds. Of the descendants `limit` posts after `from`;
    /// returns where the next page begins, if there is more. `viewer` sees only what is visible and wanted, the
    /// application (`None`) everything. `None`, and nothing appended, if there is no such post. May block.
    pub fn context(
        &self,
        viewer: Option<UserId>,
        post: PostId,
        from: &[PostId],
        limit: usize,
        out: &mut Vec<u8>,
    ) -> Option<Option<ThreadPath>> {
        let viewer = self.viewer(viewer);
        self.facts().post(post).filter(|post| viewer.visible(post))?;
        out.extend_from_slice(b"\"ancestors\":[");
        self.append_posts(&thread::ancestors(&viewer, post), out);
        out.extend_from_slice(b"],\"descendants\":[");
        let Descendants { posts, next } = thread::descendants(&viewer, post, from, limit);
        self.append_posts(&posts, out);
        out.push(b']');
        Some(next)
    }

    fn append_page(&self, found: &PageOf<PostId>, page: &Page, out: &mut Vec<u8>) -> PageEnds {
        self.append_posts(&found.items, out);
        found.ends(page)
    }

    /// The ids on a page of the posts by `user` that the filter allows and the viewer may see. May block.
    #[must_use]
    pub fn visible_posts<R: Rows + ?Sized>(
        &self,
        viewer: &Viewer<'_, R>,
        user: UserId,
        page: &Page,
        filter: &ProfileFilter,
    ) -> PageOf<PostId> {
        let read = |span| self.views().posts_by(self.facts(), user, span);
        feed::profile::posts(viewer, user, page, filter, read)
    }

    /// Whether it is known that neither a block nor a mute hides `other` from `user`, and their account is not disabled; false
    /// if only the facts can say.
    #[must_use]
    pub fn surely_wants(&self, user: UserId, other: UserId) -> bool {
        let (store, totals) = (&self.shared.store, self.shared.store.totals());
        let may = |table, one: UserId, other: UserId| {
            store.may_have_member(table, one.0.into(), other.0.into())
        };
        let blocks = |one, other| totals.blocks > 0 && may(SetTable::Blocks, one, other);
        let may_mute = totals.mutes > 0 && may(SetTable::Mutes, user, other);
        // A row says whether others must ask them, or their account is disabled.
        let may_be_disabled = totals.accounts_disabled > 0
            && store.may_have_members(SetTable::LockedUsers, other.0.into());
        !(blocks(user, other) || blocks(other, user) || may_mute || may_be_disabled)
    }

    /// As [`Node::try_post`]; false also if it is not known that `user` may see it and has not muted its author.
    pub fn try_post_for(&self, user: UserId, post: PostId, out: &mut Vec<u8>) -> bool {
        let is_shown = |post: Post| {
            let is_addressed =
                post.visibility.is_open() || post.author == user || post.mentions.contains(&user);
            let boosted = post.boost.map_or(post.author, |boost| boost.author);
            let wants = |author| self.surely_wants(user, author);
            is_addressed && wants(post.author) && wants(boosted)
        };
        let row = self.shared.store.point_in_memory(PointTable::Post, post.0);
        row.is_some_and(|row| is_shown(rows::decode(&row))) && self.try_post(post, out)
    }

    /// Appends a post as JSON if it is in memory; false if not, whether the post exists or not.
    pub fn try_post(&self, post: PostId, out: &mut Vec<u8>) -> bool {
        self.try_wanted_post(post, |_| true, out)
    }

    fn try_wanted_post(
        &self,
        post: PostId,
        wants: impl FnOnce(UserId) -> bool,
        out: &mut Vec<u8>,
    ) -> bool {
        let row = |id: PostId| self.shared.store.point_in_memory(PointTable::Post, id.0);
        let shown = |post: &Post| !self.is_deleted(post.author);
        let in_memory = |id| row(id).map(|row| rows::decode::<Post>(&row)).filter(shown);
        self.views().entities.try_post(&self.shared.store, in_memory, post, wants, out)
    }

    /// Appends a post as JSON; false if there is none. May block.
    pub fn post(&self, post: PostId, out: &mut Vec<u8>) -> bool {
        self.views().entities.post(&self.shared.store, self.facts(), post, |_| true, out)
    }

    /// As [`Node::post`]; false also if `user` may not see it. May block.
    pub fn post_for(&self, user: UserId, post: PostId, out: &mut Vec<u8>) -> bool {
        let viewer = self.viewer(Some(user));
        let visible = || self.facts().post(post).is_some_and(|post| viewer.visible(&post));
        visible() && self.post(post, out)
    }

    /// What a user may see, or the application itself (`None`). May block.
    #[must_use]
    pub fn viewer(&self, user: Option<UserId>) -> Viewer<'_, Store> {
        Viewer::new(self.facts(), user)
    }

    /// The ids on a page of home(user), without boosts of posts by users whom a block or a mute hides; the user's timeline is
    /// active from now on. May block.
    #[must_use]
    pub fn home_ids(&self, user: UserId, page: &Page) -> PageOf<PostId> {
        // Before the reads: they miss nothing up to it.
        let newest = PostId(self.visible_up_to().0);
        let read = |page: &Page| self.views().home(self.facts(), user, page, newest);
        let viewer = self.viewer(Some(user));
        if viewer.hides_no_author() {
            return read(page);
        }
        let read = |span| {
            let part = Page::of(span);
            Batch::of_page(read(&part), &part)
        };
        scan(page, read, |post| Shown::when(viewer.wants_at_home(post), post))
    }

    /// As [`Node::home_ids`]; `None` if it is not all in memory.
    #[must_use]
    pub fn try_home_ids(&self, user: UserId, page: &Page) -> Option<PageOf<PostId>> {
        let mut items = Vec::new();
        let more = self.views().try_home(user, page, &mut items)?;
        Some(PageOf::newest_first(items, more, page))
    }

    /// Watches for new posts at home and new mentions, edits and deletions of both, changes of whom the
    /// user follows, and stories of friends that are posted or end. May block.
    #[must_use]
    pub fn watch(&self, user: UserId) -> Watch {
        let news = Some(self.views().watch(self.facts(), user));
        Watch { node: self.clone(), user, news }
    }

    /// The effects of the next group after `cursor` that has some, or none if there is no such group; `cursor` is then at
    /// the last group that they include. Whoever follows them keeps the cursor, in memory or in files of its own. Facts and
    /// views show what the effects say, or something later.
    ///
    /// Stories that are viewed, and samples, are not among them. What a command changed that panicked and was undone has no
    /// effects; those of others are there, but the facts may have shown it for a while.
    ///
    /// **After a power loss** positions are used again, for other groups, if the log is not made durable before each reply
    /// ([`Durability`](crate::Durability)). So a cursor that is kept in files is valid only together with a mark of the
    /// groups up to it, for example the digest of outcomes there ([`rows::Totals::outcomes`]): if the facts have another
    /// one at that position, what was derived is to be derived again.
    ///
    /// # Errors
    /// [`Lost`] if some of the effects are not kept any more: what was derived from them is to be derived from the facts,
    /// which have everything up to `cursor` then. The effects that are kept follow.
    pub fn next_effects(&self, cursor: &mut Position) -> Result<Option<Arc<[Effect]>>, Lost> {
        self.views().next_effects(cursor)
    }

    /// Waits until there may be effects after `cursor`: a group was applied.
    pub async fn effects_after(&self, cursor: Position) {
        self.shared.positions.reached(Position(cursor.0 + 1)).await;
    }

    /// The position of the last group whose effects the facts and views show.
    #[must_use]
    pub fn effects_end(&self) -> Position {
        self.views().effects_end()
    }

    pub(crate) fn views(&self) -> &Views {
        &self.shared.views
    }

    /// Appends posts as JSON objects joined by commas.
    pub(crate) fn append_posts(&self, posts: &[PostId], out: &mut Vec<u8>) {
        self.append_wanted(posts, |_| true, out);
    }

    /// As [`Node::append_posts`], without boosts of posts by an author of whom `wants` nothing.
    fn append_wanted(&self, posts: &[PostId], wants: impl Fn(UserId) -> bool, out: &mut Vec<u8>) {
        let start = out.len();
        for id in posts {
            let before = out.len();
            if before > start {
                out.push(b',');
            }
            // A post may have been deleted since its id was read, or with its author: then it is left out.
            if !self.views().entities.post(&self.shared.store, self.facts(), *id, &wants, out) {
                out.truncate(before);
            }
        }
    }
}

/// Notifies when there may be something new for a user. Dropping it ends the watch.
pub struct Watch {
    node: Node,
    user: UserId,
    news: Option<watch::Receiver<News>>,
}

impl Watch {
    /// Waits until something may be new at home, in the mentions or among the stories since
    /// [`Watch::mentions`] was called, or since the watch began. News that come while no call waits are
    /// reported once.
    ///
    /// The user's home timeline must be in memory for deletions and edits of posts at home: read it once after the watch
    /// began, and again after every change. It may be evicted at any time; then such a change is reported as
    /// [`Change::Missed`], together with the next news.
    pub async fn changed(&mut self) {
        let closed = match &mut self.news {
            Some(news) => news.changed().await.is_err(),
            None => true,
        };
        if closed {
            std::future::pending::<()>().await;
        }
    }

    /// A counter that rises when the user is mentioned, or a few others are; it includes all mentions up to an earlier
    /// [`Node::visible_up_to`]. [`Watch::changed`] does not report again what is new until now.
    pub fn mentions(&mut self) -> u32 {
        self.news.iter_mut().for_each(|news| drop(news.borrow_and_update()));
        self.node.views().mention_changes(self.user)
    }

    /// The number of changes since the first watch of the user began.
    #[must_use]
    pub fn changes_end(&self) -> u64 {
        self.news.as_ref().map_or(0, |news| news.borrow().end())
    }

    /// The changes after the first `read` ones, oldest first, each with the number of changes up to and
    /// including it, which is the `read` for the next call. The newest 32 are kept. Call this before
    /// reading the home timeline: that read keeps the timeline in memory, so that later changes are recorded.
    /// A caller who also reads everything again after each [`Change::Missed`] misses nothing.
    #[must_use]
    pub fn changes_after(&self, read: u64) -> Vec<(u64, Change)> {
        self.news.as_ref().map_or_else(Vec::new, |news| news.borrow().after(read))
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.news = None;
        self.node.views().unwatch(self.user);
    }
}
