//! Limits of `roost simulate` itself, measured against the bare control: requests per second in the open loop, the
//! delay of its schedule, and the cost of a million users.

use std::process::{Command, Stdio};

use anyhow::Context as _;
use serde_json::Value;

use crate::Plan;
use crate::report::{Report, Target};
use crate::rig::{KEY, Server};

/// Size of a page of 20 posts, in bytes.
const PAGE: usize = 4_000;
/// Requests per second in the open loop.
const PER_SECOND: u32 = 60_000;
const USERS: &str = "100000";

pub(crate) async fn measure(plan: &Plan, report: &mut Report) -> anyhow::Result<()> {
    let control = Server::control(PAGE, 200).await?;
    let (mut done, mut p50, mut p99) = (vec![], vec![], vec![]);
    let (mut own, mut cores, mut closed, mut closed_cores) = (vec![], vec![], vec![], vec![]);
    for _ in 0..plan.runs {
        let open = simulate(plan, &control, USERS, &["--rate", &PER_SECOND.to_string()])?;
        let homes = kind(&open, "home reads")?;
        done.push(per_second(&open)?);
        p50.push(number(homes, "/p50_ms")?);
        p99.push(number(homes, "/p99_ms")?);
        own.push(number(&open, "/lag/scheduling_delay_p99_ms")?);
        cores.push(number(&open, "/generator/cores")?);
        let most = simulate(plan, &control, USERS, &["--loop", "closed"])?;
        closed.push(per_second(&most)?);
        closed_cores.push(number(&most, "/generator/cores")?);
    }
    let each = |what: &str| format!("{PER_SECOND} requests per second due: {what}");
    // The target is 99 % of this rate, because due times are random.
    let target = Some(Target::AtLeast(f64::from(PER_SECOND) * 0.99));
    report.add(each("done"), "1/s", done, target);
    report.add(each("the generator's cores"), "cores", cores, Some(Target::AtMost(1.0)));
    report.add(each("the generator's scheduling delay, p99"), "ms", own, None);
    report.add(each("home reads of the control, p50"), "ms", p50, None);
    report.add(each("home reads of the control, p99"), "ms", p99, None);
    report.add("closed loop, maximum rate", "1/s", closed, None);
    report.add("closed loop: the generator's cores", "cores", closed_cores, None);
    let million = simulate(plan, &control, "1000000", &["--rate", "1000"])?;
    let memory = number(&million, "/generator/memory_bytes")? / 1e6;
    report.add("memory with a million users", "MB", vec![memory], Some(Target::AtMost(300.0)));
    Ok(())
}

/// Runs `roost simulate` against the control, as if the control had these users.
fn simulate(plan: &Plan, control: &Server, users: &str, more: &[&str]) -> anyhow::Result<Value> {
    let json = tempfile::NamedTempFile::new()?;
    let (target, seconds) = (format!("http://{}", control.address), format!("{}s", plan.seconds));
    let mut command = Command::new(&plan.roost);
    command.args(["simulate", "--server", &target, "--loaded", "--users", users]);
    command.args(["--load", "heavy", "--day", "off", "--duration", &seconds, "--json"]);
    command.arg(json.path()).args(more).env("ROOST_SERVER_KEY", KEY).stdout(Stdio::null());
    let ended = command.status()?;
    anyhow::ensure!(ended.success(), "roost simulate {more:?}: {ended}");
    Ok(serde_json::from_slice(&std::fs::read(json.path())?)?)
}

fn kind<'a>(summary: &'a Value, name: &str) -> anyhow::Result<&'a Value> {
    let kinds = summary.pointer("/kinds").and_then(Value::as_array).context("no kinds")?;
    let mut kinds = kinds.iter();
    kinds.find(|kind| kind.pointer("/kind").is_some_and(|kind| kind == name)).context("no kind")
}

fn number(value: &Value, pointer: &str) -> anyhow::Result<f64> {
    value.pointer(pointer).and_then(Value::as_f64).with_context(|| format!("no {pointer}"))
}

fn per_second(summary: &Value) -> anyhow::Result<f64> {
    let kinds = summary.pointer("/kinds").and_then(Value::as_array).context("no kinds")?;
    kinds.iter().map(|kind| number(kind, "/per_second")).sum()
}
