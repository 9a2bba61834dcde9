//! Distributions of the trials of several designs: box plots and violin plots, one row per design.
//!
//! Rows are horizontal, so that long names can be read. The lower axis shows the values. It does not begin at zero, and
//! is logarithmic if the values differ much.

use stats::{BoxSummary, Density, density, median};

use crate::axis::Axis;
use crate::figure::Figure;
use crate::marks::{Mark, Outline, Shape};
use crate::units::Format;
use crate::{Names, color};

/// Ratio of the greatest to the smallest value above which the axis is logarithmic.
const FACTOR_MAX: f64 = 10.0;
/// Half the height of a box, in rows.
const BOX: f64 = 0.28;
/// Half the height of a violin's widest part, in rows.
const VIOLIN: f64 = 0.4;
/// Half the height of a violin's median line, in rows.
const MEDIAN: f64 = 0.14;
/// Number of points along a violin.
const POINTS: usize = 64;

/// Trials of a design.
#[derive(Debug, Clone, Copy)]
pub struct Group<'a> {
    /// The name of the design.
    pub label: &'a str,
    /// Values of the trials; without any, the row is empty.
    pub values: &'a [f64],
}

/// Box plot after Tukey. The box contains the middle half of the trials, and its line is the median. Whiskers reach to
/// the last values within 1.5 lengths of the box; values beyond are marks. `None` if there are no values or one is not
/// finite.
pub fn box_plot(names: Names<'_>, groups: &[Group<'_>], format: Format) -> Option<Figure> {
    let mut figure = frame(names, groups, format)?;
    for (at, group) in groups.iter().enumerate() {
        let (row, class) = ((at + 1) as f64, color(at));
        let Some(summary) = BoxSummary::of(group.values) else { continue };
        let BoxSummary { low, lower_quartile, median, upper_quartile, high, outliers } = summary;
        let text = format!(
            "{}: median {}, middle half {} to {}",
            group.label,
            (format.text)(median),
            (format.text)(lower_quartile),
            (format.text)(upper_quartile)
        );
        let (top, bottom) = (row - BOX, row + BOX);
        figure.outlines.extend([
            open(class, vec![(low, row), (lower_quartile, row)]),
            open(class, vec![(upper_quartile, row), (high, row)]),
            open(class, vec![(low, row - BOX / 2.0), (low, row + BOX / 2.0)]),
            open(class, vec![(high, row - BOX / 2.0), (high, row + BOX / 2.0)]),
            Outline {
                class: class.to_owned(),
                points: vec![
                    (lower_quartile, top),
                    (upper_quartile, top),
                    (upper_quartile, bottom),
                    (lower_quartile, bottom),
                ],
                is_closed: true,
                text,
            },
            open(&format!("{class} middle"), vec![(median, top), (median, bottom)]),
        ]);
        figure.marks.extend(outliers.iter().map(|&value| Mark {
            shape: Shape::Diamond,
            class,
            label: "trial far from the others".to_owned(),
            at: (value, row),
            interval: None,
            text: format!("{}: {}", group.label, (format.text)(value)),
        }));
    }
    Some(figure)
}

/// Violin plot: the width is proportional to the density of trials, and the maximum width is the same for all designs.
/// A line shows the median, and a dot each trial. `None` if there are no values or one is not finite.
pub fn violins(names: Names<'_>, groups: &[Group<'_>], format: Format) -> Option<Figure> {
    let mut figure = frame(names, groups, format)?;
    let is_log = figure.x.is_log();
    for (at, group) in groups.iter().enumerate() {
        let (row, class) = ((at + 1) as f64, color(at));
        let Some(median) = median(group.values) else { continue };
        let text = format!("{}: median {}", group.label, (format.text)(median));
        // On a logarithmic axis, show the density of the logarithms, because the eye compares lengths.
        let scaled: Vec<f64> =
            group.values.iter().map(|&value| if is_log { value.ln() } else { value }).collect();
        if let Some(Density { points, .. }) = density(&scaled, POINTS) {
            let most = points.iter().map(|(_, density)| *density).fold(0.0, f64::max);
            let edge = |side: f64| {
                move |&(value, density): &(f64, f64)| {
                    let value = if is_log { value.exp() } else { value };
                    (value, row + side * VIOLIN * density / most)
                }
            };
            let upper = points.iter().map(edge(-1.0));
            let points = upper.chain(points.iter().rev().map(edge(1.0))).collect();
            figure.outlines.push(Outline {
                class: class.to_owned(),
                points,
                is_closed: true,
                text,
            });
        }
        let ends = vec![(median, row - MEDIAN), (median, row + MEDIAN)];
        figure.outlines.push(open(&format!("{class} middle"), ends));
        figure.outlines.extend(group.values.iter().map(|&value| Outline {
            class: format!("{class} dot"),
            points: vec![(value, row), (value, row)],
            is_closed: false,
            text: format!("{}: {}", group.label, (format.text)(value)),
        }));
    }
    Some(figure)
}

fn open(class: &str, points: Vec<(f64, f64)>) -> Outline {
    Outline { class: class.to_owned(), points, is_closed: false, text: String::new() }
}

