//! Tests of several nodes on one log without a broker: the log is in memory, returns groups twice, and can be stopped
//! and damaged.

mod files;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes as Payload;
use commitlog::{
    Applied, Arrived, ClusterId, GroupId, Log, LogEnd, LogError, NodeId, Position, SharedFiles,
    SyncPoint,
};
use kv::{BucketId, Bytes, KeyAnswer, KeyOp, KeyOps};
use node::{Durability, Node, NodeOptions, OpenError, SubmitError, UploadError};
use parking_lot::{Condvar, Mutex};
use tempfile::TempDir;
use testkit::PATIENCE;
use tokio::runtime::Runtime;

use self::files::Files;

const ZERO: BucketId = BucketId(0);
const TIME_MS: u64 = 1_800_000_000_000;

/// Log of a cluster.
#[derive(Default)]
struct Stream {
    state: Mutex<State>,
    grown: Condvar,
    files: Arc<Files>,
}

#[derive(Default)]
struct State {
    /// Position after which groups exist.
    after: u64,
    groups: Vec<(GroupId, Payload)>,
    /// Whether changes are refused, as with a wrong configuration.
    refuses: bool,
    /// Groups that were appended while the log is stopped.
    held: Option<Vec<(GroupId, Payload)>>,
    wakes: Vec<Arc<dyn Fn() + Send + Sync>>,
}

impl Stream {
    fn add(&self, id: GroupId, payload: Payload) {
        let mut state = self.state.lock();
        match &mut state.held {
            Some(held) => held.push((id, payload)),
            // Every group arrives twice.
            None => state.groups.extend([(id, payload.clone()), (id, payload)]),
        }
        let wakes = state.wakes.clone();
        drop(state);
        self.grown.notify_all();
        wakes.iter().for_each(|wake| wake());
    }

    /// Adds a message of another program.
    fn add_foreign(&self) {
        self.add(GroupId::NONE, Payload::new());
    }

    fn refuse(&self, refuses: bool) {
        let mut state = self.state.lock();
        state.refuses = refuses;
        let wakes = state.wakes.clone();
        drop(state);
        wakes.iter().for_each(|wake| wake());
    }

    fn stop(&self) {
        self.state.lock().held = Some(Vec::new());
    }

    fn go_on(&self) {
        let held = self.state.lock().held.take().unwrap();
        held.into_iter().for_each(|(id, payload)| self.add(id, payload));
    }

    fn last(&self) -> u64 {
        let state = self.state.lock();
        state.after + state.groups.len() as u64
    }
}

/// Access of a node to the log.
struct Access {
    stream: Arc<Stream>,
    node: NodeId,
    epoch: u64,
    number: u64,
    back: u64,
    delivered: Position,
    last_at_open: Position,
}

impl Log for Access {
    fn append(&mut self, payload: Payload, _: u64) -> Result<(), LogError> {
        self.number += 1;
        let id = GroupId { node: self.node, epoch: self.epoch, number: self.number };
        self.stream.add(id, payload);
        Ok(())
    }

    fn sync_point(&self) -> SyncPoint {
        SyncPoint::durable(self.delivered)
    }

    fn delivered(&self) -> Position {
        self.delivered
    }

    fn node(&self) -> Option<NodeId> {
        Some(self.node)
    }

    fn last_at_open(&self) -> Position {
        self.last_at_open
    }

    fn payload_bytes_max(&self) -> usize {
        1 << 20
    }

    fn next_within(&mut self, wait: Duration) -> Result<Option<Arrived>, LogError> {
        let mut state = self.stream.state.lock();
        if (self.delivered.0 - state.after) as usize >= state.groups.len() {
            self.stream.grown.wait_for(&mut state, wait);
        }
        drop(state);
        self.next()
    }

    fn begin(&mut self, epoch: u64, wake: Box<dyn Fn() + Send + Sync>) {
        self.epoch = epoch;
        self.stream.state.lock().wakes.push(wake.into());
    }

    fn next(&mut self) -> Result<Option<Arrived>, LogError> {
        let state = self.stream.state.lock();
        let at = (self.delivered.0 - state.after) as usize;
        let Some((id, payload)) = state.groups.get(at).cloned() else { return Ok(None) };
        self.delivered.0 += 1;
        let is_own = (id.node, id.epoch, id.number) == (self.node, self.epoch, self.back + 1);
        self.back += u64::from(is_own);
        Ok(Some(Arrived {
            position: self.delivered,
            time_ms: TIME_MS + at as u64,
            sent_ms: TIME_MS,
            id,
            is_own,
            payload,
        }))
    }

    fn refuses_changes(&self) -> bool {
        self.stream.state.lock().refuses
    }

    fn trim(&mut self, _: Position) {}

    fn end(&self) -> LogEnd {
        LogEnd { position: self.delivered, ago: Duration::ZERO }
    }

