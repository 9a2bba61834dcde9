//! Reading of feeds by the readers of a world.

use serde::Deserialize;

use super::world::World;
use super::{Figures, PAUSE, PLACES};
use crate::api::LoadError;
use crate::client::{Client, Requests, Response, Target};

/// Number of posts in a page.
const PAGE: usize = 100;

#[derive(Deserialize)]
struct Page {
    items: Vec<Item>,
    next: Option<String>,
}

#[derive(Deserialize)]
struct Item {
    post: Named,
}

#[derive(Deserialize)]
struct Named {
    id: String,
}

/// Lets the readers read each of the feeds with these names, and returns the figures of each, and those of the two
/// rankings that the simulator makes. The server must have the feed [`PAUSE`].
///
/// # Errors
/// If a request fails.
pub async fn read(
    world: &World,
    target: &Target,
    feeds: &[String],
) -> Result<Vec<(String, Figures)>, LoadError> {
    let mut server = Server::new(target);
    let mut figures = Vec::new();
    for feed in feeds {
        let mut shown = Vec::new();
        for (reader, user) in world.readers().iter().enumerate() {
            for _ in 0..2 {
                server.page(*user, PAUSE, None).await?;
            }
            shown.push(server.first(world, (reader, *user), feed).await?);
        }
        figures.push((feed.clone(), world.figures(&shown)));
    }
    figures.extend(world.bounds().map(|(name, found)| (name.to_owned(), found)));
    Ok(figures)
}

/// Reads a page, after which a server keeps its view of recent posts current and groups users.
///
/// # Errors
/// If the request fails.
pub async fn warm(world: &World, target: &Target) -> Result<(), LoadError> {
    let mut server = Server::new(target);
    let reader = world.readers().first().copied().unwrap_or_default();
    server.page(reader, PAUSE, None).await.map(|_| ())
}

/// Sends the reactions of the last twelve hours to the server.
///
/// # Errors
/// If a request fails.
pub async fn react(world: &World, target: &Target) -> Result<(), LoadError> {
    let mut server = Server::new(target);
    let mut request = Vec::new();
    for (user, post, is_boost) in world.live() {
        for kind in ["favourites", "boosts"].into_iter().take(1 + usize::from(is_boost)) {
            server.requests.put(&format!("/v1/users/{user}/{kind}/{post}"), b"", &mut request);
            let answer = server.client.send(&request).await?;
            if !answer.is_success() {
                return Err(refused(&answer));
            }
        }
    }
    Ok(())
}

fn refused(answer: &Response<'_>) -> LoadError {
    let body = String::from_utf8_lossy(answer.body).chars().take(200).collect();
    LoadError::Refused { status: answer.status, body }
}

struct Server {
    client: Client<Target>,
    requests: Requests,
}

impl Server {
    fn new(target: &Target) -> Server {
        let requests = Requests::new(target.authority(), None);
        Server { client: Client::new(target.clone()), requests }
    }

    /// Reads the first candidates of a feed.
    async fn first(
        &mut self,
        world: &World,
        (reader, user): (usize, u32),
        feed: &str,
    ) -> Result<Vec<u32>, LoadError> {
        let mut shown = Vec::new();
        let mut cursor = None;
        loop {
            let page = self.page(user, feed, cursor.as_deref()).await?;
            let ids: Vec<u64> =
                page.items.iter().filter_map(|item| item.post.id.parse().ok()).collect();
            shown.extend(world.candidates_of(reader, &ids));
            cursor = page.next;
            if shown.len() >= PLACES || cursor.is_none() {
                shown.truncate(PLACES);
                return Ok(shown);
            }
        }
    }

    async fn page(
        &mut self,
        user: u32,
        feed: &str,
        cursor: Option<&str>,
    ) -> Result<Page, LoadError> {
        let mut path = format!("/v1/users/{user}/feeds/{feed}?limit={PAGE}");
        if let Some(cursor) = cursor {
            path.push_str("&cursor=");
            path.push_str(cursor);
        }
        let mut request = Vec::new();
        self.requests.get(&path, &mut request);
        let answer = self.client.send(&request).await?;
        let page = answer.is_success().then(|| serde_json::from_slice(answer.body).ok()).flatten();
        page.ok_or_else(|| refused(&answer))
    }
}
