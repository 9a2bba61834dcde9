//! Recognitions of one drawing as a hexadecimal string: 64 connections, against the control's POST rate
//! with a body and an answer of the same sizes.

use std::time::Duration;

use knn::Bits;

use crate::Plan;
use crate::report::{Report, Target};
use crate::rig::{Server, drive};

const CONNECTIONS: usize = 64;
/// Drawings of each connection.
const DRAWINGS: usize = 30;
const PATH: &str = "/v1/recognise";

pub(crate) async fn measure(plan: &Plan, report: &mut Report) -> anyhow::Result<()> {
    let data = tempfile::tempdir()?;
    let roost = Server::roost(&plan.roost, data.path(), &[]).await?;
    let drawings: Vec<Bits> = knn::digits().iter().map(|(_, _, bits)| bits).collect();
    let body = |number: usize| {
        let drawing = drawings.get(number % drawings.len()).copied().unwrap_or(Bits::ZERO);
        format!("{{\"sample\":\"{drawing:x}\"}}")
    };
    let answer = roost.ask(&roost.post(PATH, &body(0))).await?.len();
    let control = Server::control(1, answer).await?;
    let asked = |connection: usize| -> Vec<Vec<u8>> {
        let numbers = connection * DRAWINGS..(connection + 1) * DRAWINGS;
        numbers.map(|number| roost.post(PATH, &body(number))).collect()
    };
    let constant = |_: usize| vec![control.post("/", &body(0))];
    let warm = Duration::from_secs(1);
    drive(roost.address, CONNECTIONS, warm, asked).await?;
    drive(control.address, CONNECTIONS, warm, constant).await?;
    let time = Duration::from_secs(plan.seconds);
    let (mut rates, mut control_rates, mut ratios, mut p99) = (vec![], vec![], vec![], vec![]);
    for _ in 0..plan.runs {
        let bare = drive(control.address, CONNECTIONS, time, constant).await?;
        let found = drive(roost.address, CONNECTIONS, time, asked).await?;
        control_rates.push(bare.per_second);
        rates.push(found.per_second);
        ratios.push(found.per_second / bare.per_second);
        p99.push(found.latency.value_at_quantile(0.99) as f64 / 1e6);
    }
    report.add(format!("control: POST answered with {answer} bytes"), "1/s", control_rates, None);
    report.add("recognitions of one drawing, 64 connections", "1/s", rates, None);
    report.add("recognitions, p99", "ms", p99, None);
    report.add("recognitions / control", "ratio", ratios, Some(Target::AtLeast(0.85)));
    Ok(())
}
