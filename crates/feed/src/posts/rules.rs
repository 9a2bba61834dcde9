//! Publishing, editing and deleting posts.

use std::collections::BTreeSet;

use rows::Stamp;

use crate::done::{Done, Outcome};
use crate::effect::{Effect, PostChange};
use crate::facts::Txn;
use crate::handle::Handle;
use crate::ids::{PostId, UserId};
use crate::limits;
use crate::media::{self, MediaId};
use crate::polls::{Poll, PollId};
use crate::posts::content::Patch;
use crate::posts::cost::MENTION_WORK;
use crate::posts::draft::Draft;
use crate::posts::{Post, Visibility};
use crate::quotes::{self, Quote};
use crate::reactions::Boost;
use crate::refusal::Refusal;
use crate::text::PostText;
use crate::token::{self, TEXT_WORK, Token, TokenKind};
use crate::users::rules::resolve;
use crate::visible::Viewer;

/// Result of checking a draft: its author and facts of the parent post.
#[derive(Clone, Copy)]
pub(crate) struct Checked {
    pub(crate) author: UserId,
    /// Parent post; if the draft names a boost, the boosted post.
    parent: Option<PostId>,
    replied: Option<UserId>,
    /// First post of the parent's conversation, if the parent is direct.
    conversation: Option<PostId>,
    /// First post of the parent's thread.
    thread: Option<PostId>,
    /// See [`quotes::rules::check`].
    quote: Option<Quote>,
    visibility: Visibility,
}

/// Refuses a draft that cannot be published. Pictures in `held` are reserved for it.
pub(crate) fn check(txn: &Txn<'_>, draft: &Draft, held: &[MediaId]) -> Result<Checked, Refusal> {
    let author = resolve(txn, &draft.author)?;
    check_count(txn, author)?;
    media::facts::check(txn, author, held, &draft.content.media)?;
    draft.check()?;
    let (quote, visibility) = quotes::rules::check(txn, author, draft)?;
    let (parent, replied, conversation, thread) = (None, None, None, None);
    let mut checked = Checked { author, parent, replied, conversation, thread, quote, visibility };
    if let Some(named) = draft.parent {
        let found = boosted(txn, named).ok();
        let found = found.filter(|(_, parent)| sees(txn, author, parent));
        let (id, parent) = found.ok_or(Refusal::ParentNotFound)?;
        checked.parent = Some(id);
        checked.replied = Some(parent.author);
        let is_direct = parent.visibility == Visibility::Direct;
        checked.conversation = is_direct.then(|| parent.conversation.unwrap_or(id));
        checked.thread = Some(parent.thread_or(id));
    }
    Ok(checked)
}

/// Publishes a draft, as a reply if it has a parent. A reply to a boost replies to the boosted post.
pub(crate) fn publish(
    txn: &mut Txn<'_>,
    stamp: Stamp,
    (draft, held): (&Draft, &[MediaId]),
    effects: &mut Vec<Effect>,
) -> Outcome {
    let checked = check(txn, draft, held)?;
    let Checked { author, parent, replied, conversation, thread, quote, visibility } = checked;
    let opening = || draft.opens_reply.then(|| opening(txn, &draft.content.text)).flatten();
    let reply_to = replied.or_else(opening);
    let poll = |new| Poll::new(PollId(stamp.0), new, stamp.unix_ms(), None);
    let post = Post {
        author,
        content: draft.content.clone(),
        in_reply_to: parent,
        reply_to,
        visibility,
        poll: draft.poll.as_ref().map(poll),
        quote,
        quote_policy: draft.quote_policy,
        mentions: mentioned_in(txn, &draft.content.text, author, replied),
        edited: None,
        boost: None,
        conversation: conversation.filter(|_| draft.visibility == Visibility::Direct),
        thread,
    };
    let id = PostId(stamp.0);
    media::facts::attach(txn, id, (&[], &draft.content.media), &[]);
    txn.put_post(id, &post);
    published(txn, id, &post, effects);
    let change = PostChange::Published;
    let mentioned = post.mentioned_others();
    effects.extend(mentioned.map(|user| Effect::Mention { post: id, author, user, change }));
    quotes::rules::announce(txn, id, &post, effects);
    Ok(Done::Posted(id))
}

