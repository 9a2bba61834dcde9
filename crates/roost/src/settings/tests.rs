//! Settings from flags, variables and files.

use clap::{CommandFactory as _, Parser};

use super::*;

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    settings: Settings,
}

#[test]
fn every_setting_has_a_flag_and_an_environment_variable_of_its_name() {
    let line = Line::command();
    for argument in line.get_arguments().filter(|argument| argument.get_id() != "help") {
        let flag = argument.get_long().unwrap();
        let name = match flag {
            "log" => "log-servers",
            "log-level" => "log",
            flag => flag,
        };
        let variable = format!("ROOST_{}", name.replace('-', "_").to_uppercase());
        assert_eq!(argument.get_env().unwrap().to_str(), Some(variable.as_str()));
        let help = argument.get_help().unwrap().to_string();
        assert!(help.contains("[default: "), "--{flag} reports its default");
    }
}

#[test]
fn a_flag_overrides_the_file_and_the_file_overrides_the_default() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("roost.toml");
    let text = "listen = \"127.0.0.1:1\"\nqueue = 7\ntimeline-memory = \"1MiB\"\n\
                fsync-interval = \"250ms\"\ndurability = \"interval\"\n\
                story-life = 60\nerase-within = \"10m\"\nweb-assets = \"pages\"\n";
    std::fs::write(&file, text).unwrap();
    let line = Line::parse_from(["roost", "--listen", "127.0.0.1:2"]);
    let settings = line.settings.completed_by(&file).unwrap();
    assert_eq!(settings.listen().port(), 2);
    let options = settings.node_options(&settings.memory(None).unwrap());
    assert_eq!((options.queue_commands_max, options.timeline_memory), (7, 1 << 20));
    assert_eq!(options.durability, Durability::Interval(Duration::from_millis(250)));
    assert_eq!(options.erase_within, Duration::from_secs(600));
    assert_eq!(settings.story_life, Some(Lifetime::from_secs(60).unwrap()));
    assert_eq!(settings.pages(), Some(Pages::Folder(PathBuf::from("pages"))));
    let without = Line::parse_from(["roost", "--web=false"]).settings;
    assert_eq!(without.completed_by(&file).unwrap().pages(), None);
    assert_eq!(Settings::default().pages(), Some(Pages::Embedded));
    let memory = Settings::default().memory(None).unwrap();
    let by_default = Settings::default().node_options(&memory);
    assert_eq!(by_default.erase_within, Duration::from_secs(3_600));
    assert_eq!(options.post_memory, NodeOptions::new("x").post_memory);
    assert_eq!(Settings::default().listen().to_string(), "127.0.0.1:8998");
}

#[test]
fn ttls_levels_and_the_time_to_erase_have_bounds() {
    let check = |setting: &str, values: &[&str], right: bool| {
        for value in values {
            let line = Line::try_parse_from(["roost", &format!("--{setting}"), value]);
            assert_eq!(line.is_ok(), right, "--{setting} {value}");
            let number = value.parse::<u64>().is_ok();
            let file = if number { (*value).to_owned() } else { format!("{value:?}") };
            let read = toml::from_str::<Settings>(&format!("{setting} = {file}"));
            assert_eq!(read.is_ok(), right, "{setting} = {file}");
        }
    };
    check("story-life", &["1", "604800"], true);
    check("story-life", &["0", "604801", "1h"], false);
    check("log-level", &["debug", "off", "info,node=debug"], true);
    check("log-level", &["info,node=loud", "=debug"], false);
    check("erase-within", &["10s", "1000h"], true);
    check("erase-within", &["9s", "9999ms", "0s", "10"], false);
}

#[test]
fn trusted_proxies_are_a_list_of_networks() {
    for (text, is_right) in [
        ("10.0.0.0/8", true),
        ("10.0.0.0/8,192.0.2.1, 2001:db8::/32", true),
        ("none", true),
        ("10.1.2.3/8", false),
        ("proxy.example", false),
        ("", false),
    ] {
        let line = Line::try_parse_from(["roost", "--trusted-proxies", text]);
        let file = toml::from_str::<Settings>(&format!("trusted-proxies = {text:?}"));
        assert_eq!((line.is_ok(), file.is_ok()), (is_right, is_right), "{text}");
        if let (Ok(line), Ok(file)) = (line, file) {
            assert_eq!(line.settings.trusted_proxies, file.trusted_proxies);
            assert_eq!(line.settings.trusted_proxies, text.parse().ok());
        }
    }
}

#[test]
fn a_wrong_file_is_refused_with_its_name() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("roost.toml");
    for text in [
        "nonsense = 1",
        "queue = \"many\"",
        "durability = \"sometimes\"",
        "queue =",
        "story-life = 0",
    ] {
        std::fs::write(&file, text).unwrap();
        let error = Settings::default().completed_by(&file).unwrap_err();
        assert!(format!("{error:#}").contains("roost.toml"), "{error:#}");
    }
    assert!(Settings::default().completed_by(&directory.path().join("none")).is_err());
}
