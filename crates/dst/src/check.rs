//! Comparison of reads of the node with the model.

mod conversations;
mod filters;
mod lists;
mod media;
mod notices;
mod polls;
mod posts;
mod searches;
mod settings;
mod tags;
mod versions;

use std::collections::BTreeMap;

use feed::{Cursor, Page, PostId, StoryId, UserId, UserRef};
use kv::{BucketId, BucketName};
use node::Found;

use self::posts::model_post;
use crate::events::Event;
use crate::model::{ModelAccount, ModelKey, ms_of};
use crate::run::Run;

/// Number of bytes by which a budget may be exceeded for a short time: the size of the last added item.
const ONE_ITEM: u64 = 64 << 10;

impl Run {
    /// Runs one random check.
    pub(crate) fn check_one(&mut self) {
        self.record(Event::Read);
        self.tally.checks += 1;
        self.check_time();
        let users = self.model.feed.users.len() as u64;
        let user = if users == 0 { 0 } else { self.random.below(users) as u32 };
        if self.model.feed.users.get(user as usize).is_some_and(|user| user.deleted) {
            // Clients can read nothing else of a deleted user.
            return self.check_user(user);
        }
        match self.random.below(10) {
            0..3 => {
                let page = self.page();
                self.check_home(user, &page);
                self.check_posts_by(user, &page);
                self.check_tagged(user, &page);
                self.check_search(user);
                self.check_lists(user, &page);
                self.check_filters(user);
                self.check_conversations(user);
                self.check_media(user);
                self.check_polls(user);
            }
            3 => {
                let page = self.page();
                let found = self.node().node().mention_ids(UserId(user), &page);
                assert_eq!(found, self.model.feed.mentions(user, &page), "mentions of {user}");
            }
            4 => self.check_stories(user),
            5 => {
                let mut page = self.page();
                if self.random.once_in(2) {
                    // Choose about the minimum number of posts that are read per user.
                    page.limit = self.random.between(30, 64) as usize;
                }
                self.check_user(user);
                self.check_reactions(user);
                self.check_notifications(user);
                self.check_notification_pages(user, &page);
            }
            6 => self.check_post(),
            _ => self.check_key(),
        }
    }

    /// Runs all checks.
    pub(crate) fn check_all(&mut self) {
        self.tally.checks += 1;
        self.check_time();
        self.check_budgets();
        let newest = Page::newest(20);
        for (user, expected) in self.model.feed.users.iter().enumerate() {
            let user = user as u32;
            if !expected.deleted {
                self.check_home(user, &newest);
                self.check_lists(user, &newest);
                self.check_filters(user);
                self.check_media(user);
                self.check_polls(user);
                self.check_stories(user);
                self.check_notifications(user);
            }
            self.check_user(user);
        }
        let node = self.node().node();
        for (id, post) in self.model.feed.posts.iter().rev().take(50) {
            let found = node.facts().post(PostId(*id));
            assert_eq!(found.map(model_post).as_ref(), Some(post), "post {id}");
            self.check_poll_of(PostId(*id));
        }
        self.check_feeds();
        self.check_edit_notices();
        self.check_poll_ends();
        self.check_accounts();
        self.check_totals();
        self.check_buckets();
    }

    fn page(&mut self) -> Page {
        let around = PostId(match self.model.feed.posts.len() {
            0 => 7,
            _ => {
                let first = self.model.feed.posts.keys().next().copied().unwrap_or_default();
                let last = self.model.last.max(first);
                let at = self.random.between(first, last);
                let next = self.model.feed.posts.range(at..).next();
                next.map_or(at, |(id, _)| *id)
            }
        });
        let cursor = match self.random.below(4) {
            0 => Cursor::Before(around),
            1 => Cursor::After(around),
            _ => Cursor::Newest,
        };
        let limit = if self.random.once_in(5) { 100 } else { 1 + self.random.index(20) };
        Page::at(cursor, limit)
    }

    /// Checks that the node's time never goes back, and is not before any change.
    fn check_time(&mut self) {
        let now = self.node().node().now_ms();
        assert!(now >= self.seen_ms, "the time went back from {} to {now}", self.seen_ms);
        assert!(self.model.last == 0 || now >= ms_of(self.model.last), "{now} is before a change");
        self.seen_ms = now;
    }

