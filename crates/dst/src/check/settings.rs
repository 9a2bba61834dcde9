//! Comparison with the model: settings of users, and data that apps store for users.

use feed::{MarkedTimeline, Note, User, UserId};

use crate::model::{ModelSettings, texts};
use crate::run::Run;

impl Run {
    /// Compares the stored feeds.
    pub(super) fn check_feeds(&self) {
        let facts = self.node().node().facts();
        let names = facts.stored_feeds();
        let found = names.iter().filter_map(|name| Some((name, facts.stored_feed(name)?)));
        let found: Vec<_> = found
            .map(|(name, feed)| (name.as_str().to_owned(), feed.as_str().to_owned()))
            .collect();
        let wanted: Vec<_> = self.model.feed.stored_feeds.clone().into_iter().collect();
        assert_eq!(found, wanted, "stored feeds");
    }

    pub(super) fn check_settings(&self, user: u32, found: &User) {
        let expected = &self.model.feed;
        let settings = ModelSettings {
            fields: texts(&found.fields),
            bot: found.bot,
            undiscoverable: found.undiscoverable,
            indexable: found.indexable,
            visibility: found.defaults.visibility,
            sensitive: found.defaults.sensitive,
            locked: self.node().node().facts().is_locked(UserId(user)),
            quote_policy: found.defaults.quote_policy,
            language: found.defaults.language.as_ref().map(|code| code.as_str().to_owned()),
        };
        assert_eq!(settings, expected.users[user as usize].settings, "settings of {user}");
        let markers = self.node().node().facts().markers(UserId(user));
        for timeline in MarkedTimeline::ALL {
            let found = markers.of(timeline);
            let found = found.map(|marker| (marker.last_read, marker.version, marker.updated.0));
            let wanted = expected.markers.get(&(user, timeline)).copied();
            assert_eq!(found, wanted, "marker of {user} in {timeline:?}");
        }
        let featured = self.node().node().facts().featured_tags(UserId(user)).into_iter();
        let featured = featured.map(|found| (found.tag.as_str().to_owned(), found.since.0));
        let wanted = expected.featured_tags.iter().filter(|((one, _), _)| *one == user);
        let wanted = wanted.map(|((_, tag), since)| (tag.clone(), *since));
        assert!(featured.eq(wanted), "hashtags on the profile of {user}");
        let followed = self.node().node().facts().followed_tags(UserId(user)).into_iter();
        let followed = followed.map(|found| (found.tag.as_str().to_owned(), found.since.0));
        let wanted = expected.followed_tags_of(user);
        let wanted = wanted.map(|(tag, since)| (tag.to_owned(), since));
        assert!(followed.eq(wanted), "hashtags that {user} follows");
        for (other, _) in (0..).zip(&expected.users).filter(|(_, other)| !other.deleted) {
            let asks = self.node().node().facts().requests(UserId(user), UserId(other));
            let expects = expected.requests.contains(&(user, other));
            assert_eq!(asks, expects, "whether {user} asks to follow {other}");
            let rejects = self.node().node().facts().not_interested(UserId(user));
            let rejects = rejects.contains(&UserId(other));
            let expects = expected.not_interested.contains(&(user, other));
            assert_eq!(rejects, expects, "whether {user} is not interested in {other}");
            let found = self.node().node().facts().note(UserId(user), UserId(other));
            let found = found.as_ref().map(Note::as_str);
            let wanted = expected.notes.get(&(user, other)).map(String::as_str);
            assert_eq!(found, wanted, "note of {user} about {other}");
        }
    }
}
