//! Results: samples, medians with minimum and maximum, targets, and output files.

use std::fmt;
use std::path::Path;
use std::process::Command;

use serde::Serialize;

use crate::Plan;

/// Samples of one figure.
#[derive(Serialize)]
struct Figure {
    name: String,
    unit: &'static str,
    samples: Vec<f64>,
    target: Option<Target>,
}

/// The target of a figure.
#[derive(Clone, Copy, Serialize)]
pub(crate) enum Target {
    /// The figure must be at least this.
    AtLeast(f64),
    /// The figure must be at most this.
    AtMost(f64),
}

/// All figures of a run.
#[derive(Serialize)]
pub(crate) struct Report {
    machine: String,
    date: String,
    /// Commit of the sources, from `git describe`; null outside of a repository.
    commit: Option<String>,
    runs: usize,
    seconds: u64,
    figures: Vec<Figure>,
}

impl Report {
    pub(crate) fn new(plan: &Plan) -> Self {
        Self {
            machine: machine(),
            date: jiff::Timestamp::now().strftime("%Y-%m-%d %H:%M UTC").to_string(),
            commit: commit(),
            runs: plan.runs,
            seconds: plan.seconds,
            figures: Vec::new(),
        }
    }

    /// Adds the samples of a figure, and prints the figure now, because a whole run takes minutes.
    pub(crate) fn add(
        &mut self,
        name: impl Into<String>,
        unit: &'static str,
        samples: Vec<f64>,
        target: Option<Target>,
    ) {
        let figure = Figure { name: name.into(), unit, samples, target };
        println!("{figure}");
        self.figures.push(figure);
    }

    /// Writes `raw.csv`, `summary.json` and `summary.txt` into `out`.
    pub(crate) fn save(&self, out: &Path) -> anyhow::Result<()> {
        std::fs::create_dir_all(out)?;
        let mut csv = String::from("figure,unit,run,value\n");
        for figure in &self.figures {
            for (run, value) in figure.samples.iter().enumerate() {
                csv.push_str(&format!("\"{}\",{},{run},{value}\n", figure.name, figure.unit));
            }
        }
        std::fs::write(out.join("raw.csv"), csv)?;
        std::fs::write(out.join("summary.json"), serde_json::to_string_pretty(self)?)?;
        std::fs::write(out.join("summary.txt"), self.to_string())?;
        Ok(())
    }
}

impl Figure {
    fn sorted(&self) -> Vec<f64> {
        let mut samples = self.samples.clone();
        samples.sort_by(f64::total_cmp);
        samples
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sorted = self.sorted();
        let middle = stats::median(&sorted).unwrap_or(f64::NAN);
        let extreme = |end: Option<&f64>| end.copied().unwrap_or(f64::NAN);
        let (low, high) = (extreme(sorted.first()), extreme(sorted.last()));
        write!(f, "{:<62} {} {:<8}", self.name, number(middle), self.unit)?;
        write!(f, " [{} to {}]", number(low).trim(), number(high).trim())?;
        match self.target {
            Some(Target::AtLeast(least)) => {
                let verdict = if middle >= least { "met" } else { "MISSED" };
                write!(f, "  target >= {}: {verdict}", number(least).trim())
            }
            Some(Target::AtMost(most)) => {
                let verdict = if middle <= most { "met" } else { "MISSED" };
                write!(f, "  target <= {}: {verdict}", number(most).trim())
            }
            None => Ok(()),
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}, {}", self.date, self.machine)?;
        writeln!(
            f,
            "medians [min to max]; {} interleaved runs of {} s where a load is driven",
            self.runs, self.seconds
        )?;
        self.figures.iter().try_for_each(|figure| writeln!(f, "{figure}"))
    }
}

fn number(value: f64) -> String {
    let text = match value.abs() {
        large if large >= 1_000.0 => format!("{value:.0}"),
        middle if middle >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.3}"),
    };
    format!("{text:>10}")
}

fn commit() -> Option<String> {
    let describe = ["describe", "--always", "--dirty", "--abbrev=8", "--exclude=*"];
    let output = Command::new("git").args(describe).output().ok()?;
    let commit = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    (output.status.success() && !commit.is_empty()).then_some(commit)
}

fn machine() -> String {
    let cpu = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpu.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let model = model.map_or("unknown processor", |(_, model)| model);
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let kernel = Command::new("uname").arg("-sr").output().map(|output| output.stdout);
    let kernel = String::from_utf8_lossy(&kernel.unwrap_or_default()).trim().to_owned();
    format!("{cores} cores of {model}, {kernel}")
}
