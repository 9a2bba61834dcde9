//! Workload of DeathStarBench's social network (Gan and others, "An Open-Source Benchmark Suite for Microservices",
//! 2019; `mixed-workload.lua`): 60 % home timelines, 30 % user timelines, 10 % posts. All users are equally active.

use std::ops::Range;

use super::{Clock, Verb};

/// Default number of actions per second.
const PER_SECOND: f64 = 1_000.0;
/// Actions and their shares, in percent.
const MIX: [(Verb, f64); 3] =
    [(Verb::ReadHome, 60.0), (Verb::ReadUserTimeline, 30.0), (Verb::Post, 10.0)];

/// Creates one clock for each kind of action, for all users together.
pub(super) fn clocks(all: &Range<usize>) -> impl Iterator<Item = Clock> {
    MIX.into_iter().map(|(verb, percent)| Clock {
        verb,
        class: all.clone(),
        tail: 1.0,
        interval_s: 100.0 / percent / PER_SECOND,
        next_s: 0.0,
    })
}