    fn files(&self) -> Option<Arc<dyn SharedFiles>> {
        Some(self.stream.files.clone())
    }
}

/// A node and its directory.
struct Member {
    node: Option<Node>,
    options: NodeOptions,
    stream: Arc<Stream>,
    runtime: Runtime,
    _data: TempDir,
}

impl Member {
    fn in_dir(data: TempDir, stream: &Arc<Stream>) -> Self {
        let mut options = NodeOptions::new(data.path());
        options.durability = Durability::Never;
        options.accept_clock = true;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let stream = Arc::clone(stream);
        let mut member = Self { node: None, options, stream, runtime, _data: data };
        member.start().unwrap();
        member
    }

    fn start(&mut self) -> Result<(), OpenError> {
        let stream = Arc::clone(&self.stream);
        self.node = Some(Node::open_shared(&self.options, |_, node, applied: Applied| {
            let last_at_open = Position(stream.last());
            let (epoch, number, back) = (0, 0, 0);
            let delivered = applied.position;
            let log = Access { stream, node, epoch, number, back, delivered, last_at_open };
            Ok(Box::new(log))
        })?);
        Ok(())
    }

    fn node(&self) -> &Node {
        self.node.as_ref().unwrap()
    }

    fn try_add(&self, key: &str) -> Result<i64, SubmitError> {
        let ops = one_more(key);
        let replies = self.runtime.block_on(self.node().submit_keys(ops, Vec::new()))?;
        match replies.answers[..] {
            [KeyAnswer::Number(sum)] => Ok(sum),
            ref other => panic!("{other:?}"),
        }
    }

    fn add(&self, key: &str) -> i64 {
        self.try_add(key).unwrap()
    }

    fn sum(&self, key: &str) -> String {
        let row = self.node().keys().row(ZERO, key.as_bytes());
        row.map_or_else(String::new, |row| String::from_utf8_lossy(row.value()).into_owned())
    }

    /// Waits until the node has applied the whole log.
    fn catch_up(&self) {
        let last = self.stream.last();
        assert!(self.runtime.block_on(self.node().applied(last)), "it catches up");
    }
}

fn one_more(key: &str) -> KeyOps {
    let op = KeyOp::Add { bucket: ZERO, key: Bytes::new(key.as_bytes()), by: 1 };
    [op].into_iter().collect()
}

/// Creates the directory of the first node of a cluster whose log is `stream`; returns it and its id.
fn first(stream: &Stream, data: TempDir) -> (TempDir, ClusterId) {
    let cluster = node::init_cluster(data.path(), |_, after| {
        stream.state.lock().after = after.0;
        Ok::<_, OpenError>(())
    });
    (data, cluster.unwrap())
}

/// Copies in this process: a child process would briefly hold the locks of other tests.
fn copy(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if from.is_dir() {
            std::fs::create_dir(&to).unwrap();
            copy(&from, &to);
        } else {
            std::fs::copy(&from, &to).unwrap();
        }
    }
}

/// Copies a closed directory as that of another node.
fn copied(from: &TempDir) -> TempDir {
    let to = tempfile::tempdir().unwrap();
    copy(from.path(), to.path());
    // A node that has not run has no identity yet.
    std::fs::remove_file(to.path().join("identity")).ok();
    to
}

/// Creates two nodes of a new cluster.
fn two() -> (Arc<Stream>, [Member; 2]) {
    let stream = Arc::new(Stream::default());
    let (one, _) = first(&stream, tempfile::tempdir().unwrap());
    let other = copied(&one);
    let members = [one, other].map(|data| Member::in_dir(data, &stream));
    // Each node first sends its version, and every group arrives twice.
    wait_until(|| stream.last() >= 4);
    members.iter().for_each(Member::catch_up);
    (stream, members)
}

fn wait_until(what: impl Fn() -> bool) {
    let start = Instant::now();
    while !what() {
        assert!(start.elapsed() < PATIENCE, "it happens in time");
        std::thread::yield_now();
    }
}

#[test]
fn a_change_on_one_node_is_read_on_all_and_happens_once() {
    let (_stream, [one, other]) = two();
    for round in 0..50 {
        assert_eq!(one.add("sum"), 2 * round + 1);
        assert_eq!(other.add("sum"), 2 * round + 2);
    }
    for member in [&one, &other] {
        member.catch_up();
        assert_eq!(member.sum("sum"), "100");
    }
    let [of_one, of_other] = [&one, &other].map(|member| member.node().cluster().unwrap());
    assert_eq!((of_one.position, of_one.digest), (of_other.position, of_other.digest));
    assert_eq!(of_one.cluster, of_other.cluster);
    assert_ne!(of_one.node, of_other.node);
}

