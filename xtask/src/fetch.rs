//! Downloads tools of tests that are not part of the Rust toolchain: Redis's own test suite and two of its client
//! libraries; a validator of OpenAPI and two generators of clients; clients of Mastodon's API; NATS. All are stored in
//! `fetched` in the target directory.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// The version of the suite; other versions test commands that roost does not have.
const REDIS: &str = "redis-7.0.";
/// The downloaded packages, in versions with known behavior.
const REDIS_PY: &str = "redis==6.4.0";
const IOREDIS: &str = "ioredis@5.8.2";
const OPENAPI_PYTHON: [&str; 2] =
    ["openapi-python-client==0.29.1", "openapi-spec-validator==0.9.0"];
const OPENAPI_TYPESCRIPT: [&str; 2] = ["openapi-typescript@7.13.0", "typescript@5.9.3"];
/// Clients of Mastodon's API, what runs toot's own tests, and what makes random requests of a description.
const MASTODON_PYTHON: [&str; 5] = [
    "Mastodon.py==2.3.3",
    "toot==0.52.1",
    "pytest==9.2.0",
    "jsonschema==4.26.0",
    "schemathesis==4.32.5",
];
/// toot's tests are in its source package alone.
const TOOT: &str = "toot==0.52.1 \
    --hash=sha256:b737173be5587522077c18c4024eb1741a4a30e59d3165e72fd6ce4519d2fecb\n";
/// The last version for Node.js 20.
const MASTO: &str = "masto@7.12.0";
/// The server, the program that runs the commands which error messages advise, and a proxy that cuts links.
const NATS: [(&str, &str); 3] = [
    ("nats-server", "github.com/nats-io/nats-server/v2@v2.15.2"),
    ("nats", "github.com/nats-io/natscli/nats@v0.5.1"),
    ("toxiproxy-server", "github.com/Shopify/toxiproxy/v2/cmd/server@v2.12.0"),
];

/// Fetches what is missing; returns what cannot be had.
pub(crate) fn redis(target: &Path) -> Vec<String> {
    let fetched = target.join("fetched");
    let mut missing = Vec::new();
    if !is_suite(&fetched.join("redis-suite")) {
        suite(&fetched.join("redis-suite"));
    }
    if !is_suite(&fetched.join("redis-suite")) {
        missing.push(format!(
            "Redis's test suite: apt-get source redis did not bring {REDIS}x, so put its source into {}",
            fetched.join("redis-suite").display()
        ));
    }
    missing.extend(python(&fetched.join("redis-py"), &[REDIS_PY], "the client redis-py"));
    missing.extend(node(&fetched.join("ioredis"), &[IOREDIS], "the client ioredis"));
    missing
}

/// Fetches what checks the description of the API; returns what cannot be had.
pub(crate) fn openapi(target: &Path) -> Vec<String> {
    let fetched = target.join("fetched");
    let (py, ts) = (fetched.join("openapi-python"), fetched.join("openapi-typescript"));
    let mut missing = Vec::new();
    missing.extend(python(&py, &OPENAPI_PYTHON, "clients generated in Python"));
    missing.extend(node(&ts, &OPENAPI_TYPESCRIPT, "clients generated in TypeScript"));
    missing
}

/// Fetches clients of Mastodon's API; returns what cannot be had.
pub(crate) fn mastodon(target: &Path) -> Vec<String> {
    let fetched = target.join("fetched");
    let (py, js) = (fetched.join("mastodon-python"), fetched.join("masto"));
    let mut missing = Vec::new();
    missing.extend(python(&py, &MASTODON_PYTHON, "clients of Mastodon's API in Python"));
    missing.extend(node(&js, &[MASTO], "the client masto.js"));
    missing.extend(toot(&fetched.join("toot")));
    missing
}

/// Fetches and unpacks toot's source package; returns a message if it cannot.
fn toot(folder: &Path) -> Option<String> {
    let has_tests = || folder.join("toot-0.52.1/tests/integration").is_dir();
    if !has_tests() {
        fs::create_dir_all(folder).ok();
        fs::write(folder.join("requirements.txt"), TOOT).ok();
        let pip = ["-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:"];
        let files = ["--require-hashes", "--requirement", "requirements.txt"];
        run(Command::new("python3").args(pip).args(files).current_dir(folder));
        run(Command::new("tar").args(["xzf", "toot-0.52.1.tar.gz"]).current_dir(folder));
    }
    (!has_tests()).then(|| "toot's own tests: pip download --no-binary :all: toot==0.52.1".into())
}

