//! Plots of an experiment: trials of the main quantity, speed-up over threads, and growth with a parameter.

use std::collections::BTreeMap;

use charts::units::Format;
use charts::{Figure, Group, Names, Series};
use stats::Interval;

use crate::experiment::{Experiment, Quantity, THREADS};
use crate::parameters::Parameters;
use crate::report::analysis::{CellResult, ExperimentResult, Scaling};
use crate::report::figures::{figure, interval};
use crate::report::text::named;

/// Format of values in plots.
const FIGURE: Format = Format { tick: charts::units::tick, text: figure };
/// Minimum number of values of a parameter for a plot over this parameter.
const GROWTH_MIN: usize = 3;

/// Positions on the horizontal axis, with the values there.
type Points = Vec<(f64, Interval)>;

/// Trials with these parameters, in the order of the designs.
pub(super) fn cells<'a>(
    result: &'a ExperimentResult,
    quantity: &Quantity,
    parameters: &Parameters,
) -> Vec<&'a CellResult> {
    let has =
        |cell: &&CellResult| cell.quantity.name == quantity.name && cell.parameters == *parameters;
    result.cells.iter().filter(has).collect()
}

/// All plots as rows of figures.
pub(super) fn plots(result: &ExperimentResult) -> String {
    let Some(quantity) = result.experiment.quantities.first() else { return String::new() };
    let mut html = String::new();
    for (index, parameters) in result.combinations().into_iter().enumerate() {
        let cells = cells(result, quantity, parameters);
        let groups: Vec<Group<'_>> =
            cells.iter().map(|cell| Group { label: cell.design, values: &cell.values }).collect();
        let title = format!("{}, {}", quantity.title, named(parameters));
        let ids =
            ["box", "violin"].map(|kind| format!("{}-{kind}-{index}", result.experiment.name));
        let names = |id| Names { id, title: &title, unit: quantity.unit };
        let [box_id, violin_id] = &ids;
        let drawn = [
            charts::box_plot(names(box_id), &groups, FIGURE),
            charts::violins(names(violin_id), &groups, FIGURE),
        ];
        let drawn: Vec<Figure> = drawn.into_iter().flatten().collect();
        html.push_str(&charts::rows(&drawn));
    }
    let speedups: Vec<Figure> = speedups(result.experiment, &result.scaling);
    html.push_str(&charts::rows(&speedups));
    html + &charts::rows(&growths(result, quantity))
}

/// Plots of the speed-up: one for each combination of the other parameters that was measured with several numbers of
/// threads.
fn speedups(experiment: &Experiment, scaling: &[Scaling]) -> Vec<Figure> {
    let mut plots = Vec::new();
    for group in scaling.chunk_by(|a, b| a.parameters == b.parameters) {
        let Some(parameters) = group.first().map(|first| &first.parameters) else { continue };
        let measured: Vec<(&Scaling, Points, f64)> =
            group.iter().filter_map(|one| Some((one, speedup(one)?, single(one)?))).collect();
        let fits: Vec<Option<_>> = measured
            .iter()
            .map(|(one, _, single)| {
                let (law, single) = (one.scalability.as_ref(), *single);
                law.map(|law| move |threads: f64| law.at(threads) / single)
            })
            .collect();
        let series: Vec<Series<'_>> = measured
            .iter()
            .zip(&fits)
            .map(|((one, points, _), fit)| Series {
                label: one.design,
                points,
                fit: fit.as_ref().map(|fit| fit as &dyn Fn(f64) -> f64),
            })
            .collect();
        let title = format!("Speed-up over threads, {}", named(parameters));
        let id = format!("{}-speedup-{}", experiment.name, plots.len());
        let names = Names { id: &id, title: &title, unit: "times one thread" };
        plots.extend(charts::speedup(names, &series));
    }
    plots
}

