//! Running of an experiment's world, with recording meanwhile.

use super::series::Recorder;
use super::topology::{self, Topology};
use super::{assemble, capture};
use crate::execute::baselines;
use crate::execute::progress::Progress;
use crate::execute::room::Room;
use crate::experiment::plan::Plan;
use crate::result::{RunResult, Status};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use weir_core::time::{Duration, Time};
use weir_sim::world::STEPS_PER_INSTANT;

/// Approximate interval at which the real clock is read.
const LOOK: std::time::Duration = std::time::Duration::from_millis(50);

/// Options of a simulation beyond the plan.
#[derive(Clone, Copy)]
pub struct Options<'a> {
    /// Directory for captures.
    pub pcap: Option<&'a Path>,
    /// Progress bar; several runs may share it.
    pub progress: Option<&'a Progress>,
    /// Flag that a signal handler sets to end the run early, with the results so far.
    pub stop: &'a AtomicBool,
}

/// Runs `plan` and its baselines. The result's checks are made later. Errors say which part of the plan
/// cannot be simulated, and why.
pub fn run(plan: &Plan, options: &Options) -> Result<RunResult, String> {
    let mut result = alone(plan, options, Room::default())?;
    let beside = Options { pcap: None, ..*options };
    baselines::run(plan, &mut result, |variant| alone(variant, &beside, Room::default()))?;
    Ok(result)
}

/// Runs `plan` without its baselines, into a result with this room.
pub(super) fn alone(plan: &Plan, options: &Options, room: Room) -> Result<RunResult, String> {
    let begin = Instant::now();
    let mut topology = topology::build(plan)?;
    let captures = options.pcap.map(|directory| capture::start(&mut topology, directory)).transpose()?;
    let mut recorder = Recorder::new(plan, &topology);
    let interrupted = !drive(plan, &mut topology, &mut recorder, options)?;
    let written = captures.map_or(Vec::new(), capture::Captures::end);
    let mut result = assemble::result(plan, &mut topology, recorder, room);
    result.faults.splice(0..0, written);
    if interrupted {
        // Connections that the interruption cut are not faulty.
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

/// Simulated time before the clock is read for the first time, and the least of any later slice. Where paths
/// take a nanosecond, a millisecond may have more events than a machine handles in an hour.
const SHORTEST: Duration = Duration::from_nanos(1);

/// Runs to the end or until stopped. Returns whether it reached the end, or the instant that it cannot get
/// past. The steps between readings of the clock do not affect the simulation.
fn drive(
    plan: &Plan,
    topology: &mut Topology,
    recorder: &mut Recorder,
    options: &Options,
) -> Result<bool, String> {
    let end = Time::ZERO + plan.duration;
    // Idle time passes quickly, and a long slice after it would delay the next reading of the clock.
    let most = Duration::from_nanos(plan.duration.as_nanos() / 1000 + 1);
    // What the first one takes is not known, whatever the duration.
    let mut slice = SHORTEST;
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
        if let Some(at) = topology.world.stuck() {
            return Err(format!(
                "more than {STEPS_PER_INSTANT} frames pass at {:.9} s: flows on paths that take no time send without an end; give `path.rtt` or a rate",
                at.as_nanos() as f64 / 1e9
            ));
        }
        if let Some(progress) = options.progress {
            progress.add(slice_end.since(shown));
            shown = slice_end;
        }
        if slice_end >= end {
            return Ok(true);
        }
        if options.stop.load(Ordering::Relaxed) {
            return Ok(false);
        }
        slice = next_slice(slice, looked.elapsed()).min(most);
        looked = Instant::now();
    }
}

/// Returns a slice that takes about [`LOOK`], given that one of length `slice` took `took`.
fn next_slice(slice: Duration, took: std::time::Duration) -> Duration {
    if took > LOOK {
        Duration::from_nanos(slice.as_nanos() / 2).max(SHORTEST)
    } else if took < LOOK / 4 {
        slice.saturating_mul(2)
    } else {
        slice
    }
}
