//! Reads of posts and timelines. Functions with `try_` read only memory and never wait for a disk, so an async worker
//! may call them. Other functions may read the store and belong on threads that may block.

use std::sync::Arc;

use commitlog::Position;
use feed::profile::ProfileFilter;
use feed::tagged::{self, TagQuery};
use feed::thread::{self, Descendants, ThreadPath};
use feed::{
    Batch, Effect, Facts, Page, PageEnds, PageOf, Post, PostId, Reaction, Revision, Shown, UserId,
    UserRef, Viewer, scan,
};
use rows::{PointTable, Rows, SetTable};
use store::Store;
use tokio::sync::watch;

use super::Node;
use crate::views::{Change, Lost, News, UserNames, Views};

impl Node {
    /// Returns the facts of the feed. May block.
    #[must_use]
    pub fn facts(&self) -> Facts<'_, Store> {
        Facts::new(&self.shared.store)
    }

    /// Returns a stamp up to which all changes are visible in the facts and the views from now on. Reads may also show
    /// later changes.
    #[must_use]
    pub fn visible_up_to(&self) -> rows::Stamp {
        rows::Stamp(self.shared.visible_up_to.load(std::sync::atomic::Ordering::Acquire))
    }

    /// Resolves a user from memory: `Some(None)` if the user does not exist, `None` if only the facts can decide.
    #[must_use]
    pub fn try_resolve(&self, user: &UserRef) -> Option<Option<UserId>> {
        let known = match user {
            UserRef::Id(id) => (id.0 < self.shared.store.totals().users).then_some(*id),
            UserRef::Handle(handle) => Some(self.shared.handles.get(&self.shared.store, handle)?),
        };
        Some(known.filter(|id| !self.is_deleted(*id)))
    }

    /// Whether the user is deleted. Never waits for a disk.
    #[must_use]
    pub fn is_deleted(&self, user: UserId) -> bool {
        let store = &self.shared.store;
        // Rows of this table are never removed, so memory can decide.
        store.totals().users_deleted > 0
            && store.may_have_member(SetTable::DeletedUsers, user.0.into(), 0)
    }

    /// Returns the id of a registered user. May block.
    #[must_use]
    pub fn resolve(&self, user: &UserRef) -> Option<UserId> {
        let read = || self.facts().resolve(user);
        match user {
            UserRef::Handle(handle) => self.shared.handles.read(&self.shared.store, handle, read),
            UserRef::Id(_) => read(),
        }
    }

    /// Appends a page of the user's home timeline to `out`: posts as JSON objects separated by commas, newest first.
    /// Returns `None` and appends nothing if a part is not in memory.
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

    /// Appends a page of the user's home timeline like [`Node::try_home`], reading what is not in memory, and marks the
    /// timeline as active. May block.
    pub fn home(&self, user: UserId, page: &Page, out: &mut Vec<u8>) -> PageEnds {
        let home = self.home_ids(user, page);
        let viewer = self.viewer(Some(user));
        self.append_wanted(&home.items, |author| viewer.wants_boosts_of(author), out);
        home.ends(page)
    }

    /// Appends a post of the user's home timeline as JSON if it is in memory and no block or mute hides the post that
    /// it boosts; returns false otherwise.
    pub fn try_home_post(&self, user: UserId, post: PostId, out: &mut Vec<u8>) -> bool {
        self.try_wanted_post(post, |author| self.surely_wants(user, author), out)
    }

    /// Appends a post of the user's home timeline like [`Node::try_home_post`], reading what is not in memory. May
    /// block.
    pub fn home_post(&self, user: UserId, post: PostId, out: &mut Vec<u8>) -> bool {
        let wants = |author| self.viewer(Some(user)).wants_boosts_of(author);
        self.views().entities.post(&self.shared.store, self.facts(), post, wants, out)
    }

    /// Appends a page of the posts that mention `user`, in the form of [`Node::home`]. May block.
    pub fn mentions(&self, user: UserId, page: &Page, out: &mut Vec<u8>) -> PageEnds {
        self.append_page(&self.mention_ids(user, page), page, out)
    }

    /// Returns the ids on a page of the posts that mention `user`, except hidden ones. May block.
    #[must_use]
    pub fn mention_ids(&self, user: UserId, page: &Page) -> PageOf<PostId> {
        let (facts, viewer) = (self.facts(), self.viewer(Some(user)));
        let read = |span| Batch::of(facts.mentions_of(user, span), span);
        scan(page, read, |post| Shown::when(viewer.notified(post), post))
    }

    /// Appends a page of the posts to which `user` reacted and that the viewer may see, newest reaction first. The ends
    /// of the page are stamps of reactions. May block.
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

    /// Appends a page of the posts by `user` that the viewer may see, in the form of [`Node::home`]. [`feed::profile`]
    /// describes which posts these are. May block.
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

    /// Appends a page of a hashtag timeline as `reader`, or the application (`None`), sees it, in the form of
    /// [`Node::home`]. May block.
    pub fn append_tagged(
        &self,
        reader: Option<UserId>,
        query: &TagQuery,
        page: &Page,
        out: &mut Vec<u8>,
    ) -> PageEnds {
        self.append_page(&tagged::posts(&self.viewer(reader), query, page), page, out)
    }

    /// Appends `"ancestors":[...],"items":[...` of a post: JSON objects, ancestors oldest first and items in the order
    /// of the thread, within the bounds of [`feed::thread`]. Includes up to `limit` replies after `from` and returns
    /// the start of the next page. `viewer` sees only visible and wanted posts, the application (`None`) all. Returns
    /// `None` and appends nothing if the post is not visible. May block.
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
        out.extend_from_slice(b"],\"items\":[");
        let Descendants { posts, next } = thread::descendants(&viewer, post, from, limit);
        self.append_posts(&posts, out);
        Some(next)
    }

    /// Appends the posts of a page in the form of [`Node::home`]. May block.
    pub fn append_page(&self, found: &PageOf<PostId>, page: &Page, out: &mut Vec<u8>) -> PageEnds {
        self.append_posts(&found.items, out);
        found.ends(page)
    }

    /// Returns the ids on a page of the posts by `user` that match the filter and that the viewer may see. May block.
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

    /// Whether no block or mute hides `other` from `user` and the account of `other` is enabled; false also if memory
    /// alone cannot decide.
    #[must_use]
    pub fn surely_wants(&self, user: UserId, other: UserId) -> bool {
        let (store, totals) = (&self.shared.store, self.shared.store.totals());
        let may = |table, one: UserId, other: UserId| {
            store.may_have_member(table, one.0.into(), other.0.into())
        };
        let blocks = |one, other| totals.blocks > 0 && may(SetTable::Blocks, one, other);
        let may_mute = totals.mutes > 0 && may(SetTable::Mutes, user, other);
        // The table has a row for users who approve follows, and for disabled accounts.
        let may_be_disabled = totals.accounts_disabled > 0
            && store.may_have_members(SetTable::LockedUsers, other.0.into());
        !(blocks(user, other) || blocks(other, user) || may_mute || may_be_disabled)
    }

    /// Appends a post like [`Node::try_post`]. Returns false also if memory cannot decide whether `user` may see the
    /// post and has not muted its author.
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

    /// Appends a post as JSON; returns false if it is not in memory, whether or not it exists.
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

    /// Returns the handle and the name of a user; `None` if the user does not exist. May block.
    #[must_use]
    pub fn names(&self, user: UserId) -> Option<UserNames> {
        let names = || self.views().entities.names_of(&self.shared.store, self.facts(), user);
        if self.is_deleted(user) { None } else { names() }
    }

    /// Appends a post as JSON; returns false if it does not exist. May block.
    pub fn post(&self, post: PostId, out: &mut Vec<u8>) -> bool {
        self.views().entities.post(&self.shared.store, self.facts(), post, |_| true, out)
    }

    /// Returns the revision of a post. A post that is read afterwards is not older. While an edit is applied, cached
    /// posts may be older, so until the edit is visible the result is 0, which is the revision of no post. May block.
    #[must_use]
    pub fn post_revision(&self, post: PostId) -> Option<Revision> {
        let visible = self.visible_up_to();
        let row = self.facts().post(post)?;
        Some(if row.last_edit(post) <= visible { row.revision(post) } else { Revision(0) })
    }

    /// Appends a post like [`Node::post`]; returns false also if `user` may not see it. May block.
    pub fn post_for(&self, user: UserId, post: PostId, out: &mut Vec<u8>) -> bool {
        let viewer = self.viewer(Some(user));
        let visible = || self.facts().post(post).is_some_and(|post| viewer.visible(&post));
        visible() && self.post(post, out)
    }

    /// Returns the view of a user, or of the application (`None`), on the posts. May block.
    #[must_use]
    pub fn viewer(&self, user: Option<UserId>) -> Viewer<'_, Store> {
        Viewer::new(self.facts(), user)
    }

    /// Returns the ids on a page of the user's home timeline, except boosts of posts by users that a block or a mute
    /// hides, and marks the timeline as active. May block.
    #[must_use]
    pub fn home_ids(&self, user: UserId, page: &Page) -> PageOf<PostId> {
        // `newest` is read first, so that the following reads include all posts up to it.
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

    /// Returns the ids of [`Node::home_ids`]; `None` if a part is not in memory.
    #[must_use]
    pub fn try_home_ids(&self, user: UserId, page: &Page) -> Option<PageOf<PostId>> {
        let mut items = Vec::new();
        let more = self.views().try_home(user, page, &mut items)?;
        Some(PageOf::newest_first(items, more, page))
    }

    /// Watches for new posts in the user's home timeline and new mentions, their edits and deletions, changes to the
    /// user's follows, and stories of friends. May block.
    #[must_use]
    pub fn watch(&self, user: UserId) -> Watch {
        let news = Some(self.views().watch(self.facts(), user));
        Watch { node: self.clone(), user, news }
    }

    /// Returns the effects of the next group after `cursor` that has any, and sets `cursor` to that group; `None` if
    /// there is no such group. The consumer stores the cursor, in memory or in its own files. Facts and views show the
    /// state of these effects or a later one.
    ///
    /// Views of stories and samples have no effects. A command that panicked and was undone has none either, although
    /// the facts may have shown its changes for a short time.
    ///
    /// **After a power loss** positions may be reused for other groups, unless the log is durable before each reply
    /// ([`Durability`](crate::Durability)). So store a cursor in files only together with a mark of the groups up to
    /// it, for example their digest of outcomes ([`rows::Totals::outcomes`]): if the facts have another digest at that
    /// position, derive everything again.
    ///
    /// # Errors
    /// [`Lost`] if some of the effects are no longer kept: derive everything again from the facts, which then include
    /// all changes up to `cursor`. The following calls return the kept effects.
    pub fn next_effects(&self, cursor: &mut Position) -> Result<Option<Arc<[Effect]>>, Lost> {
        self.views().next_effects(cursor)
    }

    /// Waits until a group after `cursor` was applied; it may have effects.
    pub async fn effects_after(&self, cursor: Position) {
        self.shared.positions.reached(Position(cursor.0 + 1)).await;
    }

    /// Returns the position of the last group whose effects are visible in the facts and views.
    #[must_use]
    pub fn effects_end(&self) -> Position {
        self.views().effects_end()
    }

    pub(crate) fn views(&self) -> &Views {
        &self.shared.views
    }

    /// Appends posts as JSON objects separated by commas.
    pub(crate) fn append_posts(&self, posts: &[PostId], out: &mut Vec<u8>) {
        self.append_wanted(posts, |_| true, out);
    }

    /// Appends posts like [`Node::append_posts`], except boosts of posts by authors for whom `wants` is false.
    fn append_wanted(&self, posts: &[PostId], wants: impl Fn(UserId) -> bool, out: &mut Vec<u8>) {
        let start = out.len();
        for id in posts {
            let before = out.len();
            if before > start {
                out.push(b',');
            }
            // A post that was deleted after its id was read, alone or with its author, is left out.
            if !self.views().entities.post(&self.shared.store, self.facts(), *id, &wants, out) {
                out.truncate(before);
            }
        }
    }
}

