//! The content of the screen, at sizes from empty to large.

use std::time::Duration;

use hdrhistogram::Histogram;
use proptest::prelude::*;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use sim::watch::{Delivery, Plan, ServerLoad, Window, WindowKind};

use super::*;

const KINDS: [&str; 7] = [
    "posts",
    "home reads",
    "mention reads",
    "story posts",
    "story homes",
    "story reads",
    "recognitions",
];

/// A run with this many kinds of requests after `windows` of its sixty windows. Posts fail in the fifth window.
fn model(kinds: usize, windows: u32) -> Model {
    let plan = Plan {
        title: "20,000 users with 2,400,000 follows".to_owned(),
        duration: Duration::from_secs(60),
        window: Duration::from_secs(1),
        kinds: KINDS[..kinds].to_vec(),
        closed: false,
    };
    let mut model = Model::new(&plan);
    for at in 0..windows {
        let mut latencies = Histogram::new_with_bounds(1, 3_600_000_000, 3).unwrap();
        latencies.record_n(1_500, 98).unwrap();
        latencies.record_n(40_000, 2).unwrap();
        let kind = |which| WindowKind {
            count: 100,
            errors: if at == 4 && which == 0 { 7 } else { 0 },
            p50_ms: 1.5,
            p90_ms: 1.5,
            p99_ms: 40.0,
            max_ms: 40.0,
        };
        let window = Window {
            end_s: f64::from(at + 1),
            seconds: 1.0,
            kinds: (0..kinds).map(kind).collect(),
            delivery: Some(Delivery { samples: 3, p50_ms: 1.0, p99_ms: 8.5, max_ms: 9.0 }),
            scheduling_delay_p99_ms: 0.25,
            server: Some(ServerLoad { memory_bytes: 293_000_000, cores: 0.62 }),
        };
        model.add(&window, &vec![latencies; kinds]);
    }
    model
}

fn screen(model: &Model, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(model, frame)).unwrap();
    terminal.backend().to_string().replace('\u{a0}', " ")
}

fn check(model: &Model, (width, height): (u16, u16), parts: &[&str]) {
    let screen = screen(model, width, height);
    for part in parts {
        assert!(screen.contains(part), "{part}? at {width} by {height}:\n{screen}");
    }
}

#[test]
fn everything_of_a_run_is_on_a_screen_of_any_usual_size() {
    for size in [(60, 24), (80, 24), (120, 40), (200, 60)] {
        let of_run = ["20,000 users with", "open loop", "12 s of 60 s", "q or Ctrl-C stop"];
        check(&model(3, 12), size, &of_run);
        check(&model(3, 12), size, &["Requests per second: 300", "p50 1.50 ms, p99 40", " 60 s"]);
        check(&model(3, 12), size, &["delivery p99 8.50", "memory 293 MB", "cores 0.620"]);
        check(&model(3, 12), size, &["scheduling delay p99 250 \u{b5}s", "1,200", "3,600"]);
        check(&model(7, 12), size, &KINDS);
    }
    check(&model(3, 12), (79, 24), &["p99 of all"]);
    // At the minimum width nothing is cut, so the last column is complete.
    check(&model(3, 12), (60, 24), &["done  errors", "p50 1.50 ms, p99 40.0 ms"]);
}

#[test]
fn errors_are_reported_once_there_are_any() {
    let before = screen(&model(2, 4), 80, 24);
    assert!(!before.contains(" requests "), "no legend for a line alone:\n{before}");
    check(&model(2, 5), (80, 24), &["requests", "errors", " 7 "]);
}

#[test]
fn a_run_that_has_not_begun_or_reports_little_has_a_screen() {
    check(&model(3, 0), (80, 24), &["0 s of 60 s", "delivery p99 -", "memory -", "cores -"]);
    check(&model(0, 0), (80, 24), &["0 s of 60 s"]);
}

#[test]
fn a_request_to_stop_is_shown() {
    let mut model = model(1, 1);
    model.is_stopping = true;
    model.closed = true;
    check(&model, (80, 24), &["stopping, then printing the summary", "closed loop"]);
}

#[test]
fn a_terminal_that_is_too_small_says_so() {
    check(&model(1, 1), (59, 24), &["too small: 59 by 24", "q stops it"]);
    check(&model(1, 1), (80, 15), &["too small: 80 by 15"]);
    check(&model(1, 1), (60, 16), &["q or Ctrl-C"]);
}

#[test]
fn what_is_kept_is_bounded() {
    assert_eq!(model(1, 1_300).moments.len(), 1_200);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn there_is_a_screen_at_every_size(
        width in 1_u16..200, height in 1_u16..60, kinds in 0_usize..=7, windows in 0_u32..70
    ) {
        let screen = screen(&model(kinds, windows), width, height);
        prop_assert_eq!(screen.lines().count(), usize::from(height));
    }
}
