//! A process that makes checkpoints is killed at random moments, again and again. Whatever the
//! moment, reopening finds exactly the rows of one checkpoint: the last that finished, or the one
//! that was under way.

#![allow(clippy::unwrap_used)]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use feed::{NameTable, PointTable, Rows, RowsMut, SetTable, Span, Totals, Value};
use store::{Store, StoreOptions};

const OPTIONS: StoreOptions = StoreOptions { cache_bytes: 4 << 20 };
const CHILD_DIR: &str = "ROOST_STORE_CRASH_DIR";
const ROWS: u64 = 3_000;
const KILLS: u64 = 24;

/// Writes every row with the number of the generation; items of even and odd generations differ,
/// so each checkpoint also removes what the one before it wrote.
fn write(rows: &mut impl RowsMut, generation: u64) {
    for row in 0..ROWS {
        let value = Value::from_slice(&generation.to_le_bytes());
        rows.put_point(PointTable::Post, row << 20, Some(value.clone()));
        rows.put_member(SetTable::Followers, row % 50, 2 * row + generation % 2, Some(generation));
        rows.put_member(SetTable::Followers, row % 50, 2 * row + (generation + 1) % 2, None);
        rows.put_name(NameTable::Handle, &row.to_be_bytes(), Some(value));
    }
    rows.put_totals(Totals { posts: generation, ..Totals::default() });
}

/// All rows have the generation of the applied position, none is missing, none is left over.
fn check(rows: &impl Rows, generation: u64) {
    let value = (generation > 0).then(|| Value::from_slice(&generation.to_le_bytes()));
    assert_eq!(rows.totals().posts, generation);
    for row in 0..ROWS {
        assert_eq!(rows.point(PointTable::Post, row << 20), value);
        assert_eq!(rows.name(NameTable::Handle, &row.to_be_bytes()), value);
    }
    for owner in 0..50 {
        let found = rows.members(SetTable::Followers, owner, Span::ALL);
        let all = (0..ROWS).filter(|row| row % 50 == owner && generation > 0);
        let all = all.map(|row| (2 * row + generation % 2, generation));
        assert_eq!(found, all.collect::<Vec<_>>());
    }
}

/// The child: checkpoints without end, telling each start and end.
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

fn spawn(dir: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child", "--ignored", "--nocapture"])
        .env(CHILD_DIR, dir)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Kills the child some busy moments after the `nth` line it prints; returns the last generation
/// it began and the last it ended.
fn run_and_kill(dir: &Path, nth: u64, spin: u64) -> (u64, u64) {
    let mut child = spawn(dir);
    let (mut began, mut ended, mut lines) = (0, 0, 0);
    let mut output = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut told = |line: String| {
        let Some((word, generation)) = line.split_once(' ') else { return false };
        let Ok(generation) = generation.parse() else { return false };
        match word {
            "opened" => (began, ended) = (generation, generation),
            "begin" => began = generation,
            "end" => ended = generation,
            _ => return false,
        }
        true
    };
    while lines < nth {
        let line = output.next().expect("the child goes on until it is killed").unwrap();
        lines += u64::from(told(line));
    }
    for _ in 0..spin {
        std::hint::spin_loop();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    // What it had printed before it died counts too.
    output.map_while(Result::ok).for_each(|line| {
        told(line);
    });
    (began, ended)
}

#[test]
fn a_process_killed_at_any_moment_leaves_the_rows_of_exactly_one_checkpoint() {
    let dir = tempfile::tempdir().unwrap();
    let mut noise = 0x2545_f491_4f6c_dd1du64;
    let mut at_last = 0;
    for round in 0..KILLS {
        noise ^= noise << 13;
        noise ^= noise >> 7;
        noise ^= noise << 17;
        let (began, ended) = run_and_kill(dir.path(), 1 + noise % 6, (noise >> 32) % 1_000_000);
        let (writer, applied) = Store::open(dir.path(), OPTIONS).unwrap();
        assert!(
            (ended..=began.max(ended)).contains(&applied) && applied >= at_last,
            "round {round}: began {began}, ended {ended}, found {applied}, before {at_last}"
        );
        check(&writer, applied);
        at_last = applied;
    }
    assert!(at_last > KILLS / 2, "the child got work done between kills: {at_last}");
}
