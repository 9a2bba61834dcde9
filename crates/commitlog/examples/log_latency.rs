//! Prints the cost of a durable group in the local log, compared with the simplest durable code for the same bytes:
//! appending to a file, and overwriting a file that was filled before, each with fdatasync. The three are interleaved,
//! so that they see the same state of the disk. Then prints the cost of filling segments without a sync, and the speed
//! of replay.
//!
//! `cargo run --profile dist -p commitlog --example log_latency -- DIRECTORY`

use std::fs::{self, File, OpenOptions};
use std::hint::black_box;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use commitlog::disk::RealDisk;
use commitlog::{LocalLog, Log, LogError, Position};

type Failure = Box<dyn std::error::Error>;

const ROUNDS: u64 = 2_000;
const UNSYNCED_BYTES: usize = 256 << 20;

fn main() -> Result<(), Failure> {
    let dir = std::env::args_os()
        .nth(1)
        .map(PathBuf::from)
        .ok_or("name a directory on the disk to be measured")?;
    let dir = dir.join(format!("log-latency-{}", std::process::id()));
    fs::create_dir(&dir)?;
    for bytes in [200, 4_000, 16_000, 100_000] {
        durable(&dir, bytes)?;
    }
    unsynced(&dir.join("unsynced"))?;
    fs::remove_dir_all(dir)?;
    Ok(())
}

fn open(dir: &Path, read: &mut usize) -> Result<LocalLog, LogError> {
    let log = LocalLog::open(Arc::new(RealDisk), dir, Position(0))?;
    log.read(Position(0), &mut |group| {
        *read += black_box(group.payload).len();
        Ok(())
    })?;
    Ok(log)
}

fn durable(dir: &Path, bytes: usize) -> Result<(), Failure> {
    let payload = vec![7; bytes];
    let length = bytes as u64;
    let mut log = open(&dir.join(format!("log-{bytes}")), &mut 0)?;
    let appended = raw(&dir.join("appended"))?;
    let filled = raw(&dir.join("filled"))?;
    filled.write_all_at(&vec![0; bytes * ROUNDS as usize], 0)?;
    filled.sync_all()?;

    let mut times = [const { Vec::new() }; 3];
    for round in 0..ROUNDS {
        let start = Instant::now();
        log.write_group(&payload, 0)?;
        log.sync()?;
        let [in_log, appending, overwriting] = &mut times;
        in_log.push(start.elapsed());
        for (file, times) in [(&appended, appending), (&filled, overwriting)] {
            let start = Instant::now();
            file.write_all_at(&payload, round * length)?;
            file.sync_data()?;
            times.push(start.elapsed());
        }
    }
    for (name, times) in ["log", "append", "overwrite"].iter().zip(&mut times) {
        println!("{bytes:>7} B, {name:<9}: {}", summary(times));
    }
    Ok(())
}

fn unsynced(dir: &Path) -> Result<(), Failure> {
    let payload = vec![7; 16_000];
    let mut log = open(dir, &mut 0)?;
    let mut times = Vec::new();
    let start = Instant::now();
    for _ in 0..UNSYNCED_BYTES / payload.len() {
        let start = Instant::now();
        log.write_group(&payload, 0)?;
        times.push(start.elapsed());
    }
    let rate = UNSYNCED_BYTES as f64 / start.elapsed().as_secs_f64() / 1e6;
    println!("  16000 B, no sync  : {}; {rate:.0} MB/s", summary(&mut times));
    drop(log);

    let mut read = 0;
    let start = Instant::now();
    drop(open(dir, &mut read)?);
    let rate = read as f64 / start.elapsed().as_secs_f64() / 1e6;
    println!("replay: {rate:.0} MB/s of payload");
    let start = Instant::now();
    drop(open(&dir.join("empty"), &mut 0)?);
    println!("opening an empty directory: {:?}", start.elapsed());
    Ok(())
}

fn raw(path: &Path) -> Result<File, Failure> {
    let mut options = OpenOptions::new();
    Ok(options.write(true).create(true).truncate(true).open(path)?)
}

fn summary(times: &mut [Duration]) -> String {
    times.sort_unstable();
    let at = |share: f64| {
        let index = (times.len() as f64 * share) as usize;
        times.get(index).or(times.last()).copied().unwrap_or_default()
    };
    let (p50, p99, most) = (at(0.5), at(0.99), at(1.0));
    format!("p50 {p50:?}, p99 {p99:?}, max {most:?}")
}
