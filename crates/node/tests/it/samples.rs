//! Tests of a node's samples: added and deleted at once, and the same after a restart.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use feed::{Command, Done, Label, Outcome, Refusal, SampleId, SetName};
use knn::{Bits, K};
use node::{Durability, Node, NodeOptions, OpenError, Request, SAMPLE_MEMORY_MIN};
use proptest::prelude::*;
use testkit::files::copy;
use testkit::proc::thread_processor_ns;

struct Subject {
    /// `None` only during a restart.
    node: Option<Node>,
    options: NodeOptions,
    runtime: tokio::runtime::Runtime,
    data: tempfile::TempDir,
}

impl Subject {
    fn new() -> Self {
        Self::with_memory(128 << 20)
    }

    fn with_memory(sample_memory: usize) -> Self {
        let data = tempfile::tempdir().unwrap();
        let mut options = NodeOptions::new(data.path());
        options.sample_memory = sample_memory;
        options.durability = Durability::Never;
        let node = Some(Node::open(&options).unwrap());
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        Self { node, options, runtime, data }
    }

    fn node(&self) -> &Node {
        self.node.as_ref().unwrap()
    }

    /// Reopens the node: after a checkpoint, or from the log alone like after a crash.
    fn restart(&mut self, crash: bool) {
        let copied = tempfile::tempdir().unwrap();
        if crash {
            copy(self.data.path(), copied.path());
            // A copy of a directory in use is refused; this one is not written to.
            std::fs::remove_file(copied.path().join("lock")).unwrap();
        }
        self.node = None;
        if crash {
            self.options.data = copied.path().to_owned();
            self.data = copied;
        }
        self.node = Some(Node::open(&self.options).unwrap());
    }

    fn submit(&self, commands: Vec<Command>) -> Vec<Done> {
        self.outcomes(commands).into_iter().map(Outcome::unwrap).collect()
    }

    fn outcomes(&self, commands: Vec<Command>) -> Vec<Outcome> {
        let requests = commands.into_iter().map(Request::from).collect();
        let replies = self.runtime.block_on(self.node().submit_all(requests)).unwrap();
        replies.into_iter().map(|reply| reply.outcome).collect()
    }

    /// Teaches until there is no memory for more; returns the ids.
    fn fill(&self, set: &str) -> Vec<SampleId> {
        let mut ids = Vec::new();
        loop {
            let outcomes =
                self.outcomes((0..2_000).map(|ones| teach(set, "x", ones % 9)).collect());
            for outcome in &outcomes {
                match outcome {
                    Ok(Done::SampleAdded { sample }) => ids.push(*sample),
                    other => assert_eq!(*other, Err(Refusal::SamplesFull)),
                }
            }
            if outcomes.last() == Some(&Err(Refusal::SamplesFull)) {
                return ids;
            }
        }
    }

    fn teach(&self, set: &str, label: &str, ones: usize) -> SampleId {
        match self.submit(vec![teach(set, label, ones)])[..] {
            [Done::SampleAdded { sample }] => sample,
            ref other => panic!("{other:?}"),
        }
    }

    /// Returns the nearest sample to this many ones: label, distance and id.
    fn nearest(&self, set: &str, ones: usize) -> Option<(String, u32, u64)> {
        let samples = self.node().samples(&SetName::parse(set).unwrap()).unwrap()?;
        let mut found = Vec::new();
        samples.nearest(&ramp(ones), K::new(1).unwrap(), &mut found);
        found.first().map(|one| (samples.name(one.label).to_owned(), one.distance, one.id))
    }

    /// Returns every taught sample, by id.
    fn held(&self) -> BTreeMap<u64, (String, String, Bits)> {
        let mut held = BTreeMap::new();
        for (set, samples) in self.node().sample_sets().unwrap() {
            for (id, label, bits) in samples.iter().filter(|one| !SampleId(one.0).is_built_in()) {
                let label = samples.name(label).to_owned();
                held.insert(id, (set.as_str().to_owned(), label, bits));
            }
        }
        held
    }
}

fn ramp(ones: usize) -> Bits {
    Bits::from_fn(|at| at < ones)
}

fn teach(set: &str, label: &str, ones: usize) -> Command {
    Command::AddSample {
        set: SetName::parse(set).unwrap(),
        label: Label::parse(label).unwrap(),
        bits: Box::new(ramp(ones).to_bytes().into()),
    }
}

