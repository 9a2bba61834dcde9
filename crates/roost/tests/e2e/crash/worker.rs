//! Client of the crash test. It makes one change of its own data after the other, and records the outcomes. Only the
//! last outcome may be unknown.

use std::collections::{BTreeMap, BTreeSet};

use rand::rngs::StdRng;
use rand::seq::{IndexedRandom as _, IteratorRandom as _};
use rand::{RngExt as _, SeedableRng as _};
use serde_json::{Value, json};

use super::batch;
use super::kept::Kept;
use super::samples::SampleAdded;
use super::{Directory, Round};
use crate::support::http::{Answer, Client, number};
use crate::support::world::{Account, Form, Post, ids};

/// TTL of a story, in seconds. It is the maximum, so that no story expires in a test.
const STORY_SECS: u64 = 604_800;

/// Change by one worker.
#[derive(Clone, Debug)]
pub(super) enum Change {
    Register {
        handle: String,
    },
    Tie {
        tie: Tie,
        user: u32,
        other: u32,
    },
    Untie {
        tie: Tie,
        user: u32,
        other: u32,
    },
    Publish(Draft),
    /// Posts of one author, which are sent in this order.
    Batch(Vec<Draft>),
    Delete {
        form: Form,
        author: u32,
        id: u64,
    },
    AddSample {
        label: String,
    },
    Forget {
        id: u64,
    },
    Keep {
        key: String,
        value: String,
    },
    Drop {
        key: String,
    },
}

/// Relation between two users.
#[derive(Clone, Copy, Debug)]
pub(super) enum Tie {
    Follow,
    /// Friendship with a user who has a greater id. It is stored only at the user with the lesser id.
    Friendship,
}

/// Post or story to publish.
#[derive(Clone, Debug)]
pub(super) struct Draft {
    form: Form,
    pub(super) author: u32,
    pub(super) text: String,
    mentions: Vec<u32>,
    idempotency_key: Option<String>,
}

pub(super) struct Worker {
    number: u32,
    rng: StdRng,
    /// Counter that makes handles, texts and keys unique.
    serial: u32,
    /// Users whom this worker registered. No other worker changes them.
    pub(super) accounts: BTreeMap<u32, Account>,
    /// Every post and story that was published, even if it was deleted.
    pub(super) published: BTreeMap<u64, Form>,
    /// Samples of the worker.
    pub(super) taught: SampleAdded,
    /// Keys of the worker in a bucket.
    pub(super) kept: Kept,
    /// The last acknowledged draft that had an idempotency key.
    keyed: Option<(Draft, u64)>,
    /// Change that was sent and has no response yet.
    waiting: Option<Change>,
}

impl Worker {
    pub(super) fn new(number: u32, seed: u64) -> Self {
        let rng = StdRng::seed_from_u64(seed);
        let (accounts, published) = (BTreeMap::new(), BTreeMap::new());
        let (taught, kept) = (SampleAdded::new(number), Kept::new(number));
        Self {
            number,
            rng,
            serial: 0,
            accounts,
            published,
            taught,
            kept,
            keyed: None,
            waiting: None,
        }
    }

    pub(super) fn is_waiting(&self) -> bool {
        self.waiting.is_some()
    }

    /// Makes changes until the round has ended or the server has ended.
    pub(super) fn work(&mut self, mut client: Client, directory: &Directory, round: &Round) {
        loop {
            let change = self.next(directory);
            if let Change::Batch(drafts) = change {
                if !self.batch(drafts, &client, round) {
                    return;
                }
                continue;
            }
            let Ok(answer) = send(&mut client, &self.taught, &change) else {
                self.waiting = Some(change);
                return;
            };
            self.acknowledged(change, &answer, directory);
            if round.acknowledged() || self.look(&mut client).is_err() {
                return;
            }
        }
    }

    /// Sends a batch. Returns whether the worker goes on.
    fn batch(&mut self, mut drafts: Vec<Draft>, client: &Client, round: &Round) -> bool {
        let ids = batch::send(client, &drafts);
        let mut over = false;
        for (draft, id) in drafts.drain(..ids.len()).zip(ids) {
            self.publish(draft, id);
            over |= round.acknowledged();
        }
        if !drafts.is_empty() {
            self.waiting = Some(Change::Batch(drafts));
            return false;
        }
        !over
    }

    /// A text that no worker has used before.
    fn unique(&mut self) -> String {
        self.serial += 1;
        format!("w{}_{}", self.number, self.serial)
    }

