//! Tests of power losses while pictures are uploaded and deleted: the files of each picture that exists afterwards are
//! whole.
//!
//! The same colors are uploaded again and again, so files are removed and stored all the time.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command as Process, Stdio};
use std::time::Duration;

use feed::media::{Description, MediaCommand, MediaId};
use feed::{Bio, Command, Content, Draft, DueWork, Handle, Name, UserId, UserRef};
use media::Shape;
use node::{Node, NodeOptions, Request, Upload};
use powerloss::{Accounting, DIRECTORY, Disk, JOURNAL, Journal, Loss, SUPPORTED};
use rustix::process::Signal;
use testkit::{Random, gif};

/// Number of power losses on one data directory.
const LOSSES: u64 = 15;
/// Maximum number of calls that change files before a loss.
const CALLS_MAX: u64 = 600;
/// Number of colors of pictures, which is the number of files.
const COLORS: u64 = 4;
const USER: UserId = UserId(0);

fn options(data: &Path) -> NodeOptions {
    let mut options = NodeOptions::new(data.to_owned());
    // A small overlay makes checkpoints frequent.
    options.overlay_memory = 64 << 10;
    options
}

/// Process that loses power. Prints which uploads were acknowledged, and what it begins to delete.
#[test]
#[ignore = "a part of another test"]
fn uploads_and_deletes_until_the_power_is_lost() {
    let [data, seed] =
        ["ROOST_TEST_DATA", "ROOST_TEST_SEED"].map(|name| std::env::var(name).unwrap());
    let node = Node::open(&options(Path::new(&data))).unwrap();
    let mut random = Random::new(seed.parse().unwrap());
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let submit = |command| {
        let reply = runtime.block_on(node.submit(Request::from(command)));
        reply.unwrap().outcome
    };
    if node.facts().user(USER).is_none() {
        let handle = Handle::parse("ada").unwrap();
        let (name, bio) = (Name::default(), Bio::default());
        submit(Command::Register { handle, name, bio }).unwrap();
    }
    loop {
        let all = node.facts().media_of(USER, MediaId(0), 100);
        let unattached = node.facts().first_due(0, None, 100).into_iter();
        let unattached = unattached.filter_map(|due| match due.work {
            DueWork::RemoveMedia { media } => Some(media),
            _ => None,
        });
        let unattached: Vec<_> = unattached.collect();
        match random.below(8) {
            0 | 1 if !unattached.is_empty() => {
                let media = vec![*random.pick(&unattached)];
                let content = Content { media, ..Content::default() };
                let draft = Draft::of(UserRef::Id(USER), content);
                submit(Command::Publish(Box::new(draft))).unwrap();
            }
            2..5 if !unattached.is_empty() => {
                let media = *random.pick(&unattached);
                println!("deletes {}", media.0);
                let user = UserRef::Id(USER);
                submit(Command::Media(MediaCommand::Delete { user, media })).unwrap();
            }
            5 if all.len() > 10 => {
                let (media, _) = all.split_first().unwrap();
                let used = node.facts().media(*media).unwrap().used;
                if let feed::media::MediaUse::Post(post) = used {
                    println!("deletes {}", media.0);
                    submit(Command::DeletePost { post }).unwrap();
                }
            }
            6 => drop(node.collect_media(Duration::ZERO).unwrap()),
            _ => {
                let file = gif(random.below(COLORS) as u8);
                let (shape, description) = (Shape::Attachment, Description::default());
                let upload = Upload { owner: USER, file, shape, description, focus: None };
                let media = runtime.block_on(node.upload(upload)).unwrap();
                println!("added {}", media.0);
            }
        }
    }
}

/// A machine that loses power, and the changes acknowledged there.
struct Machine {
    folder: tempfile::TempDir,
    data: PathBuf,
    random: Random,
    /// Pictures that were added and not deleted.
    added: BTreeSet<u64>,
}

impl Machine {
    fn new(seed: u64) -> Self {
        // In memory if such a file system exists, because its syncs take no time.
        let memory = Path::new("/dev/shm");
        let folder =
            if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
        let folder = folder.unwrap();
        let data = folder.path().canonicalize().unwrap().join("data");
        fs::create_dir(&data).unwrap();
        Self { folder, data, random: Random::new(seed), added: BTreeSet::new() }
    }

