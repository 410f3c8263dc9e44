//! The emulator's error: how much longer a UDP packet takes than configured, from its send stamp to the kernel's
//! receive stamp, beside what the same path takes without an emulator.

use super::figures::{verdict, Spread};
use super::{measure, options, plan, write, Common};
use crate::execute::lab::Probe;
use crate::experiment::plan::Path;
use serde::Serialize;
use weir_core::gateway::Direction;
use weir_core::time::Duration;

const SECONDS: u64 = 4;
const DELAY: Duration = Duration::from_millis(10);
const RATES: [u32; 3] = [2_000, 10_000, 100_000];
/// How far the 99th percentile may be above the bare path's when the emulator spins, in microseconds.
const BOUND_US: f64 = 50.0;

/// How the packets go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Way {
    Bare,
    Spinning,
    Sleeping,
}

/// Arguments of `weir bench wan`.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    common: Common,
    /// Only this many packets a second
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(10..=1_000_000))]
    pps: Option<u32>,
}

#[derive(Debug, Serialize)]
struct Row {
    pps: u32,
    way: Way,
    p50_us: Spread,
    p99_us: Spread,
    max_us: Spread,
    received: u64,
    sent: u64,
}

pub(super) fn run(args: &Args) -> Result<(), String> {
    let common = &args.common;
    let seconds = common.seconds.unwrap_or(SECONDS);
    println!(
        "one-way delay beyond the configured {DELAY}, in microseconds; medians of {} turns\n\
         must hold, spinning: p99 at most {BOUND_US} above the bare path's, and every packet carried\n",
        common.runs
    );
    println!("{:>7}  {:<9} {:>9} {:>22} {:>9}  {:>17}", "pps", "", "p50", "p99", "max", "received / sent");
    let mut rows: Vec<Row> = Vec::new();
    for pps in args.pps.map_or(RATES.to_vec(), |pps| vec![pps]) {
        for row in rows_of(common, seconds, pps)? {
            let bare = rows.iter().find(|r| r.pps == pps && r.way == Way::Bare).map(|r| r.p99_us.median);
            let holds = bare.is_some_and(|b| row.p99_us.median <= b + BOUND_US) && row.received == row.sent;
            println!(
                "{pps:>7}  {:<9} {:>9.1} {:>22} {:>9.1}  {:>8} / {:>8}  {}",
                format!("{:?}", row.way).to_lowercase(),
                row.p50_us.median,
                format!("{:.1}", row.p99_us),
                row.max_us.median,
                row.received,
                row.sent,
                if row.way == Way::Spinning { verdict(holds) } else { "" }
            );
            rows.push(row);
        }
    }
    write(common, &rows)
}

/// The three ways take turns.
fn rows_of(common: &Common, seconds: u64, pps: u32) -> Result<Vec<Row>, String> {
    let ways = [Way::Bare, Way::Spinning, Way::Sleeping];
    let mut found = ways.map(|_| Found::default());
    for _ in 0..common.runs {
        for (way, found) in ways.into_iter().zip(&mut found) {
            once(seconds, pps, way, found)?;
        }
    }
    let row = |(way, f): (Way, Found)| Row {
        pps,
        way,
        p50_us: Spread::of(f.p50),
        p99_us: Spread::of(f.p99),
        max_us: Spread::of(f.max),
        received: f.received,
        sent: f.sent,
    };
    Ok(ways.into_iter().zip(found).map(row).collect())
}

#[derive(Default)]
struct Found {
    p50: Vec<f64>,
    p99: Vec<f64>,
    max: Vec<f64>,
    received: u64,
    sent: u64,
}

fn once(seconds: u64, pps: u32, way: Way, found: &mut Found) -> Result<(), String> {
    let mut path = Path::default();
    if way != Way::Bare {
        path.wan_out.delay = DELAY;
        path.wan_back.delay = DELAY;
    }
    let mut plan = plan("wan", path, seconds, 1);
    plan.groups.clear();
    let mut options = options()?;
    // The most there is: it spins from one packet to the next at all of these rates.
    options.spin = match way {
        Way::Bare => None,
        Way::Spinning => Some(Duration::from_millis(1)),
        Way::Sleeping => Some(Duration::ZERO),
    };
    options.probe = Some(Probe { pps, size: 64, direction: Direction::Out });
    let probe = measure(&plan, &options)?.probe.ok_or("the probe reported nothing")?;
    let (p50, p99, max) = probe.error_ns().ok_or("the probe's sink received nothing")?;
    let us = |ns: i64| ns as f64 / 1e3;
    found.p50.push(us(p50));
    found.p99.push(us(p99));
    found.max.push(us(max));
    found.received += probe.sink.received;
    found.sent += probe.source.sent;
    Ok(())
}
