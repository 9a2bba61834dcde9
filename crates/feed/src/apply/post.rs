//! Publishing and deleting posts.

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

pub(super) fn publish(
    txn: &mut Txn<'_>,
    stamp: Stamp,
    author: &UserRef,
    text: &PostText,
    effects: &mut Vec<Effect>,
) -> Outcome {
    let author = super::resolve(txn, author)?;
    if txn.facts().counts(author).posts >= limits::USER_POSTS_MAX {
        return Err(Refusal::TooManyPosts);
    }
    let (reply_to, mentions) = addressees(txn, text);
    let post = Post { author, text: text.clone(), reply_to, mentions };
    let id = PostId(stamp.0);
    txn.add_work(post.mentions.len() * MENTION_WORK);
    txn.put_post(id, &post);
    txn.count(author, |counts| super::step(&mut counts.posts, true));
    txn.total(|totals| super::step_total(&mut totals.posts, true));
    effects.push(Effect::Posted { post: id, author, reply_to });
    effects.extend(post.mentions.iter().map(|user| Effect::Mentioned { post: id, user: *user }));
    Ok(Done::Posted(id))
}

pub(super) fn delete(txn: &mut Txn<'_>, id: PostId, effects: &mut Vec<Effect>) -> Outcome {
    let post = txn.facts().post(id).ok_or(Refusal::PostNotFound)?;
    txn.remove_post(id, &post);
    txn.count(post.author, |counts| super::step(&mut counts.posts, false));
    txn.total(|totals| super::step_total(&mut totals.posts, false));
    effects.push(Effect::PostDeleted { post: id, author: post.author });
    Ok(Done::Deleted)
}

/// Whom a text replies to (somebody registered whose handle opens it) and whom it mentions.
fn addressees(txn: &Txn<'_>, text: &PostText) -> (Option<UserId>, Vec<UserId>) {
    let mut reply_to = None;
    let mut mentioned = Vec::new();
    for mention in text::mentions(text.as_str()) {
        let Some(user) = txn.facts().by_handle(&mention.handle) else { continue };
        if mention.start == 0 {
            reply_to = Some(user);
        }
        if !mentioned.contains(&user) {
            mentioned.push(user);
        }
    }
    (reply_to, mentioned)
}
