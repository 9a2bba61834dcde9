//! Removal of a deleted user's data from each table.

use rows::{SetTable, Table};

use crate::effect::{Effect, Input, PostChange, StoryChange};
use crate::facts::Txn;
use crate::ids::{PostId, StoryId, UserId};
use crate::index::{self, MEDIA_ROWS, POLL_ROWS, POST_OWN_ROWS, POST_ROWS_MAX};
use crate::limits::ERASE_ROWS_MAX;
use crate::posts::Visibility;
use crate::reactions::Reaction;
use crate::relation::Relation;

/// Rows of a deleted story.
const STORY_ROWS: usize = 5;
/// Rows of a relation: one for each user, and the counts of the other user. Rows of other tables may be removed with
/// it.
const RELATION_ROWS: usize = 3;
/// Rows of a reaction: one for the user, one for the post, and the counts of the post.
const REACTION_ROWS: usize = 3;

/// Removal of a deleted user's items from one table.
pub(crate) struct Erase<'a, 'b> {
    pub(crate) txn: &'a mut Txn<'b>,
    pub(crate) effects: &'a mut Vec<Effect>,
    pub(crate) user: UserId,
    pub(crate) table: Table,
    /// First item to remove.
    pub(crate) from: u64,
}

impl Erase<'_, '_> {
    pub(crate) fn items(&self, limit: usize) -> Vec<u64> {
        self.txn.facts().items_of(self.user, self.table, self.from, limit)
    }

    /// Removes items with at most `rows` rows each.
    pub(crate) fn each(&mut self, rows: usize, remove: impl Fn(&mut Txn<'_>, UserId, u64)) {
        for item in self.items(ERASE_ROWS_MAX / rows) {
            remove(self.txn, self.user, item);
        }
    }

    pub(crate) fn reactions(&mut self, reaction: Reaction) {
        let limit = ERASE_ROWS_MAX / REACTION_ROWS;
        self.txn.erase_reactions(self.user, reaction, self.from, limit);
    }

    /// Removes relations that have a row of the user in a table.
    pub(crate) fn related(&mut self, relation: &Relation, table: SetTable) {
        let mut rows_left = ERASE_ROWS_MAX;
        for item in self.items(ERASE_ROWS_MAX / RELATION_ROWS) {
            if rows_left < RELATION_ROWS + relation.end_rows {
                return;
            }
            let Ok(other) = u32::try_from(item).map(UserId) else { continue };
            let (one, two) = relation.users(table, self.user, other);
            rows_left -= RELATION_ROWS + self.txn.end_counting(relation, one, two);
            if table == SetTable::Friends {
                self.effects.push(Effect::Input { user: other, input: Input::Friends });
            }
        }
    }
}

/// Removes notifications.
pub(crate) fn notifications(erase: &mut Erase<'_, '_>) {
    erase.txn.erase_notifications(erase.user, erase.from, ERASE_ROWS_MAX / 2);
}

/// Removes posts.
pub(crate) fn posts(erase: &mut Erase<'_, '_>) {
    let mut rows_left = ERASE_ROWS_MAX;
    for post in erase.items(ERASE_ROWS_MAX / 3) {
        if rows_left < POST_ROWS_MAX {
            return;
        }
        let id = PostId(post);
        let Some(post) = erase.txn.facts().stored_post(id) else {
            unreachable!("an author has rows of posts that are stored")
        };
        let rows = index::of_post(id, &post).len();
        let media = MEDIA_ROWS * post.content.media.len();
        let poll = (POLL_ROWS - 1) * post.poll.iter().len();
        // Each mention that an edit added also has a notification, except in direct posts.
        let is_direct = post.visibility == Visibility::Direct;
        let added = if post.edited.is_some() && !is_direct { post.mentions.len() } else { 0 };
        rows_left -= POST_OWN_ROWS + rows + added + media + poll;
        erase.txn.remove_post(id, &post);
        let (author, change) = (post.author, PostChange::Deleted);
        let deleted = |user| Effect::Mention { post: id, author, user, change };
        erase.effects.extend(post.mentioned_others().map(deleted));
    }
}

/// Hides stories. The sweep removes their other rows.
pub(crate) fn stories(erase: &mut Erase<'_, '_>) {
    for story in erase.items(ERASE_ROWS_MAX / STORY_ROWS) {
        let id = StoryId(story);
        let Some(story) = erase.txn.facts().stored_story(id) else {
            unreachable!("an author has rows of stories that are stored")
        };
        erase.txn.hide_story(id, &story);
        let (author, change) = (erase.user, StoryChange::Gone);
        erase.effects.push(Effect::Story { story: id, author, change });
    }
}