#[test]
fn a_node_that_was_away_goes_on_where_it_was() {
    let (stream, [one, mut other]) = two();
    assert_eq!((one.add("sum"), other.add("sum")), (1, 2));
    other.node = None;
    (3..=100).for_each(|sum| assert_eq!(one.add("sum"), sum));
    // A late message of an ended process does not count.
    let late = stream.state.lock().groups[2].clone();
    stream.add(late.0, late.1);
    other.start().unwrap();
    assert_eq!(other.sum("sum"), "100", "it has everything when it opens");
    assert_eq!(other.add("sum"), 101);
    one.catch_up();
    assert_eq!(one.sum("sum"), "101");
}

#[test]
fn without_the_log_changes_are_refused_after_a_while_and_reads_go_on() {
    let (stream, [one, other]) = two();
    assert_eq!(one.add("sum"), 1);
    stream.stop();
    assert_eq!(one.try_add("sum"), Err(SubmitError::Unconfirmed));
    // From here on changes are refused at once and not made.
    let mut refused = 0;
    // A change that was accepted just before may be made later.
    wait_until(|| one.try_add("perhaps") == Err(SubmitError::NoLog));
    while one.try_add("other") == Err(SubmitError::NoLog) && refused < 1_000 {
        refused += 1;
    }
    assert_eq!(refused, 1_000);
    assert!(!one.node().cluster().unwrap().accepts_changes);
    assert!(other.node().cluster().unwrap().accepts_changes, "it has nothing under way");
    assert_eq!(one.sum("sum"), "1");
    // Changes that would wait for room are refused too: Redis clients, and lines of batches.
    for _ in 0..3 {
        let waiting = one.node().submit_keys_waiting(one_more("other"), Vec::new());
        assert_eq!(one.runtime.block_on(waiting).err(), Some(SubmitError::NoLog));
    }
    let after = stream.last() + 1;
    assert!(!one.runtime.block_on(one.node().applied(after)), "a wait for a position ends");
    stream.go_on();
    wait_until(|| one.node().cluster().unwrap().accepts_changes);
    assert_eq!(one.sum("sum"), "2", "what was not confirmed was made, once");
    assert_eq!(other.add("sum"), 3);
    assert_eq!(one.add("last"), 1);
    assert_eq!(one.sum("other"), "", "what was refused is never made");
}

#[test]
fn while_the_log_could_lose_changes_they_are_refused_and_others_are_applied() {
    let (stream, [one, other]) = two();
    assert_eq!(one.add("sum"), 1);
    stream.refuse(true);
    wait_until(|| one.try_add("refused") == Err(SubmitError::NoLog));
    // A message in transit may come from a node that does not know yet.
    let id = GroupId { node: NodeId(7), epoch: 1, number: 1 };
    let change = |groups: &[(GroupId, Payload)]| {
        let group = groups.iter().find(|(_, payload)| payload.windows(3).any(|at| at == b"sum"));
        group.unwrap().1.clone()
    };
    let payload = change(&stream.state.lock().groups);
    stream.add(id, payload);
    for member in [&one, &other] {
        member.catch_up();
        assert_eq!(member.sum("sum"), "2");
        assert!(!member.node().cluster().unwrap().accepts_changes);
    }
    stream.refuse(false);
    wait_until(|| one.node().cluster().unwrap().accepts_changes);
    assert_eq!(one.add("sum"), 3);
}

/// Returns the status of another node that can apply commands of a version.
fn status(number: u64, commands: u8) -> (GroupId, Payload) {
    let id = GroupId { node: NodeId(7), epoch: 1, number };
    // An entry with the number of a status; checkpoint, position, digest; versions of commands and rules.
    (id, Payload::from(vec![0, 125, 0, 0, 0, commands, 0]))
}

/// A change that a node of an earlier version could not apply is refused on all nodes until that node is updated.
#[test]
fn changes_that_a_node_does_not_know_are_refused_until_it_is_updated() {
    let (stream, [one, other]) = two();
    assert_eq!((one.add("sum"), other.add("sum")), (1, 2));
    let commands = one.node().cluster().unwrap().commands;
    let (id, payload) = status(1, 0);
    stream.add(id, payload);
    for member in [&one, &other] {
        wait_until(|| member.try_add("refused") == Err(SubmitError::Upgrading));
        assert_eq!(member.node().cluster().unwrap().commands, 0);
        let waiting = member.node().submit_keys_waiting(one_more("refused"), Vec::new());
        assert_eq!(member.runtime.block_on(waiting).err(), Some(SubmitError::Upgrading));
    }
    assert!(matches!(
        files::try_upload(&one, 1),
        Err(UploadError::Unavailable(SubmitError::Upgrading))
    ));
    assert_eq!(stream.files.count(), 0, "nothing is stored that could not be added");
    let (id, payload) = status(2, commands as u8);
    stream.add(id, payload);
    wait_until(|| other.node().cluster().unwrap().commands == commands);
    assert_eq!(other.add("sum"), 3);
    one.catch_up();
    assert_eq!(one.sum("sum"), "3");
}

