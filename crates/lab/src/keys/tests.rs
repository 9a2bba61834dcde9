//! All designs give the answers of a plain map, for any order of operations.

use std::collections::HashMap;

use proptest::prelude::*;

use super::central::Central;
use super::locked::Locked;
use super::roost::Roost;
use super::sharded::Sharded;
use super::worker::Worker;
use super::{Client, Design, Value};
use crate::experiment::Experiment;
use crate::{Parameters, trial};

#[derive(Clone, Debug)]
enum Step {
    Create(u32),
    Read(u32, u32),
    Write(u32, u32, u8),
}

#[derive(Debug, PartialEq)]
enum Answer {
    Created,
    Read(Option<Value>),
    Written(bool),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        1 => (0..4_u32).prop_map(Step::Create),
        4 => (0..4_u32, 0..3_u32).prop_map(|(bucket, key)| Step::Read(bucket, key)),
        4 => (0..4_u32, 0..3_u32, any::<u8>())
            .prop_map(|(bucket, key, value)| Step::Write(bucket, key, value)),
    ]
}

/// Answers of clients that take turns, so that each client sees the changes of the others.
async fn answers<D: Design>(steps: &[(usize, Step)]) -> Vec<Answer> {
    let design = D::start(3).await;
    let mut clients = [0, 1, 2].map(|client| design.connect(client));
    let mut answers = Vec::new();
    for (client, step) in steps {
        let client = &mut clients[*client];
        answers.push(match *step {
            Step::Create(bucket) => {
                client.create(bucket).await;
                Answer::Created
            }
            Step::Read(bucket, key) => Answer::Read(client.read(bucket, key).await),
            Step::Write(bucket, key, value) => {
                Answer::Written(client.write(bucket, key, [value; 32]).await)
            }
        });
    }
    answers
}

fn model(steps: &[(usize, Step)]) -> Vec<Answer> {
    let mut buckets: HashMap<u32, HashMap<u32, Value>> = HashMap::new();
    let answer = |(_, step): &(usize, Step)| match *step {
        Step::Create(bucket) => {
            buckets.entry(bucket).or_default();
            Answer::Created
        }
        Step::Read(bucket, key) => {
            Answer::Read(buckets.get(&bucket).and_then(|values| values.get(&key).copied()))
        }
        Step::Write(bucket, key, value) => {
            let bucket = buckets.get_mut(&bucket);
            Answer::Written(bucket.map(|values| values.insert(key, [value; 32])).is_some())
        }
    };
    steps.iter().map(answer).collect()
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    runtime.worker_threads(2).enable_all().build().unwrap().block_on(future)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn designs_answer_as_a_plain_map(steps in prop::collection::vec((0..3_usize, step()), 1..60)) {
        let expected = model(&steps);
        prop_assert_eq!(&block_on(answers::<Central>(&steps)), &expected, "central");
        prop_assert_eq!(&block_on(answers::<Sharded>(&steps)), &expected, "sharded");
        prop_assert_eq!(&block_on(answers::<Worker>(&steps)), &expected, "worker");
        prop_assert_eq!(&block_on(answers::<Locked>(&steps)), &expected, "locked");
    }
}

proptest! {
    // The number of cases is small, because opening the engine takes most of the time.
    #![proptest_config(ProptestConfig::with_cases(6))]

    #[test]
    fn roost_answers_as_a_plain_map(steps in prop::collection::vec((0..3_usize, step()), 1..60)) {
        prop_assert_eq!(block_on(answers::<Roost>(&steps)), model(&steps));
    }
}

/// Compares the checksum of a trial with concurrent clients with that of the model.
#[test]
fn clients_that_run_at_the_same_time_get_the_answers_of_the_model() {
    let experiment = Experiment::named("keys").unwrap();
    for (clients, buckets, keys, reads) in [(7, 3, 5, 50), (10, 20, 10, 90), (4, 1, 4, 0)] {
        let mut parameters = Parameters::default();
        let values = [
            ("clients", clients),
            ("operations", 60),
            ("buckets", buckets),
            ("keys", keys),
            ("reads", reads),
            ("threads", 2),
        ];
        values.iter().for_each(|(name, value)| parameters.set(name, *value));
        let expected = (experiment.expected)(&parameters, 3);
        // In this process the program is the test binary. A test with the real program covers the server.
        let here = |design: &&crate::DesignInfo| {
            (design.absent)().is_none() && design.name != "roost-redis"
        };
        for design in experiment.designs.iter().filter(here) {
            let request = trial::Request {
                experiment: "keys".to_owned(),
                design: design.name.to_owned(),
                parameters: parameters.clone(),
                seed: 3,
            };
            let measured = trial::run(&request).unwrap();
            assert_eq!(measured.checksum, expected, "{}: {parameters}", design.name);
            assert_eq!(measured.operations, clients * 60);
        }
        if reads > 0 {
            assert_ne!(expected, (experiment.expected)(&parameters, 4), "the seed matters");
        }
    }
}
