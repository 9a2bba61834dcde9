//! Tests of crashes: a process that makes checkpoints is killed at random moments, repeatedly. After reopening, the
//! rows are exactly those of one checkpoint: the last one that finished, or the one that was running. Ephemeral rows
//! are those of the same checkpoint or of the one that was running.

use std::path::Path;
use std::process::Command;

use feed::{
    Bio, Command as Asked, Done, DueWork, Handle, Lifetime, Name, Outcome, PostText,
    StampedCommand, StoryId, Txn, UserId, UserRef, apply,
};
use rows::{
    NameTable, PointTable, Rows, RowsMut, SetTable, Span, Stamp, StampClock, Totals, Value,
};
use store::{Store, StoreOptions};
use testkit::MemoryRows;
use testkit::process::Process;

const OPTIONS: StoreOptions = StoreOptions { cache_bytes: 4 << 20, bucket_bytes: 4 << 20 };
const CHILD_DIR: &str = "ROOST_STORE_CRASH_DIR";
const ROWS: u64 = 3_000;
const KILLS: u64 = 24;

/// Writes every row with the number of the generation. Even and odd generations have different items, so each
/// checkpoint also removes the items of the previous generation.
fn write(rows: &mut impl RowsMut, generation: u64) {
    for row in 0..ROWS {
        let value = Value::from_slice(&generation.to_le_bytes());
        rows.put_point(PointTable::Post, row << 20, Some(value.clone()));
        rows.put_member(SetTable::Followers, row % 50, 2 * row + generation % 2, Some(generation));
        rows.put_member(SetTable::Followers, row % 50, 2 * row + (generation + 1) % 2, None);
        rows.put_name(NameTable::Handle, &row.to_be_bytes(), Some(value.clone()));
        rows.put_point(PointTable::StoryText, row << 20, Some(value));
        rows.put_member(SetTable::Seen, row % 50, 2 * row + generation % 2, Some(generation));
        rows.put_member(SetTable::Seen, row % 50, 2 * row + (generation + 1) % 2, None);
        // These owners are new in each generation.
        let owner = |generation: u64| (generation << 32) | (row % 50);
        rows.put_member(SetTable::StoryViews, owner(generation), row, Some(generation));
        rows.put_member(SetTable::StoryViews, owner(generation - 1), row, None);
        rows.put_member(SetTable::Reactions, owner(generation), row, Some(generation));
        rows.put_member(SetTable::Reactions, owner(generation - 1), row, None);
    }
    rows.put_totals(Totals { posts: generation, ..Totals::default() });
}

/// Checks that the rows are exactly those of the generation of the applied position.
fn check(rows: &impl Rows, generation: u64) {
    let value = (generation > 0).then(|| Value::from_slice(&generation.to_le_bytes()));
    assert_eq!(rows.totals().posts, generation);
    for row in 0..ROWS {
        assert_eq!(rows.point(PointTable::Post, row << 20), value);
        assert_eq!(rows.name(NameTable::Handle, &row.to_be_bytes()), value);
    }
    check_dense(rows, SetTable::Followers, generation);
    check_sparse(rows, SetTable::Reactions, generation);
}

/// Checks that the ephemeral rows are exactly those of one generation, and returns the generation.
fn check_ephemeral(rows: &impl Rows) -> u64 {
    let first = rows.point(PointTable::StoryText, 0);
    let generation =
        first.as_ref().map_or(0, |value| u64::from_le_bytes(value[..].try_into().unwrap()));
    for row in 0..ROWS {
        assert_eq!(rows.point(PointTable::StoryText, row << 20), first);
    }
    check_dense(rows, SetTable::Seen, generation);
    check_sparse(rows, SetTable::StoryViews, generation);
    generation
}

fn check_dense(rows: &impl Rows, table: SetTable, generation: u64) {
    for owner in 0..50 {
        let found = rows.members(table, owner, Span::ALL);
        let all = (0..ROWS).filter(|row| row % 50 == owner && generation > 0);
        let all = all.map(|row| (2 * row + generation % 2, generation));
        assert_eq!(found, all.collect::<Vec<_>>());
    }
}

