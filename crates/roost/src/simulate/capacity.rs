//! `roost simulate --find-capacity`: runs the search and reports each step.

use anyhow::Context as _;
use sim::capacity::{self, Finding, Search, SimulatedTrials};
use sim::{Drive, SimulateOptions, Simulation};

use crate::exit::Exit;
use crate::output::{Stdout, out};

use super::{Simulate, cancelled_by_signal, command_line};

/// Default objectives, for a feed without noticeable delay.
const OBJECTIVE: &str = "p99<50ms,errors<0.1%,lag_p99<1s";

pub(super) async fn find(
    options: SimulateOptions,
    drive: Drive,
    simulate: &Simulate,
) -> anyhow::Result<()> {
    let (_stop, mut cancel) = cancelled_by_signal()?;
    let out = &mut Stdout;
    let mut simulation = Simulation::prepare(options, out, &mut cancel).await?;
    let usual = || OBJECTIVE.parse().context("the usual objective");
    let slo = simulate.slo.clone().map_or_else(usual, Ok)?;
    let search = Search { repeats: simulate.repeats, ..Search::default() };
    out!("searching for the highest rate with {slo}");
    out!(
        "{}, each after a warm-up of a fifth of its length",
        search.trials().describe(drive.duration)
    );
    let scenario = simulation.scenario();
    let mut simulated = SimulatedTrials { simulation: &mut simulation, drive, cancel };
    let mut report = |step: &capacity::Step<'_>| out!("{step}");
    let found = capacity::find(&mut simulated, &slo, &search, &mut report).await?;
    out!("\n{}", found.to_string().trim_end());
    if let Some(path) = &simulate.json {
        std::fs::write(path, serde_json::to_vec_pretty(&found)?)
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    if let Some(path) = &simulate.html {
        sim::report::write_capacity(path, &found, &scenario, &command_line())
            .with_context(|| format!("cannot write {}", path.display()))?;
        out!("report: {}", path.display());
    }
    match found.finding {
        Finding::Holds { .. } => Ok(()),
        Finding::AtLeast { rate_per_s, .. } if rate_per_s > 0.0 => Ok(()),
        Finding::Nothing { .. } => Err(Exit::failed(format!("no rate meets {slo}"))),
        Finding::AtLeast { .. } | Finding::Unsteady { .. } => {
            Err(Exit::inconclusive("no capacity was found"))
        }
    }
}