/// The figure without its rows.
fn frame(names: Names<'_>, groups: &[Group<'_>], format: Format) -> Option<Figure> {
    let values = || groups.iter().flat_map(|group| group.values.iter().copied());
    let (low, high) = (values().reduce(f64::min)?, values().reduce(f64::max)?);
    if !values().all(f64::is_finite) {
        return None;
    }
    let is_log = low > 0.0 && high / low > FACTOR_MAX;
    let x = if is_log {
        Axis::log(low, high, format.tick)
    } else {
        Axis::range(low, high, format.tick)
    };
    let report = |group: &Group<'_>| {
        Some(format!("{} {}", group.label, (format.text)(median(group.values)?)))
    };
    let reported: Vec<_> = groups.iter().filter_map(report).collect();
    let unit = if is_log { format!("{}, logarithmic", names.unit) } else { names.unit.to_owned() };
    Some(Figure {
        id: names.id.to_owned(),
        title: names.title.to_owned(),
        unit,
        description: format!("medians: {}", reported.join(", ")),
        x,
        y: Axis::groups(groups.iter().map(|group| group.label)),
        lines: Vec::new(),
        strips: Vec::new(),
        outlines: Vec::new(),
        marks: Vec::new(),
        bands: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NAMES: Names<'_> = Names { id: "times", title: "Times", unit: "ms" };

    fn group<'a>(label: &'a str, values: &'a [f64]) -> Group<'a> {
        Group { label, values }
    }

    #[test]
    fn a_box_has_its_quartiles_and_what_is_far_away_is_marked() {
        let values = [1.0, 2.0, 3.0, 4.0, 5.0, 9.9];
        let figure = box_plot(NAMES, &[group("central", &values)], Format::NUMBER).unwrap();
        let closed: Vec<_> = figure.outlines.iter().filter(|outline| outline.is_closed).collect();
        assert_eq!(closed.len(), 1);
        let xs: Vec<f64> = closed[0].points.iter().map(|point| point.0).collect();
        assert_eq!(xs, [2.25, 4.75, 4.75, 2.25]);
        assert_eq!(closed[0].text, "central: median 3.50, middle half 2.25 to 4.75");
        assert_eq!(figure.marks.iter().map(|mark| mark.at).collect::<Vec<_>>(), [(9.9, 1.0)]);
        assert!(!figure.x.is_log());
    }

    #[test]
    fn a_violin_is_widest_where_trials_are_dense() {
        let values = [10.0, 10.1, 10.0, 9.9, 10.05, 13.0];
        let groups = [group("a", &values), group("b", &[12.0, 12.0])];
        let figure = violins(NAMES, &groups, Format::NUMBER).unwrap();
        let violin: Vec<_> = figure.outlines.iter().filter(|outline| outline.is_closed).collect();
        assert_eq!(violin.len(), 1, "values that do not differ are only a line");
        let widest = violin[0].points.iter().min_by(|a, b| a.1.total_cmp(&b.1)).unwrap();
        assert!((widest.0 - 10.0).abs() < 0.1 && (widest.1 - (1.0 - VIOLIN)).abs() < 1e-9);
        let dots = figure.outlines.iter().filter(|outline| outline.class.ends_with("dot")).count();
        assert_eq!(dots, values.len() + 2);
    }

    #[test]
    fn values_that_differ_much_have_a_logarithmic_axis() {
        let groups = [group("a", &[1.0, 1.1]), group("b", &[400.0, 410.0])];
        for figure in
            [box_plot(NAMES, &groups, Format::NUMBER), violins(NAMES, &groups, Format::NUMBER)]
        {
            let figure = figure.unwrap();
            assert!(figure.x.is_log());
            assert_eq!(figure.unit, "ms, logarithmic");
            assert_eq!(figure.description, "medians: a 1.05, b 405");
        }
    }

    #[test]
    fn without_values_there_is_no_figure() {
        assert!(box_plot(NAMES, &[], Format::NUMBER).is_none());
        assert!(violins(NAMES, &[group("a", &[])], Format::NUMBER).is_none());
        assert!(box_plot(NAMES, &[group("a", &[1.0, f64::NAN])], Format::NUMBER).is_none());
        let empty = [group("a", &[]), group("b", &[1.0])];
        assert_eq!(box_plot(NAMES, &empty, Format::NUMBER).unwrap().y.ticks.len(), 2);
    }

    proptest! {
        #[test]
        fn nothing_is_drawn_outside_its_row_and_axis(
            values in proptest::collection::vec(proptest::collection::vec(1e-3..1e4, 0..30), 1..8),
        ) {
            let groups: Vec<_> = values.iter().map(|values| group("design", values)).collect();
            let plots = [box_plot(NAMES, &groups, Format::NUMBER), violins(NAMES, &groups, Format::NUMBER)];
            for figure in plots.into_iter().flatten() {
                let rows = values.len() as f64;
                let ends = figure.x.ticks.iter().map(|tick| tick.0);
                prop_assert!(ends.clone().count() >= 1);
                for (x, y) in figure.outlines.iter().flat_map(|outline| &outline.points) {
                    prop_assert!((0.5..rows + 0.5).contains(y));
                    prop_assert!((1e-3 * 0.999..=1e4 * 1.001).contains(x), "{}", x);
                }
            }
        }
    }
}