/// Checks that the owners of `generation` have their rows, and that those of the generations before and after have
/// none.
fn check_sparse(rows: &impl Rows, table: SetTable, generation: u64) {
    for other in generation.saturating_sub(1)..=generation + 1 {
        for owner in 0..50 {
            let found = rows.members(table, (other << 32) | owner, Span::ALL);
            let present = other == generation && generation > 0;
            let all = (0..ROWS).filter(|row| present && row % 50 == owner);
            assert_eq!(found, all.map(|row| (row, generation)).collect::<Vec<_>>());
        }
    }
}

/// Child process: makes checkpoints endlessly, and prints the start and end of each.
#[test]
#[ignore = "run by the other test, which kills it"]
fn child() {
    let Ok(dir) = std::env::var(CHILD_DIR) else { return };
    let (mut writer, mut generation) = Store::open(Path::new(&dir), OPTIONS).unwrap();
    println!("\nopened {generation}");
    loop {
        generation += 1;
        write(&mut writer, generation);
        let checkpoint = writer.freeze(generation).unwrap();
        println!("\nbegin {generation}");
        checkpoint.run().unwrap();
        println!("\nend {generation}");
    }
}

/// Kills the child a short time after the `nth` line that it prints. Returns the last generation that it began, and the
/// last that it ended.
fn run_and_kill(dir: &Path, nth: usize, spin: u64) -> (u64, u64) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "crash::child", "--ignored", "--nocapture"]).env(CHILD_DIR, dir);
    let child = Process::start(&mut command);
    assert!(
        child.said_count(|line| parsed(line).is_some(), nth),
        "the child goes on until it is killed"
    );
    for _ in 0..spin {
        std::hint::spin_loop();
    }
    // Lines that it printed before it died count too.
    let output = child.kill().out;
    let (mut began, mut ended) = (0, 0);
    for (word, generation) in output.lines().filter_map(parsed) {
        match word {
            "opened" => (began, ended) = (generation, generation),
            "begin" => began = generation,
            _ => ended = generation,
        }
    }
    (began, ended)
}

/// Parses a line of the child: the event and its generation.
fn parsed(line: &str) -> Option<(&str, u64)> {
    let (word, generation) = line.split_once(' ')?;
    let known = ["opened", "begin", "end"].contains(&word);
    Some((word, generation.parse().ok()?)).filter(|_| known)
}

#[test]
fn a_process_killed_at_any_moment_leaves_the_rows_of_exactly_one_checkpoint() {
    let dir = tempfile::tempdir().unwrap();
    let mut noise = 0x2545_f491_4f6c_dd1du64;
    let (mut at_last, mut ephemeral_at_last) = (0, 0);
    for round in 0..KILLS {
        noise ^= noise << 13;
        noise ^= noise >> 7;
        noise ^= noise << 17;
        let (began, ended) =
            run_and_kill(dir.path(), 1 + noise as usize % 6, (noise >> 32) % 1_000_000);
        let (writer, applied) = Store::open(dir.path(), OPTIONS).unwrap();
        assert!(
            (ended..=began.max(ended)).contains(&applied) && applied >= at_last,
            "round {round}: began {began}, ended {ended}, found {applied}, before {at_last}"
        );
        check(&writer, applied);
        let ephemeral = check_ephemeral(&writer);
        // After an earlier kill, the ephemeral rows may be newer.
        assert!(
            (applied..=began.max(applied).max(ephemeral_at_last)).contains(&ephemeral),
            "round {round}: began {began}, applied {applied}, ephemeral rows of {ephemeral}"
        );
        (at_last, ephemeral_at_last) = (applied, ephemeral);
    }
    assert!(at_last > KILLS / 2, "the child got work done between kills: {at_last}");
}

