//! The binary: the command line and its subcommands.

mod account;
mod address;
mod available;
mod cluster;
mod cluster_log;
mod convert;
mod dashboard;
mod demo;
mod descriptors;
mod exit;
mod files;
mod generate;
mod key;
mod lab;
mod logging;
mod memory;
mod operate;
mod output;
mod people;
mod permissions;
mod population;
mod recognise;
mod reload;
mod running;
mod serve;
mod service;
mod settings;
mod simulate;
mod starting;
mod tls;

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
    Serve(Box<serve::Serve>),
    Key(key::Key),
    Account(account::Account),
    Backup(operate::Backup),
    Restore(operate::Restore),
    Verify(operate::Verify),
    Export(operate::Export),
    Import(operate::Import),
    Repair(operate::Repair),
    Cluster(cluster::Cluster),
    Demo(demo::Demo),
    Simulate(simulate::Simulate),
    Population(population::Population),
    Recognise(recognise::Recognise),
    Lab(lab::Lab),
    #[command(hide = true)]
    Generate(generate::Generate),
    #[command(hide = true, name = node::CONVERT)]
    ConvertPicture(convert::Convert),
}

/// Number of tasks that a thread runs before it checks for requests that have arrived. tokio's default of 61
/// made other clients wait for 5 ms while one pipelined recognitions, each of which is a turn of 50
/// microseconds.
const TURNS_PER_POLL: u32 = 16;

fn main() -> ExitCode {
    match run(Arguments::parse().command).and_then(|()| output::finish()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => exit::report(&error),
    }
}

fn run(command: Command) -> anyhow::Result<()> {
    if let Command::Lab(lab) = &command
        && lab.is_trial()
    {
        return lab.trial();
    }
    if let Command::ConvertPicture(convert) = &command {
        return convert.run();
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .event_interval(TURNS_PER_POLL)
        .build()?;
    runtime.block_on(async {
        match command {
            Command::Serve(serve) => serve.run().await,
            Command::Key(key) => match key.run()? {
                Some(changed) => account::reload_keys(&changed).await,
                None => Ok(()),
            },
            Command::Account(account) => account.run().await,
            Command::Backup(backup) => backup.run().await,
            Command::Restore(restore) => restore.run(),
            Command::Verify(verify) => verify.run(),
            Command::Export(export) => export.run().await,
            Command::Import(import) => import.run(),
            Command::Repair(repair) => repair.run(),
            Command::Cluster(cluster) => cluster.run().await,
            Command::Demo(demo) => demo.run().await,
            Command::Simulate(simulate) => simulate.run().await,
            Command::Population(population) => population.run(),
            Command::Recognise(recognise) => recognise.run(),
            Command::Lab(lab) => lab.run().await,
            Command::Generate(generate) => generate.run(),
            Command::ConvertPicture(convert) => convert.run(),
        }
    })
}
