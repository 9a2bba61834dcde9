//! Fetches tools of tests that are not in the Rust toolchain: Redis's test suite and two Redis clients; a validator of
//! OpenAPI and two generators of clients; clients of Mastodon's API; and NATS. All are stored in `fetched` in the
//! target directory.
//!
//! Commands that fetch something are printed; if fetching is not allowed, they are only returned. Versions and digests
//! are in `xtask/clients` and `examples/typescript`. If the lock file of a tool has changed, the tool is fetched again, into an empty folder.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::has;

/// Version of the suite. The suites of other versions test commands that roost does not have.
const REDIS: &str = "redis-7.0.";
/// NATS server; NATS command-line client, for tests of the `nats` commands that error messages of roost suggest; proxy
/// that cuts connections. Go verifies the downloads with its checksum database.
const NATS: [(&str, &str); 3] = [
    ("nats-server", "github.com/nats-io/nats-server/v2@v2.15.2"),
    ("nats", "github.com/nats-io/natscli/nats@v0.5.1"),
    ("toxiproxy-server", "github.com/Shopify/toxiproxy/v2/cmd/server@v2.12.0"),
];
/// Timeout of a command. It is long, because NATS is compiled.
const LIMIT: Duration = Duration::from_secs(15 * 60);
/// Number of output lines of a failed command that are printed: the last ones.
const LINES: usize = 5;

/// Location of the tools, and whether they may be fetched.
#[derive(Debug)]
pub(crate) struct Fetcher<'a> {
    pub(crate) root: &'a Path,
    pub(crate) target: &'a Path,
    pub(crate) may_install: bool,
}

/// Tool and the way to fetch it.
#[derive(Debug)]
struct Tool<'a> {
    what: &'a str,
    folder: &'a Path,
    /// Copy of the lock file, made when the tool was fetched.
    stamp: &'a Path,
    lock: &'a str,
    /// Whether the folder belongs only to this tool, and is emptied first.
    is_alone: bool,
    limit: Duration,
}

impl<'a> Tool<'a> {
    /// Describes a tool in its own folder.
    fn alone(what: &'a str, folder: &'a Path, stamp: &'a Path, lock: &'a str) -> Self {
        Self { what, folder, stamp, lock, is_alone: true, limit: LIMIT }
    }
}

