//! Continuation of a history on a running server: users post about their interests, and favourite what they like.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde::Deserialize;

use super::history::{DRAWS, NEWEST, Post, Reaction, post};
use super::world::World;
use crate::api::LoadError;
use crate::client::{Client, Requests, Target};

/// Time between two actions: a user posts, or looks for a post and may favourite it.
const INTERVAL: Duration = Duration::from_millis(100);
/// Share of the actions that are posts.
const POSTS: f64 = 0.1;

/// A post that users may find.
pub(super) struct Known {
    pub(super) id: u64,
    pub(super) post: Post,
}

#[derive(Deserialize)]
struct Posted {
    id: String,
}

/// Lets the users of a world post and favourite posts, on a server with the world's history. Ends only with an error.
///
/// # Errors
/// If the server cannot be reached.
pub async fn continue_history(world: &World, target: &Target) -> Result<Infallible, LoadError> {
    let (mut client, requests) =
        (Client::new(target.clone()), Requests::new(target.authority(), None));
    let mut rng = StdRng::seed_from_u64(world.seed ^ 0x00c0_47e5);
    let mut known = newest(world);
    let mut request = Vec::new();
    loop {
        tokio::time::sleep(INTERVAL).await;
        let user = rng.random_range(0..world.population.people());
        if rng.random::<f64>() < POSTS {
            let post = Post { is_tagged: true, ..post(user, 0, &world.tastes, &mut rng) };
            let body = format!(r#"{{"text":"{}"}}"#, post.text(&mut rng));
            requests.post(&format!("/v1/users/{user}/posts"), body.as_bytes(), &mut request);
            let answer = client.send(&request).await?;
            let posted = serde_json::from_slice::<Posted>(answer.body).ok();
            // Other clients may change and delete users and posts, so a refusal is no error.
            if let Some(id) = posted.and_then(|it| it.id.parse().ok()) {
                known.push_back(Known { id, post });
                if known.len() > NEWEST {
                    known.pop_front();
                }
            }
        } else if let Some(id) = liked(world, user, &mut known, &mut rng) {
            requests.put(&format!("/v1/users/{user}/favourites/{id}"), b"", &mut request);
            client.send(&request).await?;
        }
    }
}

/// The newest posts of the history, oldest first.
pub(super) fn newest(world: &World) -> VecDeque<Known> {
    let posts = (0..).zip(&world.history.posts);
    let skipped = world.history.posts.len().saturating_sub(NEWEST);
    posts
        .skip(skipped)
        .map(|(number, post)| Known { id: world.id(number), post: post.clone() })
        .collect()
}

/// Finds a post about a topic of the user, the one with the most favourites of a few. Returns its id if the user likes
/// it and has not favourited it yet.
pub(super) fn liked(
    world: &World,
    user: u32,
    known: &mut VecDeque<Known>,
    rng: &mut StdRng,
) -> Option<u64> {
    let topic = world.tastes.draw(user, rng);
    let mut about: Vec<&mut Known> =
        known.iter_mut().filter(|it| it.post.topic == topic && it.post.author != user).collect();
    let draws = (0..DRAWS.min(about.len())).map(|_| rng.random_range(0..about.len() as u64));
    let reactions = |place: &u64| about.get(*place as usize).map(|it| it.post.reactions.len());
    let best = draws.max_by_key(reactions)?;
    let Known { id, post } = about.get_mut(best as usize)?;
    let likes = rng.random::<f64>() < world.tastes.chance(user, topic, post.quality);
    if !likes || post.reactions.iter().any(|other| other.user == user) {
        return None;
    }
    post.reactions.push(Reaction { user, at_ms: 0, is_boost: false });
    Some(*id)
}
