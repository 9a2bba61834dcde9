//! Runs the tests of the workspace. Builds once, then runs parts of all test binaries, several at a time. Prints lines
//! of progress, the output of failed tests, and the slowest tests at the end.
//!
//! A part is a process that runs up to [`PART_TESTS`] tests of one binary, one after another. The parts of a binary
//! with many slow tests can thus run at the same time, and the time of each test is known.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use serde_json::Value;

use crate::{cargo, step, target};

/// Maximum number of tests of a part. A larger part could make other processors idle at the end.
const PART_TESTS: usize = 8;
/// Expected time of a test that was never timed on this machine, in seconds.
const UNTIMED_SECONDS: f64 = 0.5;
/// Interval between two lines of progress.
const PROGRESS: Duration = Duration::from_secs(20);
/// Number of slowest tests to list at the end.
const SLOWEST: usize = 10;
/// All crates except the simulator, which needs other features of the simulated crates than the shipped ones. The tests
/// of examples in the documentation use the same crates, so that nothing is built twice.
const WORKSPACE: [&str; 3] = ["--workspace", "--exclude", "dst"];

/// A test binary.
#[derive(Debug)]
struct Binary {
    /// Package and target, for example `roost::e2e`.
    name: String,
    file: PathBuf,
    /// Folder of the package of the binary, used as working directory.
    folder: PathBuf,
}

/// Some tests of a binary, and their expected time in seconds.
#[derive(Debug)]
struct Part {
    binary: Arc<Binary>,
    tests: Vec<String>,
    seconds: f64,
}

/// Results of the finished parts, and the running parts.
#[derive(Debug, Default)]
struct Results {
    passed: usize,
    failed: Vec<String>,
    ignored: usize,
    /// Time of each test in seconds, by `package::target::test`.
    seconds: BTreeMap<String, f64>,
    /// Notes of tests about skipped checks.
    notes: BTreeSet<String>,
    running: Vec<String>,
}

/// Environment variables.
type Variables = Vec<(String, String)>;

/// Test binaries of the workspace.
#[derive(Debug)]
pub(crate) struct Suite {
    binaries: Vec<Arc<Binary>>,
    variables: Variables,
}

impl Suite {
    /// Builds the tests of these packages, or of all packages if none is named. `envs` are environment variables for
    /// the tests.
    ///
    /// # Errors
    /// If a test does not build.
    pub(crate) fn build(
        root: &Path,
        packages: &[String],
        envs: &[(&str, &str)],
    ) -> anyhow::Result<Self> {
        let mut build = cargo(root, &["test", "--no-run"]);
        build.args(["--message-format", "json-render-diagnostics"]);
        if packages.is_empty() {
            build.args(WORKSPACE);
        } else {
            build.args(selection(root, packages)?);
        }
        println!("\n==> building the tests");
        let start = Instant::now();
        let output = build.stderr(Stdio::inherit()).output().context("cannot run cargo")?;
        ensure!(output.status.success(), "the tests do not build");
        println!("<== {:.1} minutes", start.elapsed().as_secs_f64() / 60.0);
        let variables = envs.iter().map(|(name, value)| ((*name).into(), (*value).into()));
        let mut suite = Self { binaries: Vec::new(), variables: variables.collect() };
        for line in String::from_utf8(output.stdout)?.lines() {
            suite.add(&serde_json::from_str(line)?)?;
        }
        Ok(suite)
    }

    /// Adds the binary that a message of cargo names, if any.
    fn add(&mut self, message: &Value) -> anyhow::Result<()> {
        let text = |path: &str| message.pointer(path).and_then(Value::as_str);
        let (Some(file), Some(manifest)) = (text("/executable"), text("/manifest_path")) else {
            return Ok(());
        };
        let folder = Path::new(manifest).parent().context("a manifest is in a folder")?;
        let name = text("/target/name").unwrap_or_default();
        if message.pointer("/profile/test") == Some(&Value::Bool(true)) {
            let package = folder.file_name().unwrap_or_default().to_string_lossy();
            let name = format!("{package}::{name}");
            let (file, folder) = (file.into(), folder.to_owned());
            self.binaries.push(Arc::new(Binary { name, file, folder }));
        } else {
            self.variables.push((format!("CARGO_BIN_EXE_{name}"), file.to_owned()));
        }
        Ok(())
    }

