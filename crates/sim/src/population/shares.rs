//! A population compared with the two tables: the requested and the achieved share of users in each
//! row.

use std::fmt;

use serde::Serialize;

use super::Population;
use super::table::{FOLLOWERS, FOLLOWING, Row};

/// One row of a table and the share of users that lie in it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Share {
    /// The lowest count of the row.
    pub low: u32,
    /// The highest count of the row, itself included.
    pub high: u32,
    /// The share the table asks for, in percent.
    pub asked: f64,
    /// The share of the population that lies in the row, in percent.
    pub achieved: f64,
}

/// Both tables; rows that are impossible in a population of this size are left out.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Shares {
    /// Users by number of followers.
    pub followers: Vec<Share>,
    /// Users by number of followed users.
    pub following: Vec<Share>,
}

impl Shares {
    pub(crate) fn of(population: &Population) -> Shares {
        let users = 0..population.people();
        let following: Vec<u32> =
            users.map(|user| population.following(user).len() as u32).collect();
        Shares {
            followers: shares(FOLLOWERS, &population.follower_counts()),
            following: shares(FOLLOWING, &following),
        }
    }
}

fn shares(table: &[Row], counts: &[u32]) -> Vec<Share> {
    let whole: f64 = table.iter().map(|row| row.percent).sum();
    let percent_of = |part: usize| part as f64 * 100.0 / counts.len().max(1) as f64;
    let share = |row: &Row| {
        let inside = counts.iter().filter(|count| (row.low..=row.high).contains(count)).count();
        Share {
            low: row.low,
            high: row.high,
            asked: row.percent * 100.0 / whole,
            achieved: percent_of(inside),
        }
    };
    table.iter().filter(|row| (row.low as usize) < counts.len()).map(share).collect()
}

impl fmt::Display for Shares {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, table) in [("followers", &self.followers), ("following", &self.following)] {
            writeln!(f, "{name:>21}   asked for   achieved")?;
            for row in table {
                let range = format!("{}-{}", row.low, row.high);
                writeln!(f, "{range:>21} {:>9.3} % {:>8.3} %", row.asked, row.achieved)?;
            }
        }
        Ok(())
    }
}
