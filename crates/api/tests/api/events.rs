//! `/v1/users/{user}/events`

use serde_json::json;

use crate::client::{Events, TestServer};

fn prepared() -> TestServer {
    let server = TestServer::open();
    server.register(&["ada", "bob", "cyd"]);
    server.follow("ada", "bob");
    server
}

fn expect(events: &mut Events, expected: &[(&str, &str)]) {
    for expected in expected {
        let next = loop {
            // Additional resync events are allowed.
            match events.next_shown() {
                Some((kind, _)) if kind == "resync" && expected.0 != "resync" => {}
                next => break next,
            }
        };
        assert_eq!(next, Some((expected.0.to_owned(), expected.1.to_owned())));
    }
}

const PATH: &str = "/v1/users/@ada/events";

#[test]
fn events_are_sent_as_they_happen() {
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
    expect(&mut events, &[("resync", ""), ("follow", "2")]);
    server.publish("cyd", "followed now");
    expect(&mut events, &[("post", "followed now")]);
    server.send("DELETE", "/v1/users/@ada/following/@cyd", &[], b"");
    expect(&mut events, &[("resync", ""), ("unfollow", "2")]);
    server.batch("{\"op\":\"follow\",\"user\":\"@ada\",\"others\":[\"@bob\",\"@cyd\"]}\n");
    expect(&mut events, &[("resync", "")]);
    server.publish("cyd", "followed again");
    expect(&mut events, &[("post", "followed again")]);
}

#[test]
fn resuming_after_any_event_misses_nothing_and_repeats_nothing() {
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
    server.send("DELETE", &format!("/v1/users/@bob/posts/{gone}"), &[], b"");
    for (sent, id) in ids.iter().enumerate() {
        let mut resumed = server.events(PATH, Some(id));
        // A post that was deleted meanwhile is not sent.
        expect(&mut resumed, &[("resync", "")]);
        expect(&mut resumed, &all[sent..]);
        expect(&mut resumed, &[("post", "4")]);
        // For an invalid id, the stream begins with new events.
        let mut ahead = server.events(PATH, Some("9223372036854775807.s"));
        expect(&mut ahead, &[("resync", "")]);
        assert!(!ahead.last_id.starts_with("9223372036854775807"));
        let by_query = format!("{PATH}?last_event_id={id}");
        let mut resumed = server.events(&by_query, None);
        expect(&mut resumed, &[("resync", "")]);
        expect(&mut resumed, &all[sent..]);
    }
}

#[test]
fn a_long_gap_is_sent_page_by_page_in_order() {
    let server = prepared();
    let start = server.events(PATH, None).last_id;
    let mut lines = String::new();
    let mut expected = Vec::new();
    for n in 0..350 {
        // Both mentions and posts at home come in runs that are longer than a page.
        let (author, text) = if n / 120 % 2 == 0 { ("cyd", "to @ada") } else { ("bob", "hi") };
        lines += &format!("{{\"op\":\"post\",\"user\":\"@{author}\",\"text\":\"{n} {text}\"}}\n");
        expected.push((if author == "cyd" { "mention" } else { "post" }, format!("{n} {text}")));
    }
    server.batch(&lines);
    let mut events = server.events(PATH, Some(&start));
    expect(&mut events, &[("resync", "")]);
    for (kind, text) in expected {
        assert_eq!(events.next_shown(), Some((kind.to_owned(), text)));
    }
}

#[test]
fn a_stream_under_load_sends_every_post_once_and_in_order() {
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
        let mut counts = [(0, 0), (0, 0)];
        while counts != [(200, 200), (0, 200)] {
            let (kind, text) = events.next_shown().unwrap();
            let mut words = text.split(' ');
            let author = usize::from(words.next().unwrap() == "cyd");
            let count = if kind == "post" { &mut counts[author].0 } else { &mut counts[author].1 };
            assert_eq!(words.next().unwrap(), count.to_string(), "{kind} {text}");
            *count += 1;
        }
    });
}