/// Notifies of news for a user. Dropping it ends the watch.
pub struct Watch {
    node: Node,
    user: UserId,
    news: Option<watch::Receiver<News>>,
}

impl Watch {
    /// Waits for news in the home timeline, the mentions or the stories since the last call of [`Watch::mentions`], or
    /// since the watch began. News that arrive while no call waits are reported once.
    ///
    /// Deletions and edits of home posts are noticed only while the user's home timeline is in memory: read it once
    /// after the watch began, and again after every change. If the timeline was evicted, a change is reported as
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

    /// Returns a counter that rises when the user is mentioned, and sometimes when other users are. It includes all
    /// mentions up to an earlier [`Node::visible_up_to`]. [`Watch::changed`] then reports only later news.
    pub fn mentions(&mut self) -> u32 {
        self.news.iter_mut().for_each(|news| drop(news.borrow_and_update()));
        self.node.views().mention_changes(self.user)
    }

    /// Returns the number of changes since the user's first watch began.
    #[must_use]
    pub fn changes_end(&self) -> u64 {
        self.news.as_ref().map_or(0, |news| news.borrow().end())
    }

    /// Returns the changes after the first `read` ones, oldest first, each with the number of changes up to and
    /// including it, which is the `read` of the next call. The newest 32 are kept. Call this before reading the home
    /// timeline, because that read keeps the timeline in memory, so that later changes are recorded. A caller who also
    /// reads everything again after each [`Change::Missed`] misses nothing.
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use feed::{Bio, Command, Done, Draft, Handle, Name, Patch, PostText};

