//! Tests of backups of running and stopped servers, of restoring backups, and of checks that find damage.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use ::backup::{Keyspace, Reader};
use serde_json::json;

use crate::support::PATIENCE;
use crate::support::files::{copy, files};
use crate::support::http::{Client, number};
use crate::support::process::{Ended, Process, Server, roost, run, serve};

const WRITERS: usize = 3;
/// Number of changes that each writer makes before the backup begins.
const BEFORE: usize = 60;

pub(crate) fn path(text: &Path) -> &str {
    text.to_str().unwrap()
}

/// Runs the binary, which must succeed.
pub(crate) fn done(arguments: &[&str]) -> Ended {
    let ended = run(arguments);
    assert_eq!(ended.status.code(), Some(0), "{arguments:?}: {ended:#?}");
    ended
}

/// Runs the binary, which must end with this exit code. Returns its output.
pub(crate) fn refused(arguments: &[&str], code: i32) -> String {
    let ended = run(arguments);
    assert_eq!(ended.status.code(), Some(code), "{arguments:?}: {ended:#?}");
    ended.out + &ended.err
}

/// Starts a server, which must fail. Returns its error.
pub(crate) fn not_served(data: &Path) -> String {
    let ended = Process::start(serve(data, &[]).arg("--open")).ended();
    assert_eq!(ended.status.code(), Some(1), "{ended:#?}");
    ended.err
}

pub(crate) fn back_up(server: &Server, to: &Path) {
    let url = format!("http://{}", server.address);
    done(&["backup", "--server", &url, "--out", path(to)]);
}

/// Ids of all posts of a user, oldest first.
pub(crate) fn posts(client: &mut Client, user: u32) -> Vec<u64> {
    let posts = client.all(&format!("/v1/users/{user}/posts"));
    let mut ids: Vec<u64> = posts.iter().map(|post| number(&post["id"])).collect();
    ids.reverse();
    ids
}

#[test]
fn a_backup_under_load_holds_all_that_was_acknowledged_and_nothing_torn() {
    let folder = tempfile::tempdir().unwrap();
    let (data, file) = (folder.path().join("data"), folder.path().join("backup"));
    let server = Server::open(&data, &["--overlay-memory", "1MiB"]);
    let mut client = server.client();
    let users: Vec<u32> = (0..WRITERS).map(|at| client.register(&format!("writer{at}"))).collect();
    let reader = client.register("reader");
    users.iter().for_each(|user| client.follow(reader, *user));
    client.put("/v1/buckets/ledger").expect(204);
    let stop = AtomicBool::new(false);
    let acknowledged: Vec<_> = users.iter().map(|_| std::sync::Mutex::new(Vec::new())).collect();
    let before = std::thread::scope(|scope| {
        for (user, acknowledged) in users.iter().zip(&acknowledged) {
            let (mut client, stop) = (server.client(), &stop);
            scope.spawn(move || {
                for at in 0.. {
                    // The value has 9 kB, so that checkpoints and cuts of the log are frequent.
                    let key = format!("/v1/buckets/ledger/keys/{user}-{at}");
                    client.send("PUT", &key, &[], &vec![at as u8; 9_000]).unwrap().expect(204);
                    acknowledged.lock().unwrap().push(client.publish(*user, &format!("post {at}")));
                    if stop.load(Ordering::Acquire) && at > BEFORE {
                        return;
                    }
                }
            });
        }
        let made = |at: usize| acknowledged[at].lock().unwrap().len();
        let start = Instant::now();
        while (0..WRITERS).any(|at| made(at) < BEFORE) {
            assert!(start.elapsed() < PATIENCE, "the writers hang");
            std::thread::yield_now();
        }
        let before: Vec<usize> = (0..WRITERS).map(made).collect();
        back_up(&server, &file);
        stop.store(true, Ordering::Release);
        before
    });
    server.stop();
    let restored = folder.path().join("restored");
    done(&["verify", path(&file)]);
    done(&["restore", path(&file), "--data", path(&restored)]);
    done(&["verify", "--data", path(&restored)]);
    let server = Server::open(&restored, &[]);
    let mut client = server.client();
    let mut home = Vec::new();
    for ((user, before), acknowledged) in users.iter().zip(before).zip(acknowledged) {
        let (found, acknowledged) = (posts(&mut client, *user), acknowledged.into_inner().unwrap());
        assert!(found.len() >= before, "{} of {before} posts of {user}", found.len());
        assert_eq!(found, acknowledged[..found.len()], "a writer's first changes, all of them");
        // A writer sets a key before each post. After the last post in the backup, there may be one more key.
        for at in 0..found.len() + 2 {
            let key = format!("/v1/buckets/ledger/keys/{user}-{at}");
            let answer = client.get(&key);
            match at.cmp(&found.len()) {
                std::cmp::Ordering::Less => assert_eq!(answer.status, 200, "{key}"),
                std::cmp::Ordering::Equal => assert!([200, 404].contains(&answer.status)),
                std::cmp::Ordering::Greater => assert_eq!(answer.status, 404, "{key}"),
            }
        }
        home.extend(found);
    }
    home.sort_unstable_by(|a, b| b.cmp(a));
    let timeline = client.all(&format!("/v1/users/{reader}/timeline"));
    let timeline: Vec<u64> = timeline.iter().map(|post| number(&post["id"])).collect();
    assert_eq!(timeline, home);
}

