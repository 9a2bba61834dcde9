//! Tests of memory for samples: commands that are decided before they are logged get the results that they would get
//! one by one.

use feed::{
    Command, Done, Idempotency, Label, Outcome, Refusal, Reply, Request, SampleId, SetName,
};

use super::{World, register};
use crate::submission::{Answer, Changes, Submission};
use crate::views::samples::taught_bytes;

fn teach(label: &str) -> Request {
    let (set, label) = (SetName::parse("set").unwrap(), Label::parse(label).unwrap());
    Request::from(Command::AddSample { set, label, bits: Box::new([0; 128].into()) })
}

fn with_key(mut request: Request, key: u8, content: u8) -> Request {
    request.idempotency = Some(Idempotency { key: [key; 16], content: [content; 8] });
    request
}

fn delete(sample: SampleId) -> Request {
    Request::from(Command::DeleteSample { sample })
}

/// Returns a world with memory for this many samples that have one label.
fn world(samples: usize) -> World {
    // The label of the last one may be new.
    let labels = samples.min(2) * knn::LABEL_BYTES;
    World::with_samples(1 << 20, samples * knn::SAMPLE_BYTES + labels)
}

fn submission(world: &mut World, requests: Vec<Request>) -> Submission<usize> {
    world.submission(Changes::Requests(requests.into()))
}

fn replies(world: &World, ticket: usize) -> Vec<Reply> {
    match &world.answers.get(&ticket).unwrap().1 {
        Answer::Requests(replies) => replies.to_vec(),
        Answer::Keys(_) => panic!("these are commands"),
    }
}

fn run(world: &mut World, requests: Vec<Request>) -> Vec<Outcome> {
    let submission = submission(world, requests);
    let ticket = submission.ticket;
    world.work(vec![submission]);
    replies(world, ticket).into_iter().map(|reply| reply.outcome).collect()
}

/// Returns the ids of the added samples; the others were refused because the limit was reached.
#[track_caller]
fn taught(outcomes: &[Outcome]) -> Vec<SampleId> {
    let taught = outcomes.iter().filter_map(|outcome| match outcome {
        Ok(Done::SampleAdded { sample }) => Some(*sample),
        Err(Refusal::SamplesFull) => None,
        other => panic!("{other:?}"),
    });
    taught.collect()
}

#[track_caller]
fn check_within(world: &World) {
    assert!(taught_bytes(world.applier.facts()) <= world.applier.taught_bytes_max);
    assert_eq!(world.replayed(), world.applier.rows.inner, "a replay admits what was logged");
}

#[test]
fn samples_of_one_group_share_the_memory_that_is_left() {
    let mut world = world(10);
    let all: Vec<_> = (0..6).map(|_| submission(&mut world, vec![teach("x"); 4])).collect();
    world.work(all);
    let count = |ticket| {
        taught(&replies(&world, ticket).iter().map(|reply| reply.outcome).collect::<Vec<_>>()).len()
    };
    assert_eq!((0..6).map(count).sum::<usize>(), 10);
    check_within(&world);
    // Labels take memory, too.
    let mut world = self::world(10);
    let labels = (0..10).map(|label| teach(&label.to_string())).collect();
    let outcomes = run(&mut world, labels);
    assert!((5..10).contains(&taught(&outcomes).len()), "{outcomes:?}");
    check_within(&world);
}

#[test]
fn samples_beyond_the_limit_are_not_logged_and_change_nothing() {
    let mut world = world(0);
    let outcomes = run(&mut world, vec![teach("x"), register("anna"), teach("x")]);
    assert!(matches!(
        outcomes[..],
        [Err(Refusal::SamplesFull), Ok(Done::Registered(_)), Err(Refusal::SamplesFull)]
    ));
    assert_eq!(world.log.len(), 1);
    let before = world.applier.rows.inner.clone();
    assert_eq!(taught(&run(&mut world, vec![teach("x"); 4_096])), []);
    assert_eq!((world.log.len(), &world.applier.rows.inner), (1, &before));
}

#[test]
fn commands_of_one_submission_have_the_memory_that_those_before_them_left() {
    let mut world = world(3);
    let ids = taught(&run(&mut world, vec![teach("x"); 5]));
    assert_eq!(ids.len(), 3);
    let outcomes = run(
        &mut world,
        vec![teach("x"), delete(ids[0]), teach("x"), teach("x"), delete(ids[1]), teach("x")],
    );
    let refused = outcomes.iter().map(|outcome| *outcome == Err(Refusal::SamplesFull));
    assert_eq!(refused.collect::<Vec<_>>(), [true, false, false, true, false, false]);
    check_within(&world);
}

#[test]
fn a_retry_gets_the_first_result_even_if_the_limit_is_reached_since() {
    let mut world = world(1);
    let first = run(&mut world, vec![with_key(teach("x"), 1, 1)]);
    assert_eq!(taught(&first).len(), 1);
    let requests =
        [with_key(teach("x"), 1, 1), with_key(teach("x"), 1, 2), with_key(teach("x"), 2, 1)];
    let submission = submission(&mut world, requests.into());
    let ticket = submission.ticket;
    world.work(vec![submission]);
    let expected = [
        Reply { outcome: first[0], replayed: true },
        Reply { outcome: Err(Refusal::KeyReused), replayed: false },
        Reply { outcome: Err(Refusal::SamplesFull), replayed: false },
    ];
    assert_eq!(replies(&world, ticket), expected);
    // A refused command is not remembered.
    let sample = taught(&first)[0];
    run(&mut world, vec![delete(sample)]);
    assert_eq!(taught(&run(&mut world, vec![with_key(teach("x"), 2, 1)])).len(), 1);
}

#[test]
fn adding_samples_at_the_limit_delays_no_other_submissions() {
    let mut world = world(1);
    assert_eq!(taught(&run(&mut world, vec![teach("x")])).len(), 1);
    // Each pair needs a separate group, because the result of the pair before decides.
    let pairs = (0..100).flat_map(|_| [teach("x"), delete(SampleId(u64::MAX >> 1))]).collect();
    let others: Vec<_> = (0..100).map(|number| register(&format!("u{number}"))).collect();
    let before = world.log.len();
    let pairs = submission(&mut world, pairs);
    let others: Vec<_> = others.into_iter().map(|one| submission(&mut world, vec![one])).collect();
    let tickets: Vec<_> = others.iter().map(|one| one.ticket).collect();
    world.work([pairs].into_iter().chain(others).collect());
    let latest = tickets.iter().map(|ticket| world.answers.get(ticket).unwrap().0).max();
    assert_eq!(latest, Some(before + 1), "all in the first group");
    assert_eq!(world.log.len(), before + 100);
}
