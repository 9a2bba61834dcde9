//! Posts and stories of `/v1` from the cache: a page is a concatenation of their bytes.

mod load;
#[cfg(all(test, feature = "loom"))]
mod races;
#[cfg(test)]
#[cfg(not(feature = "loom"))]
mod tests;

use feed::media::{Media, MediaId};
use feed::quotes::QuoteState;
use feed::stories::StoryRef;
use feed::{Facts, Post, PostId, PostText, StoryId, UserId};
use rows::{Rows, Subject};
use store::Revision;

use super::entities::{Entities, Entity, EntityKey, MadeOf, Revisions};
use super::names::UserNames;
use super::render;
use crate::pictures::pictures_of;

/// Users and posts that a rendering depends on.
#[derive(Clone, Copy)]
struct Parts {
    author: UserId,
    /// Author of the replied-to or boosted post; the post's own author if there is none.
    other: UserId,
    /// Replied-to or boosted post.
    post: Option<PostId>,
    /// Quoted post and its author.
    quoted: Option<(PostId, UserId)>,
    is_boost: bool,
}

/// Appended part of a post or story.
#[derive(Clone, Copy)]
enum Appended {
    /// The whole entity.
    Whole,
    /// A boost up to the boosted post, which must follow with the end.
    Boost {
        post: PostId,
        /// Author of the boosted post.
        author: UserId,
    },
}

/// An item to render, and the revision of its content from before the item was read; `None` for a story, which does not
/// change.
struct Read<T> {
    content: Option<Revision>,
    item: T,
}

impl Entities {
    /// Appends a post that is cached or can be rendered from memory; `in_memory` returns a post without reading the
    /// disk. Returns false for other posts, and for a boost of a post by an author for whom `wants` is false.
    pub(crate) fn try_post(
        &self,
        revisions: &impl Revisions,
        in_memory: impl Fn(PostId) -> Option<Post>,
        id: PostId,
        wants: impl FnOnce(UserId) -> bool,
        out: &mut Vec<u8>,
    ) -> bool {
        // A parent that is not in memory may exist, so its state is unknown.
        let parent = |id| in_memory(id).map(Some);
        let append = |id: PostId, out: &mut Vec<u8>| {
            self.kept(revisions, EntityKey::Post(id), out).or_else(|| {
                // A post with pictures needs rows, which may be on disk.
                let read = || in_memory(id).filter(|post| post.content.media.is_empty());
                let post = Read::new(content_of(revisions, id), read)?;
                let names = |user| self.names(revisions, user);
                self.render_post(revisions, (id, &post), parent, &[], names, out)
            })
        };
        with_boosted(append, id, wants, out)
    }

    /// Appends a post, rendered from the facts if it is not cached. Returns false if the post does not exist, and for a
    /// boost of a post by an author for whom `wants` is false.
    pub(crate) fn post<R: Rows + ?Sized>(
        &self,
        revisions: &impl Revisions,
        facts: Facts<'_, R>,
        id: PostId,
        wants: impl FnOnce(UserId) -> bool,
        out: &mut Vec<u8>,
    ) -> bool {
        let names = |user| self.names_of(revisions, facts, user);
        let parent = |id| Some(facts.post(id));
        let append = |id: PostId, out: &mut Vec<u8>| {
            self.kept(revisions, EntityKey::Post(id), out).or_else(|| {
                let post = Read::new(content_of(revisions, id), || facts.post(id))?;
                let pictures = pictures_of(facts, &post.item);
                self.render_post(revisions, (id, &post), parent, &pictures, names, out)
            })
        };
        with_boosted(append, id, wants, out)
    }

    fn render_post(
        &self,
        revisions: &impl Revisions,
        (id, post): (PostId, &Read<Post>),
        other: impl Fn(PostId) -> Option<Option<Post>>,
        pictures: &[(MediaId, Media)],
        names: impl Fn(UserId) -> Option<UserNames>,
        out: &mut Vec<u8>,
    ) -> Option<Appended> {
        let Post { author, boost, reply_to, in_reply_to, quote, .. } = &post.item;
        let boost = boost.as_ref();
        // The quoted post may be read before the revisions, because only its author is used, who never changes.
        let quoted = match quote {
            Some(quote) => other(quote.post)?.map(|quoted| (quote.post, quoted.author)),
            None => None,
        };
        let parts = Parts {
            author: *author,
            other: boost.map(|boost| boost.author).or(*reply_to).unwrap_or(*author),
            post: boost.map(|boost| boost.post).or(*in_reply_to),
            quoted,
            is_boost: boost.is_some(),
        };
        let write = |post: &Post, out: &mut Vec<u8>| {
            // Everyone who sees the post gets the same rendering, so a parent or quoted post with a smaller audience is
            // left out.
            let is_shown = |other: &Post| other.visibility.shows_to_all_of(post.visibility);
            let shown = match post.in_reply_to {
                Some(id) => other(id)?.filter(is_shown).map(|_| id),
                None => None,
            };
            let quoted = match post.quote {
                Some(quote) if quote.is_revoked => QuoteState::Revoked,
                Some(quote) => match other(quote.post)?.filter(|quoted| quoted.boost.is_none()) {
                    // A mentioned user may not follow the author, and must not see a quoted post for followers.
                    Some(quoted) if !quoted.visibility.is_open() && !post.mentions.is_empty() => {
                        QuoteState::Unauthorized
                    }
                    Some(quoted) if is_shown(&quoted) => QuoteState::Accepted,
                    Some(_) => QuoteState::Unauthorized,
                    None => QuoteState::Deleted,
                },
                None => QuoteState::Accepted,
            };
            render::post(id, post, (shown, quoted), pictures, names, out)
        };
        self.render(revisions, (EntityKey::Post(id), post, parts), write, out)
    }

