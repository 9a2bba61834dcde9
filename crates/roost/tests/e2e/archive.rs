//! Tests of archives of the log: restores to any time, and archives that are missing, full, foreign or damaged.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

use commitlog::{ArchiveReader, Position};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::json;

use crate::backup::{back_up, done, not_served, path, posts, refused};
use crate::support::PATIENCE;
use crate::support::files::{copy, files};
use crate::support::http::Client;
use crate::support::process::{Process, Server, roost, serve};
use crate::support::world::{Account, Post, World, ids};

const USERS: u32 = 6;
const CHANGES: usize = 260;
/// Number of times to which the test restores.
const TIMES: usize = 12;

/// The changes made so far, with the state after each.
struct History {
    world: World,
    keys: BTreeMap<String, Vec<u8>>,
    states: Vec<(World, BTreeMap<String, Vec<u8>>)>,
    random: StdRng,
}

impl History {
    fn keep(&mut self) {
        self.states.push((self.world.clone(), self.keys.clone()));
    }

    /// Makes one change, which is a group of its own in the log.
    fn change(&mut self, client: &mut Client) {
        let number = self.states.len();
        let users = self.world.0.len() as u32;
        if users < USERS {
            let handle = format!("user{users}");
            let id = client.register(&handle);
            self.world.0.insert(id, Account { handle, ..Account::default() });
            return self.keep();
        }
        let user = self.random.random_range(0..USERS);
        let other = (user + self.random.random_range(1..USERS)) % USERS;
        let account = self.world.0.get_mut(&user).unwrap();
        let follow = format!("/v1/users/{user}/following/{other}");
        match self.random.random_range(0..6) {
            0 if account.following.remove(&other) => {
                drop(client.send("DELETE", &follow, &[], &[]).unwrap().expect(204));
            }
            0 => {
                account.following.insert(other);
                client.follow(user, other);
            }
            1 if !account.posts.is_empty() => {
                let at = self.random.random_range(0..account.posts.len());
                let post = account.posts.remove(at);
                let path = format!("/v1/users/{user}/posts/{}", post.id);
                client.send("DELETE", &path, &[], &[]).unwrap().expect(204);
            }
            2 => {
                // Values are long, so that checkpoints are taken and the log is cut.
                let key = format!("/v1/buckets/0/keys/{}", self.random.random_range(0..9));
                let value = vec![number as u8; self.random.random_range(1..90_000)];
                client.send("PUT", &key, &[], &value).unwrap().expect(204);
                self.keys.insert(key, value);
            }
            _ => {
                let text = format!("post {number} for @user{other}");
                let id = client.publish(user, &text);
                account.posts.push(Post { id, text, reply_to: None, mentions: vec![other] });
            }
        }
        self.keep();
    }
}

fn check(client: &mut Client, (world, keys): &(World, BTreeMap<String, Vec<u8>>)) {
    assert_eq!(ids(client, "/v1/users?limit=100").len(), world.0.len());
    for (user, account) in &world.0 {
        let shown: Vec<_> = client.all(&format!("/v1/users/{user}/posts"));
        let shown: Vec<Post> = shown.iter().rev().map(|post| Post::read(post).1).collect();
        assert_eq!(shown, account.posts, "posts of {user}");
        let following = ids(client, &format!("/v1/users/{user}/following"));
        assert!(following.into_iter().eq(account.following.iter().map(|id| u64::from(*id))));
        world.check_home(client, *user, 100);
        world.check_mentions(client, *user, 50);
    }
    for number in 0..9 {
        let key = format!("/v1/buckets/0/keys/{number}");
        let answer = client.get(&key);
        match keys.get(&key) {
            Some(value) => assert_eq!(&answer.expect(200).body, value, "{key}"),
            None => assert_eq!(answer.status, 404, "{key}"),
        }
    }
}

/// Times of the groups in an archive, by position.
fn times(archive: &Path) -> BTreeMap<u64, u64> {
    let mut times = BTreeMap::new();
    let read = ArchiveReader::open(archive).unwrap().read(Position(0), &mut |group| {
        times.insert(group.position.0, group.time_ms);
        Ok(())
    });
    read.unwrap();
    times
}

fn text(ms: u64) -> String {
    jiff::Timestamp::from_millisecond(ms as i64).unwrap().to_string()
}

fn restore<'a>(backup: &'a Path, archive: &'a Path, data: &'a Path) -> Vec<&'a str> {
    vec!["restore", path(backup), "--archive", path(archive), "--data", path(data)]
}

