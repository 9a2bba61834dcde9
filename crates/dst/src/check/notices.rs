//! Comparison of notifications and their settings with the model.

use std::collections::BTreeMap;

use feed::{Cursor, DueWork, Notification, NotificationFilter, Page, PostId, Stamp, UserId};

use crate::model::{ModelOptions, ms_of};
use crate::run::Run;

/// Maximum number of consecutive pages of notifications that are read.
const PAGES_MAX: usize = 12;

impl Run {
    /// Checks all notifications of a user who is not deleted.
    pub(super) fn check_notifications(&self, user: u32) {
        let viewer = self.node().node().viewer(Some(UserId(user)));
        let page = Page::newest(1_000_000);
        let found = viewer.notifications(&page, &NotificationFilter::default()).items;
        assert_eq!(found, self.model.feed.notifications(user), "notices of {user}");
        for shown in found.iter().take(20) {
            assert_eq!(viewer.notification(shown.id), Some(*shown), "a notice of {user}");
        }
    }

    /// Checks some consecutive pages of notifications, beginning with `page`, in its direction.
    pub(super) fn check_notification_pages(&self, user: u32, page: &Page) {
        let viewer = self.node().node().viewer(Some(UserId(user)));
        let (is_up, mut found, mut next) = (page.is_up, Vec::new(), *page);
        // Cursor after the notifications that were read; `None` if all were read.
        let mut end = None;
        for _ in 0..PAGES_MAX {
            let read = viewer.notifications(&next, &NotificationFilter::default());
            assert!(read.items.len() <= page.limit, "a page of {user} has {}", read.items.len());
            end = read.next;
            found.extend(read.items);
            let Some(last) = end else { break };
            let cursor = if is_up { Cursor::After(last) } else { Cursor::Before(last) };
            let before = std::mem::replace(&mut next, Page::at(cursor, page.limit));
            assert_ne!(next, before, "the pages of {user} do not end");
        }
        let is_read = |shown: &Notification| {
            let id = shown.id.0;
            let is_after_first = page.below.is_none_or(|below| id < below)
                && page.above.is_none_or(|above| id > above);
            is_after_first && end.is_none_or(|end| (id <= end) == is_up || id == end)
        };
        let mut expected = self.model.feed.notifications(user);
        expected.retain(is_read);
        found.sort_unstable_by_key(|shown| std::cmp::Reverse(shown.id));
        assert_eq!(found, expected, "pages of notices of {user}, {page:?}, up to {end:?}");
    }

    /// Checks the follow options and muted threads of a user who is not deleted.
    pub(super) fn check_choices(&self, user: u32) {
        let (facts, expected) = (self.node().node().facts(), &self.model.feed);
        let found = facts.all_follow_options(UserId(user)).into_iter();
        // The node removes options for deleted users later, so ignore them.
        let found = found.filter(|found| facts.exists(found.other)).map(|found| {
            let (hides_boosts, since) = (found.options.hides_boosts, found.options.notified_since);
            (found.other.0, ModelOptions { hides_boosts, notified_since: since.map(|at| at.0) })
        });
        let wanted = expected.follow_options.range((user, 0)..=(user, u32::MAX));
        let wanted: BTreeMap<_, _> = wanted.map(|((_, other), it)| (*other, *it)).collect();
        assert_eq!(found.collect::<BTreeMap<_, _>>(), wanted, "options of {user}");
        for (other, wanted) in wanted {
            let found = facts.follow_options(UserId(user), UserId(other));
            assert_eq!(found.hides_boosts, wanted.hides_boosts, "{user} and {other}");
            let since = wanted.notified_since.map(Stamp);
            assert_eq!(found.notified_since, since, "{user} and {other}");
        }
        let found = facts.muted_threads(UserId(user)).into_iter().map(|post| post.0);
        let wanted = expected.muted_threads.get(&user).map_or(&[][..], Vec::as_slice);
        assert!(found.eq(wanted.iter().copied()), "muted threads of {user}");
    }

    /// Checks the edits about which the node still has to notify users.
    pub(super) fn check_edit_notices(&self) {
        let (facts, expected) = (self.node().node().facts(), &self.model.feed.edits);
        let edits = facts.first_due(0, None, 1_000_000).into_iter().filter_map(|due| {
            let DueWork::NotifyOfEdit { post } = due.work else { return None };
            Some((post.0, due.at_ms))
        });
        let found: BTreeMap<u64, u64> = edits.collect();
        for (post, edit) in &found {
            let is_hidden = |post: feed::Post| facts.is_being_erased(post.author);
            match expected.get(post) {
                Some(wanted) => {
                    assert_eq!(*edit, ms_of(wanted.stamp), "the last edit of {post}");
                }
                None => assert!(
                    facts.stored_post(PostId(*post)).is_some_and(is_hidden),
                    "an edit of {post} has no users to notify"
                ),
            }
        }
        for (post, edit) in expected.iter().filter(|(_, edit)| edit.is_sure) {
            let edited_ms = ms_of(edit.stamp);
            assert_eq!(found.get(post), Some(&edited_ms), "an edit of {post} is missing");
        }
    }
}
