//! Everything the server shows against everything the workers know.

use std::collections::HashSet;
use std::thread;

use rand::rngs::StdRng;
use rand::seq::IteratorRandom as _;
use serde_json::Value;

use super::worker::Worker;
use crate::support::http::{Client, number};
use crate::support::process::Server;
use crate::support::world::{Post, World, ids};

/// Readers that are enough after a restart.
const READERS: usize = 16;
/// Connections that read at the same time.
const CONNECTIONS: usize = 3;

/// Whose home timelines and mentions are compared.
pub(super) enum Readers<'a> {
    /// Those of [`READERS`] people.
    Some(&'a mut StdRng),
    /// Everybody's; and what was deleted is looked for.
    All,
}

/// Compares profiles, follows in both directions, posts, home timelines and mentions.
pub(super) fn check_everything(server: &Server, workers: &[Worker], readers: Readers<'_>) {
    let mut world = World::default();
    for worker in workers {
        world.0.extend(worker.people.clone());
    }
    check_ids_and_texts(&world, workers);
    check_profiles(&mut server.client(), &world);
    let people: Vec<u32> = world.0.keys().copied().collect();
    let everybody = matches!(readers, Readers::All);
    let readers: HashSet<u32> = match readers {
        Readers::Some(rng) => people.iter().copied().sample(rng, READERS).into_iter().collect(),
        Readers::All => people.iter().copied().collect(),
    };
    thread::scope(|scope| {
        for part in people.chunks(people.len().div_ceil(CONNECTIONS).max(1)) {
            let (world, readers, mut client) = (&world, &readers, server.client());
            scope.spawn(move || {
                for user in part {
                    check_person(&mut client, world, *user);
                    if readers.contains(user) {
                        world.check_home(&mut client, *user, 100);
                        world.check_mentions(&mut client, *user, 50);
                    }
                }
            });
        }
    });
    if everybody {
        check_deleted(&mut server.client(), &world, workers);
    }
}

/// No id stands for two posts, and no text stands twice.
fn check_ids_and_texts(world: &World, workers: &[Worker]) {
    let mut given = HashSet::new();
    let all = workers.iter().flat_map(|worker| &worker.published);
    assert!(all.copied().all(|id| given.insert(id)), "an id was given out twice");
    let mut texts = HashSet::new();
    let posts = world.0.values().flat_map(|person| &person.posts);
    assert!(posts.into_iter().all(|post| texts.insert(&post.text)), "a post is there twice");
}

/// Everybody is registered, nobody else is, and what profiles count is right.
fn check_profiles(client: &mut Client, world: &World) {
    let shown: Vec<_> = client.all("/v1/users?limit=100").iter().map(profile).collect();
    let expected = world.0.iter().map(|(id, person)| {
        let followers = world.followers(*id).len();
        let counts = [person.posts.len(), followers, person.following.len()].map(|n| n as u64);
        (u64::from(*id), person.handle.clone(), counts)
    });
    assert_eq!(shown, expected.collect::<Vec<_>>());
    let numbers = world.0.keys().copied();
    assert!(numbers.eq(0..world.0.len() as u32), "numbers are given out without gaps");
}

fn profile(user: &Value) -> (u64, String, [u64; 3]) {
    let counts = ["posts", "followers", "following"].map(|name| user[name].as_u64().unwrap());
    (number(&user["id"]), user["handle"].as_str().unwrap().to_owned(), counts)
}

/// A person's posts in the order of their acknowledgement, and their follows in both directions.
fn check_person(client: &mut Client, world: &World, user: u32) {
    let person = &world.0[&user];
    let shown = client.all(&format!("/v1/users/{user}/posts?limit=100"));
    let mut shown: Vec<Post> = shown.iter().map(|post| Post::read(post).1).collect();
    shown.reverse();
    assert_eq!(shown, person.posts, "the posts of {user}");
    let following = ids(client, &format!("/v1/users/{user}/following?limit=100"));
    let expected = person.following.iter().copied().map(u64::from);
    assert_eq!(following, expected.collect::<Vec<_>>(), "whom {user} follows");
    let followers = ids(client, &format!("/v1/users/{user}/followers?limit=100"));
    let expected = world.followers(user).into_iter().map(u64::from);
    assert_eq!(followers, expected.collect::<Vec<_>>(), "who follows {user}");
}

/// What was deleted is gone.
fn check_deleted(client: &mut Client, world: &World, workers: &[Worker]) {
    let standing: HashSet<u64> =
        world.0.values().flat_map(|person| &person.posts).map(|post| post.id).collect();
    for id in workers.iter().flat_map(|worker| &worker.published) {
        if !standing.contains(id) {
            client.get(&format!("/v1/posts/{id}")).expect(404);
        }
    }
}