#[test]
fn messages_of_other_programs_change_nothing() {
    let (stream, [one, mut other]) = two();
    assert_eq!(one.add("sum"), 1);
    stream.add_foreign();
    assert_eq!(one.add("sum"), 2);
    other.node = None;
    stream.add_foreign();
    other.start().unwrap();
    for member in [&one, &other] {
        member.catch_up();
        assert_eq!(member.sum("sum"), "2");
    }
    let [of_one, of_other] = [&one, &other].map(|member| member.node().cluster().unwrap());
    assert_eq!((of_one.position, of_one.digest), (of_other.position, of_other.digest));
}

/// A log that cannot be applied stops a start. The applied part is kept, and the directory can leave.
#[test]
fn a_start_that_the_log_stops_loses_nothing() {
    let (stream, [mut one, mut other]) = two();
    assert_eq!(other.add("sum"), 1);
    other.node = None;
    assert_eq!((one.add("sum"), one.add("sum")), (2, 3));
    // The node would stop too, and this process with it.
    one.node = None;
    let last = stream.last();
    stream.add(GroupId { node: NodeId(7), epoch: 1, number: 1 }, Payload::from_static(&[0xff; 9]));
    for _ in 0..2 {
        let stopped = other.start().map(|()| other.node = None).unwrap_err();
        let OpenError::Log(LogError::Shared(cause)) = stopped else { panic!("{stopped}") };
        let expected = format!("group {} of the log cannot be read", last + 1);
        assert!(cause.to_string().starts_with(&expected), "{cause}");
    }
    node::leave_cluster(&other.options.data, false).unwrap();
    other.node = Some(Node::open(&other.options).unwrap());
    assert_eq!(other.add("sum"), 4, "it has all that came before");
}

/// A node whose disk is full keeps changes in memory only: after its stop the directory lacks them.
#[test]
fn a_node_that_could_not_store_everything_does_not_leave_silently() {
    let (_stream, [one, mut other]) = two();
    other.node = None;
    assert_eq!(one.add("sum"), 1);
    let reserve = std::mem::replace(&mut other.options.disk_reserve, u64::MAX / 4);
    other.start().unwrap();
    assert_eq!(other.sum("sum"), "1");
    other.node = None;
    let lost = node::leave_cluster(&other.options.data, false).unwrap_err();
    assert!(matches!(lost, OpenError::NotClosed(_)), "{lost}");
    // When the disk has room again, a start and a stop store the changes.
    other.options.disk_reserve = reserve;
    other.start().unwrap();
    other.node = None;
    node::leave_cluster(&other.options.data, false).unwrap();
    other.node = Some(Node::open(&other.options).unwrap());
    assert_eq!(other.add("sum"), 2);
}

#[test]
fn a_directory_opens_only_in_its_own_way() {
    let (_stream, [mut one, _other]) = two();
    assert_eq!(one.add("sum"), 1);
    let running = node::leave_cluster(&one.options.data, true).unwrap_err();
    assert!(matches!(running, OpenError::InUse(_)), "{running}");
    one.node = None;
    let member = Node::open(&one.options).err().unwrap().to_string();
    assert!(member.contains("roost serve --nats nats://HOST:4222"), "{member}");
    for refused in [
        node::verify(&one.options.data).err().map(|error| error.to_string()),
        node::leave_cluster(tempfile::tempdir().unwrap().path(), true).err().map(|e| e.to_string()),
    ] {
        assert!(refused.is_some_and(|error| error.contains("roost cluster")));
    }
    node::leave_cluster(&one.options.data, false).unwrap();
    let of_none = one.start().unwrap_err();
    assert!(matches!(of_none, OpenError::NoMember(_)), "{of_none}");
    one.node = Some(Node::open(&one.options).unwrap());
    assert_eq!(one.add("sum"), 2);
    one.node = None;
    // The directory can become the first node of another cluster, with its data.
    let stream = Arc::new(Stream::default());
    node::init_cluster(&one.options.data, |_, after| {
        stream.state.lock().after = after.0;
        Ok::<_, OpenError>(())
    })
    .unwrap();
    one.stream = stream;
    one.start().unwrap();
    assert_eq!(one.add("sum"), 3);
}

#[test]
fn a_log_that_cannot_be_made_leaves_the_directory_as_it_was() {
    let data = tempfile::tempdir().unwrap();
    let options = NodeOptions::new(data.path());
    let failed = node::init_cluster(data.path(), |_, _| Err(OpenError::Unreadable));
    assert!(matches!(failed, Err(OpenError::Unreadable)), "{failed:?}");
    drop(Node::open(&options).unwrap());
}
