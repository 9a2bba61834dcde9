//! Settings from options, variables and files.

use std::num::NonZeroU32;
use std::path::Path;

use clap::error::ErrorKind;
use clap::{CommandFactory as _, Parser};

use super::*;

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    settings: Settings,
}

/// Sources: a command line, no variables, and a file.
fn sources(arguments: &[&str], file: Option<&Path>) -> anyhow::Result<Sources> {
    let line = Line::command().mut_args(|option| option.env(None::<&str>));
    Sources::read(&line.get_matches_from([&["roost"], arguments].concat()), file)
}

/// Settings of a configuration file with this text.
fn of_text(text: &str) -> anyhow::Result<Settings> {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("roost.toml");
    std::fs::write(&file, text).unwrap();
    Settings::of_file(&file)
}

#[test]
fn an_option_overrides_the_file_and_the_file_overrides_the_default() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("roost.toml");
    let text = "listen = \"127.0.0.1:1\"\nqueue = 7\ntimeline-memory = \"1MiB\"\n\
                fsync-interval = \"250ms\"\ndurability = \"interval\"\n\
                story-life = \"1m\"\nerase-within = \"10m\"\nweb-assets = \"pages\"\n";
    std::fs::write(&file, text).unwrap();
    let settings = sources(&["--listen", "127.0.0.1:2"], Some(&file)).unwrap().settings().unwrap();
    assert_eq!(settings.listen().port(), 2);
    let options = settings.node_options(&settings.memory(None).unwrap());
    assert_eq!((options.queue_commands_max, options.timeline_memory), (7, 1 << 20));
    assert_eq!(options.durability, Durability::Interval(Duration::from_millis(250)));
    assert_eq!(options.erase_within, Duration::from_secs(600));
    assert_eq!(settings.story_life, Some(Lifetime::from_secs(60).unwrap()));
    assert_eq!(settings.pages(), Some(Pages::Folder(PathBuf::from("pages"))));
    let without = sources(&["--web=false"], Some(&file)).unwrap().settings().unwrap();
    assert_eq!(without.pages(), None);
    assert_eq!(Settings::default().pages(), Some(Pages::Embedded));
}

#[test]
fn defaults_are_those_that_the_help_names() {
    let command = Line::command();
    let mut arguments = vec!["roost".to_owned()];
    for option in command.get_arguments() {
        let (Some(name), default) = (option.get_long(), sources::default(option)) else { continue };
        // Other defaults are descriptions and not values, such as "none" and "half of the processors".
        if name != "help" && !default.contains(' ') && default != "none" {
            arguments.push(format!("--{name}={default}"));
        }
    }
    assert!(arguments.len() > 30, "{arguments:?}");
    let (set, unset) = (Line::parse_from(&arguments).settings, Settings::default());
    let options = |settings: &Settings| {
        let memory = settings.memory(None).unwrap();
        (format!("{:?}", settings.node_options(&memory)), settings.pages(), settings.listen())
    };
    assert_eq!(options(&set), options(&unset));
    assert_eq!(set.trusted_proxies, Some(TrustedProxies::default()));
    let of_api = api::ApiOptions::new(edge::Access::Open);
    assert_eq!((set.max_lag, set.story_life), (Some(of_api.max_lag), Some(of_api.story_life)));
    assert_eq!(set.archive_interval, Some(ArchiveOptions::new("x").interval));
    assert_eq!(
        set.archive_backlog.map(|size| size.as_u64()),
        Some(ArchiveOptions::new("x").backlog_max)
    );
}

#[test]
fn a_value_is_parsed_alike_wherever_it_is_from() {
    let check = |setting: &str, values: &[&str], right: bool| {
        for value in values {
            let line = Line::try_parse_from(["roost", &format!("--{setting}={value}")]);
            assert_eq!(line.is_ok(), right, "--{setting}={value}");
            let read = of_text(&format!("{setting} = {value:?}"));
            assert_eq!(read.is_ok(), right, "{setting} = {value:?}");
            if let (Ok(line), Ok(read)) = (line, read) {
                assert_eq!(line.settings, read);
            }
        }
    };
    check("story-life", &["1s", "90m", "7d", "604800s"], true);
    check("story-life", &["0", "0s", "604801s", "8d", "60", "500ms"], false);
    check("log-level", &["debug", "off", "INFO", "info,node=debug"], true);
    check("log-level", &["info,node=loud", "=debug", "verbose", "3", ""], false);
    check("erase-within", &["10s", "1000h", "2d", "1h 30m"], true);
    check("erase-within", &["9s", "9999ms", "0s", "10", "-10s", "1y", "PT9999999999999H"], false);
    check("trusted-proxies", &["10.0.0.0/8", "10.0.0.0/8,192.0.2.1, 2001:db8::/32", "none"], true);
    check("trusted-proxies", &["10.1.2.3/8", "proxy.example", ""], false);
    check("durability", &["always", "interval", "never"], true);
    check("durability", &["Always", "sometimes"], false);
    check("changes-max", &["0", "8MiB", "16GiB"], true);
    check("changes-max", &["1", "8MB", "17GiB", "x", ""], false);
    check("open", &["true", "false"], true);
    check("open", &["yes", ""], false);
    for counted in ["queue", "max-connections", "redis-threads"] {
        check(counted, &["1", "5", "4294967295"], true);
        check(counted, &["0", "-1", "4294967296", "many", ""], false);
    }
    assert_eq!(of_text("queue = 5").unwrap().queue, NonZeroU32::new(5));
    assert_eq!(of_text("open = true").unwrap().open, Some(true));
}

