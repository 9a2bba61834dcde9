//! Tests of uploaded pictures: converted, stored in files that are durable before the picture exists, and removed only
//! when nothing needs them.

use std::io::{BufRead as _, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use feed::media::{Description, MediaCommand, MediaDone, MediaId, MediaUse, ProfilePicture};
use feed::{Bio, Command, Content, Done, Draft, Handle, Name, Refusal, Stamp, UserId, UserRef};
use media::Shape;
use node::{
    Clock, Durability, FileError, Node, NodeOptions, Request, RestoreOptions, Restored, Upload,
    UploadError,
};
use testkit::files::files;
use testkit::gif;
use tokio::runtime::Runtime;

const START_MS: u64 = 1_800_000_000_000;
const DAY_MS: u64 = 86_400_000;

struct Subject {
    node: Node,
    options: NodeOptions,
    clock: Arc<AtomicU64>,
    runtime: Runtime,
    data: tempfile::TempDir,
}

impl Subject {
    fn new(change: impl Fn(&mut NodeOptions)) -> Self {
        let data = tempfile::tempdir().unwrap();
        let clock = Arc::new(AtomicU64::new(START_MS));
        let mut options = NodeOptions::new(data.path().join("data"));
        options.durability = Durability::Never;
        options.clock = Clock::from_fn({
            let clock = Arc::clone(&clock);
            move || clock.load(Ordering::Acquire)
        });
        change(&mut options);
        let node = Node::open(&options).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let subject = Self { node, options, clock, runtime, data };
        for user in ["ada", "bob"] {
            let handle = Handle::parse(user).unwrap();
            let (name, bio) = (Name::default(), Bio::default());
            subject.submit(Command::Register { handle, name, bio }).unwrap();
        }
        subject
    }

    fn submit(&self, command: Command) -> Result<Done, Refusal> {
        self.runtime.block_on(self.node.submit(Request::from(command))).unwrap().outcome
    }

    fn upload(&self, owner: u32, file: &[u8], shape: Shape) -> Result<MediaId, UploadError> {
        self.runtime.block_on(self.node.upload(upload(owner, file, shape)))
    }

    fn attachment(&self, owner: u32, color: u8) -> MediaId {
        self.upload(owner, &gif(color), Shape::Attachment).unwrap()
    }

    fn delete(&self, owner: u32, media: MediaId) {
        let user = UserRef::Id(UserId(owner));
        let done = self.submit(Command::Media(MediaCommand::Delete { user, media }));
        assert_eq!(done, Ok(Done::Media(MediaDone::Changed)));
    }

    /// Returns the number of files.
    fn files(&self) -> usize {
        count(&self.options.data.join("media"))
    }

    /// Whether every file of a picture is readable and has the length in its row.
    fn is_readable(&self, media: MediaId) -> bool {
        let media = self.node.facts().media(media).unwrap();
        media.files().all(|file| {
            let mut bytes = Vec::new();
            let read = self.node.open_media(&file.hash).and_then(|mut f| f.read_to_end(&mut bytes));
            read.is_ok_and(|read| read as u64 == u64::from(file.bytes))
        })
    }
}

fn upload(owner: u32, file: &[u8], shape: Shape) -> Upload {
    let description = Description::parse("a dot").unwrap();
    Upload { owner: UserId(owner), file: file.to_vec(), shape, description, focus: None }
}

/// Guard that sets a number to zero when it is dropped.
struct Stop<'a>(&'a AtomicU64);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(0, Ordering::Release);
    }
}

fn count(dir: &Path) -> usize {
    if dir.is_dir() { files(dir).len() } else { 0 }
}

#[test]
fn an_uploaded_picture_has_its_files_its_description_and_a_key_that_nobody_guesses() {
    let subject = Subject::new(|_| ());
    let (one, two) = (subject.attachment(0, 1), subject.attachment(1, 1));
    let [first, second] = [one, two].map(|media| subject.node.facts().media(media).unwrap());
    assert_eq!(
        (first.owner, first.used),
        (UserId(0), MediaUse::Unattached { since: Stamp(one.0) })
    );
    assert_eq!((first.original.width, first.original.height), (1, 1));
    assert_eq!(first.description.as_str(), "a dot");
    assert!(!first.blurhash.as_str().is_empty() && first.preview.is_some());
    assert_eq!(first.original.hash, second.original.hash, "equal files are stored once");
    assert_eq!(subject.files(), 1);
    assert_ne!(first.key, second.key);
    assert!(subject.is_readable(one) && subject.is_readable(two));
    let avatar = subject.upload(0, &gif(2), Shape::Avatar).unwrap();
    assert_eq!(subject.node.facts().user(UserId(0)).unwrap().avatar, Some(avatar));
    let again = subject.upload(0, &gif(3), Shape::Avatar).unwrap();
    let profile = MediaUse::Profile(ProfilePicture::Avatar);
    assert_eq!(subject.node.facts().media(again).unwrap().used, profile);
    assert_eq!(subject.node.facts().media(avatar), None, "it was replaced");
}