    /// Command that runs the binary with this name, for example `roost::e2e`.
    ///
    /// # Errors
    /// If there is no such binary.
    pub(crate) fn command(&self, name: &str) -> anyhow::Result<Command> {
        let binary = self.binaries.iter().find(|binary| binary.name == name);
        Ok(self.command_of(binary.with_context(|| format!("there is no test binary {name}"))?))
    }

    fn command_of(&self, binary: &Binary) -> Command {
        let mut command = Command::new(&binary.file);
        command.current_dir(&binary.folder).stdin(Stdio::null());
        command.env("CARGO_MANIFEST_DIR", &binary.folder);
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Runs all tests.
    ///
    /// # Errors
    /// If a test fails.
    pub(crate) fn run(&self, root: &Path) -> anyhow::Result<()> {
        let history = target(root).join("test-times.json");
        let times = fs::read(&history).ok();
        let mut times: BTreeMap<String, f64> =
            times.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
        let parts = self.parts(&times)?;
        let start = Instant::now();
        let total = parts.iter().map(|part| part.tests.len()).sum();
        println!("\n==> {total} tests in {} parts, {} at a time", parts.len(), at_a_time());
        let results = self.run_parts(parts, total);
        times.extend(results.seconds.clone());
        fs::write(&history, serde_json::to_vec(&times)?).ok();
        println!("<== {:.1} minutes", start.elapsed().as_secs_f64() / 60.0);
        results.report()
    }

    /// Runs the examples in the documentation.
    ///
    /// # Errors
    /// If an example fails.
    pub(crate) fn examples(root: &Path) -> anyhow::Result<()> {
        step(cargo(root, &["test", "--quiet", "--doc"]).args(WORKSPACE))
    }

    /// Divides all tests into parts. The part that takes longest is last.
    fn parts(&self, times: &BTreeMap<String, f64>) -> anyhow::Result<Vec<Part>> {
        let mut parts = Vec::new();
        for binary in &self.binaries {
            let list = self.command_of(binary).args(["--list", "--format", "terse"]).output();
            let list = list.with_context(|| format!("cannot run {}", binary.name))?;
            ensure!(list.status.success(), "cannot list the tests of {}", binary.name);
            let list = String::from_utf8(list.stdout)?;
            let mut tests: Vec<(f64, String)> = list
                .lines()
                .filter_map(|line| line.strip_suffix(": test"))
                .map(|test| {
                    let known = times.get(&format!("{}::{test}", binary.name));
                    (known.copied().unwrap_or(UNTIMED_SECONDS), test.to_owned())
                })
                .collect();
            // Keep the tests of a module together, because they share what they make, for example a package.
            let module = |test: &str| test.split_once("::").map(|(module, _)| module.to_owned());
            tests.sort_by_cached_key(|(_, test)| module(test));
            let of_module = tests.chunk_by(|(_, one), (_, other)| module(one) == module(other));
            parts.extend(of_module.flat_map(|tests| tests.chunks(PART_TESTS)).map(|chunk| Part {
                binary: binary.clone(),
                seconds: chunk.iter().map(|(seconds, _)| seconds).sum(),
                tests: chunk.iter().map(|(_, test)| test.clone()).collect(),
            }));
        }
        parts.sort_by(|one, other| one.seconds.total_cmp(&other.seconds));
        Ok(parts)
    }

    /// Runs all parts, the last one first.
    fn run_parts(&self, parts: Vec<Part>, total: usize) -> Results {
        let (queue, results) = (Mutex::new(parts), Mutex::new(Results::default()));
        let (ended, start) = (AtomicUsize::new(0), Instant::now());
        let workers = at_a_time();
        std::thread::scope(|scope| {
            for _ in 0..workers {
                scope.spawn(|| {
                    loop {
                        // Lock the queue only for a moment, so that other threads can use it while a part runs.
                        let next = lock(&queue).pop();
                        let Some(part) = next else { break };
                        self.run_part(&part, &results);
                    }
                    ended.fetch_add(1, Ordering::Release);
                });
            }
            let mut reported = Instant::now();
            while ended.load(Ordering::Acquire) < workers {
                std::thread::sleep(Duration::from_millis(200));
                if reported.elapsed() >= PROGRESS {
                    reported = Instant::now();
                    println!(
                        "{:5} s: {}",
                        start.elapsed().as_secs(),
                        lock(&results).progress(total)
                    );
                }
            }
        });
        results.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a part, and adds its results. Prints its output if a test failed.
    fn run_part(&self, part: &Part, results: &Mutex<Results>) {
        let name = part.binary.name.clone();
        lock(results).running.push(name.clone());
        let mut output = String::new();
        let outcome = self.tests_of(part, &mut output, results);
        let mut results = lock(results);
        if let Some(at) = results.running.iter().position(|running| *running == name) {
            results.running.swap_remove(at);
        }
        let failed = outcome.unwrap_or_else(|error| {
            vec![format!("{name}: {error:#}: one of {}", part.tests.join(", "))]
        });
        if !failed.is_empty() {
            println!("\n{output}");
        }
        results.failed.extend(failed);
    }

    /// Runs the tests of a part. Returns the names of those that failed.
    fn tests_of(
        &self,
        part: &Part,
        output: &mut String,
        results: &Mutex<Results>,
    ) -> anyhow::Result<Vec<String>> {
        let (reader, writer) = std::io::pipe()?;
        let mut command = self.command_of(&part.binary);
        command.args(["--exact", "--test-threads=1"]).args(&part.tests);
        command.stdout(writer.try_clone()?).stderr(writer);
        let mut child = command.spawn()?;
        // Close this process's end of the pipe.
        drop(command);
        let (mut failed, mut before) = (Vec::new(), Instant::now());
        let (mut reader, mut line) = (BufReader::new(reader), Vec::new());
        let mut lines = Lines::default();
        // A process that a test leaves running may keep the pipe open after the summary.
        while !is_summary(&line) {
            line.clear();
            if reader.read_until(b'\n', &mut line)? == 0 {
                break;
            }
            let text = String::from_utf8_lossy(&line);
            output.push_str(&text);
            lock(results).notes.extend(note(&text).map(str::to_owned));
            let Some((test, result)) = lines.result(&text) else { continue };
            let name = format!("{}::{test}", part.binary.name);
            lock(results).add(&name, result, before.elapsed());
            failed.extend((result == "FAILED").then_some(name));
            before = Instant::now();
        }
        let status = child.wait()?;
        ensure!(status.success() || !failed.is_empty(), "{status}");
        Ok(failed)
    }
}

impl Results {
    fn add(&mut self, name: &str, result: &str, time: Duration) {
        match result {
            "ok" => self.passed += 1,
            "ignored" => self.ignored += 1,
            _ => (),
        }
        if result != "ignored" {
            self.seconds.insert(name.to_owned(), time.as_secs_f64());
        }
    }

    fn progress(&self, total: usize) -> String {
        let done = self.seconds.len() + self.ignored;
        let running = self.running.join(", ");
        format!("{done} of {total}, {} failed; now {running}", self.failed.len())
    }

    /// Prints the slowest tests, the failed tests, and the totals. Does not count ignored tests, which are measurements
    /// or parts of other tests.
    fn report(&self) -> anyhow::Result<()> {
        let mut slowest: Vec<_> = self.seconds.iter().collect();
        slowest.sort_by(|one, other| other.1.total_cmp(one.1));
        println!("\nthe slowest tests:");
        for (name, seconds) in slowest.into_iter().take(SLOWEST) {
            println!("{seconds:7.1} s  {name}");
        }
        for note in &self.notes {
            println!("{note}");
        }
        for name in &self.failed {
            println!("FAILED: {name}");
        }
        let (failed, notes) = (self.failed.len(), self.notes.len());
        println!(
            "{} passed, {failed} failed, {notes} reasons for which less was tested",
            self.passed
        );
        ensure!(failed == 0, "{failed} tests failed");
        Ok(())
    }
}

/// Arguments that select the tests of some packages. The package `roost` is always selected, but none of its targets.
/// Cargo chooses the features of dependencies for all selected packages together, so the builds of the whole workspace
/// are used, and not builds with fewer features.
fn selection(root: &Path, packages: &[String]) -> anyhow::Result<Vec<String>> {
    let mut arguments: Vec<String> =
        packages.iter().flat_map(|package| ["-p".into(), package.clone()]).collect();
    let mut targets = BTreeSet::new();
    for package in packages {
        let folder = root.join("crates").join(package);
        // Packages without a library have programs, or their own features.
        if !folder.join("src/lib.rs").is_file() {
            return Ok(arguments);
        }
        for entry in fs::read_dir(folder.join("tests")).into_iter().flatten() {
            let path = entry?.path();
            let is_test = path.extension().is_some_and(|ending| ending == "rs")
                || path.join("main.rs").is_file();
            if let Some(name) = path.file_stem().filter(|_| is_test) {
                targets.insert(format!("--test={}", name.to_string_lossy()));
            }
        }
    }
    arguments.extend(["-p".into(), "roost".into(), "--lib".into()]);
    arguments.extend(targets);
    Ok(arguments)
}

/// Number of parts that run at a time. It is high, because many tests wait for processes, disks and clients.
fn at_a_time() -> usize {
    2 * std::thread::available_parallelism().map_or(2, usize::from)
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether a line is the summary, which follows all results.
fn is_summary(line: &[u8]) -> bool {
    line.starts_with(b"test result: ")
}

/// Note in a line about a skipped test or a busy machine.
fn note(line: &str) -> Option<&str> {
    let at = ["SKIPPED: ", "INCONCLUSIVE: "].into_iter().find_map(|word| line.find(word))?;
    line.get(at..).map(str::trim_end)
}

/// Reads results from the lines of a test binary.
#[derive(Debug, Default)]
struct Lines {
    /// Test that has begun.
    begun: Option<String>,
}

impl Lines {
    /// Returns the test and the result of a line such as `test a::b ... ok`. If the test has printed something, the
    /// line has only the result.
    fn result(&mut self, line: &str) -> Option<(String, &'static str)> {
        let line = line.trim_end();
        let begin = line.strip_prefix("test ").and_then(|rest| rest.split_once(" ... "));
        let rest = if let Some((test, rest)) = begin {
            self.begun = Some(test.strip_suffix(" - should panic").unwrap_or(test).to_owned());
            rest
        } else {
            line
        };
        let ends =
            |word: &&str| if begin.is_some() { rest.ends_with(*word) } else { rest == *word };
        let known = ["ok", "FAILED"].into_iter().find(ends);
        let is_ignored = begin.is_some() && rest.starts_with("ignored");
        let known = known.or_else(|| is_ignored.then_some("ignored"))?;
        Some((self.begun.take()?, known))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_read_from_the_lines_of_a_test_binary() {
        let mut lines = Lines::default();
        for (line, expect) in [
            ("test a::b ... ok\n", Some(("a::b", "ok"))),
            ("test a::b ... FAILED\n", Some(("a::b", "FAILED"))),
            ("test a ... ignored, measures\n", Some(("a", "ignored"))),
            ("test a - should panic ... ok\n", Some(("a", "ok"))),
            ("test a ... noise of a process ok\n", Some(("a", "ok"))),
            ("ok\n", None),
            ("test a ... SKIPPED: no erl\n", None),
            ("more noise\n", None),
            ("ok\n", Some(("a", "ok"))),
            ("test result: ok. 1 passed; 0 failed\n", None),
            ("running 3 tests\n", None),
        ] {
            let found = lines.result(line);
            let found = found.as_ref().map(|(test, result)| (test.as_str(), *result));
            assert_eq!(found, expect, "{line:?}");
        }
        assert_eq!(note("test a ... SKIPPED: no erl\n"), Some("SKIPPED: no erl"));
        assert_eq!(note("nothing SKIPPED\n"), None);
        assert!(is_summary(b"test result: ok. 1 passed; 0 failed\n"));
        assert!(!is_summary(b"test a ... ok\n"));
    }

    #[test]
    fn a_package_is_tested_with_the_features_of_the_whole_workspace() {
        let root = crate::root().unwrap();
        for (packages, expect) in [
            (&["feed"][..], "-p feed -p roost --lib --test=it"),
            (
                &["knn", "api"],
                "-p knn -p api -p roost --lib --test=api --test=image_memory --test=it --test=memory",
            ),
            (&["feed", "roost"], "-p feed -p roost"),
            (&["xtask"], "-p xtask"),
        ] {
            let packages: Vec<String> = packages.iter().map(|&name| name.to_owned()).collect();
            assert_eq!(selection(&root, &packages).unwrap().join(" "), expect);
        }
    }
}
