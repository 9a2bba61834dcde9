//! `roost convert-picture`: the process in which a server converts an uploaded picture. Decoders read untrusted input,
//! so the operating system limits their memory and processor time.

use std::io::{self, Read as _, Write as _};

use anyhow::Context as _;
use clap::Args;
use media::{FILE_BYTES_MAX, Shape};
use node::CONVERTER_MEMORY;
use rustix::process::{Resource, Rlimit, setrlimit};

/// Largest address space of the program itself, in bytes: code, libraries and stacks. It uses about 40 MB.
const PROGRAM_ADDRESSES_MAX: u64 = 128 << 20;
/// Processor time limit in seconds: several times the cost of the worst picture.
const SECONDS: u64 = 10;
/// `nice` value. Requests get about ten times the processor share of this process.
const NICE: i32 = 10;

/// Convert the picture at standard input.
#[derive(Args)]
pub(crate) struct Convert {
    /// Purpose of the picture: attachment, avatar or header.
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

/// Limits this process before it reads any input.
fn limit() -> io::Result<()> {
    let most = |value| Rlimit { current: Some(value), maximum: Some(value) };
    // The system can limit only the address space. The limit is the current size plus the memory for the decoder. A
    // large current size is refused: the decoder could use addresses that the allocator mapped in advance.
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
        // The system kills this process when its parent dies, because nobody reads the result then.
        set_parent_process_death_signal(Some(Signal::KILL))?;
    }
    Ok(())
}

/// Current size of this process's address space, in bytes.
#[cfg(target_os = "linux")]
fn addresses() -> io::Result<u64> {
    let sizes = std::fs::read_to_string("/proc/self/statm")?;
    let pages = sizes.split(' ').next().and_then(|pages| pages.parse::<u64>().ok());
    let pages = pages.ok_or_else(|| io::Error::other("/proc/self/statm cannot be read"))?;
    Ok(pages * rustix::param::page_size() as u64)
}

/// Returns the maximum, because other systems have no simple way to read the size.
#[cfg(not(target_os = "linux"))]
fn addresses() -> io::Result<u64> {
    Ok(PROGRAM_ADDRESSES_MAX)
}
