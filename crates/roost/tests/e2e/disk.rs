//! Tests of a full disk: a small disk, mounted for one process.

use std::fs::File;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

use commitlog::{ArchiveReader, Position};
use rustix::process::Signal;
use serde_json::json;

use crate::support::http::Client;
use crate::support::process::{Server, serve};
use crate::support::redis::{Redis, Reply};
use testkit::machine::SmallDisk;

use crate::support::PATIENCE;

const MIB: usize = 1 << 20;
/// Size of the disk, in bytes.
const DISK: usize = 160 * MIB;

/// A small disk.
struct Small {
    data: tempfile::TempDir,
    disk: SmallDisk,
}

impl Small {
    /// Mounts a disk; `None` if this user cannot mount one.
    fn new() -> Option<Self> {
        let data = tempfile::tempdir().unwrap();
        let disk = SmallDisk::new(data.path(), DISK)?;
        Some(Self { data, disk })
    }

    /// Command of a server whose data is on the disk.
    fn command(&self) -> Command {
        let settings = ["--open", "--redis-listen", "127.0.0.1:0", "--overlay-memory", "8MiB"];
        let limits = ["--disk-reserve", "48MiB", "--changes-max", "8MiB"];
        let inner = serve(self.data.path(), &[&settings[..], &limits].concat());
        self.inside(&inner)
    }

    /// Wraps a command so that it sees the disk.
    fn inside(&self, inner: &Command) -> Command {
        self.disk.inside(inner)
    }

    fn start(&self) -> (Server, Redis) {
        let server = Server::start(&mut self.command());
        let address = server.process.said("roost serves redis://").unwrap();
        (server, Redis::new(address.parse().unwrap()))
    }

    /// Path of a file on the disk that the server does not use.
    fn other(&self) -> PathBuf {
        self.disk.outside("other")
    }

    /// Fills the disk to the last byte.
    fn use_up(&self) {
        let mut file = File::options().create(true).append(true).open(self.other()).unwrap();
        for bytes in [MIB, 4_096, 1] {
            while file.write_all(&vec![1; bytes]).is_ok() {}
        }
    }
}

fn metric(server: &Server, name: &str) -> f64 {
    let metrics = server.client().get("/metrics").expect(200).text();
    let name = format!("{name} ");
    metrics.lines().find_map(|line| line.strip_prefix(&name)).unwrap().parse().unwrap()
}

/// Sets a key to a long value. Returns false if the disk is full.
fn fill(redis: &mut Redis, number: usize) -> bool {
    let value = vec![number as u8; MIB];
    match redis.run(&[b"SET", format!("k{number}").as_bytes(), &value]) {
        Reply::Error(error) => {
            assert!(error.starts_with("OOM the disk of the server is full"), "{error}");
            false
        }
        reply => {
            assert_eq!(reply, Reply::ok());
            true
        }
    }
}

#[test]
fn a_full_disk_refuses_writes_until_something_is_deleted_and_answers_reads() {
    let Some(small) = Small::new() else { return };
    let (server, mut redis) = small.start();
    let mut client = server.client();
    let ann = client.register("ann");
    let [post, other] = ["before", "another"].map(|text| client.publish(ann, text));
    // Another file takes most of the disk.
    std::fs::write(small.other(), vec![1; 70 * MIB]).unwrap();
    let kept = (0..1_000).take_while(|number| fill(&mut redis, *number)).count();
    assert!(server.process.logged("only deletions are accepted").is_some());
    assert_eq!(metric(&server, "roost_disk_full"), 1.0);
    // Reads work.
    assert_eq!(redis.line("DBSIZE").integer(), kept as i64);
    client.get(&format!("/v1/users/{ann}/timeline")).expect(200);
    client.get("/healthz").expect(200);
    client.get("/readyz").expect(200);
    let path = format!("/v1/users/{ann}/posts");
    let refused = client.post(&path, &json!({"text": "now"})).expect(507);
    assert_eq!(refused.json()["error"], "disk_full");
    // A deletion is accepted, even if the lines before and after it are refused.
    let text = json!({"op": "post", "user": ann.to_string(), "text": "now"});
    let delete = json!({"op": "delete_post", "user": ann.to_string(), "id": other.to_string()});
    let lines: String = [&text, &delete, &text].map(|line| format!("{line}\n")).concat();
    let headers = [("Content-Type", "application/x-ndjson")];
    let answer = client.send("POST", "/v1/batch", &headers, lines.as_bytes()).unwrap();
    let results = answer.expect(200).lines();
    let found: Vec<_> = results.iter().map(|result| result["ok"] == true).collect();
    assert_eq!(found, [false, true, false], "{results:?}");
    client.send("DELETE", &format!("/v1/users/{ann}/posts/{post}"), &[], &[]).unwrap().expect(204);
    for number in 0..kept {
        assert_eq!(redis.line(&format!("DEL k{number}")).integer(), 1);
    }
    // Make space again.
    std::fs::remove_file(small.other()).unwrap();
    assert!(server.process.logged("the disk has enough free space again").is_some());
    assert!(fill(&mut redis, 0));
    client.publish(ann, "after");
    assert_eq!(metric(&server, "roost_disk_full"), 0.0);
    server.stop();
}

