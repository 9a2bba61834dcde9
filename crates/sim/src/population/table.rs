//! The two measured tables for a population: the distributions of followers and of followed users per user (Twitter,
//! 2014, from the request for the simulator).
//!
//! The shares of a table are weights and need not add up to 100.

/// One row of a table: the share of users whose count lies between two bounds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Row {
    /// The lowest count of the row.
    pub low: u32,
    /// The highest count of the row, inclusive.
    pub high: u32,
    /// Share of all users, in percent.
    pub percent: f64,
}

impl Row {
    /// Row with both bounds limited to `most`, for populations that are too small for the whole row.
    pub(crate) fn cut_to(self, most: u32) -> Row {
        Row { low: self.low.min(most), high: self.high.min(most), ..self }
    }
}

const fn row(low: u32, high: u32, percent: f64) -> Row {
    Row { low, high, percent }
}

/// Percentage for one user in 10^9. Some rows are given as counts (76, 46, 8 and 8 users of 10^9).
const ONE_IN_10_9: f64 = 1e-7;

/// Users by number of followers.
pub const FOLLOWERS: &[Row] = &[
    row(0, 50, 80.0),
    row(51, 100, 6.0),
    row(101, 500, 9.0),
    row(501, 1_000, 1.95),
    row(1_001, 5_000, 1.95),
    row(5_001, 1_000_000, 1.097_24),
    row(1_000_001, 10_000_000, 76.0 * ONE_IN_10_9),
    row(10_000_001, 20_000_000, 46.0 * ONE_IN_10_9),
    row(20_000_001, 30_000_000, 8.0 * ONE_IN_10_9),
    row(30_000_001, 1_000_000_000, 8.0 * ONE_IN_10_9),
];

/// Users by number of followed users.
pub const FOLLOWING: &[Row] = &[
    row(0, 50, 74.0),
    row(51, 100, 8.0),
    row(101, 500, 14.0),
    row(501, 1_000, 2.5),
    row(1_001, 5_000, 1.5),
];
