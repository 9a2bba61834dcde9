//! `roost population`: users and follows as NDJSON for other tools.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::Args;
use serde::Serialize;
use sim::texts;

use crate::files::OutputFile;
use crate::output::note;
use crate::people::People;

/// Generate a population and write it as NDJSON: the users, each with the users they follow.
///
/// The population is that of `roost simulate` with the same --users and --seed, including handles and names. The
/// distributions of followers and of followed users come from measured statistics of a large network; the deviation
/// from them is printed to standard error. Every line is a JSON object:
///
/// `{"id":0,"handle":"...","name":"...","community":3,"interests":["tea"],"following":[1,2]}`
///
/// Ids start at 0 and ascend, also in "following". The same options give the same bytes. A million users take about a
/// minute, 1.1 GB of memory and 1.0 GB of output.
#[derive(Args)]
pub(crate) struct Population {
    #[command(flatten)]
    people: People,
    /// File to write, replaced when the output is complete; - for standard output [default: -]
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    out: Option<PathBuf>,
    /// Write lines for `roost import` instead: first the users, then the follows of each user
    #[arg(long, help_heading = "Output")]
    import: bool,
}

/// Interval at which progress is printed.
const PROGRESS_EVERY: Duration = Duration::from_secs(3);

/// Line of the output.
#[derive(Serialize)]
struct User<'a> {
    id: u32,
    handle: String,
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    community: Option<u32>,
    interests: Vec<&'static str>,
    following: &'a [u32],
}

/// Line for `roost import`: see docs/import.md.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum ImportLine<'a> {
    Export { format: u32 },
    User { id: u32, handle: String, name: String },
    Relation { kind: &'static str, user: u32, users: &'a [u32] },
    End {},
}

impl Population {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        match self.out.as_deref().filter(|path| *path != Path::new("-")) {
            Some(path) => self.write_file(path),
            None => match self.write(&self.make()?, io::stdout().lock()) {
                // The reader has closed the pipe.
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
                done => done.context("cannot write to the standard output"),
            },
        }
    }

    /// Generates or reads the population, and prints a summary.
    fn make(&self) -> anyhow::Result<sim::Population> {
        let making = self.people.making()?;
        let start = Instant::now();
        let population = match &self.people.graph {
            Some(path) => sim::Population::from_edges(path)?,
            None => sim::Population::made(&making),
        };
        let took = start.elapsed().as_secs_f64();
        let (users, follows) = (population.people(), population.follows());
        report(&format!("{users} users with {follows} follows in {took:.1} s\n"));
        let asked = self.people.graph.is_none().then_some(&making);
        if asked.is_some() {
            report(&population.shares().to_string());
        }
        report(&population.measured(asked).to_string());
        Ok(population)
    }

    /// Opens the file before the work, so that an unwritable file is reported at once.
    fn write_file(&self, path: &Path) -> anyhow::Result<()> {
        let out = OutputFile::open(path, true)?;
        let written = self.write(&self.make()?, out.file());
        written.with_context(|| format!("cannot write {}", path.display()))?;
        out.complete()
    }

    fn write(&self, population: &sim::Population, out: impl Write) -> io::Result<()> {
        let mut out = BufWriter::with_capacity(1 << 20, out);
        if self.import {
            self.import_lines(population, |line| {
                serde_json::to_writer(&mut out, &line)?;
                out.write_all(b"\n")
            })?;
            return out.flush();
        }
        let mut reported = Instant::now();
        for id in 0..population.people() {
            let user = User {
                id,
                handle: texts::handle(self.people.seed, id),
                name: texts::display_name(self.people.seed, id),
                community: population.community(id),
                interests: population.interests(id).collect(),
                following: population.following(id),
            };
            serde_json::to_writer(&mut out, &user)?;
            out.write_all(b"\n")?;
            if reported.elapsed() >= PROGRESS_EVERY {
                reported = Instant::now();
                report(&format!("written: {} of {}\n", id + 1, population.people()));
            }
        }
        out.flush()
    }
}

impl Population {
    fn import_lines(
        &self,
        population: &sim::Population,
        mut write: impl FnMut(ImportLine<'_>) -> io::Result<()>,
    ) -> io::Result<()> {
        write(ImportLine::Export { format: 1 })?;
        for id in 0..population.people() {
            let handle = texts::handle(self.people.seed, id);
            let name = texts::display_name(self.people.seed, id);
            write(ImportLine::User { id, handle, name })?;
        }
        for user in 0..population.people() {
            let users = population.following(user);
            write(ImportLine::Relation { kind: "follow", user, users })?;
        }
        write(ImportLine::End {})
    }
}

/// Prints to standard error.
fn report(text: &str) {
    note!("{}", text.trim_end());
}
