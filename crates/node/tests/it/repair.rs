//! Tests of the repair of a damaged data directory: whatever is changed in one file, the new directory opens and has
//! everything, or lacks only what the repair reported. It contains no invented data.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use commitlog::disk::RealDisk;
use commitlog::{Position, SEGMENT_BYTES};
use node::{RepairError, Repaired};

use crate::damage::cases::cases;
use crate::damage::subject::{self, Answers};

/// Number of cases of a test run.
const CASES: usize = 80;

pub(crate) fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        // The lock's copy of a directory in use would be refused.
        if entry.file_name() == "lock" && from.join("log").is_dir() {
            continue;
        }
        let to = to.join(entry.file_name());
        match entry.path().is_dir() {
            true => copy(&entry.path(), &to),
            false => drop(fs::copy(entry.path(), to).unwrap()),
        }
    }
}

/// Repairs, and accepts the loss of groups of the log if necessary.
fn repair(from: &Path, to: &Path) -> Result<Repaired, RepairError> {
    match node::repair(from, to, (None, false), || Ok(())) {
        Err(RepairError::DropsGroups(lost)) => {
            assert!(!to.exists(), "nothing was made");
            let wrong = node::repair(from, to, (Some(lost.after + 1), false), || Ok(()));
            assert!(matches!(wrong, Err(RepairError::DropsGroups(_))), "{wrong:?}");
            let repaired = node::repair(from, to, (Some(lost.after), false), || Ok(()))?;
            assert!(!repaired.lost.is_empty());
            Ok(repaired)
        }
        repaired => repaired,
    }
}

/// Returns the users' data in a dump: texts, names, values.
fn made(dump: &str) -> BTreeSet<String> {
    let texts = dump.split("\"text\":\"").skip(1).map(|rest| rest.split('"').next().unwrap());
    let names = dump.split("User { handle: ").skip(1).map(|rest| rest.split(" }").next().unwrap());
    texts.chain(names).map(ToOwned::to_owned).collect()
}

#[test]
fn a_repaired_directory_holds_what_the_repair_says() {
    // In memory, because syncs to a disk would take most of the time.
    let memory = Path::new("/dev/shm");
    let folder = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    let folder = folder.unwrap();
    subject::prepare(folder.path());
    let whole = folder.path().join("whole");
    let answers = Answers::read(folder.path());
    let count =
        std::env::var("ROOST_DAMAGE_CASES").ok().map_or(CASES, |text| text.parse().unwrap());
    let (mut same, mut less, mut hopeless) = (0, 0, 0);
    for case in cases(&whole).into_iter().take(count) {
        let (data, to) = (folder.path().join("case"), folder.path().join("repaired"));
        for path in [&data, &to] {
            fs::remove_dir_all(path).ok();
        }
        copy(&whole, &data);
        case.apply(&data);
        let repaired = match repair(&data, &to) {
            Ok(repaired) => repaired,
            Err(RepairError::Hopeless) => {
                hopeless += 1;
                continue;
            }
            Err(error) => panic!("{case}: {error:?}"),
        };
        let read = subject::read_all(&to).unwrap_or_else(|error| panic!("{case}: {error:?}"));
        if repaired.lost.is_empty() {
            let is_whole = read == answers.all || read == answers.without_last_group;
            assert!(is_whole, "{case}: {}: {repaired:?}", answers.difference(&read));
            same += 1;
        } else {
            let more: Vec<_> = made(&read).difference(&made(&answers.all)).cloned().collect();
            let known = |text: &String| text.contains("lost_") || text.contains("name: Name(\"\")");
            assert!(more.iter().all(known), "{case}: {more:?}");
            less += 1;
        }
        let report = node::verify(&to).unwrap();
        assert_eq!(report.store.unwrap().damage, Vec::<String>::new(), "{case}: {repaired:?}");
        report.log.unwrap();
    }
    println!("{same} lost nothing, {less} something, {hopeless} need a backup");
    assert!(
        same > less + hopeless,
        "{same} lost nothing, {less} something, {hopeless} need a backup"
    );
}

/// The requested groups are kept, even if all are readable.
#[test]
fn groups_are_dropped_whenever_that_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let (data, to) = (folder.path().join("data"), folder.path().join("to"));
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let node = node::Node::open(&subject::options(&data)).unwrap();
    let set = |number: u8| {
        subject::set_key(&node, &runtime, kv::BucketId(0), (&[b'k', number], b"value"));
    };
    (0..10).for_each(set);
    // The copy is made without a last checkpoint, as after kill -9.
    copy(&data, &folder.path().join("killed"));
    let killed = folder.path().join("killed");
    node.close();
    drop(node);
    let repaired = node::repair(&killed, &to, (Some(6), false), || Ok(())).unwrap();
    assert_eq!(repaired.positions.1, 6);
    assert!(repaired.lost.iter().any(|line| line.contains("4 whole groups")), "{repaired:?}");
    let read = subject::read_all(&to).unwrap();
    let kept = (0..10).filter(|number| read.contains(&format!("[107, {number}]")));
    assert_eq!(kept.collect::<Vec<u8>>(), [0, 1, 2, 3, 4, 5], "{read}");
    // Groups that are in the rows can no longer be dropped.
    fs::remove_dir_all(&to).unwrap();
    let refused = node::repair(&data, &to, (Some(6), false), || Ok(()));
    match refused {
        Err(RepairError::Applied { after: 6, applied: 10 }) => assert!(!to.exists()),
        // The log has everything from its first group on.
        Ok(repaired) => assert_eq!(repaired.positions, (0, 6)),
        Err(error) => panic!("{error:?}"),
    }
}