/// Sends requests until the value of a metric is good.
fn wait_for(server: &Server, name: &str, good: impl Fn(f64) -> bool) {
    let start = Instant::now();
    let mut client = server.client();
    loop {
        let metrics = client.get("/metrics").expect(200).text();
        let line = metrics.lines().find_map(|line| line.strip_prefix(&format!("{name} ")));
        let value = line.unwrap().parse().unwrap();
        if good(value) {
            return;
        }
        assert!(start.elapsed() < PATIENCE, "{name} is {value}");
        std::thread::yield_now();
    }
}

#[test]
fn a_restore_to_any_time_has_exactly_the_state_of_that_time() {
    let folder = tempfile::tempdir().unwrap();
    let [data, archive, file] = ["data", "archive", "file"].map(|name| folder.path().join(name));
    let settings =
        ["--archive", path(&archive), "--archive-interval", "20ms", "--overlay-memory", "256KiB"];
    let mut history = History {
        world: World::default(),
        keys: BTreeMap::new(),
        states: Vec::new(),
        random: StdRng::seed_from_u64(7),
    };
    history.keep();
    // The server is stopped by a signal or killed, in turns. The backup is made in the second run.
    for run in 0..4 {
        let server = Server::open(&data, &settings);
        let mut client = server.client();
        for change in 0..CHANGES / 4 {
            history.change(&mut client);
            if run == 1 && change == 20 {
                back_up(&server, &file);
            }
        }
        if run % 2 == 0 { drop(server.stop()) } else { drop(server.kill()) }
    }
    done(&["backup", "--data", path(&data), "--archive", path(&archive)]);
    let verified = done(&["verify", path(&archive)]).out;
    assert!(verified.contains("no damage"), "{verified}");
    let times = times(&archive);
    assert_eq!(times.len(), history.states.len() - 1, "a group for each change");
    let backup = contents_up_to(&file);
    assert!(backup > 60 && backup < 200, "{backup}");
    let random = (0..TIMES).map(|_| history.random.random_range(backup..=times.len() as u64));
    let mut positions: Vec<u64> = random.collect();
    positions.extend([backup, times.len() as u64]);
    for (at, position) in positions.into_iter().enumerate() {
        let restored = folder.path().join(format!("restored{at}"));
        let until = times[&position];
        let until_text = text(until);
        done(&[&restore(&file, &archive, &restored)[..], &["--to", &until_text]].concat());
        let state = times.values().filter(|time| **time <= until).count();
        let server = Server::open(&restored, &[]);
        check(&mut server.client(), &history.states[state]);
        server.stop();
        fs::remove_dir_all(restored).unwrap();
    }
    // Without a time, everything is restored. The restored directory does not belong to the archive any more.
    let restored = folder.path().join("restored");
    done(&restore(&file, &archive, &restored));
    done(&["verify", "--data", path(&restored)]);
    let mut command = serve(&restored, &settings);
    let ended = Process::start(command.arg("--open")).ended();
    assert!(ended.err.contains("belongs to another data directory"), "{ended:#?}");
    let server = Server::open(&restored, &[]);
    check(&mut server.client(), history.states.last().unwrap());
    // This time is after the last known change.
    let none = folder.path().join("none");
    let late = [&restore(&file, &archive, &none)[..], &["--to", "2092-01-01T00:00:00Z"]].concat();
    assert!(refused(&late, 1).contains("only times from"));
    assert!(!none.exists());
}

/// Position of the last group in a backup.
fn contents_up_to(file: &Path) -> u64 {
    ::backup::verify(fs::File::open(file).unwrap()).unwrap().0.last
}

/// Makes four things in `folder`: the directory of a stopped server with 40 posts, a backup of its first half, an
/// archive of everything with a file for each ten posts, and the ids of the posts.
fn archived(folder: &Path) -> (PathBuf, PathBuf, PathBuf, Vec<u64>) {
    let [data, archive, file] = ["data", "archive", "file"].map(|name| folder.join(name));
    let mut made = Vec::new();
    for run in 0..4 {
        let server = Server::open(&data, &["--archive", path(&archive)]);
        let mut client = server.client();
        if run == 0 {
            client.register("ann");
        }
        made.extend((0..10).map(|at| client.publish(0, &format!("post {run} {at}"))));
        if run == 1 {
            back_up(&server, &file);
        }
        server.stop();
    }
    (data, archive, file, made)
}

fn segments(archive: &Path) -> Vec<PathBuf> {
    let mut segments = files(archive);
    segments.retain(|path| path.extension().is_some_and(|end| end == "log"));
    segments.sort();
    segments
}