/// Builds NATS with Go; returns what cannot be had.
pub(crate) fn nats(target: &Path) -> Vec<String> {
    let folder = target.join("fetched/nats");
    // Go wants an absolute path.
    let folder = std::path::absolute(&folder).unwrap_or(folder);
    let missing = NATS.into_iter().filter_map(|(program, module)| {
        if !folder.join(program).is_file() {
            // Go may write go.sum for a module that is not ours.
            let mut go = Command::new("go");
            go.args(["install", module]).env("GOBIN", &folder).env("GOFLAGS", "-mod=mod");
            run(&mut go);
            // Go names a program after the last folder of its package.
            let built = module.rsplit('/').next().and_then(|last| last.split('@').next());
            if let Some(built) = built.filter(|built| *built != program && *built == "server") {
                fs::rename(folder.join(built), folder.join(program)).ok();
            }
        }
        (!folder.join(program).is_file()).then(|| format!("{program}: go install {module}"))
    });
    missing.collect()
}

/// Installs Python packages into a separate directory; returns a message if it cannot.
fn python(folder: &Path, packages: &[&str], what: &str) -> Option<String> {
    if !folder.is_dir() {
        let pip = ["-m", "pip", "install", "--quiet"];
        run(Command::new("python3").args(pip).args(packages).arg("--target").arg(folder));
    }
    (!folder.is_dir()).then(|| format!("{what}: pip install {}", packages.join(" ")))
}

/// Installs packages of Node into a separate directory; returns a message if it cannot.
fn node(folder: &Path, packages: &[&str], what: &str) -> Option<String> {
    if !folder.is_dir() {
        let install = ["install", "--silent", "--ignore-scripts"];
        run(Command::new("npm").args(install).args(packages).arg("--prefix").arg(folder));
    }
    let installed = folder.join("node_modules").is_dir();
    (!installed).then(|| format!("{what}: npm install {}", packages.join(" ")))
}

fn is_suite(folder: &Path) -> bool {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let named = |name: &str| name.starts_with(REDIS);
    entries.into_iter().any(|entry| {
        named(&entry.file_name().to_string_lossy()) && entry.path().join("runtest").exists()
    })
}

/// Downloads the source package, with lists of packages of our own: the system's may have no sources.
fn suite(folder: &Path) {
    let apt = folder.join("apt");
    let made = ["lists/partial", "cache/archives/partial", "parts"]
        .iter()
        .try_for_each(|name| fs::create_dir_all(apt.join(name)));
    if made.is_err() || sources(&apt).is_err() {
        return;
    }
    let folder_option = |name: &str, path: &str| format!("{name}={}", apt.join(path).display());
    let options = [
        folder_option("Dir::Etc::sourcelist", "sources.list"),
        folder_option("Dir::Etc::sourceparts", "parts"),
        folder_option("Dir::State::lists", "lists"),
        folder_option("Dir::Cache", "cache"),
    ];
    let apt_get = |words: &[&str]| {
        let mut command = Command::new("apt-get");
        options.iter().for_each(|option| {
            command.args(["-o", option]);
        });
        run(command.args(words).current_dir(folder))
    };
    if apt_get(&["--quiet", "update"]) && apt_get(&["source", "--download-only", "redis"]) {
        run(Command::new("sh").args(["-c", "tar xzf redis_*.orig.tar.gz"]).current_dir(folder));
    }
}

/// The system's lists, for sources instead of packages.
fn sources(apt: &Path) -> std::io::Result<()> {
    let old = fs::read_to_string("/etc/apt/sources.list").unwrap_or_default();
    fs::write(apt.join("sources.list"), old.replace("deb ", "deb-src "))?;
    let debian = fs::read_to_string("/etc/apt/sources.list.d/debian.sources").unwrap_or_default();
    fs::write(apt.join("parts/debian.sources"), debian.replace("Types: deb", "Types: deb-src"))
}

/// Whether it ended well.
fn run(command: &mut Command) -> bool {
    let command = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
