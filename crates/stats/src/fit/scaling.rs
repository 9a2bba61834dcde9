//! Throughput over threads: Amdahl's law and the universal scalability law.
//!
//! Both are fitted by least squares of the throughput, as R's `nls` does with the same formulas. The method is that of
//! Levenberg and Marquardt. If the best value of a parameter is outside of its valid range, the parameter is fixed at
//! the bound, and the others are fitted again.

use super::{Measured, Point, fit, places};
use crate::{Bootstrap, Interval};

const STEPS_MAX: u32 = 100;
/// Damping above which steps are too small to change the result.
const DAMPING_MAX: f64 = 1e12;

/// The law `throughput(n) = single * n / (1 + serial * (n - 1))` (Amdahl: Validity of the single processor approach to
/// achieving large scale computing capabilities, 1967).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Amdahl {
    /// The throughput of one thread.
    pub single: Interval,
    /// The share of the work that cannot be done in parallel, 0 to 1. The maximum speed-up is 1 / serial.
    pub serial: Interval,
}

impl Amdahl {
    /// The throughput of `threads` threads.
    pub fn at(&self, threads: f64) -> f64 {
        throughput([self.single.estimate, self.serial.estimate, 0.0], threads)
    }
}

/// The law `throughput(n) = single * n / (1 + contention * (n - 1) + coherency * n * (n - 1))` (Gunther: Guerrilla
/// capacity planning, 2007).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scalability {
    /// The throughput of one thread.
    pub single: Interval,
    /// The cost σ of waiting for shared resources, 0 to 1.
    pub contention: Interval,
    /// The cost κ of keeping shared data coherent between each pair of threads, at least 0. If it is above 0,
    /// throughput falls beyond some number of threads.
    pub coherency: Interval,
}

impl Scalability {
    /// The throughput of `threads` threads.
    pub fn at(&self, threads: f64) -> f64 {
        let Scalability { single, contention, coherency } = self;
        throughput([single.estimate, contention.estimate, coherency.estimate], threads)
    }

    /// The number of threads with the highest throughput, `sqrt((1 - σ) / κ)`. `None` if throughput rises without
    /// limit.
    pub fn peak(&self) -> Option<f64> {
        let coherency = self.coherency.estimate;
        (coherency > 0.0).then(|| ((1.0 - self.contention.estimate) / coherency).sqrt())
    }
}

/// Fits Amdahl's law to throughputs by number of threads. `None` if there are fewer than 2 different numbers of
/// threads, one has fewer than 2 trials or is below 1, a throughput is not above 0, or there are no resamples.
pub fn fit_amdahl(measured: &[Measured], bootstrap: Bootstrap) -> Option<Amdahl> {
    let [single, serial, _] =
        fit(check(measured)?, bootstrap, |points| best(points, 2, &[Some(0.0)]))?;
    Some(Amdahl { single, serial })
}

/// Fits the universal scalability law to throughputs by number of threads. `None` if there are fewer than 3 different
/// numbers of threads, and in the other cases of [`fit_amdahl`].
pub fn fit_scalability(measured: &[Measured], bootstrap: Bootstrap) -> Option<Scalability> {
    let [single, contention, coherency] =
        fit(check(measured)?, bootstrap, |points| best(points, 3, &[None, Some(0.0)]))?;
    Some(Scalability { single, contention, coherency })
}

fn check(measured: &[Measured]) -> Option<&[Measured]> {
    let is_good = |of: &Measured| of.x >= 1.0 && of.trials.iter().all(|&value| value > 0.0);
    measured.iter().all(is_good).then_some(measured)
}

/// Throughput of one thread, contention, coherency.
type Parameters = [f64; 3];

fn throughput([single, contention, coherency]: Parameters, threads: f64) -> f64 {
    single * threads / delay([contention, coherency], threads)
}

/// Time of a piece of work with `threads` threads, as a multiple of its time with one thread.
fn delay([contention, coherency]: [f64; 2], threads: f64) -> f64 {
    1.0 + (contention + coherency * threads) * (threads - 1.0)
}

/// The least-squares parameters within their valid ranges. Each item of `coherencies` is a value at which the coherency
/// is fixed, or `None` to fit it. Returns `None` if the points are at fewer than `places_min` places.
fn best(points: &[Point], places_min: usize, coherencies: &[Option<f64>]) -> Option<Parameters> {
    if places(points) < places_min {
        return None;
    }
    let first = points.iter().min_by(|a, b| a.x.total_cmp(&b.x))?;
    // Divide by about the throughput of one thread, so that all parameters have a similar size.
    let unit = first.y / first.x;
    let scaled: Vec<Point> = points.iter().map(|p| Point { y: p.y / unit, ..*p }).collect();
    let mut found: Option<(f64, Parameters)> = None;
    for &coherency in coherencies {
        for contention in [None, Some(0.0), Some(1.0)] {
            let Some(parameters) = descend(&scaled, [None, contention, coherency]) else {
                continue;
            };
            let [_, contention, coherency] = parameters;
            let is_within = (0.0..=1.0).contains(&contention) && coherency >= 0.0;
            let error = error(&scaled, parameters);
            if is_within && found.is_none_or(|(least, _)| error < least) {
                found = Some((error, parameters));
            }
        }
    }
    let (_, [single, contention, coherency]) = found?;
    Some([single * unit, contention, coherency])
}

