//! Expected posts, and their visibility.

use feed::limits::{BOOST_RECENT_MS, EARLIER_BOOSTS_MAX};
use feed::media::MediaId;
use feed::quotes::QuotePolicy;
use feed::{
    Content, Done, Draft, Outcome, Page, PageOf, Patch, PostId, Reaction, Refusal, Visibility,
};

use super::feed::Feed;
use super::polls::ModelPoll;
use super::quotes::ModelQuote;
use super::{ms_of, page_of};

/// Expected post.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ModelPost {
    pub(crate) author: u32,
    pub(crate) content: Content,
    pub(crate) reply_to: Option<u32>,
    pub(crate) mentions: Vec<u32>,
    pub(crate) parent: Option<u64>,
    pub(crate) edited: Option<u64>,
    pub(crate) visibility: Visibility,
    pub(crate) boost: Option<ModelBoost>,
    pub(crate) poll: Option<ModelPoll>,
    pub(crate) quote: Option<ModelQuote>,
    pub(crate) quote_policy: QuotePolicy,
    /// First post of the conversation, if this is a direct reply to a direct post.
    pub(crate) conversation: Option<u64>,
    /// First post of the thread, if this is a reply.
    pub(crate) thread: Option<u64>,
}

impl ModelPost {
    /// Returns the first post of the thread.
    pub(super) fn thread_of(&self, id: u64) -> u64 {
        self.thread.or(self.parent).unwrap_or(id)
    }
}

/// The boosted post of a boost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ModelBoost {
    pub(crate) post: u64,
    pub(crate) author: u32,
    pub(crate) is_recent: bool,
    pub(crate) earlier: Vec<u32>,
}

/// Ids of pictures.
pub(super) fn ids(media: &[MediaId]) -> Vec<u64> {
    media.iter().map(|media| media.0).collect()
}

/// Refuses posts without text and pictures, and posts with a poll and pictures.
fn check_parts(content: &Content, has_poll: bool) -> Result<(), Refusal> {
    let (has_text, has_media) = (!content.text.as_str().is_empty(), !content.media.is_empty());
    match (has_poll, has_media) {
        (true, true) => Err(Refusal::PollWithMedia),
        (_, false) if !has_text => Err(Refusal::BadText),
        _ => Ok(()),
    }
}

impl Feed {
    /// Checks a new post. Returns its author, and the author of the post that it replies to.
    pub(super) fn check_new(
        &mut self,
        new: &Draft,
        held: &[u64],
    ) -> Result<(u32, Option<u32>), Refusal> {
        let author = self.resolve(&new.author)?;
        self.check_media_of_post(author, held, &ids(&new.content.media))?;
        check_parts(&new.content, new.poll.is_some())?;
        self.quote_of(author, new)?;
        let replied = match new.parent {
            Some(_) => {
                let parent = self.parent_of(new).and_then(|parent| self.posts.get(&parent));
                let visible = parent.filter(|post| self.sees(author, post));
                Some(visible.ok_or(Refusal::ParentNotFound)?.author)
            }
            None => None,
        };
        Ok((author, replied))
    }

    /// Returns the post to which a draft replies; if that is a boost, the boosted post.
    pub(super) fn parent_of(&self, new: &Draft) -> Option<u64> {
        let named = new.parent?.0;
        let boost = self.posts.get(&named)?.boost.as_ref();
        Some(boost.map_or(named, |boost| boost.post))
    }

