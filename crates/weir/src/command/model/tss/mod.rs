//! `weir model tss`: the time series of snapshots.

mod law;
mod simulated;

use crate::command::error::Failure;
use crate::experiment::config::diag::Fault;
use crate::experiment::config::units;
use crate::report::chart::{self, Lines};
use crate::report::table;
use law::{Case, Scheme};
use serde::Serialize;
use std::path::PathBuf;
use weir_core::link::TRILLION;
use weir_core::rate::Rate;
use weir_core::time::Duration;

/// Default loss rates: 0.01 % to 30 %, in steps of a factor of about two.
const LOSSES: [f64; 15] =
    [0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.003, 0.005, 0.007, 0.01, 0.02, 0.03, 0.05, 0.1, 0.2, 0.3];
/// Number of points of a curve.
const POINTS: u32 = 400;

/// Arguments of `weir model tss`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  weir model tss --rate 800kbit --rtt 50ms --segment 1250
  weir model tss --rate 10Mbit --rtt 100ms --loss 0.1% --loss 1% --json -
  weir model tss --rate 800kbit --rtt 200ms --segment 1250 --out out/tss     # and a chart
  weir model tss --rate 800kbit --rtt 50ms --segment 1250 --simulate 2000 --out out/tss    # figure 16

The model is that of the paper's appendices B and C. docs/tss-model.md derives it and lists its simplifications.")]
pub struct Args {
    /// Rate of the flow at the gateway
    #[arg(long, value_name = "RATE", value_parser = units::rate)]
    rate: Rate,
    /// Round-trip time beyond the gateway, without queueing
    #[arg(long, value_name = "TIME", value_parser = units::positive_duration)]
    rtt: Duration,
    /// Bytes of a packet
    #[arg(long, value_name = "BYTES", default_value_t = 1500, value_parser = clap::value_parser!(u32).range(64..=65_535))]
    segment: u32,
    /// Periodic loss: 1% loses every 100th packet; may be given several times
    #[arg(long = "loss", value_name = "LOSS", value_parser = loss)]
    losses: Vec<f64>,
    /// Simulate each periodic loss for N seconds of virtual time, beside the model
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(10..=100_000))]
    simulate: Option<u64>,
    /// Write the figures to this file as JSON; `-` is standard output, and the table is then left out
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write a chart (tss.svg) into this directory, which is created if needed
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

fn loss(text: &str) -> Result<f64, Fault> {
    const HELP: &str = "losses are above zero and less than one half: \"1%\", \"0.001\"";
    let p = units::probability(text)?.trillionths() as f64 / TRILLION as f64;
    match p > 0.0 && p < 0.5 {
        true => Ok(p),
        false => Err(Fault::new(format!("\"{text}\" is no loss that the model has a cycle for"), HELP)),
    }
}

/// Results of the model, as `--json` writes them.
#[derive(Serialize)]
struct Report {
    schema: u32,
    /// Packets that the rate carries in a round trip.
    pipe_packets: f64,
    /// Loss rates below which the window fills the pipe, and below which it does so even when halved.
    fills_below: f64,
    always_fills_below: f64,
    rows: Vec<Row>,
}

/// Results for a loss rate.
#[derive(Serialize)]
struct Row {
    loss: f64,
    /// Case by the numbers of the paper's figure 15.
    case: u8,
    window_packets: f64,
    /// Shares of the rate, behind a queue and with a sized window.
    queue: f64,
    sized: f64,
    /// Simulated shares of the rate, behind a queue and with a sized window.
    #[serde(skip_serializing_if = "Option::is_none")]
    simulated: Option<[f64; 2]>,
}

/// Computes and prints the model.
pub fn run(args: &Args) -> Result<(), Failure> {
    let pipe = pipe(args)?;
    let losses = if args.losses.is_empty() { &LOSSES[..] } else { &args.losses[..] };
    let mut report = Report {
        schema: crate::result::SCHEMA,
        pipe_packets: pipe,
        fills_below: law::fills(pipe),
        always_fills_below: law::always_fills(pipe),
        rows: losses.iter().map(|&p| row(pipe, p)).collect(),
    };
    if let Some(seconds) = args.simulate {
        for row in &mut report.rows {
            let flow = simulated::Flow { rate: args.rate, rtt: args.rtt, segment: args.segment };
            let shares = flow.shares((1.0 / row.loss).round() as u64, seconds);
            row.simulated = Some(shares.map_err(Failure::Other)?);
        }
    }
    if let Some(to) = &args.json {
        super::super::write_json(to, &report)?;
    }
    if let Some(directory) = &args.out {
        let fault = |e: String| Failure::Other(format!("{}: {e}", directory.display()));
        std::fs::create_dir_all(directory).map_err(|e| fault(e.to_string()))?;
        let text = chart::lines(&drawn(args, pipe, losses, &report.rows)).map_err(fault)?;
        std::fs::write(directory.join("tss.svg"), text).map_err(|e| fault(e.to_string()))?;
    }
    match args.json.as_deref() == Some("-".as_ref()) {
        true => Ok(()),
        false => super::super::print(&text(&report)),
    }
}

