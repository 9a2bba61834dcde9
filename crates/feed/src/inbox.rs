//! The notifications that a user is shown.

use std::collections::BTreeMap;

use rows::{Order, Rows, Span};

use crate::facts::notifications::notifies;
use crate::gather::{self, Gathered};
use crate::ids::{PostId, UserId};
use crate::notification::{Notice, NoticeKind, NoticeRow, Notification, NotificationId, Stored};
use crate::page::{Cursor, Page, PageOf, ROWS_MAX};
use crate::reaction::Reaction;
use crate::visible::Viewer;

/// Rows that are read together after the first ones.
const READ_ROWS: usize = 128;

/// Filter of notifications; by default all are wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NotificationFilter {
    /// Those of these kinds.
    pub kinds: Option<Vec<NoticeKind>>,
    /// Those that this user caused.
    pub by: Option<UserId>,
}

impl NotificationFilter {
    fn has_kind(&self, kind: NoticeKind) -> bool {
        self.kinds.as_ref().is_none_or(|kinds| kinds.contains(&kind))
    }
}

/// A page of notifications that are shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotificationPage {
    /// Newest first.
    pub found: PageOf<Notification>,
    /// Where the next page begins if it is not the last notification: only after thousands of rows that are not shown.
    pub end: Option<NotificationId>,
}

/// Rows of notifications, whether they are shown or not.
struct NoticeRows {
    rows: PageOf<(u64, NoticeRow)>,
    /// Where the next page begins if it is not the last row: only after many posts that are no notifications.
    end: Option<u64>,
}

