//! Recognitions of one drawing as hexadecimal digits: over 64 connections, compared with POST requests to the control
//! with a body and a response of the same sizes; and 1,000 per second in an open loop.

use std::time::Duration;

use hdrhistogram::Histogram;
use knn::Bits;
use sim::population::Making;
use sim::{ApiOptions, Drawings, Drive, SimulateOptions, simulate};

use crate::Plan;
use crate::report::{Report, Target};
use crate::rig::{KEY, Server, at_pace, drive};

const CONNECTIONS: usize = 64;
/// Number of drawings of each connection.
const DRAWINGS: usize = 30;
/// Recognitions per second of the open loop.
const PER_SECOND: u32 = 1_000;
const PATH: &str = "/v1/recognitions";

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
    open_loop(plan, &roost, report).await
}

/// Runs `roost simulate --profile recognize`, which measures latency from the due times. Also reports the delay of a
/// thread that only sleeps until the same times.
async fn open_loop(plan: &Plan, roost: &Server, report: &mut Report) -> anyhow::Result<()> {
    let references = knn::digits().iter().map(|(_, _, bits)| bits.to_bytes()).collect();
    let drawings = Drawings { references, per_second: PER_SECOND };
    let (mut p50, mut p99, mut late, mut cores) = (vec![], vec![], vec![], vec![]);
    for run in 0..plan.runs {
        late.push(lateness_p99_ms(Duration::from_secs(plan.seconds))?);
        let options = SimulateOptions {
            target: roost.address.into(),
            api: ApiOptions::Roost,
            key: Some(KEY.into()),
            making: Making::of(0, run as u64),
            feed: None,
            stories: None,
            drawings: Some(drawings.clone()),
            graph: None,
            keys: None,
            loaded: false,
        };
        let drive = Drive::new(Duration::from_secs(plan.seconds));
        let (_cancel, never) = tokio::sync::watch::channel(false);
        let summary = simulate(options, &drive, &mut std::io::sink(), &mut [], never).await?;
        anyhow::ensure!(summary.error_count() == 0, "{:?}", summary.error_messages);
        p50.extend(summary.kinds.iter().map(|kind| kind.p50_ms));
        p99.extend(summary.kinds.iter().map(|kind| kind.p99_ms));
        cores.extend(summary.server.map(|server| server.cores));
    }
    let each = |what: &str| format!("{PER_SECOND} recognitions per second: {what}");
    report.add(each("p50"), "ms", p50, Some(Target::AtMost(0.3)));
    report.add(each("p99"), "ms", p99, Some(Target::AtMost(1.0)));
    report.add("a thread that sleeps until as many times: late, p99", "ms", late, None);
    report.add(each("the server's share of a core"), "ratio", cores, None);
    Ok(())
}

fn lateness_p99_ms(time: Duration) -> anyhow::Result<f64> {
    let mut late = Histogram::<u64>::new(3)?;
    at_pace(Duration::from_secs(1) / PER_SECOND, time, |_, due| {
        Ok(late.record(due.elapsed().as_nanos() as u64)?)
    })?;
    Ok(late.value_at_quantile(0.99) as f64 / 1e6)
}
