//! Posts to 100 active followers, over 64 connections and over one, for each policy of durability. They are compared
//! with the rate of POST requests to the control, and with append + fdatasync on the disk.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::Plan;
use crate::report::{Report, Target};
use crate::rig::{Driven, Server, drive, follow_line, register_lines, text};

const AUTHORS: u32 = 64;
const FOLLOWERS: u32 = 100;
const CONNECTIONS: usize = 64;

pub(crate) async fn measure(plan: &Plan, report: &mut Report) -> anyhow::Result<()> {
    let (data, other) = (tempfile::tempdir()?, tempfile::tempdir()?);
    let always = Server::roost(&plan.roost, data.path(), &["--durability", "always"]).await?;
    let never = Server::roost(&plan.roost, other.path(), &["--durability", "never"]).await?;
    for roost in [&always, &never] {
        prepare(roost).await?;
    }
    let answer = always.ask(&post(&always, 0, 0)).await?;
    let control = Server::control(1, answer.len()).await?;
    let body = format!("{{\"text\":\"{}\"}}", text(0));
    let constant = |_: usize| vec![control.post("/", &body)];
    let posts = |roost: &Server, connection: usize| -> Vec<Vec<u8>> {
        (0..50).map(|n| post(roost, connection as u32 % AUTHORS, n)).collect()
    };

    let time = Duration::from_secs(plan.seconds);
    let mut samples = Samples::default();
    for run in 0..=plan.runs {
        let disk = disk_us(data.path(), 300)?;
        let one = drive(always.address, 1, time, |n| posts(&always, n)).await?;
        let bare = drive(control.address, CONNECTIONS, time, constant).await?;
        let safe = drive(always.address, CONNECTIONS, time, |n| posts(&always, n)).await?;
        let fast = drive(never.address, CONNECTIONS, time, |n| posts(&never, n)).await?;
        // The first round warms up.
        if run > 0 {
            samples.take(disk, &one, &bare, &safe, &fast);
        }
    }
    samples.report(report);
    Ok(())
}

#[derive(Default)]
struct Samples {
    disk: Vec<f64>,
    one: Vec<f64>,
    one_ratio: Vec<f64>,
    control: Vec<f64>,
    always: Vec<f64>,
    never: Vec<f64>,
    never_ratio: Vec<f64>,
}

impl Samples {
    fn take(&mut self, disk: f64, one: &Driven, bare: &Driven, safe: &Driven, fast: &Driven) {
        let one = one.latency.value_at_quantile(0.5) as f64 / 1e3;
        self.disk.push(disk);
        self.one.push(one);
        self.one_ratio.push(one / disk);
        self.control.push(bare.per_second);
        self.always.push(safe.per_second);
        self.never.push(fast.per_second);
        self.never_ratio.push(fast.per_second / bare.per_second);
    }

    fn report(self, report: &mut Report) {
        let at_least = |least| Some(Target::AtLeast(least));
        report.add("disk: append of 200 bytes + fdatasync, median", "us", self.disk, None);
        report.add("post, always, 1 connection, median", "us", self.one, None);
        let name = "post, always, 1 connection / disk";
        report.add(name, "ratio", self.one_ratio, Some(Target::AtMost(2.0)));
        report.add("control: POST, 64 connections", "1/s", self.control, None);
        let name = "posts, always, 100 active followers, 64 connections";
        report.add(name, "1/s", self.always, at_least(25_000.0));
        report.add("posts, never, same", "1/s", self.never, None);
        report.add("posts, never / control", "ratio", self.never_ratio, at_least(0.5));
    }
}

/// Registers authors with 100 followers each. All followers have read their home timelines.
async fn prepare(roost: &Server) -> anyhow::Result<()> {
    roost.batch(register_lines("u", AUTHORS + FOLLOWERS)).await?;
    let follows = (AUTHORS..AUTHORS + FOLLOWERS)
        .flat_map(|reader| (0..AUTHORS).map(move |author| follow_line(reader, author)));
    roost.batch(follows).await?;
    for reader in AUTHORS..AUTHORS + FOLLOWERS {
        roost.ask(&roost.get(&format!("/v1/users/{reader}/timeline"))).await?;
    }
    Ok(())
}

fn post(roost: &Server, author: u32, number: u64) -> Vec<u8> {
    let body = format!("{{\"text\":\"{}\"}}", text(number));
    roost.post(&format!("/v1/users/{author}/posts"), &body)
}

/// The median time of appending 200 bytes to a file and waiting for the disk, in microseconds.
fn disk_us(directory: &Path, rounds: usize) -> anyhow::Result<f64> {
    let path = directory.join("disk-probe");
    let mut file = File::create(&path)?;
    let mut times = Vec::with_capacity(rounds);
    for _ in 0..rounds {
        let start = Instant::now();
        file.write_all(&[7; 200])?;
        file.sync_data()?;
        times.push(start.elapsed().as_secs_f64() * 1e6);
    }
    std::fs::remove_file(path)?;
    times.sort_by(f64::total_cmp);
    Ok(times.get(rounds / 2).copied().unwrap_or(f64::NAN))
}
