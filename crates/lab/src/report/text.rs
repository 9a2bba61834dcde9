//! Report as plain text, for a terminal.

use std::fmt::Write as _;

use stats::{NoiseVerdict, Verdict};

use crate::experiment::{DesignInfo, Quantity};
use crate::parameters::Parameters;
use crate::report::analysis::{Analysis, ExperimentResult, Judgement, MARGIN};
use crate::report::figures::{figure, interval, probability};
use crate::settings::Skipped;

/// Report of a run.
#[must_use]
pub fn text(analysis: &Analysis) -> String {
    let mut out = String::new();
    machine(analysis, &mut out);
    for experiment in &analysis.experiments {
        section(experiment, &mut out);
    }
    out
}

pub(super) fn line(out: &mut String, text: &str) {
    out.push_str(text);
    out.push('\n');
}

pub(super) fn machine(analysis: &Analysis, out: &mut String) {
    for environment in &analysis.environments {
        let gib = environment.memory_mib as f64 / 1_024.0;
        let (cores, system) = (environment.cores, &environment.system);
        let (processor, version) = (&environment.processor, &environment.version);
        line(out, &format!("{version}; {processor}, {cores} cores, {gib:.0} GiB, {system}"));
    }
    let Analysis { trials, void, marked, .. } = analysis;
    line(out, &format!("{trials} trials; {void} void because of wrong answers; {marked} marked"));
    line(out, &noise(analysis));
    for skipped in &analysis.skipped {
        line(out, &format!("Skipped: {}", skipped_design(skipped)));
    }
    out.push('\n');
}

/// Skipped design with its reason.
pub(super) fn skipped_design(skipped: &Skipped) -> String {
    format!("{} in {}: {}", skipped.design, skipped.experiment, skipped.reason)
}

/// Noise of the machine, as a sentence.
pub(super) fn noise(analysis: &Analysis) -> String {
    let Some(noise) = analysis.noise else {
        return "Too few trials to say how quiet the machine was.".to_owned();
    };
    let verdict = match noise.verdict {
        NoiseVerdict::Quiet => "The machine was quiet",
        NoiseVerdict::Noisy => "The machine was NOT quiet",
        NoiseVerdict::Drifting => "The machine got slower or faster during the run",
    };
    let [spread, drift, off] = [noise.spread, noise.drift, noise.off_share].map(|x| 100.0 * x);
    format!(
        "{verdict}: the calibration loop varied by {spread:.0} %, drifted by {drift:.0} %, and was off before \
         {off:.0} % of the trials, which are marked."
    )
}

fn section(result: &ExperimentResult, out: &mut String) {
    let experiment = result.experiment;
    line(out, &format!("== Experiment {}: {}", experiment.number, experiment.title));
    line(out, &format!("\nQuestion: {}", experiment.question));
    line(out, &format!("Setup: {} {}.", experiment.setup, result.constant));
    for design in experiment.designs {
        line(out, &format!("  {}: {}", design.name, about(result, design)));
    }
    for quantity in experiment.quantities {
        table(result, quantity, out);
    }
    line(out, &format!("\n{}", warm_up(result)));
    line(out, &format!("\nVerdict: {}", conclusion(result)));
    line(
        out,
        "\nAll comparisons, of ratios within blocks; p-values are Holm-adjusted over those of a quantity with the same",
    );
    line(out, "parameters:");
    for judgement in &result.judgements {
        line(out, &format!("- {}", sentence(judgement)));
    }
    for law in laws(result) {
        line(out, &format!("- {law}"));
    }
    line(out, &format!("\nThe original: {}", experiment.original));
    for claim in claims(result) {
        line(out, &format!("- {claim}"));
    }
    line(out, &format!("\nRepeat with: {}\n", result.command));
}

/// Designs with trials.
pub(super) fn measured_designs(result: &ExperimentResult) -> Vec<&'static DesignInfo> {
    let designs = result.experiment.designs.iter();
    designs.filter(|design| result.cells.iter().any(|cell| cell.design == design.name)).collect()
}

/// Description of a design, with the reason if it has no trials.
pub(super) fn about(result: &ExperimentResult, design: &DesignInfo) -> String {
    if result.cells.iter().any(|cell| cell.design == design.name) {
        return design.about.to_owned();
    }
    match result.skipped.iter().find(|skipped| skipped.design == design.name) {
        Some(Skipped { reason, .. }) => format!("{} (skipped: {reason})", design.about),
        None => format!("{} (not measured)", design.about),
    }
}

/// Appends a table with a row for each combination of parameters, and a column for each design.
fn table(result: &ExperimentResult, quantity: &Quantity, out: &mut String) {
    let mut rows = vec![vec![String::new()]];
    let designs = measured_designs(result);
    if let Some(head) = rows.first_mut() {
        head.extend(designs.iter().map(|design| design.name.to_owned()));
    }
    for parameters in result.combinations() {
        let value = |design: &str| {
            let cell = result.cells.iter().find(|cell| {
                cell.design == design
                    && cell.quantity.name == quantity.name
                    && cell.parameters == *parameters
            });
            cell.map_or_else(String::new, |cell| match &cell.median {
                Some(median) => interval(median),
                None => cell.values.first().map_or_else(String::new, |value| figure(*value)),
            })
        };
        let values = designs.iter().map(|design| value(design.name));
        rows.push(std::iter::once(named(parameters)).chain(values).collect());
    }
    let (title, unit) = (quantity.title, quantity.unit);
    line(out, &format!("\n{title}, {unit}: medians with 95 % intervals"));
    out.push_str(&columns(&rows));
}