/// Returns commands of two friends who post, view and delete stories, which expire and are swept.
fn history() -> Vec<StampedCommand> {
    let mut clock = StampClock::new(Stamp(0));
    let mut now_ms = rows::EPOCH_MS;
    let mut log: Vec<StampedCommand> = Vec::new();
    let mut ask = |wait_ms: u64, command| {
        now_ms += 1 + wait_ms;
        log.push(StampedCommand { stamp: clock.next(now_ms), idempotency: None, command });
        StoryId(log[log.len() - 1].stamp.0)
    };
    let id = |user| UserRef::Id(UserId(user));
    for handle in ["ada", "bob"] {
        let handle = Handle::parse(handle).unwrap();
        ask(0, Asked::Register { handle, name: Name::default(), bio: Bio::default() });
    }
    ask(0, Asked::Befriend { user: id(0), other: id(1) });
    for round in 0..4 {
        let stories = [1, 2, 60].map(|secs| {
            let text = PostText::parse(&format!("{secs} s in round {round}")).unwrap();
            let life = Lifetime::from_secs(secs).unwrap();
            ask(0, Asked::PostStory { author: id(0), text, life })
        });
        for story in stories {
            ask(0, Asked::ViewStory { story, viewer: id(1) });
            ask(0, Asked::ViewStory { story, viewer: id(1) });
        }
        let removal = |story| DueWork::RemoveStory { story };
        let expiry = |story: StoryId, secs: u64| removal(story).at(story.unix_ms() + secs * 1_000);
        let story = stories[round % 3];
        let deleted = ask(500, Asked::DeleteStory { story });
        ask(2_000, Asked::DoDue(removal(story).at(deleted.unix_ms())));
        for due in [expiry(stories[0], 1), expiry(stories[1], 2)] {
            ask(0, Asked::DoDue(due));
        }
    }
    log
}

fn apply_all(rows: &mut dyn RowsMut, entries: &[StampedCommand]) -> Vec<Outcome> {
    let apply = |entry| apply(&mut Txn::new(rows), entry, &mut Vec::new()).outcome;
    entries.iter().map(apply).collect()
}

fn check_equal(found: &impl Rows, expected: &impl Rows, log: &[StampedCommand]) {
    assert_eq!(found.totals(), expected.totals());
    let seconds = log.iter().map(|entry| entry.stamp.unix_second() + 60);
    let stamps = log.iter().map(|entry| entry.stamp.0);
    let seconds = seconds.flat_map(|end| end - 60..=end);
    for key in (0..2).chain(stamps).chain(seconds) {
        for table in PointTable::ALL {
            assert_eq!(found.point(table, key), expected.point(table, key), "{table:?} {key}");
        }
        for table in SetTable::ALL {
            let [found, expected] =
                [found as &dyn Rows, expected].map(|rows| rows.members(table, key, Span::ALL));
            assert_eq!(found, expected, "{table:?} {key}");
        }
    }
}

/// Makes a checkpoint of `log` up to `applied`, then one up to `ahead` that fails between the ephemeral rows and the
/// facts. Then reopens the store and replays the rest.
fn check_cut_between(log: &[StampedCommand], applied: usize, ahead: usize) {
    let mut straight = MemoryRows::default();
    let outcomes = apply_all(&mut straight, log);
    let dir = tempfile::tempdir().unwrap();
    let (mut writer, _) = Store::open(dir.path(), OPTIONS).unwrap();
    apply_all(&mut writer, &log[..applied]);
    writer.freeze(applied as u64).unwrap().run().unwrap();
    apply_all(&mut writer, &log[applied..ahead]);
    let facts = dir.path().join("facts/keyspaces/1/tables");
    let away = dir.path().join("facts/keyspaces/1/tables.away");
    std::fs::rename(&facts, &away).unwrap();
    assert!(writer.freeze(ahead as u64).unwrap().run().is_err());
    drop(writer);
    std::fs::rename(&away, &facts).unwrap();
    let (mut writer, found) = Store::open(dir.path(), OPTIONS).unwrap();
    assert_eq!(found, applied as u64);
    assert_eq!(apply_all(&mut writer, &log[applied..]), outcomes[applied..]);
    check_equal(&writer, &straight, log);
    writer.freeze(log.len() as u64).unwrap().run().unwrap();
    check_equal(&writer, &straight, log);
}

#[test]
fn a_checkpoint_cut_between_ephemeral_rows_and_facts_is_replayed_to_the_same_rows() {
    let log = history();
    let mut swept = MemoryRows::default();
    let swept = apply_all(&mut swept, &log);
    assert!(swept.iter().filter(|done| **done == Ok(Done::DueDone)).count() > 3);
    for applied in (1..log.len()).step_by(9) {
        for ahead in (applied + 1..=log.len()).step_by(11) {
            check_cut_between(&log, applied, ahead);
        }
    }
}