impl Fetcher<'_> {
    /// Fetches missing tools. Returns those that are still missing.
    pub(crate) fn all(&self) -> Vec<String> {
        let mut missing: Vec<String> = self.suite().into_iter().collect();
        for (name, what) in [
            ("redis-py", "the client redis-py"),
            ("openapi-python", "clients generated in Python"),
            ("mastodon-python", "clients of Mastodon's API in Python"),
        ] {
            missing.extend(self.python(name, what));
        }
        for (name, files, what) in [
            ("ioredis", "xtask/clients/ioredis", "the client ioredis"),
            ("openapi-typescript", "examples/typescript", "clients generated in TypeScript"),
            ("masto", "xtask/clients/masto", "the client masto.js"),
        ] {
            missing.extend(self.node(name, files, what));
        }
        missing.extend(self.toot());
        missing.extend(self.nats());
        missing
    }

    /// Builds the programs of NATS with Go. Returns the missing ones that are not in `PATH` either.
    pub(crate) fn nats(&self) -> Vec<String> {
        let folder = self.fetched("nats");
        let missing = NATS.into_iter().filter_map(|(program, module)| {
            let stamp = folder.join(format!("{program}.lock"));
            let what = format!("{program}, for the log of a cluster");
            let (folder, stamp) = (&*folder, &*stamp);
            let tool =
                Tool { what: &what, folder, stamp, lock: module, is_alone: false, limit: LIMIT };
            // Let Go write go.sum for the module of another project.
            let mut go = Command::new("go");
            go.args(["install", module]).env("GOBIN", folder).env("GOFLAGS", "-mod=mod");
            // Go names a program after the last folder of its package.
            let mut rename = Command::new("mv");
            rename.args(["server", program]);
            let is_named = program != "toxiproxy-server";
            let missing = self.fetch(&tool, if is_named { vec![go] } else { vec![go, rename] });
            missing.filter(|_| !has(program))
        });
        missing.collect()
    }

    /// Fetches the modules of the browser tests into `e2e/`. Returns a message if this fails.
    pub(crate) fn modules(&self) -> Option<String> {
        let folder = self.root.join("e2e");
        let lock = fs::read_to_string(folder.join("package-lock.json")).unwrap_or_default();
        let stamp = folder.join("node_modules/.lock");
        let what = "the pages in a browser";
        let (folder, stamp) = (&*folder, &*stamp);
        let tool = Tool { what, folder, stamp, lock: &lock, is_alone: false, limit: LIMIT };
        self.fetch(&tool, vec![npm()])
    }

    /// Installs Python packages into their own folder.
    fn python(&self, name: &str, what: &str) -> Option<String> {
        let (folder, file) = (self.fetched(name), self.clients(&format!("{name}.txt")));
        let lock = fs::read_to_string(&file).unwrap_or_default();
        let stamp = folder.join(".lock");
        let tool = Tool::alone(what, &folder, &stamp, &lock);
        let mut pip = Command::new("python3");
        pip.args(["-m", "pip", "install", "--quiet", "--require-hashes", "--upgrade"]);
        pip.arg("--target").arg(&folder).arg("--requirement").arg(&file);
        self.fetch(&tool, vec![pip])
    }

    /// Installs Node.js packages into their own folder. `files` is the folder of their lock file.
    fn node(&self, name: &str, files: &str, what: &str) -> Option<String> {
        let (folder, files) = (self.fetched(name), self.root.join(files));
        let lock = fs::read_to_string(files.join("package-lock.json")).unwrap_or_default();
        let stamp = folder.join(".lock");
        let tool = Tool::alone(what, &folder, &stamp, &lock);
        let mut copy = Command::new("cp");
        copy.args(["package.json", "package-lock.json"].map(|file| files.join(file))).arg(".");
        self.fetch(&tool, vec![copy, npm()])
    }

    /// Fetches the tests of toot, which are only in its source package.
    fn toot(&self) -> Option<String> {
        let (folder, file) = (self.fetched("toot"), self.clients("toot.txt"));
        let lock = fs::read_to_string(&file).unwrap_or_default();
        // To read the metadata of the package, pip builds it, with packages that no lock file names.
        let what = "toot's own tests (pip also fetches the newest setuptools and setuptools-scm)";
        let stamp = folder.join(".lock");
        let tool = Tool::alone(what, &folder, &stamp, &lock);
        let mut pip = Command::new("python3");
        pip.args(["-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:"]);
        pip.args(["--require-hashes", "--requirement"]).arg(&file);
        let mut tar = Command::new("sh");
        tar.args(["-c", "tar xzf toot-*.tar.gz"]);
        self.fetch(&tool, vec![pip, tar])
    }

    /// Downloads Redis's source package. Uses its own package lists, because those of the system may have no sources.
    fn suite(&self) -> Option<String> {
        let folder = self.fetched("redis-suite");
        let apt = folder.join("apt");
        let option = |name: &str, path: &str| format!("{name}={}", apt.join(path).display());
        let options = [
            option("Dir::Etc::sourcelist", "sources.list"),
            option("Dir::Etc::sourceparts", "parts"),
            option("Dir::State::lists", "lists"),
            option("Dir::Cache", "cache"),
        ];
        let apt_get = |words: &[&str]| {
            let mut command = Command::new("apt-get");
            command.args(options.iter().flat_map(|option| ["-o", option])).args(words);
            command
        };
        let what = "Redis's test suite";
        let stamp = folder.join(".lock");
        let tool = Tool::alone(what, &folder, &stamp, REDIS);
        let mut unpack = Command::new("sh");
        unpack.args(["-c", &format!("tar xzf redis_*.orig.tar.gz && ls {REDIS}*/runtest")]);
        let commands = vec![
            sources(),
            apt_get(&["--quiet", "update"]),
            apt_get(&["source", "--download-only", "redis"]),
            unpack,
        ];
        let failed = self.fetch(&tool, commands)?;
        let folder = folder.display();
        Some(format!(
            "{failed}; or unpack the sources of {REDIS}x into {folder}, and there run: printf {REDIS} > .lock"
        ))
    }

    fn fetched(&self, name: &str) -> PathBuf {
        // Go requires an absolute path.
        let folder = self.target.join("fetched").join(name);
        std::path::absolute(&folder).unwrap_or(folder)
    }

    fn clients(&self, name: &str) -> PathBuf {
        self.root.join("xtask/clients").join(name)
    }

    /// Runs the commands in the folder of a tool, unless the tool is there and its lock file is unchanged. Returns a
    /// message if the tool is missing afterwards.
    fn fetch(&self, tool: &Tool<'_>, commands: Vec<Command>) -> Option<String> {
        if fs::read_to_string(tool.stamp).is_ok_and(|text| text == tool.lock) {
            return None;
        }
        let (what, folder) = (tool.what, tool.folder.display());
        let lines: Vec<String> = commands.iter().map(words).collect();
        let lines = lines.join(" && ");
        if !self.may_install {
            return Some(format!("{what}: with --install, this runs in {folder}: {lines}"));
        }
        println!("fetching {what} into {folder}: {lines}");
        fs::remove_file(tool.stamp).ok();
        if tool.is_alone
            && tool.folder.exists()
            && let Err(error) = fs::remove_dir_all(tool.folder)
        {
            return Some(format!("{what}: cannot empty {folder}: {error}"));
        }
        if let Err(error) = fs::create_dir_all(tool.folder) {
            return Some(format!("{what}: cannot create {folder}: {error}"));
        }
        for mut command in commands {
            if let Err(error) = run(command.current_dir(tool.folder), tool.limit) {
                let registry = registry(&command).unwrap_or_default();
                return Some(format!("{what}: {}: {error}{registry}", words(&command)));
            }
        }
        let stamped = fs::write(tool.stamp, tool.lock);
        stamped.err().map(|error| format!("{what}: cannot write {}: {error}", tool.stamp.display()))
    }
}

