//! The design `roost`: roost's engine in this process. A story is a change in the log, and the newest stories of each
//! author are cached.
//!
//! The log is not synced (policy `never`), because the other designs store nothing. The engine has its own threads in
//! addition to the worker threads of the runtime.

use std::collections::HashMap;
use std::sync::Arc;

use feed::{Command, Done, Lifetime, PostText, Request, StoryId, UserId, UserRef};
use parking_lot::Mutex;

use crate::engine::{Engine, register, valid};
use crate::stories::{Client, Design, Friends};

/// Page size, greater than any home page.
const PAGE_MAX: usize = 1 << 20;

/// The engine, and a map from the engine's story ids to the numbers of stories.
#[derive(Clone)]
pub(super) struct Roost {
    engine: Arc<Engine>,
    numbers: Arc<Mutex<HashMap<StoryId, u64>>>,
}

impl Design for Roost {
    type Client = RoostClient;

    async fn start(friends: &Friends) -> Self {
        let engine = Arc::new(Engine::open());
        let mut requests: Vec<Request> = (0..friends.users).map(register).collect();
        for user in 0..friends.users {
            requests.extend(friends.of(user).filter(|friend| *friend > user).map(|friend| {
                let [user, other] = [user, friend].map(|user| UserRef::Id(UserId(user)));
                Request::from(Command::Befriend { user, other })
            }));
        }
        engine.load(&requests).await;
        Self { engine, numbers: Arc::default() }
    }

    fn connect(&self) -> RoostClient {
        RoostClient { roost: self.clone(), out: Vec::new() }
    }

    fn number(&self, story: u64) -> u64 {
        self.numbers.lock().get(&StoryId(story)).copied().unwrap_or(u64::MAX)
    }
}

fn new_story(author: u32, number: u64, life_s: u32) -> Request {
    let text = valid(PostText::parse(&format!("story {number}")));
    let (author, life) = (UserRef::Id(UserId(author)), valid(Lifetime::from_secs(life_s.into())));
    Command::PostStory { author, text, life }.into()
}

/// Client with a buffer for rendered pages.
pub(super) struct RoostClient {
    roost: Roost,
    out: Vec<u8>,
}

impl Client for RoostClient {
    async fn post(&mut self, author: u32, number: u64, life_s: u32) {
        let reply = self.roost.engine.node().submit(new_story(author, number, life_s)).await;
        let Ok(Ok(Done::StoryPosted { story, .. })) = reply.map(|reply| reply.outcome) else {
            unreachable!("the story is valid, and its author exists")
        };
        self.roost.numbers.lock().insert(story, number);
    }

    async fn post_all(&mut self, author: u32, numbers: &[u64], life_s: u32) {
        let requests = numbers.iter().map(|number| new_story(author, *number, life_s));
        let done = self.roost.engine.load(&requests.collect::<Vec<_>>()).await;
        let mut known = self.roost.numbers.lock();
        for (number, done) in numbers.iter().zip(done) {
            let Done::StoryPosted { story, .. } = done else {
                unreachable!("every request is a story")
            };
            known.insert(story, *number);
        }
    }

    async fn home(&mut self, user: u32, page: &mut Vec<u64>) {
        let (node, user) = (self.roost.engine.node(), UserId(user));
        let found = node.try_stories_of_friends(user, PAGE_MAX);
        self.out.clear();
        for story in found.unwrap_or_else(|| node.stories_of_friends(user, PAGE_MAX)) {
            // Render the page as the server does.
            if !node.try_story(story, user, &mut self.out) {
                node.story(story.story, Some(user), &mut self.out);
            }
            page.push(story.story.0);
        }
    }
}
