//! Computes the numbers of followers and followees of each user from the tables.
//!
//! Each row gets its exact share of the users. Inside a row the counts are quantiles of a power law, limited to the
//! row. The counts thus depend only on the number of users; the seed decides which user gets which count. Each table
//! has one exponent: a larger exponent gives lower counts within the rows. The exponents are chosen so that both tables
//! have the same sum, because every follow counts once in each.

// The standard library's function may round differently on other machines.
use libm::pow;

use super::table::{FOLLOWERS, FOLLOWING, Row};

/// Exponent at which the table of followers gives 120 follows per user for 100,000 users. The minimum counts of the
/// rows already give 96, so the exponent is high.
const FOLLOWERS_EXPONENT: f64 = 7.0;
/// Maximum exponent of the first row, which has 80 % of the users. With the steep exponent of the other rows, nearly
/// all of them would have no follower.
const FIRST_ROW_EXPONENT_MAX: f64 = 1.5;
/// Maximum exponent of the table of followed users: counts are spread evenly over orders of magnitude. With a higher
/// exponent, most users of a small population would follow no one.
const FOLLOWING_EXPONENT_MAX: f64 = 1.0;
/// Range of the search for exponents. At either end, all counts are at the bounds of their rows.
const EXPONENTS: (f64, f64) = (-30.0, 60.0);
/// Number of points for computing the mean of a row, during the search for an exponent.
const MEAN_POINTS: u32 = 128;

/// Numbers of followers and of followees, in the order of the rows, not yet assigned to users.
#[derive(Debug)]
pub(crate) struct Degrees {
    pub(crate) followers: Vec<u32>,
    pub(crate) following: Vec<u32>,
}

/// Computes the counts of `users` users from both tables, with equal sums if the rows allow it.
pub(crate) fn fitted(users: u32) -> Degrees {
    let followers = Counts::new(FOLLOWERS, users);
    let following = Counts::new(FOLLOWING, users);
    let sum =
        followers.estimate(FOLLOWERS_EXPONENT).max(following.estimate(FOLLOWING_EXPONENT_MAX));
    let mut followers_made = followers.quantiles(followers.exponent_for(sum));
    let mut following_made = following.quantiles(following.exponent_for(sum));
    following.shift_to(total(&followers_made), &mut following_made);
    followers.shift_to(total(&following_made), &mut followers_made);
    Degrees { followers: followers_made, following: following_made }
}

fn total(counts: &[u32]) -> u64 {
    counts.iter().map(|&count| u64::from(count)).sum()
}

/// Rows of a table, limited to a number of users, with the number of users in each row.
struct Counts(Vec<(Row, u32)>);

impl Counts {
    fn new(table: &[Row], users: u32) -> Counts {
        let most = users.saturating_sub(1);
        let weights: Vec<f64> = table.iter().map(|row| row.percent).collect();
        let shares = apportion(&weights, users);
        Counts(table.iter().map(|row| row.cut_to(most)).zip(shares).collect())
    }

    /// Approximate sum of the counts at this exponent.
    fn estimate(&self, exponent: f64) -> f64 {
        let mut sum = 0.0;
        for (at, &(row, users)) in self.0.iter().enumerate() {
            let points = users.min(MEAN_POINTS);
            let inside = row_exponent(at, exponent);
            let made: f64 = (0..points).map(|i| f64::from(quantile(row, inside, i, points))).sum();
            sum += made / f64::from(points.max(1)) * f64::from(users);
        }
        sum
    }

    /// Exponent at which the sum of the counts is nearest to `sum`, found by bisection: the estimate falls when the
    /// exponent rises.
    fn exponent_for(&self, sum: f64) -> f64 {
        let (mut low, mut high) = EXPONENTS;
        for _ in 0..40 {
            let middle = f64::midpoint(low, high);
            if self.estimate(middle) > sum {
                low = middle;
            } else {
                high = middle;
            }
        }
        f64::midpoint(low, high)
    }

    fn quantiles(&self, exponent: f64) -> Vec<u32> {
        let mut made = Vec::new();
        for (at, &(row, users)) in self.0.iter().enumerate() {
            let inside = row_exponent(at, exponent);
            made.extend((0..users).map(|i| quantile(row, inside, i, users)));
        }
        made
    }

