//! `roost simulate`: loads a population into a server, sends requests and measures the responses.

mod arguments;
mod capacity;
mod feeds;
mod parts;
mod sign_in;
pub(crate) mod target;

use std::io::{self, IsTerminal as _};
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Context as _;
use sim::report::Recording;
use sim::summary::Correctness;
use sim::watch::{Lines, Watcher};
use sim::{Drive, Measures, Slo, Summary, simulate};
use tokio::sync::watch;

use crate::dashboard::Dashboard;
use crate::exit::Exit;
use crate::files::check_output;
use crate::logging;
use crate::output::{Stdout, out};
use crate::running::{Purpose, RunningServer};
use crate::serve::stop_signal;
use crate::unencrypted;
pub(crate) use arguments::Simulate;
use arguments::{Api, Loop};
use parts::Profile;

impl Simulate {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        logging::start_by_environment()?;
        let parts = self.parts()?;
        [&self.json, &self.html].into_iter().flatten().try_for_each(|path| check_output(path))?;
        if self.profile == Profile::Feeds {
            return self.evaluate().await;
        }
        let (server, target) = match &self.server {
            Some(url) => (None, target::parse(url, self.ca.as_deref())?),
            None => {
                let any = SocketAddr::from(([127, 0, 0, 1], 0));
                let purpose = Purpose::Simulation { drawn: self.has_dashboard() };
                let server = RunningServer::start(any, None, purpose, None).await?;
                let target = server.address.into();
                (Some(server), target)
            }
        };
        let key = if server.is_none() { target::key(&target) } else { None };
        if self.api == Api::Mastodon {
            unencrypted::warn_of(&target, "the sign-in data of the users");
        }
        let api = self.api(server.as_ref(), key.is_some()).await?;
        let options = self.options(parts, target, key, api)?;
        if self.find_capacity {
            return capacity::find(options, self.drive(), &self).await;
        }
        let (stop, cancel) = cancelled_by_signal()?;
        let (mut recording, mut shown) = (Recording::default(), self.shown(stop));
        let watchers: &mut [&mut dyn Watcher] = &mut [&mut recording, &mut *shown];
        let out = &mut Stdout;
        let summary = simulate(options, &self.drive(), out, watchers, cancel).await?;
        drop(server);
        if let Some(path) = &self.json {
            summary.write_json(path).with_context(|| format!("cannot write {}", path.display()))?;
        }
        if let Some(path) = &self.html {
            sim::report::write(path, &summary, &recording, &command_line())
                .with_context(|| format!("cannot write {}", path.display()))?;
            out!("report: {}", path.display());
        }
        self.verdict(&summary)
    }

    /// Returns an error if the run has faults, missed objectives or failed requests.
    fn verdict(&self, summary: &Summary) -> anyhow::Result<()> {
        let faults = summary.correctness.as_ref().map_or(0, Correctness::faults);
        if faults > 0 {
            return Err(Exit::failed(format!("{faults} faults in timelines")));
        }
        if !summary.inconclusive.is_empty() {
            return Err(Exit::inconclusive(&summary.inconclusive.join("; ")));
        }
        if let Some(slo) = &self.slo {
            let breaches = slo.check(&Measures::of(summary, self.drive().duration));
            if !breaches.is_empty() {
                let breaches: Vec<String> = breaches.iter().map(ToString::to_string).collect();
                return Err(Exit::failed(format!("{slo} is not met: {}", breaches.join(", "))));
            }
            out!("{slo} is met");
        }
        let may_fail = self.slo.as_ref().is_some_and(Slo::is_about_errors);
        let errors = summary.error_count();
        if errors > 0 && !may_fail {
            return Err(Exit::failed(format!("{errors} requests failed")));
        }
        Ok(())
    }

    fn has_dashboard(&self) -> bool {
        !self.plain && !self.find_capacity && io::stdout().is_terminal()
    }

    /// Creates the progress display.
    fn shown(&self, stop: watch::Sender<bool>) -> Box<dyn Watcher> {
        if self.has_dashboard() {
            Box::new(Dashboard::new(stop))
        } else {
            Box::new(Lines::new(Stdout))
        }
    }

    fn drive(&self) -> Drive {
        let default_s = if self.find_capacity { 10 } else { 60 };
        let duration = self.duration.unwrap_or(Duration::from_secs(default_s));
        let closed = self.kind_of_loop == Loop::Closed;
        let is_lively = self.profile == Profile::Feed && !closed && !self.find_capacity;
        let day = self.day.or_else(|| is_lively.then_some(duration));
        Drive {
            duration,
            rate: self.rate,
            closed,
            day: day.filter(|day| !day.is_zero()),
            flash: self.flash,
            connections: self.connections,
            threads: self.threads,
        }
    }
}