    fn account(&mut self, id: u32) -> &mut Account {
        self.accounts.get_mut(&id).unwrap()
    }

    fn next(&mut self, directory: &Directory) -> Change {
        let own: Vec<u32> = self.accounts.keys().copied().collect();
        let Some(user) = own.choose(&mut self.rng).copied() else { return self.new_person() };
        let tie = if self.rng.random() { Tie::Follow } else { Tie::Friendship };
        let form = if self.rng.random_bool(0.6) { Form::Post } else { Form::Story };
        let dice = self.rng.random_range(0..100);
        if dice < 2 {
            return self.new_person();
        }
        if dice < 28 {
            let directory = directory.lock().unwrap();
            let (other, _) = *directory.choose(&mut self.rng).unwrap();
            if tie.may_join(user, other) {
                return Change::Tie { tie, user, other };
            }
        } else if dice < 38 {
            let others = tie.of(self.accounts.get_mut(&user).unwrap());
            if let Some(&other) = others.iter().choose(&mut self.rng) {
                return Change::Untie { tie, user, other };
            }
        } else if dice < 50
            && let Some(post) = self.accounts[&user].written(form).choose(&mut self.rng)
        {
            return Change::Delete { form, author: user, id: post.id };
        } else if dice < 53
            && let Some(id) = self.taught.labels.keys().copied().choose(&mut self.rng)
        {
            return Change::Forget { id };
        } else if dice < 57 {
            return Change::AddSample { label: self.unique() };
        } else if dice < 60
            && let Some(key) = self.kept.values.keys().choose(&mut self.rng)
        {
            return Change::Drop { key: key.clone() };
        } else if dice < 70 {
            let (key, mut value) = (self.kept.key(self.rng.random_range(0..40)), self.unique());
            if self.rng.random_bool(0.2) {
                value.push_str(&"-".repeat(20_000));
            }
            return Change::Keep { key, value };
        }
        if dice < 76 {
            let draft =
                |_| Draft { idempotency_key: None, ..self.draft(Form::Post, user, directory) };
            return Change::Batch((0..8).map(draft).collect());
        }
        Change::Publish(self.draft(form, user, directory))
    }

    fn new_person(&mut self) -> Change {
        Change::Register { handle: self.unique() }
    }

    fn draft(&mut self, form: Form, author: u32, directory: &Directory) -> Draft {
        let unique = self.unique();
        let (other, handle) = {
            let directory = directory.lock().unwrap();
            directory.choose(&mut self.rng).unwrap().clone()
        };
        let (mut mentions, mut text) = match self.rng.random_range(0..4) {
            0 => (vec![], unique.clone()),
            1 => (vec![other], format!("@{handle} {unique}")),
            2 => (vec![other], format!("{unique} by @{handle}, as I heard")),
            _ => (vec![], format!("@nobody_has_this {unique}")),
        };
        if form == Form::Story {
            mentions = vec![];
        }
        if self.rng.random_bool(0.4) {
            // A reader sees 430 characters, which are 7,740 bytes in the log.
            text.push(' ');
            text.push_str(&"\u{1F468}\u{200D}\u{1F469}\u{200D}\u{1F467}".repeat(430));
        }
        let idempotency_key = self.rng.random_bool(0.5).then(|| format!("key-{unique}"));
        Draft { form, author, text, mentions, idempotency_key }
    }

    fn acknowledged(&mut self, change: Change, answer: &Answer, directory: &Directory) {
        let expected = match change {
            Change::Register { .. } | Change::Publish(_) | Change::AddSample { .. } => 201,
            Change::Tie { tie: Tie::Follow, .. } => 200,
            _ => 204,
        };
        assert_eq!(answer.status, expected, "{change:?}: {}", answer.text());
        match change {
            Change::Register { handle } => {
                let id = number(&answer.json()["id"]) as u32;
                self.registered(id, handle, directory);
            }
            Change::Publish(draft) => {
                let id = self.check_published(&draft, &answer.json());
                assert_eq!(answer.header("idempotent-replayed"), None, "{draft:?}");
                self.publish(draft, id);
            }
            Change::AddSample { label } => self.taught(number(&answer.json()["id"]), label),
            change => self.happened(&change),
        }
    }

    fn taught(&mut self, id: u64, label: String) {
        assert!(self.taught.labels.insert(id, label).is_none(), "{id} was given out twice");
    }

