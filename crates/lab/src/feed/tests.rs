//! All designs give the answers of a plain model, and the experiments expect these answers.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::central::Central;
use super::network::Network;
use super::roost::Roost;
use super::sharded::Sharded;
use super::{Client as _, Design, PAGE};
use crate::experiment::{EXPERIMENTS, Experiment, THREADS};
use crate::{Parameters, trial};

/// Posts by some users, in order. Returns the pages of all users after each post.
async fn pages<D: Design>(network: &Network, authors: &[u32]) -> Vec<(Vec<u64>, Vec<u64>)> {
    let feed = D::start(network).await;
    let mut client = feed.connect();
    let mut pages = Vec::new();
    for (number, author) in authors.iter().enumerate() {
        let delivery = client.post(*author, number as u64).await;
        client.delivered(delivery, network.followers(*author)).await;
        for user in 0..network.users() {
            let (mut timeline, mut profile) = (Vec::new(), Vec::new());
            client.timeline(user, &mut timeline).await;
            client.profile(user, &mut profile).await;
            for post in timeline.iter_mut().chain(&mut profile) {
                *post = feed.number(*post);
            }
            pages.push((timeline, profile));
        }
    }
    pages
}

fn model(network: &Network, authors: &[u32]) -> Vec<(Vec<u64>, Vec<u64>)> {
    let sources = network.sources();
    let mut pages = Vec::new();
    for sent in 1..=authors.len() {
        let newest = |is_shown: &dyn Fn(u32) -> bool| -> Vec<u64> {
            let posts = authors[..sent].iter().enumerate().rev();
            posts
                .filter(|(_, author)| is_shown(**author))
                .map(|(n, _)| n as u64)
                .take(PAGE)
                .collect()
        };
        for user in 0..network.users() {
            let own = newest(&|author| author == user);
            let ends = [own.first(), own.last()].into_iter().flatten().copied().collect();
            pages.push((newest(&|author| sources[user as usize].contains(&author)), ends));
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
        follows in 0..6_u32, seed: u64, authors in prop::collection::vec(0..7_u32, 1..60)
    ) {
        let network = Network::random(7, follows, seed);
        let expected = model(&network, &authors);
        prop_assert_eq!(&block_on(pages::<Central>(&network, &authors)), &expected, "central");
        prop_assert_eq!(&block_on(pages::<Sharded<100>>(&network, &authors)), &expected, "100");
        prop_assert_eq!(&block_on(pages::<Sharded<3>>(&network, &authors)), &expected, "3");
        prop_assert_eq!(&block_on(pages::<Sharded<1>>(&network, &authors)), &expected, "1");
    }
}

proptest! {
    // The number of cases is small, because opening the engine takes most of the time.
    #![proptest_config(ProptestConfig::with_cases(4))]

    #[test]
    fn roost_shows_what_a_plain_model_shows(
        follows in 0..6_u32, seed: u64, authors in prop::collection::vec(0..7_u32, 1..60)
    ) {
        let network = Network::random(7, follows, seed);
        prop_assert_eq!(block_on(pages::<Roost>(&network, &authors)), model(&network, &authors));
    }
}

#[test]
fn everybody_follows_so_many_others_and_nobody_themselves() {
    let network = Network::random(40, 7, 3);
    for (user, sources) in network.sources().into_iter().enumerate() {
        assert_eq!(sources.len(), 8, "{user} and 7 others: {sources:?}");
        assert!(sources.is_sorted_by(|a, b| a < b));
    }
    assert_ne!(network.sources(), Network::random(40, 7, 4).sources());
}

#[test]
fn trials_of_all_designs_get_the_answers_of_the_model() {
    let small = BTreeMap::from([
        ("users", 12),
        ("follows", 4),
        ("posts", 3),
        ("clients", 3),
        ("requests", 40),
        ("followers", 5),
    ]);
    let of_feed = ["central", "per-1", "roost"];
    let has =
        |experiment: &&&Experiment| of_feed.iter().all(|name| experiment.design(name).is_some());
    for experiment in EXPERIMENTS.iter().filter(has) {
        let mut parameters = Parameters::default();
        parameters.set(THREADS, 2);
        for parameter in experiment.parameters {
            parameters.set(parameter.name, small[parameter.name]);
        }
        let expected = (experiment.expected)(&parameters, 9);
        // In this process the program is the test binary. A test with the real program covers the server.
        for design in experiment.designs.iter().filter(|design| design.name != "roost-http") {
            let request = trial::Request {
                experiment: experiment.name.to_owned(),
                design: design.name.to_owned(),
                parameters: parameters.clone(),
                seed: 9,
            };
            let measured = trial::run(&request).unwrap();
            assert_eq!(measured.checksum, expected, "{} {}", experiment.name, design.name);
            for quantity in experiment.quantities {
                let value = crate::values::value(&measured, quantity);
                assert!(value.is_some(), "{} {}: {}", experiment.name, design.name, quantity.name);
            }
        }
    }
}