/// The sum of squares; infinite if the law is undefined.
fn error(points: &[Point], parameters: Parameters) -> f64 {
    let [_, contention, coherency] = parameters;
    let of = |point: &Point| {
        if delay([contention, coherency], point.x) <= 0.0 {
            return f64::INFINITY;
        }
        point.weight * (point.y - throughput(parameters, point.x)).powi(2)
    };
    points.iter().map(of).sum()
}

/// Levenberg and Marquardt's method; parameters in `held` are fixed.
fn descend(points: &[Point], held: [Option<f64>; 3]) -> Option<Parameters> {
    let [_, contention, coherency] = held;
    let mut at = [1.0, contention.unwrap_or(0.1), coherency.unwrap_or(1e-3)];
    let mut least = error(points, at);
    let mut damping = 1e-3;
    for _ in 0..STEPS_MAX {
        let (matrix, gradient) = normal_equations(points, at, held);
        let step = loop {
            let next = solve(damped(matrix, damping), gradient).map(|step| add(at, step));
            let next = next.map(|next| (error(points, next), next));
            if let Some((error, next)) = next.filter(|(error, _)| *error <= least) {
                break Some((error, next));
            }
            damping *= 10.0;
            if damping > DAMPING_MAX {
                break None;
            }
        };
        let Some((error, next)) = step else { break };
        let is_done = least - error <= 1e-15 * least;
        (at, least, damping) = (next, error, damping / 10.0);
        if is_done {
            break;
        }
    }
    (least.is_finite() && at.iter().all(|value| value.is_finite())).then_some(at)
}

type Matrix = [[f64; 3]; 3];

/// Sums of products of the derivatives with each other, and with the residuals. The step of a fixed parameter is 0.
fn normal_equations(
    points: &[Point],
    at: Parameters,
    held: [Option<f64>; 3],
) -> (Matrix, [f64; 3]) {
    let [single, contention, coherency] = at;
    let (mut matrix, mut gradient) = ([[0.0; 3]; 3], [0.0; 3]);
    for &Point { x, y, weight } in points {
        let delay = delay([contention, coherency], x);
        let by_contention = -single * x * (x - 1.0) / (delay * delay);
        let mut derivatives = [x / delay, by_contention, by_contention * x];
        for (derivative, held) in derivatives.iter_mut().zip(held) {
            if held.is_some() {
                *derivative = 0.0;
            }
        }
        let left = y - throughput(at, x);
        for ((row, sum), one) in matrix.iter_mut().zip(&mut gradient).zip(derivatives) {
            *sum += weight * one * left;
            for (cell, other) in row.iter_mut().zip(derivatives) {
                *cell += weight * one * other;
            }
        }
    }
    (matrix, gradient)
}

/// The matrix with its diagonal increased by the damping. An empty row gets a 1, so that its step is 0.
fn damped(mut matrix: Matrix, damping: f64) -> Matrix {
    for (at, row) in matrix.iter_mut().enumerate() {
        if let Some(cell) = row.get_mut(at) {
            *cell = if *cell > 0.0 { *cell * (1.0 + damping) } else { 1.0 };
        }
    }
    matrix
}

fn add(a: Parameters, b: Parameters) -> Parameters {
    let ([a0, a1, a2], [b0, b1, b2]) = (a, b);
    [a0 + b0, a1 + b1, a2 + b2]
}

/// Solves the equations by Cramer's rule. `None` if there is no unique solution.
fn solve([a, b, c]: Matrix, [r, s, t]: [f64; 3]) -> Option<[f64; 3]> {
    let ([a0, a1, a2], [b0, b1, b2], [c0, c1, c2]) = (a, b, c);
    let determinant = determinant([a, b, c]);
    let first = determinant_of([r, a1, a2], [s, b1, b2], [t, c1, c2]);
    let second = determinant_of([a0, r, a2], [b0, s, b2], [c0, t, c2]);
    let third = determinant_of([a0, a1, r], [b0, b1, s], [c0, c1, t]);
    (determinant != 0.0).then(|| [first, second, third].map(|value| value / determinant))
}

fn determinant([a, b, c]: Matrix) -> f64 {
    determinant_of(a, b, c)
}

fn determinant_of([a, b, c]: [f64; 3], [d, e, f]: [f64; 3], [g, h, i]: [f64; 3]) -> f64 {
    a * (e * i - f * h) - b * (d * i - f * g) + c * (d * h - e * g)
}