#[test]
fn gaps_and_damage_are_refused_with_file_and_place_and_restored_up_to() {
    let folder = tempfile::tempdir().unwrap();
    let (_, archive, file, made) = archived(folder.path());
    let all = segments(&archive);
    assert_eq!(all.len(), 4, "{all:?}");
    let last = all.last().unwrap();
    let whole = fs::read(last).unwrap();
    let restored = |name: &str| folder.path().join(name);
    // The time, in an error, up to which all changes are known.
    let hinted = |error: &str| {
        let (_, rest) = error.split_once("add --to ").unwrap();
        rest.split(": ").next().unwrap().to_owned()
    };
    let mut flipped = whole.clone();
    let at = flipped.len() / 2;
    flipped[at] ^= 1;
    for (name, change) in [("flipped", Some(flipped)), ("gap", None)] {
        let broken = if change.is_some() { last } else { &all[2] };
        match &change {
            Some(bytes) => fs::write(broken, bytes).unwrap(),
            None => fs::rename(broken, folder.path().join("aside")).unwrap(),
        }
        let found = refused(&["verify", path(&archive)], 3);
        let to = restored(name);
        let error = refused(&restore(&file, &archive, &to), 1);
        assert!(!to.exists(), "checked before anything is made");
        let names = |text: &str| match name {
            "flipped" => text.contains(path(last)) && text.contains("at byte"),
            _ => text.contains("lacks the groups 22 to 31"),
        };
        assert!(names(&found) && names(&error), "{found} {error}");
        let until = hinted(&error);
        done(&[&restore(&file, &archive, &to)[..], &["--to", &until]].concat());
        let server = Server::open(&to, &[]);
        let found = posts(&mut server.client(), 0);
        let least = if name == "flipped" { 30 } else { 19 };
        assert!(found.len() >= least && found.len() < 40, "{} posts up to {until}", found.len());
        assert_eq!(found, made[..found.len()]);
        server.stop();
        match change {
            Some(_) => fs::write(broken, &whole).unwrap(),
            None => fs::rename(folder.path().join("aside"), broken).unwrap(),
        }
    }
    // Files before the backup are not needed for a restore.
    fs::remove_file(&all[0]).unwrap();
    done(&restore(&file, &archive, &restored("all")));
    let server = Server::open(&restored("all"), &[]);
    assert_eq!(posts(&mut server.client(), 0), made);
    server.stop();
    for path in [files(&archive), vec![archive.clone()]].concat() {
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{path:?} has {mode:o}");
    }
}

#[test]
fn an_archive_belongs_to_one_data_directory() {
    let folder = tempfile::tempdir().unwrap();
    let (data, archive, file, _) = archived(folder.path());
    let [other, other_file, restored, older] =
        ["other", "other_file", "restored", "older"].map(|name| folder.path().join(name));
    let error = |data: &Path| {
        let mut command = serve(data, &["--archive", path(&archive), "--open"]);
        let ended = Process::start(&mut command).ended();
        // If another process writes to the archive, the exit code is 1, because that process may end. Other errors are
        // in the settings.
        let code = if ended.err.contains("another process") { 1 } else { 2 };
        assert_eq!(ended.status.code(), Some(code), "{ended:#?}");
        ended.err
    };
    let server = Server::open(&other, &[]);
    server.client().register("bob");
    back_up(&server, &other_file);
    server.stop();
    assert!(error(&other).contains("belongs to another data directory"));
    let refusal = refused(&restore(&other_file, &archive, &restored), 1);
    assert!(refusal.contains("belongs to another data directory"), "{refusal}");
    let refusal = refused(&["backup", "--data", path(&other), "--archive", path(&archive)], 1);
    assert!(refusal.contains("belongs to another data directory"), "{refusal}");
    // Now two servers run on copies of one directory.
    copy(&data, &older);
    let server = Server::open(&data, &["--archive", path(&archive), "--archive-interval", "10ms"]);
    assert!(error(&older).contains("another process writes to the archive"));
    server.client().publish(0, "newer");
    wait_for(&server, "roost_archive_lag_seconds", |lag| lag == 0.0);
    server.stop();
    // First the copy lacks a change of the archive, then it has a different one.
    assert!(error(&older).contains("has different changes"));
    let server = Server::open(&older, &[]);
    server.client().publish(0, "another");
    let backup = folder.path().join("backup_of_the_copy");
    back_up(&server, &backup);
    server.stop();
    let refusal = refused(&restore(&backup, &archive, &restored), 1);
    assert!(refusal.contains("does not continue the backup"), "{refusal}");
    fs::remove_dir_all(&restored).unwrap();
    assert!(error(&older).contains("has different changes"));
    // This directory is not an archive.
    assert!(refused(&restore(&file, &data, &restored), 1).contains("is not an archive"));
    let mut command = serve(&other, &["--archive", path(&data), "--open"]);
    assert!(Process::start(&mut command).ended().err.contains("is not an archive"));
}