    /// Changes counts by one, within the bounds of their rows, until their sum is `sum` or no count can change. Begins
    /// with the largest counts, where the relative change is smallest.
    fn shift_to(&self, sum: u64, counts: &mut [u32]) {
        let by = sum.cast_signed() - total(counts).cast_signed();
        let rows = self.0.iter().flat_map(|&(row, users)| (0..users).map(move |_| row));
        let rows: Vec<Row> = rows.collect();
        let step = by.signum();
        let mut left = by.unsigned_abs();
        let mut moved = true;
        while left > 0 && moved {
            moved = false;
            for (count, row) in counts.iter_mut().zip(&rows).rev() {
                let next = i64::from(*count) + step;
                if left > 0 && (i64::from(row.low)..=i64::from(row.high)).contains(&next) {
                    *count = next as u32;
                    left -= 1;
                    moved = true;
                }
            }
        }
    }
}

fn row_exponent(row: usize, exponent: f64) -> f64 {
    if row == 0 { exponent.min(FIRST_ROW_EXPONENT_MAX) } else { exponent }
}

/// Count at the middle of the `i`-th of `of` equal parts of a power law, limited to the row. The law applies to `count
/// + 1`, because a row may begin at 0.
fn quantile(row: Row, exponent: f64, i: u32, of: u32) -> u32 {
    let part = (f64::from(i) + 0.5) / f64::from(of);
    let (low, high) = (f64::from(row.low) + 1.0, f64::from(row.high) + 2.0);
    let ratio = high / low;
    let rest = 1.0 - exponent;
    let value = if rest.abs() < 1e-9 {
        low * pow(ratio, part)
    } else {
        low * pow(1.0 + part * (pow(ratio, rest) - 1.0), 1.0 / rest)
    };
    // Clamp floats beyond the bounds, and NaN, which extreme exponents give.
    ((value - 1.0) as u32).clamp(row.low, row.high)
}

/// Divides `whole` into whole numbers in proportion to `weights`: rounds each down, and gives the rest to those with
/// the largest remainders.
pub(crate) fn apportion(weights: &[f64], whole: u32) -> Vec<u32> {
    let sum: f64 = weights.iter().sum();
    let exact: Vec<f64> = weights.iter().map(|weight| weight / sum * f64::from(whole)).collect();
    let mut parts: Vec<u32> = exact.iter().map(|part| part.floor() as u32).collect();
    let mut by_remainder: Vec<(f64, &mut u32)> =
        exact.iter().map(|part| part.fract()).zip(&mut parts).collect();
    by_remainder.sort_by(|a, b| b.0.total_cmp(&a.0));
    let given: u32 = by_remainder.iter().map(|(_, part)| **part).sum();
    let left = whole.saturating_sub(given) as usize;
    for (_, part) in by_remainder.into_iter().take(left) {
        *part += 1;
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_whole_and_sum_to_the_whole() {
        let check = |weights: &[f64], whole: u32, expect: &[u32]| {
            assert_eq!(apportion(weights, whole), expect, "{weights:?} of {whole}");
        };
        check(&[1.0], 7, &[7]);
        check(&[1.0, 1.0, 1.0], 10, &[4, 3, 3]);
        check(&[80.0, 6.0, 14.0], 50, &[40, 3, 7]);
        check(&[5.0, 14.25, 60.75, 20.0], 100, &[5, 14, 61, 20]);
        check(&[0.2, 0.8], 0, &[0, 0]);
    }

    #[test]
    fn both_tables_give_about_120_follows_per_user() {
        let made = fitted(100_000);
        assert_eq!(total(&made.followers), total(&made.following));
        let mean = total(&made.followers) as f64 / 100_000.0;
        assert!((118.0..122.0).contains(&mean), "{mean}");
    }

    #[test]
    fn sums_agree_and_counts_stay_below_the_number_of_users_at_every_size() {
        for users in [1, 2, 3, 10, 57, 100, 500, 1_000, 3_000, 10_000] {
            let made = fitted(users);
            assert_eq!(total(&made.followers), total(&made.following), "{users} users");
            for counts in [&made.followers, &made.following] {
                assert_eq!(counts.len(), users as usize);
                assert!(counts.iter().all(|&count| count < users), "{users} users");
            }
        }
    }

    #[test]
    fn a_power_law_stays_in_its_row_at_any_exponent() {
        let row = Row { low: 51, high: 100, percent: 1.0 };
        for exponent in [-1_000.0, EXPONENTS.0, -1.0, 0.0, 1.0, 2.5, EXPONENTS.1, 1_000.0] {
            let made: Vec<u32> = (0..1_000).map(|i| quantile(row, exponent, i, 1_000)).collect();
            assert!(made.is_sorted(), "exponent {exponent}");
            assert!(made.iter().all(|count| (51..=100).contains(count)), "exponent {exponent}");
        }
        assert_eq!((quantile(row, 1.0, 0, 1_000), quantile(row, 1.0, 999, 1_000)), (51, 100));
    }
}