    use super::*;
    use crate::NodeOptions;

    #[tokio::test]
    async fn an_edit_has_no_revision_until_no_older_post_is_read() {
        let data = tempfile::tempdir().unwrap();
        let node = Node::open(&NodeOptions::new(data.path())).unwrap();
        let submit =
            async |command: Command| node.submit(command.into()).await.unwrap().outcome.unwrap();
        let (handle, name) = (Handle::parse("ada").unwrap(), Name::default());
        submit(Command::Register { handle, name, bio: Bio::default() }).await;
        let text = |text| PostText::parse(text).unwrap();
        let draft = Draft::new(UserRef::Id(UserId(0)), text("old"));
        let Done::Posted(post) = submit(Command::Publish(Box::new(draft))).await else { panic!() };
        let first = node.facts().post_revision(post);
        assert_eq!(node.post_revision(post), first);

        submit(Command::edit(post, Patch::of_text(text("new")))).await;
        let edited = node.visible_up_to();
        let visible_up_to = |stamp| node.shared.visible_up_to.store(stamp, Ordering::Release);
        visible_up_to(post.0);
        assert_eq!(node.post_revision(post), Some(Revision(0)), "others may read the old text");
        visible_up_to(edited.0);
        let second = node.post_revision(post);
        assert!(second != first && second == node.facts().post_revision(post));
        node.close();
    }
}
