//! Invented search: the real algorithm, on a server simulated by a formula and a seed.

#![allow(clippy::expect_used, reason = "what fails here is an example or a test")]

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use sim::SimError;
use sim::capacity::{self, Capacity, Search, Step, Trials};
use sim::slo::{Lag, Latency, Measures};

/// Ending of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Found,
    AtLeast,
    Nothing,
    Unsteady,
}

struct Server {
    end: End,
    random: StdRng,
    trials: u32,
}

impl Trials for Server {
    async fn run(&mut self, rate_per_s: f64) -> Result<Measures, SimError> {
        self.trials += 1;
        let limit = match self.end {
            End::Found => 4_900.0 * self.random.random_range(0.9..1.1),
            End::AtLeast => 1e9,
            End::Nothing => 0.1,
            // After the first bracket is found, the server's capacity changes.
            End::Unsteady => {
                if self.trials < 8 {
                    4_900.0
                } else {
                    49_000.0
                }
            }
        };
        let load = rate_per_s / limit;
        let wait_ms = if load < 0.98 { 1.2 / (1.0 - load) } else { 90.0 * (1.0 + load) };
        let p99_ms = wait_ms * self.random.random_range(0.8..1.25);
        let latency = Latency {
            p50_ms: p99_ms / 9.0,
            p90_ms: p99_ms / 3.0,
            p99_ms,
            p999_ms: p99_ms * 2.0,
            max_ms: p99_ms * 4.0,
        };
        let lag = Lag { p50_ms: p99_ms, p99_ms: p99_ms * 1.5, max_ms: p99_ms * 5.0 };
        let is_late = self.end == End::AtLeast && rate_per_s > 30_000.0;
        let late = || format!("the generator was late {}", super::sample::EVIL);
        Ok(Measures {
            asked_per_s: rate_per_s,
            done_per_s: rate_per_s * if load < 1.0 { 1.0 } else { 0.97 },
            errors_share: if load > 1.5 { 0.004 } else { 0.0 },
            latency,
            lag: (self.end != End::Nothing).then_some(lag),
            faults: 0,
            delivers: self.end != End::Nothing,
            scheduling_delay_p99_ms: 0.2,
            inconclusive: is_late.then(late).into_iter().collect(),
        })
    }
}

/// Runs a search with this ending.
pub(crate) fn search(seed: u64, end: End) -> Capacity {
    let mut server = Server { end, random: StdRng::seed_from_u64(seed), trials: 0 };
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let slo = "p99<50ms,errors<0.1%,lag_p99<1s".parse().expect("an objective");
    let (search, report) = (Search::default(), &mut |_: &Step<'_>| {});
    let found = capacity::find(&mut server, &slo, &search, report);
    runtime.block_on(found).expect("a server that always answers")
}
