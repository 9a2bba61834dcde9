//! Compares a population with the two tables: the requested and the achieved share of users in each row.

use std::fmt;

use serde::Serialize;

use super::Population;
use super::table::{FOLLOWERS, FOLLOWING, Row};

/// Mark of a row that a population cannot have.
pub(crate) const MISSED: &str = "  cannot be achieved with so few users";

/// Row of a table and its share of users.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Share {
    /// The lowest count of the row.
    pub low: u32,
    /// The highest count of the row, itself included.
    pub high: u32,
    /// Requested share, in percent.
    pub asked: f64,
    /// Achieved share, in percent.
    pub achieved: f64,
    /// Whether the row should have a user but has none, because the population is too small.
    pub is_missed: bool,
}

/// Rows of both tables, without those that are impossible in a population of this size.
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
            is_missed: inside == 0 && row.percent / whole * counts.len() as f64 >= 1.0,
        }
    };
    table.iter().filter(|row| (row.low as usize) < counts.len()).map(share).collect()
}

impl fmt::Display for Shares {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, table) in [("followers", &self.followers), ("following", &self.following)] {
            writeln!(f, "{name:>21}   requested   achieved")?;
            for row in table {
                let range = format!("{}-{}", row.low, row.high);
                let why = if row.is_missed { MISSED } else { "" };
                writeln!(f, "{range:>21} {:>9.3} % {:>8.3} %{why}", row.asked, row.achieved)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::population::Making;

    #[test]
    fn rows_that_a_small_population_cannot_have_are_named() {
        let shares = Shares::of(&Population::made(&Making::of(1_500, 1)));
        let text = shares.to_string();
        for share in shares.followers.iter().chain(&shares.following) {
            let is_named = share.achieved == 0.0 && share.asked * 15.0 >= 1.0;
            assert_eq!(share.is_missed, is_named, "{share:?}");
        }
        let row = text.lines().find(|line| line.contains("1001-5000")).unwrap();
        assert!(row.ends_with("cannot be achieved with so few users"), "{text}");
        let row = text.lines().find(|line| line.contains("101-500")).unwrap();
        assert!(row.ends_with('%'), "{text}");
        // A row for a millionth of the users should have no user in so small a population.
        let nobody = shares_of(&[
            Row { low: 0, high: 9, percent: 99.0 },
            Row { low: 10, high: 20, percent: 1e-6 },
        ]);
        assert!(!nobody.iter().any(|share| share.is_missed), "{nobody:?}");
    }

    fn shares_of(table: &[Row]) -> Vec<Share> {
        shares(table, &[1; 100])
    }
}
