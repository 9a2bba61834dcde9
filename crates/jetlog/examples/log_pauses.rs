//! Measures the longest time without a returned group while one of three NATS servers is killed, stopped or started
//! again: `cargo run -p jetlog --example log_pauses`. Starts the servers with the program that `cargo xtask test
//! --install` builds.

use std::time::{Duration, Instant};

use commitlog::{Applied, ClusterId, NodeId, Position};
use jetlog::{JetLog, JetLogError, JetLogOptions};
use rustix::process::Signal;
use testkit::nats::NatsServers;

const ROUNDS: usize = 3;
const CLUSTER: ClusterId = ClusterId(1);
/// Number of pending groups at a time.
const UNDER_WAY: usize = 10;
/// Minimum duration of each state of the servers. A state lasts until groups have come back without a pause for
/// [`FLUENT`].
const PHASE: Duration = Duration::from_secs(4);
const FLUENT: Duration = Duration::from_secs(2);
/// Minimum time without a returned group that counts as a pause.
const PAUSE: Duration = Duration::from_millis(200);

fn main() -> Result<(), JetLogError> {
    let Some(mut servers) = NatsServers::start(3, "") else { return Ok(()) };
    let options = JetLogOptions::new(&servers.urls());
    // Wait until the servers have a leader.
    while JetLog::create(&options, CLUSTER, Position(0)).is_err() {}
    let mut log = JetLog::open(
        &options,
        (CLUSTER, NodeId(1)),
        Applied { position: Position(0), counted: None },
    )?;
    log.begin(1);
    phase(&mut log, "three servers")?;
    for at in (0..ROUNDS).flat_map(|_| 0..3) {
        servers.kill(at);
        phase(&mut log, &format!("server {at} is killed"))?;
        servers.restart(at);
        phase(&mut log, &format!("server {at} starts again"))?;
        servers.signal(at, Signal::STOP);
        phase(&mut log, &format!("server {at} is stopped"))?;
        servers.signal(at, Signal::CONT);
        phase(&mut log, &format!("server {at} goes on"))?;
    }
    Ok(())
}

/// Appends groups, and prints the longest time without a returned group.
fn phase(log: &mut JetLog, name: &str) -> Result<(), JetLogError> {
    let start = Instant::now();
    let (mut last, mut longest, mut own, mut others) = (start, Duration::ZERO, 0, 0);
    let mut fluent_since = start;
    let mut troubles: Vec<String> = Vec::new();
    while start.elapsed() < PHASE || fluent_since.elapsed() < FLUENT {
        while log.under_way() < UNDER_WAY {
            log.append(b"group", 0)?;
        }
        match log.next(Duration::from_millis(5))? {
            Some(group) if group.is_own => {
                own += 1;
                longest = longest.max(last.elapsed());
                last = Instant::now();
            }
            Some(_) => others += 1,
            None => {}
        }
        if last.elapsed() > PAUSE {
            fluent_since = Instant::now();
        }
        troubles.extend(log.trouble().filter(|trouble| !troubles.contains(trouble)));
    }
    let longest = longest.as_millis();
    println!("{name}: longest pause {longest} ms, {own} groups, {others} duplicates; {troubles:?}");
    Ok(())
}