    /// Publishes a draft. `held` are pictures reserved for it. By a rule of the 2014 report, a post that begins with a
    /// mention is a reply to the mentioned user.
    pub(super) fn publish(&mut self, stamp: u64, new: &Draft, held: &[u64]) -> Outcome {
        let (author, replied) = self.check_new(new, held)?;
        let (quote, visibility) = self.quote_of(author, new)?;
        let text = new.content.text.as_str();
        let opening = text.split(' ').next().filter(|word| word.starts_with('@'));
        let opening = self.mentioned(opening.unwrap_or_default(), None, u32::MAX);
        let opening = opening.first().copied().filter(|_| new.opens_reply);
        let mentions = self.mentioned(text, replied, author);
        let post = ModelPost {
            author,
            content: new.content.clone(),
            reply_to: replied.or(opening),
            mentions,
            parent: self.parent_of(new),
            edited: None,
            visibility,
            boost: None,
            poll: new.poll.as_ref().map(|poll| ModelPoll::new(stamp, poll)),
            quote,
            quote_policy: new.quote_policy,
            conversation: self.conversation_of(new),
            thread: self.parent_of(new).map(|parent| self.posts[&parent].thread_of(parent)),
        };
        self.attach(PostId(stamp), (&[], &ids(&new.content.media)), &[]);
        self.announce_quote(stamp, &post);
        self.posts.insert(stamp, post);
        Ok(Done::Posted(PostId(stamp)))
    }

    pub(super) fn edit(&mut self, stamp: u64, post: PostId, edit: &Patch) -> Outcome {
        let old = self.posts.get(&post.0).filter(|post| post.boost.is_none());
        let old = old.ok_or(Refusal::PostNotFound)?.clone();
        let mut new = old.clone();
        let Patch {
            text,
            warning,
            sensitive,
            language,
            media,
            poll,
            described,
            // See `change_quotes`.
            revoke_quote: _,
            quote_policy: _,
        } = edit;
        if let Some(text) = text {
            new.content.text = text.clone();
        }
        if new.content.text != old.content.text && old.visibility != Visibility::Direct {
            let replied = old.reply_to.filter(|_| old.parent.is_some());
            new.mentions = self.mentioned(new.content.text.as_str(), replied, old.author);
        }
        if let Some(warning) = warning {
            new.content.warning = warning.clone();
        }
        if let Some(sensitive) = sensitive {
            new.content.sensitive = *sensitive;
        }
        if let Some(language) = language {
            new.content.language = language.clone();
        }
        if let Some(media) = media {
            new.content.media = media.clone();
            self.check_media_of_post(old.author, &ids(&old.content.media), &ids(media))?;
        }
        if let Some(poll) = poll {
            new.poll = poll.as_ref().map(|poll| match &old.poll {
                Some(old) => old.edited(stamp, poll),
                None => ModelPoll::new(stamp, poll),
            });
        }
        check_parts(&new.content, new.poll.is_some())?;
        let is_edited = new != old || !described.is_empty();
        self.change_quotes(post.0, edit);
        if is_edited {
            let changed = &self.posts[&post.0];
            (new.quote, new.quote_policy) = (changed.quote, changed.quote_policy);
            new.edited = Some(stamp);
            let media = [&old, &new].map(|post| ids(&post.content.media));
            self.attach(post, (&media[0], &media[1]), described);
            let (before, mentioned) = (old.edited, old.mentions.clone());
            self.add_version(post.0, old);
            self.posts.insert(post.0, new);
            self.announce_mentions(stamp, post.0, &mentioned);
            self.forget_votes();
            self.announce_edit(stamp, post.0, before);
        }
        Ok(Done::PostEdited)
    }

    pub(super) fn delete_post(&mut self, post: PostId) -> Outcome {
        let removed = self.posts.remove(&post.0).ok_or(Refusal::PostNotFound)?;
        if let Some(boost) = removed.boost {
            self.reactions.remove(&(removed.author, boost.post, Reaction::Boost));
            self.notices.remove(&(boost.author, post.0));
            self.show_later_boosts(removed.author, boost.post);
        }
        if let Some(quote) = removed.quote {
            self.forget_quote_notice(post.0, quote.post);
        }
        self.forget_media();
        self.forget_reactions();
        self.forget_votes();
        Ok(Done::Deleted)
    }

