//! Pacing: the error of rates and the bursts of many classes on one line in virtual time, and the `clock` back end beside the kernel's TBF.

use super::figures::Spread;
use super::{measure, options, plan, write, Common};
use crate::execute::lab::{OnBox, Probe};
use crate::experiment::plan::Path;
use many::Many;
use serde::Serialize;
use weir_core::class::Spec;
use weir_core::gateway::{ClassConfig, Config, Direction};
use weir_core::pace::{Backend, Class, Counts, Target};
use weir_core::queue::{self, Kind, QueueLimit};
use weir_core::rate::Rate;

mod many;

const SECONDS: u64 = 4;
/// Rates of the paced class in the lab.
const RATES: [Rate; 4] = [Rate::mbit(1), Rate::mbit(10), Rate::mbit(50), Rate::mbit(100)];
/// UDP payload of a packet of 1500 bytes.
const PAYLOAD: u16 = 1472;
const PACKET: u64 = 1500;
/// TBF counts the Ethernet header.
const FRAME: u64 = 1514;

/// Arguments of `weir bench pace`.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    common: Common,
    /// Only the table of many classes, which needs no privileges
    #[arg(long)]
    table: bool,
}

#[derive(Debug, Serialize)]
struct Figures {
    many: Vec<Many>,
    beside_tbf: Vec<Row>,
}

#[derive(Debug, Serialize)]
struct Row {
    rate_bps: u64,
    by: String,
    gap_error_p50_us: Spread,
    gap_error_p99_us: Spread,
    /// How far off the rate is, as a fraction.
    off_target: Spread,
}

pub(super) fn run(args: &Args) -> Result<(), String> {
    let many = many::table();
    let beside_tbf = if args.table { Vec::new() } else { lab(&args.common)? };
    write(&args.common, &Figures { many, beside_tbf })
}

/// What paces in the lab.
#[derive(Clone, Copy)]
enum By {
    Weir,
    Tbf,
}

fn lab(common: &Common) -> Result<Vec<Row>, String> {
    let seconds = common.seconds.unwrap_or(SECONDS);
    println!(
        "\npackets of {PACKET} bytes through a bridge, paced by deadlines (`clock`) and by TBF with a bucket of one frame; {seconds} s, {} turns\n\
         how far off the time between two packets at the receiver is, in microseconds\n",
        common.runs
    );
    println!("{:<10} {:<6} {:>26} {:>26} {:>26}", "rate", "by", "p50", "p99", "rate off by, %");
    let mut rows = Vec::new();
    for rate in RATES {
        let mut turns = [Turns::default(), Turns::default()];
        for _ in 0..common.runs {
            once(seconds, rate, By::Weir, &mut turns[0])?;
            once(seconds, rate, By::Tbf, &mut turns[1])?;
        }
        for (name, turns) in ["clock", "tbf"].into_iter().zip(turns) {
            let row = Row {
                rate_bps: rate.bps(),
                by: name.to_string(),
                gap_error_p50_us: Spread::of(turns.p50),
                gap_error_p99_us: Spread::of(turns.p99),
                off_target: Spread::of(turns.off),
            };
            let percent = Spread::of(row.off_target.values.iter().map(|off| off * 100.0).collect());
            println!(
                "{:<10} {name:<6} {:>26} {:>26} {:>26}",
                rate.to_string(),
                format!("{:.1}", row.gap_error_p50_us),
                format!("{:.1}", row.gap_error_p99_us),
                format!("{percent:.3}"),
            );
            rows.push(row);
        }
    }
    Ok(rows)
}

#[derive(Default)]
struct Turns {
    p50: Vec<f64>,
    p99: Vec<f64>,
    off: Vec<f64>,
}

fn once(seconds: u64, rate: Rate, by: By, turns: &mut Turns) -> Result<(), String> {
    let gap = rate.time_for(PACKET);
    let mut plan = plan("pace", Path::default(), seconds, 1);
    plan.groups.clear();
    // Half as much again as may leave: the queue is never empty.
    let pps = (1_500_000_000 / gap.as_nanos()) as u32;
    let (on_box, rate) = match by {
        By::Weir => (OnBox::Gateway, rate),
        By::Tbf => (OnBox::Tbf, Rate::from_bps(rate.bps() * FRAME / PACKET).unwrap_or(rate)),
    };
    plan.gateway = Some(paced(rate));
    let mut options = options()?;
    options.on_box = on_box;
    options.probe = Some(Probe { pps, size: PAYLOAD, direction: Direction::Out, gap: Some(gap) });
    let sink = measure(&plan, &options)?.probe.ok_or("the probe reported nothing")?.sink;
    let errors = sink.gap_error_ns.ok_or("the probe's sink received nothing")?;
    turns.p50.push(errors.p50 as f64 / 1e3);
    turns.p99.push(errors.p99 as f64 / 1e3);
    let wanted = errors.samples as f64 * gap.as_nanos() as f64;
    turns.off.push(wanted / sink.gaps_took_ns.max(1) as f64 - 1.0);
    Ok(())
}

/// All that goes out at this rate, by deadlines.
fn paced(rate: Rate) -> Config {
    let pace = Class { target: Target::Rate(rate), counts: Counts::Ip, backend: Backend::Clock };
    let queue = queue::Config { limit: QueueLimit::Packets(200), kind: Kind::Fifo };
    let class = ClassConfig {
        name: "paced".into(),
        direction: Direction::Out,
        matches: Vec::new(),
        ack: None,
        share: Some(Spec { rate: Some(rate), queue: Some(queue), pace: Some(pace), ..Spec::of(None) }),
        nested: None,
    };
    Config { classes: vec![class], ..Config::default() }
}