/// All rows in a backup.
type Rows = [BTreeMap<Vec<u8>, Vec<u8>>; 2];

/// Rows of a backup, times of its groups, and the file of keys.
fn contents(file: &Path) -> (Rows, Vec<u64>, Option<Vec<u8>>) {
    let mut reader = Reader::open(fs::File::open(file).unwrap()).unwrap();
    let rows = [Keyspace::Ephemeral, Keyspace::Facts].map(|keyspace| {
        let mut rows = BTreeMap::new();
        let each = |key: &[u8], value: &[u8]| {
            rows.insert(key.to_vec(), value.to_vec());
            Ok(())
        };
        reader.rows(keyspace, each).unwrap();
        rows
    });
    let mut times = Vec::new();
    reader
        .groups(|group| {
            times.push(group.time_ms);
            Ok(())
        })
        .unwrap();
    let keys = reader.keys().unwrap();
    reader.finish().unwrap();
    (rows, times, keys)
}

/// Fills the directory of a stopped server with data of every kind.
pub(crate) fn something(data: &Path) {
    let server = Server::start(serve(data, &[]).env("ROOST_KEY", "a-key-of-this-test"));
    drop(server.stop());
    done(&["key", "create", "app", "--data", path(data)]);
    let server = Server::open(data, &[]);
    let mut client = server.client();
    let (ann, bob) = (client.register("ann"), client.register("bob"));
    client.follow(bob, ann);
    client.put(&format!("/v1/users/{ann}/friends/{bob}")).expect(204);
    for at in 0..50 {
        client.publish(ann, &format!("post {at} for @bob"));
    }
    let story = json!({"text": "a story", "ttl_s": 600_000});
    client.post(&format!("/v1/users/{ann}/stories"), &story).expect(201);
    client.put("/v1/buckets/b").expect(204);
    client.send("PUT", "/v1/buckets/b/keys/k", &[], &vec![7; 100_000]).unwrap().expect(204);
    server.stop();
}

#[test]
fn what_is_restored_has_the_rows_and_keys_of_what_was_backed_up() {
    let folder = tempfile::tempdir().unwrap();
    let [data, first, restored, second] =
        ["data", "first", "restored", "second"].map(|name| folder.path().join(name));
    something(&data);
    let made = done(&["backup", "--data", path(&data), "--out", path(&first)]);
    let size = format!("{} bytes, ", fs::metadata(&first).unwrap().len());
    assert!(made.err.contains(&size), "{size}: {}", made.err);
    let checked = done(&["verify", path(&first)]);
    assert!(checked.out.contains(&size), "{size}: {}", checked.out);
    done(&["restore", path(&first), "--data", path(&restored)]);
    done(&["backup", "--data", path(&restored), "--out", path(&second)]);
    let (one, two) = (contents(&first), contents(&second));
    assert!(one.0[0].len() > 1 && one.0[1].len() > 50, "{} rows", one.0[1].len());
    assert!(one == two);
    assert!(String::from_utf8(one.2.unwrap()).unwrap().contains("\"app\""));
    // A backup can be written to a pipe, and read from a pipe.
    let mut command = roost(["backup", "--data", path(&restored), "--out", "-"]);
    let output = command.output().unwrap();
    let mut verify = roost(["verify", "-"]);
    let mut verify = verify.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    verify.stdin.take().unwrap().write_all(&output.stdout).unwrap();
    assert!(verify.wait().unwrap().success());
}

