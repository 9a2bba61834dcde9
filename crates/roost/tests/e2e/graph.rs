//! Tests with a graph of friendships. It is that of Reed College, if it is on this machine. Every user posts. Every
//! home timeline and every feed of mentions is compared with a reference, first gathered (fan-in), then cached
//! (fan-out).

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde_json::json;
use testkit::Random;

use crate::support::http::{Client, number};
use crate::support::process::{Server, run};
use crate::support::shared;
use crate::support::world::{Account, Post, World};

const USERS: usize = 962;
const FRIENDSHIPS: usize = 18_812;

#[test]
fn every_home_timeline_of_a_graph_is_what_a_naive_reader_finds() {
    let (data, made) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let graph = graph(made.path());
    let server = Server::open(data.path(), &["--durability", "never"]);
    load(&server, &graph);
    let mut client = server.client();
    let mut world = what_was_loaded(&mut client, &graph);

    post_from_everyone(&mut client, &mut world, "first");
    check_everybody(&server, &world);

    // From here on, all users are active, so their timelines are cached, not gathered.
    post_from_everyone(&mut client, &mut world, "second");
    change_minds(&mut client, &mut world);
    check_everybody(&server, &world);
    check_backwards(&mut client, &world);

    server.stop();
    let server = Server::open(data.path(), &[]);
    check_everybody(&server, &world);
}

/// Edge list: the real one, which may not be in the repository; or one generated in `folder` with as many users and
/// friendships, in which a few users have very many friends.
fn graph(folder: &Path) -> PathBuf {
    let real = shared().map(|shared| shared.join("data/reed98/edges.txt"));
    if let Some(real) = real.filter(|file| file.is_file()) {
        return real;
    }
    let note = b"a made graph is used: ROOST_SHARED names no folder with data/reed98/edges.txt\n";
    std::io::stderr().write_all(note).unwrap();
    let (mut random, users) = (Random::new(1), USERS as u64);
    // Every user has a friend.
    let mut friends: BTreeSet<(u64, u64)> = (1..users).map(|user| (user - 1, user)).collect();
    while friends.len() < FRIENDSHIPS {
        let (one, other) = (random.below(users), random.below(users) * random.below(users) / users);
        if one != other {
            friends.insert((one.min(other), one.max(other)));
        }
    }
    let lines: String = friends.iter().map(|(one, other)| format!("{one} {other}\n")).collect();
    let file = folder.join("edges.txt");
    std::fs::write(&file, lines).unwrap();
    file
}

/// Loads the graph with `roost simulate`, and then runs its heavy load for one second.
fn load(server: &Server, graph: &Path) {
    let target = format!("http://{}", server.address);
    let arguments = ["simulate", "--graph", graph.to_str().unwrap(), "--server", &target];
    let ended = run(arguments.into_iter().chain(["--duration", "1s", "--load", "heavy"]));
    // On a busy machine, the generator may be too slow for a measurement. The timelines can still be compared.
    assert!(ended.status.success() || ended.err.contains("inconclusive"), "{ended:#?}");
}

/// Reads the follows from the file, and the handles and posts from the server.
fn what_was_loaded(client: &mut Client, graph: &Path) -> World {
    let mut world = World::default();
    let users = client.all("/v1/users?limit=100");
    for user in &users {
        let handle = user["handle"].as_str().unwrap().to_owned();
        world.0.insert(number(&user["id"]) as u32, Account { handle, ..Account::default() });
    }
    let mut friendships = BTreeSet::new();
    for line in std::fs::read_to_string(graph).unwrap().lines() {
        let mut numbers = line.split_ascii_whitespace().map(|number| number.parse().unwrap());
        let (one, other): (u32, u32) = (numbers.next().unwrap(), numbers.next().unwrap());
        friendships.insert((one.min(other), one.max(other)));
        world.0.get_mut(&one).unwrap().following.insert(other);
        world.0.get_mut(&other).unwrap().following.insert(one);
    }
    assert_eq!((world.0.len(), friendships.len()), (USERS, FRIENDSHIPS));
    read_posts(client, &mut world);
    world
}

/// Adds the posts of all users. Their mentions and replies are parsed from their texts.
fn read_posts(client: &mut Client, world: &mut World) {
    let numbers: BTreeMap<String, u32> =
        world.0.iter().map(|(id, account)| (account.handle.clone(), *id)).collect();
    for (id, account) in &mut world.0 {
        let mut posts = client.all(&format!("/v1/users/{id}/posts?limit=100"));
        posts.reverse();
        for json in &posts {
            let (author, post) = Post::read(json);
            assert_eq!((author, &post), (*id, &addressed(post.id, &post.text, &numbers)));
            account.posts.push(post);
        }
    }
    let posts: usize = world.0.values().map(|account| account.posts.len()).sum();
    assert!(posts > 0, "one second of heavy load makes posts");
}

