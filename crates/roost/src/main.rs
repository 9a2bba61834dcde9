//! The binary: the command line, and the parts put together.

mod demo;
mod key;
mod logging;
mod rehearse;
mod running;
mod serve;
mod settings;

use clap::{Parser, Subcommand};

/// Faster under many small allocations from several threads, and gives memory back.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A server for social feeds in one binary.
#[derive(Parser)]
#[command(version, arg_required_else_help = true, max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    // What each does is told where its arguments are.
    Serve(serve::Serve),
    Demo(demo::Demo),
    Simulate(rehearse::Simulate),
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        match arguments.command {
            Command::Serve(serve) => serve.run().await,
            Command::Demo(demo) => demo.run().await,
            Command::Simulate(simulate) => simulate.run().await,
        }
    })
}