impl<R: Rows + ?Sized> Viewer<'_, R> {
    /// A page of the wanted notifications of the viewer. None for the application itself. Passes over rows that are not
    /// shown, within a bound.
    #[must_use]
    pub fn notifications(
        &self,
        page: &Page<NotificationId>,
        filter: &NotificationFilter,
    ) -> NotificationPage {
        let is_up = matches!(page.cursor, Cursor::After(_));
        let (mut found, mut next, mut read) = (Vec::new(), *page, 0);
        let end = loop {
            let NoticeRows { rows: PageOf { mut items, more }, end } = self.all_rows(&next, filter);
            if is_up {
                items.reverse();
            }
            read += items.len() + end.map_or(0, |_| ROWS_MAX);
            let end = end.or_else(|| items.last().map(|(id, _)| *id)).filter(|_| more);
            for (id, row) in items {
                let shown =
                    self.user().filter(|_| row.kind().is_some_and(|it| filter.has_kind(it)));
                let shown =
                    shown.and_then(|user| self.shown_notification(user, NotificationId(id), row));
                found.extend(shown.filter(|found| filter.by.is_none_or(|by| by == found.actor)));
                if found.len() > page.limit {
                    break;
                }
            }
            let end = end.filter(|_| found.len() <= page.limit).map(NotificationId);
            let Some(at) = end.filter(|_| read < ROWS_MAX) else { break end };
            let cursor = if is_up { Cursor::After(at) } else { Cursor::Before(at) };
            next = Page { cursor, limit: page.limit.max(READ_ROWS) };
        };
        let mut found = PageOf::from_scan(found, page);
        found.more |= end.is_some();
        NotificationPage { found, end }
    }

    fn all_rows(&self, page: &Page<NotificationId>, filter: &NotificationFilter) -> NoticeRows {
        let others = self.notice_rows(page, filter.has_kind(NoticeKind::Mention));
        let posts = filter.has_kind(NoticeKind::Post).then(|| self.notified_posts(page));
        let posts = posts.unwrap_or_else(|| Gathered { page: PageOf::default(), end: None });
        let Gathered { page: posts, end } = posts;
        let is_up = matches!(page.cursor, Cursor::After(_));
        let farthest = if is_up { posts.items.first() } else { posts.items.last() };
        // Posts are known up to here.
        let reach = end.or_else(|| farthest.filter(|_| posts.more).map(|id| id.0));
        let mut rows: BTreeMap<u64, NoticeRow> = others.into_iter().collect();
        for post in posts.items {
            // A mention, and one that was dismissed, has a row of its own.
            rows.entry(post.0).or_insert(NoticeRow::Post);
        }
        rows.retain(|id, _| {
            reach.is_none_or(|reach| if is_up { *id <= reach } else { *id >= reach })
        });
        let mut rows: Vec<_> = rows.into_iter().collect();
        if !is_up {
            rows.reverse();
        }
        let cut = reach.filter(|_| rows.len() <= page.limit);
        let end = cut.filter(|cut| rows.last().is_none_or(|(last, _)| last != cut));
        let mut rows = PageOf::from_scan(rows, page);
        rows.more |= cut.is_some();
        NoticeRows { rows, end }
    }

    /// As [`Viewer::notifications`], without those of posts by users of whose posts the viewer is notified: a reader of home
    /// has these posts, and finds their notifications by [`Viewer::notification`].
    #[must_use]
    pub fn notifications_but_posts(
        &self,
        page: &Page<NotificationId>,
    ) -> PageOf<(NotificationId, Option<Notification>)> {
        let shown = |(id, row)| {
            let id = NotificationId(id);
            (id, self.user().and_then(|user| self.shown_notification(user, id, row)))
        };
        let rows = self.notice_rows(page, true).into_iter();
        PageOf::from_scan(rows.map(shown).collect(), page)
    }

    /// The rows without those of posts, and of mentions only if they are wanted.
    fn notice_rows(
        &self,
        page: &Page<NotificationId>,
        has_mentions: bool,
    ) -> Vec<(u64, NoticeRow)> {
        let (Some(user), Some(span)) = (self.user(), page.span(page.limit + 1)) else {
            return Vec::new();
        };
        let low = span.low.max(self.facts().inbox(user).cleared.saturating_add(1));
        if low > span.high {
            return Vec::new();
        }
        self.facts().notification_rows(user, Span { low, ..span }, has_mentions)
    }

    /// The posts of which the viewer is notified because of their authors.
    fn notified_posts(&self, page: &Page<NotificationId>) -> Gathered<NotificationId> {
        let (facts, mut since) = (self.facts(), Vec::new());
        if let Some(user) = self.user() {
            let all = facts.all_follow_options(user).into_iter();
            let asked = all.filter_map(|it| Some((it.other, it.options.notified_since?.0)));
            let cleared = facts.inbox(user).cleared;
            // An option of a request is not one of a follow yet.
            let is_wanted = |other| facts.follows(user, other) && self.wants_public_by(other);
            let wanted = asked.filter(|(other, _)| is_wanted(*other));
            since.extend(wanted.map(|(other, since)| (other, since.max(cleared) + 1)));
        }
        let authors = since.iter().map(|(author, _)| *author);
        gather::gather(authors, page, ROWS_MAX, |author, span, found: &mut Vec<_>| {
            let at = since.binary_search_by_key(&author, |(author, _)| *author).ok();
            let low = at.and_then(|at| since.get(at)).map_or(u64::MAX, |(_, low)| *low);
            let span = Span { low: span.low.max(low), ..span };
            if span.low > span.high {
                return None;
            }
            let posts = facts.posts_by(author, span);
            let last = posts.last().filter(|_| posts.len() >= span.limit).map(|(last, _)| last.0);
            let notified = posts.into_iter().filter(|(_, listed)| notifies(author, *listed));
            found.extend(notified.map(|(post, _)| NotificationId(post.0)));
            last
        })
    }

    /// A notification of the viewer, if it is shown.
    #[must_use]
    pub fn notification(&self, id: NotificationId) -> Option<Notification> {
        let user = self.user()?;
        if id.0 <= self.facts().inbox(user).cleared {
            return None;
        }
        self.shown_notification(user, id, self.facts().notice_row(user, id.0)?)
    }

    fn shown_notification(
        &self,
        user: UserId,
        id: NotificationId,
        row: NoticeRow,
    ) -> Option<Notification> {
        let facts = self.facts();
        let visible_author = |id| Some(facts.post(id).filter(|post| self.visible(post))?.author);
        let stored = match row {
            NoticeRow::Stored(stored) => Some(stored),
            NoticeRow::Mention | NoticeRow::Post => None,
        };
        let (actor, notice) = match stored {
            None => {
                let post = PostId(id.0);
                let is_mention = row == NoticeRow::Mention;
                // Mentions are not read if they are not wanted.
                if !is_mention && facts.is_mentioned(user, post) {
                    return None;
                }
                let notice = if is_mention { Notice::Mention(post) } else { Notice::Post(post) };
                let author = visible_author(post)?;
                // A mute that leaves mentions hides the posts of its user at home, and so their notifications.
                (is_mention || self.wants_public_by(author)).then_some((author, notice))?
            }
            Some(Stored::Dismissed) => return None,
            Some(Stored::Edit(post)) => (visible_author(post)?, Notice::Edit(post)),
            Some(Stored::Favourite(actor)) => {
                let span = Span { low: id.0, high: id.0, limit: 1, order: Order::Ascending };
                let found = facts.reactions_of(actor, Reaction::Favourite, span);
                let post = found.first().map(|(_, post)| *post)?;
                facts.post(post).filter(|post| post.author == user)?;
                (actor, Notice::Favourite(post))
            }
            Some(Stored::Boost(actor)) => {
                let boost = facts.post(PostId(id.0)).filter(|post| post.author == actor)?.boost?;
                (boost.author == user).then_some((actor, Notice::Boost(boost.post)))?
            }
            Some(Stored::Follow(actor)) => {
                facts.follows(actor, user).then_some((actor, Notice::Follow))?
            }
            Some(Stored::Poll(post)) => {
                let found = facts.post(post).filter(|post| self.visible(post));
                (found.filter(|post| post.poll.is_some())?.author, Notice::Poll(post))
            }
            Some(Stored::Mention(post)) if facts.is_mentioned_since(user, post, id.0) => {
                (visible_author(post)?, Notice::Mention(post))
            }
            Some(Stored::Mention(_)) => return None,
            Some(Stored::FollowRequest(actor)) => {
                facts.requests(actor, user).then_some((actor, Notice::FollowRequest))?
            }
        };
        let is_muted = || {
            let post = notice.post().filter(|_| self.mutes_threads());
            let found = post.and_then(|id| Some((id, facts.post(id)?)));
            found.is_some_and(|(id, post)| self.mutes_thread_of((id, &post)))
        };
        let is_shown = facts.exists(actor) && self.notified_by(actor) && !is_muted();
        is_shown.then_some(Notification { id, actor, notice })
    }
}
