//! Sources of settings: an option overrides an environment variable, which overrides the configuration file, which
//! overrides the default. Keys of the file have the names of the options.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Args as _, Command, FromArgMatches as _};
use toml::Value;

use super::{Settings, without_password};

/// Values of all sources.
pub(crate) struct Sources {
    /// Values of options and the environment.
    line: ArgMatches,
    file: Option<(PathBuf, ArgMatches)>,
}

/// Setting whose value depends on others: name, value, source.
type Computed = (&'static str, String, &'static str);

impl Sources {
    /// Reads the options and variables of a command that has all settings, and a configuration file.
    ///
    /// # Errors
    /// If the file cannot be read or is wrong.
    pub(crate) fn read(line: &ArgMatches, file: Option<&Path>) -> anyhow::Result<Self> {
        let file = file.map(|file| anyhow::Ok((file.to_owned(), read(file)?))).transpose()?;
        Ok(Self { line: line.clone(), file })
    }

    /// Effective settings.
    ///
    /// # Errors
    /// Errors that the parser of the command line has already reported.
    pub(crate) fn settings(&self) -> anyhow::Result<Settings> {
        let mut settings = Settings::default();
        if let Some((_, file)) = &self.file {
            settings.update_from_arg_matches(file)?;
        }
        settings.update_from_arg_matches(&self.line)?;
        Ok(settings)
    }

    /// Lists every setting with its value and its source, one per line, without passwords.
    pub(crate) fn table(&self, computed: &[Computed]) -> String {
        let command = options();
        let rows = command.get_arguments().filter_map(|option| {
            let (value, source) = self.row(option, computed);
            Some((option.get_help_heading()?, option.get_long()?, value, source))
        });
        let rows: Vec<_> = rows.collect();
        let name_width = rows.iter().map(|row| row.1.len()).max().unwrap_or(0);
        let value_width = rows.iter().map(|row| row.2.chars().count().min(40)).max().unwrap_or(0);
        let (mut table, mut last) = (String::new(), "");
        for (heading, name, value, source) in &rows {
            if *heading != last {
                let gap = if last.is_empty() { "" } else { "\n" };
                table.push_str(&format!("{gap}{heading}:\n"));
                last = heading;
            }
            let line = format!("  {name:name_width$}  {value:value_width$}  {source}\n");
            table.push_str(&line);
        }
        table
    }

    fn row(&self, option: &Arg, computed: &[Computed]) -> (String, String) {
        let (id, name) = (option.get_id().as_str(), option.get_long().unwrap_or_default());
        let value = |matches: &ArgMatches| {
            let raw = matches.get_raw(id)?.map(OsStr::to_string_lossy).collect::<Vec<_>>();
            let value = raw.join(",");
            Some(if name == "nats" { without_password(&value) } else { value })
        };
        let of_line = match self.line.value_source(id) {
            Some(ValueSource::CommandLine) => Some(format!("option --{name}")),
            Some(ValueSource::EnvVariable) => {
                let variable = option.get_env().unwrap_or_default().to_string_lossy();
                Some(format!("variable {variable}"))
            }
            _ => None,
        };
        if let (Some(source), Some(value)) = (of_line, value(&self.line)) {
            return (value, source);
        }
        if let Some((file, matches)) = &self.file
            && let Some(value) = value(matches)
        {
            return (value, format!("file {}", file.display()));
        }
        match computed.iter().find(|computed| computed.0 == name) {
            Some((_, value, source)) => (value.clone(), (*source).to_owned()),
            None => (default(option), "default".to_owned()),
        }
    }
}

impl Settings {
    /// Reads the settings of a configuration file.
    ///
    /// # Errors
    /// If the file cannot be read or is wrong.
    pub(crate) fn of_file(file: &Path) -> anyhow::Result<Self> {
        Ok(Self::from_arg_matches(&read(file)?)?)
    }
}

/// Options of all settings.
fn options() -> Command {
    Settings::augment_args(Command::new("roost").no_binary_name(true).disable_help_flag(true))
}

/// Reads the default of a setting from its help text.
pub(super) fn default(option: &Arg) -> String {
    let help = option.get_help().map(ToString::to_string).unwrap_or_default();
    let default = help.split_once("[default: ").and_then(|(_, rest)| rest.strip_suffix(']'));
    default.unwrap_or_default().to_owned()
}

fn read(file: &Path) -> anyhow::Result<ArgMatches> {
    let text = fs::read_to_string(file)
        .with_context(|| format!("cannot read the configuration file {}", file.display()))?;
    parse(&text).with_context(|| format!("the configuration file {} is wrong", file.display()))
}

fn parse(text: &str) -> anyhow::Result<ArgMatches> {
    let mut words = Vec::new();
    let table = toml::from_str::<toml::Table>(text).map_err(|error| syntax(&error, text))?;
    for (key, value) in table {
        let value = match value {
            Value::String(text) => text,
            Value::Integer(number) => number.to_string(),
            Value::Boolean(truth) => truth.to_string(),
            _ => anyhow::bail!("{key} must be a text, a number, true or false"),
        };
        // Omit the value from the message: it may be a password.
        let name = key.split('=').next().unwrap_or_default();
        anyhow::ensure!(name == key, "unknown setting {name:?}");
        words.push(format!("--{key}={value}"));
    }
    options()
        .mut_args(|option| option.env(None::<&str>))
        .try_get_matches_from(words)
        .map_err(|error| said(&error))
}

/// Formats a syntax error of a file: its line and reason, but not the text of the line, which may be a password.
pub(super) fn syntax(error: &toml::de::Error, text: &str) -> anyhow::Error {
    let before = error.span().and_then(|span| text.as_bytes().get(..span.start));
    let line = 1 + before.unwrap_or_default().iter().filter(|byte| **byte == b'\n').count();
    let message = error.message().split_whitespace().collect::<Vec<_>>().join(" ");
    anyhow::anyhow!("line {line}: {message}")
}

/// Formats an error of the parser on one line, without advice about a command line.
fn said(error: &clap::Error) -> anyhow::Error {
    let name = |kind| match error.get(kind) {
        Some(ContextValue::String(name)) => Some(name.trim_start_matches('-').to_owned()),
        _ => None,
    };
    if error.kind() == ErrorKind::UnknownArgument
        && let Some(unknown) = name(ContextKind::InvalidArg)
    {
        let similar = name(ContextKind::SuggestedArg);
        let similar = similar.map(|name| format!("; a similar one is {name}")).unwrap_or_default();
        return anyhow::anyhow!("unknown setting {unknown}{similar}");
    }
    let text = error.to_string();
    let text = text.strip_prefix("error: ").unwrap_or(&text);
    let text = text.split("\n\nFor more information").next().unwrap_or_default();
    anyhow::anyhow!("{}", text.split_whitespace().collect::<Vec<_>>().join(" "))
}