/// Mean throughput with one thread.
fn single(scaling: &Scaling) -> Option<f64> {
    let first = scaling.points.iter().find(|point| point.x <= 1.0)?;
    stats::mean(&first.trials)
}

/// Speed-up for each number of threads (two or more), with intervals.
fn speedup(scaling: &Scaling) -> Option<Points> {
    let base = scaling.points.iter().find(|point| point.x <= 1.0)?;
    if scaling.points.len() < 2 {
        return None;
    }
    let ratio = |point: &stats::Measured| {
        if point.x == base.x {
            return Some((point.x, Interval { estimate: 1.0, low: 1.0, high: 1.0 }));
        }
        Some((point.x, stats::ratio_of_means(&point.trials, &base.trials)?))
    };
    scaling.points.iter().map(ratio).collect()
}

/// Rows of the speed-up as text: the design, then a column for each number of threads, with the gain over the previous
/// number.
pub(super) fn speedup_rows(result: &ExperimentResult) -> (Vec<String>, Vec<Vec<String>>) {
    let (mut threads, mut rows) = (Vec::new(), Vec::new());
    for scaling in &result.scaling {
        let Some(points) = speedup(scaling) else { continue };
        threads = points.iter().map(|(threads, _)| format!("{threads} threads")).collect();
        let mut before = None;
        let mut row = vec![format!("{}, {}", scaling.design, named(&scaling.parameters))];
        for (_, point) in &points {
            let won = before.map(|before| point.estimate - before);
            let won = won
                .map(|won: f64| format!(", {}{}", if won < 0.0 { "" } else { "+" }, figure(won)));
            row.push(format!("{}{}", interval(point), won.unwrap_or_default()));
            before = Some(point.estimate);
        }
        rows.push(row);
    }
    (threads, rows)
}

/// Plots of the main quantity over each parameter that has several values. The other parameters have their main values.
fn growths(result: &ExperimentResult, quantity: &Quantity) -> Vec<Figure> {
    let combinations = result.combinations();
    let mut counts: BTreeMap<&str, BTreeMap<u64, usize>> = BTreeMap::new();
    for (name, value) in combinations.iter().flat_map(|parameters| parameters.iter()) {
        *counts.entry(name).or_default().entry(value).or_default() += 1;
    }
    let mut usual = Parameters::default();
    for (name, values) in &counts {
        let most = values.iter().max_by_key(|(value, count)| (**count, **value));
        most.into_iter().for_each(|(value, _)| usual.set(name, *value));
    }
    let varied =
        counts.iter().filter(|(name, values)| **name != THREADS && values.len() >= GROWTH_MIN);
    varied.filter_map(|(name, _)| growth(result, quantity, name, &usual.without(name))).collect()
}

/// Plot of the main quantity over a parameter. The other parameters have these values.
fn growth(
    result: &ExperimentResult,
    quantity: &Quantity,
    size: &str,
    others: &Parameters,
) -> Option<Figure> {
    let mut series: Vec<(&str, Points)> =
        result.experiment.designs.iter().map(|design| (design.name, Vec::new())).collect();
    for cell in &result.cells {
        let is_shown =
            cell.quantity.name == quantity.name && cell.parameters.without(size) == *others;
        let at = cell.parameters.get(size).filter(|at| *at > 0 && is_shown);
        let of_design = series.iter_mut().find(|(design, _)| *design == cell.design);
        if let (Some(at), Some(mean), Some((_, points))) = (at, cell.mean, of_design) {
            points.push((at as f64, mean));
        }
    }
    series.retain(|(_, points)| points.len() > 1);
    let series: Vec<Series<'_>> =
        series.iter().map(|(label, points)| Series { label, points, fit: None }).collect();
    let id = format!("{}-over-{size}", result.experiment.name);
    let title = format!("{} over {size}", quantity.title);
    let names = Names { id: &id, title: &title, unit: quantity.unit };
    charts::power_law(names, &series, FIGURE, FIGURE)
}
