//! `roost lab`: experiments with concurrency designs, each trial in its own process.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::{Args, Subcommand};
use lab::record::RawData;
use lab::report::Analysis;
use lab::{EXPERIMENTS, End, Processes, Progress, RunError, Scale, Settings, Skipped};

use crate::exit::Exit;
use crate::files::check_output;
use crate::output::{note, out};
use crate::simulate::cancelled_by_signal;

/// Measure which concurrency design scales, with experiments from earlier systems.
///
/// One workload drives several designs of the same system: actors, locks, and roost itself. Each trial runs in its own
/// process, and the designs take turns in random order. The lab first compares the answers of all designs with those of
/// a plain model, then their times.
#[derive(Args)]
pub(crate) struct Lab {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// List experiments, designs and parameters
    List,
    // The help text is at `Run`.
    Run(Run),
    /// Print the results of a run's raw data
    Report {
        /// Directory with the raw data
        #[arg(value_name = "DIR")]
        data: PathBuf,
        /// Write the report as a page with plots to this file
        #[arg(long, value_name = "FILE")]
        html: Option<PathBuf>,
    },
    /// Compare two runs, for example of two machines or versions
    Compare {
        /// Directory with the raw data of the first run
        #[arg(value_name = "FIRST")]
        first: PathBuf,
        /// Directory with the raw data of the second run
        #[arg(value_name = "SECOND")]
        second: PathBuf,
    },
    #[command(hide = true)]
    Trial,
    #[command(hide = true)]
    Port,
}

/// Run experiments and write raw data.
///
/// Each design first gets some pilot trials, which determine how many more it gets. Ctrl-C ends the run and keeps the
/// measurements; --resume continues the run.
#[derive(Args)]
struct Run {
    /// Names of experiments, or all
    #[arg(required = true, value_name = "EXPERIMENT")]
    experiments: Vec<String>,
    /// Use few parameter values and few trials: at most 10 minutes on two cores (the default)
    #[arg(long, help_heading = TRIALS, conflicts_with = "full")]
    quick: bool,
    /// Use all parameter values of the reports, and as many trials as the pilot determines
    #[arg(long, help_heading = TRIALS)]
    full: bool,
    /// Names of the designs to compare, separated by commas [default: all that can run on this machine]
    #[arg(long, help_heading = TRIALS, value_name = "NAME,...", value_delimiter = ',')]
    designs: Option<Vec<String>>,
    /// Numbers of threads, separated by commas [default: 1, 2, 4 and so on up to the number of cores]
    #[arg(long, help_heading = TRIALS, value_name = "N,...", value_delimiter = ',')]
    threads: Option<Vec<u64>>,
    /// Values of a parameter, separated by commas, which replace the defaults; `roost lab list` has the names
    #[arg(long = "set", help_heading = TRIALS, value_name = "NAME=N,...", value_parser = values)]
    values: Vec<(String, Vec<u64>)>,
    /// Number of trials of each design with the same parameters [default: determined by the pilot]
    #[arg(long, help_heading = TRIALS, value_name = "N")]
    trials: Option<u64>,
    /// Compare each design with itself (A/A), in N repetitions of --trials trials, to validate the method
    #[arg(long, help_heading = TRIALS, value_name = "N", requires = "trials", conflicts_with = "html")]
    against_itself: Option<u64>,
    /// Seed of the order of trials and of all workloads
    #[arg(long, help_heading = TRIALS, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Directory for the raw data, created if it does not exist
    #[arg(long, help_heading = RESULTS, value_name = "DIR", default_value = "roost-lab")]
    out: PathBuf,
    /// Write the report as a page with plots to this file
    #[arg(long, help_heading = RESULTS, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Continue the run in the directory --out, which must have the same settings
    #[arg(long, help_heading = RESULTS)]
    resume: bool,
}

const TRIALS: &str = "Trials";
const RESULTS: &str = "Results";

impl Lab {
    /// Whether this process is a trial or a part of a trial, which must run without an async runtime.
    pub(crate) fn is_trial(&self) -> bool {
        matches!(self.command, Command::Trial | Command::Port)
    }

    /// Runs a trial or its part. Blocks.
    pub(crate) fn trial(&self) -> anyhow::Result<()> {
        let (input, output) = (io::stdin().lock(), io::stdout().lock());
        match self.command {
            Command::Port => Ok(lab::serve_port(input, output)?),
            _ => Ok(lab::trial::serve(input, output)?),
        }
    }

    pub(crate) async fn run(self) -> anyhow::Result<()> {
        match self.command {
            Command::List => {
                out!("{}", list().trim_end());
                Ok(())
            }
            Command::Run(run) => run.run().await,
            Command::Report { data, html } => report(&data, html.as_deref()),
            Command::Compare { first, second } => {
                let text = lab::report::compare(&RawData::read(&first)?, &RawData::read(&second)?);
                out!("{}", text.trim_end());
                Ok(())
            }
            Command::Trial | Command::Port => self.trial(),
        }
    }
}