    fn check_stories(&self, user: u32) {
        let node = self.node().node();
        let known = node.try_stories_of_friends(UserId(user), 100);
        let found = node.stories_of_friends(UserId(user), 100);
        // No time passes between the two reads, so both have the same time.
        let mut expected = self.model.feed.stories_home(user, node.now_ms());
        expected.truncate(100);
        for found in known.iter().chain([&found]) {
            let found: Vec<(u64, u64)> =
                found.iter().map(|story| (story.story.0, story.expires_ms)).collect();
            let expected: Vec<(u64, u64)> =
                expected.iter().map(|(id, story)| (*id, story.expires_ms)).collect();
            assert_eq!(found, expected, "stories of friends of {user}");
        }
        if let Some((id, story)) = expected.first() {
            let views = node.story_views(StoryId(*id), UserId(story.author), rows::Span::ALL);
            // Lists of views omit deleted and hidden users.
            let users = &self.model.feed.users;
            let views = views.unwrap_or_default().into_iter();
            let views = views.map(|(user, at_ms)| (user.0, at_ms));
            let views = views.filter(|(user, _)| !users[*user as usize].deleted);
            let viewers = story.viewers.iter().map(|(user, at_ms)| (*user, *at_ms));
            assert!(views.eq(viewers), "views of story {id}");
            let mut out = Vec::new();
            assert!(node.story(StoryId(*id), Some(UserId(user)), &mut out), "story {id} is live");
            let out = String::from_utf8_lossy(&out);
            assert!(out.contains(&story.text), "story {id} is {} instead of {out}", story.text);
        }
    }

    fn check_user(&self, user: u32) {
        let Some(expected) = self.model.feed.users.get(user as usize) else { return };
        let facts = self.node().node().facts();
        let Ok(handle) = feed::Handle::parse(&expected.handle) else { return };
        let resolved = self.node().node().resolve(&UserRef::Handle(handle));
        if expected.deleted {
            assert_eq!((facts.user(UserId(user)), resolved), (None, None), "deleted user {user}");
            return;
        }
        assert_eq!(resolved, Some(UserId(user)));
        let Some(found) = facts.user(UserId(user)) else { panic!("user {user} does not exist") };
        self.check_settings(user, &found);
        self.check_choices(user);
        assert_eq!(
            (found.handle.as_str(), found.name.as_str(), found.bio.as_str(), found.registered.0),
            (
                expected.handle.as_str(),
                expected.name.as_str(),
                expected.bio.as_str(),
                expected.registered
            ),
            "profile of {user}"
        );
        assert_eq!(
            facts.counts(UserId(user)),
            self.model.feed.counts(user, &self.orphans()),
            "counts of {user}"
        );
        let viewer = self.node().node().viewer(Some(UserId(user)));
        for (other, _) in (0..).zip(&self.model.feed.users).filter(|(_, other)| !other.deleted) {
            let hidden = self.model.feed.are_hidden(user, other);
            assert_eq!(viewer.visible_user(UserId(other)), !hidden, "{other} seen by {user}");
        }
    }

    /// Checks accounts, and the permissions of each token.
    fn check_accounts(&self) {
        let (node, expected) = (self.node().node(), &self.model.feed.accounts);
        let mut found = BTreeMap::new();
        node.facts().each_account(|user, account| {
            let account = ModelAccount {
                email: account.email.map(|email| email.as_str().to_owned()),
                password: account.password.as_str().to_owned(),
                role: account.role,
                state: account.state,
            };
            found.insert(user.0, account);
        });
        assert_eq!(found, expected.accounts, "accounts");
        assert_eq!(node.facts().totals().accounts as usize, found.len(), "number of accounts");
        for (id, grant) in &expected.grants {
            let Some(token) = grant.token else { continue };
            let found = node.facts().granted(&token, node.now_ms());
            let is_valid = expected.is_valid(grant, node.now_ms());
            assert_eq!(found.is_some(), is_valid, "grant {id}: {grant:?}");
            let found = found
                .map(|(id, grant)| (id.0, grant.app.map(|app| app.0), grant.user, grant.scopes));
            let wanted = is_valid.then_some((*id, grant.app, grant.user.map(UserId), grant.scopes));
            assert_eq!(found, wanted, "grant {id}");
        }
    }

    fn check_key(&mut self) {
        let buckets: Vec<u64> = self.model.keys.buckets.keys().copied().collect();
        let bucket = *self.random.pick(&buckets);
        let keys = &self.model.keys.buckets[&bucket];
        let key = match keys.len() {
            0 => b"k1".to_vec(),
            len => keys.keys().nth(self.random.index(len)).cloned().unwrap_or_default(),
        };
        self.check_key_of(BucketId(bucket), &key);
    }

