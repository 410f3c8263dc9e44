//! The emulator's error: the excess over the configured delay of a UDP packet, from its sending timestamp to
//! the kernel's receive timestamp, compared with the same path without an emulator.

use super::figures::{verdict, Spread};
use super::{measure, options, plan, write, Common};
use serde::Serialize;
use weir::execute::lab::Probe;
use weir::experiment::plan::Path;
use weir_core::gateway::Direction;
use weir_core::time::Duration;

const SECONDS: u64 = 4;
const DELAY: Duration = Duration::from_millis(10);
const RATES: [u32; 5] = [2_000, 10_000, 100_000, 250_000, 500_000];
/// Rate up to which the bound is required; above it, the error is only reported.
const MUST_HOLD: u32 = 100_000;
/// Published figures of other emulators, for comparison: packets a second and delay error.
const PUBLISHED: &str = "\
published of others, on their machines: mahimahi 100,000 to 130,000 packets a second with an error of 0.4 ms,
rattan 40,000 to 70,000";
/// Bound on the excess of the 99th percentile over the bare path's when the emulator spins, in microseconds.
const BOUND_US: f64 = 50.0;

/// Emulation of the path between source and sink.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Emulation {
    /// The bare path.
    Bare,
    /// An emulator with the defaults of `weir wan`, which spins for as long as timers are late.
    Adaptive,
    /// An emulator that spins from one packet to the next.
    Spinning,
    /// An emulator that never spins.
    Sleeping,
}

impl Emulation {
    const ALL: [Emulation; 4] =
        [Emulation::Bare, Emulation::Adaptive, Emulation::Spinning, Emulation::Sleeping];

    /// Returns how long the emulator spins, or `None` for its default.
    fn spin(self) -> Option<Duration> {
        match self {
            Emulation::Bare | Emulation::Adaptive => None,
            // This exceeds the time between two packets at any of the rates.
            Emulation::Spinning => Some(Duration::from_millis(1)),
            Emulation::Sleeping => Some(Duration::ZERO),
        }
    }
}

/// Arguments of `weir-bench wan`.
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
    emulation: Emulation,
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
         must hold, adaptive, up to {MUST_HOLD} packets a second: p99 at most {BOUND_US} above the bare path's, and every \
         packet carried\n\
         {PUBLISHED}\n",
        common.runs
    );
    println!("{:>7}  {:<9} {:>9} {:>22} {:>9}  {:>17}", "pps", "", "p50", "p99", "max", "received / sent");
    let mut rows: Vec<Row> = Vec::new();
    for pps in args.pps.map_or(RATES.to_vec(), |pps| vec![pps]) {
        for row in rows_of(common, seconds, pps)? {
            let bare =
                rows.iter().find(|r| r.pps == pps && r.emulation == Emulation::Bare).map(|r| r.p99_us.median);
            let holds = bare.is_some_and(|b| row.p99_us.median <= b + BOUND_US) && row.received == row.sent;
            println!(
                "{pps:>7}  {:<9} {:>9.1} {:>22} {:>9.1}  {:>8} / {:>8}  {}",
                format!("{:?}", row.emulation).to_lowercase(),
                row.p50_us.median,
                format!("{:.1}", row.p99_us),
                row.max_us.median,
                row.received,
                row.sent,
                if row.emulation == Emulation::Adaptive && pps <= MUST_HOLD { verdict(holds) } else { "" }
            );
            rows.push(row);
        }
    }
    write(common, &rows)
}

/// Measures the four emulations in turns.
fn rows_of(common: &Common, seconds: u64, pps: u32) -> Result<Vec<Row>, String> {
    let mut delays = Emulation::ALL.map(|_| Delays::default());
    for _ in 0..common.runs {
        for (emulation, delays) in Emulation::ALL.into_iter().zip(&mut delays) {
            once(seconds, pps, emulation, delays)?;
        }
    }
    let row = |(emulation, f): (Emulation, Delays)| Row {
        pps,
        emulation,
        p50_us: Spread::of(f.p50),
        p99_us: Spread::of(f.p99),
        max_us: Spread::of(f.max),
        received: f.received,
        sent: f.sent,
    };
    Ok(Emulation::ALL.into_iter().zip(delays).map(row).collect())
}

/// Delays of each turn in microseconds, and the number of all packets.
#[derive(Default)]
struct Delays {
    p50: Vec<f64>,
    p99: Vec<f64>,
    max: Vec<f64>,
    received: u64,
    sent: u64,
}

fn once(seconds: u64, pps: u32, emulation: Emulation, delays: &mut Delays) -> Result<(), String> {
    let mut path = Path::default();
    if emulation != Emulation::Bare {
        path.wan_out.delay = DELAY;
        path.wan_back.delay = DELAY;
    }
    let mut plan = plan("wan", path, seconds, 1);
    plan.groups.clear();
    let mut options = options()?;
    options.spin = emulation.spin();
    options.probe = Some(Probe { pps, size: 64, direction: Direction::Out, burst: 1, gap: None });
    let probe = measure(&plan, &options)?.probe.ok_or("the probe reported nothing")?;
    let (p50, p99, max) = probe.error_ns().ok_or("the probe's sink received nothing")?;
    let us = |ns: i64| ns as f64 / 1e3;
    delays.p50.push(us(p50));
    delays.p99.push(us(p99));
    delays.max.push(us(max));
    delays.received += probe.sink.received;
    delays.sent += probe.source.sent;
    Ok(())
}
