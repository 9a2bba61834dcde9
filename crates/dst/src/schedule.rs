//! Choice of the next step of a run. The weights of the steps are drawn at the beginning of a run. One run thus has
//! many crashes and another none; in one, the client reads all the time, and in another, the views lag.

use crate::run::{Run, Tally};
use testkit::Random;
use testkit::disk::{Crash, Faults};

/// Steps, in the order of their weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Submit,
    Turn,
    Sweep,
    Job,
    Sync,
    Tick,
    Read,
    Crash,
    Reopen,
    Fault,
    Drain,
    Warm,
}

const STEPS: [Step; 12] = [
    Step::Submit,
    Step::Turn,
    Step::Sweep,
    Step::Job,
    Step::Sync,
    Step::Tick,
    Step::Read,
    Step::Crash,
    Step::Reopen,
    Step::Fault,
    Step::Drain,
    Step::Warm,
];

struct Schedule {
    weights: [u64; STEPS.len()],
    /// Maximum number of commands in one submission.
    batch: u64,
    /// Kinds of faults enabled in this run.
    faults: [bool; 5],
    commands_max: u64,
}

impl Schedule {
    fn new(random: &mut Random) -> Self {
        let mut upto = |most: u64| random.below(most + 1);
        let mut weights =
            [400, 400, upto(40), upto(60), upto(60), upto(100), upto(300), 0, 0, 0, 2, 1];
        weights[Step::Crash as usize] = if upto(3) == 0 { 0 } else { upto(8) };
        weights[Step::Reopen as usize] = upto(1);
        weights[Step::Fault as usize] = if upto(2) == 0 { 0 } else { upto(6) };
        let faults = std::array::from_fn(|_| random.once_in(3));
        let batch = *random.pick(&[1, 5, 40, 200]);
        Self { weights, batch, faults, commands_max: *random.pick(&[500, 5_000, 20_000]) }
    }
}

/// Runs `seed` to its end.
///
/// # Panics
/// If an invariant is broken.
pub(crate) fn run(seed: u64) -> Tally {
    let mut run = Run::new(seed);
    let mut random = run.random.fork();
    let schedule = Schedule::new(&mut random);
    while run.tally.commands < schedule.commands_max && run.step < 40 * schedule.commands_max {
        run.step += 1;
        match STEPS[random.weighted(&schedule.weights)] {
            Step::Submit => {
                let commands = 1 + random.below(schedule.batch);
                run.submit(commands as usize);
            }
            Step::Turn => run.turn(),
            Step::Sweep => run.sweep(),
            Step::Job => run.run_job(),
            Step::Sync => run.sync(),
            Step::Tick => run.tick(),
            Step::Read => run.check_one(),
            Step::Crash => {
                let crash = if random.once_in(2) { Crash::Kill } else { Crash::PowerLoss };
                run.crash(Some(crash));
            }
            Step::Reopen => {
                run.reopen();
            }
            Step::Fault => run.set_faults(faults(&mut random, &schedule.faults)),
            Step::Drain => run.drain(),
            Step::Warm => run.warm(),
        }
    }
    run.end();
    run.tally
}

fn faults(random: &mut Random, kinds: &[bool; 5]) -> Faults {
    let mut faults = Faults::default();
    match random.below(6) {
        0 if kinds[0] => faults.bytes_left = Some(random.below(100_000)),
        1 if kinds[1] => faults.failed_write = Some(random.between(1, 30)),
        2 if kinds[2] => faults.failed_sync = Some(random.between(1, 30)),
        // This fault is rare, because no node can be completely protected against it.
        3 if kinds[3] && random.once_in(20) => {
            faults.misdirected_write = Some(random.between(1, 30));
        }
        4 if kinds[4] => faults.partial = random.between(1, 10),
        _ => faults.stop_at = Some(random.between(1, 100)),
    }
    faults
}
