//! `roost simulate --find-capacity`: the search, told as it goes.

use std::io;

use anyhow::Context as _;
use sim::capacity::{self, Finding, Rehearsed, Search};
use sim::{Drive, Rehearsal, SimulateOptions};

use super::{Simulate, cancelled_by_signal};

pub(super) async fn find(
    options: SimulateOptions,
    drive: Drive,
    simulate: &Simulate,
) -> anyhow::Result<()> {
    let (_stop, mut cancel) = cancelled_by_signal()?;
    let out = &mut io::stdout();
    let mut rehearsal = Rehearsal::prepare(options, out, &mut cancel).await?;
    let search = Search { repeats: simulate.repeats, ..Search::default() };
    println!("searching for the highest rate with {}", simulate.slo);
    println!(
        "{}, and a fifth as long before each to warm up",
        search.trials().told(drive.duration)
    );
    let mut rehearsed = Rehearsed { rehearsal: &mut rehearsal, drive, cancel };
    let mut tell = |step: &capacity::Step<'_>| println!("{step}");
    let found = capacity::find(&mut rehearsed, &simulate.slo, &search, &mut tell).await?;
    print!("\n{found}");
    if let Some(path) = &simulate.json {
        std::fs::write(path, serde_json::to_vec_pretty(&found)?)
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    let found_one = matches!(found.finding, Finding::Holds { .. } | Finding::AtLeast { .. });
    anyhow::ensure!(found_one, "no capacity was found");
    Ok(())
}
