//! The contents of a simulation's report, which must not need other files.

#[path = "../../examples/report/sample.rs"]
mod sample;
#[path = "../../examples/report/search.rs"]
mod search;

use std::path::Path;

use proptest::prelude::*;
use sample::EVIL;
use search::End;
use sim::capacity::{Capacity, Finding};
use sim::report::{self, Recording};
use sim::summary::{Correctness, Summary};
use sim::watch::{Plan, Watcher as _, Window};
use sim::workload::KeyLoad;

/// Returns the page, and the names and contents of the files next to it.
fn written(
    summary: &Summary,
    recording: &Recording,
    command: &str,
) -> (String, Vec<(String, String)>) {
    files_of(|path| report::write(path, summary, recording, command).unwrap())
}

/// Returns the page and the files of a search.
fn searched(capacity: &Capacity, scenario: &str, command: &str) -> (String, Vec<(String, String)>) {
    files_of(|path| report::write_capacity(path, capacity, scenario, command).unwrap())
}

fn files_of(write: impl FnOnce(&Path)) -> (String, Vec<(String, String)>) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("my report.html");
    write(&path);
    let read = |path: &Path| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        (name, std::fs::read_to_string(path).unwrap())
    };
    let folder = directory.path().join("my report-data");
    let entries = std::fs::read_dir(folder).unwrap();
    let mut files: Vec<_> = entries.map(|entry| read(&entry.unwrap().path())).collect();
    files.sort();
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 2, "nothing else is left");
    (std::fs::read_to_string(path).unwrap(), files)
}

/// Counts a part in a text.
fn times(text: &str, part: &str) -> usize {
    text.matches(part).count()
}

#[test]
fn the_verdict_says_whether_the_figures_can_be_trusted_and_what_they_are() {
    let check = |change: fn(&mut Summary), parts: &[&str]| {
        let (mut summary, recording) = sample::run(1, 2, 10);
        summary.errors.clear();
        change(&mut summary);
        let (page, _) = written(&summary, &recording, "roost simulate");
        let (_, verdict) = page.split_once("<p class=\"verdict ").unwrap();
        let verdict = verdict.split_once("</p>").unwrap().0.replace('\u{a0}', " ");
        for part in parts {
            assert!(verdict.contains(part), "{part}? {verdict}");
        }
    };
    check(|_| {}, &["good", "<strong>Valid</strong>: ", "no errors", "worst p99 ", " for 10 s,"]);
    check(
        |_| {},
        &["99 % of 720 sampled posts seen within 8.90 ms", "all 1,200 sampled pages correct"],
    );
    check(
        |summary| summary.inconclusive = vec!["the generator was late".into(), "<it> slept".into()],
        &[
            "bad",
            "<strong>Inconclusive</strong> because the generator was late; &lt;it&gt; slept: ",
        ],
    );
    check(|summary| summary.interrupted = true, &["warn", "Valid, but cut short", " for 10 s"]);
    let faulty = |summary: &mut Summary| {
        let faults = Correctness { pages: 9, missing: 2, doubled: 1, ..Correctness::default() };
        summary.correctness = Some(faults);
    };
    check(faulty, &["warn", "3 faults on 9 sampled pages"]);
    let unread = |summary: &mut Summary| summary.correctness = Some(Correctness::default());
    check(unread, &["no sampled timeline could be read"]);
}

#[test]
fn every_kind_has_its_row_and_its_plots() {
    for kinds in 1..=7 {
        let (summary, recording) = sample::run(2, kinds, 20);
        let (page, files) = written(&summary, &recording, "roost simulate");
        for kind in recording.kinds() {
            assert!(page.contains(&format!("</i>{kind}</th>")), "{kind} has no row");
            let file = format!("{}.hgrm", kind.replace(' ', "-"));
            assert!(files.iter().any(|(name, _)| *name == file), "{file}: {files:?}");
            assert!(page.contains(&format!("href=\"my%20report-data/{file}\"")), "{file}");
        }
        for at in 0..kinds {
            for plot in ["rate", "latency"] {
                assert_eq!(times(&page, &format!("id=\"{plot}-{at}-t\"")), 1, "{plot} of {at}");
            }
        }
        for plot in ["percentiles", "delivery", "errors", "memory", "processor", "scheduling-delay"]
        {
            assert_eq!(times(&page, &format!("id=\"{plot}-t\"")), 1, "{plot}");
        }
        for count in ["<section>", "<figure>", "<div", "<svg", "<table", "<dl", "<ul"] {
            let end = format!("</{}>", count.trim_matches(['<', '>']));
            assert_eq!(times(&page, count), times(&page, &end), "{count} and its end");
        }
    }
}

#[test]
fn only_simulated_parts_are_reported() {
    let (mut summary, recording) = sample::run(1, 1, 3);
    summary.keys = Some(KeyLoad::default());
    let (page, _) = written(&summary, &recording, "roost simulate");
    for (name, expect) in [("Bucket", 1), ("Follows", 1), ("Stories", 0), ("Drawings", 0)] {
        assert_eq!(times(&page, &format!("<dt>{name}</dt>")), expect, "{name}");
    }
}

