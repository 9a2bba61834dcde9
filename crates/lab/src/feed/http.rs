//! The design `roost-http`: roost's engine as a server in its own process, with clients over HTTP.
//!
//! A client has one connection. It reads a page as JSON, and takes the number of each post from the text of the post.

use crate::feed::network::Network;
use crate::feed::timeline::text;
use crate::feed::{Client, Delivery, Design, PAGE};
use crate::server::{HttpClient, Server, register};

/// Maximum number of follows per operation.
const FOLLOWS_AT_ONCE: usize = 500;
/// Maximum number of posts per page.
const PAGE_MAX: usize = 100;

/// The server.
pub(super) struct Http(Server);

impl Design for Http {
    type Client = HttpClient;

    async fn start(network: &Network) -> Self {
        let server = Server::start().await;
        let mut lines: Vec<String> = register(network.users()).collect();
        for (user, sources) in network.sources().into_iter().enumerate() {
            let others: Vec<String> = sources
                .into_iter()
                .filter(|other| *other as usize != user)
                .map(|other| format!("\"{other}\""))
                .collect();
            lines.extend(others.chunks(FOLLOWS_AT_ONCE).map(|others| {
                let others = others.join(",");
                format!(r#"{{"op":"follow","user":"{user}","others":[{others}]}}"#)
            }));
        }
        server.connect().batch(&lines).await;
        Self(server)
    }

    fn connect(&self) -> HttpClient {
        self.0.connect()
    }
}

impl Client for HttpClient {
    async fn post(&mut self, author: u32, number: u64) -> Delivery {
        let json = format!(r#"{{"text":"{}"}}"#, text(number));
        HttpClient::post(self, &format!("/v1/users/{author}/posts"), &json).await;
        Delivery::begin().1
    }

    async fn post_all(&mut self, posts: &[(u32, u64)]) -> Vec<Delivery> {
        let line = |(author, number): &(u32, u64)| {
            format!(r#"{{"op":"post","user":"{author}","text":"{}"}}"#, text(*number))
        };
        self.batch(&posts.iter().map(line).collect::<Vec<_>>()).await;
        Vec::new()
    }

    async fn timeline(&mut self, user: u32, page: &mut Vec<u64>) {
        self.page(&format!("/v1/users/{user}/timeline?limit={PAGE}"), page).await;
    }

    async fn profile(&mut self, user: u32, page: &mut Vec<u64>) {
        let mut posts = Vec::with_capacity(PAGE);
        self.page(&format!("/v1/users/{user}/posts?limit={PAGE}"), &mut posts).await;
        page.extend([posts.first(), posts.last()].into_iter().flatten());
    }

    async fn everything(&mut self, user: u32) -> Vec<u64> {
        let mut all = Vec::new();
        self.pages(format!("/v1/users/{user}/timeline?limit={PAGE_MAX}"), &mut all).await;
        all
    }

    /// Reads each timeline once, to check that it has the post. There is no need to wait: roost's timelines contain a
    /// post as soon as it is accepted.
    async fn delivered(&mut self, _: Delivery, followers: &[u32]) {
        let mut newest = Vec::new();
        for follower in followers {
            newest.clear();
            self.page(&format!("/v1/users/{follower}/timeline?limit=1"), &mut newest).await;
            assert!(!newest.is_empty(), "an accepted post is in the timelines of all followers");
        }
    }
}
