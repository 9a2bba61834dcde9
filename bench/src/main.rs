//! Measures roost: see `--help`. Every figure is a ratio to a control, or is compared with a bound, measured in the
//! same run. The controls are the disk, and plain axum handlers that send as many bytes.

mod apps;
mod buckets;
mod cold;
mod cold_homes;
mod control;
mod disk;
mod expiry;
mod fairness;
mod faiss;
mod feeds;
mod generator;
mod home;
mod homes;
mod kernels;
mod keys;
mod lives;
mod posts;
mod recognise;
mod report;
mod rig;
mod scale;
mod soak;
mod stories;

use std::path::{Path, PathBuf};

// Use the allocator of the server, because some measurements run its code in this process.
use allocator as _;
use clap::{Parser, Subcommand, ValueEnum};

use crate::report::Report;

/// Measures roost against controls in the same run.
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    /// Parts to measure [default: all but scale and soak]
    #[arg(value_enum)]
    what: Vec<What>,
    /// Interleaved runs of each measurement
    #[arg(long, default_value_t = 5)]
    runs: usize,
    /// Length of a run of a load, in seconds
    #[arg(long, default_value_t = 4)]
    seconds: u64,
    /// The roost binary to measure [default: the one next to this program]
    #[arg(long, value_name = "FILE")]
    roost: Option<PathBuf>,
    /// Directory for the raw data and the summary
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Floods of `fairness` [default: all]
    #[arg(long, value_enum, value_name = "FLOOD")]
    flood: Vec<fairness::Flood>,
    /// Numbers of users of `scale`
    #[arg(long, value_name = "N", value_delimiter = ',', default_values_t = [10_000, 100_000, 1_000_000])]
    users: Vec<u32>,
    /// Length of `soak`, in minutes
    #[arg(long, default_value_t = 120)]
    minutes: u64,
    /// Python that may have faiss-cpu, for a comparison
    #[arg(long, value_name = "FILE", default_value = "python3")]
    python: PathBuf,
}

