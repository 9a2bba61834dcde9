//! Prints what the protocol costs on this machine:
//! `cargo run --profile dist -p resp --example parse_costs`.
//!
//! It measures GET and SET as sent by `redis-benchmark -d 32 -r 100000`, one or sixteen per read: parsing alone, and
//! parsing with a reply, both compared with copying the same bytes. It also measures the two inputs that are slowest
//! for a parser that starts again with every read. Each line has the median, the minimum and the maximum of eleven
//! rounds.

use std::hint::black_box;
use std::time::{Duration, Instant};

use resp::{Encoder, Limits, Parser, Protocol};

const ROUNDS: usize = 11;
const COMMANDS: usize = 1_600_000;
const KEYS: usize = 100_000;
const VALUE: [u8; 32] = [b'x'; 32];

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    println!("{:34} {:>9} {:>9} {:>9}", "ns per command", "median", "least", "greatest");
    for pipeline in [1, 16] {
        let reads = |command: fn(usize) -> Vec<u8>| reads_of(pipeline, command);
        show(&format!("GET, P={pipeline}, copied: the control"), || copy(&reads(get), pipeline))?;
        show(&format!("GET, P={pipeline}, parse"), || parse(&reads(get), |_, _| ()))?;
        show(&format!("SET, P={pipeline}, parse"), || parse(&reads(set), |_, _| ()))?;
        show(&format!("GET, P={pipeline}, parse and reply"), || {
            parse(&reads(get), |encoder, _| encoder.bulk(&VALUE))
        })?;
        show(&format!("SET, P={pipeline}, parse and reply"), || {
            parse(&reads(set), |encoder, _| encoder.simple("OK"))
        })?;
    }
    println!("\n{:34} {:>9} {:>9} {:>9}", "ns per byte", "median", "least", "greatest");
    let arguments = multibulk(&vec![&b"v"[..]; 100_000]);
    show("100,000 arguments, byte by byte", || pieces(&arguments, 1))?;
    let bulk = multibulk(&[b"SET", b"key", &vec![b'x'; 16 << 20]]);
    show("a value of 16 MiB, 4 KiB a read", || pieces(&bulk, 4_096))
}

fn show(what: &str, mut round: impl FnMut() -> Result<f64, Failure>) -> Result<(), Failure> {
    let mut rounds = (0..ROUNDS).map(|_| round()).collect::<Result<Vec<_>, _>>()?;
    rounds.sort_by(f64::total_cmp);
    let (least, greatest) = (rounds.first().ok_or("no round")?, rounds.last().ok_or("no round")?);
    let median = rounds.get(ROUNDS / 2).ok_or("no round")?;
    println!("{what:34} {median:9.2} {least:9.2} {greatest:9.2}");
    Ok(())
}

/// Makes a thousand different reads of `pipeline` commands each, so that the processor cannot predict all branches.
fn reads_of(pipeline: usize, command: fn(usize) -> Vec<u8>) -> Vec<Vec<u8>> {
    let key = |at: usize| at.wrapping_mul(7_919) % KEYS;
    let read = |read: usize| (0..pipeline).flat_map(move |at| command(key(read * pipeline + at)));
    (0..1_000).map(|at| read(at).collect()).collect()
}

fn get(key: usize) -> Vec<u8> {
    multibulk(&[b"GET", format!("key:{key:012}").as_bytes()])
}

fn set(key: usize) -> Vec<u8> {
    multibulk(&[b"SET", format!("key:{key:012}").as_bytes(), &VALUE])
}

fn multibulk(arguments: &[&[u8]]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut encoder = Encoder::new(&mut out, Protocol::Resp2);
    encoder.array(arguments.len());
    arguments.iter().for_each(|argument| encoder.bulk(argument));
    out
}

/// Parses `reads` repeatedly, and calls `reply` for each command. Returns ns per command.
fn parse(reads: &[Vec<u8>], reply: impl Fn(&mut Encoder<'_>, &[u8])) -> Result<f64, Failure> {
    let mut parser = Parser::new(Limits::REDIS);
    let mut out = Vec::new();
    let mut commands = 0;
    let begin = Instant::now();
    while commands < COMMANDS {
        for read in reads {
            let mut rest = read.as_slice();
            out.clear();
            let mut encoder = Encoder::new(&mut out, Protocol::Resp2);
            while let Some(command) = parser.next(black_box(&mut rest))? {
                let key = command.argument(0).ok_or("no key")?;
                reply(&mut encoder, black_box(key));
                commands += 1;
            }
            black_box(&out);
        }
    }
    Ok(ns(begin.elapsed()) / commands as f64)
}

/// Copies `reads` repeatedly. Returns ns per command, the minimum that any server needs.
fn copy(reads: &[Vec<u8>], pipeline: usize) -> Result<f64, Failure> {
    let mut out = Vec::new();
    let rounds = COMMANDS / pipeline / reads.len();
    let begin = Instant::now();
    for read in reads.iter().cycle().take(rounds * reads.len()) {
        out.clear();
        out.extend_from_slice(black_box(read));
        black_box(&out);
    }
    Ok(ns(begin.elapsed()) / (rounds * reads.len() * pipeline) as f64)
}

/// Parses one command that arrives in pieces of `size` bytes. Returns ns per byte.
fn pieces(request: &[u8], size: usize) -> Result<f64, Failure> {
    let mut parser = Parser::new(Limits::REDIS);
    let begin = Instant::now();
    let mut found = 0;
    for end in (size..request.len() + size).step_by(size) {
        let mut rest = request.get(..end).unwrap_or(request);
        found += usize::from(parser.next(black_box(&mut rest))?.is_some());
    }
    let elapsed = begin.elapsed();
    if found == 1 { Ok(ns(elapsed) / request.len() as f64) } else { Err("not one command".into()) }
}

fn ns(elapsed: Duration) -> f64 {
    elapsed.as_secs_f64() * 1e9
}