#[test]
fn every_time_without_a_unit_is_refused_with_an_example() {
    let command = Line::command();
    let times: Vec<_> = command
        .get_arguments()
        .filter(|option| option.get_value_names().is_some_and(|names| names[0] == "TIME"))
        .map(|option| option.get_long().unwrap().to_owned())
        .collect();
    assert!(times.len() >= 6, "{times:?}");
    for name in times {
        let of_line = Line::try_parse_from(["roost", &format!("--{name}=60")]).err().unwrap();
        assert_eq!(of_line.kind(), ErrorKind::ValueValidation);
        let of_file = of_text(&format!("{name} = 60")).unwrap_err();
        for error in [of_line.to_string(), format!("{of_file:#}")] {
            assert!(error.contains(&name) && error.contains("a time has a unit: 500ms"), "{error}");
        }
    }
}

#[test]
fn a_wrong_file_is_refused_with_its_name_and_what_is_wrong() {
    for (text, says) in [
        ("nonsense = 1", "unknown setting nonsense"),
        ("memroy = \"1GiB\"", "unknown setting memroy; a similar one is memory"),
        ("config = \"x\"", "unknown setting config"),
        ("accept-clock = true", "unknown setting accept-clock"),
        ("help = true", "unknown setting help"),
        ("\"queue=7\" = 5", "unknown setting"),
        ("queue = \"many\"", "invalid value 'many' for '--queue <COMMANDS>'"),
        ("durability = \"sometimes\"", "[possible values: always, interval, never]"),
        ("queue = [1]", "queue must be a text, a number, true or false"),
        ("queue = 1.5", "queue must be"),
        ("[queue]", "queue must be"),
        ("queue = 1\nqueue = 2", "duplicate"),
        ("queue =", "line 1"),
        ("story-life = \"0s\"", "story-life"),
        ("queue = 5\nnats = nats://u:secret@host", "line 2: "),
        ("nats = \"nats://u:secret@host", "line 1: "),
        ("nats = \"nats://u:secret@host\" x", "line 1: "),
        ("nats = \"a\"\nnats = \"nats://u:secret@host\"", "line 2: duplicate"),
        ("nats = [\"nats://u:secret@host\"]", "nats must be"),
        ("\"nats=nats://u:secret@host\" = 1", "unknown setting"),
    ] {
        let error = format!("{:#}", of_text(text).unwrap_err());
        assert!(error.contains("roost.toml") && error.contains(says), "{text}: {error}");
        assert!(!error.contains("--help") && !error.contains("secret"), "{text}: {error}");
        assert!(!error.contains('\n'), "{text}: {error}");
    }
    let error = format!("{:#}", Settings::of_file(Path::new("no/such")).unwrap_err());
    assert!(error.contains("cannot read the configuration file no/such"), "{error}");
}

#[test]
fn passwords_are_not_shown() {
    for (servers, expected) in [
        ("nats://a:4222,tls://b", "nats://a:4222,tls://b"),
        ("tls://me:se@cret@a:1, nats://b", "tls://USER:PASSWORD@a:1,nats://b"),
        ("me:secret@a", "nats://USER:PASSWORD@a"),
    ] {
        assert_eq!(without_password(servers), expected);
    }
}

#[test]
fn a_wrong_file_of_feeds_is_refused_with_its_place() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("feeds.toml");
    let settings = Settings { feeds: Some(file.clone()), ..Settings::default() };
    let refused = |text: &str| {
        std::fs::write(&file, text).unwrap();
        format!("{:#}", settings.ranked_feeds().unwrap_err())
    };
    let error = refused("[feeds.mine]\nsources = { popular = 5 }\nscore = \"1 + lieks\"\n");
    for part in ["--feeds", "feeds.toml", "line 3", "unknown name `lieks`", "at character 5"] {
        assert!(error.contains(part), "{part}: {error}");
    }
    std::fs::write(&file, "[feeds.mine]\nsources = { popular = 5 }\nscore = \"likes\"\n").unwrap();
    assert!(settings.ranked_feeds().unwrap().named("mine").is_some());
    assert!(Settings::default().ranked_feeds().unwrap().named("for-you").is_some());
}