#[test]
fn a_server_runs_and_starts_on_a_disk_that_something_else_has_used_up() {
    let Some(small) = Small::new() else { return };
    let (server, mut redis) = small.start();
    let mut client = server.client();
    let ann = client.register("ann");
    assert!((0..20).all(|number| fill(&mut redis, number)));
    small.use_up();
    assert!(server.process.logged("only deletions are accepted").is_some());
    // Another file may take the last bytes only after the server has checked. Wait for the next check.
    let start = Instant::now();
    while metric(&server, "roost_disk_free_bytes") > 0.0 {
        assert!(start.elapsed() < PATIENCE);
        std::thread::yield_now();
    }
    assert!(!fill(&mut redis, 20));
    assert!(redis.line("DEL k0").error().starts_with("OOM "));
    assert_eq!(redis.line("DBSIZE").integer(), 20);
    server.process.signal(Signal::KILL);
    drop(server);
    let (server, mut redis) = small.start();
    assert_eq!(redis.line("DBSIZE").integer(), 20);
    server.client().get(&format!("/v1/users/{ann}")).expect(200);
    assert!(!fill(&mut redis, 20));
    // The server can be stopped and started on the full disk.
    server.stop();
    let (server, mut redis) = small.start();
    assert_eq!(redis.line("DBSIZE").integer(), 20);
    // Once there is space again, everything works.
    std::fs::remove_file(small.other()).unwrap();
    assert!(server.process.logged("the disk has enough free space again").is_some());
    assert!((20..60).all(|number| fill(&mut redis, number)));
    server.stop();
    let (server, mut redis) = small.start();
    assert_eq!(redis.line("DBSIZE").integer(), 60);
    server.stop();
}

#[test]
fn a_full_disk_of_the_archive_stops_nothing() {
    let Some(small) = Small::new() else { return };
    let data = tempfile::tempdir().unwrap();
    let archive = small.data.path().join("archive");
    let settings =
        ["--open", "--archive-interval", "10ms", "--overlay-memory", "1MiB", "--archive"];
    let mut command = small.inside(serve(data.path(), &settings).arg(&archive));
    let server = Server::start(&mut command);
    let mut client = server.client();
    let ann = client.register("ann");
    small.use_up();
    let put = |client: &mut Client, number: usize| {
        let key = format!("/v1/buckets/0/keys/{number}");
        client.send("PUT", &key, &[], &vec![number as u8; MIB]).unwrap().expect(204);
    };
    (0..40).for_each(|number| put(&mut client, number));
    assert!(server.process.logged("cannot archive the log").is_some());
    client.publish(ann, "still here");
    assert_eq!(metric(&server, "roost_disk_full"), 0.0);
    std::fs::remove_file(small.other()).unwrap();
    assert!(server.process.logged("the archive can be written again").is_some());
    let last = client.publish(ann, "and later");
    server.stop();
    let folder = small.other().with_file_name("archive");
    let mut texts = 0;
    let read = ArchiveReader::open(&folder).unwrap().read(Position(0), &mut |group| {
        texts += usize::from(group.payload.windows(9).any(|part| part == b"and later"));
        Ok(())
    });
    read.unwrap();
    assert_eq!(texts, 1, "{last}");
    assert_eq!(unfinished(&folder), 0, "nothing half written is left");
}

/// Number of incomplete files in an archive.
fn unfinished(archive: &std::path::Path) -> usize {
    let names = std::fs::read_dir(archive).unwrap().map(|entry| entry.unwrap().file_name());
    names.filter(|name| name.to_string_lossy().ends_with(".tmp")).count()
}
