//! Tests of pictures in a cluster: their files are on the servers before the picture exists, and reach every node,
//! whatever the servers lose.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use commitlog::{FileName, FilesError, SharedFiles};
use feed::media::{Description, FileHash, Media, MediaCommand, MediaId};
use feed::{Bio, Command, Handle, Name, UserId, UserRef};
use media::Shape;
use node::{OpenError, Request, SubmitError, Upload, UploadError};
use parking_lot::Mutex;
use testkit::gif;

use super::{Member, copied, first, two, wait_until};

type Asked = Box<dyn Fn(FileName) + Send + Sync>;

/// Servers that transfer files.
#[derive(Default)]
pub(crate) struct Files {
    files: Mutex<BTreeMap<FileName, Vec<u8>>>,
    refuses: AtomicBool,
    puts: AtomicU64,
    listeners: Mutex<Vec<Asked>>,
}

impl Files {
    pub(crate) fn count(&self) -> usize {
        self.files.lock().len()
    }

    fn puts(&self) -> u64 {
        self.puts.load(Ordering::Acquire)
    }
}

impl SharedFiles for Files {
    fn put(&self, name: &FileName, bytes: &[u8]) -> Result<(), FilesError> {
        if self.refuses.load(Ordering::Acquire) {
            return Err(FilesError("they are down".into()));
        }
        self.files.lock().insert(*name, bytes.to_vec());
        self.puts.fetch_add(1, Ordering::AcqRel);
        Ok(())
    }

    fn get(&self, name: &FileName, bytes_max: usize) -> Result<Option<Vec<u8>>, FilesError> {
        if self.refuses.load(Ordering::Acquire) {
            return Err(FilesError("they are down".into()));
        }
        Ok(self.files.lock().get(name).filter(|file| file.len() <= bytes_max).cloned())
    }

    fn ask(&self, name: &FileName) {
        self.listeners.lock().iter().for_each(|listener| listener(*name));
    }

    fn listen(&self, asked: Asked) {
        self.listeners.lock().push(asked);
    }
}

pub(crate) fn try_upload(member: &Member, color: u8) -> Result<MediaId, UploadError> {
    let description = Description::parse("a dot").unwrap();
    let (owner, file, shape) = (UserId(0), gif(color), Shape::Attachment);
    let upload = Upload { owner, file, shape, description, focus: None };
    member.runtime.block_on(member.node().upload(upload))
}

fn register(member: &Member) {
    let (handle, name, bio) = (Handle::parse("ada").unwrap(), Name::default(), Bio::default());
    submit(member, Command::Register { handle, name, bio });
}

fn submit(member: &Member, command: Command) {
    let reply = member.runtime.block_on(member.node().submit(Request::from(command))).unwrap();
    reply.outcome.unwrap();
}

fn media(member: &Member, id: MediaId) -> Media {
    member.catch_up();
    member.node().facts().media(id).unwrap()
}

/// Whether a node has all files of a picture.
fn has(member: &Member, id: MediaId) -> bool {
    media(member, id).files().all(|file| is_whole(member, &file.hash, file.bytes))
}

fn is_whole(member: &Member, hash: &FileHash, length: u32) -> bool {
    let mut bytes = Vec::new();
    let read = member.node().open_media(hash).and_then(|mut file| file.read_to_end(&mut bytes));
    read.is_ok_and(|read| read == length as usize && bytes.iter().any(|byte| *byte != b'x'))
}

/// Waits like a reader until a node has the files of a picture.
fn fetch(member: &Member, id: MediaId) {
    let files: Vec<FileHash> = media(member, id).files().map(|file| file.hash).collect();
    for hash in files {
        wait_until(|| member.runtime.block_on(member.node().fetched_media(&hash)));
    }
    assert!(has(member, id));
}

#[test]
fn a_picture_is_on_the_servers_before_it_exists_and_then_on_every_node() {
    let (stream, [one, other]) = two();
    register(&one);
    let last = stream.last();
    stream.files.refuses.store(true, Ordering::Release);
    let refused = try_upload(&one, 1);
    assert!(matches!(refused, Err(UploadError::Unavailable(SubmitError::NoLog))), "{refused:?}");
    assert_eq!(stream.last(), last, "no node hears of it");
    stream.files.refuses.store(false, Ordering::Release);
    let id = try_upload(&one, 1).unwrap();
    for file in media(&one, id).files() {
        assert!(stream.files.get(&file.hash.0, 1 << 20).unwrap().is_some());
    }
    wait_until(|| has(&other, id));
    wait_until(|| !other.node().cluster().unwrap().fetches_files);
    // The same file is uploaded to another node.
    let again = try_upload(&other, 1).unwrap();
    assert_eq!(media(&other, again).original.hash, media(&one, id).original.hash);
    let [of_one, of_other] = [&one, &other].map(|member| {
        member.catch_up();
        member.node().cluster().unwrap()
    });
    assert_eq!((of_one.position, of_one.digest), (of_other.position, of_other.digest));
}

