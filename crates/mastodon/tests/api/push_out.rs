//! Many actions of strangers, or of one user, do not hide what others may see.

use feed::accounts::{AccountCommand, AccountState};
use feed::{Command, Done, Draft, Handle, Name, Patch, PostId, PostText, UserId, UserRef};
use node::Request;
use serde_json::Value;

use crate::client::{Person, World, ids};

fn user(person: &Person) -> UserRef {
    UserRef::Id(UserId(person.id.parse().unwrap()))
}

async fn run(world: &World, commands: impl IntoIterator<Item = Command>) -> Vec<Done> {
    let commands: Vec<_> = commands.into_iter().map(Request::from).collect();
    let replies = world.node.submit_all(commands).await.unwrap();
    replies.into_iter().map(|reply| reply.outcome.unwrap()).collect()
}

fn post(author: &Person, text: &str) -> Command {
    Command::Publish(Box::new(Draft::new(user(author), PostText::parse(text).unwrap())))
}

fn register(handle: &str) -> Command {
    let handle = Handle::parse(handle).unwrap();
    Command::Register { handle, name: Name::default(), bio: feed::Bio::default() }
}

fn names(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_search_finds_whom_one_follows_and_passes_over_hidden_users() {
    let world = World::new();
    let [ada, zoe] = world.people(["ada", "alzoe"]).await;
    ada.does(&world, "follow", &zoe).await;
    run(&world, (0..400).map(|number| register(&format!("al{number:03}")))).await;
    let search = "/api/v1/accounts/search?q=al";
    let followed = format!("{search}&following=true");
    assert_eq!(ada.ids(&world, &followed).await, [zoe.id.as_str()]);
    let found = ada.get(&world, "/api/v2/search?q=al&type=accounts&following=true").await;
    assert_eq!(ids(&found["accounts"]), [zoe.id.as_str()]);
    let found = ada.get(&world, "/api/v2/search?q=alzo&type=accounts&following=1&offset=1").await;
    assert_eq!(ids(&found["accounts"]), Vec::<String>::new());
    // Users whose names match only with a typing mistake come after exact matches.
    let similar = format!("{}&following=true", "/api/v1/accounts/search?q=alzeo");
    assert_eq!(ada.ids(&world, &similar).await, [zoe.id.as_str()]);
    let hidden: Vec<_> = (2..402).map(|id| UserRef::Id(UserId(id))).collect();
    let me = || user(&ada);
    run(&world, hidden.into_iter().map(|user| Command::Block { user, other: me() })).await;
    assert_eq!(ada.ids(&world, search).await, [zoe.id.as_str()]);
}

#[tokio::test]
async fn posts_that_are_hidden_from_a_reader_hide_no_hashtag() {
    let world = World::new();
    let [ada, bob, mallory] = world.people(["ada", "bob", "mallory"]).await;
    run(&world, [post(&bob, "#rust is fun")]).await;
    run(&world, (0..500).map(|_| post(&mallory, "#rust #spam"))).await;
    ada.does(&world, "block", &mallory).await;
    let search = "/api/v2/search?q=rus&type=hashtags";
    let found = ada.get(&world, search).await;
    assert_eq!(names(&found["hashtags"]), ["rust"]);
    let found = ada.get(&world, "/api/v2/search?q=spa&type=hashtags").await;
    assert_eq!(names(&found["hashtags"]), Vec::<&str>::new());
    let command = AccountCommand::SetState { user: user(&mallory), state: AccountState::Disabled };
    run(&world, [Command::Account(command)]).await;
    let found = world.get(search, None).await.json();
    assert_eq!(names(&found["hashtags"]), ["rust"]);
}

#[tokio::test]
async fn hidden_posts_with_some_hashtags_take_nothing_from_others_nor_from_their_histories() {
    let world = World::new();
    let [bob, mallory] = world.people(["bob", "mallory"]).await;
    run(&world, [post(&bob, "#spama #spamz")]).await;
    let many: String = ('a'..'m').map(|last| format!("#spam{last} ")).collect();
    run(&world, (0..450).map(|_| post(&mallory, &many))).await;
    run(&world, (0..100).map(|_| post(&mallory, "#spamz"))).await;
    let command = AccountCommand::SetState { user: user(&mallory), state: AccountState::Disabled };
    run(&world, [Command::Account(command)]).await;
    let found = world.get("/api/v2/search?q=spam&type=hashtags", None).await.json();
    assert_eq!(names(&found["hashtags"]), ["spama", "spamz"]);
    let found = world.get("/api/v1/tags/spama", None).await.json();
    assert_eq!(found["history"][0]["uses"], "1");
}

#[tokio::test]
async fn no_user_decides_alone_what_trends() {
    let world = World::new();
    let [ada, bob, mallory] = world.people(["ada", "bob", "mallory"]).await;
    run(&world, [post(&ada, "#rust"), post(&bob, "#rust")]).await;
    run(&world, (0..1_200).map(|_| post(&mallory, "nothing"))).await;
    // The first read has only the newest posts, all by Mallory; the others are loaded in the background.
    loop {
        let is_loaded = world.node.knows_popular();
        let found = world.get("/api/v1/trends/tags", None).await.json();
        if is_loaded {
            assert_eq!(names(&found), ["rust"]);
            return;
        }
    }
}

#[tokio::test]
async fn a_mention_that_an_edit_added_stays_however_many_notifications_follow() {
    let world = World::new();
    let [ada, bob, mallory] = world.people(["ada", "bob", "mallory"]).await;
    let posts = run(&world, (0..1_100).map(|_| post(&ada, "x"))).await;
    let Done::Posted(edited) = run(&world, [post(&bob, "hello")]).await[0] else { panic!() };
    let patch = Patch::of_text(PostText::parse("hello @ada").unwrap());
    run(&world, [Command::edit(edited, patch)]).await;
    let mentions = "/api/v1/notifications?types[]=mention";
    let before = ada.get(&world, mentions).await;
    assert_eq!(before.as_array().unwrap().len(), 1);
    let favourites = posts.iter().map(|done| {
        let Done::Posted(PostId(id)) = done else { panic!() };
        let reaction = feed::Reaction::Favourite;
        Command::React { user: user(&mallory), post: PostId(*id), reaction, on: true }
    });
    run(&world, favourites).await;
    assert_eq!(ids(&ada.get(&world, mentions).await), ids(&before));
    let dismiss = format!("/api/v1/notifications/{}/dismiss", before[0]["id"].as_str().unwrap());
    ada.call(&world, "POST", &dismiss, &[]).await;
    assert_eq!(ada.ids(&world, mentions).await, Vec::<String>::new());
}

#[tokio::test]
async fn pages_of_the_directory_have_each_user_once() {
    let world = World::new();
    let [ada, bob, cyd, dan] = world.people(["ada", "bob", "cyd", "dan"]).await;
    let hide = [("discoverable", "false")];
    cyd.call(&world, "PATCH", "/api/v1/accounts/update_credentials", &hide).await;
    let page =
        async |offset| ada.ids(&world, &format!("/api/v1/directory?limit=2&offset={offset}")).await;
    assert_eq!(page(0).await, [dan.id.as_str(), &bob.id]);
    assert_eq!(page(2).await, [ada.id.as_str()]);
    assert_eq!(page(3).await, Vec::<String>::new());
}

#[tokio::test]
async fn mentions_that_are_hidden_are_not_counted_instead_of_others() {
    let world = World::new();
    let [ada, bob, mallory] = world.people(["ada", "bob", "mallory"]).await;
    run(&world, (0..5_000).map(|_| post(&mallory, "@ada"))).await;
    run(&world, [post(&bob, "@ada")]).await;
    ada.does(&world, "block", &mallory).await;
    let count = ada.get(&world, "/api/v1/notifications/unread_count").await;
    assert_eq!(count["count"], 1);
}
