//! Options of a population, for every command that generates one.

use std::path::PathBuf;

use clap::Args;
use sim::population::{Making, PEOPLE_MAX};

use crate::exit::Exit;

/// Settings of a population.
#[derive(Args)]
#[command(next_help_heading = "Users")]
pub(crate) struct People {
    /// Number of users
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=i64::from(PEOPLE_MAX)))]
    pub(crate) users: u32,
    /// Seed of the random numbers
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Share of follows that are mutual, from 0 to 0.3 [default: 0.22]
    #[arg(long, value_name = "SHARE", conflicts_with = "graph")]
    reciprocity: Option<f64>,
    /// Average local clustering coefficient, from 0 to 0.2; higher with fewer than 100,000 users
    /// [default: 0.12]
    #[arg(long, value_name = "SHARE", conflicts_with = "graph")]
    clustering: Option<f64>,
    /// Read users and mutual follows (or friendships) from an edge list: two numbers per line
    #[arg(long, value_name = "FILE", conflicts_with = "users")]
    pub(crate) graph: Option<PathBuf>,
}

impl People {
    /// Parameters of the population.
    ///
    /// # Errors
    /// If they are contradictory or out of range.
    pub(crate) fn making(&self) -> anyhow::Result<Making> {
        let usual = Making::of(self.users, self.seed);
        let making = Making {
            reciprocity: self.reciprocity.unwrap_or(usual.reciprocity),
            clustering: self.clustering.unwrap_or(usual.clustering),
            ..usual
        };
        match making.fault() {
            Some(fault) => Err(Exit::usage(&fault)),
            None => Ok(making),
        }
    }
}