    /// Runs until the power is lost, and leaves the directory in the resulting state. Returns the number of
    /// acknowledged uploads.
    fn lose_power(&mut self, accounting: Accounting) -> usize {
        let journal = Journal::create(&self.folder.path().join("journal")).unwrap();
        let mut disk = Disk::read(&self.data, accounting).unwrap();
        journal.die_after(self.random.between(1, CALLS_MAX));
        let this = std::env::current_exe().unwrap();
        let mut child = Process::new(&this);
        child.args(["--exact", "uploads_power::uploads_and_deletes_until_the_power_is_lost"]);
        child.args(["--ignored", "--nocapture"]).stdout(Stdio::piped());
        child.env("LD_PRELOAD", this.parent().unwrap().join("libpowerloss.so"));
        child.env(JOURNAL, journal.path()).env(DIRECTORY, &self.data);
        child.env("ROOST_TEST_DATA", &self.data);
        child.env("ROOST_TEST_SEED", self.random.next().to_string());
        let ended = child.spawn().unwrap().wait_with_output().unwrap();
        assert!(journal.is_loaded(), "the layer was not loaded");
        assert_eq!(journal.unknown_call(), None, "a system call that the layer does not know");
        let output = String::from_utf8(ended.stdout).unwrap();
        assert_eq!(ended.status.signal(), Some(Signal::KILL.as_raw()), "{output}");
        let mut uploads = 0;
        for line in output.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n')) {
            // The first line follows the words of the test harness.
            if let Some((_, id)) = line.split_once("added ") {
                self.added.insert(id.parse().unwrap());
                uploads += 1;
            } else if let Some((_, id)) = line.split_once("deletes ") {
                self.added.remove(&id.parse().unwrap());
            }
        }
        journal.read(|record| disk.apply(record));
        let loss = match self.random.below(10) {
            0 => Loss::Nothing,
            1 => Loss::Everything,
            2..4 => Loss::Before,
            _ => Loss::Parts(self.random.below(1_001) as u32),
        };
        disk.lose_power(loss, self.random.next()).unwrap();
        // The lock identifies its file, and this is another file.
        let _ = fs::remove_file(self.data.join("lock"));
        uploads
    }

    /// Returns the pictures that lack required data.
    fn damage(&self) -> Vec<String> {
        let node = Node::open(&options(&self.data)).unwrap();
        let all: BTreeSet<u64> =
            node.facts().media_of(USER, MediaId(0), 1_000).iter().map(|media| media.0).collect();
        let mut damage: Vec<_> =
            self.added.difference(&all).map(|media| format!("no picture {media}")).collect();
        node.close();
        drop(node);
        let report = node::verify(&self.data).unwrap();
        damage.extend(report.files.unwrap().damage);
        damage.extend(report.store.unwrap().damage);
        damage
    }
}

#[test]
fn a_picture_that_was_acknowledged_has_its_files_after_a_power_loss() {
    if !SUPPORTED {
        return testkit::skipped("power losses: the layer works on Linux on x86-64");
    }
    let machines = std::env::var("ROOST_POWER_MACHINES").map_or(1, |text| text.parse().unwrap());
    let mut uploads = 0;
    for seed in 0..machines {
        let mut machine = Machine::new(seed);
        for loss in 1..=LOSSES {
            uploads += machine.lose_power(Accounting::Honest);
            assert_eq!(machine.damage(), [""; 0], "after loss {loss} of machine {seed}");
        }
    }
    println!("{machines} machines, {LOSSES} power losses each, {uploads} uploads");
    assert!(uploads > LOSSES as usize, "the test tests less than it says");
}

#[test]
fn a_disk_that_forgets_names_loses_pictures() {
    if !SUPPORTED {
        return testkit::skipped("power losses: the layer works on Linux on x86-64");
    }
    let is_lost = |seed| {
        let mut machine = Machine::new(seed);
        (0..LOSSES).any(|_| {
            machine.lose_power(Accounting::ForgetsDirectories);
            let damage = std::panic::AssertUnwindSafe(|| machine.damage());
            std::panic::catch_unwind(damage).is_ok_and(|damage| !damage.is_empty())
        })
    };
    assert!((1..=5).any(is_lost), "no loss was found: the test cannot find any");
}
