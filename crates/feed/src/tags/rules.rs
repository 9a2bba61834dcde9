//! Featuring and following hashtags, with the costs and the check of both.

use rows::{Cost, NameTable, RowsMut, Scan, Stamp, WORK_PER_ROW};

use crate::done::{Done, Outcome};
use crate::effect::{Effect, Input};
use crate::facts::Txn;
use crate::ids::{UserId, UserRef};
use crate::index::TAG_ROWS;
use crate::limits::TAG_BYTES_MAX;
use crate::mend::Rows;
use crate::refusal::Refusal;
use crate::tags::Tag;
use crate::tags::facts::{FEATURED_TAGS, FOLLOWED_TAGS, UserTags};
use crate::token::TEXT_WORK;
use crate::users::rules::resolve;

pub(crate) fn feature(
    txn: &mut Txn<'_>,
    stamp: Stamp,
    user: &UserRef,
    tag: &Tag,
    on: bool,
) -> Outcome {
    change(txn, stamp, &FEATURED_TAGS, user, (tag, on))?;
    Ok(Done::TagFeatured)
}

pub(crate) fn follow(
    txn: &mut Txn<'_>,
    stamp: Stamp,
    user: &UserRef,
    (tag, on): (&Tag, bool),
    effects: &mut Vec<Effect>,
) -> Outcome {
    if let Some(user) = change(txn, stamp, &FOLLOWED_TAGS, user, (tag, on))? {
        effects.push(Effect::Input { user, input: Input::Follows });
    }
    Ok(Done::TagFollowed)
}

/// Adds a hashtag to a list of a user, or removes it; returns the user if that changed the list.
fn change(
    txn: &mut Txn<'_>,
    stamp: Stamp,
    tags: &UserTags,
    user: &UserRef,
    (tag, on): (&Tag, bool),
) -> Result<Option<UserId>, Refusal> {
    let user = resolve(txn, user)?;
    let all = txn.facts().user_tags(tags, user);
    let is_there = all.iter().any(|found| found.tag == *tag);
    if on && !is_there && all.len() >= tags.max {
        return Err(tags.too_many);
    }
    if on == is_there {
        return Ok(None);
    }
    txn.put_user_tag(tags, user, tag, on.then_some(stamp));
    Ok(Some(user))
}

/// Cost of adding or removing one of at most `tags_max` hashtags of a user.
pub(crate) fn user_tag_cost(tag: &Tag, tags_max: usize) -> Cost {
    let cost = Cost::of_rows(2, tag.as_str().len() + 64);
    // All current hashtags are read.
    Cost { work: cost.work + 2 * tags_max * WORK_PER_ROW, ..cost }
}

/// Key bytes of the rows of a hashtag of a post, without the hashtag.
pub(crate) const TAG_ROW_BYTES: usize = 32;

/// Cost of `tags` hashtags in texts of `text_bytes` bytes: each is in two keys, and may be longer in lower case.
pub(crate) fn tags_cost(tags: usize, text_bytes: usize) -> Cost {
    let tags = if rows::has_bug("cost-one-hashtag") { tags.min(1) } else { tags };
    let bytes = text_bytes.min(tags * TAG_BYTES_MAX);
    let cost = Cost::of_rows(TAG_ROWS * tags, 2 * TAG_ROWS * bytes + TAG_ROW_BYTES * tags);
    // The text is searched for them.
    Cost { work: cost.work + text_bytes * TEXT_WORK, ..cost }
}

impl<R: Scan + RowsMut> Rows<'_, R> {
    /// Checks a hashtag that a profile shows or that a user follows.
    pub(crate) fn user_tag(&mut self, table: NameTable, name: &[u8]) {
        let user = name.first_chunk().map(|user| u32::from_be_bytes(*user));
        let user = user.and_then(|user| self.user(user.into()));
        let tag = name.get(4..).and_then(|tag| std::str::from_utf8(tag).ok());
        let is_tag = tag.is_some_and(|tag| Tag::parse(tag).is_ok());
        let exists = user.is_some_and(|user| !self.is_erased(user));
        if !is_tag || !exists {
            self.remove_named(table, name);
        }
    }
}