impl Run {
    async fn run(&self) -> anyhow::Result<()> {
        let settings = self.settings();
        // The settings are validated before anything is created.
        settings.cells().map_err(|why| Exit::usage(&why))?;
        for Skipped { experiment, design, reason } in settings.skipped().unwrap_or_default() {
            note!("skipped: {design} in {experiment}: {reason}");
        }
        if let Some(path) = &self.html {
            // The run may take hours: fail now if the page cannot be written.
            check_output(path)?;
        }
        let program = std::env::current_exe().context("cannot find this program")?;
        let arguments = vec!["lab".to_owned(), "trial".to_owned()];
        let mut processes = Processes { program, arguments, version: version() };
        let (_cancel, cancelled) = cancelled_by_signal()?;
        let mut shown = Shown::default();
        let show = |progress: &Progress<'_>| shown.show(progress);
        let place = (self.out.as_path(), self.resume);
        match lab::run(&settings, place, &mut processes, show, cancelled).await {
            Ok(End::Complete) => {
                report(&self.out, self.html.as_deref())?;
                note!("raw data: {}", self.out.display());
                Ok(())
            }
            Ok(End::Cancelled) => {
                let data = self.out.display();
                anyhow::bail!("cancelled; what was measured is in {data}; continue with --resume")
            }
            Err(error @ RunError::WrongAnswers { .. }) => Err(Exit::failed(error.to_string())),
            Err(error) => Err(error.into()),
        }
    }

    fn settings(&self) -> Settings {
        let all = self.experiments.iter().any(|name| name == "all");
        let every = || EXPERIMENTS.iter().map(|experiment| experiment.name.to_owned()).collect();
        Settings {
            experiments: if all { every() } else { self.experiments.clone() },
            scale: if self.full { Scale::Full } else { Scale::Quick },
            designs: self.designs.clone(),
            threads: self.threads.clone(),
            values: self.values.iter().cloned().collect::<BTreeMap<_, _>>(),
            trials: self.trials,
            repeats: self.against_itself,
            seed: self.seed,
        }
    }
}

/// Prints the report of a run, and writes it as a page if `html` is set.
fn report(data: &Path, html: Option<&Path>) -> anyhow::Result<()> {
    let data = RawData::read(data)?;
    if data.run.settings.repeats.is_some() {
        anyhow::ensure!(html.is_none(), "a run with --against-itself has no page");
        out!("{}", lab::report::against_itself(&data).trim_end());
        return Ok(());
    }
    let analysis = Analysis::of(&data);
    if let Some(path) = html {
        fs::write(path, lab::report::page(&analysis))
            .with_context(|| format!("cannot write {}", path.display()))?;
        note!("report: {}", path.display());
    }
    out!("{}", lab::report::text(&analysis).trim_end());
    Ok(())
}

/// Progress display on standard error: one line that is overwritten on a terminal, otherwise a line every 3 s.
#[derive(Default)]
struct Shown {
    last: Option<Instant>,
}

impl Shown {
    fn show(&mut self, progress: &Progress<'_>) {
        const EVERY: Duration = Duration::from_secs(3);
        let is_terminal = io::stderr().is_terminal();
        let is_last = progress.left.is_zero();
        if !is_terminal && !is_last && self.last.is_some_and(|last| last.elapsed() < EVERY) {
            return;
        }
        self.last = Some(Instant::now());
        let Progress { record, done, total, left } = progress;
        let left = left.as_secs().div_ceil(60);
        let line = format!(
            "{done} of {total} trials, about {left} min left: {} {}, {}",
            record.experiment, record.design, record.parameters
        );
        // Errors are ignored, because standard error may be closed.
        let _unread = match is_terminal {
            true if is_last => writeln!(io::stderr(), "\r\x1b[K{line}"),
            true => write!(io::stderr(), "\r\x1b[K{line}"),
            false => writeln!(io::stderr(), "{line}"),
        };
    }
}

/// Parses `NAME=N,...`.
fn values(text: &str) -> Result<(String, Vec<u64>), String> {
    let (name, values) = text.split_once('=').ok_or("write NAME=N,...")?;
    let number =
        |value: &str| value.trim().parse().map_err(|_| format!("{value:?} is not a number"));
    Ok((name.to_owned(), values.split(',').map(number).collect::<Result<_, _>>()?))
}

fn version() -> String {
    let build = if cfg!(debug_assertions) { ", not optimized" } else { "" };
    format!("roost {}{build}", env!("ROOST_VERSION"))
}

fn list() -> String {
    let mut lines = Vec::new();
    for experiment in EXPERIMENTS {
        lines.push(format!("{}: {}", experiment.name, experiment.title));
        lines.push("  designs".to_owned());
        for design in experiment.designs {
            let absent = (design.absent)().map(|why| format!(" (skipped: {why})"));
            let absent = absent.unwrap_or_default();
            lines.push(format!("    {:<15} {}{absent}", design.name, design.about));
        }
        lines.push("  parameters, with the values of a full run".to_owned());
        for parameter in experiment.parameters {
            let (from, to) = parameter.range.clone().into_inner();
            let full: Vec<String> = parameter.full.iter().map(u64::to_string).collect();
            let (name, about, full) = (parameter.name, parameter.about, full.join(", "));
            lines.push(format!("    {name:<15} {about}: {full} (from {from} to {to})"));
        }
        lines.push(String::new());
    }
    lines.join("\n")
}
