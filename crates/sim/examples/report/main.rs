//! Writes a report of invented data: of a run (`report FILE [KINDS]`), or of a search for the capacity (`report FILE
//! found|at-least|nothing|unsteady`). The data combines rare events that a page must display correctly: a stall, a
//! burst of errors, gaps, and markup in texts.

mod sample;
mod search;

use std::path::PathBuf;

use search::End;

const COMMAND: &str = "roost simulate --html '<b>.html'";

fn main() -> std::io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let (file, what) = (arguments.next(), arguments.next());
    let path = PathBuf::from(file.unwrap_or_else(|| "report.html".to_owned()));
    let end = match what.as_deref() {
        Some("found") => End::Found,
        Some("at-least") => End::AtLeast,
        Some("nothing") => End::Nothing,
        Some("unsteady") => End::Unsteady,
        kinds => {
            let kinds = kinds.and_then(|kinds| kinds.parse().ok()).unwrap_or(3);
            let (summary, recording) = sample::run(1, kinds, 60);
            return sim::report::write(&path, &summary, &recording, COMMAND);
        }
    };
    let scenario = format!("20000 users with 2400000 follows {}", sample::EVIL);
    sim::report::write_capacity(&path, &search::search(1, end), &scenario, COMMAND)
}
