//! All designs find the same nearest samples, and the experiments expect them.

use proptest::prelude::*;

use knn::{Bits, InstructionSet};

use super::inline::Inline;
use super::pool::Pool;
use super::tasks::Tasks;
use super::{Design as _, port, references, select};
use crate::experiment::{Experiment, THREADS};
use crate::{Parameters, trial};

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    runtime.worker_threads(2).enable_all().build().unwrap().block_on(future)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10))]

    #[test]
    fn designs_find_what_a_plain_sort_finds(bytes in prop::array::uniform32(any::<[u8; 4]>())) {
        let query = Bits::from_bytes(bytes.as_flattened().try_into().unwrap());
        let distance = |(id, bits): (u64, Bits)| (query.distance(&bits), id);
        let expected = select(references().into_iter().map(distance).collect());
        prop_assert_eq!(expected.len(), 15);
        for set in InstructionSet::ALL.into_iter().filter(|set| set.is_available()) {
            prop_assert_eq!(&Inline::with(set).unwrap().compute(&query), &expected, "{}", set);
        }
        prop_assert_eq!(&block_on(Tasks::start().nearest(query)), &expected, "tasks");
        prop_assert_eq!(&block_on(async { Pool::start(3).nearest(query).await }), &expected, "pool");
        let mut answer = Vec::new();
        port::serve(&query.to_bytes()[..], &mut answer).unwrap();
        let expected = expected.iter().flat_map(|(distance, id)| {
            [&distance.to_le_bytes()[..], &id.to_le_bytes()].concat()
        });
        prop_assert!(answer.into_iter().eq(expected), "port");
    }
}

/// Leaves out the port: in this process, the program is the test binary. A test with the real program covers the port.
#[test]
fn trials_of_all_designs_get_the_answers_of_the_model() {
    for name in ["recognizer", "recognizer-throughput"] {
        let experiment = Experiment::named(name).unwrap();
        let mut parameters = Parameters::default();
        parameters.set(THREADS, 2);
        parameters.set("requests", 20);
        if name == "recognizer" {
            parameters.set("rate", 2_000);
        }
        let expected = (experiment.expected)(&parameters, 9);
        let here =
            |design: &&crate::DesignInfo| (design.absent)().is_none() && design.name != "port";
        for design in experiment.designs.iter().filter(here) {
            let request = trial::Request {
                experiment: name.to_owned(),
                design: design.name.to_owned(),
                parameters: parameters.clone(),
                seed: 9,
            };
            let measured = trial::run(&request).unwrap();
            assert_eq!(measured.checksum, expected, "{name} {}", design.name);
            for quantity in experiment.quantities {
                assert!(crate::values::value(&measured, quantity).is_some(), "{}", quantity.name);
            }
        }
    }
}
