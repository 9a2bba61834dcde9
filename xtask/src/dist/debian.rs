//! Debian package, made from the release directory and `packaging/`. It needs only `dpkg-deb`, which every Debian
//! system has, and downloads nothing.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context as _;

use super::{Distribution, TIME, install, tool, write};

/// Debian revision of the package.
const REVISION: u32 = 1;

/// Files of the package: path in the release directory, installed path, mode.
const FILES: [(&str, &str, u32); 9] = [
    ("roost", "usr/bin/roost", 0o755),
    ("packaging/systemd/roost.service", "lib/systemd/system/roost.service", 0o644),
    ("packaging/systemd/sysusers.conf", "usr/lib/sysusers.d/roost.conf", 0o644),
    ("packaging/systemd/default", "etc/default/roost", 0o644),
    ("packaging/debian/copyright", "usr/share/doc/roost/copyright", 0o644),
    ("packaging/debian/lintian-overrides", "usr/share/lintian/overrides/roost", 0o644),
    ("completions/roost.bash", "usr/share/bash-completion/completions/roost", 0o644),
    ("completions/_roost", "usr/share/zsh/vendor-completions/_roost", 0o644),
    ("completions/roost.fish", "usr/share/fish/vendor_completions.d/roost.fish", 0o644),
];
/// Scripts that run at installation and removal.
const SCRIPTS: [&str; 3] = ["postinst", "prerm", "postrm"];

/// Builds the package in `out`.
///
/// # Errors
/// If a tool is missing or a file cannot be written.
pub(super) fn build(distribution: &Distribution<'_>, out: &Path) -> anyhow::Result<PathBuf> {
    let architecture = tool(Command::new("dpkg").arg("--print-architecture"))?.trim().to_owned();
    let version = format!("{}-{REVISION}", distribution.version);
    let folder = out.join("debian");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    for (from, to, mode) in FILES {
        install(&distribution.tree.join(from), &folder.join(to), mode)?;
    }
    documents(distribution, &folder, &version)?;
    control(distribution, &folder, &version, &architecture)?;
    let package = out.join(format!("roost_{version}_{architecture}.deb"));
    let mut build = Command::new("dpkg-deb");
    build.env(TIME, &distribution.time).args(["--root-owner-group", "-Zxz"]);
    build.args(distribution.is_fast.then_some("-z1"));
    tool(build.arg("--build").arg(&folder).arg(&package))?;
    fs::remove_dir_all(&folder)?;
    Ok(package)
}

/// Adds man pages, changelogs, notices, and files for monitoring.
fn documents(distribution: &Distribution<'_>, folder: &Path, version: &str) -> anyhow::Result<()> {
    let tree = &distribution.tree;
    let documents = folder.join("usr/share/doc/roost");
    for page in fs::read_dir(tree.join("man"))? {
        let page = page?;
        let name = format!("{}.gz", page.file_name().to_string_lossy());
        write(&folder.join("usr/share/man/man1").join(name), &gzip(&page.path())?, 0o644)?;
    }
    super::copy(&tree.join("packaging/monitoring"), &documents.join("monitoring"))?;
    for (name, installed) in [
        ("CHANGELOG.md", "changelog.gz"),
        ("NOTICE", "NOTICE.gz"),
        ("THIRD-PARTY", "THIRD-PARTY.gz"),
    ] {
        write(&documents.join(installed), &gzip(&tree.join(name))?, 0o644)?;
    }
    let mut date = Command::new("date");
    let date = tool(date.env("LC_ALL", "C").args(["-uR", &format!("-d@{}", distribution.time)]))?;
    let changes = format!(
        "roost ({version}) unstable; urgency=medium\n\n  * Package of this version; its changes are in changelog.gz.\n\n \
         -- {}  {date}",
        distribution.maintainer,
    );
    let plain = documents.join("changelog.Debian");
    write(&plain, changes.as_bytes(), 0o644)?;
    write(&documents.join("changelog.Debian.gz"), &gzip(&plain)?, 0o644)?;
    Ok(fs::remove_file(plain)?)
}

/// Writes the files for dpkg: description, checksums, configuration files, scripts.
fn control(
    distribution: &Distribution<'_>,
    folder: &Path,
    version: &str,
    architecture: &str,
) -> anyhow::Result<()> {
    let mut files = Vec::new();
    list(folder, &mut files)?;
    files.sort();
    let bytes: u64 = files.iter().filter_map(|file| Some(fs::metadata(file).ok()?.len())).sum();
    let names =
        files.iter().map(|file| file.strip_prefix(folder)).collect::<Result<Vec<_>, _>>()?;
    let sums = tool(Command::new("md5sum").current_dir(folder).args(&names))?;
    let control = fs::read_to_string(distribution.root.join("packaging/debian/control"))?
        .replace("{version}", version)
        .replace("{architecture}", architecture)
        .replace("{installed_kib}", &bytes.div_ceil(1_024).to_string())
        .replace("{maintainer}", &distribution.maintainer)
        .replace("{libraries}", &libraries()?);
    let settings = names.iter().filter(|name| name.starts_with("etc"));
    let conffiles: String = settings.map(|name| format!("/{}\n", name.display())).collect();
    let debian = folder.join("DEBIAN");
    write(&debian.join("control"), control.as_bytes(), 0o644)?;
    write(&debian.join("md5sums"), sums.as_bytes(), 0o644)?;
    write(&debian.join("conffiles"), conffiles.as_bytes(), 0o644)?;
    for script in SCRIPTS {
        let from = distribution.tree.join("packaging/debian").join(script);
        install(&from, &debian.join(script), 0o755)?;
    }
    Ok(())
}

/// Returns dependencies on the libraries to which the program is linked, with the versions of this machine as minimum.
fn libraries() -> anyhow::Result<String> {
    let query = ["-W", "-f", "${Package} (>= ${Version})\n", "libc6", "libgcc-s1"];
    let lines = tool(Command::new("dpkg-query").args(query))?;
    // Drop Debian's revision, because 2.36-8 is as good as 2.36-9.
    let upstream = |line: &str| match line.rsplit_once('-') {
        Some((before, _)) if line.contains(" (>= ") => format!("{before})"),
        _ => line.to_owned(),
    };
    Ok(lines.lines().map(upstream).collect::<Vec<_>>().join(", "))
}

/// Compresses a file with gzip. The result does not contain the file's name and time.
fn gzip(file: &Path) -> anyhow::Result<Vec<u8>> {
    let output = Command::new("gzip").arg("-9nc").arg(file).output().context("cannot run gzip")?;
    anyhow::ensure!(output.status.success(), "gzip cannot read {}", file.display());
    Ok(output.stdout)
}

/// Adds all files below `folder`.
fn list(folder: &Path, files: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            list(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}
