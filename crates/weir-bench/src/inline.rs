//! Throughput of shaped flows against the plain box, and of an unconfigured direction beside a configured
//! one.

mod queues;

use super::figures::{verdict, Spread};
use super::{goodput, group, measure, options, plan, write, Common, BOXES};
use serde::Serialize;
use weir::execute::lab::Outcome;
use weir::experiment::config::gateway::one_rate;
use weir::experiment::plan::{BoxKind, Path, Plan};
use weir_core::ack::AckControl;
use weir_core::gateway::{Config, Direction};
use weir_core::rate::Rate;

const SECONDS: u64 = 2;
const FLOWS: u32 = 4;
/// Flow rate that no flow reaches, so that ACKs are controlled but the machine is the limit.
const FLOW_RATE: Rate = Rate::mbit(20_000);
/// Class rate that the flows of a direction never reach together.
const CLASS_RATE: Rate = Rate::mbit(80_000);
/// Required ratios to the plain box, for shaped flows and for those of an unconfigured direction.
const SHAPED: f64 = 0.9;
const OTHER: f64 = 0.95;

/// Arguments of `weir-bench inline`.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    common: Common,
    /// Only this box
    #[arg(long = "box", value_name = "KIND", value_parser = kind)]
    only: Option<BoxKind>,
    /// Give classes a rate that their flows share, instead of a rate for each flow
    #[arg(long)]
    class: bool,
    /// Uploads through a queue for each flow, with PostACK (`postack-pfq`) beside the same queues without
    #[arg(long, conflicts_with = "class")]
    queues: bool,
}

fn kind(name: &str) -> Result<BoxKind, String> {
    let found = BOXES.into_iter().find(|k| k.name() == name);
    found.ok_or_else(|| "the boxes are bridge, router and nat".to_string())
}

/// Direction in which flows send.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Traffic {
    Uploads,
    Downloads,
    Both,
}

impl Traffic {
    const fn name(self) -> &'static str {
        match self {
            Traffic::Uploads => "uploads",
            Traffic::Downloads => "downloads",
            Traffic::Both => "both",
        }
    }

    fn goes(self, direction: Direction) -> bool {
        match direction {
            Direction::Out => self != Traffic::Downloads,
            Direction::In => self != Traffic::Uploads,
        }
    }
}

/// Row of the table: a box and its traffic.
#[derive(Debug, Serialize)]
struct Cell {
    #[serde(rename = "box")]
    kind: &'static str,
    traffic: Traffic,
    plain_bps: Vec<f64>,
    shaped_bps: Vec<f64>,
    /// Throughput with only the other direction configured; empty for traffic in both directions.
    other_bps: Vec<f64>,
    shaped: Spread,
    other: Spread,
    /// Cost of shaping over all turns.
    cost: Cost,
}

#[derive(Debug, Default, Serialize)]
struct Cost {
    user_data_bytes: u64,
    acks_in: u64,
    acks_made: u64,
    acks_out: u64,
    cpu_s: f64,
    /// Average share of a processor that the engine used.
    share: f64,
    seconds: f64,
}

impl Cost {
    fn add(&mut self, outcome: &Outcome) {
        let Some(g) = &outcome.result.gateway else { return };
        self.user_data_bytes += g.user_data_bytes;
        self.acks_in += g.frames.received;
        self.acks_made += g.frames.made;
        self.acks_out += g.frames.sent;
        self.cpu_s += g.cpu_s;
        self.seconds += outcome.result.duration_s;
        self.share = self.cpu_s / self.seconds.max(f64::MIN_POSITIVE);
    }
}

pub(super) fn run(args: &Args) -> Result<(), String> {
    let seconds = args.common.seconds.unwrap_or(SECONDS);
    if args.queues {
        return queues::run(args, seconds);
    }
    println!(
        "{FLOWS} flows each way, {seconds} s, no emulator; {} turns, medians (and ranges)\n\
         must hold: shaped ÷ plain at least {SHAPED}, a direction that is not configured at least {OTHER}, no data in \
         user space\n",
        args.common.runs
    );
    println!(
        "{:<7} {:<10} {:>10}  {:<22} {:<22} {:>8} {:>8} {:>7} {:>6}  data bytes",
        "box",
        "traffic",
        "plain Gb/s",
        "shaped ÷ plain",
        "only the other ÷ plain",
        "ACKs in",
        "µs each",
        "made",
        "share"
    );
    let mut cells = Vec::new();
    for kind in BOXES.into_iter().filter(|k| args.only.is_none_or(|only| only == *k)) {
        for traffic in [Traffic::Uploads, Traffic::Downloads, Traffic::Both] {
            let cell = cell(args, seconds, kind, traffic)?;
            print(&cell);
            cells.push(cell);
        }
    }
    let shaped = cells.iter().all(|c| c.shaped.median >= SHAPED);
    let other = cells.iter().all(|c| c.traffic == Traffic::Both || c.other.median >= OTHER);
    let stays = cells.iter().all(|c| c.cost.user_data_bytes == 0);
    println!(
        "\nshaped: {}; not configured: {}; data stays in the kernel: {}",
        verdict(shaped),
        verdict(other),
        verdict(stays)
    );
    write(&args.common, &cells)
}

