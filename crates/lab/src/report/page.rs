//! A report as one page, without scripts and without requests.

use charts::html::escape;
use charts::page::{Tone, document, facts, section, table};
use stats::{NoiseVerdict, Verdict};

use crate::experiment::Quantity;
use crate::parameters::Parameters;
use crate::report::analysis::{Analysis, CellResult, ExperimentResult, Judgement};
use crate::report::figures::{interval, probability};
use crate::report::plots::{cells, plots, speedup_rows};
use crate::report::text::{
    about, claims, laws, measured_designs, named, noise, skipped_design, verdict, warm_up,
};

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
    let choices: Vec<(String, String)> = analysis.experiments.iter().filter_map(choice).collect();
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

/// A row of the summary, as markup: a link to the experiment, and what follows from it.
fn choice(result: &ExperimentResult) -> Option<(String, String)> {
    let [title, measured, best] = best(result)?;
    let name = escape(result.experiment.name);
    let text = format!("{title} {measured}: {best}. {}.", sure(result));
    Some((format!("<a href=\"#{name}\">{name}</a>"), escape(&text)))
}

/// How often the best designs are better than the baseline, by their verdicts.
fn sure(result: &ExperimentResult) -> String {
    let Some(quantity) = result.experiment.quantities.first() else { return String::new() };
    let base = result.experiment.baseline;
    let cases: Vec<(&str, Verdict)> = result
        .combinations()
        .into_iter()
        .filter_map(|parameters| {
            let best = best_cell(result, quantity, parameters)?;
            let judged = result.judgements.iter().find(|judged| {
                judged.quantity.name == quantity.name
                    && (judged.design, judged.base) == (best.design, base)
                    && judged.parameters == *parameters
            });
            judged.map(|judged| (best.design, judged.verdict))
        })
        .collect();
    if cases.is_empty() {
        return format!("The best, {base}, is what the others are compared with");
    }
    let is_better = |(_, verdict): &&(&str, Verdict)| matches!(verdict, Verdict::Faster);
    let better = cases.iter().filter(is_better).count();
    format!("Against {base}: surely {} in {better} of {} cases", quantity.words[0], cases.len())
}

/// The cell with the best median.
fn best_cell<'a>(
    result: &'a ExperimentResult,
    quantity: &Quantity,
    parameters: &Parameters,
) -> Option<&'a CellResult> {
    let median = |cell: &&CellResult| {
        let median = stats::median(&cell.values).unwrap_or_default();
        if quantity.more_is_better { -median } else { median }
    };
    let cells = cells(result, quantity, parameters);
    cells.into_iter().min_by(|a, b| median(a).total_cmp(&median(b)))
}

/// The title of the experiment, its main quantity, and the designs with the best median of it: with the number of
/// combinations of parameters, or with the combinations if there are several designs.
fn best(result: &ExperimentResult) -> Option<[String; 3]> {
    let quantity = result.experiment.quantities.first()?;
    let combinations = result.combinations();
    let mut wins: Vec<(&str, Vec<String>)> =
        result.experiment.designs.iter().map(|design| (design.name, Vec::new())).collect();
    for parameters in &combinations {
        let best = best_cell(result, quantity, parameters);
        let won = wins.iter_mut().find(|(name, _)| best.is_some_and(|best| best.design == *name));
        won.into_iter().for_each(|(_, won)| won.push(named(parameters)));
    }
    wins.retain(|(_, won)| !won.is_empty());
    wins.sort_by_key(|(_, won)| std::cmp::Reverse(won.len()));
    let sentence = |(at, (name, won)): (usize, &(&str, Vec<String>))| match (at, won.len()) {
        // The others are the exceptions.
        (1.., 1..=3) => format!("{name} with {}", won.join(" or ")),
        (_, count) => format!("{name} ({count} of {})", combinations.len()),
    };
    let wins: Vec<String> = wins.iter().enumerate().map(sentence).collect();
    let title = result.experiment.title;
    let title = format!("{title}{}", if title.ends_with('?') { "" } else { "." });
    Some([title, quantity.title.to_owned(), wins.join("; ")])
}

/// The verdict on an experiment in one sentence.
fn conclusion(result: &ExperimentResult) -> String {
    let Some([_, measured, best]) = best(result) else { return String::new() };
    let quantity = result.experiment.quantities.first();
    let main = result
        .judgements
        .iter()
        .filter(|judged| quantity.is_some_and(|quantity| quantity.name == judged.quantity.name));
    let verdicts: Vec<Verdict> = main.map(|judged| judged.verdict).collect();
    let open = verdicts.iter().filter(|verdict| **verdict == Verdict::CannotTell).count();
    let tone = if 2 * open > verdicts.len() { Tone::Warn } else { Tone::Good };
    let decided = match verdicts.len() {
        0 => "There is only one design, which is compared with nothing.".to_owned(),
        all => format!("{}; of {all} comparisons {open} cannot be told.", sure(result)),
    };
    let sentence = format!("{measured} is best with {best}. {decided}");
    charts::page::verdict(tone, "Verdict: ", &sentence)
}

fn experiment(result: &ExperimentResult) -> String {
    let experiment = result.experiment;
    let designs: Vec<(&str, String)> = experiment
        .designs
        .iter()
        .map(|design| (design.name, escape(&about(result, design))))
        .collect();
    let mut html = format!("<p class=\"lead\">{}</p>\n", escape(experiment.question));
    html.push_str(&conclusion(result));
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
    let repeat = format!("<p><code>roost lab run {}</code></p>\n", escape(experiment.name));
    html.push_str(&under("How to repeat it", &repeat));
    let title = format!("{}. {}", experiment.number, experiment.title);
    format!("<div id=\"{}\">\n{}</div>\n", escape(experiment.name), section(&escape(&title), &html))
}

/// The label of a table, which no other experiment has.
fn of(result: &ExperimentResult, title: &str) -> String {
    format!("{}: {title}", result.experiment.title)
}

/// Markup under a small heading.
fn under(title: &str, html: &str) -> String {
    format!("<h3>{}</h3>\n{html}", escape(title))
}

/// The speed-up over threads as a table; nothing with one number of threads.
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
    under("Verdicts", &text_table(&of(result, "Verdicts"), &head, &rows))
}
