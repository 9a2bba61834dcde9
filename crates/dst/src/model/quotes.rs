//! Expected quotes, as users see them.

use feed::quotes::{QuotePolicy, QuoteState};
use feed::{Draft, Patch, Refusal, Visibility};

use super::feed::Feed;
use super::notices::Cause;
use super::posts::ModelPost;

/// Quote in a post.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ModelQuote {
    pub(crate) post: u64,
    pub(crate) is_revoked: bool,
}

impl Feed {
    /// Returns the quote in a user's draft, and the visibility of the post, which the quote may restrict.
    pub(super) fn quote_of(
        &self,
        user: u32,
        new: &Draft,
    ) -> Result<(Option<ModelQuote>, Visibility), Refusal> {
        let Some(named) = new.quote else { return Ok((None, new.visibility)) };
        let boost = self.posts.get(&named.0).and_then(|post| post.boost.as_ref());
        let post = boost.map_or(named.0, |boost| boost.post);
        let quoted = self.posts.get(&post).filter(|quoted| self.sees(user, quoted));
        let quoted = quoted.ok_or(Refusal::QuotedNotFound)?;
        if !self.may_quote(user, quoted) {
            return Err(Refusal::QuoteNotAllowed);
        }
        let quote = ModelQuote { post, is_revoked: false };
        let visibility = match (quoted.visibility, new.visibility) {
            (Visibility::Followers, Visibility::Public | Visibility::Unlisted) => {
                Visibility::Followers
            }
            (_, visibility) => visibility,
        };
        Ok((Some(quote), visibility))
    }

    /// Whether a user may quote a post that the user may see.
    pub(crate) fn may_quote(&self, user: u32, post: &ModelPost) -> bool {
        let is_own = post.author == user;
        let follows = self.follows.contains(&(user, post.author));
        match (post.visibility, post.quote_policy) {
            (Visibility::Direct, _) => false,
            (Visibility::Followers, _) | (_, QuotePolicy::Nobody) => is_own,
            (_, QuotePolicy::Followers) => is_own || follows,
            (_, QuotePolicy::Public) => true,
        }
    }

    /// Notifies the author of a quoted post about the new post, unless the new post mentions the author.
    pub(super) fn announce_quote(&mut self, stamp: u64, post: &ModelPost) {
        let quoted = post.quote.and_then(|quote| self.posts.get(&quote.post));
        let Some(user) = quoted.map(|quoted| quoted.author) else { return };
        if user != post.author && !post.mentions.contains(&user) && self.sees(user, post) {
            self.notify(user, stamp, (post.author, Cause::Quote(stamp)));
        }
    }

    /// Revokes a quote, or changes which users may quote a post. Neither counts as an edit.
    pub(super) fn change_quotes(&mut self, id: u64, patch: &Patch) {
        let Some(post) = self.posts.get_mut(&id) else { return };
        post.quote_policy = patch.quote_policy.unwrap_or(post.quote_policy);
        if let Some(quote) = post.quote.as_mut().filter(|_| patch.revoke_quote) {
            quote.is_revoked = true;
            let quoted = quote.post;
            self.forget_quote_notice(id, quoted);
        }
    }

    /// Removes the notification of a quote, while the quoted post exists.
    pub(super) fn forget_quote_notice(&mut self, id: u64, quoted: u64) {
        if let Some(quoted) = self.posts.get(&quoted) {
            self.notices.remove(&(quoted.author, id));
        }
    }

    /// Quotes of a post that everybody may see: the quoting posts in order, with their authors.
    pub(crate) fn quotes_of(&self, id: u64) -> impl Iterator<Item = (u64, u32)> {
        let is_open =
            |post: &ModelPost| matches!(post.visibility, Visibility::Public | Visibility::Unlisted);
        let quotes = self.posts.iter().filter(move |(_, post)| {
            post.quote.is_some_and(|quote| quote.post == id && !quote.is_revoked) && is_open(post)
        });
        quotes.map(|(id, post)| (*id, post.author))
    }

    /// Returns the state of a quote, as a user or a visitor without an account sees it.
    pub(crate) fn quoted(&self, user: Option<u32>, quote: &ModelQuote) -> QuoteState {
        let Some(post) = self.posts.get(&quote.post).filter(|_| !quote.is_revoked) else {
            return if quote.is_revoked { QuoteState::Revoked } else { QuoteState::Deleted };
        };
        let has = |user: u32| (user, post.author);
        if user.is_some_and(|user| self.blocks.contains(&has(user))) {
            return QuoteState::Blocked;
        }
        let sees = user.map_or_else(|| self.anyone_sees(post), |user| self.sees(user, post));
        match user.is_some_and(|user| self.mutes.contains_key(&has(user))) {
            _ if !sees => QuoteState::Unauthorized,
            true => QuoteState::Muted,
            false => QuoteState::Accepted,
        }
    }
}