    fn registered(&mut self, id: u32, handle: String, directory: &Directory) {
        directory.lock().unwrap().push((id, handle.clone()));
        let account = Account { handle, ..Account::default() };
        assert!(self.accounts.insert(id, account).is_none(), "{id} was given out twice");
    }

    /// Checks the response to a post or a story. Returns the id.
    fn check_published(&self, draft: &Draft, answer: &Value) -> u64 {
        let (author, post) = Post::read(answer);
        assert_eq!((author, &post), (draft.author, &draft.post(post.id)));
        post.id
    }

    fn publish(&mut self, draft: Draft, id: u64) {
        assert!(self.published.insert(id, draft.form).is_none(), "{id} was given out twice");
        let posts = self.account(draft.author).written_mut(draft.form);
        assert!(posts.last().is_none_or(|last| last.id < id), "{id} is not the author's newest");
        posts.push(draft.post(id));
        if draft.idempotency_key.is_some() {
            self.keyed = Some((draft, id));
        }
    }

    /// Records that a relation began or ended, that something was deleted, or that a key was changed.
    fn happened(&mut self, change: &Change) {
        match *change {
            Change::Keep { ref key, ref value } => {
                self.kept.values.insert(key.clone(), value.clone());
            }
            Change::Drop { ref key } => {
                self.kept.values.remove(key);
            }
            Change::Tie { tie, user, other } => {
                tie.of(self.account(user)).insert(other);
            }
            Change::Untie { tie, user, other } => {
                tie.of(self.account(user)).remove(&other);
            }
            Change::Delete { form, author, id } => {
                self.account(author).written_mut(form).retain(|kept| kept.id != id);
            }
            Change::Forget { id } => {
                self.taught.labels.remove(&id);
            }
            Change::Register { .. }
            | Change::Publish(_)
            | Change::Batch(_)
            | Change::AddSample { .. } => {
                unreachable!("they have ids")
            }
        }
    }

    /// Reads a home timeline now and then, so that it stays active. It must contain the user's own last post.
    fn look(&mut self, client: &mut Client) -> std::io::Result<()> {
        if self.rng.random_bool(0.8) {
            return Ok(());
        }
        let Some((id, account)) = self.accounts.iter().choose(&mut self.rng) else { return Ok(()) };
        let Some(last) = account.posts.last() else { return Ok(()) };
        let path = format!("/v1/users/{id}/timeline?limit=1&cursor={}", last.id);
        let page = client.send("GET", &path, &[], b"")?.expect(200).json();
        assert_eq!(number(&page["items"][0]["id"]), last.id, "one's own post is at home: {page}");
        Ok(())
    }

    /// After a restart, determines the outcome of the change without a response. Then sends the last draft with an
    /// idempotency key again, which must change nothing.
    pub(super) fn resolve(&mut self, client: &mut Client, directory: &Directory) {
        let keyed = self.keyed.take();
        match self.waiting.take() {
            None => {}
            Some(Change::Register { handle }) => {
                let path = format!("/v1/users?handle={handle}");
                if let [id] = ids(client, &path)[..] {
                    self.registered(id as u32, handle, directory);
                }
            }
            Some(Change::Publish(draft)) => self.resolve_post(draft, client),
            Some(Change::Batch(drafts)) => self.resolve_batch(drafts, client),
            Some(Change::AddSample { label }) => {
                if let Some(id) = self.taught.find(client, &label) {
                    self.taught(id, label);
                }
            }
            Some(change) if has_happened(&change, client) => self.happened(&change),
            Some(_) => {}
        }
        // The change without a response may have deleted the post or story.
        if let Some((draft, id)) = keyed
            && self.accounts[&draft.author].written(draft.form).iter().any(|post| post.id == id)
        {
            let change = Change::Publish(draft.clone());
            let answer = send(client, &self.taught, &change).unwrap().expect(201);
            assert_eq!(self.check_published(&draft, &answer.json()), id, "{draft:?}");
            assert_eq!(answer.header("idempotent-replayed"), Some("true"), "{draft:?}");
        }
    }

    /// Determines the outcome of a batch. If only some of its posts were applied, these are the first ones.
    fn resolve_batch(&mut self, drafts: Vec<Draft>, client: &mut Client) {
        let path = format!("/v1/users/{}/posts?limit={}", drafts[0].author, drafts.len());
        let newest = client.get(&path).expect(200).json();
        let newest = newest["items"].as_array().unwrap().iter().map(|post| Post::read(post).1);
        let mut found: Vec<Post> =
            newest.take_while(|post| drafts.iter().any(|draft| draft.text == post.text)).collect();
        found.reverse();
        for (post, draft) in found.into_iter().zip(drafts) {
            assert_eq!(post.text, draft.text, "a batch was not applied in order");
            self.publish(draft, post.id);
        }
    }