    /// Mentioned users, without duplicates: first the author of the parent, unless that is the author of the post. In
    /// the generated texts, each mention is a word, possibly with punctuation.
    fn mentioned(&self, text: &str, replied: Option<u32>, author: u32) -> Vec<u32> {
        let mut found = Vec::new();
        for handle in text.split(' ').filter_map(mention) {
            let Some(user) = self.handles.get(&handle.to_ascii_lowercase()) else { continue };
            if !self.users[*user as usize].deleted && !found.contains(user) {
                found.push(*user);
            }
        }
        if let Some(replied) = replied.filter(|user| *user != author && !found.contains(user)) {
            found.insert(0, replied);
        }
        found
    }

    /// Whether a visitor without an account may see a post.
    pub(crate) fn anyone_sees(&self, post: &ModelPost) -> bool {
        let is_enabled = |user: u32| !self.accounts.is_disabled(user);
        matches!(post.visibility, Visibility::Public | Visibility::Unlisted)
            && is_enabled(post.author)
            && post.boost.as_ref().is_none_or(|boost| is_enabled(boost.author))
    }

    /// Whether `user` may see a post, and mutes neither its author nor the author of the boosted post.
    pub(crate) fn wants(&self, user: u32, post: &ModelPost) -> bool {
        let mutes = |author| self.mutes.contains_key(&(user, author));
        let mutes_boosted = post.boost.as_ref().is_some_and(|boost| mutes(boost.author));
        self.sees(user, post) && !mutes(post.author) && !mutes_boosted
    }

    /// Whether `user` may see a post.
    pub(crate) fn sees(&self, user: u32, post: &ModelPost) -> bool {
        let is_addressed = match post.visibility {
            Visibility::Public | Visibility::Unlisted => true,
            Visibility::Followers => self.follows.contains(&(user, post.author)),
            Visibility::Direct => false,
        };
        let is_addressed = is_addressed || post.mentions.contains(&user);
        let boosts_hidden =
            post.boost.as_ref().is_some_and(|boost| self.are_hidden(user, boost.author));
        let is_visible = is_addressed && !self.are_hidden(user, post.author);
        (user == post.author || is_visible) && !boosts_hidden
    }

    /// Removes a user who has undone a boost from the lists of earlier boosters of later boosts.
    pub(super) fn show_later_boosts(&mut self, user: u32, post: u64) {
        for boost in self.posts.values_mut().filter_map(|found| found.boost.as_mut()) {
            if boost.post == post {
                boost.earlier.retain(|other| *other != user);
            }
        }
    }

    /// Publishes a boost.
    pub(super) fn boost(&mut self, stamp: u64, user: u32, id: u64) -> Outcome {
        let Some(post) = self.posts.get(&id) else { return Err(Refusal::PostNotFound) };
        let (author, visibility) = (post.author, post.visibility);
        let is_own = author == user && visibility == Visibility::Followers;
        if !matches!(visibility, Visibility::Public | Visibility::Unlisted) && !is_own {
            return Err(Refusal::BoostNotOpen);
        }
        let day = |at: u64| ms_of(at) + BOOST_RECENT_MS > ms_of(stamp);
        let is_recent = day(id) && post.reply_to.is_none_or(|to| to == author);
        // Current boosters, most recent first. Undoing a boost does not bring older boosters back into the list.
        let mut boosters = self.boosters.remove(&id).unwrap_or_default();
        boosters.retain(|other| {
            *other != user && self.reactions.contains_key(&(*other, id, Reaction::Boost))
        });
        let is_earlier = |other: &&u32| day(self.reactions[&(**other, id, Reaction::Boost)]);
        let earlier = boosters.iter().filter(is_earlier).copied().collect();
        boosters.insert(0, user);
        boosters.truncate(EARLIER_BOOSTS_MAX);
        self.boosters.insert(id, boosters);
        let post = ModelPost {
            author: user,
            content: Content::default(),
            reply_to: None,
            mentions: Vec::new(),
            parent: None,
            edited: None,
            visibility,
            boost: Some(ModelBoost { post: id, author, is_recent, earlier }),
            poll: None,
            quote: None,
            quote_policy: QuotePolicy::Public,
            conversation: None,
            thread: None,
        };
        self.posts.insert(stamp, post);
        Ok(Done::Reacted)
    }

