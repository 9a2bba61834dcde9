//! Publishing, editing and deleting posts.

use rows::Stamp;

use crate::command::{Done, Outcome, UserRef};
use crate::cost::MENTION_WORK;
use crate::effect::Effect;
use crate::facts::Txn;
use crate::ids::{PostId, UserId};
use crate::limits;
use crate::records::Post;
use crate::refusal::Refusal;
use crate::text::{self, PostText};

/// Publishes a post. It is a reply to `parent` if there is one, and else to the user whose handle is at
/// the start of the text.
pub(super) fn publish(
    txn: &mut Txn<'_>,
    stamp: Stamp,
    author: &UserRef,
    text: &PostText,
    parent: Option<PostId>,
    effects: &mut Vec<Effect>,
) -> Outcome {
    let author = super::resolve(txn, author)?;
    if txn.facts().stored_counts(author).posts >= limits::USER_POSTS_MAX {
        return Err(Refusal::TooManyPosts);
    }
    let replied = match parent {
        Some(parent) => Some(txn.facts().post(parent).ok_or(Refusal::ParentNotFound)?.author),
        None => None,
    };
    let (opening, mentions) = addressees(txn, text);
    let post = Post {
        author,
        text: text.clone(),
        reply_to: replied.or(opening),
        mentions: with_replied(mentions, replied, author),
        in_reply_to: parent,
        edited: None,
    };
    let id = PostId(stamp.0);
    txn.put_post(id, &post);
    txn.count(author, |counts| super::step(&mut counts.posts, true));
    txn.total(|totals| super::step_total(&mut totals.posts, true));
    effects.push(Effect::Posted { post: id, author, reply_to: post.reply_to });
    effects.extend(post.mentions.iter().map(|user| Effect::Mentioned { post: id, user: *user }));
    Ok(Done::Posted(id))
}

/// Changes the text and the mentions. The user replied to stays, so the post stays in the same homes.
pub(super) fn edit(
    txn: &mut Txn<'_>,
    stamp: Stamp,
    id: PostId,
    text: &PostText,
    effects: &mut Vec<Effect>,
) -> Outcome {
    let old = txn.facts().post(id).ok_or(Refusal::PostNotFound)?;
    if old.text == *text {
        return Ok(Done::PostEdited);
    }
    let replied = old.in_reply_to.and(old.reply_to);
    let (_, mentions) = addressees(txn, text);
    let mentions = with_replied(mentions, replied, old.author);
    let new = Post { text: text.clone(), mentions, edited: Some(stamp), ..old.clone() };
    txn.edit_post(id, &old, &new);
    effects.push(Effect::PostEdited { post: id, author: old.author, reply_to: old.reply_to });
    let only_before = old.mentions.iter().filter(|user| !new.mentions.contains(user));
    let concerned = new.mentions.iter().chain(only_before);
    let changed = |user: &UserId| Effect::MentionChanged { post: id, user: *user, deleted: false };
    effects.extend(concerned.map(changed));
    Ok(Done::PostEdited)
}

pub(super) fn delete(txn: &mut Txn<'_>, id: PostId, effects: &mut Vec<Effect>) -> Outcome {
    let post = txn.facts().post(id).ok_or(Refusal::PostNotFound)?;
    txn.remove_post(id, &post);
    txn.count(post.author, |counts| super::step(&mut counts.posts, false));
    txn.total(|totals| super::step_total(&mut totals.posts, false));
    effects.push(Effect::PostDeleted { post: id, author: post.author, reply_to: post.reply_to });
    let deleted = |user: &UserId| Effect::MentionChanged { post: id, user: *user, deleted: true };
    effects.extend(post.mentions.iter().map(deleted));
    Ok(Done::Deleted)
}

/// The registered user whose handle is at the start of a text, and the registered users it mentions.
fn addressees(txn: &mut Txn<'_>, text: &PostText) -> (Option<UserId>, Vec<UserId>) {
    let mut opening = None;
    let mut mentioned = Vec::new();
    for mention in text::mentions(text.as_str()) {
        let Some(user) = txn.facts().by_handle(&mention.handle) else { continue };
        if mention.start == 0 {
            opening = Some(user);
        }
        if !mentioned.contains(&user) {
            mentioned.push(user);
        }
    }
    txn.add_work(mentioned.len() * MENTION_WORK);
    (opening, mentioned)
}

/// A reply always mentions the author of the post that it replies to, except when a user replies to
/// their own post.
fn with_replied(mentions: Vec<UserId>, replied: Option<UserId>, author: UserId) -> Vec<UserId> {
    let replied = replied.filter(|user| *user != author && !mentions.contains(user));
    replied.into_iter().chain(mentions).collect()
}