/// Configuration that a turn measures.
#[derive(Clone, Copy, PartialEq)]
enum Case {
    Plain,
    Shaped,
    Other,
}

impl Case {
    /// Returns the cases of this traffic, with a different one first in each turn. Changes of the machine
    /// during a turn thus affect all cases equally.
    fn of(traffic: Traffic, turn: u32) -> Vec<Case> {
        let mut cases = vec![Case::Plain, Case::Shaped];
        if traffic != Traffic::Both {
            cases.push(Case::Other);
        }
        let first = turn as usize % cases.len();
        cases.rotate_left(first);
        cases
    }
}

fn cell(args: &Args, seconds: u64, kind: BoxKind, traffic: Traffic) -> Result<Cell, String> {
    let [mut plain_bps, mut shaped_bps, mut other_bps] = [vec![], vec![], vec![]];
    let mut cost = Cost::default();
    let (up, down) = (traffic.goes(Direction::Out), traffic.goes(Direction::In));
    for case in (0..args.common.runs).flat_map(|turn| Case::of(traffic, turn)) {
        let (out, inward) = match case {
            Case::Plain => (false, false),
            Case::Shaped => (up, down),
            Case::Other => (down, up),
        };
        let (bps, outcome) = once(seconds, kind, traffic, gateway(args.class, out, inward))?;
        match case {
            Case::Plain => plain_bps.push(bps),
            Case::Shaped => {
                shaped_bps.push(bps);
                cost.add(&outcome);
            }
            Case::Other => other_bps.push(bps),
        }
    }
    Ok(Cell {
        kind: kind.name(),
        traffic,
        shaped: Spread::ratio(&shaped_bps, &plain_bps),
        other: Spread::ratio(&other_bps, &plain_bps),
        plain_bps,
        shaped_bps,
        other_bps,
        cost,
    })
}

/// Returns a gateway that controls the flows of these directions, if any.
fn gateway(class: bool, out: bool, inward: bool) -> Option<Config> {
    let rate = |shaped: bool| shaped.then_some(if class { CLASS_RATE } else { FLOW_RATE });
    let mut gateway = rate(out).or(rate(inward)).map(|_| one_rate(rate(out), rate(inward)))?;
    if class {
        gateway.classes.iter_mut().for_each(|c| c.ack = Some(AckControl::ack_share(CLASS_RATE)));
    }
    Some(gateway)
}

fn once(
    seconds: u64,
    kind: BoxKind,
    traffic: Traffic,
    gateway: Option<Config>,
) -> Result<(f64, Outcome), String> {
    let mut plan: Plan = plan("inline", Path::default(), seconds, FLOWS);
    plan.lab.kind = kind;
    let directions = [(Direction::Out, "up", 5001), (Direction::In, "down", 5002)];
    let wanted = directions.into_iter().filter(|(d, ..)| traffic.goes(*d));
    plan.groups = wanted.map(|(d, id, port)| group(id, d, FLOWS, port)).collect();
    plan.gateway = gateway;
    let outcome = measure(&plan, &options()?)?;
    let bps = goodput(&outcome, &plan, Direction::Out) + goodput(&outcome, &plan, Direction::In);
    Ok((bps, outcome))
}

fn print(cell: &Cell) {
    let c = &cell.cost;
    let other = match cell.traffic {
        Traffic::Both => String::new(),
        _ => format!("{:.2}", cell.other),
    };
    println!(
        "{:<7} {:<10} {:>10.2}  {:<22.2} {:<22} {:>8} {:>8.2} {:>7} {:>5.0}%  {}",
        cell.kind,
        cell.traffic.name(),
        Spread::of(cell.plain_bps.clone()).median / 1e9,
        cell.shaped,
        other,
        c.acks_in,
        c.cpu_s * 1e6 / c.acks_in.max(1) as f64,
        c.acks_made,
        c.share * 100.0,
        c.user_data_bytes
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_case_is_first_as_often_as_the_others() {
        use Case::{Other, Plain, Shaped};
        let turns = |traffic| (0..3).map(|turn| Case::of(traffic, turn)).collect::<Vec<_>>();
        let rotated = [[Plain, Shaped, Other], [Shaped, Other, Plain], [Other, Plain, Shaped]];
        assert!(turns(Traffic::Uploads) == rotated);
        assert!(turns(Traffic::Both) == [[Plain, Shaped], [Shaped, Plain], [Plain, Shaped]]);
    }
}