/// Counts a new post, and announces it to the views.
fn published(txn: &mut Txn<'_>, id: PostId, post: &Post, effects: &mut Vec<Effect>) {
    txn.count_post(post.author, post.visibility, true);
    effects.push(changed(id, post, PostChange::Published));
}

/// Creates the effect of a change of a post.
fn changed(id: PostId, post: &Post, change: PostChange) -> Effect {
    let is_new = matches!(change, PostChange::Published | PostChange::Shown);
    let users = is_new.then(|| post.home_users()).flatten();
    Effect::Post { post: id, author: post.author, listed: post.listed(), users, change }
}

/// Refuses another post of an author at the limit.
pub(crate) fn check_count(txn: &Txn<'_>, author: UserId) -> Result<(), Refusal> {
    let posts = txn.facts().stored_counts(author).posts;
    if posts < limits::USER_POSTS_MAX { Ok(()) } else { Err(Refusal::TooManyPosts) }
}

/// Publishes a boost of a post that the user may boost.
pub(crate) fn boost(
    txn: &mut Txn<'_>,
    stamp: Stamp,
    user: UserId,
    (boosted, post): (PostId, &Post),
    effects: &mut Vec<Effect>,
) {
    let earlier = txn.facts().earlier_boosts(boosted, user, stamp);
    let boost = Boost::new((boosted, post.author, post.reply_to), stamp, earlier);
    let (id, post) = (PostId(stamp.0), Post::of_boost(user, post.visibility, boost));
    txn.put_boost(id, &post, boosted);
    published(txn, id, &post, effects);
}

/// Whether a user may see a post, and so may reply to it.
fn sees(txn: &Txn<'_>, user: UserId, post: &Post) -> bool {
    Viewer::new(txn.facts(), Some(user)).visible(post)
}

/// Edits a post. The user replied to and the audience stay, so the post stays in the same homes; the mentions of a
/// direct post never change.
pub(crate) fn edit(
    txn: &mut Txn<'_>,
    stamp: Stamp,
    (id, patch): (PostId, &Patch),
    effects: &mut Vec<Effect>,
) -> Outcome {
    // A boost cannot be edited.
    let old =
        txn.facts().post(id).filter(|post| post.boost.is_none()).ok_or(Refusal::PostNotFound)?;
    let mut new = old.clone();
    patch.apply(&mut new.content);
    let (before, after) = (&old.content, &new.content);
    let keeps_mentions =
        old.visibility == Visibility::Direct && !rows::has_bug("edit-addresses-others");
    if after.text != before.text && !keeps_mentions {
        let replied = old.in_reply_to.and(old.reply_to);
        new.mentions = mentioned_in(txn, &after.text, old.author, replied);
    }
    if patch.media.is_some() {
        media::facts::check(txn, old.author, &before.media, &after.media)?;
    }
    if let Some(changed) = &patch.poll {
        let poll = |poll| Poll::new(PollId(stamp.0), poll, stamp.unix_ms(), old.poll.as_ref());
        new.poll = changed.as_ref().map(poll);
    }
    new.content.check(new.poll.is_some())?;
    let is_edit = new != old || !patch.described.is_empty();
    quotes::rules::change(&mut new, patch);
    if is_edit {
        new.edited = Some(stamp);
        let media = (&*old.content.media, &*new.content.media);
        media::facts::attach(txn, id, media, &patch.described);
        txn.edit_post(id, &old, &new);
        txn.announce_edit(id, &old, stamp);
    } else if new != old {
        txn.replace_post(id, Some(&old), Some(&new));
    } else {
        return Ok(Done::PostEdited);
    }
    if new.quote != old.quote {
        quotes::rules::forget_notice(txn, id, &new);
    }
    let author = old.author;
    effects.push(changed(id, &old, PostChange::Edited));
    let only_before = old.mentioned_others().filter(|user| !new.mentions.contains(user));
    for user in new.mentioned_others().chain(only_before) {
        // Users who can no longer see the post get a deletion. The mentions of a direct post do not change.
        let deleted = new.visibility == Visibility::Followers
            && !new.mentions.contains(&user)
            && !txn.facts().follows(user, author);
        let change = if deleted { PostChange::Deleted } else { PostChange::Edited };
        effects.push(Effect::Mention { post: id, author, user, change });
    }
    announce_mentions(txn, stamp, (id, &old, &new), effects);
    Ok(Done::PostEdited)
}

