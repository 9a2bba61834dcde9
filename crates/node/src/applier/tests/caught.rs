//! Tests of commands whose rule panics.

use std::panic::{AssertUnwindSafe, catch_unwind};

use feed::{Done, Outcome, Refusal, UserId, UserRef};

use rows::{PointTable, PutRows as _, Rows as _, outside_rules};

use super::*;
use crate::applier::HashedRows;
use crate::applier::caught::Applied;
use crate::applier::fault::of_thread::{COST_TEXT, TEXT};

const FAILED: KeyAnswer = KeyAnswer::Refused(KeyRefusal::Internal);

fn register(handle: &str) -> Request {
    let handle = Handle::parse(handle).unwrap();
    Command::Register { handle, name: Name::default(), bio: Bio::default() }.into()
}

impl World {
    fn requests(&mut self, requests: Vec<Request>) -> Submission<usize> {
        self.submission(Changes::Requests(requests.into()))
    }

    fn outcomes(&self, ticket: usize) -> Vec<Outcome> {
        match &self.answers.get(&ticket).unwrap().1 {
            Answer::Requests(replies) => replies.iter().map(|reply| reply.outcome).collect(),
            Answer::Keys(_) => panic!("these are commands"),
        }
    }
}

#[test]
fn a_command_whose_rule_panics_changes_nothing_and_those_after_it_are_applied() {
    TEXT.set(Some("boom"));
    let mut world = World::new(1 << 20);
    let users = world.requests(vec![register("ann"), register("boom"), register("bob")]);
    let read = |before| ReadAt { before, bucket: ZERO, keys: vec![b"a"[..].into()] };
    let ops = [put("a", b"1"), put("boom", b"2"), put("b", b"3")];
    let keys = world.keys(&ops, vec![read(0), read(1)]);
    let others = world.keys(&[put("c", b"4")], vec![]);
    let tickets = [users.ticket, keys.ticket, others.ticket];
    world.work(vec![users, keys, others]);
    let ids: Vec<_> = world.outcomes(tickets[0]);
    assert_eq!(ids[1], Err(Refusal::Internal));
    let numbers = ids.iter().filter_map(|id| match id {
        Ok(Done::Registered(user)) => Some(user.0),
        _ => None,
    });
    assert_eq!(numbers.collect::<Vec<_>>(), [0, 1], "the next user has the next id");
    assert_eq!(world.key_answers(tickets[1]), [FAILED, FAILED, FAILED], "nothing is half done");
    match &world.answers[&tickets[1]].1 {
        Answer::Keys(replies) => assert!(replies.reads.iter().all(|read| read.rows.is_none())),
        Answer::Requests(_) => panic!("these are keys"),
    }
    assert_ne!(world.key_answers(tickets[2]), [FAILED]);
    let facts = world.applier.keys();
    let exists =
        ["a", "b", "boom", "c"].map(|key| facts.key(kv::Space(0), key.as_bytes()).is_some());
    assert_eq!(exists, [false, false, false, true]);
    assert_eq!(world.applier.failures(), 2);
    assert_eq!(world.replayed(), world.applier.rows.inner, "a replay has the same rows");
    // Stamps of failed commands are used, also after a start whose rows include them.
    let last = world.requests(vec![register("boom")]);
    world.work(vec![last]);
    let (now_ms, rows) = (world.now_ms, world.applier.rows.inner.clone());
    let restarted = Applier::<_, usize>::new(rows, MemoryBudget::new(1), 0);
    assert_eq!(restarted.last_ms_of(&[], now_ms), world.applier.last_ms_of(&[], now_ms));
    assert_eq!(world.replayed(), world.applier.rows.inner);
}

