//! Tests of live updates of the real binary: in order, each once, across `kill -9`, and while another reader does not
//! read.

use serde_json::json;

use crate::support::events::{Event, Events};
use crate::support::http::Client;
use crate::support::process::Server;

/// Registers users 0 to 3. Users 1 and 2 follow user 0.
fn users(client: &mut Client) {
    for handle in ["ada", "bob", "eve", "dan"] {
        client.register(handle);
    }
    client.follow(1, 0);
    client.follow(2, 0);
}

fn listen(server: &Server, user: u32, last: Option<&str>) -> Events {
    Events::open(server.address, &format!("/v1/users/{user}/events"), last)
}

fn reported(events: &[Event]) -> Vec<(&str, &str)> {
    events
        .iter()
        .map(|event| (event.kind.as_str(), event.text.as_deref().unwrap_or_default()))
        .collect()
}

/// Checks that each post caused two events: one for the home timeline, and one for the mention.
fn check_both_reported(seen: &[Event], published: &[u64]) {
    let seen: Vec<_> = seen.iter().map(|event| event.id.as_str()).collect();
    let both = |post: &u64| [format!("{post}.p"), format!("{post}.m")];
    let expect: Vec<String> = published.iter().flat_map(both).collect();
    let wrong = expect.iter().zip(&seen).position(|(expect, seen)| expect != seen);
    if let Some(at) = wrong {
        panic!("event {at} should be {} and is {}", expect[at], seen[at]);
    }
    assert_eq!(seen.len(), expect.len());
}

#[test]
fn posts_and_mentions_reach_their_readers_once_and_in_order() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::open(data.path(), &[]);
    let mut client = server.client();
    users(&mut client);
    client.publish(0, "before anybody listens");
    let mut bob = listen(&server, 1, None);
    let mut dan = listen(&server, 3, None);
    for (author, text) in [
        (0, "for both followers"),
        (0, "hello @bob"),
        (3, "from a user without followers"),
        (0, "@dan a post to everybody"),
        (3, "@bob from a stranger"),
        (1, "one's own"),
        (0, "the last one, @dan"),
    ] {
        client.publish(author, text);
    }
    let expect = [
        ("post", "for both followers"),
        ("post", "hello @bob"),
        ("mention", "hello @bob"),
        ("post", "@dan a post to everybody"),
        ("mention", "@bob from a stranger"),
        ("post", "one's own"),
        ("post", "the last one, @dan"),
    ];
    assert_eq!(reported(&bob.take(expect.len())), expect);
    let expect = [
        ("post", "from a user without followers"),
        ("mention", "@dan a post to everybody"),
        ("post", "@bob from a stranger"),
        ("mention", "the last one, @dan"),
    ];
    assert_eq!(reported(&dan.take(expect.len())), expect);

    // A server that shuts down ends its streams, without further events.
    server.stop();
    assert!(bob.next_event().is_none() && dan.next_event().is_none());
}

#[test]
fn a_reader_who_keeps_reading_receives_every_event() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::open(data.path(), &["--durability", "never"]);
    let mut client = server.client();
    users(&mut client);
    client.follow(1, 2);
    client.follow(1, 3);
    let mut bob = listen(&server, 1, None);
    let (seen, mut published) = std::thread::scope(|scope| {
        let reading = scope.spawn(move || bob.until_mention("the end for @bob"));
        let author = |author| {
            let mut client = server.client();
            let post = move |number| client.publish(author, &format!("{number} for @bob"));
            scope.spawn(|| (0..1_500).map(post).collect::<Vec<u64>>())
        };
        let published = [0, 2, 3].map(author).map(|author| author.join().unwrap());
        let end = client.publish(0, "the end for @bob");
        (reading.join().unwrap(), [published.concat(), vec![end]].concat())
    });
    published.sort_unstable();
    check_both_reported(&seen, &published);
}

#[test]
fn a_reader_who_comes_back_after_kill_9_misses_nothing_and_sees_nothing_twice() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::open(data.path(), &["--overlay-memory", "64KiB"]);
    let mut client = server.client();
    users(&mut client);
    let mut bob = listen(&server, 1, None);
    let mut eve = listen(&server, 2, None);
    let mut published = Vec::new();
    let mut publish = |client: &mut Client, count: usize| {
        for _ in 0..count {
            let text = format!("{} for @bob", published.len());
            published.push(client.publish(0, &text));
        }
    };
    publish(&mut client, 40);
    let mut seen_by_bob = bob.take(2 * 20 + 1);
    let mut seen_by_eve = eve.take(1);
    publish(&mut client, 10);
    server.kill();

    let server = Server::open(data.path(), &["--overlay-memory", "64KiB"]);
    let mut client = server.client();
    // The reader misses more than a page: some posts before the kill, some before the reconnect.
    publish(&mut client, 150);
    let mut bob = listen(&server, 1, Some(&seen_by_bob.last().unwrap().id));
    let mut eve = listen(&server, 2, Some(&seen_by_eve.last().unwrap().id));
    publish(&mut client, 10);
    let end = format!("{} for @bob", published.len() - 1);
    seen_by_bob.extend(bob.until_mention(&end));
    seen_by_eve.extend(eve.take(published.len() - seen_by_eve.len()));
    server.stop();
    assert!(bob.next_event().is_none() && eve.next_event().is_none());

    check_both_reported(&seen_by_bob, &published);
    let seen: Vec<_> = seen_by_eve.iter().map(|e| (e.kind.as_str(), e.post)).collect();
    assert_eq!(seen, published.iter().map(|post| ("post", *post)).collect::<Vec<_>>());
}

#[test]
fn a_reader_who_has_stopped_reading_delays_no_other_client() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::open(data.path(), &["--durability", "never"]);
    let mut client = server.client();
    users(&mut client);
    let mut bob = listen(&server, 1, None);
    let mut eve = listen(&server, 2, None);
    // Together, these posts have 15 MB, more than the system buffers for a reader who does not read.
    let family = "\u{1F468}\u{200D}\u{1F469}\u{200D}\u{1F467}".repeat(430);
    let post = |number| json!({"op": "post", "user": 0, "text": format!("{number} {family}")});
    let mut published = Vec::new();
    for start in (0..2_000).step_by(100) {
        let commands: Vec<_> = (start..start + 100).map(post).collect();
        published.extend(client.batch(&commands).into_iter().flatten());
        // Eve reads, bob does not.
        let seen: Vec<u64> = eve.take(100).iter().map(|event| event.post).collect();
        assert_eq!(seen, published[start..]);
    }
    let last = client.publish(0, "and others are served as ever");
    assert_eq!(eve.next_stored().unwrap().post, last);
    published.push(last);

    // When bob reads again, he gets all posts in order, or only the first ones if he was too slow.
    let seen: Vec<u64> = std::iter::from_fn(|| bob.next_stored())
        .take(published.len())
        .map(|event| event.post)
        .collect();
    assert_eq!(seen, published[..seen.len()]);
    assert!(!seen.is_empty());
}