#[derive(Subcommand)]
enum Command {
    /// Run the bare axum server with which roost is compared
    Control(control::Control),
    /// Measure the Mastodon client API
    Apps(apps::Apps),
    /// Flood a server with requests
    Flood(fairness::Flooder),
    /// Only use processor time
    Spin(fairness::Spinner),
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum What {
    /// Home timelines over 64 connections, compared with a constant response of the same size
    Home,
    /// First and next pages of the ranked feed for-you, compared with home timelines
    Feeds,
    /// Posts to 100 active followers for each durability policy, compared with the control and the disk
    Posts,
    /// Posts and homes inside the server: the writer's work, reads after new posts, reads mixed with posts, and posts
    /// by an author with a million followers
    Homes,
    /// Homes of stories, compared with a constant response of the same size, and inside the server
    Stories,
    /// Homes of stories inside the server while stories have a TTL of 1, 5, 30 or 300 s
    Lives,
    /// 10 million live stories: memory, the cost of their expiry, and its effect on other users
    Expiry,
    /// Recognitions: over HTTP, compared with a constant response of the same size; and inside the process for each
    /// instruction set, compared with the speed of memory and, if installed, FAISS
    Recognise,
    /// Buckets: redis-benchmark compared with redis-server, memory of a million keys, and operations inside the process
    Buckets,
    /// Limits of `roost simulate` itself compared with the control, and its cost with a million users
    Generator,
    /// First read by an inactive user who follows 500 users
    Cold,
    /// First reads inside the server by users who follow 120 and 2,000 users, in processor time
    ColdHomes,
    /// Loading, memory, disk, capacity and restarts for several numbers of users. Takes half an hour; measured only if
    /// named
    Scale,
    /// Bytes on disk for each kind of record, and bytes freed when half of the records are deleted
    Disk,
    /// Latency of one client while another client floods one route
    Fairness,
    /// Hours of mixed load at half capacity with restarts: changes of memory, descriptors, disk and latency. Measured
    /// only if named
    Soak,
}

/// Parameters of measurements.
#[derive(Clone)]
struct Plan {
    runs: usize,
    seconds: u64,
    roost: PathBuf,
}

impl Plan {
    /// Creates the parameters. `roost` is the path of the binary; `None` is the binary next to this program.
    fn new(runs: usize, seconds: u64, roost: Option<PathBuf>) -> anyhow::Result<Self> {
        let beside = std::env::current_exe()?.with_file_name("roost");
        let roost = roost.unwrap_or(beside);
        anyhow::ensure!(roost.exists(), "no roost binary at {}", roost.display());
        Ok(Self { runs: runs.max(1), seconds: seconds.max(1), roost })
    }
}

fn main() -> anyhow::Result<()> {
    let mut arguments = Arguments::parse();
    match arguments.command.take() {
        Some(Command::Control(control)) => return control.run(),
        Some(Command::Flood(flooder)) => return flooder.run(),
        Some(Command::Spin(spinner)) => return spinner.run(),
        Some(Command::Apps(apps)) => {
            let plan = Plan::new(apps.runs, apps.seconds, apps.roost.clone())?;
            return report(&plan, apps.out.as_deref(), |report| apps.measure(&plan, report));
        }
        None => {}
    }
    let plan = Plan::new(arguments.runs, arguments.seconds, arguments.roost.clone())?;
    report(&plan, arguments.out.as_deref(), |report| measure(&plan, &arguments, report))
}

/// Measures, prints the figures, and writes them into `out`.
fn report(
    plan: &Plan,
    out: Option<&Path>,
    measure: impl FnOnce(&mut Report) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let mut report = Report::new(plan);
    measure(&mut report)?;
    println!("\n{report}");
    if let Some(out) = out {
        report.save(out)?;
        println!("raw data and summary: {}", out.display());
    }
    Ok(())
}

fn measure(plan: &Plan, arguments: &Arguments, report: &mut Report) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let wanted = |what| arguments.what.is_empty() || arguments.what.contains(&what);
    runtime.block_on(async {
        if wanted(What::Home) {
            home::measure(plan, report).await?;
        }
        if wanted(What::Feeds) {
            feeds::measure(plan, report).await?;
        }
        if wanted(What::Posts) {
            posts::measure(plan, report).await?;
        }
        if wanted(What::Stories) {
            stories::measure(plan, report).await?;
        }
        if wanted(What::Generator) {
            generator::measure(plan, report).await?;
        }
        if wanted(What::Recognise) {
            recognise::measure(plan, report).await?;
        }
        if wanted(What::Buckets) {
            buckets::measure(plan, report).await?;
        }
        anyhow::Ok(())
    })?;
    if wanted(What::Stories) {
        stories::measure_inside(plan, report)?;
    }
    if wanted(What::Recognise) {
        kernels::measure(plan, &arguments.python, report)?;
    }
    if wanted(What::Buckets) {
        keys::measure(plan, report)?;
    }
    if wanted(What::Lives) {
        lives::measure(plan, report)?;
    }
    if wanted(What::Expiry) {
        expiry::measure(plan, report)?;
    }
    if wanted(What::ColdHomes) {
        cold_homes::measure(plan, report)?;
    }
    if wanted(What::Disk) {
        disk::measure(report)?;
    }
    if wanted(What::Homes) {
        homes::measure(plan, report)?;
    }
    runtime.block_on(async {
        if wanted(What::Cold) {
            cold::measure(plan, report).await?;
        }
        if arguments.what.contains(&What::Scale) {
            scale::measure(plan, &arguments.users, arguments.out.as_deref(), report).await?;
        }
        if arguments.what.contains(&What::Soak) {
            soak::measure(plan, arguments.minutes, arguments.out.as_deref(), report).await?;
        }
        if wanted(What::Fairness) {
            fairness::measure(plan, &arguments.flood, report).await?;
        }
        anyhow::Ok(())
    })?;
    Ok(())
}
