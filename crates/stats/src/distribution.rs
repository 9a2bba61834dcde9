//! Distributions used by intervals and tests.

use statrs::distribution::{Binomial, ContinuousCDF as _, DiscreteCDF as _, Normal, StudentsT};

/// The share of Student's t distribution that is farther from 0 than `t`, on both sides. `degrees` are its degrees of
/// freedom, above 0.
pub(crate) fn student_beyond(t: f64, degrees: f64) -> f64 {
    if t.is_infinite() {
        return 0.0;
    }
    2.0 * student(degrees).cdf(-t.abs())
}

/// The quantile of Student's t distribution: the value with a `share` (0 to 1) below it. `degrees` is above 0.
pub(crate) fn student_quantile(share: f64, degrees: f64) -> f64 {
    student(degrees).inverse_cdf(share)
}

fn student(degrees: f64) -> StudentsT {
    let Ok(student) = StudentsT::new(0.0, 1.0, degrees) else {
        unreachable!("degrees of freedom are above 0")
    };
    student
}

/// The share of the standard normal distribution below `z`.
pub(crate) fn normal_below(z: f64) -> f64 {
    Normal::standard().cdf(z)
}

/// The quantile of the standard normal distribution: the value with a `share` (0 to 1) below it.
pub(crate) fn normal_quantile(share: f64) -> f64 {
    Normal::standard().inverse_cdf(share)
}

/// The quantile of the binomial distribution: the smallest number that the successes in `tries` tries do not exceed in
/// at least this `share` of cases.
pub(crate) fn binomial_most(tries: u64, probability: f64, share: f64) -> u64 {
    let Ok(binomial) = Binomial::new(probability, tries) else {
        unreachable!("a probability is within 0 to 1")
    };
    binomial.inverse_cdf(share)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// R: `qt(0.975, c(1, 2, 3.5, 9, 17.8, 30, 120, 1e4))`
    #[test]
    fn students_t_is_that_of_r() {
        let expect = [
            (1.0, 12.706_204_736_2),
            (2.0, 4.302_652_729_75),
            (3.5, 2.940_088_637_98),
            (9.0, 2.262_157_162_8),
            (17.8, 2.102_615_375_26),
            (30.0, 2.042_272_456_3),
            (120.0, 1.979_930_405_08),
            (1e4, 1.960_201_239_89),
        ];
        for (degrees, t) in expect {
            let found = student_quantile(0.975, degrees);
            assert!((found - t).abs() < 1e-8, "{degrees}: {found} and not {t}");
            let beyond = student_beyond(t, degrees);
            assert!((beyond - 0.05).abs() < 1e-9, "{degrees}: {beyond}");
        }
        assert_eq!(student_beyond(f64::INFINITY, 3.0), 0.0);
    }

    /// R: `qnorm(c(0.001, 0.025, 0.5, 0.975))`
    #[test]
    fn the_normal_distribution_is_that_of_r() {
        let expect = [
            (0.001, -3.090_232_306_17),
            (0.025, -1.959_963_984_54),
            (0.5, 0.0),
            (0.975, 1.959_963_984_54),
        ];
        for (share, z) in expect {
            assert!((normal_quantile(share) - z).abs() < 1e-9, "{share}");
            assert!((normal_below(z) - share).abs() < 1e-9, "{share}");
        }
    }
}
