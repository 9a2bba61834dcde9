//! Measures the log on running NATS servers: `cargo run -p jetlog --example log_figures -- URL,URL,URL`. Creates the
//! streams `figures` and `control` and does not remove them: use disposable servers.
//!
//! Measures three cases. First, one node with one pending group at a time, interleaved with the client library alone:
//! this is the shortest time that a client of roost waits. Second, one node with as many pending groups as allowed.
//! Third, three nodes with one pending group each, which all apply the groups of all three.

use std::time::{Duration, Instant};

use commitlog::{Applied, ClusterId, NodeId, Position};
use jetlog::{JetLog, JetLogError, JetLogOptions};

const CLUSTER: ClusterId = ClusterId(1);
const PATIENCE: Duration = Duration::from_secs(10);
const LENGTHS: [usize; 4] = [1 << 10, 4 << 10, 16 << 10, 64 << 10];

fn main() -> Result<(), JetLogError> {
    let servers = std::env::args().nth(1).unwrap_or_else(|| "nats://127.0.0.1:4222".into());
    let options = JetLogOptions { stream: "figures".into(), ..JetLogOptions::new(&servers) };
    JetLog::create(&options, CLUSTER, Position(0))?;
    let mut log = open(&options, 1)?;

    // Interleave the two, so that both see the same state of the machine.
    let (mut of_log, mut of_client) = (Vec::new(), Vec::new());
    let mut control = Control::new(&servers);
    for _ in 0..1_000 {
        let start = Instant::now();
        log.append(&[7; 256], 0)?;
        own(&mut log)?;
        of_log.push(start.elapsed());
        let start = Instant::now();
        control.publish();
        of_client.push(start.elapsed());
    }
    for (name, mut times) in [("a group comes back", of_log), ("the client alone", of_client)] {
        times.sort_unstable();
        let at = |share: usize| times.get(times.len() * share / 100).copied().unwrap_or_default();
        println!("256 bytes, one at a time, {name}: median {:?}, p99 {:?}", at(50), at(99));
    }

    for bytes in LENGTHS {
        let (payload, groups) = (vec![7; bytes], (64 << 20) / bytes.max(4 << 10));
        let start = Instant::now();
        let (mut appended, mut back) = (0, 0);
        while back < groups {
            while appended < groups && log.append(&payload, 0).is_ok() {
                appended += 1;
            }
            own(&mut log)?;
            back += 1;
        }
        report(&format!("{bytes} bytes, many under way"), groups, bytes, start.elapsed());
    }
    drop(log);

    for bytes in LENGTHS {
        let start = Instant::now();
        let groups = 1_000;
        let nodes: Vec<_> = (0..3_u128)
            .map(|node| {
                let options = options.clone();
                let node = node + bytes as u128;
                std::thread::spawn(move || -> Result<(), JetLogError> {
                    let mut log = open(&options, node)?;
                    let payload = vec![7; bytes];
                    for _ in 0..groups {
                        log.append(&payload, 0)?;
                        own(&mut log)?;
                    }
                    Ok(())
                })
            })
            .collect();
        for node in nodes {
            node.join().unwrap_or(Err(JetLogError::Stopped))?;
        }
        let name = format!("{bytes} bytes, three nodes with one under way each");
        report(&name, 3 * groups, bytes, start.elapsed());
    }
    Ok(())
}

/// Measurement of the client library alone: messages that JetStream acknowledges.
struct Control {
    runtime: tokio::runtime::Runtime,
    jetstream: async_nats::jetstream::Context,
}

impl Control {
    /// Creates a stream `control` with the configuration of the log's stream.
    fn new(servers: &str) -> Self {
        let runtime = tokio::runtime::Runtime::new().expect("there are threads");
        let server = servers.split(',').next().unwrap_or_default().to_owned();
        let jetstream = runtime.block_on(async {
            let client = async_nats::connect(server).await.expect("the log has connected");
            let jetstream = async_nats::jetstream::new(client);
            let stream = async_nats::jetstream::stream::Config {
                name: "control".into(),
                num_replicas: 3,
                ..Default::default()
            };
            jetstream.create_stream(stream).await.expect("the log has made a stream");
            jetstream
        });
        Self { runtime, jetstream }
    }

    fn publish(&mut self) {
        let publish = async {
            let sent = self.jetstream.publish("control", vec![7; 256].into()).await;
            sent.expect("it is connected").await
        };
        self.runtime.block_on(publish).expect("it is stored");
    }
}

/// Opens the log of a node after its existing groups.
fn open(options: &JetLogOptions, node: u128) -> Result<JetLog, JetLogError> {
    let mut last = JetLog::open(
        options,
        (CLUSTER, NodeId(node)),
        Applied { position: Position(0), counted: None },
    )?
    .last_at_open();
    // Continue at the position before the last, because others may append meanwhile.
    last.0 = last.0.saturating_sub(1);
    let mut log =
        JetLog::open(options, (CLUSTER, NodeId(node)), Applied { position: last, counted: None })?;
    log.begin(1);
    Ok(log)
}

/// Waits for the next group of this log.
fn own(log: &mut JetLog) -> Result<(), JetLogError> {
    loop {
        match log.next(PATIENCE)? {
            Some(group) if group.is_own => return Ok(()),
            Some(_) => {}
            None => eprintln!("nothing arrives: {:?}", log.trouble()),
        }
    }
}

fn report(name: &str, groups: usize, bytes: usize, took: Duration) {
    let seconds = took.as_secs_f64();
    let (rate, megabytes) = (groups as f64 / seconds, (groups * bytes) as f64 / seconds / 1e6);
    println!("{name}: {rate:.0} groups per second, {megabytes:.1} MB per second");
}