/// Aligns cells in columns.
pub(super) fn columns(rows: &[Vec<String>]) -> String {
    let mut widths: Vec<usize> = Vec::new();
    for row in rows {
        widths.resize(widths.len().max(row.len()), 0);
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut out = String::new();
    for row in rows {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        let _infallible = writeln!(out, "  {}", cells.collect::<Vec<_>>().join("  ").trim_end());
    }
    out
}

/// Names and values of parameters. The caller has removed the constant ones.
pub(super) fn named(parameters: &Parameters) -> String {
    let text = parameters.to_string();
    if text.is_empty() { "all".to_owned() } else { text }
}

/// Verdict as a sentence with its numbers.
pub(super) fn sentence(judgement: &Judgement) -> String {
    let Judgement { quantity, design, base, parameters, ratio, comparison, .. } = judgement;
    let subject = format!("{} of {design} against {base}, {}", quantity.title, named(parameters));
    let verdict = verdict(quantity, judgement.verdict);
    let (welch, ranks) = (comparison.welch.p, comparison.mann_whitney.p);
    format!(
        "{subject}: {verdict}. {} times as much; p {} (pairs, adjusted), {} (Welch), {} (Mann-Whitney)",
        interval(ratio),
        probability(judgement.p_adjusted),
        probability(welch),
        probability(ranks)
    )
}

/// Verdict in the words of a quantity.
pub(super) fn verdict(quantity: &Quantity, verdict: Verdict) -> String {
    let [better, worse] = quantity.words;
    match verdict {
        Verdict::Faster => better.to_owned(),
        Verdict::Slower => worse.to_owned(),
        Verdict::NoDifferenceLargerThan(bound) => {
            format!("no difference larger than {:.1} %", 100.0 * bound)
        }
        Verdict::CannotTell => "cannot tell".to_owned(),
    }
}

/// Answer to the question of an experiment: the verdicts on the main quantity with the main parameters.
pub(super) fn conclusion(result: &ExperimentResult) -> String {
    let Some(quantity) = result.experiment.quantities.first() else { return String::new() };
    let baseline = result.experiment.baseline;
    let same = format!("No difference larger than {:.0} %", 100.0 * MARGIN);
    let [better, worse] = quantity.words.map(capitalized);
    let mut groups =
        [better, worse, same, "Cannot tell".to_owned()].map(|words| (words, Vec::new()));
    for judged in result.answers() {
        let [better, worse, same, open] = &mut groups;
        let (_, designs) = match judged.verdict {
            Verdict::Faster => better,
            Verdict::Slower => worse,
            Verdict::NoDifferenceLargerThan(_) => same,
            Verdict::CannotTell => open,
        };
        designs.push(format!("{} ({} ×)", judged.design, figure(judged.ratio.estimate)));
    }
    let found: Vec<String> = groups
        .iter()
        .filter(|(_, designs)| !designs.is_empty())
        .map(|(words, designs)| format!("{words}: {}.", designs.join(", ")))
        .collect();
    if found.is_empty() {
        return format!("There is nothing to compare {baseline} with.");
    }
    let (title, found) = (quantity.title, found.join(" "));
    format!("{title}, compared with {baseline} ({}). {found}", named(&result.main))
}

fn capitalized(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// Sentence about the warm-up, which the results do not count.
pub(super) fn warm_up(result: &ExperimentResult) -> String {
    let (trials, most) = result.warm_up;
    format!(
        "A warm-up (MSER-5 on the times of equal shares of the operations) was left out of {:.0} % of the trials, at \
         most {:.0} % of a trial.",
        100.0 * trials,
        100.0 * most
    )
}

/// Fitted laws as sentences.
pub(super) fn laws(result: &ExperimentResult) -> Vec<String> {
    let mut all = Vec::new();
    for scaling in &result.scaling {
        let (design, parameters) = (scaling.design, named(&scaling.parameters));
        if let Some(law) = &scaling.amdahl {
            all.push(format!(
                "Amdahl's law for {design}, {parameters}: serial share {}",
                interval(&law.serial)
            ));
        }
        if let Some(law) = &scaling.scalability {
            all.push(format!(
                "Universal scalability law for {design}, {parameters}: contention {}, coherency {}",
                interval(&law.contention),
                interval(&law.coherency)
            ));
        }
    }
    all
}

/// Sentences that compare each expectation of the original report with the results for the main quantity.
pub(super) fn claims(result: &ExperimentResult) -> Vec<String> {
    let Some(quantity) = result.experiment.quantities.first() else { return Vec::new() };
    let claim = |(better, worse): &(&'static str, &'static str)| {
        let of = |judgement: &&Judgement| {
            judgement.quantity.name == quantity.name
                && (judgement.design, judgement.base) == (*better, *worse)
        };
        let verdicts: Vec<Verdict> =
            result.judgements.iter().filter(of).map(|judgement| judgement.verdict).collect();
        let count =
            |is: fn(&Verdict) -> bool| verdicts.iter().filter(|verdict| is(verdict)).count();
        let faster = count(|verdict| matches!(verdict, Verdict::Faster));
        let slower = count(|verdict| matches!(verdict, Verdict::Slower));
        let same = count(|verdict| matches!(verdict, Verdict::NoDifferenceLargerThan(_)));
        format!(
            "{better} against {worse}: {} in {faster} of {} cases, {} in {slower}, no difference larger than \
             {:.0} % in {same}, cannot tell in {}.",
            quantity.words[0],
            verdicts.len(),
            quantity.words[1],
            100.0 * MARGIN,
            verdicts.len() - faster - slower - same
        )
    };
    result.experiment.claims.iter().map(claim).collect()
}