#[test]
fn opening_says_how_many_groups_of_the_log_it_has_replayed() {
    let mut subject = Subject::new();
    assert_eq!(subject.options.progress.groups(), (0, 0));
    for ones in [100, 200, 300] {
        subject.teach("ramps", "low", ones);
    }
    subject.restart(true);
    assert_eq!(subject.options.progress.groups(), (3, 3));
    let progress = subject.options.progress.to_string();
    assert_eq!(progress, "replayed 3 of 3 groups of the log");
    subject.restart(false);
    assert_eq!(subject.options.progress.groups(), (0, 0));
}

#[test]
fn samples_added_and_deleted_count_at_once_and_after_a_restart() {
    let mut subject = Subject::new();
    assert_eq!(subject.nearest("ramps", 500), None);
    let low = subject.teach("ramps", "low", 100);
    let high = subject.teach("ramps", "high", 900);
    let digit = subject.teach("digits", "a ramp", 500);
    for crash in [false, true, false] {
        assert_eq!(subject.nearest("ramps", 490), Some(("low".to_owned(), 390, low.0)));
        assert_eq!(subject.nearest("ramps", 510), Some(("high".to_owned(), 390, high.0)));
        assert_eq!(subject.nearest("digits", 500), Some(("a ramp".to_owned(), 0, digit.0)));
        let digits = subject.node().samples(&SetName::digits()).unwrap().unwrap();
        assert_eq!(digits.len(), 2_340);
        drop(digits);
        subject.restart(crash);
    }
    for sample in [low, digit] {
        subject.submit(vec![Command::DeleteSample { sample }]);
    }
    for crash in [false, true] {
        assert_eq!(subject.nearest("ramps", 490), Some(("high".to_owned(), 410, high.0)));
        assert_ne!(subject.nearest("digits", 500).unwrap().1, 0);
        subject.restart(crash);
    }
    subject.submit(vec![Command::DeleteSample { sample: high }]);
    let names = |subject: &Subject| subject.node().sample_sets().unwrap().len();
    assert_eq!((subject.nearest("ramps", 0), names(&subject)), (None, 1));
    subject.restart(true);
    assert_eq!((subject.nearest("ramps", 0), names(&subject)), (None, 1));
}

#[test]
fn samples_of_both_kinds_are_shown_by_id() {
    let subject = Subject::new();
    let taught = subject.teach("ramps", "low", 100);
    let digits = knn::digits();
    let (_, label, bits) = digits.iter().find(|sample| sample.0 == 2_338).unwrap();
    for (id, expected) in [
        (taught.0, Some(("ramps", "low", ramp(100)))),
        (2_338, Some(("digits", digits.name(label), bits))),
        (2_339, None),
        (taught.0 + 1, None),
    ] {
        let found = subject.node().sample(SampleId(id));
        let bits = found.as_ref().map(|found| Bits::from_bytes(&found.bits.into()));
        let shown = found.as_ref().map(|one| (one.set.as_str(), one.label.as_str()));
        assert_eq!(shown.zip(bits), expected.map(|(set, label, bits)| ((set, label), bits)));
    }
}

#[test]
fn a_reader_sees_one_state_while_samples_are_added() {
    let subject = Subject::new();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let node = subject.node().clone();
        let done = &done;
        let reader = scope.spawn(move || {
            let mut seen = 0;
            while !done.load(Ordering::Acquire) {
                let Some(samples) = node.samples(&SetName::parse("ramps").unwrap()).unwrap() else {
                    continue;
                };
                // The samples are added in this order, so each state is a number of the first ones.
                let ones: u32 = samples.iter().map(|(_, _, bits)| bits.ones()).sum();
                let len = samples.len() as u32;
                assert_eq!(ones, len * (len - 1) / 2);
                assert!(len >= seen);
                seen = len;
            }
        });
        for first in (0..1_000).step_by(100) {
            subject.submit((first..first + 100).map(|n| teach("ramps", "x", n)).collect());
        }
        done.store(true, Ordering::Release);
        reader.join().unwrap();
    });
    assert_eq!(subject.held().len(), 1_000);
}

/// More than the minimum memory for samples: a third of it is for 5,957 of them.
const SOME_MEMORY: usize = SAMPLE_MEMORY_MIN + (3 << 20);

