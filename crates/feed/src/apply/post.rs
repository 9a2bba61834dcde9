//! Publishing, editing and deleting posts.

use std::collections::BTreeSet;

use rows::Stamp;

use crate::boost::Boost;
use crate::command::{Done, Outcome};
use crate::cost::{MENTION_WORK, TEXT_WORK};
use crate::effect::{Effect, PostChange};
use crate::facts::Txn;
use crate::ids::{PostId, UserId, UserRef};
use crate::limits;
use crate::media::{MediaChange, MediaId};
use crate::poll::{NewPoll, Poll, PollId};
use crate::post::{NewPost, PostEdit, Visibility};
use crate::records::Post;
use crate::refusal::Refusal;
use crate::text::{Handle, PostText};
use crate::token::{self, Token, TokenKind};
use crate::visible::Viewer;

/// What a new post has beside its text.
#[derive(Clone, Copy, Default)]
pub(super) struct Parts<'a> {
    /// Pictures that are unattached, or among those that are held for it.
    pub(super) media: &'a [MediaId],
    /// Pictures of the author that are held for the post.
    pub(super) held: &'a [MediaId],
    pub(super) poll: Option<&'a NewPoll>,
}

/// The author of a post that may be published, and that of the post replied to.
#[derive(Clone, Copy)]
pub(super) struct Checked {
    pub(super) author: UserId,
    /// The post replied to: of a boost, what it boosts.
    parent: Option<PostId>,
    replied: Option<UserId>,
    /// The first post of the conversation of the post replied to, if that is direct.
    conversation: Option<PostId>,
    /// The first post of the thread of the post replied to.
    thread: Option<PostId>,
}

