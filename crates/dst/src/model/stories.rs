//! Expected stories.

use std::collections::BTreeMap;

use feed::{Done, Lifetime, Outcome, PostText, Refusal, StoryId, UserRef};

use super::feed::Feed;
use super::ms_of;

/// Story that its author has not deleted.
#[derive(Clone, Debug)]
pub(crate) struct ModelStory {
    pub(crate) author: u32,
    pub(crate) text: String,
    pub(crate) expires_ms: u64,
    /// Users who viewed the story, with the time of the first view in milliseconds since 1970.
    pub(crate) viewers: BTreeMap<u32, u64>,
}

impl Feed {
    pub(super) fn post_story(
        &mut self,
        stamp: u64,
        author: &UserRef,
        text: &PostText,
        life: Lifetime,
    ) -> Outcome {
        let author = self.resolve(author)?;
        let expires_ms = ms_of(stamp) + life.ms();
        let (text, viewers) = (text.as_str().to_owned(), BTreeMap::new());
        self.stories.insert(stamp, ModelStory { author, text, expires_ms, viewers });
        Ok(Done::StoryPosted { story: StoryId(stamp), expires_ms })
    }

    pub(super) fn delete_story(&mut self, stamp: u64, story: StoryId) -> Outcome {
        self.live_story(stamp, story)?;
        self.stories.remove(&story.0);
        Ok(Done::StoryDeleted)
    }

    pub(super) fn live_story(&self, stamp: u64, id: StoryId) -> Result<&ModelStory, Refusal> {
        let story = self.stories.get(&id.0).filter(|story| ms_of(stamp) < story.expires_ms);
        story.ok_or(Refusal::StoryNotFound)
    }

    pub(super) fn view(&mut self, stamp: u64, id: StoryId, viewer: &UserRef) -> Outcome {
        let viewer = self.resolve(viewer)?;
        let author = self.live_story(stamp, id)?.author;
        if viewer != author {
            if !self.friends.contains(&(author, viewer)) {
                return Err(Refusal::StoryNotFound);
            }
            let story = self.stories.get_mut(&id.0).ok_or(Refusal::StoryNotFound)?;
            story.viewers.entry(viewer).or_insert(ms_of(stamp));
        }
        Ok(Done::StoryViewed)
    }

    /// Live stories of all unmuted friends of `user`, newest first.
    pub(crate) fn stories_home(&self, user: u32, now_ms: u64) -> Vec<(u64, &ModelStory)> {
        let shown = |story: &ModelStory| {
            let pair = (user, story.author);
            now_ms < story.expires_ms
                && self.friends.contains(&pair)
                && !self.unwanted(user, story.author)
        };
        let newest_first = self.stories.iter().rev().filter(|(_, story)| shown(story));
        newest_first.map(|(id, story)| (*id, story)).collect()
    }
}
