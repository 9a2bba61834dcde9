//! Peer that implements the design `pool` in pure Java. It shows whether native code is needed.
//!
//! The program is `peers/java/Recognizer.java`. It is compiled for each trial, and gets the samples and requests in
//! files. It warms up until Java's compiler has optimized it; the other designs need no warm-up.

use std::fs;
use std::io;
use std::process::Command;
use std::time::Duration;

use crate::measured::{Marks, Measured};
use crate::peer::{are_installed, printed, times};
use crate::recognizer::experiment::{Answered, Load, finished};
use crate::recognizer::{NEIGHBORS, Nearest, references};
use crate::trial::TrialError;

/// Source of the program.
const PROGRAM: &str = include_str!("../../peers/java/Recognizer.java");
/// Bytes of one neighbor in an answer.
const NEIGHBOR_BYTES: usize = 12;

/// Reason why the peer cannot run here.
pub(super) fn absent() -> Option<&'static str> {
    (!are_installed(&["java", "javac"]))
        .then_some("Java is not installed (apt-get install default-jdk-headless)")
}

/// Runs a trial with this many threads.
pub(super) fn run(threads: u32, load: &Load) -> Result<Measured, TrialError> {
    let folder = tempfile::tempdir()?;
    let file = |name: &str| folder.path().join(name);
    fs::write(file("Recognizer.java"), PROGRAM)?;
    let sample = |(id, bits): &(u64, knn::Bits)| [&id.to_le_bytes()[..], &bits.to_bytes()].concat();
    fs::write(file("samples"), references().iter().flat_map(sample).collect::<Vec<u8>>())?;
    let request = |(due, query): (Duration, &knn::Bits)| {
        [&(due.as_nanos() as u64).to_le_bytes()[..], &query.to_bytes()].concat()
    };
    let due = load.due().into_iter().zip(&load.queries);
    fs::write(file("requests"), due.flat_map(request).collect::<Vec<u8>>())?;
    printed(Command::new("javac").args(["-d", ".", "Recognizer.java"]), folder.path())?;
    let mut java = Command::new("java");
    let clients = if load.rate.is_some() { 0 } else { load.clients };
    java.args(["-cp", ".", "Recognizer", &threads.to_string(), &clients.to_string()]);
    let printed = printed(java.args(["samples", "requests", "answers"]), folder.path())?;
    let (wall_ns, cpu_ns) = times(&printed)?;
    let (answered, done) = decode(&fs::read(file("answers"))?)?;
    let (marks_ns, mark_operations) = match load.rate {
        Some(_) => (Vec::new(), 0),
        None => Marks::of(done),
    };
    let operations = answered.len() as u64;
    let measured =
        Measured { wall_ns, cpu_ns, operations, marks_ns, mark_operations, ..Measured::default() };
    Ok(finished(measured, answered))
}

/// Parses the answers in the order of the requests, and the durations of the requests.
fn decode(bytes: &[u8]) -> io::Result<(Vec<Answered>, Vec<u64>)> {
    const BYTES: usize = 16 + NEIGHBORS.count() * NEIGHBOR_BYTES;
    let (requests, rest) = bytes.as_chunks::<BYTES>();
    if !rest.is_empty() {
        return Err(io::Error::other("the answers of the peer are cut short"));
    }
    let number = |bytes: &[u8]| {
        let mut eight = [0; 8];
        eight.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
        u64::from_le_bytes(eight)
    };
    let (mut answered, mut done) = (Vec::new(), Vec::new());
    for (at, request) in requests.iter().enumerate() {
        let (took, rest) = request.split_at(8);
        let (end, rest) = rest.split_at(8);
        let (neighbors, _) = rest.as_chunks::<NEIGHBOR_BYTES>();
        let neighbor = |[a, b, c, d, id @ ..]: &[u8; NEIGHBOR_BYTES]| {
            (u32::from_le_bytes([*a, *b, *c, *d]), u64::from_le_bytes(*id))
        };
        let nearest: Nearest = neighbors.iter().map(neighbor).collect();
        answered.push((at, nearest, Duration::from_nanos(number(took))));
        done.push(number(end));
    }
    Ok((answered, done))
}
