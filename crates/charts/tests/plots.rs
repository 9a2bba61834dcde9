//! Tests of every plot: the page is well-formed for any names and values.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "what fails here is the test")]

use charts::page::{Tone, document, section, table, tiles, verdict};
use charts::units::Format;
use charts::{Figure, Group, Names, Series, box_plot, power_law, rows, speedup, violins};
use proptest::prelude::*;
use stats::Interval;

const EVIL: &str = "<evil a=\"1\" b='2'>&\u{1b}[1m";

fn interval(estimate: f64, share: f64) -> Interval {
    Interval { estimate, low: estimate * (1.0 - share), high: estimate * (1.0 + share) }
}

/// One of each kind of plot, with `name` for every text.
fn all(name: &str, values: &[f64], law: &dyn Fn(f64) -> f64) -> Vec<Figure> {
    let names = |id| Names { id, title: name, unit: name };
    let groups = [Group { label: name, values }, Group { label: name, values: &[] }];
    let points: Vec<(f64, Interval)> =
        (1_u32..).zip(values).map(|(at, &value)| (f64::from(at), interval(value, 0.2))).collect();
    let series = [
        Series { label: name, points: &points, fit: Some(law) },
        Series { label: name, points: &[], fit: Some(law) },
        Series { label: name, points: &points, fit: None },
    ];
    [
        box_plot(names("box"), &groups, Format::MS),
        violins(names("violin"), &groups, Format::NUMBER),
        speedup(names("speedup"), &series),
        power_law(names("power"), &series, Format::NUMBER, Format::RATE),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The document with these figures, first each alone, then side by side.
fn page(figures: &[Figure]) -> String {
    let each: String = figures.iter().map(|figure| rows(std::slice::from_ref(figure))).collect();
    document("roost lab", EVIL, &section("Plots", &each))
}

fn times(text: &str, part: &str) -> usize {
    text.matches(part).count()
}

fn check(html: &str) {
    for tag in ["svg", "figure", "section", "div", "ul", "li", "text", "title", "table", "path"] {
        let (open, close) = (times(html, &format!("<{tag}")), times(html, &format!("</{tag}>")));
        let start = format!("<{tag} ");
        let alone = html.split(&start).skip(1);
        let closed_alone = alone.filter(|rest| rest.split('>').next().unwrap().ends_with('/'));
        assert_eq!(open, close + closed_alone.count(), "{tag}");
    }
    for part in ["NaN", "inf", "<script", " src=", "http:", "https:", "url("] {
        assert_eq!(times(html, part), 0, "{part}");
    }
    let ids: Vec<&str> =
        html.split(" id=\"").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
    let mut unique = ids.clone();
    unique.sort_unstable();
    unique.dedup();
    assert_eq!(ids.len(), unique.len(), "{ids:?}");
}

#[test]
fn names_are_text_wherever_they_are_shown() {
    let figures = all(EVIL, &[1.0, 1.7, 2.2, 40.0], &|n| n / (1.0 + 0.1 * n));
    assert_eq!(figures.len(), 4);
    let html = page(&figures)
        + &verdict(Tone::Bad, EVIL, EVIL)
        + &tiles(vec![("name", EVIL.to_owned(), EVIL.to_owned())]);
    check(&html);
    assert!(times(&html, "&lt;evil a=&quot;1&quot;") > 10);
    assert_eq!(times(&html, "<evil") + times(&html, "\u{1b}"), 0);
}

#[test]
fn a_row_of_figures_is_as_wide_as_the_page_or_shares_it() {
    let mut figures = all("sharded", &[1.0, 1.7, 2.2], &|n| n);
    let html = rows(&figures);
    assert!(html.starts_with("<div class=\"row of-2\">"), "{html}");
    assert_eq!(times(&html, "<svg viewBox"), 4);
    figures.truncate(1);
    assert_eq!(times(&rows(&figures), "<svg viewBox=\"0 0 1040 400\""), 1);
    assert_eq!(rows(&[]), "");
}

#[test]
fn the_page_loads_and_runs_nothing() {
    let html = page(&all("sharded", &[1.0, 1.7, 2.2], &|n| n));
    assert!(html.contains("content=\"default-src 'none'; style-src 'unsafe-inline';"));
    assert!(html.contains("<title>&lt;evil"));
    for query in ["prefers-color-scheme: dark", "@media print", "max-width: 30rem"] {
        assert!(html.contains(query), "{query}");
    }
}

#[test]
fn a_table_has_a_head_for_its_rows() {
    let html = table("Verdicts", &["design", "verdict"], &[vec!["a".into(), "faster".into()]]);
    check(&html);
    assert!(html.contains("<th scope=\"row\">a</th><td>faster</td>"), "{html}");
}

#[test]
fn a_law_without_a_value_somewhere_is_interrupted() {
    let law = |n: f64| if n < 2.0 { f64::NAN } else { n };
    check(&page(&all("a", &[1.0, 2.0, 3.0], &law)));
}

proptest! {
    #[test]
    fn whatever_was_measured_makes_a_whole_page(
        values in proptest::collection::vec(
            prop_oneof![0.0..1e3, Just(0.0), -1e3..0.0, 1e-12..1e-9, 1e9..1e15, Just(f64::NAN)], 0..12),
        name in "[abc<>&\"' ]{0,9}",
    ) {
        check(&page(&all(&name, &values, &|n| n)));
    }
}