#[test]
fn what_is_no_picture_or_damaged_is_refused_and_stores_nothing() {
    let subject = Subject::new(|_| ());
    let short = gif(1)[..20].to_vec();
    let mut large = gif(1);
    large[6..10].fill(0xff);
    for (file, expect) in [
        (&b"<svg/>"[..], "Format"),
        (b"ID3 sound", "NotPicture"),
        (&short, "Damaged"),
        (&large, "Size"),
        (&vec![0xff; media::FILE_BYTES_MAX + 1], "Bytes"),
    ] {
        let refused = subject.upload(0, file, Shape::Attachment).unwrap_err();
        let UploadError::Picture(error) = refused else { panic!("{refused:?}") };
        assert!(format!("{error:?}").starts_with(expect), "{error:?}");
    }
    assert_eq!(subject.files(), 0);
    subject.attachment(0, 1);
}

#[test]
fn a_picture_for_which_there_is_no_room_is_refused_and_stores_nothing() {
    let subject = Subject::new(|options| options.media_max = 2 * 4_096);
    let first = subject.attachment(0, 1);
    let full = subject.upload(1, &gif(2), Shape::Attachment);
    assert!(matches!(full, Err(UploadError::File(FileError::Full))), "{full:?}");
    assert_eq!(subject.files(), 1);
    subject.delete(0, first);
    subject.attachment(1, 2);
    let none = Subject::new(|options| options.media_max = 0);
    let full = none.upload(0, &gif(1), Shape::Avatar);
    assert!(matches!(full, Err(UploadError::File(FileError::Full))), "{full:?}");
    // A disk that is full as far as the node knows.
    let disk = Subject::new(|options| options.disk_reserve = 0);
    let mut options = disk.options.clone();
    disk.node.close();
    drop(disk.node);
    options.disk_reserve = u64::MAX / 16;
    let node = Node::open(&options).unwrap();
    let full = disk.runtime.block_on(node.upload(upload(0, &gif(1), Shape::Attachment)));
    assert!(matches!(full, Err(UploadError::File(FileError::Full))), "{full:?}");
}

#[test]
fn pictures_that_no_post_has_are_bounded_and_removed_after_a_day_with_their_files() {
    let subject = Subject::new(|_| ());
    for color in 0..64 {
        subject.attachment(0, color);
    }
    let refused = subject.upload(0, &gif(99), Shape::Attachment).unwrap_err();
    let UploadError::Refused(refusal) = refused else { panic!("{refused:?}") };
    assert_eq!(refusal, Refusal::TooManyUnattachedMedia);
    assert_eq!(subject.files(), 64);
    subject.upload(0, &gif(0), Shape::Header).unwrap();
    subject.clock.store(START_MS + DAY_MS + 5_000, Ordering::Release);
    subject.attachment(1, 200);
    subject.node.do_due();
    assert_eq!(subject.node.collect_media(Duration::ZERO).unwrap(), 63, "a header has the other");
    assert_eq!(subject.files(), 2);
    assert_eq!(subject.node.facts().all_media_space().pictures, 2);
}

#[test]
fn a_file_stays_if_it_is_uploaded_again_while_the_last_picture_with_it_is_removed() {
    let subject = Subject::new(|_| ());
    let running = AtomicU64::new(1);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while running.load(Ordering::Acquire) > 0 {
                subject.node.collect_media(Duration::ZERO).unwrap();
            }
        });
        // The thread is stopped even if an assertion below fails.
        let _stop = Stop(&running);
        let mut pictures = Vec::new();
        for round in 0..60 {
            // Each round attaches the same file, sometimes as two pictures.
            pictures.push(subject.attachment(round % 2, 7));
            pictures.iter().for_each(|media| assert!(subject.is_readable(*media), "{round}"));
            if round % 3 == 0 {
                let owner = |media| subject.node.facts().media(media).unwrap().owner.0;
                pictures.drain(..).for_each(|media| subject.delete(owner(media), media));
            }
        }
    });
}

