//! Report as one page that has no scripts and loads nothing.

use charts::html::escape;
use charts::page::{Tone, document, facts, section, table};
use stats::{NoiseVerdict, Verdict};

use crate::experiment::Quantity;
use crate::parameters::Parameters;
use crate::report::analysis::{Analysis, ExperimentResult, Judgement};
use crate::report::figures::{interval, probability};
use crate::report::plots::{cells, plots, speedup_rows};
use crate::report::text::{
    about, claims, conclusion, laws, measured_designs, named, noise, skipped_design, verdict,
    warm_up,
};

/// Report of a run.
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

/// Table whose cells are text.
fn text_table(label: &str, head: &[&str], rows: &[Vec<String>]) -> String {
    let escaped: Vec<Vec<String>> =
        rows.iter().map(|row| row.iter().map(|cell| escape(cell)).collect()).collect();
    table(&escape(label), head, &escaped)
}

/// Machine, and the best design of each experiment.
fn summary(analysis: &Analysis) -> String {
    let machines = analysis.environments.iter().map(|environment| {
        let gib = environment.memory_mib as f64 / 1_024.0;
        let (processor, cores) = (&environment.processor, environment.cores);
        escape(&format!("{processor}, {cores} cores, {gib:.0} GiB, {}", environment.system))
    });
    let versions = analysis.environments.iter().map(|environment| escape(&environment.version));
    let skipped = analysis.skipped.iter().map(|skipped| escape(&skipped_design(skipped)));
    let skipped: Vec<String> = skipped.collect();
    let Analysis { trials, void, marked, .. } = analysis;
    let rows = [
        ("Machine", machines.collect::<Vec<_>>().join("; ")),
        ("Version", versions.collect::<Vec<_>>().join("; ")),
        ("Trials", format!("{trials}; {void} void because of wrong answers; {marked} marked")),
        ("Command", format!("<code>{}</code>", escape(&analysis.command))),
        ("Skipped", if skipped.is_empty() { "nothing".to_owned() } else { skipped.join("<br>") }),
    ];
    let choices: Vec<(String, String)> = analysis.experiments.iter().map(choice).collect();
    let choices: Vec<(&str, String)> =
        choices.iter().map(|(name, text)| (name.as_str(), text.clone())).collect();
    let (tone, word) = match analysis.noise.map(|noise| noise.verdict) {
        Some(NoiseVerdict::Quiet) => (Tone::Good, "Usable. "),
        Some(_) => (Tone::Warn, "Read with care. "),
        None => (Tone::Warn, "Too short. "),
    };
    let noise = charts::page::verdict(tone, word, &noise(analysis));
    section(
        "Which design, when",
        &[noise, facts(&choices), under("The run", &facts(&rows))].concat(),
    )
}

/// Row of the summary, as markup: a link to the experiment, and the answer to its question.
fn choice(result: &ExperimentResult) -> (String, String) {
    let name = escape(result.experiment.name);
    let title = result.experiment.title;
    let text =
        format!("{title}{} {}", if title.ends_with('?') { "" } else { "." }, conclusion(result));
    (format!("<a href=\"#{name}\">{name}</a>"), escape(&text))
}

/// Verdict on an experiment, with a warning if most comparisons are inconclusive.
fn verdict_box(result: &ExperimentResult) -> String {
    let verdicts: Vec<Verdict> = result.answers().map(|judged| judged.verdict).collect();
    let open = verdicts.iter().filter(|verdict| **verdict == Verdict::CannotTell).count();
    let tone = if 2 * open > verdicts.len() { Tone::Warn } else { Tone::Good };
    charts::page::verdict(tone, "Verdict: ", &conclusion(result))
}

fn experiment(result: &ExperimentResult) -> String {
    let experiment = result.experiment;
    let designs: Vec<(&str, String)> = experiment
        .designs
        .iter()
        .map(|design| (design.name, escape(&about(result, design))))
        .collect();
    let mut html = format!("<p class=\"lead\">{}</p>\n", escape(experiment.question));
    html.push_str(&verdict_box(result));
    html.push_str(&under(
        "Setup",
        &paragraph(&format!("{} {}.", experiment.setup, result.constant)),
    ));
    html.push_str(&facts(&designs));
    html.push_str(&plots(result));
    for quantity in experiment.quantities {
        html.push_str(&values(result, quantity));
    }
    html.push_str(&speedups(result));
    html.push_str(&paragraph(&warm_up(result)));
    html.push_str(&judgements(result));
    html.push_str(&list(&laws(result)));
    let original = paragraph(experiment.original) + &list(&claims(result));
    html.push_str(&under("What the original found, and whether it holds here", &original));
    let repeat = format!("<p><code>{}</code></p>\n", escape(&result.command));
    html.push_str(&under("How to repeat it", &repeat));
    let title = format!("{}. {}", experiment.number, experiment.title);
    format!("<div id=\"{}\">\n{}</div>\n", escape(experiment.name), section(&escape(&title), &html))
}

/// Label of a table, made unique by the experiment's title.
fn of(result: &ExperimentResult, title: &str) -> String {
    format!("{}: {title}", result.experiment.title)
}

/// Markup under a small heading.
fn under(title: &str, html: &str) -> String {
    format!("<h3>{}</h3>\n{html}", escape(title))
}

/// Table of the speed-up over threads; empty if only one number of threads was measured.
fn speedups(result: &ExperimentResult) -> String {
    let (threads, rows) = speedup_rows(result);
    if rows.is_empty() {
        return String::new();
    }
    let head: Vec<&str> =
        std::iter::once("design").chain(threads.iter().map(String::as_str)).collect();
    let title = "Speed-up over threads, with 95 % intervals and what each step adds";
    under(title, &text_table(&of(result, title), &head, &rows))
}

/// Table with a row for each combination of parameters, and a column for each design.
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
    under(&title, &text_table(&of(result, &title), &head, &rows))
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
            probability(judgement.comparison.welch.p),
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
        "ratio",
        "p (pairs, Holm)",
        "p (Welch)",
        "p (Mann-Whitney)",
    ];
    let note = "Ratios within blocks. The p-values are Holm-adjusted over the comparisons of one quantity with the same \
                parameters, so each such group has a chance of at most 5 % of a false verdict.";
    let table = text_table(&of(result, "All comparisons"), &head, &rows);
    under("All comparisons", &(paragraph(note) + &table))
}