/// npm command that installs the packages of the lock file, without running their scripts.
fn npm() -> Command {
    let mut npm = Command::new("npm");
    npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel", "error"]);
    npm
}

/// Shell command that writes a list of apt sources with source packages.
fn sources() -> Command {
    let mut shell = Command::new("sh");
    let script = "mkdir -p apt/lists/partial apt/cache/archives/partial apt/parts && \
        touch apt/sources.list && \
        for list in /etc/apt/sources.list; do [ ! -e $list ] || sed 's/^deb /deb-src /' $list > apt/sources.list; done && \
        for list in /etc/apt/sources.list.d/debian.sources; do [ ! -e $list ] || \
        sed 's/^Types: deb$/Types: deb-src/' $list > apt/parts/debian.sources; done";
    shell.args(["-c", script]);
    shell
}

/// Command line as a user would type it.
fn words(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

/// Returns the registry from which a command fetches, according to the command's configuration.
fn registry(command: &Command) -> Option<String> {
    let (kind, line) = match command.get_program().to_str()? {
        "python3" => ("index of pip", "python3 -m pip config get global.index-url"),
        "npm" => ("registry of npm", "npm config get registry"),
        "go" => ("module proxy of Go", "go env GOPROXY"),
        "apt-get" => return Some(" (the sources of apt are those in /etc/apt)".into()),
        _ => return None,
    };
    let (program, arguments) = line.split_once(' ')?;
    let output = Command::new(program).args(arguments.split(' ')).output().ok();
    let said = output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    let place = said.filter(|said| !said.is_empty()).unwrap_or_else(|| "its default".into());
    Some(format!(" (the {kind} is {place})"))
}

/// Runs a command until it ends, or until the timeout.
///
/// # Errors
/// The reason, and the end of the output.
pub(crate) fn run(command: &mut Command, limit: Duration) -> Result<(), String> {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let output = std::env::temp_dir().join(format!("xtask-fetch-{}-{number}", std::process::id()));
    let ended = run_into(command, limit, &output);
    let text = fs::read_to_string(&output).unwrap_or_default();
    fs::remove_file(&output).ok();
    ended.map_err(|error| {
        let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        let last = lines.get(lines.len().saturating_sub(LINES)..).unwrap_or_default();
        format!("{error}: {}", last.join("; "))
    })
}

fn run_into(command: &mut Command, limit: Duration, output: &Path) -> Result<(), String> {
    let said = |error: std::io::Error| error.to_string();
    let file = File::create(output).map_err(said)?;
    command.stdin(Stdio::null()).stdout(file.try_clone().map_err(said)?).stderr(file);
    let (mut child, start) = (command.spawn().map_err(said)?, Instant::now());
    loop {
        match child.try_wait().map_err(said)? {
            Some(status) if status.success() => return Ok(()),
            Some(status) => return Err(status.to_string()),
            None if start.elapsed() > limit => {
                child.kill().and_then(|()| child.wait()).map_err(said)?;
                return Err(format!("no end after {} s", limit.as_secs()));
            }
            None => std::thread::sleep(Duration::from_millis(50)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn shell(script: &str) -> Vec<Command> {
        let mut shell = Command::new("sh");
        shell.args(["-c", script]);
        vec![shell]
    }

    #[test]
    fn nothing_is_fetched_without_permission_and_a_changed_lock_fetches_again() {
        let root = std::env::temp_dir().join(format!("xtask-fetch-test-{}", std::process::id()));
        let folder = root.join("tool");
        let (stamp, count) = (folder.join(".lock"), root.join("count"));
        let fetch = |may_install, lock, script: &str| {
            let fetcher = Fetcher { root: &root, target: &root, may_install };
            fetcher.fetch(&Tool::alone("a tool", &folder, &stamp, lock), shell(script))
        };
        let script = "echo >> ../count && touch $(wc -l < ../count)";
        let refused = fetch(false, "1", script).unwrap();
        assert!(refused.contains("--install") && refused.contains(script), "{refused}");
        assert!(!folder.exists());
        for (lock, expect) in [("1", 1), ("1", 1), ("2", 2)] {
            assert_eq!(fetch(true, lock, script), None);
            assert_eq!(fetch(false, lock, "false"), None, "it is there");
            assert_eq!(fs::read_to_string(&count).unwrap().len(), expect);
            let found = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name());
            let found: BTreeSet<_> = found.collect();
            let expect = [".lock".into(), expect.to_string().into()];
            assert_eq!(found, expect.into(), "files of an older version stay");
        }
        let failed = fetch(true, "3", "echo no network >&2; exit 7").unwrap();
        assert!(failed.contains("no network") && failed.contains('7'), "{failed}");
        assert!(fetch(false, "2", "true").is_some(), "what failed is not there");
        fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn a_command_that_does_not_end_is_killed_and_a_failed_one_names_its_registry() {
        let error = run(Command::new("sleep").arg("600"), Duration::ZERO).unwrap_err();
        assert!(error.contains("no end"), "{error}");
        let sources = registry(&Command::new("apt-get")).unwrap();
        assert!(sources.contains("apt"), "{sources}");
        assert_eq!(registry(&Command::new("sh")), None);
    }
}
