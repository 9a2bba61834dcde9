//! The samples as a table and as plots over time.

use std::fmt::Write as _;
use std::path::Path;

use charts::{Axis, Figure, Fill, Line};

use super::{QUANTITIES, Quantity, Sample};

/// Writes `soak.csv` and `soak.html`.
pub(super) fn save(out: &Path, samples: &[Sample]) -> anyhow::Result<()> {
    std::fs::create_dir_all(out)?;
    let head = "at_s,resident_mb,descriptors,disk_mb,per_second,p50_ms,p99_ms,max_ms,restarted\n";
    let mut csv = head.to_owned();
    for sample in samples {
        let Sample { at_s, resident_mb, descriptors, disk_mb, per_second, .. } = sample;
        let Sample { p50_ms, p99_ms, max_ms, restarted, .. } = sample;
        writeln!(
            csv,
            "{at_s:.1},{resident_mb:.1},{descriptors},{disk_mb:.1},{per_second:.0},{p50_ms:.3},\
             {p99_ms:.3},{max_ms:.3},{restarted}"
        )?;
    }
    std::fs::write(out.join("soak.csv"), csv)?;
    let rate: Quantity = ("Requests", "per second", |sample| sample.per_second);
    let quantities = QUANTITIES.into_iter().chain([rate]);
    let figures: Vec<Figure> = quantities.map(|quantity| figure(samples, quantity)).collect();
    let mix = format!(
        "<p>{}. The server was restarted {} times.</p>\n",
        super::kinds(),
        super::count(samples)
    );
    let body = charts::page::section("Over time", &(mix + &charts::rows(&figures)));
    let page = charts::page::document("roost bench", "Hours of mixed load", &body);
    Ok(std::fs::write(out.join("soak.html"), page)?)
}

fn figure(samples: &[Sample], (title, unit, value): Quantity) -> Figure {
    let max = samples.iter().map(value).fold(1.0, f64::max);
    let end = samples.last().map_or(1.0, |sample| sample.at_s);
    let points = samples.iter().map(|sample| Some((sample.at_s, value(sample)))).collect();
    Figure {
        id: title.to_lowercase().replace(' ', "-"),
        title: title.to_owned(),
        unit: unit.to_owned(),
        description: format!("{title} over time: at most {max:.1}"),
        x: Axis::time(end),
        y: Axis::linear(max, |value| format!("{value}")),
        lines: vec![Line {
            label: String::new(),
            class: charts::color(0).to_owned(),
            points,
            fill: Some(Fill::ToAxis),
        }],
        strips: Vec::new(),
        outlines: Vec::new(),
        marks: Vec::new(),
        bands: Vec::new(),
    }
}
