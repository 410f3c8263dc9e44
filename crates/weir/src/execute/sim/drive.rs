//! Runs the world of an experiment, and looks at it meanwhile.

use super::series::Recorder;
use super::topology::{self, Topology};
use super::{assemble, capture};
use crate::execute::baselines;
use crate::execute::progress::Progress;
use crate::experiment::plan::Plan;
use crate::result::{RunResult, Status};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use weir_core::time::{Duration, Time};

/// The clock is looked at about this often.
const LOOK: std::time::Duration = std::time::Duration::from_millis(50);

/// How an experiment is run, beyond what the plan says.
#[derive(Clone, Copy)]
pub struct Options<'a> {
    /// Directory that frames are written to.
    pub pcap: Option<&'a Path>,
    /// What is shown while it runs; several runs may share it.
    pub progress: Option<&'a Progress>,
    /// Set from outside (a signal handler) to end early with what there is.
    pub stop: &'a AtomicBool,
}

/// Runs `plan` and its baselines; the result's checks are still to be made. Errors say what of it cannot be simulated, and why.
pub fn run(plan: &Plan, options: &Options) -> Result<RunResult, String> {
    let mut result = alone(plan, options)?;
    let beside = Options { pcap: None, ..*options };
    baselines::run(plan, &mut result, |variant| alone(variant, &beside))?;
    Ok(result)
}

fn alone(plan: &Plan, options: &Options) -> Result<RunResult, String> {
    let begin = Instant::now();
    let mut topology = topology::build(plan)?;
    let captures = options.pcap.map(|directory| capture::start(&mut topology, directory)).transpose()?;
    let mut recorder = Recorder::new(plan, &topology);
    let interrupted = !drive(plan, &mut topology, &mut recorder, options);
    let written = captures.map_or(Vec::new(), capture::Captures::end);
    let mut result = assemble::result(plan, &mut topology, recorder);
    result.faults = written;
    if interrupted {
        // Connections that were cut are no fault of theirs.
        result.status = Status::Interrupted;
    } else {
        result.faults.extend(assemble::faults(plan, &topology));
        if !result.faults.is_empty() {
            result.status = Status::Failed;
        }
    }
    result.wall_s = begin.elapsed().as_secs_f64();
    Ok(result)
}

/// Runs to the end, or until it is told to stop; says whether it came to the end. How far it goes between two looks
/// at the clock changes nothing about what happens.
fn drive(plan: &Plan, topology: &mut Topology, recorder: &mut Recorder, options: &Options) -> bool {
    let end = Time::ZERO + plan.duration;
    // Quiet times are over fast; what comes then must not have to wait for the end of a long slice.
    let most = Duration::from_nanos(plan.duration.as_nanos() / 1000 + 1);
    let mut slice = most;
    let mut looked = Instant::now();
    let mut shown = Time::ZERO;
    loop {
        let now = topology.world.now();
        let slice_end = (now + slice).min(end);
        while let Some(at) = recorder.next().filter(|&at| at <= slice_end) {
            topology.world.run_until(at);
            recorder.record(topology);
        }
        topology.world.run_until(slice_end);
        if let Some(progress) = options.progress {
            progress.add(slice_end.since(shown));
            shown = slice_end;
        }
        if slice_end >= end {
            return true;
        }
        if options.stop.load(Ordering::Relaxed) {
            return false;
        }
        slice = next_slice(slice, looked.elapsed()).min(most);
        looked = Instant::now();
    }
}

/// A slice that takes about [`LOOK`], if one of length `slice` took `took`.
fn next_slice(slice: Duration, took: std::time::Duration) -> Duration {
    if took > LOOK {
        Duration::from_nanos(slice.as_nanos() / 2).max(Duration::from_micros(1))
    } else if took < LOOK / 4 {
        slice.saturating_mul(2)
    } else {
        slice
    }
}