#[test]
fn uploads_end_when_the_node_closes_and_pictures_are_the_same_afterwards() {
    let subject = Subject::new(|_| ());
    let media = subject.attachment(0, 5);
    let row = subject.node.facts().media(media);
    subject.node.close();
    let refused = subject.upload(0, &gif(6), Shape::Attachment);
    assert!(matches!(refused, Err(UploadError::Unavailable(_))), "{refused:?}");
    let Subject { node, options, data, .. } = subject;
    drop(node);
    let node = Node::open(&options).unwrap();
    assert_eq!(node.facts().media(media), row);
    assert!(node.open_media(&row.unwrap().original.hash).is_ok());
    assert_eq!(node.collect_media(Duration::ZERO).unwrap(), 0);
    drop(data);
}

/// Returns the path of the only file of a picture.
fn path(subject: &Subject, media: MediaId) -> PathBuf {
    let hash = subject.node.facts().media(media).unwrap().original.hash;
    let name: String = hash.0.iter().map(|byte| format!("{byte:02x}")).collect();
    subject.options.data.join("media").join(&name[..2]).join(name)
}

/// Restores a backup into the directory `name` and opens it.
fn restored(subject: &Subject, backup: &[u8], name: &str) -> (Restored, Node) {
    let data = subject.data.path().join(name);
    let restored = node::restore(backup, &data, RestoreOptions::default(), |_| Ok(())).unwrap();
    let node = Node::open(&NodeOptions { data, ..subject.options.clone() }).unwrap();
    (restored, node)
}

fn is_readable(node: &Node, media: MediaId) -> bool {
    node.open_media(&node.facts().media(media).unwrap().original.hash).is_ok()
}

#[test]
fn a_backup_has_the_files_of_all_pictures_in_it_also_of_those_that_are_deleted_meanwhile() {
    let subject = Subject::new(|_| ());
    let (one, two) = (subject.attachment(0, 1), subject.attachment(1, 2));
    let backup = subject.node.backup("test").unwrap();
    subject.delete(1, two);
    let three = subject.attachment(1, 3);
    assert_eq!(subject.node.collect_media(Duration::ZERO).unwrap(), 0, "the backup needs it");
    let (bytes, summary) = backup.write(None, Vec::new()).unwrap();
    assert_eq!(summary.lost_files, 0);
    assert_eq!(subject.node.collect_media(Duration::ZERO).unwrap(), 1);
    let (result, node) = restored(&subject, &bytes, "restored");
    assert_eq!(result.missing_files, 0);
    assert!(is_readable(&node, one) && is_readable(&node, two));
    assert_eq!(node.facts().media(three), None, "it is of a later time");
    node.close();
    drop(node);
    let report = node::verify(&subject.data.path().join("restored")).unwrap();
    let files = report.files.unwrap();
    assert!(files.damage.is_empty() && files.files >= 2, "{files:?}");
}

#[test]
fn files_that_are_missing_or_damaged_are_reported_and_their_pictures_stay() {
    let subject = Subject::new(|_| ());
    let (whole, damaged, missing) =
        (subject.attachment(0, 1), subject.attachment(0, 2), subject.attachment(0, 3));
    let avatar = subject.upload(0, &gif(4), Shape::Avatar).unwrap();
    let mut bytes = std::fs::read(path(&subject, damaged)).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(path(&subject, damaged), &bytes).unwrap();
    std::fs::remove_file(path(&subject, missing)).unwrap();
    assert!(subject.is_readable(avatar));
    let (bytes, summary) = subject.node.backup("test").unwrap().write(None, Vec::new()).unwrap();
    assert_eq!((summary.files, summary.lost_files), (2, 2));
    let (result, node) = restored(&subject, &bytes, "restored");
    assert_eq!(result.missing_files, 2);
    assert!(is_readable(&node, whole) && !is_readable(&node, missing));
    // An upload of the same picture restores the file.
    let again = subject.runtime.block_on(node.upload(upload(1, &gif(3), Shape::Attachment)));
    assert!(is_readable(&node, missing) && is_readable(&node, again.unwrap()));
    subject.node.close();
    drop((node, subject.node));
    let from = &subject.options.data;
    let report = node::verify(from).unwrap().files.unwrap();
    assert_eq!((report.files, report.damaged), (2, 2));
    let says = |what| report.damage.iter().filter(|line| line.contains(what)).count();
    assert_eq!((says("is damaged"), says("is missing")), (1, 1), "{report:?}");
    let to = subject.data.path().join("repaired");
    let repaired = node::repair(from, &to, (None, false), || Ok(())).unwrap();
    assert_eq!(repaired.damage.len(), 2, "{repaired:?}");
    assert!(repaired.lost[0].starts_with("2 files of pictures"), "{repaired:?}");
    let node = Node::open(&NodeOptions { data: to, ..subject.options.clone() }).unwrap();
    assert!(is_readable(&node, whole) && !is_readable(&node, damaged));
    let kept = node.facts().media(damaged).unwrap();
    assert_eq!(kept.description.as_str(), "a dot");
}

