//! `/v1/users/{user}/events`

use crate::client::{Events, TestServer};

fn prepared() -> TestServer {
    let server = TestServer::open();
    server.register(&["ada", "bob", "cyd"]);
    server.follow("ada", "bob");
    server
}

fn expect(events: &mut Events, expected: &[(&str, &str)]) {
    for (kind, text) in expected {
        assert_eq!(events.next(), Some(((*kind).to_owned(), (*text).to_owned())));
    }
}

const PATH: &str = "/v1/users/@ada/events";

#[test]
fn news_come_as_they_happen_and_only_those() {
    let server = prepared();
    server.publish("bob", "before");
    let mut events = server.events(PATH, None);
    server.publish("bob", "one");
    expect(&mut events, &[("post", "one")]);
    server.publish("cyd", "for nobody here");
    server.publish("cyd", "two for @ada");
    expect(&mut events, &[("mention", "two for @ada")]);
    server.publish("bob", "three for @ada");
    expect(&mut events, &[("post", "three for @ada"), ("mention", "three for @ada")]);
    server.publish("ada", "mine");
    expect(&mut events, &[("post", "mine")]);
    server.follow("ada", "cyd");
    server.publish("cyd", "followed now");
    expect(&mut events, &[("post", "followed now")]);
}

#[test]
fn resuming_behind_any_event_misses_nothing_and_doubles_nothing() {
    let server = prepared();
    let mut events = server.events(PATH, None);
    let start = events.last_id.clone();
    server.publish("bob", "1");
    server.publish("bob", "2 @ada");
    server.publish("cyd", "3 @ada");
    let gone = server.publish("bob", "gone");
    server.publish("bob", "4");
    let all = [("post", "1"), ("post", "2 @ada"), ("mention", "2 @ada"), ("mention", "3 @ada")];
    let mut ids = vec![start];
    for event in all {
        expect(&mut events, &[event]);
        ids.push(events.last_id.clone());
    }
    expect(&mut events, &[("post", "gone"), ("post", "4")]);
    server.send("DELETE", &format!("/v1/posts/{gone}"), &[], b"");
    for (told, id) in ids.iter().enumerate() {
        let mut resumed = server.events(PATH, Some(id));
        expect(&mut resumed, &all[told..]);
        expect(&mut resumed, &[("post", "4")]);
        let by_query = format!("{PATH}?last_event_id={id}");
        let mut resumed = server.events(&by_query, None);
        expect(&mut resumed, &all[told..]);
    }
}

#[test]
fn a_long_gap_is_made_up_page_by_page_in_order() {
    let server = prepared();
    let start = server.events(PATH, None).last_id;
    let mut lines = String::new();
    let mut expected = Vec::new();
    for n in 0..350 {
        // Runs of mentions and of posts at home that are longer than a page of the other kind.
        let (author, text) = if n / 120 % 2 == 0 { ("cyd", "to @ada") } else { ("bob", "hi") };
        lines += &format!("{{\"op\":\"post\",\"user\":\"@{author}\",\"text\":\"{n} {text}\"}}\n");
        expected.push((if author == "cyd" { "mention" } else { "post" }, format!("{n} {text}")));
    }
    server.batch(&lines);
    let mut events = server.events(PATH, Some(&start));
    for (kind, text) in expected {
        assert_eq!(events.next(), Some((kind.to_owned(), text)));
    }
}

#[test]
fn a_stream_under_load_tells_every_post_once_and_in_order() {
    let server = prepared();
    let mut events = server.events(PATH, None);
    std::thread::scope(|scope| {
        for author in ["bob", "cyd"] {
            let server = &server;
            scope.spawn(move || {
                for n in 0..200 {
                    server.publish(author, &format!("{author} {n} @ada"));
                }
            });
        }
        let mut told = [(0, 0), (0, 0)];
        while told != [(200, 200), (0, 200)] {
            let (kind, text) = events.next().unwrap();
            let mut words = text.split(' ');
            let author = usize::from(words.next().unwrap() == "cyd");
            let count = if kind == "post" { &mut told[author].0 } else { &mut told[author].1 };
            assert_eq!(words.next().unwrap(), count.to_string(), "{kind} {text}");
            *count += 1;
        }
    });
}

#[test]
fn shutting_down_ends_streams() {
    let mut server = prepared();
    let mut events = server.events(PATH, None);
    server.stop();
    assert_eq!(events.next(), None);
}

#[test]
fn malformed_positions_are_refused() {
    let server = prepared();
    for id in ["", "x", "7", "7.x", "-7.p", "9223372036854775808.p"] {
        let answer = server.send("GET", PATH, &[("Last-Event-ID", id)], b"");
        answer.assert_error(400, "bad_cursor", id);
    }
}
