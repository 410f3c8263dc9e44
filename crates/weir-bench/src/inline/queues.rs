//! Throughput of uploads through a queue for each flow, with PostACK and without.

use super::super::figures::{verdict, Spread};
use super::super::{write, BOXES};
use super::{once, Args, Traffic, CLASS_RATE, FLOWS};
use serde::Serialize;
use weir_core::ack::AckControl;
use weir_core::class::Spec;
use weir_core::gateway::{ClassConfig, Config, Direction};
use weir_core::queue::{self, pfq, Kind, QueueLimit};

/// Packets that a queue holds.
const QUEUE: u32 = 1_000;

/// Row of the table: a box.
#[derive(Debug, Serialize)]
struct Cell {
    #[serde(rename = "box")]
    kind: &'static str,
    pfq_bps: Vec<f64>,
    postack_bps: Vec<f64>,
    /// Ratio of PostACK to queues alone, turn by turn.
    ratio: Spread,
}

pub(super) fn run(args: &Args, seconds: u64) -> Result<(), String> {
    println!(
        "{FLOWS} uploads, {seconds} s, no emulator, queues for each flow at a rate that is no limit; {} turns, medians (and ranges)\n\
         must hold: with PostACK at least as fast as without\n",
        args.common.runs
    );
    println!("{:<7} {:>10}  postack-pfq \u{f7} pfq", "box", "pfq Gb/s");
    let mut cells = Vec::new();
    for kind in BOXES.into_iter().filter(|k| args.only.is_none_or(|only| only == *k)) {
        let [mut pfq_bps, mut postack_bps] = [vec![], vec![]];
        for turn in 0..args.common.runs {
            // A different case is first in each turn.
            for postack in [turn % 2 == 0, turn % 2 != 0] {
                let (bps, _) = once(seconds, kind, Traffic::Uploads, Some(gateway(postack)))?;
                if postack { &mut postack_bps } else { &mut pfq_bps }.push(bps);
            }
        }
        let ratio = Spread::ratio(&postack_bps, &pfq_bps);
        let cell = Cell { kind: kind.name(), pfq_bps, postack_bps, ratio };
        let pfq = Spread::of(cell.pfq_bps.clone()).median / 1e9;
        println!("{:<7} {pfq:>10.2}  {:.2}", cell.kind, cell.ratio);
        cells.push(cell);
    }
    println!("\nas fast: {}", verdict(cells.iter().all(|c| c.ratio.median >= 1.0)));
    write(&args.common, &cells)
}

/// Returns a gateway with a queue for each upload, whose ACKs PostACK controls if `postack`.
fn gateway(postack: bool) -> Config {
    let queue = queue::Config {
        limit: QueueLimit::Packets(QUEUE),
        kind: Kind::Pfq(pfq::Params::default()),
        tins: None,
    };
    let policy = AckControl::postack_pfq(CLASS_RATE);
    let class = ClassConfig {
        ack: postack.then_some(policy),
        share: Some(Spec { rate: Some(CLASS_RATE), queue: Some(queue), ..Spec::of(None) }),
        ..ClassConfig::controlled("uploads", Direction::Out, policy)
    };
    Config { classes: vec![class], ..Config::default() }
}
