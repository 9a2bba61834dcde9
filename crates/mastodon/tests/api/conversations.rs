//! Conversations.

use serde_json::{Value, json};

use crate::client::{Person, World, ids};

const PATH: &str = "/api/v1/conversations";

/// Sends a direct status; returns its id.
async fn send(world: &World, author: &Person, text: &str, parent: Option<&str>) -> String {
    let mut fields = vec![("status", text), ("visibility", "direct")];
    fields.extend(parent.map(|parent| ("in_reply_to_id", parent)));
    let status = author.call(world, "POST", "/api/v1/statuses", &fields).await;
    status["id"].as_str().unwrap().to_owned()
}

/// Id, last status, accounts and unread flag of each conversation.
async fn list(world: &World, reader: &Person) -> Vec<(String, String, Vec<String>, bool)> {
    let found = reader.get(world, PATH).await;
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let shown = |found: &Value| {
        let accounts = found["accounts"].as_array().unwrap().iter();
        let accounts = accounts.map(|account| text(&account["acct"])).collect();
        let (id, last) = (text(&found["id"]), text(&found["last_status"]["id"]));
        (id, last, accounts, found["unread"].as_bool().unwrap())
    };
    found.as_array().unwrap().iter().map(shown).collect()
}

#[tokio::test]
async fn a_conversation_is_listed_read_removed_and_comes_back() {
    let world = World::new();
    let [ada, bob, cyd] = world.people(["ada", "bob", "cyd"]).await;
    let one = send(&world, &ada, "@bob one", None).await;
    let two = send(&world, &bob, "@ada two", Some(&one)).await;
    let other = send(&world, &ada, "@bob @cyd other", None).await;
    let of = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let row = |id: &String, last: &String, names: &[&str], unread| {
        (id.clone(), last.clone(), of(names), unread)
    };
    let first = row(&one, &two, &["bob"], true);
    assert_eq!(
        list(&world, &ada).await,
        [row(&other, &other, &["bob", "cyd"], false), first.clone()]
    );
    assert_eq!(list(&world, &cyd).await, [row(&other, &other, &["ada", "bob"], true)]);
    let read = format!("{PATH}/{one}/read");
    let shown = ada.call(&world, "POST", &read, &[]).await;
    assert_eq!((&shown["id"], &shown["unread"]), (&json!(one), &json!(false)));
    assert!(!list(&world, &ada).await[1].3);
    let unread = format!("{PATH}/{one}/unread");
    for _ in 0..2 {
        let shown = ada.call(&world, "POST", &unread, &[]).await;
        assert_eq!((&shown["id"], &shown["unread"]), (&json!(one), &json!(true)));
        assert!(list(&world, &ada).await[1].3);
    }
    // A conversation can also be marked as unread if the last status is the user's own.
    let shown = ada.call(&world, "POST", &format!("{PATH}/{other}/unread"), &[]).await;
    assert_eq!((&shown["unread"], list(&world, &ada).await[0].3), (&json!(true), true));
    assert!(list(&world, &bob).await[0].3 && !list(&world, &bob).await[1].3, "for its user only");
    ada.call(&world, "POST", &read, &[]).await;
    assert!(!list(&world, &ada).await[1].3);
    ada.call(&world, "DELETE", &format!("{PATH}/{one}"), &[]).await;
    assert_eq!(list(&world, &ada).await.len(), 1);
    for (method, path) in [("POST", read), ("POST", unread), ("DELETE", format!("{PATH}/{one}"))] {
        let got = world.call(method, &path, Some(&ada.token), &[]).await;
        assert_eq!(got.status.as_u16(), 404, "{method} of a removed conversation");
    }
    assert_eq!(list(&world, &bob).await.len(), 2, "others still have it");
    let three = send(&world, &bob, "@ada three", Some(&two)).await;
    assert_eq!(list(&world, &ada).await[0], row(&one, &three, &["bob"], true));
    let strange = world.call("POST", &format!("{PATH}/{one}/read"), Some(&cyd.token), &[]).await;
    assert_eq!(strange.status.as_u16(), 404, "not a conversation of the user");
    let alone = send(&world, &cyd, "a note", None).await;
    assert_eq!(list(&world, &cyd).await[0], row(&alone, &alone, &["cyd"], false));
}

#[tokio::test]
async fn conversations_with_long_profiles_fit_in_a_response() {
    let world = World::new();
    let names: [String; 24] = std::array::from_fn(|number| format!("u{number}"));
    let people = world.people(names.each_ref().map(String::as_str)).await;
    let (bio, value) = ("#a ".repeat(166), "#a ".repeat(85));
    for person in &people {
        let mut fields = vec![("note", bio.as_str())];
        let pairs = [0, 1, 2, 3].map(|number| {
            [
                format!("fields_attributes[{number}][name]"),
                format!("fields_attributes[{number}][value]"),
            ]
        });
        for [name, text] in &pairs {
            fields.extend([(name.as_str(), "x"), (text.as_str(), value.as_str())]);
        }
        person.call(&world, "PATCH", "/api/v1/accounts/update_credentials", &fields).await;
    }
    let all: String = names.iter().map(|name| format!("@{name} ")).collect();
    send(&world, &people[1], &all, None).await;
    let found = people[0].get(&world, PATH).await;
    let accounts = found[0]["accounts"].as_array().unwrap();
    assert_eq!(accounts[0]["acct"], "u1", "the author is there");
    assert!((1..20).contains(&accounts.len()), "{}", accounts.len());
}

#[tokio::test]
async fn direct_statuses_and_conversations_have_pages() {
    let world = World::new();
    let [ada, bob] = world.people(["ada", "bob"]).await;
    let mut sent = Vec::new();
    for number in 0..5 {
        bob.post(&world, &format!("@ada public {number}")).await;
        sent.push(send(&world, &bob, &format!("@ada {number}"), None).await);
    }
    sent.reverse();
    for path in [PATH, "/api/v1/timelines/direct"] {
        assert_eq!(ada.ids(&world, path).await, sent);
        let pages = [
            ("limit=2".to_owned(), &sent[..2]),
            (format!("limit=2&max_id={}", sent[1]), &sent[2..4]),
            (format!("limit=2&max_id={}", sent[3]), &sent[4..]),
            (format!("limit=2&min_id={}", sent[3]), &sent[1..3]),
            (format!("limit=2&since_id={}", sent[3]), &sent[..2]),
        ];
        for (query, expected) in pages {
            let found = ada.get(&world, &format!("{path}?{query}")).await;
            assert_eq!(ids(&found), expected, "{path} {query}");
        }
        let token = Some(ada.token.as_str());
        let got = world.get(&format!("{path}?limit=2"), token).await;
        let link = got.headers["link"].to_str().unwrap();
        assert!(link.contains(&format!("max_id={}", sent[1])), "{link}");
        assert_eq!(world.get(path, None).await.status.as_u16(), 401);
    }
}
