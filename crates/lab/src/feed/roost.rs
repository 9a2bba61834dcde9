//! The design `roost`: roost's engine in this process. A post is a change in the log. Recently read timelines are
//! cached, and a read adds the newer posts, so a post is in every timeline as soon as it is accepted.
//!
//! The log is not synced (policy `never`), because the other designs store nothing. The engine has its own threads in
//! addition to the worker threads of the runtime.

use std::collections::HashMap;
use std::sync::Arc;

use feed::{Command, Done, Page, PostId, PostText, Request, UserId, UserRef};
use parking_lot::Mutex;

use crate::engine::{Engine, register, valid};
use crate::feed::network::Network;
use crate::feed::timeline::text;
use crate::feed::{Client, Delivery, Design, PAGE};

const NEWEST: Page = Page::newest(PAGE);

/// The engine, and a map from the engine's post ids to the numbers of posts.
pub(super) struct Roost {
    engine: Arc<Engine>,
    numbers: Arc<Mutex<HashMap<PostId, u64>>>,
}

impl Design for Roost {
    type Client = RoostClient;

    async fn start(network: &Network) -> Self {
        let engine = Arc::new(Engine::open());
        let mut requests: Vec<Request> = (0..network.users()).map(register).collect();
        for user in 0..network.users() {
            let other = || UserRef::Id(UserId(user));
            requests.extend(network.followers(user).iter().map(|follower| {
                let user = UserRef::Id(UserId(*follower));
                Request::from(Command::Follow { user, other: other() })
            }));
        }
        engine.load(&requests).await;
        Self { engine, numbers: Arc::default() }
    }

    fn connect(&self) -> RoostClient {
        let (engine, numbers) = (Arc::clone(&self.engine), Arc::clone(&self.numbers));
        RoostClient { engine, numbers, out: Vec::new() }
    }

    fn number(&self, post: u64) -> u64 {
        self.numbers.lock().get(&PostId(post)).copied().unwrap_or(u64::MAX)
    }
}

fn new_post(author: u32, number: u64) -> Request {
    let (author, text) = (UserRef::Id(UserId(author)), valid(PostText::parse(&text(number))));
    Command::post(author, text).into()
}

/// Client with a buffer for rendered pages.
pub(super) struct RoostClient {
    engine: Arc<Engine>,
    numbers: Arc<Mutex<HashMap<PostId, u64>>>,
    out: Vec<u8>,
}

impl Client for RoostClient {
    async fn post(&mut self, author: u32, number: u64) -> Delivery {
        let reply = self.engine.node().submit(new_post(author, number)).await;
        let Ok(Ok(Done::Posted(post))) = reply.map(|reply| reply.outcome) else {
            unreachable!("the post is valid, and its author exists")
        };
        self.numbers.lock().insert(post, number);
        Delivery::begin().1
    }

    async fn post_all(&mut self, posts: &[(u32, u64)]) -> Vec<Delivery> {
        let requests = posts.iter().map(|(author, number)| new_post(*author, *number));
        let done = self.engine.load(&requests.collect::<Vec<_>>()).await;
        let mut numbers = self.numbers.lock();
        for ((_, number), done) in posts.iter().zip(done) {
            let Done::Posted(post) = done else { unreachable!("every request is a post") };
            numbers.insert(post, *number);
        }
        Vec::new()
    }

    async fn timeline(&mut self, user: u32, page: &mut Vec<u64>) {
        let (node, user) = (self.engine.node(), UserId(user));
        let found =
            node.try_home_ids(user, &NEWEST).unwrap_or_else(|| node.home_ids(user, &NEWEST));
        self.out.clear();
        for post in found.items {
            // Render the page as the server does.
            if !node.try_post(post, &mut self.out) {
                node.post(post, &mut self.out);
            }
            page.push(post.0);
        }
    }

    async fn profile(&mut self, user: u32, page: &mut Vec<u64>) {
        self.out.clear();
        let node = self.engine.node();
        let ends = node.posts_by(&node.viewer(None), UserId(user), &NEWEST, &mut self.out);
        page.extend([ends.first, ends.last].into_iter().flatten());
    }

    async fn everything(&mut self, user: u32) -> Vec<u64> {
        let (mut all, mut page) = (Vec::new(), NEWEST);
        loop {
            let found = self.engine.node().home_ids(UserId(user), &page);
            all.extend(found.items.iter().map(|post| post.0));
            let Some(next) = found.next else { return all };
            page.below = Some(next);
        }
    }

    /// Reads each timeline once, to check that it has the post. There is no need to wait: roost's timelines contain a
    /// post as soon as it is accepted.
    async fn delivered(&mut self, _: Delivery, followers: &[u32]) {
        let newest = Page { limit: 1, ..NEWEST };
        let node = self.engine.node();
        for follower in followers {
            let user = UserId(*follower);
            let page = node.try_home_ids(user, &newest);
            let page = page.unwrap_or_else(|| node.home_ids(user, &newest));
            assert!(
                !page.items.is_empty(),
                "an accepted post is in the timelines of all followers"
            );
        }
    }
}
