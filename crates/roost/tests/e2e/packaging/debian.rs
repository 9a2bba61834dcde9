//! Tests of the Debian package: its contents, and its installation, upgrade and removal.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use super::{Dist, packaging, tool};
use crate::support::process::{Process, Server, serve};
use crate::support::said;

/// All files of the package with their modes, except man pages.
const FILES: [(&str, u32); 16] = [
    ("etc/default/roost", 0o644),
    ("lib/systemd/system/roost.service", 0o644),
    ("usr/bin/roost", 0o755),
    ("usr/lib/sysusers.d/roost.conf", 0o644),
    ("usr/share/bash-completion/completions/roost", 0o644),
    ("usr/share/doc/roost/NOTICE.gz", 0o644),
    ("usr/share/doc/roost/THIRD-PARTY.gz", 0o644),
    ("usr/share/doc/roost/changelog.Debian.gz", 0o644),
    ("usr/share/doc/roost/changelog.gz", 0o644),
    ("usr/share/doc/roost/copyright", 0o644),
    ("usr/share/doc/roost/monitoring/alerts.test.yml", 0o644),
    ("usr/share/doc/roost/monitoring/alerts.yml", 0o644),
    ("usr/share/doc/roost/monitoring/dashboard.json", 0o644),
    ("usr/share/fish/vendor_completions.d/roost.fish", 0o644),
    ("usr/share/lintian/overrides/roost", 0o644),
    ("usr/share/zsh/vendor-completions/_roost", 0o644),
];
/// Folder of the man pages.
const MAN: &str = "usr/share/man/man1/";

/// Unpacks the package into a folder.
fn unpacked() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut extract = Command::new("dpkg-deb");
    said(&extract.arg("-x").arg(&Dist::made().package).arg(folder.path()).output().unwrap());
    folder
}

fn files(folder: &Path, below: &Path, found: &mut Vec<(String, u32)>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let mode = path.symlink_metadata().unwrap().permissions().mode() & 0o7777;
        if path.is_dir() {
            assert_eq!(mode, 0o755, "{}", path.display());
            files(&path, below, found);
        } else {
            found.push((path.strip_prefix(below).unwrap().to_str().unwrap().to_owned(), mode));
        }
    }
}

#[test]
fn the_package_has_its_files_and_a_program_that_serves() {
    let folder = unpacked();
    let mut found = Vec::new();
    fs::read_dir(folder.path()).unwrap().for_each(|entry| {
        files(&entry.unwrap().path(), folder.path(), &mut found);
    });
    found.sort();
    let (man, others): (Vec<_>, Vec<_>) =
        found.into_iter().partition(|(name, _)| name.starts_with(MAN));
    assert_eq!(others, FILES.map(|(name, mode)| (name.to_owned(), mode)));
    for page in ["roost", "roost-serve", "roost-key", "roost-key-create", "roost-simulate"] {
        assert!(man.contains(&(format!("{MAN}{page}.1.gz"), 0o644)), "{page}? {man:?}");
    }
    let data = tempfile::tempdir().unwrap();
    let mut command = serve(data.path(), &["--open"]);
    let arguments: Vec<_> = command.get_args().map(ToOwned::to_owned).collect();
    command = Command::new(folder.path().join("usr/bin/roost"));
    let server = Server::start(command.args(arguments).env_clear());
    server.client().get("/readyz").expect(200);
    server.stop();
}

#[test]
fn the_archive_is_the_directory_and_the_same_bytes_each_time() {
    let (first, second) = (Dist::made(), Dist::make("dist-again"));
    for (one, other) in [(&first.archive, &second.archive), (&first.package, &second.package)] {
        assert!(fs::read(one).unwrap() == fs::read(other).unwrap(), "{} differs", one.display());
    }
    let mut list = Command::new("tar");
    let list = said(&list.arg("-tf").arg(&first.archive).output().unwrap());
    for name in ["roost", "LICENSE", "NOTICE", "THIRD-PARTY", "packaging/Containerfile"] {
        let path = format!("{}/{name}\n", first.tree.file_name().unwrap().display());
        assert!(list.contains(&path), "{path}? {list}");
    }
    let notices = fs::read_to_string(first.tree.join("THIRD-PARTY")).unwrap();
    for library in
        ["\ntokio v", "\nfjall v", "SIL OPEN FONT LICENSE", "Permission is hereby granted"]
    {
        assert!(notices.contains(library), "{library}?");
    }
    assert!(!notices.contains("\nproptest v"), "libraries of tests alone are not in the program");
}