#[test]
fn deletions_and_edits_are_sent_only_to_users_who_have_the_post() {
    let server = prepared();
    let old = server.publish("bob", "old");
    let parent = server.publish("cyd", "a question");
    let reply = json!({"text": "a reply", "in_reply_to_id": parent});
    let reply = server.post("/v1/users/@bob/posts", &reply).json();
    let reply = reply["id"].as_str().unwrap().to_owned();
    let mention = server.publish("cyd", "for @ada");
    let strange = server.publish("cyd", "a stranger's");
    let mut events = server.events(PATH, None);
    let edit = |id: &str, text: &str| {
        let answer = server.with_json("PATCH", &server.own(id), &[], &json!({"text": text}));
        assert_eq!(answer.status, 200);
    };
    let delete = |id: &str| {
        assert_eq!(server.send("DELETE", &server.own(id), &[], b"").status, 204);
    };
    edit(&strange, "not at home");
    // A reply to a user whom ada does not follow.
    edit(&reply, "@cyd not at home either");
    edit(&old, "another text");
    expect(&mut events, &[("edit", "another text")]);
    edit(&mention, "no longer for her");
    expect(&mut events, &[("edit", "no longer for her")]);
    edit(&mention, "for @ada again");
    expect(&mut events, &[("edit", "for @ada again")]);
    delete(&strange);
    delete(&reply);
    delete(&mention);
    expect(&mut events, &[("delete", &mention)]);
    delete(&old);
    expect(&mut events, &[("delete", &old)]);
    let followers = json!({"text": "to @ada", "visibility": "followers"});
    let followers = server.post("/v1/users/@cyd/posts", &followers).json();
    expect(&mut events, &[("mention", "to @ada")]);
    let followers = followers["id"].as_str().unwrap();
    edit(followers, "she may not see this");
    expect(&mut events, &[("delete", followers)]);
    let own = server.publish("ada", "mine");
    expect(&mut events, &[("post", "mine")]);
    delete(&own);
    expect(&mut events, &[("delete", &own)]);
    server.publish("bob", "last");
    expect(&mut events, &[("post", "last")]);
}

#[test]
fn too_many_deletions_at_once_are_replaced_by_a_resync() {
    let server = prepared();
    let posts: Vec<String> = (0..100).map(|n| server.publish("bob", &n.to_string())).collect();
    let mut events = server.events(PATH, None);
    let lines = posts
        .iter()
        .map(|id| format!("{{\"op\":\"delete_post\",\"user\":\"@bob\",\"id\":\"{id}\"}}\n"));
    server.batch(&lines.collect::<String>());
    server.publish("bob", "the end");
    // Depending on the size of the reads, the stream has all deletions, or the last deletions of each read after a
    // resync. The post may come between them.
    let (mut parts, mut has_post) = (vec![Vec::new()], false);
    while !has_post || parts.len() == 1 && parts[0].len() < posts.len() {
        match events.next_shown().unwrap() {
            (kind, _) if kind == "post" => has_post = true,
            (kind, _) if kind == "resync" => parts.push(Vec::new()),
            (kind, id) if kind == "delete" => parts.last_mut().unwrap().push(id),
            event => panic!("{event:?}"),
        }
    }
    assert!(posts.starts_with(&parts[0]), "nothing is missing before the first resync");
    let mut rest = posts.iter();
    for part in parts.iter().filter(|part| !part.is_empty()) {
        let from = rest.find(|post| **post == part[0]);
        let found = from.into_iter().chain(rest.by_ref().take(part.len() - 1));
        assert!(found.eq(part), "events of one read are consecutive: {part:?}");
    }
    assert_eq!(server.texts("/v1/users/@ada/timeline"), ["the end"]);
}

