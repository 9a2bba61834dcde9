//! The declarations of the command line: names, help texts, variables and headings.

use std::collections::{BTreeMap, BTreeSet};

use clap::{Arg, Command};

use super::command_line;

/// All visible commands, each with its name as it is typed.
fn commands() -> Vec<(String, Command)> {
    fn add(name: &str, command: &Command, all: &mut Vec<(String, Command)>) {
        all.push((name.to_owned(), command.clone()));
        for command in command.get_subcommands().filter(|command| !command.is_hide_set()) {
            add(&format!("{name} {}", command.get_name()), command, all);
        }
    }
    let mut all = Vec::new();
    let mut command = command_line();
    command.build();
    add("roost", &command, &mut all);
    // clap adds the command `help`.
    all.retain(|(name, _)| !name.split(' ').any(|word| word == "help"));
    all
}

/// Calls `check` with each option of each command.
fn for_each_option(mut check: impl FnMut(&str, &str, &Arg)) {
    let mut count = 0;
    for (command, declared) in commands() {
        for option in declared.get_arguments() {
            if let Some(name) = option.get_long().filter(|name| !["help", "version"].contains(name))
            {
                check(&command, name, option);
                count += 1;
            }
        }
    }
    assert!(count > 130, "{count} options");
}

fn value_name(option: &Arg) -> Option<String> {
    let takes_value = option.get_action().takes_values();
    takes_value.then(|| option.get_value_names().unwrap_or_default().join(" "))
}

#[test]
fn every_command_and_every_option_has_a_help_text_and_a_name_for_its_value() {
    let is_help = |text: Option<String>| {
        let text = text.unwrap_or_default();
        text.starts_with(|letter: char| letter.is_uppercase()) && !text.ends_with('.')
    };
    for (name, command) in commands() {
        let about = command.get_about().map(ToString::to_string);
        assert!(is_help(about.clone()), "{name}: {about:?}");
        for argument in command.get_positionals() {
            assert!(argument.get_help().is_some(), "{name} {argument}");
        }
    }
    for_each_option(|command, name, option| {
        let help = option.get_help().map(ToString::to_string);
        assert!(is_help(help.clone()), "{command} --{name}: {help:?}");
        if let Some(value) = value_name(option) {
            // clap's default name of a value is the option's name.
            let is_own = option.get_possible_values().is_empty();
            let usual = name.replace('-', "_").to_uppercase();
            assert!(!value.is_empty() && (!is_own || value != usual), "{command} --{name} {value}");
        }
    });
}

#[test]
fn a_command_with_many_options_has_them_under_headings() {
    for (name, command) in commands() {
        let own = |option: &&Arg| {
            option.get_long().is_some_and(|name| !["help", "version"].contains(&name))
        };
        let options: Vec<_> = command.get_arguments().filter(own).collect();
        let without = options.iter().filter(|option| option.get_help_heading().is_none());
        let without: Vec<_> = without.map(|option| option.get_long()).collect();
        assert!(options.len() <= 10 || without.is_empty(), "{name}: {without:?}");
        // Options under one heading are contiguous.
        let mut headings: Vec<_> = options.iter().map(|option| option.get_help_heading()).collect();
        headings.dedup();
        let different: BTreeSet<_> = headings.iter().collect();
        assert_eq!(different.len(), headings.len(), "{name}: {headings:?}");
    }
}

#[test]
fn a_variable_has_the_name_of_its_option_and_one_meaning() {
    let mut meanings = BTreeMap::new();
    for_each_option(|command, name, option| {
        let expected = match name {
            "log-level" => "ROOST_LOG".to_owned(),
            name => format!("ROOST_{}", name.replace('-', "_").to_uppercase()),
        };
        let variable = option.get_env().map(|variable| variable.to_str().unwrap().to_owned());
        let is_setting = command == "roost serve" && !["check", "accept-clock"].contains(&name);
        assert!(variable.is_some() || !is_setting, "--{name} has no variable");
        if let Some(variable) = variable {
            assert_eq!(variable, expected, "{command} --{name}");
            let kind = (name.to_owned(), value_name(option));
            assert_eq!(meanings.entry(variable).or_insert_with(|| kind.clone()), &kind);
        }
    });
    assert!(meanings.contains_key("ROOST_NATS") && !meanings.contains_key("ROOST_LOG_SERVERS"));
}

