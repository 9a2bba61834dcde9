//! Progress of a long step: a bar if standard error is a terminal, otherwise a line every few seconds.

use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use tokio::time::{Instant, sleep};

const BAR_EVERY: Duration = Duration::from_millis(100);
const LINE_EVERY: Duration = Duration::from_secs(3);

/// Shows the progress of `done` towards `total` until the future is dropped, which also removes the bar.
pub(crate) async fn show(what: &'static str, total: u64, done: &AtomicU64) {
    if io::stderr().is_terminal() {
        show_bar(what, total, done).await;
    } else {
        show_lines(what, total, done).await;
    }
}

async fn show_bar(what: &'static str, total: u64, done: &AtomicU64) {
    let bar = ClearedBar(ProgressBar::new(total));
    if let Ok(style) =
        ProgressStyle::with_template("{msg} {wide_bar} {human_pos}/{human_len} {per_sec} {eta}")
    {
        bar.0.set_style(style);
    }
    bar.0.set_message(what);
    loop {
        bar.0.set_position(done.load(Ordering::Relaxed));
        sleep(BAR_EVERY).await;
    }
}

struct ClearedBar(ProgressBar);

impl Drop for ClearedBar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

async fn show_lines(what: &'static str, total: u64, done: &AtomicU64) {
    let start = Instant::now();
    loop {
        sleep(LINE_EVERY).await;
        let (done, seconds) = (done.load(Ordering::Relaxed), start.elapsed().as_secs());
        // Ignore failures to write the progress.
        let _ = writeln!(io::stderr(), "{what}: {done} of {total} after {seconds} s");
    }
}
