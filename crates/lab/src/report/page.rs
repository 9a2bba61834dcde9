//! A report as one page, without scripts and without requests.

use charts::html::escape;
use charts::page::{document, facts, section, table};
use charts::units::Format;
use charts::{Figure, Group, Names, Series};
use stats::{Interval, Verdict};

use crate::experiment::{Experiment, Quantity, THREADS};
use crate::parameters::Parameters;
use crate::report::analysis::{Analysis, CellResult, ExperimentResult, Judgement, Scaling};
use crate::report::figures::{figure, interval, probability};
use crate::report::text::{about, claims, laws, measured_designs, named, noise, verdict, warm_up};

/// How values are written in plots.
const FIGURE: Format = Format { tick: charts::units::tick, text: figure };

/// Values with their place on the lower axis.
type Points = Vec<(f64, Interval)>;

/// The report of a run.
#[must_use]
pub fn page(analysis: &Analysis) -> String {
    let mut body = summary(analysis);
    for result in &analysis.experiments {
        body.push_str(&experiment(result));
    }
    document("roost lab", "Which concurrency design scales", &body)
}

fn paragraph(text: &str) -> String {
    format!("<p>{}</p>\n", escape(text))
}

fn list(items: &[String]) -> String {
    let items: String = items.iter().map(|item| format!("<li>{}</li>\n", escape(item))).collect();
    if items.is_empty() { items } else { format!("<ul>\n{items}</ul>\n") }
}

/// A table whose cells are text.
fn text_table(label: &str, head: &[&str], rows: &[Vec<String>]) -> String {
    let escaped: Vec<Vec<String>> =
        rows.iter().map(|row| row.iter().map(|cell| escape(cell)).collect()).collect();
    table(&escape(label), head, &escaped)
}

/// The machine, and which design is best in each experiment.
fn summary(analysis: &Analysis) -> String {
    let machines = analysis.environments.iter().map(|environment| {
        let gib = environment.memory_mib as f64 / 1_024.0;
        let (processor, cores) = (&environment.processor, environment.cores);
        escape(&format!("{processor}, {cores} cores, {gib:.0} GiB, {}", environment.system))
    });
    let versions = analysis.environments.iter().map(|environment| escape(&environment.version));
    let Analysis { trials, void, marked, .. } = analysis;
    let rows = [
        ("Machine", machines.collect::<Vec<_>>().join("; ")),
        ("Version", versions.collect::<Vec<_>>().join("; ")),
        ("Trials", format!("{trials}; {void} void because of wrong answers; {marked} marked")),
        ("Command", format!("<code>{}</code>", escape(&analysis.command))),
    ];
    let best: Vec<Vec<String>> = analysis.experiments.iter().filter_map(best).collect();
    let best = text_table(
        "The best design of each experiment",
        &["experiment", "measured by", "best median"],
        &best,
    );
    let html = [facts(&rows), paragraph(&noise(analysis)), best].concat();
    section("Which design, when", &html)
}

/// The designs with the best median of the main quantity, with the number of combinations of parameters.
fn best(result: &ExperimentResult) -> Option<Vec<String>> {
    let quantity = result.experiment.quantities.first()?;
    let combinations = result.combinations();
    let mut wins: Vec<(&str, usize)> =
        result.experiment.designs.iter().map(|design| (design.name, 0)).collect();
    for parameters in &combinations {
        let median = |cell: &&CellResult| {
            let median = stats::median(&cell.values).unwrap_or_default();
            if quantity.more_is_better { -median } else { median }
        };
        let cells = cells(result, quantity, parameters);
        let best = cells.into_iter().min_by(|a, b| median(a).total_cmp(&median(b)));
        if let Some((_, count)) =
            wins.iter_mut().find(|(name, _)| best.is_some_and(|best| best.design == *name))
        {
            *count += 1;
        }
    }
    wins.retain(|(_, count)| *count > 0);
    wins.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let wins =
        wins.iter().map(|(name, count)| format!("{name} ({count} of {})", combinations.len()));
    let title = format!("{}. {}", result.experiment.number, result.experiment.title);
    Some(vec![title, quantity.title.to_owned(), wins.collect::<Vec<_>>().join(", ")])
}

/// The trials with these parameters, in the order of the designs.
fn cells<'a>(
    result: &'a ExperimentResult,
    quantity: &Quantity,
    parameters: &Parameters,
) -> Vec<&'a CellResult> {
    let has =
        |cell: &&CellResult| cell.quantity.name == quantity.name && cell.parameters == *parameters;
    result.cells.iter().filter(has).collect()
}