#[test]
fn what_is_the_same_has_the_same_name_in_every_command() {
    for_each_option(|command, name, option| {
        let help = option.get_help().unwrap().to_string();
        let value = value_name(option).unwrap_or_default();
        let is_server = value == "URL" && !["public-url"].contains(&name);
        assert_eq!(is_server, name == "server", "{command} --{name}");
        assert_eq!(help.starts_with("NATS servers"), name == "nats", "{command} --{name}");
        let is_data = help.starts_with("Data directory") && !help.starts_with("Data directory to")
            || help.starts_with("Damaged data directory")
            || help.starts_with("Data directory to") && command != "roost repair";
        assert_eq!(is_data, name == "data", "{command} --{name}: {help}");
        if is_data {
            assert_eq!(option.get_env().unwrap(), "ROOST_DATA", "{command}");
            let default = option.get_default_values().first().map(|value| value.to_string_lossy());
            // These two commands usually read a running server, so they have no default directory.
            let is_given = default.as_deref() == Some("./roost-data")
                || help.ends_with("[default: ./roost-data]")
                || ["roost backup", "roost export"].contains(&command);
            assert!(is_given, "{command}: {help}");
        }
        let is_output = help.starts_with("File to write")
            || help.starts_with("Directory for")
            || help.starts_with("Data directory to") && command == "roost repair";
        assert_eq!(is_output, name == "out", "{command} --{name}: {help}");
        assert!(!["target", "from", "log", "to-file"].contains(&name), "{command} --{name}");
        // A time's value includes its unit.
        let is_time = ["SECS", "SECONDS", "DAYS", "MS", "MINUTES", "HOURS"].contains(&&*value);
        assert!(!is_time && !help.contains("in seconds"), "{command} --{name} {value}");
    });
}

#[test]
fn commands_for_production_stand_before_tools_in_help_man_pages_and_completions() {
    let names: Vec<_> = commands().into_iter().map(|(name, _)| name).collect();
    let top = names.iter().filter(|name| name.split(' ').count() == 2);
    let top: Vec<_> = top.map(|name| name.trim_start_matches("roost ").to_owned()).collect();
    let expected = [
        "serve",
        "key",
        "account",
        "webhook",
        "backup",
        "restore",
        "verify",
        "repair",
        "export",
        "import",
        "cluster",
        "demo",
        "simulate",
        "population",
        "lab",
        "recognize",
    ];
    assert_eq!(top, expected);
    let help = command_line().render_help().to_string();
    let mut rest = help.as_str();
    let lines = ["\nCommands:\n  serve ", "\n  cluster ", "\n\nTools:\n  demo ", "\n  recognize "];
    for part in lines.into_iter().chain(["\nOptions:\n", "--version"]) {
        let (_, after) = rest.split_once(part).unwrap_or_else(|| panic!("{part:?}? {help}"));
        rest = after;
    }
    for hidden in ["generate", "convert-picture"] {
        assert!(!help.contains(hidden), "{help}");
    }
}

#[test]
fn the_short_help_has_a_line_or_two_for_an_option_and_the_long_one_has_all() {
    let mut command = command_line();
    command.build();
    let serve = command.find_subcommand_mut("serve").unwrap();
    let options = serve.get_arguments().count();
    let (short, long) = (serve.render_help().to_string(), serve.render_long_help().to_string());
    let lines = |text: &str| text.lines().filter(|line| !line.trim().is_empty()).count();
    assert!(lines(&short) < 4 * options, "{} lines: {short}", lines(&short));
    assert!(lines(&long) > lines(&short) + options / 2, "{}", lines(&long));
    let headings = ["Listening and TLS", "Data and durability", "Cluster", "Limits and memory"];
    for heading in headings.into_iter().chain(["Accounts and pages", "Logging", "Start"]) {
        for text in [&short, &long] {
            assert!(text.contains(&format!("\n{heading}:\n")), "{heading}? {text}");
        }
    }
    let detail = "16 bits per channel";
    assert!(long.contains(detail) && !short.contains(detail));
}