/// Refuses a post that cannot be published.
pub(super) fn check(
    txn: &Txn<'_>,
    new: &NewPost,
    Parts { media, held, poll }: Parts<'_>,
) -> Result<Checked, Refusal> {
    let author = super::resolve(txn, &new.author)?;
    check_count(txn, author)?;
    super::media::check(txn, author, held, media)?;
    check_parts(media, poll.is_some())?;
    if new.text.as_str().is_empty() && media.is_empty() {
        return Err(Refusal::BadText);
    }
    let mut checked =
        Checked { author, parent: None, replied: None, conversation: None, thread: None };
    if let Some(named) = new.parent {
        let found = super::reaction::boosted(txn, named).ok();
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

fn check_parts(media: &[MediaId], has_poll: bool) -> Result<(), Refusal> {
    if has_poll && !media.is_empty() {
        return Err(Refusal::PollWithMedia);
    }
    Ok(())
}

/// Publishes a post. It is a reply to its parent, or to what that boosts, if there is one.
pub(super) fn publish(
    txn: &mut Txn<'_>,
    stamp: Stamp,
    (new, parts): (&NewPost, Parts<'_>),
    effects: &mut Vec<Effect>,
) -> Outcome {
    let checked = check(txn, new, parts)?;
    let reply_to = checked.replied;
    put_new(txn, stamp, (new, parts), (&checked, reply_to), effects)
}

/// Publishes a public, text-only post, which is a reply to the user whose mention begins the text.
pub(super) fn publish_text(
    txn: &mut Txn<'_>,
    stamp: Stamp,
    (author, text): (&UserRef, &PostText),
    effects: &mut Vec<Effect>,
) -> Outcome {
    let new = NewPost::new(author.clone(), text.clone());
    let checked = check(txn, &new, Parts::default())?;
    let reply_to = opening(txn, text);
    put_new(txn, stamp, (&new, Parts::default()), (&checked, reply_to), effects)
}

fn put_new(
    txn: &mut Txn<'_>,
    stamp: Stamp,
    (new, parts): (&NewPost, Parts<'_>),
    (checked, reply_to): (&Checked, Option<UserId>),
    effects: &mut Vec<Effect>,
) -> Outcome {
    let Checked { author, parent, replied, conversation, thread } = *checked;
    let mentions = mentioned_in(txn, &new.text, author, replied);
    let post = Post {
        author,
        text: new.text.clone(),
        reply_to,
        mentions,
        in_reply_to: parent,
        edited: None,
        visibility: new.visibility,
        warning: new.warning.clone(),
        sensitive: new.sensitive,
        language: new.language.clone(),
        boost: None,
        media: parts.media.to_vec(),
        poll: parts.poll.map(|new| Poll::new(PollId(stamp.0), new, stamp.unix_ms())),
        conversation: conversation.filter(|_| new.visibility == Visibility::Direct),
        thread,
    };
    let id = PostId(stamp.0);
    super::media::attach(txn, id, (&[], parts.media), &[]);
    txn.put_post(id, &post);
    published(txn, id, &post, effects);
    let change = PostChange::Published;
    let mentioned = post.mentioned_others();
    effects.extend(mentioned.map(|user| Effect::Mention { post: id, author, user, change }));
    Ok(Done::Posted(id))
}

/// Counts a post that is new, and announces it to the views.
fn published(txn: &mut Txn<'_>, id: PostId, post: &Post, effects: &mut Vec<Effect>) {
    txn.count_post(post.author, post.visibility, true);
    effects.push(changed(id, post, PostChange::Published));
}

/// The effect of a change of a post.
fn changed(id: PostId, post: &Post, change: PostChange) -> Effect {
    let is_new = matches!(change, PostChange::Published | PostChange::Shown);
    let users = is_new.then(|| post.home_users()).flatten();
    Effect::Post { post: id, author: post.author, listed: post.listed(), users, change }
}

/// Refuses another post of an author who has too many.
pub(super) fn check_count(txn: &Txn<'_>, author: UserId) -> Result<(), Refusal> {
    let posts = txn.facts().stored_counts(author).posts;
    if posts < limits::USER_POSTS_MAX { Ok(()) } else { Err(Refusal::TooManyPosts) }
}

/// Publishes a boost of a post that the user may boost.
pub(super) fn boost(
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

/// What changes of a post beside its text.
#[derive(Clone, Copy, Default)]
pub(super) struct PartEdits<'a> {
    /// All pictures from now on, if they change.
    pub(super) media: Option<&'a [MediaId]>,
    /// What is said about them.
    pub(super) changes: &'a [MediaChange],
    /// The poll from now on, if it changes; or that there is none.
    pub(super) poll: Option<Option<&'a NewPoll>>,
}

/// Changes what a post says. The user replied to and who may see it stay, so the post stays in the same homes: an edit
/// never changes whom a direct post mentions.
pub(super) fn edit(
    txn: &mut Txn<'_>,
    stamp: Stamp,
    (edit, PartEdits { media, changes, poll }): (&PostEdit, PartEdits<'_>),
    effects: &mut Vec<Effect>,
) -> Outcome {
    let (id, old) = (edit.post, txn.facts().post(edit.post));
    // A boost says nothing.
    let old = old.filter(|post| post.boost.is_none()).ok_or(Refusal::PostNotFound)?;
    let mut new = old.clone();
    if let Some(text) = edit.text.as_ref().filter(|text| **text != old.text) {
        new.text = text.clone();
        if old.visibility != Visibility::Direct || rows::has_bug("edit-addresses-others") {
            let replied = old.in_reply_to.and(old.reply_to);
            new.mentions = mentioned_in(txn, text, old.author, replied);
        }
    }
    if let Some(warning) = &edit.warning {
        new.warning = warning.clone();
    }
    if let Some(language) = &edit.language {
        new.language = language.clone();
    }
    new.sensitive = edit.sensitive.unwrap_or(old.sensitive);
    if let Some(media) = media {
        super::media::check(txn, old.author, &old.media, media)?;
        new.media = media.to_vec();
    }
    if let Some(poll) = poll {
        let (next, now_ms) = (PollId(stamp.0), stamp.unix_ms());
        new.poll = poll.map(|poll| match &old.poll {
            Some(old) => old.edited(next, poll, now_ms),
            None => Poll::new(next, poll, now_ms),
        });
    }
    check_parts(&new.media, new.poll.is_some())?;
    if new.text.as_str().is_empty() && new.media.is_empty() {
        return Err(Refusal::BadText);
    }
    if new == old && changes.is_empty() {
        return Ok(Done::PostEdited);
    }
    new.edited = Some(stamp);
    super::media::attach(txn, id, (&old.media, &new.media), changes);
    txn.edit_post(id, &old, &new);
    txn.announce_edit(id, &old, stamp);
    let author = old.author;
    effects.push(changed(id, &old, PostChange::Edited));
    let only_before = old.mentioned_others().filter(|user| !new.mentions.contains(user));
    for user in new.mentioned_others().chain(only_before) {
        // For those who see it no more, it is deleted. Whom a direct post mentions does not change.
        let deleted = new.visibility == Visibility::Followers
            && !new.mentions.contains(&user)
            && !txn.facts().follows(user, author);
        let change = if deleted { PostChange::Deleted } else { PostChange::Edited };
        effects.push(Effect::Mention { post: id, author, user, change });
    }
    announce_mentions(txn, stamp, (id, &old, &new), effects);
    Ok(Done::PostEdited)
}

/// Notifies the users whom a post mentions since its edit. Their notifications have the stamp of the edit: that of the post
/// may be older than what they have seen, or cleared.
fn announce_mentions(
    txn: &mut Txn<'_>,
    stamp: Stamp,
    (id, old, new): (PostId, &Post, &Post),
    effects: &mut Vec<Effect>,
) {
    for user in new.mentioned_others().filter(|user| !old.mentions.contains(user)) {
        let facts = txn.facts();
        if facts.exists(user) && Viewer::new(facts, Some(user)).sees_edits(new) {
            txn.put_mention_notice(user, id, stamp);
            effects.push(Effect::Notified { user });
        }
    }
}

pub(super) fn delete(txn: &mut Txn<'_>, id: PostId, effects: &mut Vec<Effect>) -> Outcome {
    let post = txn.facts().post(id).ok_or(Refusal::PostNotFound)?;
    txn.remove_post(id, &post);
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

/// Shows the later boosts of a post to those who had the one by `user` at home instead, which has ended.
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

/// The users whom a post mentions: see [`mentioned`]. Looking them up is work.
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

/// The users whom a post mentions, each once: those in its text, and before them the author of the post that it replies to,
/// `replied`, unless that is its own author.
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

/// The user whose mention begins a text.
fn opening(txn: &Txn<'_>, text: &PostText) -> Option<UserId> {
    match token::tokens(text.as_str()).next() {
        Some(Token { start: 0, kind: TokenKind::Mention(handle), .. }) => {
            txn.facts().by_handle(&handle)
        }
        _ => None,
    }
}
