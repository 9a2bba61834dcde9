//! Tests of whether two samples differ, and the correction for several tests.

use crate::describe::{finite, mean, sorted, variance};
use crate::distribution::{normal_below, student_beyond};

/// Size below which samples without ties are tested exactly, as in R.
const EXACT_BELOW: usize = 50;

/// The result of [`welch`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Welch {
    /// The difference between the means, divided by its standard error.
    pub t: f64,
    /// Degrees of freedom after Welch and Satterthwaite.
    pub degrees: f64,
    /// The probability, if the means are equal, of a `t` at least as far from 0.
    pub p: f64,
}

/// Welch's two-sided t test of equal means, for samples whose variances may differ (Welch: The generalization of
/// Student's problem, 1947).
///
/// ```text
/// t = (mean_a - mean_b) / sqrt(v_a + v_b),   v = variance / n
/// degrees = (v_a + v_b)² / (v_a² / (n_a - 1) + v_b² / (n_b - 1))
/// ```
///
/// If neither sample varies, `p` is 1 if the samples are equal, otherwise 0. `None` if a sample has fewer than 2
/// values.
pub fn welch(a: &[f64], b: &[f64]) -> Option<Welch> {
    let (count_a, count_b) = (a.len() as f64, b.len() as f64);
    let (v_a, v_b) = (variance(a)? / count_a, variance(b)? / count_b);
    let (difference, squares) = (mean(a)? - mean(b)?, v_a + v_b);
    if squares == 0.0 {
        let t = if difference == 0.0 { 0.0 } else { difference.signum() * f64::INFINITY };
        let p = if difference == 0.0 { 1.0 } else { 0.0 };
        return Some(Welch { t, degrees: count_a + count_b - 2.0, p });
    }
    let t = difference / squares.sqrt();
    // Square shares of the sum, because the squares of small variances would be 0.
    let (part_a, part_b) = (v_a / squares, v_b / squares);
    let degrees = 1.0 / (part_a * part_a / (count_a - 1.0) + part_b * part_b / (count_b - 1.0));
    Some(Welch { t, degrees, p: student_beyond(t, degrees) })
}

/// The result of [`mann_whitney`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MannWhitney {
    /// The number of pairs in which the value of the first sample is greater, where ties count half. R calls it W.
    pub u: f64,
    /// The probability, if the distributions are equal, of a `u` at least as far from the middle of its range.
    pub p: f64,
    /// Whether `p` is exact. Otherwise it is from the normal approximation.
    pub exact: bool,
}

/// The two-sided test of Mann and Whitney that neither sample tends to have greater values (On a test of whether one of
/// two random variables is stochastically larger than the other, 1947).
///
/// The test is exact if both samples have fewer than 50 values and no two values are equal. Otherwise it is the normal
/// approximation with the correction for continuity and the following variance, where each tie has `t` values:
///
/// ```text
/// variance = n_a n_b / 12 * (n + 1 - Σ (t³ - t) / (n (n - 1)))
/// ```
///
/// `None` if a sample is empty.
pub fn mann_whitney(a: &[f64], b: &[f64]) -> Option<MannWhitney> {
    let (a, b) = (finite(a, 1)?, finite(b, 1)?);
    let (below, ties) = (sorted(b), tie_sizes(&[a, b].concat()));
    let u = a
        .iter()
        .map(|&value| {
            let less = below.partition_point(|&other| other < value);
            let not_more = below.partition_point(|&other| other <= value);
            (less + not_more) as f64 / 2.0
        })
        .sum();
    if a.len() < EXACT_BELOW && b.len() < EXACT_BELOW && ties.is_empty() {
        return Some(MannWhitney { u, p: exact_p(a.len(), b.len(), u), exact: true });
    }
    let (count_a, count_b) = (a.len() as f64, b.len() as f64);
    let count = count_a + count_b;
    let tied: f64 = ties.iter().map(|&size| size.powi(3) - size).sum();
    let variance = count_a * count_b / 12.0 * (count + 1.0 - tied / (count * (count - 1.0)));
    let distance = ((u - count_a * count_b / 2.0).abs() - 0.5).max(0.0);
    let p = if variance > 0.0 { 2.0 * normal_below(-distance / variance.sqrt()) } else { 1.0 };
    Some(MannWhitney { u, p: p.min(1.0), exact: false })
}

/// The number of equal values in each tie.
fn tie_sizes(values: &[f64]) -> Vec<f64> {
    let sorted = sorted(values);
    let ties = sorted.chunk_by(|a, b| a == b).filter(|tie| tie.len() > 1);
    ties.map(|tie| tie.len() as f64).collect()
}

/// The two-sided p-value of `u`, which must be a whole number.
fn exact_p(count_a: usize, count_b: usize, u: f64) -> f64 {
    // The distribution of `u` is symmetric.
    let least = u.min((count_a * count_b) as f64 - u) as usize;
    let beyond: f64 = arrangements(count_a, count_b, least).iter().sum();
    let all: f64 = (1..=count_a).map(|i| (count_b + i) as f64 / i as f64).product();
    (2.0 * beyond / all).min(1.0)
}

