//! Cached entities equal new ones: after random changes, a server with a cache and one without respond alike to every
//! reader.

use feed::accounts::AccountState;
use feed::{Command, UserId, UserRef};
use testkit::Random;

use crate::client::{Got, Person, World};
use crate::hidden::disable;

const STEPS: usize = 250;

#[derive(Clone, Default)]
struct Status {
    id: String,
    author: String,
}

#[tokio::test]
async fn what_is_kept_is_what_would_be_made() {
    for seed in [1, 2, 3] {
        let world = World::new();
        let plain = world.beside(|options| options.keeps_entities = false);
        let handles = ["ada", "bob", "cleo", "dan", "eve"];
        let mut people = world.people(handles).await.into_iter().collect::<Vec<_>>();
        let mut random = Random::new(seed);
        let mut statuses = Vec::new();
        for step in 0..STEPS {
            let what = change(&world, &people, &mut statuses, &mut random).await;
            if let Some(dan) = people.get(3).filter(|_| step > STEPS / 3 && step % 15 == 14) {
                let states = [AccountState::Active, AccountState::Disabled];
                disable(&world, dan, states[step / 15 % 2]).await;
            }
            if step == STEPS / 2 || step == STEPS / 4 * 3 {
                let gone = people.pop().unwrap();
                let user = UserRef::Id(UserId(gone.id.parse().unwrap()));
                let deleted = world.node.submit(Command::DeleteUser { user }.into()).await;
                deleted.unwrap().outcome.unwrap();
            }
            for reader in people.iter().map(Some).chain([None]) {
                let mut paths = vec!["/api/v1/timelines/public?limit=40".to_owned()];
                if reader.is_some() {
                    paths.push("/api/v1/timelines/home".to_owned());
                    paths.push("/api/v1/notifications".to_owned());
                }
                if let Some(Status { id: status, .. }) =
                    statuses.get(random.index(statuses.len().max(1)))
                {
                    paths.push(format!("/api/v1/statuses/{status}"));
                    paths.push(format!("/api/v1/statuses/{status}/context"));
                    paths.push(format!("/api/v1/statuses/{status}/quotes"));
                }
                paths.push(format!("/api/v1/accounts/{}", random.pick(&people).id));
                for path in paths {
                    let token = reader.map(|reader| reader.token.as_str());
                    let (kept, made) = alike(&world, &plain, &path, token).await;
                    assert_eq!(kept.status, made.status, "{seed}, {step}: {what}, then {path}");
                    let wrong = difference(&kept.text, &made.text);
                    assert_eq!(wrong, None, "{seed}, {step}: {what}, then {path}");
                }
            }
        }
        assert!(statuses.len() > 20);
    }
}

/// Position and surroundings of the first difference of two texts.
fn difference(kept: &str, made: &str) -> Option<String> {
    let at = kept.bytes().zip(made.bytes()).take_while(|(one, other)| one == other).count();
    let near = |text: &str| text.chars().skip(at.saturating_sub(99)).take(199).collect::<String>();
    (kept != made).then(|| format!("at {at}: {:?}, not {:?}", near(kept), near(made)))
}

/// Responses of both servers while nothing changes. Posts of deleted users are removed in the background, and the
/// servers read the rows at different moments, so only a lasting difference counts.
async fn alike(world: &World, plain: &World, path: &str, token: Option<&str>) -> (Got, Got) {
    let mut differences = 0;
    loop {
        let before = plain.get(path, token).await;
        let kept = world.get(path, token).await;
        let after = plain.get(path, token).await;
        let is_quiet = (before.status, &before.text) == (after.status, &after.text);
        differences += u32::from(kept.text != after.text);
        if is_quiet && (kept.text == after.text || differences > 5) {
            return (kept, after);
        }
    }
}

/// Fields of a new status, which may reply to another one or quote it, or have a poll.
fn new_status<'a>(
    random: &mut Random,
    status: &'a str,
    (text, visibility): (&'a str, &'a str),
) -> Vec<(&'a str, &'a str)> {
    let mut fields = vec![("status", text), ("visibility", visibility)];
    if random.once_in(2) {
        fields.push(("in_reply_to_id", status));
    }
    if random.once_in(3) {
        let policy = *random.pick(&["public", "followers", "nobody"]);
        fields.extend([("quoted_status_id", status)]);
        fields.push(("quote_approval_policy", policy));
    }
    if random.once_in(4) {
        fields.extend([("poll[options][]", "tea"), ("poll[options][]", "coffee")]);
        fields.push(("poll[expires_in]", "3600"));
    }
    fields
}