#[test]
fn a_restore_to_a_time_has_exactly_the_changes_up_to_it() {
    let folder = tempfile::tempdir().unwrap();
    let [data, file] = ["data", "file"].map(|name| folder.path().join(name));
    let server = Server::open(&data, &[]);
    let mut client = server.client();
    let user = client.register("ann");
    let made: Vec<u64> = (0..40).map(|at| client.publish(user, &format!("post {at}"))).collect();
    back_up(&server, &file);
    server.stop();
    let (_, times, _) = contents(&file);
    // The backup has all groups, because no checkpoint was due. Each change is a group, because they came one after the
    // other.
    assert_eq!(times.len(), made.len() + 1);
    for at in [0, 11, 40] {
        let restored = folder.path().join(format!("restored{at}"));
        let ms = times[at] as i64;
        let time = jiff::Timestamp::from_millisecond(ms).unwrap().to_string();
        done(&["restore", path(&file), "--data", path(&restored), "--to", &time]);
        let expect = times.iter().filter(|time| **time <= times[at]).count() - 1;
        let server = Server::open(&restored, &[]);
        assert_eq!(posts(&mut server.client(), user), made[..expect], "up to {time}");
        server.stop();
    }
    let none = folder.path().join("none");
    for time in ["2093-01-01T00:00:00Z", "1969-01-01T00:00:00Z"] {
        refused(&["restore", path(&file), "--data", path(&none), "--to", time], 1);
        assert!(!none.exists(), "{time}");
    }
}

#[test]
fn damaged_backups_are_found_and_never_become_a_directory_that_is_served() {
    let folder = tempfile::tempdir().unwrap();
    let [data, file, bad] = ["data", "file", "bad"].map(|name| folder.path().join(name));
    something(&data);
    done(&["backup", "--data", path(&data), "--out", path(&file)]);
    let whole = fs::read(&file).unwrap();
    let flipped = (0..8).map(|part| {
        let mut flipped = whole.clone();
        flipped[100 + part * (whole.len() - 101) / 7] ^= 1 << part;
        flipped
    });
    let cut = [whole[..whole.len() / 2].to_vec(), whole[..whole.len() - 1].to_vec()];
    for (at, damaged) in flipped.chain(cut).enumerate() {
        fs::write(&bad, damaged).unwrap();
        let found = refused(&["verify", path(&bad)], 3);
        assert!(found.contains("damage") && found.contains("roost backup"), "{found}");
        let restored = folder.path().join(format!("restored{at}"));
        refused(&["restore", path(&bad), "--data", path(&restored)], 1);
        if restored.exists() {
            let error = not_served(&restored);
            assert!(error.contains("did not finish"), "{error}");
            let error = refused(&["restore", path(&file), "--data", path(&restored)], 1);
            assert!(error.contains("did not finish"), "{error}");
        }
    }
    fs::write(&bad, "no backup").unwrap();
    assert!(refused(&["verify", path(&bad)], 1).contains("not a backup"));
    // The restore does not change a directory that is not empty.
    let error = refused(&["restore", path(&file), "--data", path(&data)], 1);
    assert!(error.contains("not empty"), "{error}");
    done(&["verify", "--data", path(&data)]);
}

#[test]
fn a_copy_of_the_directory_of_a_running_server_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let [data, live, crashed, closed] =
        ["data", "live", "crashed", "closed"].map(|name| folder.path().join(name));
    let server = Server::open(&data, &[]);
    server.client().register("ann");
    copy(&data, &live);
    server.kill();
    copy(&data, &crashed);
    for copy in [&live, &crashed] {
        let error = not_served(copy);
        assert!(error.contains("roost backup") && error.contains(path(copy)), "{error}");
        let error = refused(&["backup", "--data", path(copy), "--out", "-"], 1);
        assert!(error.contains("roost backup"), "{error}");
    }
    // The original directory is not a copy. For the crashed one, removing `lock` declares that nothing wrote to the
    // original.
    fs::remove_file(crashed.join("lock")).unwrap();
    for directory in [&data, &crashed] {
        let server = Server::open(directory, &[]);
        server.client().get("/v1/users/0").expect(200);
        server.stop();
    }
    copy(&data, &closed);
    Server::open(&closed, &[]).client().get("/v1/users/0").expect(200);
}