#[test]
fn samples_that_fit_are_kept_over_a_restart_and_deleted_ones_make_room() {
    let mut subject = Subject::with_memory(SOME_MEMORY);
    let ids = subject.fill("ramps");
    assert!((5_900..6_000).contains(&ids.len()), "{}", ids.len());
    for crash in [true, false] {
        subject.restart(crash);
        assert_eq!(subject.held().len(), ids.len());
        let refused = subject.outcomes(vec![teach("ramps", "x", 0)]);
        assert_eq!(refused, [Err(Refusal::SamplesFull)]);
    }
    let forget = |sample: &SampleId| Command::DeleteSample { sample: *sample };
    subject.submit(ids[..100].iter().map(forget).collect());
    assert_eq!(subject.fill("ramps").len(), 100);
    assert!(subject.node().sizes().sample_bytes <= SOME_MEMORY as u64 / 3);
}

#[test]
fn samples_that_do_not_fit_into_less_memory_are_refused_at_the_start_with_what_they_need() {
    let mut subject = Subject::with_memory(SOME_MEMORY);
    let count = subject.fill("ramps").len();
    for crash in [true, false] {
        subject.restart(crash);
        subject.node = None;
        let less = NodeOptions { sample_memory: SAMPLE_MEMORY_MIN, ..subject.options.clone() };
        let Err(error) = Node::open(&less) else { panic!("opened with too little memory") };
        assert!(error.to_string().contains("--sample-memory 18MiB"), "{error}");
        let OpenError::Samples(needed) = error else { panic!("{error}") };
        // The memory in the error is sufficient.
        subject.options.sample_memory = needed << 20;
        subject.node = Some(Node::open(&subject.options).unwrap());
        assert_eq!(subject.held().len(), count);
    }
}

#[test]
fn snapshots_of_the_past_hold_no_more_than_the_memory_for_samples() {
    let subject = Subject::with_memory(SOME_MEMORY);
    let ids = subject.fill("ramps");
    let snapshot = || subject.node().samples(&SetName::parse("ramps").unwrap());
    let mut snapshots = Vec::new();
    for pair in ids.chunks(2) {
        match snapshot() {
            Ok(held) => snapshots.push(held.unwrap()),
            Err(_) => break,
        }
        // One in the last part, which gets a new one, and one in another.
        subject.submit(pair.iter().map(|id| Command::DeleteSample { sample: *id }).collect());
        subject.submit(vec![teach("ramps", "x", 1); 2]);
        assert!(subject.node().sizes().sample_bytes <= SOME_MEMORY as u64);
    }
    assert!(snapshot().is_err() && subject.node().sample_sets().is_err());
    assert!(snapshots.len() > 3, "{}", snapshots.len());
    // Changes and reads of one sample still work meanwhile.
    subject.submit(vec![Command::DeleteSample { sample: *ids.last().unwrap() }]);
    assert!(subject.node().sample(SampleId(3)).is_some());
    snapshots.truncate(1);
    assert!(snapshot().is_ok(), "what was dropped holds nothing");
}

/// `cargo test --profile dist -p node --test it samples -- --ignored --nocapture a_million`
#[test]
#[ignore = "takes a minute: a measurement"]
fn measure_a_start_with_a_million_samples() {
    let mut subject = Subject::with_memory(1 << 30);
    for _ in 0..512 {
        subject.submit((0..2_048).map(|ones| teach("ramps", "x", ones % 1_024)).collect());
    }
    for _ in 0..3 {
        subject.node = None;
        let (start, before) = (std::time::Instant::now(), thread_processor_ns());
        subject.node = Some(Node::open(&subject.options).unwrap());
        let (elapsed, ms) = (start.elapsed(), (thread_processor_ns() - before) / 1_000_000);
        let bytes = subject.node().sizes().sample_bytes;
        println!("2^20 samples: {elapsed:?}, {ms} ms of a processor, {bytes} bytes");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn a_node_opened_again_holds_what_was_taught(
        steps in prop::collection::vec((any::<prop::sample::Index>(), 0..3usize, 0..6), 1..40),
    ) {
        let mut subject = Subject::new();
        let mut model: BTreeMap<u64, (String, String, Bits)> = BTreeMap::new();
        for (index, set, what) in steps {
            match what {
                0 => subject.restart(true),
                1 => subject.restart(false),
                2 if !model.is_empty() => {
                    let id = *model.keys().nth(index.index(model.len())).unwrap();
                    subject.submit(vec![Command::DeleteSample { sample: SampleId(id) }]);
                    model.remove(&id);
                }
                _ => {
                    let (set, ones) = (["a", "b", "digits"][set], index.index(1024));
                    let id = subject.teach(set, "label", ones);
                    model.insert(id.0, (set.to_owned(), "label".to_owned(), ramp(ones)));
                }
            }
            prop_assert_eq!(&subject.held(), &model);
        }
    }
}
