//! Hashtags that profiles show, and that users follow.

use rows::Stamp;

use crate::done::{Done, Outcome};
use crate::effect::{Effect, Input};
use crate::facts::Txn;
use crate::ids::UserRef;
use crate::limits;
use crate::refusal::Refusal;
use crate::tags::Tag;
use crate::users::rules::resolve;

pub(crate) fn feature(
    txn: &mut Txn<'_>,
    stamp: Stamp,
    user: &UserRef,
    tag: &Tag,
    on: bool,
) -> Outcome {
    let user = resolve(txn, user)?;
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

pub(crate) fn follow(
    txn: &mut Txn<'_>,
    stamp: Stamp,
    user: &UserRef,
    (tag, on): (&Tag, bool),
    effects: &mut Vec<Effect>,
) -> Outcome {
    let user = resolve(txn, user)?;
    let followed = txn.facts().followed_tags(user);
    let is_followed = followed.iter().any(|followed| followed.tag == *tag);
    if on && !is_followed && followed.len() >= limits::FOLLOWED_TAGS_MAX {
        return Err(Refusal::TooManyFollowedTags);
    }
    if on != is_followed {
        txn.put_followed_tag(user, tag, on.then_some(stamp));
        effects.push(Effect::Input { user, input: Input::Follows });
    }
    Ok(Done::TagFollowed)
}