    /// All posts, and the boosts of deleted posts that the node still stores; newest first.
    pub(super) fn listed_posts(&self, orphans: &[u64]) -> impl Iterator<Item = (u64, &ModelPost)> {
        let orphans = orphans.iter().filter_map(|id| Some((*id, self.orphans.get(id)?)));
        let mut all: Vec<_> = self.posts.iter().map(|(id, post)| (*id, post)).collect();
        all.extend(orphans);
        all.sort_unstable_by_key(|(id, _)| *id);
        all.into_iter().rev()
    }

    /// Whether boosts of posts by `author` are in the home timeline of `reader`.
    pub(crate) fn wants_boosts_of(&self, reader: u32, author: u32) -> bool {
        !self.are_hidden(reader, author) && !self.mutes.contains_key(&(reader, author))
    }

    /// Page of the home timeline of `reader`. Included are posts by the reader and by followed users who are not muted,
    /// and posts with followed hashtags. Excluded are: replies by others to users whom the reader does not follow or
    /// mutes; boosts by users whose boosts the reader hides; repeated boosts; and posts that the reader may not see.
    /// Boosts whose boosted post is hidden are included.
    pub(crate) fn home(&self, reader: u32, page: &Page, orphans: &[u64]) -> PageOf<PostId> {
        let follows = |other: u32| {
            let pair = (reader, other);
            other == reader || self.follows.contains(&pair) && !self.unwanted(reader, other)
        };
        let has_boosts = |other: u32| follows(other) && !self.hides_boosts(reader, other);
        let seen = |post: &ModelPost| {
            if let Some(boost) = &post.boost {
                let is_known = boost.is_recent && follows(boost.author);
                let is_earlier = boost.earlier.iter().any(|user| has_boosts(*user));
                return has_boosts(post.author) && !is_known && !is_earlier;
            }
            follows(post.author)
                && (post.author == reader || post.reply_to.is_none_or(follows))
                && self.sees(reader, post)
        };
        let tags: Vec<_> = self.followed_tags_of(reader).map(|(tag, _)| tag).collect();
        let tagged = |post: &ModelPost| tags.iter().any(|tag| self.is_tagged(reader, post, tag));
        let newest_first =
            self.listed_posts(orphans).filter(|(_, post)| seen(post) || tagged(post));
        page_of(newest_first.map(|(id, _)| id), page)
    }

    /// Page of the posts by `author` that `reader` may see.
    pub(crate) fn posts_by(&self, reader: u32, author: u32, page: &Page) -> PageOf<PostId> {
        let visible = |post: &ModelPost| post.author == author && self.sees(reader, post);
        let newest_first = self.posts.iter().rev().filter(|(_, post)| visible(post));
        page_of(newest_first.map(|(id, _)| *id), page)
    }

    /// Page of the posts that mention `user`.
    pub(crate) fn mentions(&self, user: u32, page: &Page) -> PageOf<PostId> {
        let newest_first = self.posts.iter().rev().filter(|(id, post)| {
            post.mentions.contains(&user) && post.author != user && self.notified(user, **id)
        });
        page_of(newest_first.map(|(id, _)| *id), page)
    }
}

/// Returns the name that a word of a text mentions. Punctuation may surround the name. If another sign precedes it or a
/// domain follows, the word mentions no user of this server.
fn mention(word: &str) -> Option<&str> {
    let name = word.trim_matches(['(', ')', '.']).strip_prefix('@')?;
    (!name.contains('@')).then_some(name)
}