#[test]
fn systemd_accepts_the_unit_and_finds_it_confined() {
    let folder = unpacked();
    // The unit uses a shell to reload, and every system has one.
    fs::create_dir_all(folder.path().join("bin")).unwrap();
    fs::copy("/bin/sh", folder.path().join("bin/sh")).unwrap();
    let mut verify = Command::new("systemd-analyze");
    verify.args(["verify", "--man=no", "--recursive-errors=no"]);
    verify.arg("--root").arg(folder.path()).arg("roost.service");
    let Some(output) = tool(&mut verify) else { return };
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    // The scale is from 0 (confined) to 100 (not confined). A unit without these settings has 96.
    let mut security = Command::new("systemd-analyze");
    security.args(["security", "--offline=true", "--threshold=20", "--no-pager"]);
    said(&security.arg(packaging("systemd/roost.service")).output().unwrap());
}

#[test]
fn the_package_passes_lintian() {
    let mut lintian = Command::new("lintian");
    lintian.args(["--fail-on", "error,warning", "--allow-root", "--tag-display-limit", "0"]);
    let Some(output) = tool(lintian.arg(&Dist::made().package)) else { return };
    said(&output);
}

/// Root directory with a database of dpkg, in which no package is installed.
struct Root(tempfile::TempDir);

impl Root {
    fn new() -> Self {
        let root = Self(tempfile::tempdir().unwrap());
        for folder in ["var/lib/dpkg/info", "var/lib/dpkg/updates", "etc", "var/lib/roost"] {
            fs::create_dir_all(root.path(folder)).unwrap();
        }
        fs::write(root.path("var/lib/dpkg/status"), "").unwrap();
        fs::write(root.path("etc/passwd"), "root:x:0:0::/root:/bin/sh\n").unwrap();
        fs::write(root.path("etc/group"), "root:x:0:\n").unwrap();
        root
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.0.path().join(name)
    }

    /// Runs dpkg as root of a user namespace. The package's scripts get the path of this root directory.
    fn dpkg(&self, arguments: &[&str]) {
        let mut dpkg = Command::new("unshare");
        dpkg.args([
            "-r",
            "dpkg",
            "--force-script-chrootless",
            "--force-depends",
            "--force-confold",
        ]);
        dpkg.arg("--root").arg(self.0.path()).args(arguments);
        let ended = Process::start(&mut dpkg).ended();
        assert!(ended.status.success(), "{ended:#?}");
    }
}

#[test]
fn the_package_installs_upgrades_and_goes_without_the_data() {
    let root = Root::new();
    let package = Dist::made().package.to_str().unwrap();
    root.dpkg(&["-i", package]);
    let users = fs::read_to_string(root.path("etc/passwd")).unwrap();
    assert!(users.lines().any(|user| user.starts_with("roost:x:")), "{users}");
    let enabled = root.path("etc/systemd/system/multi-user.target.wants/roost.service");
    assert!(enabled.symlink_metadata().is_ok(), "the service is enabled");
    // Changes that an administrator made survive an upgrade.
    let settings = root.path("etc/default/roost");
    fs::write(&settings, "ROOST_MEMORY=1GiB\n").unwrap();
    fs::remove_file(&enabled).unwrap();
    root.dpkg(&["-i", package]);
    assert_eq!(fs::read_to_string(&settings).unwrap(), "ROOST_MEMORY=1GiB\n");
    assert!(enabled.symlink_metadata().is_err(), "a disabled service stays disabled");
    fs::write(root.path("var/lib/roost/lock"), "").unwrap();
    root.dpkg(&["--remove", "roost"]);
    assert!(!root.path("usr/bin/roost").exists() && settings.exists());
    root.dpkg(&["--purge", "roost"]);
    assert!(!settings.exists());
    assert!(root.path("var/lib/roost/lock").exists(), "a purge keeps the data");
}