fn experiment(result: &ExperimentResult) -> String {
    let experiment = result.experiment;
    let designs: Vec<(&str, String)> = experiment
        .designs
        .iter()
        .map(|design| (design.name, escape(&about(result, design))))
        .collect();
    let mut html = paragraph(experiment.question);
    html.push_str(&paragraph(&format!("{} {}.", experiment.setup, result.constant)));
    html.push_str(&facts(&designs));
    html.push_str(&plots(result));
    for quantity in experiment.quantities {
        html.push_str(&values(result, quantity));
    }
    html.push_str(&paragraph(&warm_up(result)));
    html.push_str(&judgements(result));
    html.push_str(&list(&laws(result)));
    html.push_str(&paragraph(experiment.original));
    html.push_str(&list(&claims(result)));
    let repeat = format!("roost lab run {}", experiment.name);
    html.push_str(&paragraph(&format!("Repeat with: {repeat}")));
    section(&escape(&format!("{}. {}", experiment.number, experiment.title)), &html)
}

/// A row for each combination of parameters, a column for each design.
fn values(result: &ExperimentResult, quantity: &Quantity) -> String {
    let designs = measured_designs(result);
    let head: Vec<&str> =
        std::iter::once("parameters").chain(designs.iter().map(|design| design.name)).collect();
    let row = |parameters: &&Parameters| {
        let cells = cells(result, quantity, parameters);
        let value = |design: &str| {
            let cell = cells.iter().find(|cell| cell.design == design);
            cell.and_then(|cell| cell.median.as_ref().map(interval)).unwrap_or_default()
        };
        let values = designs.iter().map(|design| value(design.name));
        std::iter::once(named(parameters)).chain(values).collect()
    };
    let rows: Vec<Vec<String>> = result.combinations().iter().map(row).collect();
    let title = format!("{}, {}: medians with 95 % intervals", quantity.title, quantity.unit);
    format!("<h3>{}</h3>\n{}", escape(&title), text_table(&title, &head, &rows))
}

fn judgements(result: &ExperimentResult) -> String {
    let row = |judgement: &Judgement| {
        let word = match judgement.verdict {
            Verdict::CannotTell => "cannot tell".to_owned(),
            of => format!("{} is {}", judgement.design, verdict(judgement.quantity, of)),
        };
        vec![
            format!("{} against {}", judgement.design, judgement.base),
            word,
            judgement.quantity.title.to_owned(),
            named(&judgement.parameters),
            interval(&judgement.ratio),
            probability(judgement.p_adjusted),
            probability(judgement.comparison.mann_whitney.p),
        ]
    };
    let rows: Vec<Vec<String>> = result.judgements.iter().map(row).collect();
    if rows.is_empty() {
        return String::new();
    }
    let head = [
        "designs",
        "verdict",
        "quantity",
        "parameters",
        "ratio of means",
        "p (Welch, Holm)",
        "p (Mann-Whitney)",
    ];
    format!("<h3>Verdicts</h3>\n{}", text_table("Verdicts", &head, &rows))
}

/// Trials of the main quantity, speed-up over threads, and growth with followers.
fn plots(result: &ExperimentResult) -> String {
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
    html + &charts::rows(&growth(result, quantity).into_iter().collect::<Vec<_>>())
}

/// A plot for each combination of the other parameters that was measured with two numbers of threads or more.
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

/// The speed-up for each number of threads, two or more, with intervals.
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

/// How the main quantity grows with followers, with the most threads.
fn growth(result: &ExperimentResult, quantity: &Quantity) -> Option<Figure> {
    const SIZE: &str = "followers";
    let threads = result.cells.iter().filter_map(|cell| cell.parameters.get(THREADS)).max();
    let mut series: Vec<(&str, Points)> =
        result.experiment.designs.iter().map(|design| (design.name, Vec::new())).collect();
    for cell in &result.cells {
        let is_shown =
            cell.quantity.name == quantity.name && cell.parameters.get(THREADS) == threads;
        let size = cell.parameters.get(SIZE).filter(|size| *size > 0 && is_shown);
        let of_design = series.iter_mut().find(|(design, _)| *design == cell.design);
        if let (Some(size), Some(mean), Some((_, points))) = (size, cell.mean, of_design) {
            points.push((size as f64, mean));
        }
    }
    series.retain(|(_, points)| points.len() > 1);
    let series: Vec<Series<'_>> =
        series.iter().map(|(label, points)| Series { label, points, fit: None }).collect();
    let id = format!("{}-growth", result.experiment.name);
    let title = format!("{} over {SIZE}", quantity.title);
    let names = Names { id: &id, title: &title, unit: quantity.unit };
    charts::power_law(names, &series, FIGURE, FIGURE)
}