/// Returns the packets that the rate carries in a round trip. Fails below one, where no window is small
/// enough.
fn pipe(args: &Args) -> Result<f64, Failure> {
    let bytes = args.rate.bps() as f64 / 8.0 * args.rtt.as_secs_f64();
    let pipe = bytes / f64::from(args.segment);
    if pipe < 1.0 {
        let text = format!(
            "the rate carries {bytes:.0} bytes in a round trip, less than a packet: the model begins with one"
        );
        return Err(Failure::Input(text));
    }
    Ok(pipe)
}

fn row(pipe: f64, p: f64) -> Row {
    let (queue, sized) = (law::steady(Scheme::Queue, pipe, p), law::steady(Scheme::Sized, pipe, p));
    Row {
        loss: p,
        case: queue.case.number(),
        window_packets: queue.window,
        queue: queue.throughput / pipe,
        sized: sized.throughput / pipe,
        simulated: None,
    }
}

fn text(report: &Report) -> String {
    let percent = |share: f64| format!("{:.1}", 100.0 * share);
    let rows = report.rows.iter().map(|r| {
        let gain =
            if r.case == Case::Below.number() { String::new() } else { percent(r.queue / r.sized - 1.0) };
        let mut cells = vec![
            format!("{}", (r.loss * 1e6).round() / 1e4),
            r.case.to_string(),
            format!("{:.1}", r.window_packets),
            percent(r.queue),
            percent(r.sized),
            gain,
        ];
        cells.extend(r.simulated.iter().flatten().map(|&share| percent(share)));
        cells
    });
    let mut heads = vec![
        ("loss", "%"),
        ("case", ""),
        ("window", "packets"),
        ("pfq, postack", "% of rate"),
        ("tcr", "% of rate"),
        ("gain", "%"),
    ];
    if report.rows.iter().any(|r| r.simulated.is_some()) {
        heads.extend([("pfq", "simulated, %"), ("tcr", "simulated, %")]);
    }
    let losses = [report.fills_below, report.always_fills_below].map(|p| format!("{:.3} %", 100.0 * p));
    format!(
        "{}\nThe rate carries {:.1} packets in a round trip. The window fills that below {} of loss, and even halved below {}.\n",
        table::numbers(&heads, rows.collect()),
        report.pipe_packets,
        losses[0],
        losses[1],
    )
}

/// Returns the chart of throughput by loss, as in the paper's figure 16.
fn drawn(args: &Args, pipe: f64, losses: &[f64], rows: &[Row]) -> Lines {
    let until = losses.iter().copied().fold(0.0, f64::max);
    let curve = |scheme| {
        let at = |n: u32| f64::from(n) / f64::from(POINTS) * until;
        (1..=POINTS)
            .map(|n| (100.0 * at(n), 100.0 * law::steady(scheme, pipe, at(n)).throughput / pipe))
            .collect()
    };
    let mut curves =
        vec![("pfq, postack".into(), curve(Scheme::Queue)), ("tcr".into(), curve(Scheme::Sized))];
    for (n, name) in ["pfq, simulated", "tcr, simulated"].into_iter().enumerate() {
        let points = rows.iter().filter_map(|r| Some((100.0 * r.loss, 100.0 * r.simulated?[n])));
        let points: Vec<(f64, f64)> = points.collect();
        if !points.is_empty() {
            curves.push((name.into(), points));
        }
    }
    Lines {
        title: format!("Periodic loss: {}, {}, packets of {} bytes", args.rate, args.rtt, args.segment),
        notes: vec!["Model of appendices B and C of PostACK (docs/tss-model.md)".into()],
        across: "loss, %".into(),
        up: "throughput, % of the rate".into(),
        until: 100.0 * until,
        high: 100.0,
        curves,
    }
}