#[test]
fn a_missing_archive_stops_nothing_and_gets_everything_later() {
    let folder = tempfile::tempdir().unwrap();
    let [data, disk, file] = ["data", "disk", "file"].map(|name| folder.path().join(name));
    let archive = disk.join("archive");
    let settings =
        ["--archive", path(&archive), "--archive-interval", "10ms", "--overlay-memory", "1MiB"];
    let server = Server::open(&data, &settings);
    assert!(server.process.logged("cannot archive the log").is_some());
    let mut client = server.client();
    client.register("ann");
    back_up(&server, &file);
    // This is much more than the log keeps without an archive.
    let filled = 60;
    for number in 0..filled {
        let key = format!("/v1/buckets/0/keys/{number}");
        client.send("PUT", &key, &[], &vec![number; 1 << 20]).unwrap().expect(204);
    }
    wait_for(&server, "roost_archive_failures_total", |failures| failures > 1.0);
    wait_for(&server, "roost_log_bytes", |bytes| bytes > 50e6);
    // Now the disk is available.
    fs::create_dir(&disk).unwrap();
    assert!(server.process.logged("the archive can be written again").is_some());
    wait_for(&server, "roost_archive_lag_seconds", |lag| lag == 0.0);
    // The disk is full for one file.
    let failures = Cell::new(f64::MAX);
    wait_for(&server, "roost_archive_failures_total", |count| {
        failures.set(count);
        true
    });
    std::os::unix::fs::symlink("/dev/full", archive.join("next.tmp")).unwrap();
    client.publish(0, "after");
    wait_for(&server, "roost_archive_failures_total", |count| count > failures.get());
    wait_for(&server, "roost_archive_lag_seconds", |lag| lag == 0.0);
    server.stop();
    done(&["verify", path(&archive)]);
    let restored = folder.path().join("restored");
    done(&restore(&file, &archive, &restored));
    let server = Server::open(&restored, &[]);
    assert_eq!(posts(&mut server.client(), 0).len(), 1);
    for number in 0..filled {
        let key = format!("/v1/buckets/0/keys/{number}");
        assert_eq!(server.client().get(&key).expect(200).body, vec![number; 1 << 20]);
    }
}

#[test]
fn beyond_its_limit_the_log_is_cut_and_the_gap_is_known_everywhere() {
    let folder = tempfile::tempdir().unwrap();
    let [data, archive, file] = ["data", "archive", "file"].map(|name| folder.path().join(name));
    let aside = folder.path().join("aside");
    let settings = [
        "--archive",
        path(&archive),
        "--archive-interval",
        "10ms",
        "--archive-backlog",
        "20MiB",
        "--overlay-memory",
        "1MiB",
    ];
    let server = Server::open(&data, &settings);
    let mut client = server.client();
    client.register("ann");
    while fs::read_dir(&archive).unwrap().count() < 2 {
        wait_for(&server, "roost_archive_lag_seconds", |lag| lag == 0.0);
    }
    back_up(&server, &file);
    fs::rename(&archive, &aside).unwrap();
    // The archived groups are in the first segment. Write until the log is cut beyond it.
    let segments = || fs::read_dir(data.join("log")).unwrap().map(|file| file.unwrap().file_name());
    let first = segments().min();
    let value = vec![1; 1 << 20];
    for number in 0.. {
        let key = format!("/v1/buckets/0/keys/{}", number % 100);
        client.send("PUT", &key, &[], &value).unwrap().expect(204);
        if number > 120 && segments().min() > first {
            break;
        }
    }
    fs::rename(&aside, &archive).unwrap();
    assert!(server.process.logged("the log was cut before it was archived").is_some());
    wait_for(&server, "roost_archive_gaps_total", |gaps| gaps == 1.0);
    wait_for(&server, "roost_archive_lag_seconds", |lag| lag == 0.0);
    let later = folder.path().join("later");
    back_up(&server, &later);
    client.publish(0, "after");
    server.stop();
    let restored = folder.path().join("restored");
    assert!(refused(&["verify", path(&archive)], 3).contains("lacks the groups"));
    assert!(refused(&restore(&file, &archive, &restored), 1).contains("lacks the groups"));
    // A backup made after the gap can be restored.
    done(&restore(&later, &archive, &restored));
    let server = Server::open(&restored, &[]);
    assert_eq!(posts(&mut server.client(), 0).len(), 1);
}

