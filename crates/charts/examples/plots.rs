//! Writes a page with every kind of plot of made-up trials, for visual inspection: `plots [FILE]`.

use charts::page::{Tone, document, facts, section, table, verdict};
use charts::units::Format;
use charts::{Group, Names, Series, box_plot, power_law, rows, speedup, violins};
use stats::{
    Bootstrap, Comparison, Interval, Measured, compare, fit_amdahl, fit_power_law, fit_scalability,
    verdicts,
};

const DESIGNS: [&str; 4] = ["central", "sharded, 100 users per actor", "<worker>", "roost & HTTP"];

/// Pseudo-random number between -1 and 1.
fn noise(at: usize) -> f64 {
    let turned = (at as f64 * 12.9898).sin() * 43_758.545;
    2.0 * (turned - turned.floor()) - 1.0
}

fn trials(design: usize, mean: f64) -> Vec<f64> {
    let stall = |at: usize| if (at + design).is_multiple_of(11) { 1.3 } else { 1.0 };
    (0..20).map(|at| mean * (1.0 + 0.06 * noise(100 * design + at)) * stall(at)).collect()
}

fn main() -> std::io::Result<()> {
    let file = std::env::args().nth(1).unwrap_or_else(|| "plots.html".to_owned());
    std::fs::write(file, document("roost lab", "Every plot <once>", &body().unwrap_or_default()))
}

fn body() -> Option<String> {
    let times: Vec<Vec<f64>> =
        [100.0, 71.0, 69.0, 84.0].into_iter().enumerate().map(|(at, ms)| trials(at, ms)).collect();
    let groups: Vec<Group<'_>> =
        DESIGNS.iter().zip(&times).map(|(&label, values)| Group { label, values }).collect();
    let slow: Vec<f64> = times.iter().flatten().map(|ms| ms * 40.0).collect();
    let apart = [groups.first().copied()?, Group { label: "far slower", values: &slow }];
    let named = |id, title| Names { id, title, unit: "ms per trial" };
    let spread = [
        box_plot(named("box", "Times of trials"), &groups, Format::MS)?,
        violins(named("violin", "Where they are dense"), &groups, Format::MS)?,
        violins(named("apart", "Far from each other"), &apart, Format::MS)?,
    ];
    let (first, second) = spread.split_at(2);
    let base = times.first()?;
    let compared: Option<Vec<Comparison>> =
        times.iter().skip(1).map(|new| compare(new, base)).collect();
    let judged = verdicts(&compared?, 0.05);
    let row = |(name, judged): (&&str, &stats::Judged)| {
        let name = charts::html::escape(name);
        vec![name, format!("{:?}", judged.verdict), format!("{:.4}", judged.p_adjusted)]
    };
    let table_rows: Vec<_> = DESIGNS.iter().skip(1).zip(&judged).map(row).collect();
    Some(
        [
            verdict(Tone::Good, "Faster", ": <sharded> takes less time than central."),
            section("Run", &facts(&[("Trials", "20 each".to_owned())])),
            section("Boxes", &rows(first)),
            section("Alone", &rows(second)),
            section("Growth", &(rows(&[scaling()?]) + &rows(&[growth()?]))),
            section("Verdicts", &table("Verdicts", &["design", "verdict", "p"], &table_rows)),
        ]
        .concat(),
    )
}

/// Made-up trials at each place, with their mean relative to the mean at the first place.
fn measured(places: &[f64], law: impl Fn(f64) -> f64) -> Vec<Measured> {
    let trials = |(at, &x): (usize, &f64)| {
        let trial = |trial: usize| law(x) * (1.0 + 0.04 * noise(10 * at + trial));
        Measured { x, trials: (0..8).map(trial).collect() }
    };
    places.iter().enumerate().map(trials).collect()
}

fn points(measured: &[Measured], unit: f64) -> Vec<(f64, Interval)> {
    let one = |of: &Measured| {
        let Interval { estimate, low, high } = Interval::of_mean(&of.trials)?;
        let [estimate, low, high] = [estimate, low, high].map(|value| value / unit);
        Some((of.x, Interval { estimate, low, high }))
    };
    measured.iter().filter_map(one).collect()
}

fn scaling() -> Option<charts::Figure> {
    let threads = [1.0, 2.0, 3.0, 4.0, 6.0, 8.0];
    let sharded = measured(&threads, |n| 900.0 * n / (1.0 + 0.07 * (n - 1.0)));
    let locked =
        measured(&threads, |n| 1_100.0 * n / (1.0 + 0.1 * (n - 1.0) + 0.03 * n * (n - 1.0)));
    let amdahl = fit_amdahl(&sharded, Bootstrap::seeded(1))?;
    let usl = fit_scalability(&locked, Bootstrap::seeded(1))?;
    let (one, other) = (amdahl.single.estimate, usl.single.estimate);
    let (sharded, locked) = (points(&sharded, one), points(&locked, other));
    let (fit_sharded, fit_locked) = (|n: f64| amdahl.at(n) / one, |n: f64| usl.at(n) / other);
    let names = Names { id: "speedup", title: "Speed-up", unit: "against one thread, by threads" };
    speedup(
        names,
        &[
            Series { label: "sharded", points: &sharded, fit: Some(&fit_sharded) },
            Series { label: "locked", points: &locked, fit: Some(&fit_locked) },
        ],
    )
}

fn growth() -> Option<charts::Figure> {
    let followers = [100.0, 1_000.0, 10_000.0, 100_000.0, 1e6];
    let central = measured(&followers, |n| 0.002 * n);
    let sharded = measured(&followers, |n| 0.05 * n.powf(0.6));
    let fits = [&central, &sharded].map(|all| fit_power_law(all, Bootstrap::seeded(1)));
    let [Some(central_fit), Some(sharded_fit)] = fits else { return None };
    let (central, sharded) = (points(&central, 1.0), points(&sharded, 1.0));
    let (one, other) = (|n: f64| central_fit.at(n), |n: f64| sharded_fit.at(n));
    let names = Names { id: "delivery", title: "Delivery of a post", unit: "by followers" };
    power_law(
        names,
        &[
            Series { label: "central", points: &central, fit: Some(&one) },
            Series { label: "sharded", points: &sharded, fit: Some(&other) },
        ],
        Format::NUMBER,
        Format::MS,
    )
}
