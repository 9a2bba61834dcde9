//! `roost convert-picture`: the process in which a server lets an uploaded picture be converted. Decoders read what
//! strangers send, so the operating system bounds what they take.

use std::io::{self, Read as _, Write as _};

use anyhow::Context as _;
use clap::Args;
use media::{FILE_BYTES_MAX, Shape};
use node::CONVERTER_MEMORY;
use rustix::process::{Resource, Rlimit, setrlimit};

/// Most addresses that the program itself takes, in bytes: its code, libraries and stacks. It takes about 40 MB.
const PROGRAM_ADDRESSES_MAX: u64 = 128 << 20;
/// Most processor time, in seconds: several times what the worst picture takes.
const SECONDS: u64 = 10;
/// Requests have about ten times its share of a processor.
const NICE: i32 = 10;

/// Convert the picture at standard input.
#[derive(Args)]
pub(crate) struct Convert {
    /// What it is for: attachment, avatar or header.
    shape: String,
}

impl Convert {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let shape = Shape::ALL.into_iter().find(|shape| shape.name() == self.shape);
        let shape = shape.context("there is no such shape")?;
        limit()?;
        let mut file = Vec::new();
        io::stdin().take(FILE_BYTES_MAX as u64 + 1).read_to_end(&mut file)?;
        let head = media::head(&file);
        let result = head.and_then(|head| media::convert(&file, &head, shape));
        drop(file);
        Ok(io::stdout().write_all(&media::to_bytes(&result))?)
    }
}

/// Bounds this process, before it has read anything.
fn limit() -> io::Result<()> {
    let most = |value| Rlimit { current: Some(value), maximum: Some(value) };
    // The system limits addresses, not memory. So only those count that are taken from here on, and the allocator must
    // not have taken any ahead, from which it could serve a decoder.
    let taken = addresses()?;
    if taken > PROGRAM_ADDRESSES_MAX {
        return Err(io::Error::other(
            "the allocator must reserve nothing: MIMALLOC_ARENA_RESERVE=0",
        ));
    }
    setrlimit(Resource::As, most(taken + CONVERTER_MEMORY))?;
    setrlimit(Resource::Cpu, most(SECONDS))?;
    setrlimit(Resource::Core, most(0))?;
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{Signal, nice, set_parent_process_death_signal};
        nice(NICE)?;
        // Nobody reads the result any longer.
        set_parent_process_death_signal(Some(Signal::KILL))?;
    }
    Ok(())
}

/// The address space that this process takes now, in bytes.
#[cfg(target_os = "linux")]
fn addresses() -> io::Result<u64> {
    let sizes = std::fs::read_to_string("/proc/self/statm")?;
    let pages = sizes.split(' ').next().and_then(|pages| pages.parse::<u64>().ok());
    let pages = pages.ok_or_else(|| io::Error::other("/proc/self/statm cannot be read"))?;
    Ok(pages * rustix::param::page_size() as u64)
}

/// Other systems do not say it in a simple way: the most that is allowed.
#[cfg(not(target_os = "linux"))]
fn addresses() -> io::Result<u64> {
    Ok(PROGRAM_ADDRESSES_MAX)
}
