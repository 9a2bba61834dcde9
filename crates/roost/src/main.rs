//! The binary: the command line and its subcommands.

mod address;
mod dashboard;
mod demo;
mod descriptors;
mod exit;
mod key;
mod logging;
mod memory;
mod people;
mod population;
mod recognise;
mod running;
mod serve;
mod settings;
mod simulate;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Faster under many small allocations from several threads, and gives memory back.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A server for social feeds in one binary.
#[derive(Parser)]
#[command(version = env!("ROOST_VERSION"), arg_required_else_help = true, max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    // Each is described at its arguments.
    Serve(serve::Serve),
    Key(key::Key),
    Demo(demo::Demo),
    Simulate(simulate::Simulate),
    Population(population::Population),
    Recognise(recognise::Recognise),
}

fn main() -> ExitCode {
    match run(Arguments::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => exit::report(&error),
    }
}

fn run(command: Command) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        match command {
            Command::Serve(serve) => serve.run().await,
            Command::Key(key) => key.run(),
            Command::Demo(demo) => demo.run().await,
            Command::Simulate(simulate) => simulate.run().await,
            Command::Population(population) => population.run(),
            Command::Recognise(recognise) => recognise.run(),
        }
    })
}
