//! Throughput of classes with queues compared with the kernel's HTB with the same classes: whole giant
//! segments, the same number of flows, rate by rate.

use super::figures::{verdict, Spread};
use super::{goodput, group, measure, options, plan, write, Common};
use serde::Serialize;
use weir::execute::lab::OnBox;
use weir::experiment::plan::{BoxKind, Path, Plan};
use weir_core::class::Spec;
use weir_core::gateway::{ClassConfig, Config, Direction, Match};
use weir_core::queue::{self, Kind, QueueLimit};
use weir_core::rate::Rate;
use weir_io::sys::ticks::Ticks;

const SECONDS: u64 = 3;
/// Numbers of flows.
const FLOWS: [u32; 2] = [1, 8];
/// Rates of the link. No machine reaches the last one.
const RATES: [(u64, &str); 3] = [(1_000, "1 Gb/s"), (5_000, "5 Gb/s"), (100_000, "unlimited")];
/// Required ratio to HTB up to 5 Gb/s.
const SHARE: f64 = 1.0;
/// Insignificant difference of a ratio of two runs on a noisy machine.
const NOISE: f64 = 0.01;
/// Servers' ports of the two classes.
const PORTS: [u16; 2] = [5001, 5002];

#[derive(Debug, Serialize)]
struct Row {
    rate_bps: u64,
    flows: u32,
    htb_bps: Vec<f64>,
    weir_bps: Vec<f64>,
    ratio: Spread,
    /// Processor seconds of the whole machine per second and Gb/s.
    htb_cpu: Spread,
    weir_cpu: Spread,
    /// Processor seconds of the engine alone.
    engine_cpu: Spread,
}

pub(super) fn run(common: &Common) -> Result<(), String> {
    let seconds = common.seconds.unwrap_or(SECONDS);
    println!(
        "uploads through a router, two classes of half the link that borrow from each other, TSO on, {seconds} s; {} turns\n\
         must hold: at least {SHARE} of HTB up to 5 Gb/s\n",
        common.runs
    );
    println!(
        "{:<10} {:>5}  {:>9} {:>9}  {:<20} {:>18} {:>10}",
        "link", "flows", "HTB Gb/s", "Weir Gb/s", "Weir ÷ HTB", "CPU s/Gb HTB, Weir", "of engine"
    );
    let mut rows = Vec::new();
    for (mbit, name) in RATES {
        for flows in FLOWS {
            let row = row(common, seconds, Rate::mbit(mbit), flows)?;
            let verdict = match mbit > 5_000 {
                true => "",
                false => verdict(row.ratio.median >= SHARE - NOISE),
            };
            println!(
                "{name:<10} {flows:>5}  {:>9.3} {:>9.3}  {:<20.3} {:>9.3} {:>8.3} {:>10.3}  {verdict}",
                Spread::of(row.htb_bps.clone()).median / 1e9,
                Spread::of(row.weir_bps.clone()).median / 1e9,
                row.ratio,
                row.htb_cpu.median,
                row.weir_cpu.median,
                row.engine_cpu.median,
            );
            rows.push(row);
        }
    }
    write(common, &rows)
}

fn row(common: &Common, seconds: u64, rate: Rate, flows: u32) -> Result<Row, String> {
    let (mut htb, mut weir) = (Vec::new(), Vec::new());
    for _ in 0..common.runs {
        htb.push(once(seconds, rate, flows, OnBox::Htb)?);
        weir.push(once(seconds, rate, flows, OnBox::Gateway)?);
    }
    let bps = |turns: &[Turn]| turns.iter().map(|t| t.bps).collect::<Vec<_>>();
    let cpu = |turns: &[Turn], of: fn(&Turn) -> f64| Spread::of(turns.iter().map(of).collect());
    let (htb_bps, weir_bps) = (bps(&htb), bps(&weir));
    Ok(Row {
        rate_bps: rate.bps(),
        flows,
        ratio: Spread::ratio(&weir_bps, &htb_bps),
        htb_bps,
        weir_bps,
        htb_cpu: cpu(&htb, |t| t.machine),
        weir_cpu: cpu(&weir, |t| t.machine),
        engine_cpu: cpu(&weir, |t| t.engine),
    })
}

/// Results of a turn: throughput, and processor seconds per second and Gb/s.
struct Turn {
    bps: f64,
    machine: f64,
    engine: f64,
}

fn once(seconds: u64, rate: Rate, flows: u32, on_box: OnBox) -> Result<Turn, String> {
    let mut plan: Plan = plan("share", Path::default(), seconds, flows);
    plan.lab.kind = BoxKind::Router;
    let second = flows / 2;
    let groups = [("a", flows - second, PORTS[0]), ("b", second, PORTS[1])];
    let groups = groups.into_iter().filter(|(_, n, _)| *n > 0);
    plan.groups = groups.map(|(id, n, port)| group(id, Direction::Out, n, port)).collect();
    plan.gateway = Some(classes(rate));
    let mut options = options()?;
    options.on_box = on_box;
    let before = Ticks::now();
    let outcome = measure(&plan, &options)?;
    let used = Ticks::now().since(before).busy_s();
    let bps = goodput(&outcome, &plan, Direction::Out);
    let gigabits = bps / 1e9 * seconds as f64;
    let engine = outcome.result.gateway.as_ref().map_or(0.0, |g| g.cpu_s);
    Ok(Turn { bps, machine: used / gigabits, engine: engine / gigabits })
}

/// Returns a link of this rate with two classes of half of it each, which may borrow the other half.
fn classes(rate: Rate) -> Config {
    let class = |name: &str, share, port: Option<u16>| ClassConfig {
        name: name.to_string(),
        direction: Direction::Out,
        matches: port.map(|p| Match { dst_port: Some(p..=p), ..Match::default() }).into_iter().collect(),
        share: Some(share),
        nested: None,
        ack: None,
    };
    // The limit is 10 ms of the link, as far as a pool of giant segments has room.
    let limit = QueueLimit::Bytes((rate.bps() / 800).clamp(256 << 10, 8 << 20));
    let half = Rate::from_bps(rate.bps() / 2);
    let leaf = Spec {
        rate: half,
        queue: Some(queue::Config { limit, kind: Kind::Fifo, tins: None }),
        ..Spec::of(Some(0))
    };
    let link = Spec { rate: Some(rate), ..Spec::of(None) };
    let classes = vec![class("link", link, None), class("a", leaf, Some(PORTS[0])), class("b", leaf, None)];
    Config { classes, ..Config::default() }
}