    fn resolve_post(&mut self, draft: Draft, client: &mut Client) {
        let path = format!("/v1/users/{}/{}?limit=1", draft.author, draft.form.noun());
        let newest = client.get(&path).expect(200).json();
        let newest = newest["items"].get(0).map(|post| Post::read(post).1);
        let found = newest.filter(|post| post.text == draft.text).map(|post| post.id);
        let id = match &draft.idempotency_key {
            None => found,
            Some(_) => {
                let change = Change::Publish(draft.clone());
                let answer = send(client, &self.taught, &change).unwrap().expect(201);
                let id = self.check_published(&draft, &answer.json());
                let replayed = answer.header("idempotent-replayed") == Some("true");
                assert_eq!(replayed.then_some(id), found, "{draft:?}");
                Some(id)
            }
        };
        if let Some(id) = id {
            self.publish(draft, id);
        }
    }
}

impl Draft {
    fn post(&self, id: u64) -> Post {
        let Self { text, mentions, .. } = self.clone();
        Post { id, text, reply_to: None, mentions }
    }
}

impl Tie {
    /// Noun in the paths of the API.
    fn noun(self) -> &'static str {
        match self {
            Self::Follow => "following",
            Self::Friendship => "friends",
        }
    }

    fn may_join(self, user: u32, other: u32) -> bool {
        match self {
            Self::Follow => user != other,
            Self::Friendship => user < other,
        }
    }

    fn of(self, account: &mut Account) -> &mut BTreeSet<u32> {
        match self {
            Self::Follow => &mut account.following,
            Self::Friendship => &mut account.befriended,
        }
    }
}

/// Whether a change was applied that begins or ends a relation, deletes something, or changes a key.
fn has_happened(change: &Change, client: &mut Client) -> bool {
    match change {
        Change::Tie { tie, user, other } => are_joined(client, *tie, *user, *other),
        Change::Untie { tie, user, other } => !are_joined(client, *tie, *user, *other),
        Change::Delete { form, id, .. } => {
            client.get(&format!("/v1/{}/{id}", form.noun())).status == 404
        }
        Change::Forget { id } => !SampleAdded::is_there(client, *id),
        Change::Keep { key, value } => Kept::read(client, key).as_ref() == Some(value),
        Change::Drop { key } => Kept::read(client, key).is_none(),
        Change::Register { .. }
        | Change::Publish(_)
        | Change::Batch(_)
        | Change::AddSample { .. } => {
            unreachable!("these are resolved by reading")
        }
    }
}

fn are_joined(client: &mut Client, tie: Tie, user: u32, other: u32) -> bool {
    let others = ids(client, &format!("/v1/users/{user}/{}?limit=100", tie.noun()));
    others.contains(&u64::from(other))
}

fn send(client: &mut Client, taught: &SampleAdded, change: &Change) -> std::io::Result<Answer> {
    match change {
        Change::AddSample { label } => taught.teach(client, label),
        Change::Batch(_) => unreachable!("has answers of its own"),
        Change::Forget { id } => SampleAdded::forget(client, *id),
        Change::Keep { key, value } => Kept::put(client, key, value),
        Change::Drop { key } => Kept::remove(client, key),
        Change::Register { handle } => {
            client.try_post("/v1/users", &[], &json!({"handle": handle}))
        }
        Change::Tie { tie, user, other } => {
            client.send("PUT", &format!("/v1/users/{user}/{}/{other}", tie.noun()), &[], b"")
        }
        Change::Untie { tie, user, other } => {
            client.send("DELETE", &format!("/v1/users/{user}/{}/{other}", tie.noun()), &[], b"")
        }
        Change::Publish(draft) => {
            let key = draft.idempotency_key.as_deref().map(|key| ("Idempotency-Key", key));
            let path = format!("/v1/users/{}/{}", draft.author, draft.form.noun());
            let mut body = json!({"text": draft.text});
            if draft.form == Form::Story {
                body["ttl_s"] = STORY_SECS.into();
            }
            client.try_post(&path, key.as_slice(), &body)
        }
        Change::Delete { form, author, id } => {
            client.send("DELETE", &format!("/v1/users/{author}/{}/{id}", form.noun()), &[], b"")
        }
    }
}