/// Command line of this process, quoted for a shell.
fn command_line() -> String {
    let arguments = std::env::args_os().skip(1);
    let quoted = arguments.map(|argument| quoted(&argument.to_string_lossy()));
    std::iter::once("roost".to_owned()).chain(quoted).collect::<Vec<_>>().join(" ")
}

/// Quotes an argument for a shell.
fn quoted(argument: &str) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || "-_=./:,%@+".contains(letter);
    if !argument.is_empty() && argument.chars().all(is_plain) {
        return argument.to_owned();
    }
    format!("'{}'", argument.replace('\'', r"'\''"))
}

/// Returns a channel that becomes true at the first SIGINT or SIGTERM, or through the sender.
pub(crate) fn cancelled_by_signal() -> anyhow::Result<(watch::Sender<bool>, watch::Receiver<bool>)>
{
    let (cancel, cancelled) = watch::channel(false);
    let (stop, own) = (stop_signal()?, cancel.clone());
    tokio::spawn(async move {
        stop.await;
        own.send_replace(true);
    });
    Ok((cancel, cancelled))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::parts::Parts;
    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        simulate: Simulate,
    }

    impl Parts {
        fn count(&self) -> usize {
            let Parts { feed, stories, drawings, keys } = self;
            [feed.is_some(), stories.is_some(), drawings.is_some(), keys.is_some()]
                .map(usize::from)
                .iter()
                .sum()
        }
    }

    #[test]
    fn a_profile_takes_the_settings_that_belong_to_it() {
        let check = |line: &str, right: bool| {
            let line = ["simulate"].into_iter().chain(line.split_whitespace());
            let parts = Line::try_parse_from(line.clone()).map(|line| line.simulate.parts());
            let one = matches!(parts, Ok(Ok(parts)) if parts.count() == 1);
            assert_eq!(one, right, "{:?}", line.collect::<Vec<_>>());
        };
        check("", true);
        check("--load heavy", true);
        check("--profile stories", true);
        check("--profile stories --friends 5 --stories 2 --life 1s --home-reads 0", true);
        check("--profile stories --load light", false);
        for wrong in ["--friends 5", "--stories 5", "--life 5s", "--home-reads 5"] {
            check(wrong, false);
        }
        check("--profile recognize --rate 1000", true);
        check("--profile recognize --flash 1s", false);
        check("--profile recognize --load light", false);
        check("--profile recognize --friends 5", false);
        check("--rate 5 --flash 1s --day 1h --loop closed", true);
        check("--day off", true);
        check("--profile buckets --ycsb e --records 5 --value-bytes 7 --rate 9", true);
        check("--profile buckets --ycsb g", false);
        check("--ycsb a", false);
        check("--profile deathstar --rate 9", true);
        check("--profile deathstar --load heavy", false);
        let check_feeds = |line: &str, right: bool| {
            let line =
                ["simulate", "--profile", "feeds"].into_iter().chain(line.split_whitespace());
            let parts = Line::try_parse_from(line.clone()).map(|line| line.simulate.parts());
            assert_eq!(matches!(parts, Ok(Ok(_))), right, "{:?}", line.collect::<Vec<_>>());
        };
        check_feeds("", true);
        check_feeds("--users 100 --seeds 2 --feeds file --duration 1s --html file", true);
        for wrong in ["--users 99", "--users 20001", "--seeds 1", "--seeds 31", "--rate 5"] {
            check_feeds(wrong, false);
        }
        for wrong in ["--server localhost:1", "--find-capacity", "--slo p99<5ms", "--graph file"] {
            check_feeds(wrong, false);
        }
        check("--feeds file", false);
        check("--seeds 3", false);
        check("--find-capacity --slo p99<5ms --repeats 3 --duration 2s", true);
        check("--find-capacity --html report.html", true);
        check("--find-capacity --rate 5", false);
        check("--find-capacity --slo p98<5ms", false);
        check("--repeats 3", false);
        check("--loaded", false);
        check("--api mastodon", true);
        check("--api mastodon --profile deathstar --rate 9", true);
        for other in ["stories", "buckets", "recognize"] {
            check(&format!("--api mastodon --profile {other}"), false);
        }
        check("--api mastodon --server localhost:1 --tokens file", true);
        check("--server localhost:1 --tokens file", false);
        check("--api mastodon --tokens file", false);
        check("--day of", false);
        for wrong in ["0s", "604801s", "8d", "500ms", "60"] {
            check(&format!("--profile stories --life {wrong}"), false);
        }
    }

    #[test]
    fn an_argument_is_quoted_where_a_shell_needs_it() {
        for (argument, expect) in [
            ("--users=5", "--users=5"),
            ("p99<50ms", "'p99<50ms'"),
            ("it's", r"'it'\''s'"),
            ("", "''"),
        ] {
            assert_eq!(quoted(argument), expect);
        }
    }
}