/// Parses a post. `@handle` is a mention; at the beginning of the text, it means a reply.
fn addressed(id: u64, text: &str, numbers: &BTreeMap<String, u32>) -> Post {
    let of_handle = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let words = text.split(|c| !of_handle(c) && c != '@');
    let mut mentions = Vec::new();
    for word in words.filter_map(|word| word.strip_prefix('@')) {
        mentions.extend(numbers.get(word).filter(|user| !mentions.contains(*user)).copied());
    }
    let reply_to = mentions.first().copied().filter(|_| text.starts_with('@'));
    Post { id, text: text.to_owned(), reply_to, mentions }
}

/// Makes three posts as every user: a text without a mention, a reply to a friend or another user, and a text that
/// contains a mention.
fn post_from_everyone(client: &mut Client, world: &mut World, round: &str) {
    let handles: BTreeMap<u32, String> =
        world.0.iter().map(|(id, account)| (*id, account.handle.clone())).collect();
    let numbers = handles.iter().map(|(id, handle)| (handle.clone(), *id)).collect();
    let (mut plain, mut drafts) = (Vec::new(), Vec::new());
    for (id, account) in &world.0 {
        let stranger = (id * 7 + 3) % USERS as u32;
        let friend = account.following.iter().nth(account.following.len() / 2);
        let other = if id % 3 == 0 { stranger } else { *friend.unwrap_or(&stranger) };
        let handle = &handles[&other];
        let within = format!("{round}: {id} thinks of @{handle}, not of @nobody_at_all");
        plain.push((*id, format!("{round}: a plain word from {id}"), None));
        drafts.push((*id, format!("@{handle} {round}: an answer from {id}"), Some(other)));
        drafts.push((*id, within, None));
    }
    // The replies refer to the plain posts.
    for drafts in [plain, drafts] {
        let post = |(user, text, other): &(u32, String, Option<u32>)| {
            let mut post = json!({"op": "post", "user": user, "text": text});
            if let Some(last) = other.and_then(|other| world.0[&other].posts.last()) {
                post["in_reply_to_id"] = json!(last.id);
            }
            post
        };
        let commands: Vec<_> = drafts.iter().map(post).collect();
        let published = client.batch(&commands);
        for ((author, text, _), id) in drafts.iter().zip(published) {
            let post = addressed(id.unwrap(), text, &numbers);
            world.0.get_mut(author).unwrap().posts.push(post);
        }
    }
}

/// Deletes a post of every seventh user. Makes every fifth user unfollow a user and follow another.
fn change_minds(client: &mut Client, world: &mut World) {
    let mut commands = Vec::new();
    for (id, account) in &mut world.0 {
        if id % 7 == 0 {
            let post = account.posts.remove(account.posts.len() / 2);
            commands.push(json!({"op": "delete_post", "user": id, "id": post.id}));
        }
        if id % 5 == 0 {
            let stranger = (id + USERS as u32 / 2) % USERS as u32;
            if let Some(friend) = account.following.pop_first() {
                commands.push(json!({"op": "unfollow", "user": id, "other": friend}));
            }
            account.following.insert(stranger);
            commands.push(json!({"op": "follow", "user": id, "other": stranger}));
        }
    }
    client.batch(&commands);
}

/// Compares every page of every home timeline and of every feed of mentions.
fn check_everybody(server: &Server, world: &World) {
    std::thread::scope(|scope| {
        for part in 0..2 {
            let mut client = server.client();
            scope.spawn(move || {
                for reader in (part..USERS as u32).step_by(2) {
                    let limit = [17, 50, 100][reader as usize % 3];
                    world.check_home(&mut client, reader, limit);
                    world.check_mentions(&mut client, reader, limit.min(50));
                }
            });
        }
    });
}

/// Checks that reading a list from the end to the beginning gives the same posts.
fn check_backwards(client: &mut Client, world: &World) {
    for reader in (0..USERS as u32).step_by(40) {
        let home = world.home(reader);
        let Some(oldest) = home.last() else { continue };
        let path = format!("/v1/users/{reader}/timeline?limit=30&cursor={oldest}");
        let pages = client.walk(&path, "prev");
        let found = pages.iter().rev().flatten().map(|post| number(&post["id"]));
        assert!(found.eq(home), "the home timeline of {reader}, read backwards");
    }
}
