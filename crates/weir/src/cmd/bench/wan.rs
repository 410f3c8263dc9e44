//! The emulator's error: how much longer a UDP packet takes than configured, from its send stamp to
//! the kernel's receive stamp. Without an emulator the same path takes what the last rows say.

use super::{options, plan, write, Common};
use crate::lab::{self, Probe};
use crate::plan::Path;
use serde::Serialize;
use weir_core::gateway::Direction;
use weir_core::rate::Rate;
use weir_core::time::Duration;

const SECONDS: u64 = 4;
const DELAY: Duration = Duration::from_millis(10);
/// Downloads that keep the emulator busy without queueing before the probe.
const LOAD: Rate = Rate::mbit(200);

#[derive(Debug, Serialize)]
struct Figure {
    emulator: bool,
    pps: u32,
    loaded: bool,
    p50_us: f64,
    p99_us: f64,
    max_us: f64,
    received: u64,
    sent: u64,
}

pub(super) fn run(common: &Common) -> Result<(), String> {
    println!("one-way delay beyond the configured {DELAY}, in microseconds\n");
    println!(
        "{:<10} {:>7}  {:<7} {:>9} {:>9} {:>9}  {:>16}",
        "", "pps", "", "p50", "p99", "max", "received / sent"
    );
    let mut figures = Vec::new();
    for emulator in [true, false] {
        for pps in [10_000, 100_000] {
            for loaded in [false, true] {
                let f = measure(emulator, pps, loaded)?;
                println!(
                    "{:<10} {:>7}  {:<7} {:>9.1} {:>9.1} {:>9.1}  {:>7} / {:>7}",
                    if emulator { "emulator" } else { "bare" },
                    pps,
                    if loaded { "loaded" } else { "idle" },
                    f.p50_us,
                    f.p99_us,
                    f.max_us,
                    f.received,
                    f.sent
                );
                figures.push(f);
            }
        }
    }
    write(common, &figures)
}

fn measure(emulator: bool, pps: u32, loaded: bool) -> Result<Figure, String> {
    let mut path = Path::default();
    if emulator {
        path.wan_out.delay = DELAY;
        path.wan_back.delay = DELAY;
        path.wan_back.rate = loaded.then_some(LOAD);
    }
    let mut plan = plan("wan", path, SECONDS, 4);
    if loaded {
        plan.groups[0].direction = Direction::In;
    } else {
        plan.groups.clear();
    }
    let mut options = options()?;
    options.probe = Some(Probe { pps, size: 64, direction: Direction::Out });
    let outcome = lab::run(&plan, "", &options)?;
    if let Some(fault) = outcome.faults.first() {
        return Err(fault.clone());
    }
    let probe = outcome.probe.ok_or("the probe reported nothing")?;
    let (p50, p99, max) = probe.error_ns().ok_or("the probe's sink received nothing")?;
    let us = |ns: i64| ns as f64 / 1e3;
    Ok(Figure {
        emulator,
        pps,
        loaded,
        p50_us: us(p50),
        p99_us: us(p99),
        max_us: us(max),
        received: probe.sink.received,
        sent: probe.source.sent,
    })
}