/// Notifies the users that an edit added to the mentions. Their notifications have the stamp of the edit: the stamp of
/// the post may be older than what they have read or cleared.
fn announce_mentions(
    txn: &mut Txn<'_>,
    stamp: Stamp,
    (id, old, new): (PostId, &Post, &Post),
    effects: &mut Vec<Effect>,
) {
    for user in new.mentioned_others().filter(|user| !old.mentions.contains(user)) {
        let facts = txn.facts();
        if facts.exists(user) && Viewer::new(facts, Some(user)).receives_updates_of(new) {
            txn.put_mention_notice(user, id, stamp);
            effects.push(Effect::Notified { user });
        }
    }
}

pub(crate) fn delete(txn: &mut Txn<'_>, id: PostId, effects: &mut Vec<Effect>) -> Outcome {
    let post = txn.facts().post(id).ok_or(Refusal::PostNotFound)?;
    txn.remove_post(id, &post);
    quotes::rules::forget_notice(txn, id, &post);
    txn.count_post(post.author, post.visibility, false);
    let (author, change) = (post.author, PostChange::Deleted);
    effects.push(changed(id, &post, change));
    let deleted = |user| Effect::Mention { post: id, author, user, change };
    effects.extend(post.mentioned_others().map(deleted));
    if let Some(boost) = &post.boost {
        txn.remove_notification(boost.author, id.0);
        show_later_boosts(txn, id, author, boost.post, effects);
    }
    Ok(Done::Deleted)
}

/// Shows later boosts of a post to users for whom the ended boost by `user` hid them.
fn show_later_boosts(
    txn: &mut Txn<'_>,
    ended: PostId,
    user: UserId,
    boosted: PostId,
    effects: &mut Vec<Effect>,
) {
    for id in txn.facts().boosts_after(boosted, ended) {
        let Some(old) = txn.facts().stored_post(id) else { continue };
        let mut new = old.clone();
        let Some(boost) = &mut new.boost else { continue };
        boost.earlier.retain(|other| *other != user);
        if new == old {
            continue;
        }
        txn.replace_post(id, Some(&old), Some(&new));
        effects.push(changed(id, &new, PostChange::Shown));
    }
}

/// Finds the users whom a post mentions, and adds the work of it: see [`mentioned`].
fn mentioned_in(
    txn: &mut Txn<'_>,
    text: &PostText,
    author: UserId,
    replied: Option<UserId>,
) -> Vec<UserId> {
    let mut found = BTreeSet::new();
    let mentioned = mentioned(text, author, replied, |handle| {
        let user = txn.facts().by_handle(handle);
        found.extend(user);
        user
    });
    txn.add_work(found.len() * MENTION_WORK + text.as_str().len() * TEXT_WORK);
    mentioned
}

/// Returns the users whom a post mentions, each once: first `replied`, the author of the parent, unless it is the same
/// author or mentioned in the text, then those in the text.
pub fn mentioned(
    text: &PostText,
    author: UserId,
    replied: Option<UserId>,
    mut by_handle: impl FnMut(&Handle) -> Option<UserId>,
) -> Vec<UserId> {
    let mut found = Vec::new();
    for token in token::tokens(text.as_str()) {
        if let TokenKind::Mention(handle) = token.kind
            && let Some(user) = by_handle(&handle)
            && !found.contains(&user)
        {
            found.push(user);
        }
    }
    let first = replied.filter(|user| *user != author && !found.contains(user));
    first.into_iter().chain(found).collect()
}

/// Finds the user whose mention begins a text.
fn opening(txn: &Txn<'_>, text: &PostText) -> Option<UserId> {
    match token::tokens(text.as_str()).next() {
        Some(Token { start: 0, kind: TokenKind::Mention(handle), .. }) => {
            txn.facts().by_handle(&handle)
        }
        _ => None,
    }
}

/// Finds a post, or the boosted post if it is a boost.
pub(crate) fn boosted(txn: &Txn<'_>, id: PostId) -> Result<(PostId, Post), Refusal> {
    let post = txn.facts().post(id).ok_or(Refusal::PostNotFound)?;
    let boosted = post.boosted_or(id);
    if boosted == id {
        return Ok((id, post));
    }
    Ok((boosted, txn.facts().post(boosted).ok_or(Refusal::PostNotFound)?))
}
