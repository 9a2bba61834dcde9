//! Comparison of everything that the server returns with the ledgers of the workers.

use std::collections::HashSet;
use std::thread;

use rand::rngs::StdRng;
use rand::seq::IteratorRandom as _;
use serde_json::Value;

use super::worker::Worker;
use crate::support::http::{Client, number};
use crate::support::process::Server;
use crate::support::world::{Form, Post, World, ids};

/// Number of readers to check after a restart.
const READERS: usize = 16;
/// Number of connections that read at the same time.
const CONNECTIONS: usize = 3;

/// The users whose home timelines, story homes and mentions are compared.
pub(crate) enum Readers<'a> {
    /// [`READERS`] random users.
    Some(&'a mut StdRng),
    /// All users. Deleted posts and stories are also checked.
    All,
}

/// Compares profiles, follows in both directions, friends, posts, stories, both kinds of homes,
/// mentions, samples and keys.
pub(super) fn check_everything(server: &Server, workers: &[Worker], readers: Readers<'_>) {
    let mut world = World::default();
    for worker in workers {
        world.0.extend(worker.accounts.clone());
    }
    check_ids_and_texts(&world, workers);
    check_profiles(&mut server.client(), &world);
    let accounts: Vec<u32> = world.0.keys().copied().collect();
    let all_users = matches!(readers, Readers::All);
    let readers: HashSet<u32> = match readers {
        Readers::Some(rng) => accounts.iter().copied().sample(rng, READERS).into_iter().collect(),
        Readers::All => accounts.iter().copied().collect(),
    };
    thread::scope(|scope| {
        for part in accounts.chunks(accounts.len().div_ceil(CONNECTIONS).max(1)) {
            let (world, readers, mut client) = (&world, &readers, server.client());
            scope.spawn(move || {
                for user in part {
                    check_user(&mut client, world, *user);
                    if readers.contains(user) {
                        world.check_home(&mut client, *user, 100);
                        world.check_mentions(&mut client, *user, 50);
                        world.check_stories_home(&mut client, *user, 100);
                    }
                }
            });
        }
    });
    workers.iter().for_each(|worker| {
        worker.taught.check(&mut server.client());
        worker.kept.check(&mut server.client());
    });
    if all_users {
        check_deleted(&mut server.client(), &world, workers);
    }
}

/// Checks that no two posts or stories have the same id or text.
fn check_ids_and_texts(world: &World, workers: &[Worker]) {
    let mut given = HashSet::new();
    let all = workers.iter().flat_map(|worker| worker.published.keys());
    assert!(all.copied().all(|id| given.insert(id)), "an id was given out twice");
    let mut texts = HashSet::new();
    let written = world.0.values().flat_map(|account| account.posts.iter().chain(&account.stories));
    assert!(written.into_iter().all(|post| texts.insert(&post.text)), "a text occurs twice");
}

/// Checks that exactly the expected users exist, and that their profiles have the right counts.
fn check_profiles(client: &mut Client, world: &World) {
    let shown: Vec<_> = client.all("/v1/users?limit=100").iter().map(profile).collect();
    let expected = world.0.iter().map(|(id, account)| {
        let (followers, friends) = (world.followers(*id).len(), world.friends(*id).len());
        let counts = [account.posts.len(), followers, account.following.len(), friends];
        (u64::from(*id), account.handle.clone(), counts.map(|n| n as u64))
    });
    assert_eq!(shown, expected.collect::<Vec<_>>());
    let numbers = world.0.keys().copied();
    assert!(numbers.eq(0..world.0.len() as u32), "numbers are given out without gaps");
}

fn profile(user: &Value) -> (u64, String, [u64; 4]) {
    let counts = ["post_count", "follower_count", "following_count", "friend_count"]
        .map(|name| user[name].as_u64().unwrap());
    (number(&user["id"]), user["handle"].as_str().unwrap().to_owned(), counts)
}

/// Checks a user's posts and stories, in the order of their acknowledgement, and the user's friends and follows in both
/// directions.
fn check_user(client: &mut Client, world: &World, user: u32) {
    let account = &world.0[&user];
    for form in [Form::Post, Form::Story] {
        let shown = client.all(&format!("/v1/users/{user}/{}?limit=100", form.noun()));
        let mut shown: Vec<Post> = shown.iter().map(|post| Post::read(post).1).collect();
        shown.reverse();
        assert_eq!(shown, *account.written(form), "the {} of {user}", form.noun());
    }
    let mut check = |noun: &str, expected: Vec<u32>| {
        let shown = ids(client, &format!("/v1/users/{user}/{noun}?limit=100"));
        let expected = expected.into_iter().map(u64::from);
        assert_eq!(shown, expected.collect::<Vec<_>>(), "the {noun} of {user}");
    };
    check("following", account.following.iter().copied().collect());
    check("followers", world.followers(user));
    check("friends", world.friends(user).into_iter().collect());
}

/// Checks that deleted posts and stories cannot be read.
fn check_deleted(client: &mut Client, world: &World, workers: &[Worker]) {
    let written = world.0.values().flat_map(|account| account.posts.iter().chain(&account.stories));
    let live: HashSet<u64> = written.map(|post| post.id).collect();
    for (id, form) in workers.iter().flat_map(|worker| &worker.published) {
        if !live.contains(id) {
            client.get(&format!("/v1/{}/{id}", form.noun())).expect(404);
        }
    }
}