#[test]
fn what_was_not_measured_is_left_out() {
    let (mut summary, _) = sample::run(3, 2, 3);
    (summary.delivery, summary.correctness, summary.server) = (None, None, None);
    summary.errors.clear();
    summary.feed = None;
    let mut recording = Recording::default();
    let (page, files) = written(&summary, &recording, "roost simulate");
    assert!(page.contains("Nothing was measured"), "{page}");
    assert_eq!(times(&page, "<svg"), 0);
    assert_eq!(files.len(), 2, "{files:?}");

    let (_, sampled) = sample::run(3, 2, 3);
    recording.begin(sampled.plan().unwrap()).unwrap();
    for window in sampled.windows() {
        let mut bare = Window { delivery: None, server: None, ..window.clone() };
        for kind in &mut bare.kinds {
            kind.errors = 0;
        }
        recording.window(&bare, sampled.latencies_us()).unwrap();
    }
    let (page, _) = written(&summary, &recording, "roost simulate");
    for absent in ["id=\"delivery", "id=\"memory", "id=\"errors-t", "Population", "Correctness"] {
        assert!(!page.contains(absent), "{absent}");
    }
    assert!(page.contains("id=\"scheduling-delay"), "{page}");
}

#[test]
fn the_page_loads_nothing_and_escapes_all_text() {
    let (summary, recording) = sample::run(4, 7, 30);
    let (page, _) = written(&summary, &recording, &format!("roost simulate --graph {EVIL}"));
    for absent in ["<img", "<script", "http:", "https:", "src=\"", "url(", "@import", " on="] {
        assert!(!page.contains(absent), "{absent}");
    }
    assert!(page.contains("default-src 'none'"), "a policy");
    assert_eq!(times(&page, "&lt;img src=x onerror="), 4, "title twice, command, message");
}

#[test]
fn a_closed_loop_says_what_its_latencies_are() {
    let (mut summary, mut recording) = sample::run(5, 1, 3);
    let (page, _) = written(&summary, &recording, "roost simulate");
    assert!(page.contains("open: requests are due") && page.contains("from when it was due"));
    summary.closed = true;
    let (window, latencies) = (recording.windows()[0].clone(), recording.latencies_us().to_vec());
    recording.begin(&Plan { closed: true, ..recording.plan().unwrap().clone() }).unwrap();
    recording.window(&window, &latencies).unwrap();
    let (page, _) = written(&summary, &recording, "roost simulate --closed");
    assert!(page.contains("closed: each request waits"), "{page}");
    assert!(page.contains("from when it was sent") && page.contains("too low"), "{page}");
    assert!(!page.contains("from when due"), "{page}");
}

#[test]
fn the_data_beside_it_are_those_of_the_run() {
    let (summary, recording) = sample::run(6, 3, 12);
    let (_, files) = written(&summary, &recording, "roost simulate");
    let file = |name: &str| &files.iter().find(|(file, _)| file == name).expect(name).1;
    let json: serde_json::Value = serde_json::from_str(file("summary.json")).unwrap();
    assert_eq!((&json["seed"], &json["users"]), (&6.into(), &20_000.into()));

    let rows: Vec<Vec<&str>> =
        file("windows.tsv").lines().map(|line| line.split('\t').collect()).collect();
    assert_eq!(rows.len(), 13, "a header and a row a window");
    assert!(rows.iter().all(|row| row.len() == rows[0].len()), "{rows:?}");
    let column = |name: &str| rows[0].iter().position(|cell| *cell == name).expect(name);
    for (row, window) in rows[1..].iter().zip(recording.windows()) {
        assert_eq!(row[column("home_reads_count")], window.kinds[1].count.to_string());
        assert_eq!(row[column("posts_p99_ms")], format!("{:.3}", window.kinds[0].p99_ms));
        assert_eq!(row[column("end_s")], format!("{:.3}", window.end_s));
        let memory = window.server.unwrap().memory_bytes.to_string();
        assert_eq!(row[column("server_memory_bytes")], memory);
    }
    let total = format!("Total count    = {:>12}]", recording.latencies_us()[1].len());
    assert!(file("home-reads.hgrm").contains(&total), "{total}");
}

#[test]
fn a_report_replaces_the_one_before() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("report.html");
    for seed in [1, 2] {
        let (summary, recording) = sample::run(seed, 1, 3);
        report::write(&path, &summary, &recording, &format!("run {seed}")).unwrap();
    }
    let page = std::fs::read_to_string(&path).unwrap();
    assert!(page.contains("run 2") && !page.contains("run 1"));
    let (summary, recording) = sample::run(1, 1, 3);
    assert!(report::write(Path::new("/"), &summary, &recording, "run").is_err());
}

#[test]
fn a_recording_is_bounded_and_loses_no_latency() {
    let (_, sampled) = sample::run(7, 1, 1);
    let mut recording = Recording::default();
    recording.begin(&Plan { ..sampled.plan().unwrap().clone() }).unwrap();
    for _ in 0..1_300 {
        recording.window(&sampled.windows()[0], sampled.latencies_us()).unwrap();
    }
    assert_eq!((recording.windows().len(), recording.windows_left_out()), (1_200, 100));
    assert_eq!(recording.latencies_us()[0].len(), 1_300 * sampled.latencies_us()[0].len());
    let (summary, _) = sample::run(7, 1, 1);
    let (page, _) = written(&summary, &recording, "roost simulate");
    assert!(page.contains("The last 100 windows of the run are not drawn"));
}

