//! The notifications that a user is shown.

use rows::{Order, Rows, Span};

use crate::ids::{PostId, UserId};
use crate::notification::{Notice, NoticeRow, Notification, NotificationId, Stored};
use crate::page::{Page, PageOf};
use crate::reaction::Reaction;
use crate::visible::Viewer;

impl<R: Rows + ?Sized> Viewer<'_, R> {
    /// A page of the notifications of the viewer: all rows on it, each with its notification if it is shown. Nothing for
    /// the application itself.
    #[must_use]
    pub fn notifications(
        &self,
        page: &Page<NotificationId>,
    ) -> PageOf<(NotificationId, Option<Notification>)> {
        let none = PageOf { items: Vec::new(), more: false };
        let (Some(user), Some(span)) = (self.user(), page.span(page.limit + 1)) else {
            return none;
        };
        let low = span.low.max(self.facts().inbox(user).cleared.saturating_add(1));
        if low > span.high {
            return none;
        }
        let (rows, is_whole) = self.facts().notification_rows(user, Span { low, ..span });
        let shown = |(id, row)| {
            let id = NotificationId(id);
            (id, self.shown_notification(user, id, row))
        };
        let mut found = PageOf::from_scan(rows.into_iter().map(shown).collect(), page);
        found.more |= !is_whole;
        found
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
            NoticeRow::End => return None,
        };
        let (actor, notice) = match stored {
            None => {
                let post = PostId(id.0);
                let is_mention = row == NoticeRow::Mention;
                let notice = if is_mention { Notice::Mention(post) } else { Notice::Post(post) };
                (visible_author(post)?, notice)
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
