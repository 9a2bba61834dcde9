//! Notifications as shown to a user.

use rows::{Order, Rows, Span};

use crate::ids::{PostId, UserId};
use crate::notifications::facts::notifies;
use crate::notifications::{Notice, NoticeKind, NoticeRow, Notification, NotificationId, Stored};
use crate::page::{Page, PageOf};
use crate::reactions::Reaction;
use crate::scan::{Batch, Shown, merged, scan};
use crate::visible::Viewer;

/// Filter of notifications. The default matches all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NotificationFilter {
    /// Kinds to include; `None` for all.
    pub kinds: Option<Vec<NoticeKind>>,
    /// Kinds to exclude.
    pub not: Vec<NoticeKind>,
    /// User who must have caused the notification, if set.
    pub by: Option<UserId>,
}

impl NotificationFilter {
    /// Whether the filter may include a notification whose row has this kind. A row of an edit has one of two kinds.
    fn may_have(&self, kind: NoticeKind) -> bool {
        self.has_kind(kind) || kind == NoticeKind::Edit && self.has_kind(NoticeKind::QuotedUpdate)
    }

    fn has_kind(&self, kind: NoticeKind) -> bool {
        !self.not.contains(&kind) && self.kinds.as_ref().is_none_or(|kinds| kinds.contains(&kind))
    }
}

/// List of rows that cause notifications.
enum List {
    /// Stored notifications, and mentions.
    Rows,
    /// Posts by a user from an id on.
    PostsBy(UserId, u64),
}

impl<R: Rows + ?Sized> Viewer<'_, R> {
    /// Returns a page of the viewer's notifications that match `filter`. Empty for the application itself.
    #[must_use]
    pub fn notifications(&self, page: &Page, filter: &NotificationFilter) -> PageOf<Notification> {
        let Some(user) = self.user() else { return PageOf::default() };
        let (facts, cleared) = (self.facts(), self.facts().notice_state(user).cleared);
        let mut lists = vec![List::Rows];
        if filter.has_kind(NoticeKind::Post) {
            lists.extend(self.notified_of(user, cleared));
        }
        let has_mentions = filter.has_kind(NoticeKind::Mention);
        let rows = merged(lists.into_iter(), |list, span| {
            let low = match list {
                List::Rows => cleared.saturating_add(1),
                List::PostsBy(_, low) => *low,
            };
            let span = Span { low: span.low.max(low), ..span };
            if span.low > span.high {
                return Batch::of(Vec::new(), span);
            }
            match *list {
                List::Rows => Batch::of(facts.notification_rows(user, span, has_mentions), span),
                List::PostsBy(author, _) => {
                    let posts = Batch::of(facts.posts_by(author, span), span);
                    let notified = |(post, listed): (PostId, _)| {
                        notifies(author, listed).then_some((post.0, NoticeRow::Post))
                    };
                    posts.filter_map(notified)
                }
            }
        });
        scan(page, rows, |(id, row)| {
            let id = NotificationId(id);
            let row = match row {
                // A mention or dismissal of the same post has its own row, which takes precedence.
                NoticeRow::Post => facts.own_notice_row(user, id.0).unwrap_or(row),
                row => row,
            };
            let wanted = row.kind().filter(|kind| filter.may_have(*kind));
            let found = wanted.and_then(|_| self.shown_notification(user, id, row));
            match found.filter(|found| filter.has_kind(found.notice.kind())) {
                Some(found) if filter.by.is_some_and(|by| by != found.actor) => Shown::LeftOut,
                found => found.into(),
            }
        })
    }

    /// Lists of posts by users whose posts notify this user, after the ids already cleared.
    fn notified_of(&self, user: UserId, cleared: u64) -> impl Iterator<Item = List> {
        let all = self.facts().all_follow_options(user).into_iter();
        let asked = all.filter_map(|it| Some((it.other, it.options.notified_since?.0)));
        // Options of a follow request do not apply yet.
        let wanted = asked.filter(move |(other, _)| {
            self.facts().follows(user, *other) && self.wants_public_by(*other)
        });
        wanted.map(move |(other, since)| List::PostsBy(other, since.max(cleared) + 1))
    }

    /// The viewer's notification with this id, if it is shown.
    #[must_use]
    pub fn notification(&self, id: NotificationId) -> Option<Notification> {
        let user = self.user()?;
        if id.0 <= self.facts().notice_state(user).cleared {
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
                let notice = if is_mention { Notice::Mention(post) } else { Notice::Post(post) };
                let author = visible_author(post)?;
                // Posts by a muted user are hidden at home, so new ones notify nobody, even if the mute does not hide
                // notifications.
                (is_mention || self.wants_public_by(author)).then_some((author, notice))?
            }
            Some(Stored::Dismissed) => return None,
            Some(Stored::Edit(post)) => self.edit_notice(post)?,
            Some(Stored::Quote(actor)) => self.quote_notice(actor, PostId(id.0))?,
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