#[test]
fn the_page_of_a_search_says_what_was_found_and_draws_a_band_only_around_a_mean() {
    let check = |end: End, class: &str, means: &str, bands: usize| {
        let found = search::search(1, end);
        let (page, _) = searched(&found, "20 users", "roost simulate");
        assert!(page.contains(&format!("<p class=\"verdict {class}\">")), "{end:?}: {class}");
        assert!(page.contains(means), "{end:?}: {means}");
        // Both plots are drawn wide and narrow.
        let drawn =
            page.split("role=\"img\"").skip(1).map(|plot| plot.split_once("</svg>").unwrap().0);
        let drawn: usize = drawn.map(|plot| times(plot, "class=\"band ")).sum();
        assert_eq!(drawn, bands, "{end:?}");
    };
    check(End::Found, "good", "about half of the trials meet", 4);
    check(End::AtLeast, "warn", "the upper limit is unknown", 0);
    check(End::Nothing, "bad", "not met at the lowest rate", 0);
    check(End::Unsteady, "bad", "such repeats would be meaningless", 0);
    let mut empty = search::search(1, End::Found);
    empty.trials.clear();
    empty.repeats_per_s.clear();
    empty.finding = Finding::Nothing { rate_per_s: 1.0 };
    let (page, _) = searched(&empty, "20 users", "roost simulate");
    assert!(page.contains("No trial was run") && !page.contains("role=\"img\""), "{page}");
}

#[test]
fn every_trial_of_a_search_has_its_row_and_its_marks() {
    for end in [End::Found, End::AtLeast, End::Nothing, End::Unsteady] {
        let found = search::search(2, end);
        let (page, files) = searched(&found, "20 users", "roost simulate");
        let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["capacity.json", "trials.tsv"]);
        for trial in &found.trials {
            assert_eq!(times(&page, &format!("<th scope=\"row\">{}</th>", trial.number)), 1);
            let title = format!("<title>Trial {} (", trial.number);
            assert_eq!(times(&page, &title), 4, "{title}, in two plots, wide and narrow");
        }
        let json: serde_json::Value = serde_json::from_str(&files[0].1).unwrap();
        assert_eq!(json["trials"].as_array().unwrap().len(), found.trials.len());
        let rows: Vec<Vec<&str>> =
            files[1].1.lines().map(|line| line.split('\t').collect()).collect();
        assert_eq!(rows.len(), found.trials.len() + 1);
        assert!(rows.iter().all(|row| row.len() == rows[0].len()), "{rows:?}");
        for tag in ["<section>", "<figure>", "<div", "<svg", "<table", "<dl", "<ul"] {
            let end = format!("</{}>", tag.trim_matches(['<', '>']));
            assert_eq!(times(&page, tag), times(&page, &end), "{tag} and its end");
        }
    }
}

#[test]
fn the_page_of_a_search_escapes_all_text() {
    let found = search::search(3, End::AtLeast);
    let (page, _) = searched(&found, EVIL, &format!("roost simulate --graph {EVIL}"));
    for absent in ["<img", "<script", "http:", "https:", "src=\"", "url(", " on="] {
        assert!(!page.contains(absent), "{absent}");
    }
    assert!(page.contains("default-src 'none'"), "a policy");
    assert!(times(&page, "&lt;img src=x onerror=") >= 4, "users, command, sentence, reasons");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn every_coordinate_is_a_number_within_its_plot(seed: u64, kinds in 1_usize..8, windows in 1_u32..40) {
        let (summary, recording) = sample::run(seed, kinds, windows);
        let (page, _) = written(&summary, &recording, "roost simulate");
        prop_assert!(!page.contains("NaN") && !page.contains("inf"), "a number that is none");
        for path in page.split(" d=\"").skip(1).map(|rest| rest.split_once('"').unwrap().0) {
            for number in path.split(|c: char| c.is_ascii_alphabetic() || c == ' ') {
                let inside = number.is_empty() || (0.0..=1_040.0).contains(&number.parse::<f64>().unwrap());
                prop_assert!(inside, "{} in {}", number, path);
            }
        }
    }
    #[test]
    fn every_coordinate_of_a_search_is_a_number_within_its_plot(seed: u64) {
        let (page, _) = searched(&search::search(seed, End::Found), "20 users", "roost simulate");
        prop_assert!(!page.contains("NaN") && !page.contains("inf"), "a number that is none");
        for path in page.split(" d=\"").skip(1).map(|rest| rest.split_once('"').unwrap().0) {
            for number in path.split(|c: char| c.is_ascii_alphabetic() || c == ' ') {
                let inside = number.is_empty() || (0.0..=1_040.0).contains(&number.parse::<f64>().unwrap());
                prop_assert!(inside, "{} in {}", number, path);
            }
        }
    }
}
