//! All designs give the answers of a plain model, and the experiments expect these answers.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::central::Central;
use super::per_user::PerUser;
use super::roost::Roost;
use super::{Client, Design, Friends, Stories, experiment};
use crate::experiment::{Experiment, THREADS};
use crate::{Parameters, trial};

/// Returns the home pages of all users after each story.
async fn pages<D: Design>(friends: Friends, authors: &[u32]) -> Vec<Vec<u64>> {
    let design = D::start(&friends).await;
    let mut client = design.connect();
    let mut pages = Vec::new();
    for (number, author) in authors.iter().enumerate() {
        client.post(*author, number as u64, 600).await;
        for user in 0..friends.users {
            let mut page = Vec::new();
            client.home(user, &mut page).await;
            let mut numbers: Vec<u64> = page.into_iter().map(|id| design.number(id)).collect();
            numbers.sort_unstable();
            pages.push(numbers);
        }
    }
    pages
}

fn model(friends: Friends, authors: &[u32]) -> Vec<Vec<u64>> {
    let mut pages = Vec::new();
    for posted in 1..=authors.len() {
        for user in 0..friends.users {
            let by_friends =
                |(_, author): &(usize, &u32)| friends.of(user).any(|one| one == **author);
            let posted = authors[..posted].iter().enumerate().filter(by_friends);
            pages.push(posted.map(|(number, _)| number as u64).collect());
        }
    }
    pages
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    runtime.worker_threads(2).enable_all().build().unwrap().block_on(future)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(30))]

    #[test]
    fn designs_show_what_a_plain_model_shows(
        half in 1..3_u32, authors in prop::collection::vec(0..7_u32, 1..40)
    ) {
        let friends = Friends { users: 7, friends: 2 * half };
        let expected = model(friends, &authors);
        prop_assert_eq!(&block_on(pages::<Central>(friends, &authors)), &expected, "central");
        prop_assert_eq!(&block_on(pages::<PerUser>(friends, &authors)), &expected, "per-user");
    }
}

proptest! {
    // The number of cases is small, because opening the engine takes most of the time.
    #![proptest_config(ProptestConfig::with_cases(4))]

    #[test]
    fn roost_shows_what_a_plain_model_shows(authors in prop::collection::vec(0..7_u32, 1..40)) {
        let friends = Friends { users: 7, friends: 4 };
        prop_assert_eq!(block_on(pages::<Roost>(friends, &authors)), model(friends, &authors));
    }
}

#[test]
fn a_story_is_live_until_it_expires() {
    let (mut stories, start) = (Stories::default(), Instant::now());
    let after = |ms: u64| start + Duration::from_millis(ms);
    stories.post(1, 2, start);
    stories.post(2, 2, after(500));
    for (ms, expect) in [(1_999, &[1, 2][..]), (2_000, &[2]), (2_499, &[2]), (2_500, &[])] {
        assert_eq!(stories.live(after(ms)).collect::<Vec<_>>(), expect, "{ms} ms");
    }
}

#[test]
fn friendship_is_mutual_and_with_different_others() {
    let friends = Friends { users: 9, friends: 6 };
    for user in 0..9 {
        let mut all: Vec<u32> = friends.of(user).collect();
        assert!(all.iter().all(|friend| friends.of(*friend).any(|back| back == user)), "{user}");
        all.extend([user]);
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 7, "{user}: {all:?}");
    }
}

/// Some stories are posted again many times while home pages are read.
#[test]
fn trials_of_all_designs_get_the_answers_of_the_model() {
    let experiment = Experiment::named("stories").unwrap();
    let small = BTreeMap::from([
        ("users", 6),
        ("requests", 3_000),
        ("stories", 2),
        ("friends", 4),
        ("life", 1),
    ]);
    let mut parameters = Parameters::default();
    parameters.set(THREADS, 2);
    small.iter().for_each(|(name, value)| parameters.set(name, *value));
    let expected = (experiment.expected)(&parameters, 9);
    // In this process the program is the test binary. A test with the real program covers the server.
    for design in experiment.designs.iter().filter(|design| design.name != "roost-http") {
        let request = trial::Request {
            experiment: "stories".to_owned(),
            design: design.name.to_owned(),
            parameters: parameters.clone(),
            seed: 9,
        };
        let measured = trial::run(&request).unwrap();
        assert_eq!(measured.checksum, expected, "{}", design.name);
        for quantity in experiment.quantities {
            assert!(crate::values::value(&measured, quantity).is_some(), "{}", quantity.name);
        }
    }
}

/// The central design with a fault: each page lacks a story, or has a wrong one.
struct Wrong<const LOSES: bool>(Central);

impl<const LOSES: bool> Design for Wrong<LOSES> {
    type Client = WrongClient<LOSES>;

    async fn start(friends: &Friends) -> Self {
        Self(Central::start(friends).await)
    }

    fn connect(&self) -> Self::Client {
        WrongClient(self.0.connect())
    }
}

struct WrongClient<const LOSES: bool>(<Central as Design>::Client);

impl<const LOSES: bool> Client for WrongClient<LOSES> {
    async fn post(&mut self, author: u32, number: u64, life_s: u32) {
        self.0.post(author, number, life_s).await;
    }

    async fn home(&mut self, user: u32, page: &mut Vec<u64>) {
        self.0.home(user, page).await;
        if LOSES {
            page.pop();
        } else {
            page.push(1_000);
        }
    }
}

#[test]
fn a_lost_story_and_one_too_many_are_wrong_answers() {
    let mut parameters = Parameters::default();
    let small = [("users", 6), ("requests", 100), ("stories", 1), ("friends", 2), ("life", 600)];
    small.iter().for_each(|(name, value)| parameters.set(name, *value));
    let workload = experiment::workload(&parameters, 9);
    let expected = (experiment::EXPERIMENT.expected)(&parameters, 9);
    let right = block_on(experiment::trial::<Central>(workload));
    assert_eq!(right.checksum, expected);
    for wrong in [
        block_on(experiment::trial::<Wrong<true>>(workload)),
        block_on(experiment::trial::<Wrong<false>>(workload)),
    ] {
        assert_ne!(wrong.checksum, expected);
    }
}
