//! Searches that end without finding a limit.

use super::*;

/// Trials that succeed at any rate, and are interrupted after this number of trials.
struct CutShort(usize);

impl Trials for CutShort {
    async fn run(&mut self, rate: f64) -> Result<Measures, SimError> {
        self.0 = self.0.checked_sub(1).ok_or(SimError::Interrupted)?;
        Ok(Measures { asked_per_s: rate, done_per_s: rate, ..Measures::default() })
    }
}

#[tokio::test]
async fn a_search_that_is_cut_short_returns_its_trials() {
    let slo: Slo = "p99<50ms".parse().unwrap();
    let search = Search { start_per_s: 500.0, ..Search::default() };
    let found = find(&mut CutShort(3), &slo, &search, &mut |_| {}).await.unwrap();
    assert_eq!(found.trials.len(), 3);
    let why = "the search was cut short".to_owned();
    assert_eq!(found.finding, Finding::AtLeast { rate_per_s: 2_000.0, why });
    let nothing = find(&mut CutShort(0), &slo, &search, &mut |_| {}).await;
    assert!(matches!(nothing, Err(SimError::Interrupted)), "{nothing:?}");
}

#[tokio::test]
async fn a_server_whose_timelines_are_wrong_holds_nothing() {
    struct Wrong;
    impl Trials for Wrong {
        async fn run(&mut self, rate: f64) -> Result<Measures, SimError> {
            Ok(Measures { asked_per_s: rate, done_per_s: rate, faults: 1, ..Measures::default() })
        }
    }
    let slo: Slo = "p99<50ms".parse().unwrap();
    let found = find(&mut Wrong, &slo, &Search::default(), &mut |_| {}).await.unwrap();
    assert!(matches!(found.finding, Finding::Nothing { .. }), "{found}");
    assert!(found.to_string().contains("1 faults in timelines"), "{found}");
}