#[test]
fn a_damaged_file_is_replaced_when_the_same_picture_is_uploaded() {
    let subject = Subject::new(|_| ());
    let media = subject.attachment(0, 1);
    let bytes = std::fs::read(path(&subject, media)).unwrap();
    let damaged: Vec<u8> = bytes.iter().map(|byte| !byte).collect();
    std::fs::write(path(&subject, media), damaged).unwrap();
    subject.attachment(1, 1);
    assert_eq!(std::fs::read(path(&subject, media)).unwrap(), bytes);
}

#[test]
fn the_files_of_a_deleted_user_go() {
    let subject = Subject::new(|_| ());
    subject.attachment(0, 1);
    subject.upload(0, &gif(2), Shape::Avatar).unwrap();
    let other = subject.attachment(1, 3);
    subject.submit(Command::DeleteUser { user: UserRef::Id(UserId(0)) }).unwrap();
    subject.node.do_due();
    subject.node.collect_media(Duration::ZERO).unwrap();
    assert_eq!(subject.files(), 1);
    assert!(subject.is_readable(other));
    assert_eq!(subject.node.facts().all_media_space().pictures, 1);
}

/// Runs in a separate process, which is killed: uploads pictures, deletes some, and prints those that exist.
#[test]
#[ignore = "a part of another test"]
fn uploads_until_it_is_killed() {
    let options = NodeOptions::new(std::env::var("ROOST_TEST_DATA").unwrap());
    let node = Node::open(&options).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let seed = u8::try_from(node.facts().all_media_space().pictures).unwrap();
    for round in seed..=u8::MAX {
        let color = round % 7;
        let media = runtime.block_on(node.upload(upload(0, &gif(color), Shape::Attachment)));
        println!("added {}", media.unwrap().0);
        node.collect_media(Duration::ZERO).unwrap();
    }
}

#[test]
fn a_picture_that_was_acknowledged_has_its_files_after_kill_9() {
    let subject = Subject::new(|options| options.clock = Clock::system());
    subject.node.close();
    let Subject { node, options, data, .. } = subject;
    drop(node);
    let mut added = Vec::new();
    for kill_after in [1, 3, 2, 5] {
        let mut child = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "uploads::uploads_until_it_is_killed", "--ignored", "--nocapture"])
            .env("ROOST_TEST_DATA", &options.data)
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let lines = std::io::BufReader::new(child.stdout.take().unwrap()).lines();
        let ids = lines.map_while(Result::ok).filter_map(|line| {
            line.split_once("added ").map(|(_, id)| MediaId(id.trim().parse().unwrap()))
        });
        let before = added.len();
        added.extend(ids.take(kill_after));
        assert_eq!(added.len(), before + kill_after, "it ended by itself");
        // The process is killed during the next upload.
        child.kill().unwrap();
        child.wait().unwrap();
        let node = Node::open(&options).unwrap();
        added.iter().for_each(|media| assert!(is_readable(&node, *media)));
        // Each unacknowledged picture exists completely or is absent.
        let all = node.facts().media_of(UserId(0), MediaId(0), 1_000);
        all.iter().for_each(|media| assert!(is_readable(&node, *media)));
        node.close();
        drop(node);
        let report = node::verify(&options.data).unwrap();
        assert_eq!(report.files.unwrap().damage, [""; 0]);
        assert_eq!(report.store.unwrap().damage, [""; 0]);
    }
    drop(data);
}

