//! Writes the report of a made-up run: `report FILE [KINDS]`. It has in it what a real run seldom has all
//! together, and what a page must bear: a stall, a burst of errors, gaps, and markup in texts.

mod sample;

use std::path::PathBuf;

fn main() -> std::io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let (file, kinds) = (arguments.next(), arguments.next());
    let path = PathBuf::from(file.unwrap_or_else(|| "report.html".to_owned()));
    let kinds = kinds.and_then(|kinds| kinds.parse().ok()).unwrap_or(3);
    let (summary, recording) = sample::run(1, kinds, 60);
    sim::report::write(&path, &summary, &recording, "roost simulate --html '<b>.html'")
}
