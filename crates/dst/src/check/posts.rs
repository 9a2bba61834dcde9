//! Comparison of posts, boosts, home timelines and reactions with the model.

use std::collections::BTreeSet;

use feed::profile::ProfileFilter;
use feed::{DueWork, Page, PostId, Reaction, SetTable, UserId, Viewer};

use super::polls::model_poll;
use crate::model::posts::{ModelBoost, ModelPost};
use crate::model::quotes::ModelQuote;
use crate::run::Run;

impl Run {
    pub(super) fn check_home(&self, user: u32, page: &Page) {
        let expected = self.model.feed.home(user, page, &self.orphans());
        let node = self.node().node();
        if let Some(known) = node.try_home_ids(UserId(user), page) {
            assert_eq!(known, expected, "home of {user} in memory, {page:?}");
        }
        let wants = |id: &PostId| {
            let boost = self.model.feed.posts.get(&id.0).map(|post| post.boost.as_ref());
            // A boost of a deleted post is not shown.
            boost.is_some_and(|boost| {
                boost.is_none_or(|boost| self.model.feed.wants_boosts_of(user, boost.author))
            })
        };
        for id in &expected.items {
            let shown = node.home_post(UserId(user), *id, &mut Vec::new());
            assert_eq!(shown, wants(id), "whether {user} is shown {} at home", id.0);
        }
        let found = node.home_ids(UserId(user), page);
        if node.viewer(Some(UserId(user))).hides_no_author() {
            assert_eq!(found, expected, "home of {user}, {page:?}");
            return;
        }
        let whole = Page { limit: 1_000_000, ..*page };
        let mut shown = self.model.feed.home(user, &whole, &self.orphans()).items;
        shown.retain(wants);
        let more = shown.len() > page.limit;
        let hidden = shown.len().saturating_sub(page.limit);
        match page.is_up {
            true => drop(shown.drain(..hidden)),
            false => shown.truncate(page.limit),
        }
        assert_eq!(found.items, shown, "home of {user}, {page:?}");
        assert!(found.next.is_some() || !more, "home of {user}, {page:?} does not end");
    }

    /// Boosts of deleted posts that the node still stores.
    pub(super) fn orphans(&self) -> Vec<u64> {
        let facts = self.node().node().facts();
        let ids = self.model.feed.orphans.keys().copied();
        ids.filter(|id| facts.stored_post(PostId(*id)).is_some()).collect()
    }

    pub(super) fn check_post(&mut self) {
        let page = self.page();
        let id = match page.below.or(page.above) {
            Some(id) => PostId(id),
            // Use the id of a story, which is not the id of a post.
            None => match self.model.feed.stories.keys().next_back() {
                Some(story) => PostId(*story),
                None => return,
            },
        };
        let node = self.node().node();
        let mut out = Vec::new();
        let (exists, expected) = (node.post(id, &mut out), self.model.feed.posts.get(&id.0));
        let shown = String::from_utf8_lossy(&out);
        assert_eq!(exists, expected.is_some(), "whether post {} exists: {shown}", id.0);
        let Some(expected) = expected else { return };
        let out = String::from_utf8_lossy(&out);
        assert!(
            out.contains(expected.content.text.as_str()),
            "post {} is {out} instead of {expected:?}",
            id.0
        );
        let author = &self.model.feed.users[expected.author as usize];
        assert!(out.contains(&format!("\"{}\"", author.handle)), "{out} is by {author:?}");
        let Some(found) = node.facts().post(id) else {
            panic!("post {} is not in the facts", id.0)
        };
        for (user, _) in (0..).zip(&self.model.feed.users).filter(|(_, user)| !user.deleted) {
            let sees = self.model.feed.sees(user, expected);
            let viewer = node.viewer(Some(UserId(user)));
            assert_eq!(viewer.visible(&found), sees, "post {} seen by {user}", id.0);
            let wants = self.model.feed.wants(user, expected);
            assert_eq!(viewer.wanted(&found), wants, "post {} wanted by {user}", id.0);
            let notified = self.model.feed.notified(user, id.0);
            assert_eq!(viewer.notified(id), notified, "{user} of post {}", id.0);
            let is_muted = self.model.feed.mutes_thread_of(user, id.0);
            assert_eq!(viewer.mutes_thread_of((id, &found)), is_muted, "{user} and {}", id.0);
        }
        let anyone = Viewer::anyone(node.facts());
        let is_open = self.model.feed.anyone_sees(expected);
        assert_eq!(anyone.visible(&found), is_open, "post {} seen by anyone", id.0);
        self.check_quotes(id, &found);
        assert_eq!(model_post(found), *expected, "post {}", id.0);
        let count = |reaction| {
            let of_post = self.model.feed.reactions.keys();
            of_post.filter(|(_, post, kind)| (*post, *kind) == (id.0, reaction)).count()
        };
        let (counts, expected) =
            (node.facts().post_counts(id), [Reaction::Favourite, Reaction::Boost].map(count));
        let counts = [counts.favourites, counts.boosts].map(|count| count as usize);
        assert_eq!(counts, expected, "favourites and boosts of {}", id.0);
        self.check_poll_of(id);
        self.check_versions(id);
    }