#[test]
fn an_export_has_all_of_a_picture_but_its_files_which_are_copied() {
    let subject = Subject::new(|_| ());
    let media = subject.attachment(0, 1);
    let content = Content { media: vec![media], ..Content::default() };
    let new = Draft::of(UserRef::Id(UserId(0)), content);
    let done = subject.submit(Command::Publish(Box::new(new)));
    let Ok(Done::Posted(post)) = done else { panic!("{done:?}") };
    subject.upload(1, &gif(2), Shape::Header).unwrap();
    let unattached = subject.attachment(1, 3);
    let row = subject.node.facts().media(media);
    let space = subject.node.facts().all_media_space();
    subject.node.close();
    drop(subject.node);
    let mut lines = Vec::new();
    let counts = node::export(&subject.options, "test", &mut lines).unwrap();
    assert_eq!(counts.pictures, 2);
    let to = subject.data.path().join("imported");
    let options = NodeOptions { data: to.clone(), ..subject.options.clone() };
    assert_eq!(node::import(&options, &*lines).unwrap(), counts);
    let node = Node::open(&options).unwrap();
    assert_eq!(node.facts().media(media), row);
    assert_eq!(node.facts().post(post).unwrap().content.media, [media]);
    assert_eq!(node.facts().media(unattached), None);
    assert_eq!(node.facts().all_media_space().pictures, space.pictures - 1);
    assert!(!is_readable(&node, media));
    // The command of docs/import.md.
    let copied = std::process::Command::new("cp")
        .arg("-a")
        .args([subject.options.data.join("media"), to])
        .status();
    assert!(copied.unwrap().success() && is_readable(&node, media));
    node.close();
    drop(node);
    let report = node::verify(&options.data).unwrap();
    assert_eq!((report.files.unwrap().damage, report.store.unwrap().damage), (vec![], vec![]));
}

#[test]
fn wrong_pictures_in_an_import_are_refused_with_their_line() {
    let options = |dir: &tempfile::TempDir| NodeOptions::new(dir.path().join("data"));
    let key = "0".repeat(32);
    let file = |sha256: &str, more: &str| {
        format!(r#"{{"sha256":"{sha256}","bytes":7,"width":3,"height":4{more}}}"#)
    };
    let right = file(&"a".repeat(64), "");
    let picture = |id: u32, key: &str, file: &str, more: &str| {
        let id = 150_994_944_000_000_u64 + u64::from(id);
        format!(r#"{{"id":"{id}","key":"{key}","original":{file}{more}}}"#)
    };
    let post = |media: &[String]| {
        format!(r#"{{"post":{{"author":0,"text":"","media":[{}]}}}}"#, media.join(","))
    };
    let five: Vec<_> = (0..5).map(|id| picture(id, &key, &right, "")).collect();
    for (line, expect) in [
        (post(&five[..4]), None),
        (post(&five), Some("at most 4 pictures")),
        (post(&[five[0].clone(), five[0].clone()]), Some("line 3")),
        (post(&[]), Some("line 3")),
        (post(&[picture(0, "abc", &right, "")]), Some("32 hexadecimal digits")),
        (post(&[picture(0, &key, &file("abc", ""), "")]), Some("64 hexadecimal digits")),
        (post(&[picture(0, &key, &right, r#","focus":[2,0]"#)]), Some("between -1.0 and 1.0")),
        (post(&[picture(0, &key, &right, r#","other":1"#)]), Some("unknown field")),
        (
            r#"{"user":{"handle":"bob","deleted":true,"avatar":AVATAR}}"#
                .replace("AVATAR", &five[0]),
            Some("handle"),
        ),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let lines = format!(
            "{{\"export\":{{\"format\":1}}}}\n{{\"user\":{{\"handle\":\"ann\"}}}}\n{line}\n{{\"end\":{{}}}}\n"
        );
        let imported = node::import(&options(&folder), lines.as_bytes());
        match (expect, imported) {
            (None, Ok(counts)) => assert_eq!(counts.pictures, 4),
            (Some(expect), Err(error)) => {
                assert!(error.to_string().contains(expect), "{expect}: {error}");
            }
            (_, imported) => panic!("{line}: {imported:?}"),
        }
    }
}