    /// Appends a story without its end like [`Entities::try_post`]. The caller checks that the story is live, because
    /// an ended story may still be cached.
    pub(crate) fn try_story(
        &self,
        revisions: &impl Revisions,
        in_memory: impl Fn(StoryId) -> Option<PostText>,
        story: StoryRef,
        out: &mut Vec<u8>,
    ) -> bool {
        let kept = self.kept(revisions, EntityKey::story(story.story), out);
        let render = || {
            let text = Read::new(None, || in_memory(story.story))?;
            let names = |user| self.names(revisions, user);
            self.render_story(revisions, (story, &text), names, out)
        };
        kept.or_else(render).is_some()
    }

    /// Appends a story without its end like [`Entities::post`]. The caller checks that the story is live.
    pub(crate) fn story<R: Rows + ?Sized>(
        &self,
        revisions: &impl Revisions,
        facts: Facts<'_, R>,
        story: StoryRef,
        out: &mut Vec<u8>,
    ) -> bool {
        let names = |user| self.names_of(revisions, facts, user);
        let kept = self.kept(revisions, EntityKey::story(story.story), out);
        let render = || {
            let text = Read::new(None, || facts.story_text(story.story))?;
            self.render_story(revisions, (story, &text), names, out)
        };
        kept.or_else(render).is_some()
    }

    fn render_story(
        &self,
        revisions: &impl Revisions,
        (story, text): (StoryRef, &Read<PostText>),
        names: impl Fn(UserId) -> Option<UserNames>,
        out: &mut Vec<u8>,
    ) -> Option<Appended> {
        let write = |text: &PostText, out: &mut Vec<u8>| {
            render::story(story, &names(story.author)?, text, out);
            Some(())
        };
        let parts = Parts {
            author: story.author,
            other: story.author,
            post: None,
            quoted: None,
            is_boost: false,
        };
        self.render(revisions, (EntityKey::story(story.story), text, parts), write, out)
    }

    fn kept(
        &self,
        revisions: &impl Revisions,
        key: EntityKey,
        out: &mut Vec<u8>,
    ) -> Option<Appended> {
        self.read(key, |entity| {
            entity.is_current(revisions).then(|| {
                entity.append(render::USUAL, out);
                entity.parts().copied().unwrap_or(Appended::Whole)
            })
        })
    }

    /// Renders, appends and caches an item. Returns `None` if `write` lacks a user.
    fn render<T>(
        &self,
        revisions: &impl Revisions,
        (key, read, parts): (EntityKey, &Read<T>, Parts),
        write: impl FnOnce(&T, &mut Vec<u8>) -> Option<()>,
        out: &mut Vec<u8>,
    ) -> Option<Appended> {
        // Revisions are read before the names and the other post.
        let made_of = parts.made_of(revisions, read.content);
        let start = out.len();
        if write(&read.item, out).is_none() {
            out.truncate(start);
            return None;
        }
        let (json, appended) = (out.get(start..).unwrap_or_default(), parts.appended());
        let boost = Some(appended).filter(|appended| matches!(appended, Appended::Boost { .. }));
        self.keep(key, Entity::without(render::USUAL, &made_of, json, boost));
        Some(appended)
    }
}

/// Returns the present revision of the content of a post.
fn content_of(revisions: &impl Revisions, post: PostId) -> Option<Revision> {
    Some(revisions.revision(Subject::Content(post.0)))
}

impl<T> Read<T> {
    fn new(content: Option<Revision>, read: impl FnOnce() -> Option<T>) -> Option<Self> {
        read().map(|item| Self { content, item })
    }
}

impl Parts {
    /// Returns the present revisions of the parts, and `content` as the revision of the content.
    fn made_of(&self, revisions: &impl Revisions, content: Option<Revision>) -> MadeOf {
        let other = Some(self.other).filter(|other| *other != self.author);
        let profile = |user: UserId| Subject::Profile(user.0.into());
        let quoted = self.quoted.map(|(post, _)| post);
        let post = self.post.into_iter().chain(quoted).map(|post| Subject::Content(post.0));
        // The posts of a deleted user are hidden before their content is removed, so the revisions of users count too.
        let users = other.into_iter().chain(self.quoted.map(|(_, user)| user)).chain([self.author]);
        let subjects = users.map(profile).chain(post);
        MadeOf::default().and(content).and(subjects.map(|subject| revisions.revision(subject)))
    }

    fn appended(&self) -> Appended {
        match self.post.filter(|_| self.is_boost) {
            None => Appended::Whole,
            Some(post) => Appended::Boost { post, author: self.other },
        }
    }
}

/// Appends a post with `append`; for a boost also the boosted post, inside of it. Returns false and appends nothing if
/// one of these posts is not found, or if `wants` is false for the author of the boosted post.
fn with_boosted(
    append: impl Fn(PostId, &mut Vec<u8>) -> Option<Appended>,
    id: PostId,
    wants: impl FnOnce(UserId) -> bool,
    out: &mut Vec<u8>,
) -> bool {
    let start = out.len();
    match append(id, out) {
        None => false,
        Some(Appended::Whole) => true,
        Some(Appended::Boost { post, author }) => {
            // A boosted post is never a boost.
            let is_whole = wants(author) && matches!(append(post, out), Some(Appended::Whole));
            if is_whole {
                out.push(b'}');
            } else {
                out.truncate(start);
            }
            is_whole
        }
    }
}