#[test]
fn new_and_ended_stories_of_friends_are_sent() {
    let server = prepared();
    server.befriend("ada", "bob");
    server.post_story("bob", "before", 600);
    let mut events = server.events(PATH, None);
    let start = events.last_id.clone();
    server.post_story("cyd", "a stranger's", 600);
    server.post_story("ada", "mine", 600);
    let story = server.post_story("bob", "during", 600);
    expect(&mut events, &[("story", "during")]);
    server.publish("bob", "posted");
    expect(&mut events, &[("post", "posted")]);
    let after_both = events.last_id.clone();
    server.send("DELETE", &format!("/v1/users/@bob/stories/{story}"), &[], b"");
    expect(&mut events, &[("story_expired", &story)]);

    server.befriend("cyd", "ada");
    let later = server.post_story("cyd", "a friend's", 600);
    expect(&mut events, &[("story", "a friend's")]);
    let mut resumed = server.events(PATH, Some(&start));
    expect(&mut resumed, &[("resync", "")]);
    expect(&mut resumed, &[("story", "a stranger's"), ("post", "posted"), ("story", "a friend's")]);
    let mut resumed = server.events(PATH, Some(&after_both));
    expect(&mut resumed, &[("resync", ""), ("story", "a friend's")]);

    server.send("DELETE", "/v1/users/@ada/friends/@cyd", &[], b"");
    let ends = [events.next_shown().unwrap(), events.next_shown().unwrap()];
    assert!(ends.iter().all(|(kind, _)| kind == "story_expired"), "{ends:?}");
    assert!(ends.iter().any(|(_, id)| *id == later), "{ends:?}");
    server.post_story("cyd", "nobody's", 600);
    server.publish("bob", "last");
    expect(&mut events, &[("post", "last")]);
}

#[test]
fn the_end_of_a_story_is_sent_when_it_expires_and_not_before() {
    let server = prepared();
    server.befriend("ada", "bob");
    let mut events = server.events(PATH, None);
    let story = server.post_story("bob", "a second", 1);
    let expires = server.get(&format!("/v1/stories/{story}")).json()["expires_at"].clone();
    let expires: jiff::Timestamp = expires.as_str().unwrap().parse().unwrap();
    expect(&mut events, &[("story", "a second"), ("story_expired", &story)]);
    assert!(jiff::Timestamp::now() >= expires);
    assert_eq!(server.texts("/v1/users/@ada/timeline/stories"), [""; 0]);
}

#[test]
fn a_deleted_user_is_sent_to_those_concerned_and_their_own_stream_ends() {
    let server = prepared();
    server.befriend("cyd", "bob");
    let story = server.post_story("bob", "a story", 600);
    let mention = server.publish("bob", "for @cyd");
    let mut follower = server.events(PATH, None);
    let mut friend = server.events("/v1/users/@cyd/events", None);
    let mut own = server.events("/v1/users/@bob/events", None);
    let deleted = server.send("DELETE", "/v1/users/@bob", &[], b"");
    assert_eq!(deleted.status, 204);
    expect(&mut follower, &[("resync", "")]);
    assert_eq!(server.texts("/v1/users/@ada/timeline"), [""; 0]);
    let mut received = [(); 2].map(|()| {
        loop {
            match friend.next_shown().unwrap() {
                (kind, _) if kind == "resync" => {}
                event => break event,
            }
        }
    });
    received.sort_unstable();
    assert_eq!(received, [("delete".to_owned(), mention), ("story_expired".to_owned(), story)]);
    while own.next_event().is_some() {}
}

#[test]
fn shutting_down_ends_streams() {
    let mut server = prepared();
    let mut events = server.events(PATH, None);
    server.stop();
    assert_eq!(events.next_shown(), None);
}

#[test]
fn malformed_positions_are_refused() {
    let server = prepared();
    for id in ["", "x", "7", "7.x", "-7.p", "9223372036854775808.p"] {
        let answer = server.send("GET", PATH, &[("Last-Event-ID", id)], b"");
        answer.assert_error(422, "bad_event_id", id);
    }
}
