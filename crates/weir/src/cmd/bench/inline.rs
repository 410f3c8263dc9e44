//! Throughput with ACK steering against a plain bridge. Machines are noisy and slow down when they
//! are hot, so the two take turns.

use super::{median, options, plan, shape, write, Common};
use crate::lab;
use crate::plan::Path;
use crate::result::RunResult;
use serde::Serialize;
use weir_core::rate::Rate;

const SECONDS: u64 = 4;
const FLOWS: u32 = 8;
/// Above what one flow can get: ACKs are controlled and the machine is the limit.
const FLOW_RATE: Rate = Rate::mbit(20_000);

#[derive(Debug, Serialize)]
struct Figures {
    bridge_bps: Vec<f64>,
    shaped_bps: Vec<f64>,
    ratio: f64,
    user_data_bytes: u64,
    frames_to_user_space: u64,
    engine_cpu_share: f64,
}

pub(super) fn run(common: &Common) -> Result<(), String> {
    let mut figures = Figures {
        bridge_bps: vec![],
        shaped_bps: vec![],
        ratio: 0.0,
        user_data_bytes: 0,
        frames_to_user_space: 0,
        engine_cpu_share: 0.0,
    };
    println!("{FLOWS} flows, {SECONDS} s each, no emulator\n");
    println!("{:>4}  {:>14}  {:>14}  {:>6}", "run", "bridge Gb/s", "shaped Gb/s", "ratio");
    for n in 1..=common.runs {
        let bridge = measure(false)?;
        let shaped = measure(true)?;
        let (b, s) = (goodput(&bridge), goodput(&shaped));
        println!("{n:>4}  {:>14.2}  {:>14.2}  {:>6.3}", b / 1e9, s / 1e9, s / b);
        figures.bridge_bps.push(b);
        figures.shaped_bps.push(s);
        if let Some(g) = &shaped.gateway {
            figures.user_data_bytes += g.user_data_bytes;
            figures.frames_to_user_space += g.frames.received;
            figures.engine_cpu_share = figures.engine_cpu_share.max(g.cpu_s / shaped.duration_s);
        }
    }
    let ratios = figures.shaped_bps.iter().zip(&figures.bridge_bps).map(|(s, b)| s / b).collect();
    figures.ratio = median(ratios);
    println!("\nratio, median of {} turns      {:.3}", common.runs, figures.ratio);
    println!("data bytes in user space        {}", figures.user_data_bytes);
    println!("frames to user space            {}", figures.frames_to_user_space);
    println!("engine's share of a processor   {:.1} % at most", figures.engine_cpu_share * 100.0);
    write(common, &figures)
}

fn measure(shaped: bool) -> Result<RunResult, String> {
    let mut plan = plan("inline", Path::default(), SECONDS, FLOWS);
    let text = if shaped { shape(&mut plan, FLOW_RATE)? } else { String::new() };
    let outcome = lab::run(&plan, &text, &options()?)?;
    match outcome.faults.first() {
        Some(fault) => Err(fault.clone()),
        None => Ok(outcome.result),
    }
}

fn goodput(result: &RunResult) -> f64 {
    result.flows.iter().map(|f| f.goodput_bps).sum()
}
