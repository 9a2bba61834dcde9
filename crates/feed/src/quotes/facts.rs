//! Reads of quotes: the lists of quotes of posts, and the state of a quote for a viewer.

use rows::{Rows, SetTable, Span};

use super::{Quote, QuotePolicy, QuoteState};
use crate::facts::Facts;
use crate::ids::{PostId, UserId};
use crate::notifications::Notice;
use crate::page::{Page, PageOf};
use crate::posts::{Post, Visibility};
use crate::scan::{Batch, Shown, scan};
use crate::tags::Tagged;
use crate::visible::Viewer;

impl Post {
    /// Whether rows must be read to find out if a user other than the author may quote the post.
    #[must_use]
    pub fn asks_rows_for_quotes(&self) -> bool {
        self.visibility.is_open() && self.quote_policy == QuotePolicy::Followers
    }

    /// The quoted post, if its list of quotes has this post. The list has only public and unlisted posts, so that posts
    /// hidden from a reader displace none of them.
    pub(crate) fn listed_quote(&self) -> Option<PostId> {
        let quote = self.quote.filter(|quote| !quote.is_revoked && self.visibility.is_open())?;
        Some(quote.post)
    }
}

impl<R: Rows + ?Sized> Facts<'_, R> {
    /// Quotes of a post that everybody may see, within `span` of post ids, each with its author, who may be deleted.
    #[must_use]
    pub fn quotes_of(&self, post: PostId, span: Span) -> Vec<Tagged> {
        let rows = self.rows.members(SetTable::Quotes, post.0, span);
        rows.into_iter().map(|(quote, author)| (PostId(quote), UserId(author as u32))).collect()
    }

    /// The quoted post, if it exists. An import may name a boost, which nobody can quote.
    #[must_use]
    pub fn quoted_post(&self, quote: &Quote) -> Option<Post> {
        self.post(quote.post).filter(|post| post.boost.is_none())
    }

    /// Whether a post has quotes that everybody may see.
    pub(crate) fn is_quoted(&self, post: PostId) -> bool {
        !self.quotes_of(post, Span { limit: 1, ..Span::ALL }).is_empty()
    }
}

impl<R: Rows + ?Sized> Viewer<'_, R> {
    /// Whether the viewer may quote a post that they see.
    #[must_use]
    pub fn may_quote(&self, post: &Post) -> bool {
        let Some(user) = self.user() else { return false };
        if user == post.author {
            return post.visibility != Visibility::Direct;
        }
        if rows::has_bug("quote-against-policy") {
            return post.visibility.is_open();
        }
        post.visibility.is_open()
            && match post.quote_policy {
                QuotePolicy::Public => true,
                QuotePolicy::Followers => self.facts().follows(user, post.author),
                QuotePolicy::Nobody => false,
            }
    }

    /// Whether the viewer may revoke the quote in a post, even if the viewer blocks the author of that post.
    #[must_use]
    pub fn may_revoke(&self, post: &Post) -> bool {
        let is_known = post.visibility.is_open() || self.visible(post);
        let quoted = post.quote.filter(|_| is_known).and_then(|it| self.facts().quoted_post(&it));
        quoted.is_some_and(|quoted| self.user() == Some(quoted.author))
    }

    /// Returns the state of a quote in a post that the viewer sees.
    #[must_use]
    pub fn quoted(&self, quote: &Quote) -> QuoteState {
        if quote.is_revoked {
            return QuoteState::Revoked;
        }
        let Some(post) = self.facts().quoted_post(quote) else { return QuoteState::Deleted };
        let blocks =
            |user| !self.has_no_blocks_or_mutes() && self.facts().blocks(user, post.author);
        match self.user() {
            _ if rows::has_bug("show-quotes-of-hidden") => QuoteState::Accepted,
            Some(user) if blocks(user) => QuoteState::Blocked,
            _ if !self.visible(&post) => QuoteState::Unauthorized,
            _ if !self.wants_public_by(post.author) => QuoteState::Muted,
            _ => QuoteState::Accepted,
        }
    }

    /// A page of the quotes of a post that everybody may see, without those by users whom a block or a mute hides.
    #[must_use]
    pub fn quotes(&self, post: PostId, page: &Page) -> PageOf<PostId> {
        let read = |span| Batch::of(self.facts().quotes_of(post, span), span);
        scan(page, read, |(quote, author): Tagged| {
            let is_shown = !self.facts().is_being_erased(author) && self.wants_public_by(author);
            Shown::when(is_shown, quote)
        })
    }

    /// The notification of a quote by `actor`, whose post has the id of the notification.
    pub(crate) fn quote_notice(&self, actor: UserId, id: PostId) -> Option<(UserId, Notice)> {
        let post = self.facts().post(id).filter(|post| post.author == actor)?;
        post.quote.filter(|quote| !quote.is_revoked && self.visible(&post))?;
        Some((actor, Notice::Quote(id)))
    }

    /// The notification of an edit: of a post that the viewer boosted, or if the post is the viewer's own, of the post
    /// that it quotes.
    pub(crate) fn edit_notice(&self, id: PostId) -> Option<(UserId, Notice)> {
        let post = self.facts().post(id).filter(|post| self.visible(post))?;
        if self.user() != Some(post.author) {
            return Some((post.author, Notice::Edit(id)));
        }
        let quote = post.quote.filter(|quote| !quote.is_revoked)?;
        let quoted = self.facts().quoted_post(&quote).filter(|quoted| self.visible(quoted))?;
        Some((quoted.author, Notice::QuotedUpdate(id)))
    }
}