#[test]
fn the_log_of_a_directory_with_a_damaged_store_is_archived_and_nothing_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let [data, archive, file] = ["data", "archive", "file"].map(|name| folder.path().join(name));
    // Nothing is archived within the time of this test.
    let settings =
        ["--archive", path(&archive), "--archive-interval", "1h", "--erase-within", "4h"];
    let server = Server::open(&data, &settings);
    let mut client = server.client();
    client.register("ann");
    back_up(&server, &file);
    let made: Vec<u64> = (0..30).map(|at| client.publish(0, &format!("post {at}"))).collect();
    server.kill();
    fs::remove_dir_all(data.join("store")).unwrap();
    let added = done(&["backup", "--data", path(&data), "--archive", path(&archive)]).out;
    assert!(added.contains("added 31 groups") && added.contains("up to group 31"), "{added}");
    let added = done(&["backup", "--data", path(&data), "--archive", path(&archive)]).out;
    assert!(added.contains("added 0 groups"), "{added}");
    let restored = folder.path().join("restored");
    done(&restore(&file, &archive, &restored));
    let server = Server::open(&restored, &[]);
    assert_eq!(posts(&mut server.client(), 0), made);
}

/// Size of all files below a directory, in bytes.
fn size(dir: &Path) -> u64 {
    let mut sum = 0;
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        sum += match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => size(&entry.path()),
            Ok(metadata) => metadata.len(),
            Err(_) => 0,
        };
    }
    sum
}

#[test]
fn a_restore_that_is_killed_is_refused_with_the_commands_that_finish_it() {
    let folder = tempfile::tempdir().unwrap();
    let [data, archive, file] = ["data", "archive", "file"].map(|name| folder.path().join(name));
    let settings = ["--archive", path(&archive), "--overlay-memory", "1MiB"];
    let server = Server::open(&data, &settings);
    let mut client = server.client();
    client.register("ann");
    for number in 0..30 {
        let key = format!("/v1/buckets/0/keys/{number}");
        client.send("PUT", &key, &[], &vec![number; 500_000]).unwrap().expect(204);
        if number == 20 {
            back_up(&server, &file);
        }
    }
    client.publish(0, "last");
    server.stop();
    let whole = folder.path().join("whole");
    done(&restore(&file, &archive, &whole));
    let (whole, mut random) = (size(&whole), StdRng::seed_from_u64(9));
    let mut killed = 0;
    for round in 0..12 {
        let to = folder.path().join("to");
        let share = random.random_range(0..=whole);
        let mut process = Process::start(&mut roost(restore(&file, &archive, &to)));
        // Wait until a part was written.
        while size(&to) < share && process.runs() {
            std::thread::yield_now();
        }
        process.kill_if_running();
        let finished = process.ended().status.success();
        if !finished && to.join("lock").exists() && size(&to) > 0 {
            killed += 1;
            let error = not_served(&to);
            let again = format!("rm -r {0}; roost restore BACKUP --data {0}", path(&to));
            assert!(error.contains(&again), "round {round}: {error}");
            let error = refused(&restore(&file, &archive, &to), 1);
            assert!(error.contains(&again), "round {round}: {error}");
            fs::remove_dir_all(&to).unwrap();
        }
        if !finished {
            done(&restore(&file, &archive, &to));
        }
        let server = Server::open(&to, &[]);
        assert_eq!(posts(&mut server.client(), 0).len(), 1, "round {round}");
        server.stop();
        fs::remove_dir_all(&to).unwrap();
    }
    assert!(killed > 3, "only {killed} were killed in the middle");
}

#[test]
fn changes_of_a_server_that_is_stopped_and_killed_are_in_the_archive_once() {
    let folder = tempfile::tempdir().unwrap();
    let [data, archive] = ["data", "archive"].map(|name| folder.path().join(name));
    let mut made = 0;
    for run in 0..4 {
        let server =
            Server::open(&data, &["--archive", path(&archive), "--archive-interval", "10ms"]);
        let mut client = server.client();
        if run == 0 {
            client.post("/v1/users", &json!({"handle": "ann"})).expect(201);
            made += 1;
        }
        for at in 0..20 {
            client.publish(0, &format!("{at}"));
            made += 1;
        }
        if run % 2 == 0 { drop(server.kill()) } else { drop(server.stop()) }
    }
    assert!(times(&archive).into_keys().eq(1..=made));
    done(&["verify", path(&archive)]);
}
