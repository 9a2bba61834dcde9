//! Reference model: computes the data that every user should see from a plain list of all changes.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::http::{Client, number};

/// Kind of a text by a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Post,
    Story,
}

impl Form {
    /// Noun in the paths of the API.
    pub(crate) fn noun(self) -> &'static str {
        match self {
            Self::Post => "posts",
            Self::Story => "stories",
        }
    }
}

/// Live post or story. A story has neither mentions nor a reply, whatever its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Post {
    pub(crate) id: u64,
    pub(crate) text: String,
    pub(crate) reply_to: Option<u32>,
    pub(crate) mentions: Vec<u32>,
}

/// The part of a user's state that the user can change.
#[derive(Clone, Debug, Default)]
pub(crate) struct Account {
    pub(crate) handle: String,
    pub(crate) following: BTreeSet<u32>,
    /// Friends with greater ids. Each friendship is stored only at the user with the smaller id.
    pub(crate) befriended: BTreeSet<u32>,
    /// Posts in order of publishing.
    pub(crate) posts: Vec<Post>,
    /// Stories in order of publishing. None expires during a test.
    pub(crate) stories: Vec<Post>,
}

impl Account {
    pub(crate) fn written(&self, form: Form) -> &Vec<Post> {
        match form {
            Form::Post => &self.posts,
            Form::Story => &self.stories,
        }
    }

    pub(crate) fn written_mut(&mut self, form: Form) -> &mut Vec<Post> {
        match form {
            Form::Post => &mut self.posts,
            Form::Story => &mut self.stories,
        }
    }
}

/// All users, by id.
#[derive(Clone, Debug, Default)]
pub(crate) struct World(pub(crate) BTreeMap<u32, Account>);

impl Post {
    /// Parses a post or a story from JSON, with the number of its author.
    pub(crate) fn read(json: &Value) -> (u32, Self) {
        let account = |account: &Value| number(&account["id"]) as u32;
        let post = Self {
            id: number(&json["id"]),
            text: json["text"].as_str().unwrap().to_owned(),
            reply_to: Some(&json["reply_to"]).filter(|account| !account.is_null()).map(account),
            mentions: json["mentions"].as_array().into_iter().flatten().map(account).collect(),
        };
        (account(&json["author"]), post)
    }
}

impl World {
    pub(crate) fn followers(&self, user: u32) -> Vec<u32> {
        let follows =
            |(id, account): (&u32, &Account)| account.following.contains(&user).then_some(*id);
        self.0.iter().filter_map(follows).collect()
    }

    pub(crate) fn friends(&self, user: u32) -> BTreeSet<u32> {
        let befriends =
            |(id, account): (&u32, &Account)| account.befriended.contains(&user).then_some(*id);
        let befriended = self.0[&user].befriended.iter().copied();
        self.0.iter().filter_map(befriends).chain(befriended).collect()
    }

    /// Stories of a user's friends, newest first.
    fn stories_home(&self, reader: u32) -> Vec<u64> {
        let friends = self.friends(reader);
        let stories = friends.iter().flat_map(|friend| &self.0[friend].stories);
        newest_first(stories.map(|story| story.id).collect())
    }

    /// Home timeline of a user, newest first.
    pub(crate) fn home(&self, reader: u32) -> Vec<u64> {
        let following = &self.0[&reader].following;
        let mut home: Vec<u64> = self.0[&reader].posts.iter().map(|post| post.id).collect();
        for author in following {
            let seen = |post: &&Post| match post.reply_to {
                Some(other) => other == reader || following.contains(&other),
                None => true,
            };
            home.extend(self.0[author].posts.iter().filter(seen).map(|post| post.id));
        }
        newest_first(home)
    }

    /// Posts that mention a user, newest first.
    pub(crate) fn mentions(&self, reader: u32) -> Vec<u64> {
        // Leave out posts in which users mention themselves.
        let others = self.0.iter().filter(|(id, _)| **id != reader);
        let posts = others.flat_map(|(_, account)| &account.posts);
        newest_first(posts.filter(|post| post.mentions.contains(&reader)).map(|p| p.id).collect())
    }

    /// Checks the home that the server shows to a user, on pages of this size.
    pub(crate) fn check_home(&self, client: &mut Client, reader: u32, limit: usize) {
        let home = ids(client, &format!("/v1/users/{reader}/timeline?limit={limit}"));
        assert_eq!(home, self.home(reader), "the home timeline of {reader}");
    }

    /// Checks the home of stories that the server shows to a user, on pages of this size.
    pub(crate) fn check_stories_home(&self, client: &mut Client, reader: u32, limit: usize) {
        let home = ids(client, &format!("/v1/users/{reader}/timeline/stories?limit={limit}"));
        assert_eq!(home, self.stories_home(reader), "the stories home of {reader}");
    }

    /// Checks the mentions that the server shows to a user, on pages of this size.
    pub(crate) fn check_mentions(&self, client: &mut Client, reader: u32, limit: usize) {
        let mentions = ids(client, &format!("/v1/users/{reader}/mentions?limit={limit}"));
        assert_eq!(mentions, self.mentions(reader), "the mentions of {reader}");
    }
}

/// Ids of all items of a list, over all pages.
pub(crate) fn ids(client: &mut Client, path: &str) -> Vec<u64> {
    client.all(path).iter().map(|item| number(&item["id"])).collect()
}

fn newest_first(mut ids: Vec<u64>) -> Vec<u64> {
    ids.sort_unstable_by(|a, b| b.cmp(a));
    ids
}