/// Even if the servers have lost or damaged a file, the node that has it stores it again.
#[test]
fn a_node_that_was_away_gets_all_files_whatever_the_servers_have() {
    let (stream, [one, mut other]) = two();
    register(&one);
    other.node = None;
    let ids = [1, 2, 3].map(|color| try_upload(&one, color).unwrap());
    let [_, expired, damaged] = ids.map(|id| media(&one, id).original.hash);
    stream.files.files.lock().remove(&expired.0);
    stream.files.files.lock().get_mut(&damaged.0).unwrap()[0] ^= 1;
    let puts = stream.files.puts();
    other.start().unwrap();
    ids.iter().for_each(|id| fetch(&other, *id));
    assert_eq!(stream.files.puts(), puts + 2, "only what the servers lack is stored again");
    wait_until(|| other.node().cluster().unwrap().missing_files == 0);
    // A file that was lost or damaged on the disk of a node is fetched, too.
    let path = |at: usize| {
        let name: String =
            media(&one, ids[at]).original.hash.0.iter().map(|byte| format!("{byte:02x}")).collect();
        other.options.data.join("media").join(&name[..2]).join(name)
    };
    std::fs::write(path(0), "xxxx").unwrap();
    std::fs::remove_file(path(1)).unwrap();
    assert!(!has(&other, ids[0]) && !has(&other, ids[1]));
    [ids[0], ids[1]].iter().for_each(|id| fetch(&other, *id));
}

#[test]
fn a_file_that_nobody_has_ends_the_wait_of_its_reader_and_disturbs_nobody() {
    let (stream, [one, mut other]) = two();
    register(&one);
    other.node = None;
    let id = try_upload(&one, 1).unwrap();
    stream.files.files.lock().clear();
    let mut one = one;
    one.node = None;
    other.start().unwrap();
    let hash = media(&other, id).original.hash;
    assert!(!other.runtime.block_on(other.node().fetched_media(&hash)));
    assert!(other.node().cluster().unwrap().missing_files > 0);
    let second = try_upload(&other, 2).unwrap();
    assert!(has(&other, second));
    // The directory does not leave without the file, unless the loss is accepted.
    other.node = None;
    let lacks = node::leave_cluster(&other.options.data, false).unwrap_err();
    assert!(matches!(lacks, OpenError::LacksFiles { files: 1.., .. }), "{lacks}");
    other.start().unwrap();
    one.start().unwrap();
    fetch(&other, id);
    one.node = None;
    other.node = None;
    node::leave_cluster(&other.options.data, false).unwrap();
    other.node = Some(node::Node::open(&other.options).unwrap());
    assert!(other.node().facts().media(id).is_some());
    assert!(is_whole(&other, &hash, other.node().facts().media(id).unwrap().original.bytes));
}

#[test]
fn a_deleted_picture_is_neither_fetched_nor_given_to_others() {
    let (stream, [one, mut other]) = two();
    register(&one);
    other.node = None;
    let id = try_upload(&one, 1).unwrap();
    let hash = media(&one, id).original.hash;
    let user = UserRef::Id(UserId(0));
    submit(&one, Command::Media(MediaCommand::Delete { user, media: id }));
    stream.files.files.lock().clear();
    let puts = stream.files.puts();
    other.start().unwrap();
    other.catch_up();
    wait_until(|| !other.node().cluster().unwrap().fetches_files);
    stream.files.ask(&hash.0);
    // Requests are answered in order: this is after the first one.
    let second = try_upload(&one, 2).unwrap();
    let file = media(&one, second).original.hash;
    stream.files.files.lock().remove(&file.0);
    stream.files.ask(&file.0);
    wait_until(|| stream.files.get(&file.0, 1 << 20).unwrap().is_some());
    assert!(stream.files.get(&hash.0, 1 << 20).unwrap().is_none());
    assert!(stream.files.puts() >= puts + 2);
    assert!(other.node().open_media(&hash).is_err());
}

#[test]
fn pictures_from_before_the_cluster_get_to_every_node() {
    let stream = std::sync::Arc::new(super::Stream::default());
    let (one, _) = first(&stream, tempfile::tempdir().unwrap());
    let bare = copied(&one);
    let one = Member::in_dir(one, &stream);
    register(&one);
    let id = try_upload(&one, 1).unwrap();
    stream.files.files.lock().clear();
    // The node has neither the rows nor the file.
    let other = Member::in_dir(bare, &stream);
    fetch(&other, id);
}