/// The number of orders of the values of two samples, for each `u` from 0 to `most`: the coefficients of the Gaussian
/// binomial, which is the product of `(1 - q^(b + i)) / (1 - q^i)` for all `i`. All are whole numbers. They are exact
/// up to 2^53; greater ones have a relative error of some parts in 10^16.
fn arrangements(count_a: usize, count_b: usize, most: usize) -> Vec<f64> {
    let mut counts = vec![0.0; most + 1];
    if let Some(none) = counts.first_mut() {
        *none = 1.0;
    }
    for i in 1..=count_a {
        // Multiply by 1 - q^(b + i): subtract a shifted copy.
        let copy = counts.clone();
        for (count, before) in counts.iter_mut().skip(count_b + i).zip(&copy) {
            *count -= before;
        }
        // Divide by 1 - q^i: add to each coefficient the one `i` before it, which is already divided.
        for start in (i..=most).step_by(i) {
            let (done, rest) = counts.split_at_mut(start);
            for (count, before) in rest.iter_mut().zip(done.iter().skip(start - i)) {
                *count += before;
            }
        }
    }
    counts
}

/// The p-values of several tests, adjusted so that the probability of any false finding is that of a single test (Holm:
/// A simple sequentially rejective multiple test procedure, 1979). The smallest of `m` p-values is multiplied by `m`,
/// the next by `m - 1`, and so on; each result is at least the previous one and at most 1. The results are in the order
/// of `p`.
pub fn holm(p: &[f64]) -> Vec<f64> {
    let mut ranked: Vec<(usize, f64)> = p.iter().copied().enumerate().collect();
    ranked.sort_by(|a, b| a.1.total_cmp(&b.1));
    let mut least: f64 = 0.0;
    for (left, (_, p)) in (1..=p.len()).rev().zip(&mut ranked) {
        least = least.max(*p * left as f64).min(1.0);
        *p = least;
    }
    ranked.sort_by_key(|(at, _)| *at);
    ranked.into_iter().map(|(_, p)| p).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_not_defined_is_none() {
        assert_eq!(welch(&[1.0], &[1.0, 2.0]), None);
        assert_eq!(welch(&[1.0, 2.0], &[1.0, f64::NAN]), None);
        assert_eq!(mann_whitney(&[], &[1.0]), None);
        assert!(holm(&[]).is_empty());
    }

    #[test]
    fn samples_without_variation_differ_for_certain_or_not_at_all() {
        assert_eq!(welch(&[1.0, 1.0], &[1.0, 1.0, 1.0]).unwrap().p, 1.0);
        assert_eq!(welch(&[1.0, 1.0], &[2.0, 2.0]).unwrap().p, 0.0);
        assert_eq!(mann_whitney(&[1.0, 1.0], &[1.0, 1.0]).unwrap().p, 1.0);
        let tiny = welch(&[1e-100, 2e-100, 3e-100], &[1e-100, 2e-100, 4e-100]).unwrap();
        assert!(tiny.p > 0.5, "{tiny:?}");
    }

    /// There are six orders of two and two values, with u = 0, 1, 2, 2, 3, 4.
    #[test]
    fn arrangements_are_counted() {
        assert_eq!(arrangements(2, 2, 4), [1.0, 1.0, 2.0, 1.0, 1.0]);
        assert_eq!(arrangements(1, 3, 3), [1.0; 4]);
        assert_eq!(arrangements(3, 1, 2), [1.0; 3]);
        let (sum, expect) =
            (arrangements(49, 49, 2_401).iter().sum::<f64>(), 2.547_761_225_898_085e28);
        assert!((sum / expect - 1.0).abs() < 1e-12, "{sum} is 98 over 49");
    }

    /// Tests all ways to divide the values 1 to 7 into samples of 3 and 4.
    #[test]
    fn exact_p_is_the_share_of_orders_at_least_as_far_off() {
        let deals: Vec<u32> = (0..1_u32 << 7).filter(|deal| deal.count_ones() == 3).collect();
        let pick = |deal: u32, side: u32| {
            (0..7).filter(|at| deal >> at & 1 == side).map(f64::from).collect::<Vec<_>>()
        };
        let test = |deal| mann_whitney(&pick(deal, 1), &pick(deal, 0)).unwrap();
        let off = |u: f64| (u - 6.0).abs();
        for &deal in &deals {
            let found = test(deal);
            let as_far = deals.iter().filter(|&&other| off(test(other).u) >= off(found.u)).count();
            let share = as_far as f64 / deals.len() as f64;
            assert!(found.exact && (found.p - share).abs() < 1e-12, "{deal:b}: {found:?} {share}");
        }
    }

    proptest! {
        #[test]
        fn tests_are_two_sided(
            a in proptest::collection::vec(0.0..9.0, 2..60),
            b in proptest::collection::vec(0.0..9.0, 2..60),
        ) {
            let round = |sample: &[f64]| sample.iter().map(|value| value.round()).collect::<Vec<_>>();
            for (a, b) in [(a.clone(), b.clone()), (round(&a), round(&b))] {
                let (one, other) = (welch(&a, &b).unwrap(), welch(&b, &a).unwrap());
                prop_assert!((one.p - other.p).abs() < 1e-9 && (0.0..=1.0).contains(&one.p));
                let (one, other) = (mann_whitney(&a, &b).unwrap(), mann_whitney(&b, &a).unwrap());
                prop_assert!((one.p - other.p).abs() < 1e-9 && (0.0..=1.0).contains(&one.p));
                prop_assert_eq!(one.u + other.u, (a.len() * b.len()) as f64);
            }
        }

        #[test]
        fn adjusted_p_are_greater_and_in_the_same_order(p in proptest::collection::vec(0.0..=1.0, 1..20)) {
            let adjusted = holm(&p);
            for (at, (one, adjusted_one)) in p.iter().zip(&adjusted).enumerate() {
                prop_assert!(one <= adjusted_one && *adjusted_one <= 1.0);
                for (other, adjusted_other) in p.iter().zip(&adjusted).skip(at) {
                    prop_assert!(one > other || adjusted_one <= adjusted_other);
                }
            }
        }
    }
}
