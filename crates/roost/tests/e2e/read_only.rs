//! Tests of a data directory on a read-only disk, as a failing disk may become.

use std::fs;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::process::Command;

use crate::support::process::{Ended, Process, Server, roost, run};
use crate::support::skipped;

/// Runs a command that can only read a directory. If this user cannot mount anything, reports a skipped test and
/// returns `None`.
fn reading_only(data: &Path, arguments: &[&str]) -> Option<Ended> {
    let script =
        "mount --bind \"$0\" \"$0\" && mount -o remount,bind,ro \"$0\" || exit 77; exec \"$@\"";
    let mut command = Command::new("unshare");
    let program = roost([""; 0]).get_program().to_owned();
    command.args(["-m", "sh", "-c", script]).arg(data).arg(program).args(arguments);
    let ended = Process::start(&mut command).ended();
    // If `unshare` itself fails, it ends with 1.
    if ended.status.code() == Some(77) || ended.err.starts_with("unshare:") {
        skipped("disks that can only be read: this user cannot mount anything");
        return None;
    }
    Some(ended)
}

#[test]
fn what_is_on_a_disk_that_can_only_be_read_is_checked_and_saved() {
    let folder = tempfile::tempdir().unwrap();
    let (data, to) = (folder.path().join("data"), tempfile::tempdir().unwrap());
    let to = |name: &str| to.path().join(name).to_str().unwrap().to_owned();
    // The last changes are only in the log, in no checkpoint.
    let server = Server::open(&data, &[]);
    let ann = server.client().register("ann");
    server.client().publish(ann, "unsaved");
    server.kill();
    let data = data.to_str().unwrap();
    for (arguments, code) in [
        (&["verify", "--data", data][..], 0),
        (&["backup", "--data", data, "--out", &to("backup")], 0),
        (&["backup", "--data", data, "--archive", &to("archive")], 0),
        (&["export", "--data", data, "--out", &to("export")], 0),
        (&["repair", "--data", data, "--out", &to("repaired")], 0),
        (&["serve", "--open", "--listen", "127.0.0.1:0", "--data", data], 1),
    ] {
        let Some(ended) = reading_only(Path::new(data), arguments) else { return };
        assert_eq!(ended.status.code(), Some(code), "{arguments:?}: {ended:#?}");
        assert!(!ended.err.contains("panicked"), "{arguments:?}: {ended:#?}");
    }
    assert!(fs::read_to_string(to("export")).unwrap().contains("unsaved"));
    let restored = run(["restore", &to("backup"), "--data", &to("restored")]);
    assert!(restored.out.contains("1 posts"), "{restored:#?}");
}

#[test]
fn verify_finds_a_time_of_the_last_run_that_a_start_refuses() {
    let data = tempfile::tempdir().unwrap();
    Server::open(data.path(), &[]).stop();
    let path = data.path().to_str().unwrap();
    assert_eq!(run(["verify", "--data", path]).status.code(), Some(0));
    let file = fs::File::options().write(true).open(data.path().join("last-run")).unwrap();
    file.write_all_at(b"00000002795348800000\n", 0).unwrap();
    let found = run(["verify", "--data", path]);
    assert_eq!(found.status.code(), Some(3), "{found:#?}");
    assert!(found.out.contains("2058-07-31"), "{found:#?}");
    let refused = run(["serve", "--open", "--listen", "127.0.0.1:0", "--data", path]);
    assert!(refused.err.contains("2058-07-31"), "{refused:#?}");
}