#[test]
fn damage_in_a_data_directory_is_found_with_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    something(&data);
    let clean = done(&["verify", "--data", path(&data)]).out;
    assert!(clean.contains("2 users, 50 posts, 1 follows, 1 keys"), "{clean}");
    let check = |file: &Path, at: usize| {
        let whole = fs::read(file).unwrap();
        let mut flipped = whole.clone();
        flipped[at] ^= 1;
        fs::write(file, flipped).unwrap();
        let found = refused(&["verify", "--data", path(&data)], 3);
        fs::write(file, whole).unwrap();
        assert!(found.contains(path(file)) && found.contains("roost restore"), "{found}");
    };
    let mut tables: Vec<_> = files(&data.join("store/facts/keyspaces/1/tables"));
    tables.sort_by_key(|path| fs::metadata(path).unwrap().len());
    check(tables.last().unwrap(), 1_000);
    let segment = files(&data.join("log")).into_iter().min().unwrap();
    check(&segment, 20);
    check(&data.join("keys.json"), 1);
    done(&["verify", "--data", path(&data)]);
    let server = Server::open(&data, &[]);
    assert!(refused(&["verify", "--data", path(&data)], 1).contains("another process uses"));
    server.stop();
}

#[test]
fn others_may_read_no_file_of_a_data_directory_or_backup() {
    let folder = tempfile::tempdir().unwrap();
    let [data, file, restored] = ["data", "file", "restored"].map(|name| folder.path().join(name));
    let server = Server::open(&data, &[]);
    server.client().register("ann");
    back_up(&server, &file);
    server.stop();
    done(&["restore", path(&file), "--data", path(&restored)]);
    let mut all = [files(&data), files(&restored), vec![data.clone(), restored, file]].concat();
    all.push(data.join("log"));
    for path in all {
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{path:?} has {mode:o}");
    }
    fs::set_permissions(&data, fs::Permissions::from_mode(0o755)).unwrap();
    let ended = Server::open(&data, &[]).stop();
    assert!(ended.err.contains("chmod -R go= "), "{ended:#?}");
}

#[test]
fn a_backup_needs_the_scope_admin_and_is_made_one_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    fs::create_dir(&data).unwrap();
    let key = |scopes: &str| {
        let name = scopes.replace(',', "-");
        let arguments = ["key", "create", &name, "--scope", scopes, "--data", path(&data)];
        done(&arguments).out.trim().to_owned()
    };
    let (app, admin) = (key("read,write"), key("admin"));
    let mut server = Server::start(serve(&data, &[]).env("ROOST_KEY", "a-key-of-this-test"));
    server.key = Some("a-key-of-this-test".into());
    let mut client = server.client();
    client.put("/v1/buckets/b").expect(204);
    // The values are longer than the buffers of a connection.
    for at in 0..3 {
        let key = format!("/v1/buckets/b/keys/{at}");
        client.send("PUT", &key, &[], &vec![at; 16 << 20]).unwrap().expect(204);
    }
    let url = format!("http://{}", server.address);
    let file = folder.path().join("file");
    let arguments = ["backup", "--server", &url, "--out", path(&file)];
    for key in [None, Some(&app)] {
        let ended = Process::start(roost(arguments).envs(key.map(|key| ("ROOST_SERVER_KEY", key))));
        let ended = ended.ended();
        assert_eq!(ended.status.code(), Some(1), "{ended:#?}");
        assert!(ended.err.contains("--scope admin"), "{ended:#?}");
    }
    assert!(!file.exists());
    // This client reads only the head, so its backup does not end.
    let mut slow = TcpStream::connect(server.address).unwrap();
    let key = "a-key-of-this-test";
    let request = format!(
        "GET /v1/backup HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {key}\r\n\r\n",
        server.address
    );
    slow.write_all(request.as_bytes()).unwrap();
    let mut head = [0; 15];
    slow.read_exact(&mut head).unwrap();
    assert_eq!(&head, b"HTTP/1.1 200 OK");
    assert_eq!(client.get("/v1/backup").expect(409).json()["error"], "backup_running");
    drop(slow);
    let start = Instant::now();
    loop {
        let ended = Process::start(roost(arguments).env("ROOST_SERVER_KEY", &admin)).ended();
        if ended.status.success() {
            break;
        }
        assert!(ended.err.contains("another backup"), "{ended:#?}");
        assert!(start.elapsed() < PATIENCE, "the first backup does not end");
    }
    done(&["verify", path(&file)]);
}