/// Sends a change, which may be refused; returns its description.
async fn change(
    world: &World,
    people: &[Person],
    statuses: &mut Vec<Status>,
    random: &mut Random,
) -> String {
    let (me, other) = (random.pick(people), random.pick(people));
    let Status { id: status, author } =
        statuses.get(random.index(statuses.len().max(1))).cloned().unwrap_or_default();
    let author = people.iter().find(|person| person.id == author).unwrap_or(me);
    let on_status = |action: &str| format!("/api/v1/statuses/{status}/{action}");
    let on_other = |action: &str| format!("/api/v1/accounts/{}/{action}", other.id);
    let visibility = *random.pick(&["public", "public", "unlisted", "private", "direct"]);
    let whom = if random.once_in(2) { "@bob and @eve" } else { "all" };
    let text = format!("{} for {whom} about #{}", random.next(), random.pick(&["tea", "art"]));
    let (by, method, path, fields): (_, _, _, Vec<(&str, &str)>) = match random.below(30) {
        0..6 => {
            let fields = new_status(random, &status, (&text, visibility));
            (me, "POST", "/api/v1/statuses".to_owned(), fields)
        }
        6 => (author, "PUT", format!("/api/v1/statuses/{status}"), vec![("status", &text)]),
        7 => (author, "DELETE", format!("/api/v1/statuses/{status}"), vec![]),
        at @ 8..16 => {
            let actions =
                ["favourite", "favourite", "unfavourite", "reblog", "unreblog", "bookmark"];
            let actions = [actions.as_slice(), &["unbookmark", "unreblog"]].concat();
            (me, "POST", on_status(actions[at as usize - 8]), vec![])
        }
        at @ 16..21 => {
            let action = ["follow", "follow", "unfollow", "block", "unblock"][at as usize - 16];
            (me, "POST", on_other(action), vec![])
        }
        21 => {
            let locked = if random.once_in(4) { "true" } else { "false" };
            let fields = vec![("display_name", visibility), ("locked", locked), ("note", "#tea")];
            (me, "PATCH", "/api/v1/accounts/update_credentials".to_owned(), fields)
        }
        22 => (author, "POST", on_status("pin"), vec![]),
        23 => (author, "DELETE", format!("/api/v1/statuses/{status}"), vec![]),
        24 => {
            let fields = vec![("phrase", "tea"), ("context[]", "home"), ("whole_word", "true")];
            (me, "POST", "/api/v1/filters".to_owned(), fields)
        }
        25 => (me, "POST", on_status(["mute", "unmute"][random.index(2)]), vec![]),
        26 => {
            let fields = vec![("reblogs", *random.pick(&["true", "false"])), ("notify", "true")];
            (me, "POST", on_other("follow"), fields)
        }
        27 => {
            let policy = *random.pick(&["public", "public", "nobody"]);
            (
                author,
                "PUT",
                on_status("interaction_policy"),
                vec![("quote_approval_policy", policy)],
            )
        }
        28 => {
            // Revokes the quote in the last status, if it quotes this one.
            let last = statuses.last().map_or("0", |last| &last.id);
            (author, "POST", on_status(&format!("quotes/{last}/revoke")), vec![])
        }
        _ => (me, "POST", on_other(["mute", "unmute"][random.index(2)]), vec![]),
    };
    let got = world.call(method, &path, Some(&by.token), &fields).await;
    if got.status.is_success()
        && (path == "/api/v1/statuses" || path.ends_with("/reblog"))
        && let Some(id) = got.json()["id"].as_str()
    {
        let again = world.get(&format!("/api/v1/statuses/{id}"), Some(&by.token)).await;
        assert_eq!(difference(&got.text, &again.text), None, "the response to {method} {path}");
        statuses.push(Status { id: id.to_owned(), author: by.id.clone() });
    }
    format!("{method} {path} by {}: {}", by.id, got.status)
}