    fn check_key_of(&self, bucket: BucketId, key: &[u8]) {
        let keys = self.node().node().keys();
        let expected = self.model.keys.live(bucket, key, keys.now_ms());
        let known = keys.try_row(bucket, key);
        let found = keys.row(bucket, key);
        let found = found.as_ref().map(kv::KeyRow::parts).map(|row| ModelKey {
            value: row.value.to_vec(),
            expires_ms: row.expires_ms,
            version: row.version.0,
        });
        let name = key.escape_ascii();
        assert_eq!(found.as_ref(), expected, "key {name} of {}", bucket.0);
        let agrees = match known {
            Found::Row(row) => expected.is_some_and(|key| key.version == row.version().0),
            Found::Absent => expected.is_none(),
            Found::Unknown => true,
        };
        assert!(agrees, "key {name} of {} in memory", bucket.0);
    }

    fn check_totals(&self) {
        let (found, feed) = (self.node().node().facts().totals(), &self.model.feed);
        let last = found.last_stamp.map_or(0, |stamp| stamp.0);
        assert_eq!(last, self.model.last, "the last stamp");
        let found = (found.users as usize, found.posts as usize, found.follows as usize);
        assert_eq!(
            found,
            (feed.users.len(), feed.posts.len() + self.orphans().len(), feed.follows.len()),
            "totals"
        );
        let totals = self.node().node().facts().totals();
        if feed.erasing.is_empty() {
            let found = (totals.blocks as usize, totals.mutes as usize);
            assert_eq!(found, (feed.blocks.len(), feed.mutes.len()), "blocks and mutes");
        }
        let samples = feed.samples.len();
        let mut count = 0;
        self.node().node().facts().each_sample(|_, _| count += 1);
        assert_eq!(count, samples, "number of samples");
        for set in 0..20 {
            let name = format!("set{set}");
            let expected = feed.samples.values().filter(|(of, _)| *of == name).count();
            let Ok(name) = feed::SetName::parse(&name) else { unreachable!("a valid name") };
            if let Ok(found) = self.node().node().samples(&name) {
                assert_eq!(found.map_or(0, |set| set.len()), expected, "samples of set {set}");
            }
        }
    }

    fn check_buckets(&self) {
        let node = self.node().node();
        let listed = node.buckets_after(None, 1_000);
        let listed = listed.iter().map(|(name, id)| (name.as_str(), id.0));
        assert!(listed.eq(self.model.keys.names.iter().map(|(name, id)| (name.as_str(), *id))));
        for (name, id) in &self.model.keys.names {
            let Some(name) = BucketName::parse(name) else { unreachable!("the model has names") };
            assert_eq!(node.bucket_named(&name), Some(BucketId(*id)));
        }
        for (bucket, expected) in &self.model.keys.buckets {
            let (keys, mut next, mut found) = (node.keys(), Some(0), Vec::new());
            while let Some(cursor) = next {
                let (rows, after) = keys.walk(BucketId(*bucket), cursor, 64);
                found.extend(rows.iter().map(|row| (row.key().to_vec(), row.version().0)));
                next = after;
            }
            found.sort_unstable();
            let live = expected.iter().filter(|(_, key)| key.is_live(keys.now_ms()));
            let live: Vec<(Vec<u8>, u64)> =
                live.map(|(name, key)| (name.clone(), key.version)).collect();
            assert_eq!(found, live, "keys of bucket {bucket}");
        }
    }

    /// Checks that memory stays within its budgets.
    fn check_budgets(&self) {
        let (sizes, options) = (self.node().node().sizes(), &self.options);
        let within = |what: &str, bytes: u64, budget: usize| {
            assert!(bytes <= budget as u64 + ONE_ITEM, "{what} take {bytes} of {budget} bytes");
        };
        within("keys", sizes.resident_bytes, options.bucket_memory);
        within("timelines", sizes.views.timeline_bytes, options.timeline_memory);
        let rendered = options.post_memory + options.entity_memory;
        within("rendered posts", sizes.views.rendered_bytes, rendered);
        within("newest posts", sizes.views.recent_bytes, options.post_memory);
        within("commands", sizes.queued_commands, options.queue_commands_max);
    }
}