#[test]
fn what_panics_before_the_log_is_refused_and_not_logged() {
    COST_TEXT.set(Some("boom"));
    let mut world = World::new(1 << 20);
    let users = world.requests(vec![register("ann"), register("boom"), register("bob")]);
    let read = ReadAt { before: 1, bucket: ZERO, keys: vec![b"a"[..].into()] };
    let keys = world.keys(&[put("a", b"1"), set_range("boom", 3)], vec![read]);
    let others = world.keys(&[put("c", b"4")], vec![]);
    let tickets = [users.ticket, keys.ticket, others.ticket];
    world.work(vec![users, keys, others]);
    let outcomes = world.outcomes(tickets[0]);
    assert!(outcomes[0].is_ok() && outcomes[2].is_ok());
    assert_eq!(outcomes[1], Err(Refusal::Internal));
    assert_eq!(world.key_answers(tickets[1]), [FAILED, FAILED]);
    assert_ne!(world.key_answers(tickets[2]), [FAILED]);
    let has_boom = |payload: &[u8]| payload.windows(4).any(|word| word == b"boom");
    assert!(!world.log.iter().any(|(_, payload)| has_boom(payload)), "it is not logged");
    assert_eq!(world.applier.failures(), 2);
    assert_eq!(world.replayed(), world.applier.rows.inner);
    // A command that fails before the log is not logged.
    let (logged, last) = (world.log.len(), world.requests(vec![register("boom")]));
    let ticket = last.ticket;
    world.work(vec![last]);
    assert_eq!((world.outcomes(ticket), world.log.len()), (vec![Err(Refusal::Internal)], logged));
}

/// Caches are valid while these numbers are the same.
#[test]
fn numbers_that_a_reader_may_have_seen_of_a_command_that_failed_are_not_used_again() {
    TEXT.set(Some("DeleteUser"));
    let mut world = World::new(1 << 20);
    let delete = || Command::DeleteUser { user: UserRef::Id(UserId(0)) }.into();
    let users = world.requests(vec![register("ann"), delete()]);
    let ticket = users.ticket;
    world.work(vec![users]);
    assert_eq!(world.outcomes(ticket)[1], Err(Refusal::Internal));
    let totals = world.applier.facts().totals();
    assert_eq!((totals.users_deleted, totals.hidings), (0, 2));
    assert_eq!(world.replayed(), world.applier.rows.inner);
}

/// The rows may be wrong, or another start may be able to read them.
#[test]
fn a_panic_that_is_not_of_the_rules_is_passed_on() {
    type Rows = HashedRows<MemoryRows>;
    let apply = |run: fn(&mut Rows)| {
        let mut world = World::new(1 << 20);
        let users = world.requests(vec![register("ann")]);
        world.work(vec![users]);
        let command = register("bob");
        let by_rules = || {
            world.applier.by_rules(Applied::Command(&command.command), Stamp(u64::MAX >> 1), run)
        };
        catch_unwind(AssertUnwindSafe(by_rules))
    };
    assert!(apply(|_| panic!("a bug of the rules")).is_ok_and(|done| done.is_none()));
    let each = |rows: &mut Rows| rows.each_point(PointTable::User, &mut |_, _| panic!("a bug"));
    assert!(apply(each).is_ok_and(|done| done.is_none()), "in a callback of the rules");
    assert!(apply(|_| outside_rules(|| panic!("a bug of the store"))).is_err());
    let malformed = |rows: &mut Rows| {
        rows.put_point(PointTable::User, 0, Some(rows::Value::from_slice(&[0xff])));
        drop(feed::Facts::new(&*rows).stored_user(UserId(0)));
    };
    assert!(apply(malformed).is_err());
    assert!(apply(|_| std::panic::resume_unwind(Box::new(()))).is_ok_and(|done| done.is_none()));
}

#[test]
fn a_report_names_a_command_without_what_is_in_it() {
    let register = Command::Register {
        handle: Handle::parse("secret").unwrap(),
        name: Name::default(),
        bio: Bio::default(),
    };
    assert_eq!(Applied::Command(&register).name(), "Register");
    let ops: KeyOps = [put("secret", b"secret"), set_range("secret", 0)].into_iter().collect();
    assert_eq!(Applied::Ops(&ops).name(), "Put SetRange");
}
