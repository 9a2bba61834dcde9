//! The binary: the command line and its subcommands.
//!
//! This crate composes the others and has no rules or limits of the feed. Each subcommand is a module with its name,
//! except those for data directories, which are in `operate`. Read `settings`, `serve` and `starting` first, then `key`
//! and `memory`.

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
mod recognize;
mod reload;
mod running;
mod serve;
mod service;
mod settings;
mod simulate;
mod starting;
mod tls;
mod unencrypted;
mod webhook;

use std::process::ExitCode;

use allocator as _;
use anyhow::Context as _;
use clap::parser::ValueSource;
use clap::{ArgMatches, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use exit::Exit;

/// A server for social feeds in one binary.
#[derive(Parser)]
#[command(version = env!("ROOST_VERSION"), arg_required_else_help = true, max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    // The help text of each variant is at its arguments.
    Serve(Box<serve::Serve>),
    Key(key::Key),
    Account(account::Account),
    Webhook(webhook::WebhookCommand),
    Backup(operate::Backup),
    Restore(operate::Restore),
    Verify(operate::Verify),
    Repair(operate::Repair),
    Export(operate::Export),
    Import(operate::Import),
    Cluster(cluster::Cluster),
    // The following commands are tools.
    Demo(demo::Demo),
    Simulate(simulate::Simulate),
    Population(population::Population),
    Lab(lab::Lab),
    Recognize(recognize::Recognize),
    #[command(hide = true)]
    Generate(generate::Generate),
    #[command(hide = true, name = node::CONVERT)]
    ConvertPicture(convert::Convert),
}

/// First command under the heading Tools.
const FIRST_TOOL: &str = "demo";
/// Id of the option `--nats` in every command that has it.
const NATS_SERVERS: &str = "servers";

/// Number of tasks that a thread runs between checks for new requests. With tokio's default of 61, pipelined
/// recognitions of one client (tasks of 50 microseconds) delayed other clients by 5 ms.
const TURNS_PER_POLL: u32 = 16;

fn main() -> ExitCode {
    match run(&command_line().get_matches()).and_then(|()| output::finish()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => exit::report(&error),
    }
}

/// Builds the command line from the declared arguments, and splits the list of commands into two parts.
fn command_line() -> clap::Command {
    let command = Arguments::command();
    let shown: Vec<_> =
        command.get_subcommands().filter(|command| !command.is_hide_set()).collect();
    let width = shown.iter().map(|command| command.get_name().len()).max().unwrap_or(0);
    let mut list = "Commands:\n".to_owned();
    for command in shown {
        if command.get_name() == FIRST_TOOL {
            list.push_str("\nTools:\n");
        }
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        list.push_str(&format!("  {:width$}  {about}\n", command.get_name()));
    }
    command.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{list}\nOptions:\n{{options}}\n\n\
         roost help COMMAND describes a command and its options.\n"
    ))
}

/// Refuses a password on the command line, which every user of the machine can read.
fn check_secrets(matches: &ArgMatches) -> anyhow::Result<()> {
    let is_shown = |id| matches.value_source(id) == Some(ValueSource::CommandLine);
    if let Ok(Some(servers)) = matches.try_get_one::<String>(NATS_SERVERS)
        && servers.contains('@')
        && is_shown(NATS_SERVERS)
    {
        return Err(Exit::usage(
            "--nats has a password, which every user of the machine can read on a command line: set ROOST_NATS, or nats in \
             the configuration file, or use --nats-creds",
        ));
    }
    matches.subcommand().map_or(Ok(()), |(_, matches)| check_secrets(matches))
}

fn run(matches: &ArgMatches) -> anyhow::Result<()> {
    check_secrets(matches)?;
    let Arguments { command } = Arguments::from_arg_matches(matches).map_err(|e| e.exit())?;
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
            Command::Serve(serve) => {
                let (_, line) = matches.subcommand().context("there is a command")?;
                serve.run(line).await
            }
            Command::Key(key) => match key.run()? {
                Some(changed) => account::reload_keys(&changed).await,
                None => Ok(()),
            },
            Command::Account(account) => account.run().await,
            Command::Webhook(webhook) => match webhook.run().await? {
                (data, Some(request)) => account::ask_about_webhooks(&data, request).await,
                (_, None) => Ok(()),
            },
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
            Command::Recognize(recognize) => recognize.run(),
            Command::Lab(lab) => lab.run().await,
            Command::Generate(generate) => generate.run(),
            Command::ConvertPicture(convert) => convert.run(),
        }
    })
}

#[cfg(test)]
mod tests;