    /// Checks the quotes of a post, and the quote in the post as users see it.
    fn check_quotes(&self, id: PostId, found: &feed::Post) {
        let (node, model) = (self.node().node(), &self.model.feed);
        // The node will list or remove the quotes by these users later.
        let due = node.facts().first_due(0, None, 1_000_000).into_iter();
        let relisted = due.filter_map(|due| match due.work {
            DueWork::Relist { user } => Some(user.0),
            _ => None,
        });
        let relisted: BTreeSet<u32> = relisted.collect();
        let is_listed = |quote: &u64| !relisted.contains(&model.posts[quote].author);
        let quote = found.quote.map(|quote| (quote, model_quote(quote)));
        let anyone = Viewer::anyone(node.facts());
        if let Some((quote, expected)) = quote {
            let seen = model.quoted(None, &expected);
            assert_eq!(anyone.quoted(&quote), seen, "quote in {} seen by anyone", id.0);
        }
        for (user, _) in (0..).zip(&model.users).filter(|(_, user)| !user.deleted) {
            let viewer = node.viewer(Some(UserId(user)));
            if let Some((quote, expected)) = quote {
                let seen = model.quoted(Some(user), &expected);
                assert_eq!(viewer.quoted(&quote), seen, "quote in {} seen by {user}", id.0);
            }
            let may_quote = model.posts.get(&id.0).is_some_and(|post| model.may_quote(user, post));
            assert_eq!(viewer.may_quote(found), may_quote, "whether {user} may quote {}", id.0);
            // Quotes by a disabled user are not listed, not even for that user.
            let wants = |by| model.wants_boosts_of(user, by) && !model.accounts.is_disabled(by);
            let wanted = model.quotes_of(id.0).filter(|(_, by)| wants(*by));
            let wanted = wanted.map(|(quote, _)| quote).filter(is_listed);
            let wanted: Vec<_> = wanted.map(PostId).collect();
            let mut listed = viewer.quotes(id, &Page::newest(1_000_000)).items;
            listed.reverse();
            listed.retain(|quote| is_listed(&quote.0));
            assert_eq!(listed, wanted, "quotes of {} seen by {user}", id.0);
        }
        let shown = model.quotes_of(id.0).filter(|(id, _)| model.anyone_sees(&model.posts[id]));
        let shown: Vec<_> = shown.map(|(quote, _)| quote).collect();
        let counted = node.facts().open_count(SetTable::Quotes, id, 1_000);
        let least = shown.iter().filter(|quote| is_listed(quote)).count();
        let expect = least.min(1_000)..=shown.len().min(1_000);
        assert!(expect.contains(&counted), "{counted} quotes of {}, not {expect:?}", id.0);
    }

    /// Checks the reactions of a user.
    pub(super) fn check_reactions(&self, user: u32) {
        let (node, expected) = (self.node().node(), &self.model.feed);
        let facts = node.facts();
        for reaction in Reaction::ALL {
            let mut found = facts.reactions_of(UserId(user), reaction, rows::Span::ALL);
            found.retain(|(_, post)| facts.has_post(*post));
            let wanted = expected.reactions.iter();
            let wanted = wanted.filter(|((of, _, kind), _)| *of == user && *kind == reaction);
            let mut wanted: Vec<_> =
                wanted.map(|((_, post, _), stamp)| (*stamp, PostId(*post))).collect();
            wanted.sort_unstable();
            // Boosts are listed as posts, not as reactions.
            if reaction != Reaction::Boost {
                assert_eq!(found, wanted, "{reaction:?} of {user}");
            }
            for (stamp, post) in wanted {
                assert_eq!(facts.reaction(UserId(user), post, reaction), Some(stamp));
            }
        }
    }

    /// Checks a page of the posts by another user.
    pub(super) fn check_posts_by(&self, user: u32, page: &Page) {
        let node = self.node().node();
        let author = (user + 1) % self.model.feed.users.len().max(1) as u32;
        let viewer = node.viewer(Some(UserId(user)));
        let found = node.visible_posts(&viewer, UserId(author), page, &ProfileFilter::default());
        let expected = self.model.feed.posts_by(user, author, page);
        assert_eq!(found, expected, "posts of {author} seen by {user}, {page:?}");
    }
}

fn model_quote(quote: feed::quotes::Quote) -> ModelQuote {
    ModelQuote { post: quote.post.0, is_revoked: quote.is_revoked }
}

pub(super) fn model_post(post: feed::Post) -> ModelPost {
    ModelPost {
        poll: post.poll.as_ref().map(model_poll),
        author: post.author.0,
        content: post.content,
        reply_to: post.reply_to.map(|user| user.0),
        mentions: post.mentions.iter().map(|user| user.0).collect(),
        parent: post.in_reply_to.map(|post| post.0),
        edited: post.edited.map(|stamp| stamp.0),
        quote: post.quote.map(model_quote),
        quote_policy: post.quote_policy,
        visibility: post.visibility,
        conversation: post.conversation.map(|first| first.0),
        thread: post.thread.map(|first| first.0),
        boost: post.boost.map(|boost| ModelBoost {
            post: boost.post.0,
            author: boost.author.0,
            is_recent: boost.is_recent,
            earlier: boost.earlier.iter().map(|user| user.0).collect(),
        }),
    }
}
