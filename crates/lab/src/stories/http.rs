//! The design `roost-http`: roost's engine as a server in its own process, with clients over HTTP.
//!
//! A client has one connection. It needs several requests for a home page of more than 100 stories.

use crate::server::{HttpClient, Server, register};
use crate::stories::{Client, Design, Friends};

/// The server.
pub(super) struct Http(Server);

impl Design for Http {
    type Client = HttpClient;

    async fn start(friends: &Friends) -> Self {
        let server = Server::start().await;
        let mut lines: Vec<String> = register(friends.users).collect();
        for user in 0..friends.users {
            lines.extend(friends.of(user).filter(|friend| *friend > user).map(|friend| {
                format!(r#"{{"op":"befriend","user":"{user}","other":"{friend}"}}"#)
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
    async fn post(&mut self, author: u32, number: u64, life_s: u32) {
        let json = format!(r#"{{"text":"story {number}","ttl_s":{life_s}}}"#);
        HttpClient::post(self, &format!("/v1/users/{author}/stories"), &json).await;
    }

    async fn post_all(&mut self, author: u32, numbers: &[u64], life_s: u32) {
        let line = |number: &u64| {
            format!(
                r#"{{"op":"post_story","user":"{author}","text":"story {number}","ttl_s":{life_s}}}"#
            )
        };
        self.batch(&numbers.iter().map(line).collect::<Vec<_>>()).await;
    }

    async fn home(&mut self, user: u32, page: &mut Vec<u64>) {
        self.pages(format!("/v1/users/{user}/timeline/stories?limit=100"), page).await;
    }
}
