//! Hashtags on profiles.

use rows::Stamp;

use crate::command::{Done, Outcome};
use crate::facts::Txn;
use crate::ids::UserRef;
use crate::limits;
use crate::refusal::Refusal;
use crate::tag::Tag;

pub(super) fn feature(
    txn: &mut Txn<'_>,
    stamp: Stamp,
    user: &UserRef,
    tag: &Tag,
    on: bool,
) -> Outcome {
    let user = super::resolve(txn, user)?;
    let shown = txn.facts().featured_tags(user);
    let is_shown = shown.iter().any(|featured| featured.tag == *tag);
    if on && !is_shown && shown.len() >= limits::FEATURED_TAGS_MAX {
        return Err(Refusal::TooManyTags);
    }
    if on != is_shown {
        txn.put_featured_tag(user, tag, on.then_some(stamp));
    }
    Ok(Done::TagFeatured)
}