/// Damage to adjacent blocks is one finding, however many they are.
#[test]
fn a_range_of_damaged_blocks_is_named_once_and_what_it_had_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    let (data, to) = (folder.path().join("data"), folder.path().join("to"));
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let node = node::Node::open(&subject::options(&data)).unwrap();
    let keys = 100_u32;
    let mut random = 1_u64;
    // Values that cannot be compressed.
    let mut byte = || {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (random >> 56) as u8
    };
    for number in 0..keys {
        let value: Vec<u8> = (0..1_000).map(|_| byte()).collect();
        let row = (&number.to_be_bytes()[..], &value[..]);
        subject::set_key(&node, &runtime, kv::BucketId(0), row);
    }
    node.close();
    drop(node);
    let log = data.join("log");
    let applied = Position(node::verify(&data).unwrap().store.unwrap().applied);
    fs::remove_dir_all(&log).unwrap();
    commitlog::begin_after(&RealDisk, &log, applied, SEGMENT_BYTES).unwrap();
    let tables = fs::read_dir(data.join("store/facts/keyspaces/1/tables")).unwrap();
    let longest = tables.map(|table| table.unwrap().path());
    let path = longest.max_by_key(|path| path.metadata().unwrap().len()).unwrap();
    let mut content = fs::read(&path).unwrap();
    let part = content.len() / 4..content.len() / 2;
    assert!(part.len() > 12_000, "{part:?}");
    content[part].fill(0x55);
    fs::write(&path, content).unwrap();
    let lost = repair(&data, &to).unwrap().lost;
    let named = lost.iter().filter(|line| line.contains(path.to_str().unwrap()));
    assert_eq!(named.clone().count(), 1, "{lost:#?}");
    let is_range = |line: &String| line.contains("more faults after it: rows after the key ");
    assert!(named.clone().all(is_range), "{lost:#?}");
    let counted = format!(" of {keys} keys");
    assert!(lost.iter().any(|line| line.ends_with(&counted)), "{lost:#?}");
}

/// Rows come from the tables alone when the log is missing: the newest of several versions counts, and damage loses no
/// more than reported.
#[test]
fn without_the_log_the_newest_rows_are_kept_and_the_others_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let (data, to) = (folder.path().join("data"), folder.path().join("to"));
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    for round in 0..3 {
        let node = node::Node::open(&subject::options(&data)).unwrap();
        subject::fill(&node, &runtime, round);
        node.close();
    }
    let log = data.join("log");
    let applied = Position(node::verify(&data).unwrap().store.unwrap().applied);
    fs::remove_dir_all(&log).unwrap();
    commitlog::begin_after(&RealDisk, &log, applied, SEGMENT_BYTES).unwrap();
    let whole = subject::read_all(&data).unwrap();
    let repaired = repair(&data, &to).unwrap();
    assert_eq!((repaired.lost, subject::read_all(&to).unwrap()), (vec![], whole.clone()));
    let mut tables: Vec<_> =
        fs::read_dir(data.join("store/facts/keyspaces/1/tables")).unwrap().collect();
    tables.retain(|table| table.as_ref().unwrap().metadata().unwrap().len() > 2_048);
    assert!(tables.len() >= 3);
    for table in tables {
        let path = table.unwrap().path();
        let content = fs::read(&path).unwrap();
        for part in 1..4 {
            let mut damaged = content.clone();
            let at = content.len() * part / 6;
            damaged[at..at + 64].fill(0x55);
            fs::write(&path, damaged).unwrap();
            fs::remove_dir_all(&to).unwrap();
            let repaired = match repair(&data, &to) {
                Err(RepairError::Hopeless) => {
                    fs::create_dir(&to).unwrap();
                    continue;
                }
                repaired => repaired.unwrap(),
            };
            let read = subject::read_all(&to).unwrap();
            // The repaired rows may be those of an older file, or all may be those of an earlier checkpoint.
            let is_said = |line: &String| {
                line.contains("may be out of date") || line.contains("the log is kept up to")
            };
            let is_old = repaired.lost.iter().any(is_said);
            let more: Vec<_> = made(&read).difference(&made(&whole)).cloned().collect();
            assert!(is_old || more.is_empty() || !repaired.lost.is_empty(), "{more:?}");
            assert!(read == whole || !repaired.lost.is_empty(), "{path:?} {at}");
            // Keys are written in every round.
            for line in read.lines().filter(|line| line.starts_with("Some([") && !is_old) {
                assert!(whole.contains(line), "{path:?} {at}: {line}");
            }
        }
        fs::write(&path, content).unwrap();
    }
}
